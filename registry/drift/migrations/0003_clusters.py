"""Clusters, topics, the use of schemas, statistics of fields, and decisions on findings."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Clusters, topics, the use of schemas, statistics of fields, and decisions on findings."""

    dependencies = [
        ("drift", "0002_audit"),
        ("subjects", "0005_remote"),
    ]

    operations = [
        migrations.CreateModel(
            name="Cluster",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=128, unique=True)),
                ("bootstrap", models.CharField(help_text="host:port, several separated by commas", max_length=1024)),
                ("security_protocol", models.CharField(default="PLAINTEXT", max_length=16)),
                ("sasl_mechanism", models.CharField(blank=True, max_length=16)),
                ("username", models.CharField(blank=True, max_length=255)),
                (
                    "secret",
                    models.CharField(blank=True, help_text="the name under which the password is kept", max_length=64),
                ),
                (
                    "ca_pem",
                    models.TextField(blank=True, help_text="the certificate authority of the cluster's TLS, as PEM"),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("created_by", models.TextField()),
            ],
        ),
        migrations.CreateModel(
            name="Connector",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("connect_url", models.CharField(max_length=2048)),
                ("connect_user", models.CharField(blank=True, max_length=255)),
                ("connect_secret", models.CharField(blank=True, max_length=64)),
                ("name", models.CharField(max_length=255)),
                (
                    "database_host",
                    models.CharField(blank=True, help_text="empty: the catalog isn't read", max_length=255),
                ),
                ("database_port", models.PositiveIntegerField(default=5432)),
                ("database_name", models.CharField(blank=True, max_length=63)),
                ("database_user", models.CharField(blank=True, max_length=63)),
                ("database_secret", models.CharField(blank=True, max_length=64)),
                ("database_tls", models.BooleanField(default=True)),
            ],
        ),
        migrations.CreateModel(
            name="FieldStatistic",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("side", models.CharField(max_length=5)),
                ("framing", models.CharField(blank=True, max_length=12)),
                ("mark", models.CharField(blank=True, max_length=512)),
                ("path", models.TextField()),
                ("day", models.DateField()),
                ("messages", models.PositiveBigIntegerField()),
                ("present", models.PositiveBigIntegerField()),
                ("nulls", models.PositiveBigIntegerField()),
                ("kinds", models.JSONField(default=dict)),
                ("values", models.JSONField(default=dict)),
                ("distinct", models.PositiveBigIntegerField(null=True)),
                ("minimum", models.TextField(blank=True)),
                ("maximum", models.TextField(blank=True)),
            ],
        ),
        migrations.CreateModel(
            name="Mute",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("rule", models.CharField(blank=True, max_length=64)),
                ("subject", models.CharField(blank=True, max_length=512)),
                ("location", models.CharField(blank=True, max_length=1024)),
                ("reason", models.TextField()),
                ("until", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("created_by", models.TextField()),
            ],
        ),
        migrations.CreateModel(
            name="SchemaUse",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("side", models.CharField(max_length=5)),
                ("framing", models.CharField(max_length=12)),
                ("mark", models.CharField(max_length=512)),
                (
                    "schema_id",
                    models.BigIntegerField(db_index=True, help_text="what the mark stands for, where known", null=True),
                ),
                ("partition", models.PositiveIntegerField()),
                ("messages", models.PositiveBigIntegerField()),
                ("undecodable", models.PositiveBigIntegerField(default=0)),
                ("bytes", models.PositiveBigIntegerField()),
                ("first_offset", models.BigIntegerField()),
                ("last_offset", models.BigIntegerField()),
                ("first_time", models.DateTimeField()),
                ("last_time", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Topic",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=249)),
                ("partitions", models.PositiveIntegerField(default=0)),
                ("compacted", models.BooleanField(default=False)),
                ("retention_ms", models.BigIntegerField(help_text="-1: for ever; null: not told", null=True)),
                ("retention_bytes", models.BigIntegerField(null=True)),
                ("positions", models.JSONField(default=dict, help_text="partition → the next offset to read")),
                (
                    "read_from",
                    models.JSONField(
                        default=dict, help_text="partition → the offset from which on no message was left out"
                    ),
                ),
                (
                    "strategies",
                    models.JSONField(default=dict, help_text="side → subject name strategies found in the data"),
                ),
                (
                    "subjects",
                    models.JSONField(
                        default=dict, help_text="side → names of the subjects that its messages belong to"
                    ),
                ),
                ("messages", models.PositiveBigIntegerField(default=0, help_text="read so far, by all scans")),
                ("problem", models.TextField(blank=True, help_text="why the last scan couldn't read it")),
                ("discovered_at", models.DateTimeField(auto_now_add=True)),
                ("checked_at", models.DateTimeField(help_text="when a scan last asked for its offsets", null=True)),
                ("read_at", models.DateTimeField(help_text="when a scan last read messages of it", null=True)),
                ("gone_at", models.DateTimeField(help_text="when the cluster no longer had it", null=True)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="source",
            name="one_source",
        ),
        migrations.RemoveConstraint(
            model_name="source",
            name="known_source_kind",
        ),
        migrations.AddField(
            model_name="finding",
            name="acknowledged_until",
            field=models.DateTimeField(blank=True, help_text="open again from then on", null=True),
        ),
        migrations.AddField(
            model_name="finding",
            name="assigned_to",
            field=models.TextField(blank=True),
        ),
        migrations.AddField(
            model_name="finding",
            name="cause",
            field=models.TextField(blank=True, help_text="what most likely made it, as the evidence has it"),
        ),
        migrations.AddField(
            model_name="finding",
            name="clean_scans",
            field=models.PositiveSmallIntegerField(
                default=0, help_text="scans in a row that could have seen it and did not"
            ),
        ),
        migrations.AddField(
            model_name="finding",
            name="muted",
            field=models.BooleanField(default=False, help_text="a mute covers it: kept, counted, not shown as open"),
        ),
        migrations.AddField(
            model_name="finding",
            name="reopened",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="source",
            name="clean_scans",
            field=models.PositiveSmallIntegerField(default=2, help_text="so many clean scans resolve a finding"),
        ),
        migrations.AddField(
            model_name="source",
            name="context",
            field=models.CharField(blank=True, help_text="whose schema ids the messages carry", max_length=255),
        ),
        migrations.AddField(
            model_name="source",
            name="exclude",
            field=models.JSONField(default=list, help_text="shell patterns of topics that are left out"),
        ),
        migrations.AddField(
            model_name="source",
            name="include",
            field=models.JSONField(default=list, help_text="shell patterns of topics; none: all"),
        ),
        migrations.AddField(
            model_name="source",
            name="keep_samples",
            field=models.BooleanField(default=True, help_text="masked samples as evidence"),
        ),
        migrations.AddField(
            model_name="source",
            name="max_bytes",
            field=models.PositiveBigIntegerField(default=2147483648),
        ),
        migrations.AddField(
            model_name="source",
            name="max_messages",
            field=models.PositiveBigIntegerField(default=1000000),
        ),
        migrations.AddField(
            model_name="source",
            name="max_seconds",
            field=models.PositiveIntegerField(default=300),
        ),
        migrations.AddField(
            model_name="source",
            name="mode",
            field=models.CharField(default="since_last", max_length=12),
        ),
        migrations.AddField(
            model_name="source",
            name="tail_messages",
            field=models.PositiveIntegerField(default=10000, help_text="mode tail: so many of every partition"),
        ),
        migrations.AddField(
            model_name="source",
            name="window_seconds",
            field=models.PositiveIntegerField(default=86400, help_text="mode window: so far back"),
        ),
        migrations.AlterField(
            model_name="source",
            name="kind",
            field=models.CharField(
                choices=[
                    ("kafka", "kafka"),
                    ("state_store", "state_store"),
                    ("debezium", "debezium"),
                    ("registry", "registry"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="source",
            name="name",
            field=models.CharField(help_text="what people call it; of a checkpoint its path", max_length=1024),
        ),
        migrations.AddConstraint(
            model_name="cluster",
            constraint=models.CheckConstraint(
                condition=models.Q(("security_protocol__in", ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"))),
                name="known_security_protocol",
            ),
        ),
        migrations.AddConstraint(
            model_name="cluster",
            constraint=models.CheckConstraint(
                condition=models.Q(("sasl_mechanism__in", ("", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"))),
                name="known_sasl_mechanism",
            ),
        ),
        migrations.AddConstraint(
            model_name="cluster",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("sasl_mechanism__gt", ""), ("security_protocol__startswith", "SASL"), ("username__gt", "")
                    ),
                    models.Q(
                        models.Q(("security_protocol__startswith", "SASL"), _negated=True), ("sasl_mechanism", "")
                    ),
                    _connector="OR",
                ),
                name="sasl_needs_its_fields",
            ),
        ),
        migrations.AddField(
            model_name="source",
            name="cluster",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="sources",
                to="drift.cluster",
            ),
        ),
        migrations.AddField(
            model_name="connector",
            name="source",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE, related_name="connector", to="drift.source"
            ),
        ),
        migrations.AddField(
            model_name="mute",
            name="registry",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="mutes", to="subjects.registry"
            ),
        ),
        migrations.AddField(
            model_name="topic",
            name="source",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="topics", to="drift.source"
            ),
        ),
        migrations.AddField(
            model_name="schemause",
            name="topic",
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="uses", to="drift.topic"),
        ),
        migrations.AddField(
            model_name="fieldstatistic",
            name="topic",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="fields", to="drift.topic"
            ),
        ),
        migrations.AddField(
            model_name="finding",
            name="topic",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="findings",
                to="drift.topic",
            ),
        ),
        migrations.AddConstraint(
            model_name="mute",
            constraint=models.CheckConstraint(
                condition=models.Q(("reason", ""), _negated=True), name="muted_with_a_reason"
            ),
        ),
        migrations.AddConstraint(
            model_name="mute",
            constraint=models.CheckConstraint(
                condition=models.Q(("location", ""), ("rule", ""), ("subject", ""), _negated=True),
                name="a_mute_names_something",
            ),
        ),
        migrations.AddConstraint(
            model_name="topic",
            constraint=models.UniqueConstraint(fields=("source", "name"), name="one_topic"),
        ),
        migrations.AddConstraint(
            model_name="schemause",
            constraint=models.UniqueConstraint(
                fields=("topic", "side", "framing", "mark", "partition"), name="one_use"
            ),
        ),
        migrations.AddConstraint(
            model_name="schemause",
            constraint=models.CheckConstraint(
                condition=models.Q(("side__in", ("key", "value"))), name="known_use_side"
            ),
        ),
        migrations.AddConstraint(
            model_name="schemause",
            constraint=models.CheckConstraint(
                condition=models.Q(("framing__in", ("id", "guid", "content_type"))), name="known_framing"
            ),
        ),
        migrations.AddConstraint(
            model_name="fieldstatistic",
            constraint=models.UniqueConstraint(
                fields=("topic", "side", "framing", "mark", "path", "day"), name="one_field_a_day"
            ),
        ),
    ]
