"""Tests of environments and of what guards closed ones."""
