"""Comparing versions and proposals: by text, by compatibility, and with data."""
