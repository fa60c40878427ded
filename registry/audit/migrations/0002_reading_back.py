"""Indexes by which the log is read back: by who and which door, and what has changed since a moment."""

from django.db import migrations, models
from django.db.models.fields.json import KeyTextTransform

_CHANGES = ~models.Q(operation="INSERT")


class Migration(migrations.Migration):
    """Indexes by which the log is read back."""

    dependencies = [("audit", "0001_tables")]
    operations = [
        migrations.AddIndex("auditevent", models.Index(fields=["actor", "id"], name="audit_of_an_actor")),
        migrations.AddIndex("auditevent", models.Index(fields=["door", "id"], name="audit_of_a_door")),
        migrations.AddIndex(
            "auditevent", models.Index(fields=["table", "at"], condition=_CHANGES, name="audit_of_changes")
        ),
        migrations.AddIndex(
            "auditevent",
            models.Index(
                KeyTextTransform("subject_id", "before"),
                condition=models.Q(table="subjects_schemaversion") & _CHANGES,
                name="audit_of_old_versions",
            ),
        ),
    ]
