"""The board of subjects × environments: its rows, its index, and whether each version could be promoted."""
