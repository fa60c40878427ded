"""That two accounts are one person's, as an administrator has stated: then they count as one where a second is needed."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class SamePerson(models.Model):
    """Two accounts of one person; `one` is the smaller number of the two."""

    one = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    other = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    reason = models.TextField()
    stated_by = models.CharField(max_length=150)
    stated_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["one", "other"], name="same_person_once"),
            models.CheckConstraint(condition=models.Q(one__lt=models.F("other")), name="same_person_in_order"),
        ]

    def __str__(self) -> str:
        return f"{self.one_id} = {self.other_id}"
