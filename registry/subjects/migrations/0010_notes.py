"""Tags and texts of subjects, under audit."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.text
import django.db.models.lookups
from django.db import migrations, models

from registry.audit.triggers import govern
from registry.subjects.invariants import keep_invariants


class Migration(migrations.Migration):
    """Tags and texts of subjects, under audit."""

    dependencies = [("subjects", "0009_covering_indexes"), ("audit", "0002_audit")]
    operations = [
        migrations.CreateModel(
            name="SubjectNote",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "tags",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), blank=True, default=list, size=None
                    ),
                ),
                ("doc", models.TextField(blank=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("updated_by", models.TextField()),
                (
                    "subject",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="note", to="subjects.subject"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("tags__len__lte", 32)), name="note_has_few_tags"),
                    models.CheckConstraint(
                        condition=django.db.models.lookups.LessThanOrEqual(
                            django.db.models.functions.text.Length("doc"), 20000
                        ),
                        name="note_is_short",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("doc", ""), ("tags", []), _negated=True), name="note_says_something"
                    ),
                ],
            },
        ),
        govern("subjects_subjectnote"),
        *keep_invariants("0010_notes"),
    ]
