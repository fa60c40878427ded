"""What people decided of fields that look renamed."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import MD5

MAX_PATH = 1024


class RenameDecision(models.Model):
    """Whether a field of a subject that went and one that came are one field under two names, as somebody decided.

    It holds for every comparison, report and request of the subject, wherever the same pair is suspected.
    """

    subject = models.ForeignKey("subjects.Subject", on_delete=models.CASCADE, related_name="+")
    from_path = models.TextField(help_text="of the field that went, as the diff names it")
    to_path = models.TextField(help_text="of the field that came")
    is_rename = models.BooleanField()
    reason = models.TextField(blank=True)
    decided_by = models.TextField()
    decided_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            # of their digests: a path of many characters doesn't fit into an index
            models.UniqueConstraint("subject", MD5("from_path"), MD5("to_path"), name="one_decision_a_rename"),
            models.CheckConstraint(
                condition=~models.Q(from_path="") & ~models.Q(to_path="") & ~models.Q(from_path=models.F("to_path")),
                name="rename_has_two_paths",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.from_path} → {self.to_path}: {self.is_rename}"
