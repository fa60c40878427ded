"""The board, the page of an environment with its rules and freezes, and unapproved versions."""
