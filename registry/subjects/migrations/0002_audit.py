"""What is registered under audit."""

from django.db import migrations

from registry.audit.triggers import govern


class Migration(migrations.Migration):
    """What is registered under audit."""

    dependencies = [("subjects", "0001_initial"), ("audit", "0002_audit")]
    operations = [
        govern("subjects_registry"),
        govern("subjects_context", events="INSERT OR UPDATE OF registry_id, name OR DELETE"),
        govern("subjects_subject"),
        govern("subjects_schema"),
        govern("subjects_schemaversion"),
        govern("subjects_schemareference"),
        govern("subjects_config"),
        govern("subjects_mode"),
    ]
