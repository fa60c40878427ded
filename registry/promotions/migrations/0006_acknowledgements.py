"""What people of declared clients say of requests, under audit, and whether an environment asks for it."""

import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

from registry.audit.triggers import audit_table


class Migration(migrations.Migration):
    """What people of declared clients say of requests, under audit, and whether an environment asks for it."""

    dependencies = [
        ("audit", "0001_tables"),
        ("promotions", "0005_again_of"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="environment",
            name="clients_block",
            field=models.BooleanField(
                default=False,
                help_text="a declared client that doesn't go on stops the release until it is acknowledged",
            ),
        ),
        migrations.CreateModel(
            name="Acknowledgement",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("subject", models.CharField(help_text="the qualified name", max_length=1280)),
                ("client", models.CharField(max_length=128)),
                ("note", models.TextField(blank=True)),
                ("plan_hash", models.CharField(max_length=64)),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="acknowledgements",
                        to="promotions.promotionrequest",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("request"),
                        django.db.models.functions.text.MD5("subject"),
                        models.F("client"),
                        models.F("plan_hash"),
                        name="one_acknowledgement_a_client_and_plan",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("subject", ""), _negated=True),
                            models.Q(("client", ""), _negated=True),
                            models.Q(("plan_hash", ""), _negated=True),
                        ),
                        name="acknowledgement_names_its_client",
                    ),
                ],
            },
        ),
        audit_table("promotions_acknowledgement"),
    ]
