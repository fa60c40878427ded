"""Changes that loosen a closed environment and wait for a second person, under audit."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from registry.audit.triggers import audit_table


class Migration(migrations.Migration):
    """Changes that loosen a closed environment and wait for a second person, under audit."""

    dependencies = [
        ("audit", "0001_tables"),
        ("promotions", "0007_labels_and_drafts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="EnvironmentChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("action", models.CharField(max_length=32)),
                ("values", models.JSONField()),
                ("before", models.JSONField(default=dict)),
                ("digest", models.CharField(help_text="SHA-256 of the action with its values", max_length=64)),
                ("sentence", models.TextField()),
                ("reason", models.TextField()),
                ("state", models.CharField(default="open", max_length=9)),
                ("requested_at", models.DateTimeField(auto_now_add=True)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                ("comment", models.TextField(blank=True)),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "environment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="changes", to="promotions.environment"
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ("open", "approved", "rejected", "withdrawn"))),
                        name="known_change_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("decided_at", None), ("decided_by", None), ("state", "open")),
                            models.Q(
                                models.Q(("state", "open"), _negated=True),
                                ("decided_at__isnull", False),
                                ("decided_by__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="change_decided_by_and_at",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ("open", "withdrawn")),
                            models.Q(("decided_by", models.F("requested_by")), _negated=True),
                            _connector="OR",
                        ),
                        name="second_person_decides_change",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True), name="environment_change_has_a_reason"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "open")), fields=("environment", "digest"), name="one_open_change"
                    ),
                ],
            },
        ),
        audit_table("promotions_environmentchange"),
    ]
