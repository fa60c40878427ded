"""What listeners report of running queries."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Points and runs. They aren't governed: no trigger of the audit."""

    dependencies = [
        ("streams", "0003_silently_wrong"),
    ]

    operations = [
        migrations.CreateModel(
            name="ProgressPoint",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("seconds", models.PositiveSmallIntegerField(help_text="60 or 3600")),
                ("at", models.DateTimeField(help_text="the beginning")),
                ("batches", models.PositiveIntegerField(default=0)),
                ("rows", models.PositiveBigIntegerField(default=0)),
                ("duration_ms", models.PositiveBigIntegerField(default=0, help_text="of a batch")),
                ("watermark_delay_ms", models.PositiveBigIntegerField(help_text="null: no watermark", null=True)),
                (
                    "lag",
                    models.PositiveBigIntegerField(help_text="messages of Kafka to be read; null: unknown", null=True),
                ),
                (
                    "operators",
                    models.JSONField(default=list, help_text="name, rows, bytes and partitions, by Spark's number"),
                ),
                (
                    "query",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="progress", to="streams.streamquery"
                    ),
                ),
            ],
            options={
                "ordering": ["at"],
                "constraints": [models.UniqueConstraint(fields=("query", "seconds", "at"), name="one_progress_point")],
            },
        ),
        migrations.CreateModel(
            name="QueryRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("run_id", models.UUIDField(help_text="Spark's id, new at each start")),
                ("name", models.CharField(blank=True, help_text="of the query in its job", max_length=200)),
                ("is_restart", models.BooleanField()),
                ("started_at", models.DateTimeField()),
                ("seen_at", models.DateTimeField(help_text="the time of the newest event")),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "error",
                    models.CharField(
                        blank=True, help_text="Spark's error class or the exception's class", max_length=200
                    ),
                ),
                (
                    "last_batch",
                    models.BigIntegerField(default=-1, help_text="batches up to it are counted, and never twice"),
                ),
                (
                    "dropped",
                    models.PositiveBigIntegerField(default=0, help_text="events that the listener had no room for"),
                ),
                (
                    "query",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reported_runs",
                        to="streams.streamquery",
                    ),
                ),
            ],
            options={
                "ordering": ["-started_at", "-id"],
                "constraints": [models.UniqueConstraint(fields=("query", "run_id"), name="one_run_of_a_query")],
            },
        ),
    ]
