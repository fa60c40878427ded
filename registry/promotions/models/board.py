"""Precomputed data for a fast board of thousands of subjects: marks of subjects, and readiness of promotions.

The marks (`BoardSubject`) are always exact: a trigger notes each subject whose versions change (`BoardChange`) in the
transaction of the change, and readers compute the noted subjects again.
"""

from __future__ import annotations

from django.db import models

from registry.promotions.models.environments import Environment


class PromotionOutlook(models.Model):
    """The readiness of a subject between two environments, valid as long as `basis` matches their state."""

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


class BoardSubject(models.Model):
    """A subject with a live version in some environment, and how its environments differ, as of the last run.

    Bit n of `behind` is set if the environment at position n, from 0, lacks what the previous one has.
    """

    context_name = models.CharField(max_length=256, db_collation="C")
    subject_name = models.CharField(max_length=1024, db_collation="C")
    behind = models.BigIntegerField()
    id_differs = models.BooleanField()
    other_content = models.BooleanField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["context_name", "subject_name"], name="one_board_subject")]

    def __str__(self) -> str:
        return f":{self.context_name}:{self.subject_name}"


class BoardChange(models.Model):
    """A subject whose versions or statuses changed since the last run; written only by a trigger.

    A subject may have several rows: with only one, a run could delete a note that it hasn't seen.
    """

    context_name = models.CharField(max_length=256)
    subject_name = models.CharField(max_length=1024)

    def __str__(self) -> str:
        return f":{self.context_name}:{self.subject_name}"


class BoardState(models.Model):
    """The one row with the environments, in order, that the marks were computed for."""

    places = models.JSONField(default=list)

    def __str__(self) -> str:
        return str(self.places)
