"""Whether versions are still in use: declared clients, and evidence from other apps."""
