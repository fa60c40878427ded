"""Checks under audit, without their reports, which the row itself keeps."""

from django.db import migrations

from registry.audit.triggers import govern


class Migration(migrations.Migration):
    """Checks under audit, without their reports, which the row itself keeps."""

    dependencies = [("streams", "0001_initial"), ("audit", "0002_audit")]
    operations = [
        govern("streams_statecheck", hide=("report", "plan")),
    ]
