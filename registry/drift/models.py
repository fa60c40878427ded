"""What is scanned, each scan, and what was found."""

from __future__ import annotations

from django.db import models

KINDS = ("kafka_topic", "state_store")
SCAN_STATES = ("queued", "running", "done", "failed", "cancelled")
FINDING_STATES = ("open", "acknowledged", "resolved")
SEVERITIES = ("break", "risk", "notice")


class Source(models.Model):
    """A topic or a checkpoint that is held against a registry, on a schedule and on demand."""

    registry = models.ForeignKey("subjects.Registry", on_delete=models.CASCADE, related_name="sources")
    kind = models.CharField(max_length=16, choices=[(kind, kind) for kind in KINDS])
    name = models.CharField(max_length=1024, help_text="the topic, or the checkpoint's path")
    bootstrap = models.CharField(max_length=1024, blank=True, help_text="bootstrap servers of a topic's cluster")
    every_seconds = models.PositiveIntegerField(null=True, blank=True, help_text="null: only on demand")
    next_scan_at = models.DateTimeField(null=True, blank=True)
    positions = models.JSONField(default=dict, help_text="where the last scan of a topic ended, by partition")
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["registry", "kind", "bootstrap", "name"], name="one_source"),
            models.CheckConstraint(condition=models.Q(kind__in=KINDS), name="known_source_kind"),
            models.CheckConstraint(
                condition=models.Q(every_seconds=None) | models.Q(every_seconds__gte=10),
                name="not_more_than_every_10_s",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Scan(models.Model):
    """One reading of a source. A running one is held by a lease that its worker renews."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="scans")
    state = models.CharField(max_length=10, default="queued")
    queued_at = models.DateTimeField(auto_now_add=True)
    queued_by = models.TextField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    tag = models.CharField(max_length=64, blank=True, help_text="by which its work on Spark is interrupted")
    phase = models.CharField(max_length=100, blank=True)
    progress_done = models.PositiveIntegerField(default=0)
    progress_total = models.PositiveIntegerField(default=0)
    read = models.JSONField(
        null=True, blank=True, help_text="what was read: positions, messages, rows; null until done"
    )
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["source"], condition=models.Q(state__in=("queued", "running")), name="one_scan_at_a_time"
            ),
            models.CheckConstraint(condition=models.Q(state__in=SCAN_STATES), name="known_scan_state"),
            models.CheckConstraint(
                condition=~models.Q(state="running") | models.Q(lease_until__isnull=False), name="running_has_a_lease"
            ),
        ]

    def __str__(self) -> str:
        return f"scan {self.pk} of {self.source_id}: {self.state}"


class Finding(models.Model):
    """A judgement that stays until clean scans resolve it; one row however often it is seen."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="findings")
    fingerprint = models.CharField(max_length=64)
    rule = models.CharField(max_length=64)
    severity = models.CharField(max_length=8)
    sentence = models.TextField()
    remedy = models.TextField()
    location = models.TextField()
    subject_name = models.TextField(blank=True, db_index=True, help_text="the subject that is concerned, if one is")
    evidence = models.JSONField()
    state = models.CharField(max_length=12, default="open")
    count = models.PositiveBigIntegerField(default=1)
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()
    first_scan = models.ForeignKey(Scan, on_delete=models.SET_NULL, null=True, related_name="+")
    last_scan = models.ForeignKey(Scan, on_delete=models.SET_NULL, null=True, related_name="+")
    acknowledged_by = models.TextField(blank=True)
    acknowledged_reason = models.TextField(blank=True)
    resolved_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "fingerprint"], name="one_finding"),
            models.CheckConstraint(condition=models.Q(state__in=FINDING_STATES), name="known_finding_state"),
            models.CheckConstraint(condition=models.Q(severity__in=SEVERITIES), name="known_severity"),
            models.CheckConstraint(
                condition=~models.Q(state="acknowledged") | ~models.Q(acknowledged_reason=""),
                name="acknowledged_with_a_reason",
            ),
        ]
        indexes = [models.Index(fields=["state", "-last_seen"], name="findings_inbox")]

    def __str__(self) -> str:
        return f"{self.rule} at {self.location}"
