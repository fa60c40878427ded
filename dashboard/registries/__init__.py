"""Registries and their connections, archives of their contents, and their policy."""
