"""Digests by mail: what people choose, which is audited, and the mails that were made."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from registry.audit.triggers import audit_table


class Migration(migrations.Migration):
    dependencies = [
        ("notifications", "0002_chat_webhooks"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Digest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateField()),
                ("state", models.CharField(default="queued", max_length=16)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("next_attempt_at", models.DateTimeField()),
                ("up_to", models.BigIntegerField(default=0, help_text="the newest inbox entry that it told of")),
                ("notices", models.PositiveIntegerField(default=0)),
                ("error", models.CharField(blank=True, max_length=500)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="digests", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ("queued", "sending"))),
                        fields=["next_attempt_at"],
                        name="digests_under_way",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("user", "day"), name="one_digest_a_day"),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ("queued", "sending", "delivered", "failed", "empty"))),
                        name="known_digest_state",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DigestWish",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "every",
                    models.CharField(
                        choices=[("off", "off"), ("daily", "daily"), ("weekly", "weekly")], default="off", max_length=8
                    ),
                ),
                ("hour", models.PositiveSmallIntegerField(default=7)),
                (
                    "zone",
                    models.CharField(
                        default="UTC", help_text="a time zone's name, such as Europe/Berlin", max_length=64
                    ),
                ),
                ("next_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="digest_wish",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("next_at__isnull", False)), fields=["next_at"], name="digests_due")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("every__in", ("off", "daily", "weekly"))), name="known_digest_interval"
                    ),
                    models.CheckConstraint(condition=models.Q(("hour__lte", 23)), name="digest_hour_of_a_day"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("every", "off"), ("next_at", None)),
                            models.Q(models.Q(("every", "off"), _negated=True), ("next_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="digest_due_where_wanted",
                    ),
                ],
            },
        ),
        audit_table("notifications_digestwish", events="INSERT OR UPDATE OF user_id, every, hour, zone OR DELETE"),
    ]
