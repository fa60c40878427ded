"""The least version of a subject that producers may still write."""

from __future__ import annotations

from django.db import models


class LeastVersion(models.Model):
    """Messages that are written with an older version from then on are drift; reading old ones stays possible."""

    subject = models.OneToOneField("subjects.Subject", on_delete=models.CASCADE, related_name="least_version")
    version = models.PositiveIntegerField()
    reason = models.TextField()
    set_by = models.TextField()
    set_at = models.DateTimeField(help_text="since when that version is the least")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(version__gte=2), name="least_version_forbids_one"),
            models.CheckConstraint(condition=~models.Q(reason=""), name="least_version_says_why"),
        ]

    def __str__(self) -> str:
        return f"{self.subject_id}: {self.version}"
