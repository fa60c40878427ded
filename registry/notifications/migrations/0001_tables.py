"""What people and programs are told, and what they want to be told."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import registry.notifications.models
from registry.audit.triggers import CreateTables, audit_table

#: all but `failing_since`, which every failed attempt may change
GOVERNED = (
    "owner_id, name, url, host, events, registry_pattern, subject_pattern, active, key_version, rotated_at,"
    " disabled_reason"
)


class Migration(migrations.Migration):
    """Webhooks and subscriptions under audit; an address may hold a secret, so it stays out."""

    initial = True
    replaces = [
        ("notifications", "0001_initial"),
        ("notifications", "0002_audit"),
    ]
    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL), ("audit", "0001_tables")]
    operations = [
        CreateTables(
            migrations.CreateModel(
                name="Notice",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("event", models.CharField(max_length=64)),
                    ("registry", models.CharField(blank=True, max_length=255)),
                    ("subject", models.CharField(blank=True, help_text="qualified by its context", max_length=1400)),
                    ("text", models.CharField(max_length=2000)),
                    ("url", models.CharField(blank=True, help_text="the page, from the site's root", max_length=4096)),
                    ("data", models.JSONField(default=dict)),
                    ("at", models.DateTimeField(auto_now_add=True, db_index=True)),
                ],
            ),
            migrations.CreateModel(
                name="Webhook",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    (
                        "public_id",
                        models.CharField(
                            default=registry.notifications.models.new_webhook_id, max_length=40, unique=True
                        ),
                    ),
                    ("name", models.CharField(max_length=100)),
                    ("url", models.CharField(max_length=2048)),
                    ("host", models.CharField(max_length=300)),
                    ("events", models.JSONField(default=list, help_text="ids; empty: all")),
                    ("registry_pattern", models.CharField(default="*", max_length=255)),
                    ("subject_pattern", models.CharField(default="*", max_length=255)),
                    ("active", models.BooleanField(default=True)),
                    ("key_version", models.PositiveIntegerField(default=1)),
                    ("rotated_at", models.DateTimeField(null=True)),
                    ("disabled_reason", models.TextField(blank=True)),
                    ("failing_since", models.DateTimeField(help_text="since when every attempt failed", null=True)),
                    ("created_at", models.DateTimeField(auto_now_add=True)),
                    (
                        "owner",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="webhooks",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                ],
                options={
                    "ordering": ["id"],
                    "constraints": [models.UniqueConstraint(fields=("owner", "name"), name="one_webhook_of_a_name")],
                },
            ),
            migrations.CreateModel(
                name="Delivery",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    (
                        "message_id",
                        models.CharField(
                            default=registry.notifications.models.new_message_id, max_length=40, unique=True
                        ),
                    ),
                    ("state", models.CharField(default="queued", max_length=16)),
                    ("attempts", models.PositiveIntegerField(default=0, help_text="since it was queued or replayed")),
                    ("next_attempt_at", models.DateTimeField()),
                    ("enqueued_at", models.DateTimeField(null=True)),
                    ("tag", models.CharField(blank=True, max_length=32)),
                    ("lease_until", models.DateTimeField(null=True)),
                    ("finished_at", models.DateTimeField(null=True)),
                    ("created_at", models.DateTimeField(auto_now_add=True)),
                    (
                        "notice",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="deliveries",
                            to="notifications.notice",
                        ),
                    ),
                    (
                        "webhook",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="deliveries",
                            to="notifications.webhook",
                        ),
                    ),
                ],
                options={
                    "ordering": ["-id"],
                    "indexes": [
                        models.Index(
                            condition=models.Q(("state__in", ("queued", "sending"))),
                            fields=["next_attempt_at"],
                            name="deliveries_under_way",
                        ),
                        models.Index(fields=["webhook", "-id"], name="deliveries_of_a_webhook"),
                    ],
                    "constraints": [
                        models.UniqueConstraint(fields=("webhook", "notice"), name="one_delivery_a_webhook"),
                        models.CheckConstraint(
                            condition=models.Q(("state__in", ("queued", "sending", "delivered", "failed"))),
                            name="known_delivery_state",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Attempt",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("at", models.DateTimeField(auto_now_add=True)),
                    (
                        "status",
                        models.PositiveIntegerField(help_text="the HTTP status, if there was an answer", null=True),
                    ),
                    ("error", models.CharField(blank=True, max_length=500)),
                    ("excerpt", models.CharField(blank=True, max_length=300)),
                    ("seconds", models.FloatField(default=0)),
                    (
                        "delivery",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="tries",
                            to="notifications.delivery",
                        ),
                    ),
                ],
                options={
                    "ordering": ["id"],
                },
            ),
            migrations.CreateModel(
                name="InboxEntry",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("read_at", models.DateTimeField(null=True)),
                    (
                        "user",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="inbox",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    (
                        "notice",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="entries",
                            to="notifications.notice",
                        ),
                    ),
                ],
                options={
                    "ordering": ["-id"],
                    "indexes": [
                        models.Index(fields=["user", "-id"], name="inbox_of_a_person"),
                        models.Index(condition=models.Q(("read_at", None)), fields=["user"], name="unread_of_a_person"),
                    ],
                    "constraints": [models.UniqueConstraint(fields=("user", "notice"), name="one_entry_a_person")],
                },
            ),
            migrations.CreateModel(
                name="Subscription",
                fields=[
                    (
                        "id",
                        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                    ),
                    ("event", models.CharField(default="*", help_text="an event's id, or * for all", max_length=64)),
                    ("registry_pattern", models.CharField(default="*", max_length=255)),
                    ("subject_pattern", models.CharField(default="*", max_length=255)),
                    ("wanted", models.BooleanField(default=True)),
                    ("created_at", models.DateTimeField(auto_now_add=True)),
                    (
                        "user",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="subscriptions",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                ],
                options={
                    "ordering": ["id"],
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("user", "event", "registry_pattern", "subject_pattern"), name="one_subscription"
                        )
                    ],
                },
            ),
        ),
        audit_table("notifications_webhook", hide=("url",), events=f"INSERT OR UPDATE OF {GOVERNED} OR DELETE"),
        audit_table("notifications_subscription"),
    ]
