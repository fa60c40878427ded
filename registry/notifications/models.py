"""Notices, inboxes, subscriptions, digests, webhooks and their deliveries, and runs of background tasks."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models

QUEUED, SENDING, DELIVERED, FAILED = "queued", "sending", "delivered", "failed"
STATES = (QUEUED, SENDING, DELIVERED, FAILED)
#: what a webhook sends: a signed event, or a message for people in a chat program's format
SIGNED, SLACK = "signed", "slack"
KINDS = (SIGNED, SLACK)
#: how often a person gets unread notices by mail; an empty digest isn't sent
OFF, DAILY, WEEKLY = "off", "daily", "weekly"
EVERY = (OFF, DAILY, WEEKLY)
EMPTY = "empty"


def new_webhook_id() -> str:
    """Make a public id: it is in URLs, and the signing key is derived from it."""
    return f"wh_{secrets.token_hex(12)}"


def new_message_id() -> str:
    """Make the `webhook-id` of a message: the same at every attempt."""
    return f"msg_{secrets.token_hex(16)}"


class Notice(models.Model):
    """A notification about an event: stored once, however many recipients it has."""

    event = models.CharField(max_length=64)
    registry = models.CharField(max_length=255, blank=True)
    subject = models.CharField(max_length=1400, blank=True, help_text="qualified by its context")
    text = models.CharField(max_length=2000)
    url = models.CharField(max_length=4096, blank=True, help_text="the page, from the site's root")
    data = models.JSONField(default=dict)
    at = models.DateTimeField(auto_now_add=True, db_index=True)

    def __str__(self) -> str:
        return f"{self.event}: {self.text[:60]}"


class InboxEntry(models.Model):
    """A notice in one person's inbox."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="inbox")
    notice = models.ForeignKey(Notice, on_delete=models.CASCADE, related_name="entries")
    read_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["user", "notice"], name="one_entry_a_person")]
        indexes = [
            models.Index(fields=["user", "-id"], name="inbox_of_a_person"),
            models.Index(fields=["user"], condition=models.Q(read_at=None), name="unread_of_a_person"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.notice_id}"


class Subscription(models.Model):
    """A person's choice to be notified (or not: `wanted` False), by event type and name patterns."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="subscriptions")
    event = models.CharField(max_length=64, default="*", help_text="an event's id, or * for all")
    registry_pattern = models.CharField(max_length=255, default="*")
    subject_pattern = models.CharField(max_length=255, default="*")
    wanted = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "event", "registry_pattern", "subject_pattern"], name="one_subscription"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.event} {self.registry_pattern}/{self.subject_pattern}"


class DigestPreference(models.Model):
    """A person's choice of a digest of unread notices: how often, and at which hour of their time zone.

    `next_at` is when the next one is due: bookkeeping, which follows from the rest.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="digest_preference")
    every = models.CharField(max_length=8, choices=[(every, every) for every in EVERY], default=OFF)
    hour = models.PositiveSmallIntegerField(default=7)
    zone = models.CharField(max_length=64, default="UTC", help_text="a time zone's name, such as Europe/Berlin")
    next_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "notifications_digestwish"
        constraints = [
            models.CheckConstraint(condition=models.Q(every__in=EVERY), name="known_digest_interval"),
            models.CheckConstraint(condition=models.Q(hour__lte=23), name="digest_hour_of_a_day"),
            models.CheckConstraint(
                condition=models.Q(every=OFF, next_at=None) | (~models.Q(every=OFF) & models.Q(next_at__isnull=False)),
                name="digest_due_where_wanted",
            ),
        ]
        indexes = [models.Index(fields=["next_at"], condition=models.Q(next_at__isnull=False), name="digests_due")]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.every}"


