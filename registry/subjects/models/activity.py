"""What the list of subjects is sorted and narrowed by, kept ahead by triggers on the versions."""

from __future__ import annotations

from django.db import models

from registry.subjects.models.places import Subject


class SubjectActivity(models.Model):
    """A subject with a live version: how many it has, when the last of them came, and the format of the newest.

    Rows follow the versions in the transaction of their change, and are nobody's to write. They refer to subjects and
    registries by number, without a constraint, so that they never hold up what is removed.
    """

    subject = models.OneToOneField(
        Subject, on_delete=models.DO_NOTHING, primary_key=True, db_constraint=False, related_name="activity"
    )
    registry_id = models.BigIntegerField()
    live_versions = models.PositiveIntegerField()
    changed_at = models.DateTimeField()
    schema_type = models.CharField(max_length=8)

    class Meta:
        indexes = [
            # formats are counted from it alone; an index of their own would cost every registration more
            models.Index(
                fields=["registry_id", "-changed_at", "subject"], include=["schema_type"], name="subjects_by_change"
            )
        ]

    def __str__(self) -> str:
        return f"{self.subject_id}: {self.live_versions} live, {self.changed_at}"
