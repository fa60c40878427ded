"""The pages of registries: their connections, archives of their contents, and their policy."""
