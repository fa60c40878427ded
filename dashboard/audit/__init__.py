"""The audit log: its page, its export, and links to what its events are about."""
