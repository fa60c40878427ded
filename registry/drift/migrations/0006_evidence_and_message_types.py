"""Evidence stays out of the audit, which everybody reads; and the Protobuf message types that a topic held."""

from django.db import migrations, models

from registry.audit.triggers import govern


class Migration(migrations.Migration):
    """Evidence may hold samples of messages; what was decided on a finding is audited as before."""

    dependencies = [("drift", "0005_sources")]
    operations = [
        migrations.AddField(
            model_name="topic",
            name="message_types",
            field=models.JSONField(
                default=dict, help_text="side → subject → Protobuf message type → first and last time it was seen"
            ),
        ),
        migrations.RunSQL('DROP TRIGGER IF EXISTS audit ON "drift_finding"', migrations.RunSQL.noop),
        govern(
            "drift_finding",
            hide=("evidence",),
            events="INSERT OR UPDATE OF state, acknowledged_by, acknowledged_reason, acknowledged_until,"
            " assigned_to, muted OR DELETE",
        ),
    ]
