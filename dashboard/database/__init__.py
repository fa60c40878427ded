"""Django's PostgreSQL backend, which also says when something that answers depend on is committed."""
