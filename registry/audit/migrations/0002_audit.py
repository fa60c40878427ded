"""The trigger function."""

from django.db import migrations

CREATE_FUNCTION = """
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
        (at, transaction_id, actor, door, why, operation, "table", row_id, before, after)
    VALUES (
        clock_timestamp(), (pg_current_xact_id()::text)::bigint,
        coalesce(nullif(current_setting('schemadesk.actor', true), ''), 'database role ' || session_user),
        coalesce(nullif(current_setting('schemadesk.door', true), ''), 'sql'),
        coalesce(current_setting('schemadesk.why', true), ''),
        TG_OP, TG_TABLE_NAME, coalesce(new_row ->> 'id', old_row ->> 'id', ''), old_row, new_row
    );
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION audit_row() FROM PUBLIC;
"""


class Migration(migrations.Migration):
    """The trigger function."""

    dependencies = [("audit", "0001_initial")]
    operations = [
        migrations.RunSQL(CREATE_FUNCTION, "DROP FUNCTION IF EXISTS audit_row()"),
    ]
