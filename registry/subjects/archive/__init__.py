"""Archived copies of permanently deleted versions and of uploaded files, and restoring them."""
