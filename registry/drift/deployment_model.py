"""The deployments that programs told of."""

from __future__ import annotations

from typing import Final

from django.db import models

MAX_LABEL: Final = 200
MAX_URL: Final = 2_000


class Deployment(models.Model):
    """Something was deployed: a label, when it began, and whose messages it may have changed; empty patterns: any."""

    registry = models.ForeignKey("subjects.Registry", on_delete=models.CASCADE, related_name="deployments")
    label = models.CharField(max_length=MAX_LABEL)
    at = models.DateTimeField(help_text="when it began")
    url = models.CharField(max_length=MAX_URL, blank=True, help_text="the run that deployed it")
    subjects = models.CharField(max_length=512, blank=True, help_text="shell pattern of qualified names")
    topics = models.CharField(max_length=249, blank=True, help_text="shell pattern of topics")
    client = models.CharField(max_length=128, blank=True, help_text="a declared client: the subjects that it has")
    told_at = models.DateTimeField(auto_now_add=True)
    told_by = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["registry", "label", "at"], name="one_deployment"),
            models.CheckConstraint(condition=~models.Q(label=""), name="deployment_has_a_label"),
        ]
        indexes = [
            models.Index(fields=["registry", "-at", "-id"], name="deployments_of_a_registry"),
            models.Index(fields=["-at", "-id"], name="deployments_newest_first"),
        ]

    def __str__(self) -> str:
        return f"{self.label} at {self.at:%Y-%m-%d %H:%M}"
