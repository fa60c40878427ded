"""Clusters, sources and their topics, scans, and findings with the decisions on them."""

import django.db.models.deletion
from django.db import migrations, models

from registry.audit.triggers import CreateTables, audit_table


class Migration(migrations.Migration):
    """Audit neither scan counts nor evidence, which may contain message samples: everybody can read the audit log."""

    initial = True
    replaces = [
        ("drift", "0001_initial"),
        ("drift", "0002_audit"),
        ("drift", "0003_clusters"),
        ("drift", "0004_topics_to_clusters"),
        ("drift", "0005_sources"),
        ("drift", "0006_evidence_and_message_types"),
    ]
    dependencies = [("subjects", "0001_tables"), ("audit", "0001_tables")]
    operations = [
        CreateTables(
            migrations.CreateModel(
                name="Cluster",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("name", models.CharField(max_length=128, unique=True)),
                    (
                        "bootstrap",
                        models.CharField(help_text="host:port, several separated by commas", max_length=1024),
                    ),
                    ("security_protocol", models.CharField(default="PLAINTEXT", max_length=16)),
                    ("sasl_mechanism", models.CharField(blank=True, max_length=16)),
                    ("username", models.CharField(blank=True, max_length=255)),
                    (
                        "secret",
                        models.CharField(
                            blank=True, help_text="the name under which the password is kept", max_length=64
                        ),
                    ),
                    (
                        "ca_pem",
                        models.TextField(
                            blank=True, help_text="the certificate authority of the cluster's TLS, as PEM"
                        ),
                    ),
                    ("created_at", models.DateTimeField(auto_now_add=True)),
                    ("created_by", models.TextField()),
                ],
                options={
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(
                                ("security_protocol__in", ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"))
                            ),
                            name="known_security_protocol",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("sasl_mechanism__in", ("", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"))),
                            name="known_sasl_mechanism",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(
                                    ("sasl_mechanism__gt", ""),
                                    ("security_protocol__startswith", "SASL"),
                                    ("username__gt", ""),
                                ),
                                models.Q(
                                    models.Q(("security_protocol__startswith", "SASL"), _negated=True),
                                    ("sasl_mechanism", ""),
                                ),
                                _connector="OR",
                            ),
                            name="sasl_needs_its_fields",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Source",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    (
                        "kind",
                        models.CharField(
                            choices=[
                                ("kafka", "kafka"),
                                ("state_store", "state_store"),
                                ("debezium", "debezium"),
                                ("registry", "registry"),
                            ],
                            max_length=16,
                        ),
                    ),
                    (
                        "name",
                        models.CharField(help_text="what people call it; of a checkpoint its path", max_length=1024),
                    ),
                    (
                        "every_seconds",
                        models.PositiveIntegerField(blank=True, help_text="null: only on demand", null=True),
                    ),
                    ("next_scan_at", models.DateTimeField(blank=True, null=True)),
                    ("created_at", models.DateTimeField(auto_now_add=True)),
                    ("created_by", models.TextField()),
                    (
                        "registry",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="sources", to="subjects.registry"
                        ),
                    ),
                    (
                        "clean_scans",
                        models.PositiveSmallIntegerField(default=2, help_text="so many clean scans resolve a finding"),
                    ),
                    (
                        "context",
                        models.CharField(blank=True, help_text="whose schema ids the messages carry", max_length=255),
                    ),
                    ("exclude", models.JSONField(default=list, help_text="shell patterns of topics that are left out")),
                    ("include", models.JSONField(default=list, help_text="shell patterns of topics; none: all")),
                    ("keep_samples", models.BooleanField(default=True, help_text="masked samples as evidence")),
                    ("max_bytes", models.PositiveBigIntegerField(default=2147483648)),
                    ("max_messages", models.PositiveBigIntegerField(default=1000000)),
                    ("max_seconds", models.PositiveIntegerField(default=300)),
                    ("mode", models.CharField(default="since_last", max_length=12)),
                    (
                        "tail_messages",
                        models.PositiveIntegerField(default=10000, help_text="mode tail: so many of every partition"),
                    ),
                    (
                        "window_seconds",
                        models.PositiveIntegerField(default=86400, help_text="mode window: so far back"),
                    ),
                    (
                        "cluster",
                        models.ForeignKey(
                            blank=True,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="sources",
                            to="drift.cluster",
                        ),
                    ),
                ],
                options={
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(("every_seconds", None), ("every_seconds__gte", 10), _connector="OR"),
                            name="not_more_than_every_10_s",
                        ),
                        models.UniqueConstraint(fields=("registry", "kind", "name"), name="one_source"),
                        models.CheckConstraint(
                            condition=models.Q(("kind__in", ("kafka", "state_store", "debezium", "registry"))),
                            name="known_source_kind",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("mode__in", ("since_last", "tail", "window", "full"))),
                            name="known_scan_mode",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(("cluster__isnull", False), ("kind__in", ("kafka", "debezium"))),
                                models.Q(
                                    models.Q(("kind__in", ("kafka", "debezium")), _negated=True), ("cluster", None)
                                ),
                                _connector="OR",
                            ),
                            name="topics_have_a_cluster",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("clean_scans__gte", 1)), name="one_clean_scan_at_least"
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Scan",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("state", models.CharField(default="queued", max_length=10)),
                    ("queued_at", models.DateTimeField(auto_now_add=True)),
                    ("queued_by", models.TextField()),
                    ("started_at", models.DateTimeField(blank=True, null=True)),
                    ("finished_at", models.DateTimeField(blank=True, null=True)),
                    ("lease_until", models.DateTimeField(blank=True, null=True)),
                    ("attempts", models.PositiveSmallIntegerField(default=0)),
                    (
                        "tag",
                        models.CharField(
                            blank=True, help_text="by which its work on Spark is interrupted", max_length=64
                        ),
                    ),
                    ("phase", models.CharField(blank=True, max_length=100)),
                    ("progress_done", models.PositiveIntegerField(default=0)),
                    ("progress_total", models.PositiveIntegerField(default=0)),
                    (
                        "read",
                        models.JSONField(
                            blank=True, help_text="what was read: positions, messages, rows; null until done", null=True
                        ),
                    ),
                    ("error", models.TextField(blank=True)),
                    (
                        "source",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="scans", to="drift.source"
                        ),
                    ),
                ],
                options={
                    "ordering": ["-id"],
                    "constraints": [
                        models.UniqueConstraint(
                            condition=models.Q(("state__in", ("queued", "running"))),
                            fields=("source",),
                            name="one_scan_at_a_time",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("state__in", ("queued", "running", "done", "failed", "cancelled"))),
                            name="known_scan_state",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(("state", "running"), _negated=True),
                                ("lease_until__isnull", False),
                                _connector="OR",
                            ),
                            name="running_has_a_lease",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Connector",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
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
                    (
                        "source",
                        models.OneToOneField(
                            on_delete=django.db.models.deletion.CASCADE, related_name="connector", to="drift.source"
                        ),
                    ),
                ],
            ),
            migrations.CreateModel(
                name="Mute",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("rule", models.CharField(blank=True, max_length=64)),
                    ("subject", models.CharField(blank=True, max_length=512)),
                    ("location", models.CharField(blank=True, max_length=1024)),
                    ("reason", models.TextField()),
                    ("until", models.DateTimeField(blank=True, null=True)),
                    ("created_at", models.DateTimeField(auto_now_add=True)),
                    ("created_by", models.TextField()),
                    (
                        "registry",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="mutes", to="subjects.registry"
                        ),
                    ),
                ],
                options={
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(("reason", ""), _negated=True), name="muted_with_a_reason"
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("location", ""), ("rule", ""), ("subject", ""), _negated=True),
                            name="a_mute_names_something",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Topic",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
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
                    (
                        "source",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="topics", to="drift.source"
                        ),
                    ),
                    (
                        "message_types",
                        models.JSONField(
                            default=dict,
                            help_text="side → subject → Protobuf message type → first and last time it was seen",
                        ),
                    ),
                ],
                options={
                    "constraints": [models.UniqueConstraint(fields=("source", "name"), name="one_topic")],
                },
            ),
            migrations.CreateModel(
                name="Finding",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("fingerprint", models.CharField(max_length=64)),
                    ("rule", models.CharField(max_length=64)),
                    ("severity", models.CharField(max_length=8)),
                    ("sentence", models.TextField()),
                    ("remedy", models.TextField()),
                    ("location", models.TextField()),
                    (
                        "subject_name",
                        models.TextField(
                            blank=True, db_index=True, help_text="the subject that is concerned, if one is"
                        ),
                    ),
                    ("evidence", models.JSONField()),
                    ("state", models.CharField(default="open", max_length=12)),
                    ("count", models.PositiveBigIntegerField(default=1)),
                    ("first_seen", models.DateTimeField()),
                    ("last_seen", models.DateTimeField()),
                    ("acknowledged_by", models.TextField(blank=True)),
                    ("acknowledged_reason", models.TextField(blank=True)),
                    ("resolved_at", models.DateTimeField(blank=True, null=True)),
                    (
                        "first_scan",
                        models.ForeignKey(
                            null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="drift.scan"
                        ),
                    ),
                    (
                        "last_scan",
                        models.ForeignKey(
                            null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="drift.scan"
                        ),
                    ),
                    (
                        "source",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="findings", to="drift.source"
                        ),
                    ),
                    (
                        "acknowledged_until",
                        models.DateTimeField(blank=True, help_text="open again from then on", null=True),
                    ),
                    ("assigned_to", models.TextField(blank=True)),
                    (
                        "cause",
                        models.TextField(blank=True, help_text="what most likely made it, as the evidence has it"),
                    ),
                    (
                        "clean_scans",
                        models.PositiveSmallIntegerField(
                            default=0, help_text="scans in a row that could have seen it and did not"
                        ),
                    ),
                    (
                        "muted",
                        models.BooleanField(
                            default=False, help_text="a mute covers it: kept, counted, not shown as open"
                        ),
                    ),
                    ("reopened", models.PositiveIntegerField(default=0)),
                    (
                        "topic",
                        models.ForeignKey(
                            blank=True,
                            null=True,
                            on_delete=django.db.models.deletion.SET_NULL,
                            related_name="findings",
                            to="drift.topic",
                        ),
                    ),
                ],
                options={
                    "indexes": [models.Index(fields=["state", "-last_seen"], name="findings_inbox")],
                    "constraints": [
                        models.UniqueConstraint(fields=("source", "fingerprint"), name="one_finding"),
                        models.CheckConstraint(
                            condition=models.Q(("state__in", ("open", "acknowledged", "resolved"))),
                            name="known_finding_state",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("severity__in", ("break", "risk", "notice"))), name="known_severity"
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(("state", "acknowledged"), _negated=True),
                                models.Q(("acknowledged_reason", ""), _negated=True),
                                _connector="OR",
                            ),
                            name="acknowledged_with_a_reason",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="FieldStatistic",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
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
                    (
                        "topic",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="fields", to="drift.topic"
                        ),
                    ),
                ],
                options={
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("topic", "side", "framing", "mark", "path", "day"), name="one_field_a_day"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="SchemaUse",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("side", models.CharField(max_length=5)),
                    ("framing", models.CharField(max_length=12)),
                    ("mark", models.CharField(max_length=512)),
                    (
                        "schema_id",
                        models.BigIntegerField(
                            db_index=True, help_text="what the mark stands for, where known", null=True
                        ),
                    ),
                    ("partition", models.PositiveIntegerField()),
                    ("messages", models.PositiveBigIntegerField()),
                    ("undecodable", models.PositiveBigIntegerField(default=0)),
                    ("bytes", models.PositiveBigIntegerField()),
                    ("first_offset", models.BigIntegerField()),
                    ("last_offset", models.BigIntegerField()),
                    ("first_time", models.DateTimeField()),
                    ("last_time", models.DateTimeField()),
                    (
                        "topic",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="uses", to="drift.topic"
                        ),
                    ),
                ],
                options={
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("topic", "side", "framing", "mark", "partition"), name="one_use"
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("side__in", ("key", "value"))), name="known_use_side"
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("framing__in", ("id", "guid", "content_type"))), name="known_framing"
                        ),
                    ],
                },
            ),
        ),
        audit_table("drift_cluster"),
        audit_table("drift_connector"),
        audit_table("drift_mute"),
        audit_table(
            "drift_source",
            events="INSERT OR UPDATE OF registry_id, context, kind, name, cluster_id, include, exclude, mode,"
            " tail_messages, window_seconds, max_messages, max_bytes, max_seconds, keep_samples, clean_scans,"
            " every_seconds OR DELETE",
        ),
        audit_table(
            "drift_finding",
            hide=("evidence",),
            events="INSERT OR UPDATE OF state, acknowledged_by, acknowledged_reason, acknowledged_until,"
            " assigned_to, muted OR DELETE",
        ),
    ]
