"""The object stores of checkpoints, with what the audit watches."""

import django.db.models.deletion
from django.db import migrations, models

from registry.audit.triggers import govern


class Migration(migrations.Migration):
    """The object stores of checkpoints, with what the audit watches."""

    dependencies = [
        ("drift", "0005_sources"),
        ("streams", "0003_queries"),
        ("audit", "0002_audit"),
    ]

    operations = [
        migrations.CreateModel(
            name="CheckpointStore",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("endpoint", models.CharField(help_text="http(s)://host[:port]", max_length=2048)),
                ("region", models.CharField(default="us-east-1", max_length=40)),
                ("access_key_id", models.CharField(blank=True, max_length=128)),
                (
                    "secret",
                    models.CharField(
                        blank=True, help_text="the name under which the secret key is kept", max_length=64
                    ),
                ),
                (
                    "source",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="store", to="drift.source"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("access_key_id", ""), ("secret", "")),
                            models.Q(("access_key_id__gt", ""), ("secret__gt", "")),
                            _connector="OR",
                        ),
                        name="both_halves_of_the_credentials",
                    )
                ],
            },
        ),
        govern("streams_checkpointstore"),
    ]
