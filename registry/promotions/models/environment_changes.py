"""Changes that loosen a closed environment, which wait for a second person."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from registry.promotions.models.environments import Environment


class EnvironmentChange(models.Model):
    """A change that loosens a closed environment's rules, with who asked for it and who decided.

    `action` and `values` are a service and its arguments; `before` is what it changes, as the requester read it.
    """

    OPEN, APPROVED, REJECTED, WITHDRAWN = "open", "approved", "rejected", "withdrawn"

    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="changes")
    action = models.CharField(max_length=32)
    values = models.JSONField()
    before = models.JSONField(default=dict)
    digest = models.CharField(max_length=64, help_text="SHA-256 of the action with its values")
    sentence = models.TextField()
    reason = models.TextField()
    state = models.CharField(max_length=9, default=OPEN)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    requested_at = models.DateTimeField(auto_now_add=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    decided_at = models.DateTimeField(null=True, blank=True)
    comment = models.TextField(blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=("open", "approved", "rejected", "withdrawn")), name="known_change_state"
            ),
            models.CheckConstraint(
                condition=models.Q(state="open", decided_by=None, decided_at=None)
                | ~models.Q(state="open") & models.Q(decided_by__isnull=False, decided_at__isnull=False),
                name="change_decided_by_and_at",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=("open", "withdrawn")) | ~models.Q(decided_by=models.F("requested_by")),
                name="second_person_decides_change",
            ),
            models.CheckConstraint(condition=~models.Q(reason=""), name="environment_change_has_a_reason"),
            models.UniqueConstraint(
                fields=["environment", "digest"], condition=models.Q(state="open"), name="one_open_change"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.environment}: {self.sentence}"
