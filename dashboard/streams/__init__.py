"""Streaming queries and their state: lists, variables, and the check before a restart."""
