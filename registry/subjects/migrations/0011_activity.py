"""What the list of subjects is sorted by, and the triggers that keep it."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

#: event → the rows of the statement; an update doesn't move a version to another subject
EVENTS = {"insert": "NEW", "update": "NEW", "delete": "OLD"}

# The subjects are locked first, in the order of everybody: what is counted then is what the last writer left.
FUNCTION = """
CREATE FUNCTION subjects_keep_activity() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM 1 FROM subjects_subject WHERE id IN (SELECT subject_id FROM changed) ORDER BY id FOR UPDATE;
    INSERT INTO subjects_subjectactivity AS kept (subject_id, registry_id, live_versions, changed_at)
    SELECT v.subject_id, c.registry_id, count(*), max(v.created_at)
    FROM subjects_schemaversion v
    JOIN subjects_subject s ON s.id = v.subject_id
    JOIN subjects_context c ON c.id = s.context_id
    WHERE v.deleted_at IS NULL AND v.subject_id IN (SELECT subject_id FROM changed)
    GROUP BY v.subject_id, c.registry_id
    ON CONFLICT (subject_id) DO UPDATE
    SET live_versions = excluded.live_versions, changed_at = excluded.changed_at
    WHERE (kept.live_versions, kept.changed_at) IS DISTINCT FROM (excluded.live_versions, excluded.changed_at);
    DELETE FROM subjects_subjectactivity a
    WHERE a.subject_id IN (SELECT subject_id FROM changed) AND NOT EXISTS (
        SELECT FROM subjects_schemaversion v WHERE v.subject_id = a.subject_id AND v.deleted_at IS NULL
    );
    RETURN NULL;
END $$"""
FILL = """
INSERT INTO subjects_subjectactivity (subject_id, registry_id, live_versions, changed_at)
SELECT v.subject_id, c.registry_id, count(*), max(v.created_at)
FROM subjects_schemaversion v
JOIN subjects_subject s ON s.id = v.subject_id
JOIN subjects_context c ON c.id = s.context_id
WHERE v.deleted_at IS NULL
GROUP BY v.subject_id, c.registry_id
"""


def trigger(event: str, rows: str) -> RunSQL:
    """The trigger of one kind of change, once a statement."""
    return RunSQL(
        f"CREATE TRIGGER keep_activity_{event} AFTER {event.upper()} ON subjects_schemaversion"
        f" REFERENCING {rows} TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION subjects_keep_activity()",
        f"DROP TRIGGER IF EXISTS keep_activity_{event} ON subjects_schemaversion",
    )


class Migration(migrations.Migration):
    """The table, what is there already, and the triggers."""

    dependencies = [("subjects", "0010_notes")]
    operations = [
        migrations.CreateModel(
            name="SubjectActivity",
            fields=[
                (
                    "subject",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="activity",
                        serialize=False,
                        to="subjects.subject",
                    ),
                ),
                ("registry_id", models.BigIntegerField()),
                ("live_versions", models.PositiveIntegerField()),
                ("changed_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["registry_id", "-changed_at", "subject"], name="subjects_by_change")]
            },
        ),
        RunSQL(FILL, RunSQL.noop),
        RunSQL(FUNCTION, "DROP FUNCTION IF EXISTS subjects_keep_activity()"),
        *(trigger(event, rows) for event, rows in EVENTS.items()),
    ]
