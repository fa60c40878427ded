"""Standings under audit."""

from django.db import migrations

from registry.audit.triggers import govern


class Migration(migrations.Migration):
    """Standings under audit."""

    dependencies = [("subjects", "0007_standing"), ("audit", "0002_audit")]
    operations = [govern("subjects_versionstanding")]
