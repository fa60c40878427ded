"""The index by which a subject that was removed for good is found by its name."""

from django.contrib.postgres.indexes import HashIndex
from django.db import migrations, models
from django.db.models.fields.json import KeyTextTransform


class Migration(migrations.Migration):
    """The index by which a subject that was removed for good is found by its name."""

    dependencies = [("audit", "0002_reading_back")]
    operations = [
        migrations.AddIndex(
            "auditevent",
            HashIndex(
                KeyTextTransform("name", "before"),
                condition=models.Q(table="subjects_subject", operation="DELETE"),
                name="audit_of_gone_subjects",
            ),
        )
    ]
