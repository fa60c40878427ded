"""Archived copies of what was deleted for good or uploaded, and restoring them."""
