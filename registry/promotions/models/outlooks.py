"""Whether each subject could be promoted, worked out ahead so that a board of thousands answers at once."""

from __future__ import annotations

from django.db import models

from registry.promotions.models.environments import Environment


class PromotionOutlook(models.Model):
    """The answer for a subject between two environments, good as long as `basis` is what both hold."""

    YES, NEEDS_APPROVAL, NO = "yes", "needs approval", "no"

    source = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="+")
    target = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="+")
    context_name = models.CharField(max_length=256)
    subject_name = models.CharField(max_length=1024)
    basis = models.CharField(max_length=64, help_text="SHA-256 of what the answer was worked out from")
    verdict = models.CharField(max_length=16)
    reasons = models.JSONField(default=list)
    at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "target", "context_name", "subject_name"], name="one_outlook"),
            models.CheckConstraint(
                condition=models.Q(verdict__in=("yes", "needs approval", "no")), name="known_outlook"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject_name}: {self.verdict}"
