"""What people decided of fields that look renamed, under audit."""

import django.db.models.deletion
import django.db.models.functions.text
from django.db import migrations, models

from registry.audit.triggers import audit_table


class Migration(migrations.Migration):
    """What people decided of fields that look renamed, under audit."""

    dependencies = [
        ("audit", "0001_tables"),
        ("promotions", "0003_evidence_age"),
        ("subjects", "0003_format_of_subjects"),
    ]

    operations = [
        migrations.CreateModel(
            name="RenameDecision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("from_path", models.TextField(help_text="of the field that went, as the diff names it")),
                ("to_path", models.TextField(help_text="of the field that came")),
                ("is_rename", models.BooleanField()),
                ("reason", models.TextField(blank=True)),
                ("decided_by", models.TextField()),
                ("decided_at", models.DateTimeField(auto_now=True)),
                (
                    "subject",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="subjects.subject"
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("subject"),
                        django.db.models.functions.text.MD5("from_path"),
                        django.db.models.functions.text.MD5("to_path"),
                        name="one_decision_a_rename",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("from_path", ""), _negated=True),
                            models.Q(("to_path", ""), _negated=True),
                            models.Q(("from_path", models.F("to_path")), _negated=True),
                        ),
                        name="rename_has_two_paths",
                    ),
                ],
            },
        ),
        audit_table("promotions_renamedecision"),
    ]
