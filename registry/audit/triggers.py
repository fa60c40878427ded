"""Triggers and grants in the database, with the migration operations that set them up.

`audit_table` puts a table under the audit trigger. Its function runs as its owner (SECURITY DEFINER), so the application's
role needs no right to write the audit table, and has none: bulk updates and raw SQL are audited too, and that role
can't change the audit. `grant_to_application` sets that role's rights after every migration.

`tell` gives a table a trigger that announces what a change affects, whoever made it: to its own transaction in the
setting `schemadesk.changed`, and at commit on the channel `schemadesk_changed`. Caches rely on it
(dashboard/response_cache/epoch.py). `*` is anything. `+` is a registration, followed by the groups of the subjects that
got a version: numbers, each the hash of a name. `announce_registrations` gives such a trigger to tables that grow only by
registrations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import connections
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import CreateModel, RunSQL
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from psycopg import sql

ROW_FUNCTION = """
CREATE OR REPLACE FUNCTION audit_row() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    old_row jsonb; new_row jsonb; hidden text;
BEGIN
    IF TG_OP <> 'INSERT' THEN old_row := to_jsonb(OLD); END IF;
    IF TG_OP <> 'DELETE' THEN new_row := to_jsonb(NEW); END IF;
    IF TG_OP = 'UPDATE' AND old_row = new_row THEN RETURN NULL; END IF;
    FOREACH hidden IN ARRAY coalesce(TG_ARGV, '{}') LOOP
        IF old_row ? hidden THEN old_row := jsonb_set(old_row, ARRAY[hidden], '"(hidden)"'); END IF;
        IF new_row ? hidden THEN new_row := jsonb_set(new_row, ARRAY[hidden], '"(hidden)"'); END IF;
    END LOOP;
    INSERT INTO audit_auditevent
        (at, transaction_id, actor, door, origin, why, operation, "table", row_id, before, after, seal)
    VALUES (
        clock_timestamp(), (pg_current_xact_id()::text)::bigint,
        coalesce(nullif(current_setting('schemadesk.actor', true), ''), 'database role ' || session_user),
        coalesce(nullif(current_setting('schemadesk.door', true), ''), 'sql'),
        coalesce(current_setting('schemadesk.origin', true), ''),
        coalesce(current_setting('schemadesk.why', true), ''),
        TG_OP, TG_TABLE_NAME, coalesce(new_row ->> 'id', old_row ->> 'id', ''), old_row, new_row, ''
    );
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION audit_row() FROM PUBLIC;
"""

EVERY_CHANGE = "INSERT OR UPDATE OR DELETE"


def audit_table(table: str, *, hide: tuple[str, ...] = (), events: str = EVERY_CHANGE) -> RunSQL:
    """Return the migration operation that audits a table's changes, without the hidden columns.

    `events` limits it if a column is bookkeeping that changes all the time (a counter, a position): `INSERT OR UPDATE
    OF state OR DELETE`.
    """
    arguments = ", ".join(f"'{column}'" for column in hide)
    return RunSQL(
        f'CREATE TRIGGER audit AFTER {events} ON "{table}" FOR EACH ROW EXECUTE FUNCTION audit_row({arguments})',
        f'DROP TRIGGER IF EXISTS audit ON "{table}"',
    )


TELL_FUNCTION = """
CREATE OR REPLACE FUNCTION tell_change() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM set_config('schemadesk.changed', '*', true), pg_notify('schemadesk_changed', '*');
    RETURN NULL;
END $$
"""

#: if a transaction registers under so many names that its setting gets longer, it is `*`
MAX_ANNOUNCED = 1000
#: the number of a subject's group, as dashboard/response_cache/epoch.py computes it
SUBJECT_GROUP = "('x' || substr(md5({name}), 1, 8))::bit(32)::bigint % 117"

TELL_REGISTRATION_FUNCTION = f"""
CREATE OR REPLACE FUNCTION tell_registration() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    subjects text;
    told text := coalesce(current_setting('schemadesk.changed', true), '');
