"""The findings of scans: the list, the page of one with its evidence, and mutes."""
