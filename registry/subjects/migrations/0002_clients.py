"""The programs that read and write a subject's data, under audit."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

from registry.audit.triggers import audit_table


class Migration(migrations.Migration):
    """The programs that read and write a subject's data, under audit."""

    dependencies = [("subjects", "0001_tables"), ("audit", "0001_tables")]
    operations = [
        migrations.CreateModel(
            name="Client",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=128)),
                ("reads", models.BooleanField()),
                ("writes", models.BooleanField()),
                ("version", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "fields",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=512), blank=True, default=list, size=None
                    ),
                ),
                ("contact", models.CharField(blank=True, help_text="whom to talk to", max_length=200)),
                ("declared_at", models.DateTimeField(auto_now_add=True)),
                ("declared_by", models.TextField()),
                ("seen_at", models.DateTimeField()),
                (
                    "subject",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="clients", to="subjects.subject"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("subject", "name"), name="one_client_of_a_name"),
                    models.CheckConstraint(
                        condition=models.Q(("reads", True), ("writes", True), _connector="OR"),
                        name="client_reads_or_writes",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("version", None), ("version__gte", 1), _connector="OR"),
                        name="client_version_counts_from_one",
                    ),
                    models.CheckConstraint(condition=models.Q(("fields__len__lte", 200)), name="client_has_few_fields"),
                ],
            },
        ),
        # That one is heard of again is no change of what is said of it.
        audit_table(
            "subjects_client",
            events="INSERT OR UPDATE OF name, reads, writes, version, fields, contact OR DELETE",
        ),
    ]
