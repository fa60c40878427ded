"""Which versions are in use, declared clients, pasted messages, and the wizard that retires a version."""
