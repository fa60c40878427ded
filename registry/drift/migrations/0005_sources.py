"""The columns that clusters and topics replace go; what a source may be is said anew, and what the audit watches."""

from django.db import migrations, models

from registry.audit.triggers import govern


class Migration(migrations.Migration):
    """The columns that clusters and topics replace go; what a source may be is said anew, and what the audit watches."""

    dependencies = [
        ("drift", "0004_topics_to_clusters"),
        ("audit", "0002_audit"),
    ]

    operations = [
        # Before the column that it watches goes: Postgres refuses that otherwise.
        migrations.RunSQL('DROP TRIGGER IF EXISTS audit ON "drift_source"', migrations.RunSQL.noop),
        migrations.RunSQL('DROP TRIGGER IF EXISTS audit ON "drift_finding"', migrations.RunSQL.noop),
        migrations.RemoveField(
            model_name="source",
            name="bootstrap",
        ),
        migrations.RemoveField(
            model_name="source",
            name="positions",
        ),
        migrations.AddConstraint(
            model_name="source",
            constraint=models.UniqueConstraint(fields=("registry", "kind", "name"), name="one_source"),
        ),
        migrations.AddConstraint(
            model_name="source",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ("kafka", "state_store", "debezium", "registry"))),
                name="known_source_kind",
            ),
        ),
        migrations.AddConstraint(
            model_name="source",
            constraint=models.CheckConstraint(
                condition=models.Q(("mode__in", ("since_last", "tail", "window", "full"))), name="known_scan_mode"
            ),
        ),
        migrations.AddConstraint(
            model_name="source",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("cluster__isnull", False), ("kind__in", ("kafka", "debezium"))),
                    models.Q(models.Q(("kind__in", ("kafka", "debezium")), _negated=True), ("cluster", None)),
                    _connector="OR",
                ),
                name="topics_have_a_cluster",
            ),
        ),
        migrations.AddConstraint(
            model_name="source",
            constraint=models.CheckConstraint(
                condition=models.Q(("clean_scans__gte", 1)), name="one_clean_scan_at_least"
            ),
        ),
        govern("drift_cluster"),
        govern("drift_connector"),
        govern("drift_mute"),
        govern(
            "drift_source",
            events="INSERT OR UPDATE OF registry_id, context, kind, name, cluster_id, include, exclude, mode,"
            " tail_messages, window_seconds, max_messages, max_bytes, max_seconds, keep_samples, clean_scans,"
            " every_seconds OR DELETE",
        ),
        govern(
            "drift_finding",
            events="INSERT OR UPDATE OF state, acknowledged_by, acknowledged_reason, acknowledged_until,"
            " assigned_to, muted OR DELETE",
        ),
    ]
