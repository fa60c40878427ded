"""Streaming queries with their state, the stores of their checkpoints, and the checks of plans."""

import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.text
from django.db import migrations, models

from registry.audit.triggers import CreateTables, audit_table


class Migration(migrations.Migration):
    """Checks under audit without their reports, which the row itself keeps."""

    initial = True
    replaces = [
        ("streams", "0001_initial"),
        ("streams", "0002_audit"),
        ("streams", "0003_queries"),
        ("streams", "0004_checkpoint_stores"),
    ]
    dependencies = [("subjects", "0001_tables"), ("drift", "0001_tables"), ("audit", "0001_tables")]
    operations = [
        CreateTables(
            migrations.CreateModel(
                name="StateCheck",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("created_at", models.DateTimeField(auto_now_add=True)),
                    ("created_by", models.TextField()),
                    ("checkpoint", models.CharField(help_text="the checkpoint's path", max_length=4096)),
                    ("query_id", models.CharField(max_length=200)),
                    ("verdict", models.CharField(max_length=32)),
                    ("plan", models.TextField(help_text="the plan as it was sent")),
                    ("report", models.JSONField(help_text="docs/reference/state-check.schema.json")),
                ],
                options={
                    "ordering": ["-id"],
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(
                                (
                                    "verdict__in",
                                    ("fine", "loses data", "fails later", "refused", "no evolution possible"),
                                )
                            ),
                            name="known_state_verdict",
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="StreamQuery",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("path", models.CharField(max_length=4096)),
                    ("query_id", models.CharField(max_length=200)),
                    ("provider", models.CharField(blank=True, max_length=200)),
                    ("encoding", models.CharField(max_length=64)),
                    ("last_planned_batch", models.BigIntegerField(null=True)),
                    ("last_committed_batch", models.BigIntegerField(null=True)),
                    ("last_batch_at", models.DateTimeField(null=True)),
                    ("allowed_value_schemas", models.PositiveIntegerField()),
                    ("allowed_schema_files", models.PositiveIntegerField()),
                    (
                        "operators",
                        models.JSONField(
                            default=list, help_text="number, name, partitions, encoding, schema files, timers"
                        ),
                    ),
                    (
                        "runs",
                        models.JSONField(default=list, help_text="batches in a row that ran with the same settings"),
                    ),
                    ("problems", models.JSONField(default=list, help_text="what was found wrong in the checkpoint")),
                    ("first_seen", models.DateTimeField(auto_now_add=True)),
                    ("scanned_at", models.DateTimeField(help_text="when a scan last read the checkpoint's files")),
                    (
                        "registry",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="queries", to="subjects.registry"
                        ),
                    ),
                    (
                        "source",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="queries", to="drift.source"
                        ),
                    ),
                ],
                options={
                    "ordering": ["path", "id"],
                    "constraints": [
                        models.UniqueConstraint(
                            models.F("source"), django.db.models.functions.text.MD5("path"), name="one_query"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="StateVariable",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("operator", models.PositiveIntegerField()),
                    ("name", models.CharField(max_length=500)),
                    ("label", models.CharField(max_length=500)),
                    ("kind", models.CharField(max_length=32)),
                    ("ttl", models.BooleanField(default=False)),
                    ("encoding", models.CharField(max_length=64)),
                    (
                        "why_fixed",
                        models.TextField(blank=True, help_text="why its schemas can't evolve; empty where they can"),
                    ),
                    ("value_schemas_used", models.PositiveIntegerField(default=0)),
                    ("removed_at", models.BigIntegerField(help_text="the first batch without it", null=True)),
                    (
                        "rows",
                        models.PositiveBigIntegerField(
                            help_text="entries as of `rows_batch`; null: not read", null=True
                        ),
                    ),
                    ("keys", models.PositiveBigIntegerField(null=True)),
                    (
                        "bytes",
                        models.PositiveBigIntegerField(
                            help_text="of the values as they are read, not on disk", null=True
                        ),
                    ),
                    ("rows_batch", models.BigIntegerField(null=True)),
                    ("rows_at", models.DateTimeField(null=True)),
                    ("rows_problem", models.TextField(blank=True, help_text="why the rows couldn't be read")),
                    (
                        "fields",
                        models.JSONField(
                            default=list, help_text="path, rows, nulls, bytes, masked minimum and maximum"
                        ),
                    ),
                    (
                        "expiry",
                        models.JSONField(
                            default=dict, help_text="of entries with time to live: earliest, latest, without"
                        ),
                    ),
                    (
                        "query",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="variables",
                            to="streams.streamquery",
                        ),
                    ),
                ],
                options={
                    "ordering": ["operator", "name"],
                    "constraints": [
                        models.UniqueConstraint(fields=("query", "operator", "name"), name="one_state_variable")
                    ],
                },
            ),
            migrations.CreateModel(
                name="StateSchema",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("version", models.PositiveIntegerField()),
                    ("schema_id", models.IntegerField(help_text="Spark's number of the value schema, from 0")),
                    (
                        "batch",
                        models.BigIntegerField(
                            help_text="the first batch written with it; null: Spark keeps no history", null=True
                        ),
                    ),
                    ("start", models.PositiveIntegerField(null=True)),
                    ("written_at", models.DateTimeField(null=True)),
                    ("file", models.CharField(max_length=500)),
                    ("content_hash", models.CharField(max_length=64)),
                    ("key_schema", models.TextField(help_text="StructType JSON")),
                    ("value_schema", models.TextField(help_text="StructType JSON")),
                    ("map_key_schema", models.TextField(blank=True, help_text="StructType JSON of a map's keys")),
                    ("avro_schema", models.TextField(blank=True, help_text="what Spark derives from the value schema")),
                    ("why_no_avro", models.TextField(blank=True)),
                    (
                        "variable",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="schemas",
                            to="streams.statevariable",
                        ),
                    ),
                ],
                options={
                    "ordering": ["version"],
                    "constraints": [
                        models.UniqueConstraint(fields=("variable", "version"), name="one_state_schema"),
                        models.UniqueConstraint(
                            fields=("variable", "file", "content_hash"), name="one_state_schema_a_file"
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="QueryInput",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("topic", models.CharField(max_length=249)),
                    ("side", models.CharField(blank=True, max_length=5)),
                    ("context", models.CharField(blank=True, max_length=255)),
                    ("subject", models.CharField(blank=True, max_length=1024)),
                    (
                        "query",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="inputs", to="streams.streamquery"
                        ),
                    ),
                ],
                options={
                    "ordering": ["topic", "side", "subject"],
                    "indexes": [
                        django.contrib.postgres.indexes.HashIndex(fields=["subject"], name="readers_of_a_subject")
                    ],
                    "constraints": [
                        models.UniqueConstraint(
                            models.F("query"),
                            models.F("topic"),
                            models.F("side"),
                            models.F("context"),
                            django.db.models.functions.text.MD5("subject"),
                            name="one_query_input",
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="CarriedVersion",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("context", models.CharField(max_length=255)),
                    ("subject", models.CharField(max_length=1024)),
                    ("version", models.PositiveIntegerField()),
                    (
                        "path",
                        models.CharField(
                            blank=True, help_text="the struct in the value; empty: the value itself", max_length=1000
                        ),
                    ),
                    ("fields", models.JSONField(default=list)),
                    (
                        "schema",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="carried",
                            to="streams.stateschema",
                        ),
                    ),
                ],
                options={
                    "indexes": [
                        django.contrib.postgres.indexes.HashIndex(fields=["subject"], name="carriers_of_a_version")
                    ],
                    "constraints": [
                        models.UniqueConstraint(
                            models.F("schema"),
                            models.F("context"),
                            django.db.models.functions.text.MD5("subject"),
                            django.db.models.functions.text.MD5("path"),
                            name="one_version_carried",
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="CheckpointStore",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
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
        ),
        audit_table("streams_statecheck", hide=("report", "plan")),
        audit_table("streams_checkpointstore"),
    ]
