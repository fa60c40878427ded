import django.db.models.deletion
from django.db import migrations, models

#: earlier releases had the subject only in the sentence
FILL = r"""
UPDATE drift_finding
SET cause_subject = coalesce(substring(cause from 'version \d+ of (.+) was (?:registered|released) by '), '')
WHERE cause <> ''
"""


class Migration(migrations.Migration):
    dependencies = [("drift", "0010_minimum_version")]

    operations = [
        migrations.CreateModel(
            name="FindingRange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("partition", models.PositiveIntegerField()),
                ("first_offset", models.BigIntegerField()),
                ("last_offset", models.BigIntegerField()),
                (
                    "finding",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ranges",
                        to="drift.finding",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("finding", "partition", "first_offset"), name="one_range")
                ],
            },
        ),
        migrations.AddField(
            model_name="finding",
            name="cause_subject",
            field=models.TextField(blank=True, default="", help_text="the subject whose version the cause names"),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="finding",
            name="opened_at",
            field=models.DateTimeField(
                blank=True, help_text="when it last opened again after it was resolved", null=True
            ),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
