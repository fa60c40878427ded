"""Environments, requests to promote between them, reviews, and the releases that came of it."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Environment(models.Model):
    """A registry with its place in the promotion order. A closed one changes by releases only."""

    registry = models.OneToOneField("subjects.Registry", on_delete=models.CASCADE, related_name="environment")
    position = models.PositiveSmallIntegerField(unique=True)
    reviews_needed = models.PositiveSmallIntegerField(default=1)
    own_approval_allowed = models.BooleanField(default=False)

    class Meta:
        ordering = ["position"]

    def __str__(self) -> str:
        return self.registry.name


class PromotionRequest(models.Model):
    """A version that somebody wants in another environment; `plan_hash` is what a review binds to."""

    IN_REVIEW, APPROVED, APPLIED, REJECTED, WITHDRAWN, FAILED = (
        "in review", "approved", "applied", "rejected", "withdrawn", "failed",
    )  # fmt: skip
    STATES = (IN_REVIEW, APPROVED, APPLIED, REJECTED, WITHDRAWN, FAILED)
    OPEN_STATES = (IN_REVIEW, APPROVED)

    source = models.ForeignKey(Environment, on_delete=models.PROTECT, related_name="+")
    target = models.ForeignKey(Environment, on_delete=models.PROTECT, related_name="+")
    version = models.ForeignKey(
        "subjects.SchemaVersion", on_delete=models.SET_NULL, null=True, related_name="promotion_requests"
    )
    context_name = models.CharField(max_length=256)
    subject_name = models.CharField(max_length=1024)
    version_number = models.PositiveIntegerField()
    fingerprint = models.CharField(max_length=64)
    reason = models.TextField(blank=True)
    state = models.CharField(max_length=16, default=IN_REVIEW)
    plan = models.JSONField()
    plan_hash = models.CharField(max_length=64)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    requested_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    failure = models.TextField(blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["target", "context_name", "subject_name", "fingerprint"],
                condition=models.Q(state__in=("in review", "approved")),
                name="one_open_request_a_schema",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=("in review", "approved", "applied", "rejected", "withdrawn", "failed")),
                name="known_request_state",
            ),
            models.CheckConstraint(condition=~models.Q(source=models.F("target")), name="two_environments"),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.subject_name} v{self.version_number}"


class Review(models.Model):
    """What one person decided about one plan; a review of an earlier plan no longer counts."""

    APPROVE, REJECT = "approve", "reject"

    request = models.ForeignKey(PromotionRequest, on_delete=models.CASCADE, related_name="reviews")
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    verdict = models.CharField(max_length=8, choices=[(APPROVE, APPROVE), (REJECT, REJECT)])
    comment = models.TextField(blank=True)
    plan_hash = models.CharField(max_length=64)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["request", "reviewer", "plan_hash"], name="one_review_a_person_and_plan")
        ]

    def __str__(self) -> str:
        return f"{self.reviewer}: {self.verdict}"


class Release(models.Model):
    """A version that an approved request made live in an environment."""

    environment = models.ForeignKey(Environment, on_delete=models.PROTECT, related_name="releases")
    request = models.OneToOneField(PromotionRequest, on_delete=models.PROTECT, related_name="release")
    version = models.ForeignKey("subjects.SchemaVersion", on_delete=models.SET_NULL, null=True, related_name="releases")
    context_name = models.CharField(max_length=256)
    subject_name = models.CharField(max_length=1024)
    version_number = models.PositiveIntegerField()
    schema_id = models.PositiveIntegerField()
    fingerprint = models.CharField(max_length=64)
    released_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    released_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.environment}: {self.subject_name} v{self.version_number}"
