"""The pages of environments: the board, an environment with its rules and freezes, and unapproved versions."""
