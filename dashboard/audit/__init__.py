"""The audit log: its page, its export, and links to the objects of its events."""
