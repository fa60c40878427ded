"""A new version costs the same however many its subject has: of their schemas, only the newest is read."""

from django.db import migrations

# As before, but without a join of all live versions to their schemas.
KEEP_ACTIVITY = """
CREATE OR REPLACE FUNCTION subjects_keep_activity() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM 1 FROM subjects_subject WHERE id IN (SELECT subject_id FROM changed) ORDER BY id FOR UPDATE;
    INSERT INTO subjects_subjectactivity AS kept (subject_id, registry_id, live_versions, changed_at, schema_type)
    SELECT s.id, c.registry_id, live.versions, live.changed_at, newest.schema_type
    FROM (SELECT DISTINCT subject_id FROM changed) touched
    JOIN subjects_subject s ON s.id = touched.subject_id
    JOIN subjects_context c ON c.id = s.context_id
    CROSS JOIN LATERAL (
        SELECT sc.schema_type FROM subjects_schemaversion v JOIN subjects_schema sc ON sc.id = v.schema_id
        WHERE v.subject_id = s.id AND v.deleted_at IS NULL ORDER BY v.version DESC LIMIT 1
    ) newest
    CROSS JOIN LATERAL (
        SELECT count(*) AS versions, max(v.created_at) AS changed_at FROM subjects_schemaversion v
        WHERE v.subject_id = s.id AND v.deleted_at IS NULL
    ) live
    ON CONFLICT (subject_id) DO UPDATE
    SET live_versions = excluded.live_versions, changed_at = excluded.changed_at, schema_type = excluded.schema_type
    WHERE (kept.live_versions, kept.changed_at, kept.schema_type)
        IS DISTINCT FROM (excluded.live_versions, excluded.changed_at, excluded.schema_type);
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM subjects_subjectactivity a
        WHERE a.subject_id IN (SELECT subject_id FROM changed) AND NOT EXISTS (
            SELECT FROM subjects_schemaversion v WHERE v.subject_id = a.subject_id AND v.deleted_at IS NULL
        );
    END IF;
    RETURN NULL;
END $$"""


class Migration(migrations.Migration):
    """The function; the one before has the same effect."""

    dependencies = [("subjects", "0009_tell_registrations")]
    operations = [migrations.RunSQL(KEEP_ACTIVITY, migrations.RunSQL.noop)]
