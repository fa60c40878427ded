"""Repeats responses before Django: the cache, the epoch that invalidates them, and the sources of changes."""
