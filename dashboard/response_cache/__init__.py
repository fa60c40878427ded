"""Whole answers given again before Django: the cache, the epoch that ends them, and who tells of changes."""
