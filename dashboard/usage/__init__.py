"""The pages of versions in use, declared clients, decoding a message, and the wizard that retires a version."""
