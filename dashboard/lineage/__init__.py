"""The map of what flows where."""
