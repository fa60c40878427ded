"""Django's PostgreSQL backend, which also announces commits that change cached responses."""
