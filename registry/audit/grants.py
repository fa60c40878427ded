"""What the application's database role may do, set after every migration."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import connections
from psycopg import sql

GRANTS = (
    "GRANT USAGE ON SCHEMA public TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role}",
    "REVOKE ALL ON audit_auditevent FROM {role}",
    "GRANT SELECT ON audit_auditevent TO {role}",
    "REVOKE ALL ON audit_chainhead FROM {role}",
    "GRANT SELECT ON audit_chainhead TO {role}",
    "GRANT EXECUTE ON FUNCTION audit_seal(integer) TO {role}",
    "REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM {role}",
)


def grant_to_application(*, using: str, **_signal: Any) -> None:
    """Receiver of post_migrate: the application's role reads and writes everything but the audit, which it reads.

    Does nothing where the role doesn't exist: an operator who runs with one role has no append-only
    promise, and `manage.py check --deploy` says so.
    """
    role = settings.DATABASE_APPLICATION_ROLE
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s AND rolname <> current_user", [role])
        if cursor.fetchone() is None:
            return
        for statement in GRANTS:
            cursor.execute(sql.SQL(statement).format(role=sql.Identifier(role)))
