"""A version's life after registration: status, retirement, deletion, restoring, and notes on its subject."""
