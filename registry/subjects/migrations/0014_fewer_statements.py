"""A registration takes fewer statements in its triggers, with the same effect, and commits without another round trip."""

from django.db import migrations

from registry.audit.triggers import EXPECT_FUNCTION, TELL_REGISTRATION_FUNCTION

KEEP_ACTIVITY = """
CREATE OR REPLACE FUNCTION subjects_keep_activity() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    is_kept boolean;
BEGIN
    PERFORM 1 FROM subjects_subject WHERE id IN (SELECT subject_id FROM changed) ORDER BY id FOR UPDATE;
    IF TG_OP = 'INSERT' THEN
        WITH added AS (
            SELECT subject_id, count(*) AS versions, max(created_at) AS changed_at FROM changed
            WHERE deleted_at IS NULL GROUP BY subject_id
        ), updated AS (
            UPDATE subjects_subjectactivity kept
            SET live_versions = kept.live_versions + added.versions,
                changed_at = greatest(kept.changed_at, added.changed_at),
                schema_type = (
                    SELECT sc.schema_type FROM subjects_schemaversion v JOIN subjects_schema sc ON sc.id = v.schema_id
                    WHERE v.subject_id = kept.subject_id AND v.deleted_at IS NULL ORDER BY v.version DESC LIMIT 1)
            FROM added WHERE kept.subject_id = added.subject_id RETURNING kept.subject_id
        )
        SELECT (SELECT count(*) FROM updated) = (SELECT count(*) FROM added) INTO is_kept;
        IF is_kept THEN RETURN NULL; END IF;
    END IF;
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
    """The functions."""

    dependencies = [("subjects", "0013_constant_registration")]
    operations = [
        migrations.RunSQL(KEEP_ACTIVITY, migrations.RunSQL.noop),
        migrations.RunSQL(TELL_REGISTRATION_FUNCTION, migrations.RunSQL.noop),
        migrations.RunSQL(EXPECT_FUNCTION, "DROP FUNCTION IF EXISTS expect_told(text)"),
    ]
