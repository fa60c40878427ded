"""The format of each subject's newest version stands beside what the list of subjects is sorted by."""

from django.db import migrations, models

# As before, with the format of the newest version.
KEEP_ACTIVITY = """
CREATE OR REPLACE FUNCTION subjects_keep_activity() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM 1 FROM subjects_subject WHERE id IN (SELECT subject_id FROM changed) ORDER BY id FOR UPDATE;
    INSERT INTO subjects_subjectactivity AS kept (subject_id, registry_id, live_versions, changed_at, schema_type)
    SELECT v.subject_id, c.registry_id, count(*), max(v.created_at),
        (array_agg(sc.schema_type ORDER BY v.version DESC))[1]
    FROM subjects_schemaversion v
    JOIN subjects_schema sc ON sc.id = v.schema_id
    JOIN subjects_subject s ON s.id = v.subject_id
    JOIN subjects_context c ON c.id = s.context_id
    WHERE v.deleted_at IS NULL AND v.subject_id IN (SELECT subject_id FROM changed)
    GROUP BY v.subject_id, c.registry_id
    ON CONFLICT (subject_id) DO UPDATE
    SET live_versions = excluded.live_versions, changed_at = excluded.changed_at, schema_type = excluded.schema_type
    WHERE (kept.live_versions, kept.changed_at, kept.schema_type)
        IS DISTINCT FROM (excluded.live_versions, excluded.changed_at, excluded.schema_type);
    DELETE FROM subjects_subjectactivity a
    WHERE a.subject_id IN (SELECT subject_id FROM changed) AND NOT EXISTS (
        SELECT FROM subjects_schemaversion v WHERE v.subject_id = a.subject_id AND v.deleted_at IS NULL
    );
    RETURN NULL;
END $$"""
FILL = """
UPDATE subjects_subjectactivity kept SET schema_type = newest.schema_type
FROM (
    SELECT DISTINCT ON (v.subject_id) v.subject_id, sc.schema_type
    FROM subjects_schemaversion v JOIN subjects_schema sc ON sc.id = v.schema_id
    WHERE v.deleted_at IS NULL ORDER BY v.subject_id, v.version DESC
) newest
WHERE newest.subject_id = kept.subject_id"""


class Migration(migrations.Migration):
    """The format of each subject's newest version stands beside what the list of subjects is sorted by."""

    dependencies = [("subjects", "0002_clients")]
    operations = [
        migrations.AddField(
            model_name="subjectactivity",
            name="schema_type",
            field=models.CharField(default="AVRO", max_length=8),
            preserve_default=False,
        ),
        migrations.RunSQL(KEEP_ACTIVITY, migrations.RunSQL.noop),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.RemoveIndex(model_name="subjectactivity", name="subjects_by_change"),
        migrations.AddIndex(
            model_name="subjectactivity",
            index=models.Index(
                fields=["registry_id", "-changed_at", "subject"], include=["schema_type"], name="subjects_by_change"
            ),
        ),
    ]
