"""Which resources use which subjects; and an import may bring one schema as several live versions."""

import django.db.models.deletion
from django.db import migrations, models

from registry.audit.triggers import govern
from registry.subjects.invariants import keep_invariants

TYPES = ("key", "value")
LIFECYCLES = ("STRONG", "WEAK")
BY_NAME = ["registry", "resource_namespace", "resource_name", "resource_type", "association_type", "subject"]


def text(length: int) -> models.CharField:
    return models.CharField(db_collation="C", max_length=length)


def one_of(length: int, *values: str) -> models.CharField:
    return models.CharField(choices=[(value, value) for value in values], max_length=length)


class Migration(migrations.Migration):
    """Associations, and twins of imports."""

    dependencies = [("subjects", "0005_remote")]
    operations = [
        migrations.CreateModel(
            name="Association",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("guid", models.UUIDField(unique=True)),
                ("resource_namespace", text(256)),
                ("resource_name", text(256)),
                ("resource_id", text(1024)),
                ("resource_type", one_of(16, "topic")),
                ("association_type", one_of(8, *TYPES)),
                ("lifecycle", one_of(6, *LIFECYCLES)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "registry",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="associations",
                        to="subjects.registry",
                    ),
                ),
                (
                    "subject",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="associations",
                        to="subjects.subject",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=["registry", "resource_id", "resource_type", "association_type"],
                        name="one_association_a_resource_id",
                    ),
                    models.UniqueConstraint(fields=BY_NAME, name="one_association_a_name"),
                    models.UniqueConstraint(
                        fields=["subject"], condition=models.Q(("lifecycle", "STRONG")), name="one_owner_a_subject"
                    ),
                    models.CheckConstraint(condition=models.Q(("lifecycle__in", LIFECYCLES)), name="known_lifecycle"),
                    models.CheckConstraint(
                        condition=models.Q(("association_type__in", TYPES)), name="known_association_type"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("resource_id", ""), _negated=True), name="association_has_resource_id"
                    ),
                ],
            },
        ),
        govern("subjects_association"),
        *keep_invariants("0006_associations"),
        migrations.AddField(
            "schemaversion",
            "imported",
            models.BooleanField(db_default=False, default=False, help_text="its number was given by an import"),
        ),
        migrations.RemoveConstraint("schemaversion", "one_live_version_a_schema"),
        migrations.AddConstraint(
            "schemaversion",
            models.UniqueConstraint(
                condition=models.Q(("deleted_at", None), ("imported", False)),
                fields=("subject", "schema"),
                name="one_live_version_a_schema",
            ),
        ),
    ]
