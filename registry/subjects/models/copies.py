"""Contents that are kept for a while beside what is registered: of deletions for good, and of files to be brought in."""

from __future__ import annotations

from django.db import models

from registry.subjects.models.places import Registry


class KeptCopy(models.Model):
    """Versions that are in no subject: those that were deleted for good, or those of a file that somebody sent.

    `content` is JSON of the one (registry/subjects/kept_copy.py) and an export file of the other. A row goes when it is
    `until`, when it is forgotten, and a file's when it has been brought in.
    """

    DELETED, SENT = "deleted", "sent"

    registry = models.ForeignKey(Registry, on_delete=models.CASCADE, related_name="kept_copies", db_index=False)
    kind = models.CharField(max_length=7, choices=[(kind, kind) for kind in (DELETED, SENT)])
    name = models.TextField(help_text="the subject's qualified name, or what the file was called")
    versions = models.PositiveIntegerField()
    content = models.TextField()
    made_at = models.DateTimeField()
    made_by = models.TextField()
    until = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(kind__in=("deleted", "sent")), name="known_kind_of_copy"),
            models.CheckConstraint(condition=~models.Q(name=""), name="copy_has_a_name"),
            models.CheckConstraint(condition=models.Q(until__gt=models.F("made_at")), name="copy_is_kept_for_a_while"),
        ]
        indexes = [models.Index(fields=["registry", "kind", "-id"], name="copies_newest_first")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} of {self.registry_id}"
