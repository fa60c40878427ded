"""What is worked out ahead so that a board of thousands answers at once: marks of subjects, and answers to promotions.

The marks (`BoardSubject`) are exact at any moment: a trigger notes each subject whose versions change (`BoardChange`) in
the transaction of the change, and whoever reads works out anew what is noted.
"""

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


class BoardSubject(models.Model):
    """A subject with a live version in some environment, and how its environments differ, as of the last run.

    `behind` has bit n for the place n of the order, counted from 0, where the environment lacks what the one before it has.
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
    """A subject whose versions or their standings changed since the last run; written by a trigger alone.

    Two rows of one subject are as good as one: were they one, a run could drop what it hasn't seen.
    """

    context_name = models.CharField(max_length=256)
    subject_name = models.CharField(max_length=1024)

    def __str__(self) -> str:
        return f":{self.context_name}:{self.subject_name}"


class BoardState(models.Model):
    """The one row that says for which environments, in which order, the marks were worked out."""

    places = models.JSONField(default=list)

    def __str__(self) -> str:
        return str(self.places)