class Digest(models.Model):
    """The mail to one person for one day (for a weekly one: its first day). There is only one, whoever makes it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="digests")
    day = models.DateField()
    state = models.CharField(max_length=16, default=QUEUED)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    up_to = models.BigIntegerField(default=0, help_text="the newest inbox entry that it told of")
    notices = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=500, blank=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["user", "day"], name="one_digest_a_day"),
            models.CheckConstraint(condition=models.Q(state__in=(*STATES, EMPTY)), name="known_digest_state"),
        ]
        indexes = [
            models.Index(
                fields=["next_attempt_at"],
                condition=models.Q(state__in=("queued", "sending")),
                name="digests_under_way",
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id}, {self.day}: {self.state}"


class Webhook(models.Model):
    """An address to which events are sent. Its signing key is derived from `public_id` and `key_version`, never stored.

    `url` may contain a secret in its path, as chat programs' do, so the audit keeps only `host`.
    """

    public_id = models.CharField(max_length=40, unique=True, default=new_webhook_id)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="webhooks")
    name = models.CharField(max_length=100)
    url = models.CharField(max_length=2048)
    host = models.CharField(max_length=300)
    kind = models.CharField(max_length=8, choices=[(kind, kind) for kind in KINDS], default=SIGNED)
    events = models.JSONField(default=list, help_text="ids; empty: all")
    registry_pattern = models.CharField(max_length=255, default="*")
    subject_pattern = models.CharField(max_length=255, default="*")
    active = models.BooleanField(default=True)
    key_version = models.PositiveIntegerField(default=1)
    rotated_at = models.DateTimeField(null=True)
    disabled_reason = models.TextField(blank=True)
    failing_since = models.DateTimeField(null=True, help_text="since when every attempt failed")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], name="one_webhook_of_a_name"),
            models.CheckConstraint(condition=models.Q(kind__in=KINDS), name="known_webhook_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.host})"


class Delivery(models.Model):
    """The delivery of a notice to a webhook. A worker claims it with a `tag` and a lease."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    notice = models.ForeignKey(Notice, on_delete=models.CASCADE, related_name="deliveries")
    message_id = models.CharField(max_length=40, unique=True, default=new_message_id)
    state = models.CharField(max_length=16, default=QUEUED)
    attempts = models.PositiveIntegerField(default=0, help_text="since it was queued or replayed")
    next_attempt_at = models.DateTimeField()
    enqueued_at = models.DateTimeField(null=True)
    tag = models.CharField(max_length=32, blank=True)
    lease_until = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["webhook", "notice"], name="one_delivery_a_webhook"),
            models.CheckConstraint(condition=models.Q(state__in=STATES), name="known_delivery_state"),
        ]
        indexes = [
            models.Index(
                fields=["next_attempt_at"],
                condition=models.Q(state__in=("queued", "sending")),
                name="deliveries_under_way",
            ),
            models.Index(fields=["webhook", "-id"], name="deliveries_of_a_webhook"),
        ]

    def __str__(self) -> str:
        return f"{self.message_id}: {self.state}"


class Attempt(models.Model):
    """One attempt to deliver, and its response: cut to a length, and masked where it looks like a secret."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="tries")
    at = models.DateTimeField(auto_now_add=True)
    status = models.PositiveIntegerField(null=True, help_text="the HTTP status, if there was an answer")
    error = models.CharField(max_length=500, blank=True)
    excerpt = models.CharField(max_length=300, blank=True)
    seconds = models.FloatField(default=0)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.delivery_id}: {self.status or self.error}"


class JobRun(models.Model):
    """The last run of a background task for one object (a scan, a mirror; "" without one), and the end of its log."""

    DONE, FAILED = "done", "failed"

    task = models.CharField(max_length=200)
    key = models.CharField(max_length=100, blank=True)
    state = models.CharField(max_length=10)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    seconds = models.FloatField(default=0)
    lines = models.JSONField(default=list, help_text="the last lines of its log, masked")
    left_out = models.PositiveIntegerField(default=0, help_text="lines that came before those")
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "key"], name="one_run_a_job"),
            models.CheckConstraint(condition=models.Q(state__in=("done", "failed")), name="known_run_state"),
        ]
        indexes = [models.Index(fields=["started_at"], name="job_runs_by_age")]

    def __str__(self) -> str:
        return f"{self.task}({self.key}): {self.state}"
