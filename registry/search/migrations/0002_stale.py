"""Versions and notes that change queue their subject, in the transaction of the change; what is there already is queued."""

from django.db import migrations

FUNCTION = """
CREATE OR REPLACE FUNCTION search_mark_stale() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO search_stalesubject (subject_id)
    VALUES (CASE TG_OP WHEN 'DELETE' THEN OLD.subject_id ELSE NEW.subject_id END);
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION search_mark_stale() FROM PUBLIC;
CREATE TRIGGER search_stale AFTER INSERT OR DELETE OR UPDATE OF deleted_at, schema_id, version
    ON subjects_schemaversion FOR EACH ROW EXECUTE FUNCTION search_mark_stale();
CREATE TRIGGER search_stale AFTER INSERT OR UPDATE OR DELETE
    ON subjects_subjectnote FOR EACH ROW EXECUTE FUNCTION search_mark_stale();
"""
BACK = """
DROP TRIGGER IF EXISTS search_stale ON subjects_subjectnote;
DROP TRIGGER IF EXISTS search_stale ON subjects_schemaversion;
DROP FUNCTION IF EXISTS search_mark_stale();
"""


class Migration(migrations.Migration):
    """The queue is filled; what it holds is worked off by a task, in batches."""

    dependencies = [("search", "0001_initial"), ("subjects", "0010_notes")]
    operations = [
        migrations.RunSQL(FUNCTION, BACK),
        migrations.RunSQL(
            "INSERT INTO search_stalesubject (subject_id) SELECT id FROM subjects_subject ORDER BY id",
            migrations.RunSQL.noop,
        ),
    ]