BEGIN
    IF TG_TABLE_NAME = 'subjects_subject' THEN
        SELECT string_agg(DISTINCT ' ' || {SUBJECT_GROUP.format(name="r.name")}, '') INTO subjects FROM new_rows r;
    ELSIF TG_TABLE_NAME = 'subjects_schemaversion' THEN
        SELECT string_agg(DISTINCT ' ' || {SUBJECT_GROUP.format(name="s.name")}, '') INTO subjects
        FROM new_rows r JOIN subjects_subject s ON s.id = r.subject_id;
    ELSIF told <> '' THEN
        RETURN NULL;  -- the transaction has told at least as much
    ELSIF TG_OP = 'INSERT' THEN
        IF NOT EXISTS (SELECT FROM new_rows) THEN RETURN NULL; END IF;
    END IF;
    told := coalesce(nullif(told, ''), '+') || coalesce(subjects, '');
    PERFORM
        set_config('schemadesk.changed', CASE
            WHEN told LIKE '*%' OR length(told) > {MAX_ANNOUNCED} THEN '*' ELSE told END, true),
        pg_notify('schemadesk_changed', '+' || coalesce(subjects, ''));
    RETURN NULL;
END $$
"""  # noqa: S608 - of constants


#: ends a transaction that was told otherwise, so that it is tried again
EXPECT_FUNCTION = """
CREATE OR REPLACE FUNCTION expect_told(expected text) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF coalesce(current_setting('schemadesk.changed', true), '') <> expected THEN
        RAISE EXCEPTION 'the transaction changed something else' USING ERRCODE = 'serialization_failure';
    END IF;
END $$
"""


def tell(table: str, columns: Sequence[str] = (), events: str = "INSERT OR DELETE OR TRUNCATE") -> RunSQL:
    """Return the migration operation that announces a table's changes; of updates those of some columns (none: all)."""
    named = ", ".join(f'"{column}"' for column in columns)
    update = f"UPDATE OF {named}" if named else "UPDATE"
    return RunSQL(
        f'CREATE TRIGGER tell_change AFTER {events} OR {update} ON "{table}"'
        " FOR EACH STATEMENT EXECUTE FUNCTION tell_change()",
        f'DROP TRIGGER IF EXISTS tell_change ON "{table}"',
    )


def announce_registrations(table: str, event: str = "INSERT") -> RunSQL:
    """Return the migration operation that announces the rows that a registration adds, or those that it updates."""
    name = f"tell_{event.lower()}"
    return RunSQL(
        f'CREATE TRIGGER {name} AFTER {event} ON "{table}" REFERENCING NEW TABLE AS new_rows'
        " FOR EACH STATEMENT EXECUTE FUNCTION tell_registration()",
        f'DROP TRIGGER IF EXISTS {name} ON "{table}"',
    )


class CreateTables(Operation):
    """Migration operation that creates the tables of models, each after those that it refers to.

    It does the same as a `CreateModel` for each, but faster: for every `CreateModel`, Django builds the classes of all
    related models again, in other apps too. Here they are built once, when all are known.
    """

    def __init__(self, *models: CreateModel) -> None:
        self.models = models

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Add the models; their classes are built on first use."""
        state.__dict__.pop("apps", None)
        for model in self.models:
            model.state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Create the tables."""
        for model in self.models:
            model.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Drop the tables, in reverse order."""
        for model in reversed(self.models):
            model.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        """Return the line for `migrate --plan`."""
        return f"Create models {', '.join(model.name for model in self.models)}"


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
    """Let the application's role write everything but the audit, which it reads; a receiver of post_migrate.

    Does nothing if the role doesn't exist: an operator who runs with one role has no append-only guarantee, and
    `manage.py check --deploy` says so.
    """
    role = settings.DATABASE_APPLICATION_ROLE
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s AND rolname <> current_user", [role])
        if cursor.fetchone() is None:
            return
        for statement in GRANTS:
            cursor.execute(sql.SQL(statement).format(role=sql.Identifier(role)))
