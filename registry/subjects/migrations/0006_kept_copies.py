"""What is kept for a while of deletions for good, and of files to be brought in; under audit without the texts."""

import django.db.models.deletion
from django.db import migrations, models

from registry.audit.triggers import audit_table


class Migration(migrations.Migration):
    """What is kept for a while, under audit without the texts."""

    dependencies = [("subjects", "0005_subjects_by_name"), ("audit", "0001_tables")]

    operations = [
        migrations.CreateModel(
            name="KeptCopy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(choices=[("deleted", "deleted"), ("sent", "sent")], max_length=7)),
                ("name", models.TextField(help_text="the subject's qualified name, or what the file was called")),
                ("versions", models.PositiveIntegerField()),
                ("content", models.TextField()),
                ("made_at", models.DateTimeField()),
                ("made_by", models.TextField()),
                ("until", models.DateTimeField(db_index=True)),
                (
                    "registry",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="kept_copies",
                        to="subjects.registry",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["registry", "kind", "-id"], name="copies_newest_first")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ("deleted", "sent"))), name="known_kind_of_copy"
                    ),
                    models.CheckConstraint(condition=models.Q(("name", ""), _negated=True), name="copy_has_a_name"),
                    models.CheckConstraint(
                        condition=models.Q(("until__gt", models.F("made_at"))), name="copy_is_kept_for_a_while"
                    ),
                ],
            },
        ),
        audit_table("subjects_keptcopy", hide=("content",)),
    ]
