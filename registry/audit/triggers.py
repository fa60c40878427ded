"""The trigger function, and the migration operation that puts a table under it.

The function runs as its owner (SECURITY DEFINER), so the application's role needs no right to write
the audit table, and has none: neither a bulk update nor raw SQL slips by, and nothing that was
written can be changed through that role.
"""

from __future__ import annotations

from django.db.migrations.operations import RunSQL

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


def govern(table: str, *, hide: tuple[str, ...] = (), events: str = EVERY_CHANGE) -> RunSQL:
    """The migration operation that writes a table's changes to the audit, without the hidden columns.

    `events` narrows it where a column is bookkeeping that changes all the time (a counter, a position):
    `INSERT OR UPDATE OF state OR DELETE`.
    """
    arguments = ", ".join(f"'{column}'" for column in hide)
    return RunSQL(
        f'CREATE TRIGGER audit AFTER {events} ON "{table}" FOR EACH ROW EXECUTE FUNCTION audit_row({arguments})',
        f'DROP TRIGGER IF EXISTS audit ON "{table}"',
    )
