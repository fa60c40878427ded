"""The trigger function that tells of a change in the moment of its commit, and the operation that puts a table under it.

Caches listen to the channel `schemadesk_changed`: whoever changed the table, through whatever door. The payload is the
name of the connection that did, for people who look.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.migrations.operations import RunSQL

TELL_FUNCTION = """
CREATE OR REPLACE FUNCTION tell_change() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM pg_notify('schemadesk_changed', current_setting('application_name', true));
    RETURN NULL;
END $$
"""


def tell(table: str, columns: Sequence[str] = ()) -> RunSQL:
    """The migration operation by which a table's changes are told; of updates those of some columns (none named: all)."""
    named = ", ".join(f'"{column}"' for column in columns)
    update = f"UPDATE OF {named}" if named else "UPDATE"
    return RunSQL(
        f'CREATE TRIGGER tell_change AFTER INSERT OR DELETE OR TRUNCATE OR {update} ON "{table}"'
        " FOR EACH STATEMENT EXECUTE FUNCTION tell_change()",
        f'DROP TRIGGER IF EXISTS tell_change ON "{table}"',
    )
