"""Webhooks that send messages for people in a chat program; what they send is decided by people, so it is audited."""

from django.db import migrations, models

from registry.audit.triggers import audit_table

BEFORE = (
    "owner_id, name, url, host, events, registry_pattern, subject_pattern, active, key_version, rotated_at,"
    " disabled_reason"
)


def governed(columns: str) -> migrations.RunSQL:
    """The trigger of those columns."""
    return audit_table("notifications_webhook", hide=("url",), events=f"INSERT OR UPDATE OF {columns} OR DELETE")


def again(columns: str) -> migrations.RunSQL:
    """The trigger of those columns in place of the one of before."""
    old, new = governed(BEFORE), governed(columns)
    return migrations.RunSQL([old.reverse_sql, new.sql], [new.reverse_sql, old.sql])


class Migration(migrations.Migration):
    dependencies = [("notifications", "0001_tables")]

    operations = [
        migrations.AddField(
            model_name="webhook",
            name="kind",
            field=models.CharField(choices=[("signed", "signed"), ("slack", "slack")], default="signed", max_length=8),
        ),
        migrations.AddConstraint(
            model_name="webhook",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ("signed", "slack"))), name="known_webhook_kind"
            ),
        ),
        again(f"{BEFORE}, kind"),
    ]
