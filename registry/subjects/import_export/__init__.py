"""Exports of a registry, and imports from a file or from another registry."""
