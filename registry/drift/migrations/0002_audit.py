"""Sources and decisions on findings under audit; what a scan merely counts is not."""

from django.db import migrations

from registry.audit.triggers import govern


class Migration(migrations.Migration):
    """Sources and decisions on findings under audit; what a scan merely counts is not."""

    dependencies = [("drift", "0001_initial"), ("audit", "0002_audit")]
    operations = [
        govern(
            "drift_source", events="INSERT OR UPDATE OF registry_id, kind, name, bootstrap, every_seconds OR DELETE"
        ),
        govern("drift_finding", events="INSERT OR UPDATE OF state, acknowledged_by, acknowledged_reason OR DELETE"),
    ]
