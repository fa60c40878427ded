"""Environments: their rules, freezes, break-glass, and what guards closed ones."""
