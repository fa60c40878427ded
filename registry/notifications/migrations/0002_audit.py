"""Webhooks and subscriptions under audit."""

from django.db import migrations

from registry.audit.triggers import govern

#: all but `failing_since`, which every failed attempt may change
GOVERNED = (
    "owner_id, name, url, host, events, registry_pattern, subject_pattern, active, key_version, rotated_at,"
    " disabled_reason"
)


class Migration(migrations.Migration):
    """Webhooks and subscriptions under audit; an address may hold a secret, so it stays out."""

    dependencies = [("notifications", "0001_initial"), ("audit", "0003_seals")]
    operations = [
        govern("notifications_webhook", hide=("url",), events=f"INSERT OR UPDATE OF {GOVERNED} OR DELETE"),
        govern("notifications_subscription"),
    ]
