"""Schemas proposed from observed messages."""
