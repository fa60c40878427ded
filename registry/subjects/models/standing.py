"""What people decided of a version beside its text: deprecated, retired, quarantined."""

from __future__ import annotations

from django.db import models

from registry.subjects.models.schemas import SchemaVersion


class VersionStanding(models.Model):
    """A version that shouldn't be used any more; one without a row is in good standing.

    Deprecated: use another, by `ends_at` where given. Retired: not for new data; reading it stays possible.
    Quarantined: arrived without a request, and isn't trusted; it is neither promoted nor the latest that is proposed.
    """

    DEPRECATED, RETIRED, QUARANTINED = "deprecated", "retired", "quarantined"
    STANDINGS = (DEPRECATED, RETIRED, QUARANTINED)

    version = models.OneToOneField(SchemaVersion, on_delete=models.CASCADE, related_name="standing")
    standing = models.CharField(max_length=16)
    message = models.TextField()
    ends_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.TextField()
    decided_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(standing__in=("deprecated", "retired", "quarantined")), name="known_standing"
            ),
            models.CheckConstraint(condition=~models.Q(message=""), name="standing_says_why"),
        ]

    def __str__(self) -> str:
        return f"{self.version_id}: {self.standing}"
