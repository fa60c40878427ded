"""Decisions other than reviews: acknowledgements, renamed fields, and accounts that belong to one person.

Accounts of one person count as one where a second person is needed.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import MD5

from registry.promotions.models.requests import PERSON, PromotionRequest

#: the maximal lengths of a qualified subject name and a client's name
MAX_SUBJECT = 1280
MAX_CLIENT = 128


class Acknowledgement(models.Model):
    """A contact's confirmation that they know what a plan does to a client; it counts only for that plan.

    It stores the client's name, because the client may be withdrawn later while the acknowledgement stays.
    """

    request = models.ForeignKey(PromotionRequest, on_delete=models.CASCADE, related_name="acknowledgements")
    subject = models.CharField(max_length=MAX_SUBJECT, help_text="the qualified name")
    client = models.CharField(max_length=MAX_CLIENT)
    person = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    note = models.TextField(blank=True)
    plan_hash = models.CharField(max_length=64)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            # of the subject's digest, because a long name doesn't fit into an index
            models.UniqueConstraint(
                "request", MD5("subject"), "client", "plan_hash", name="one_acknowledgement_a_client_and_plan"
            ),
            models.CheckConstraint(
                condition=~models.Q(subject="") & ~models.Q(client="") & ~models.Q(plan_hash=""),
                name="acknowledgement_names_its_client",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.person}: {self.client} of {self.subject}"


MAX_PATH = 1024


class RenameDecision(models.Model):
    """A decision whether a removed and an added field of a subject are the same field, renamed.

    It applies to every comparison, report and request of the subject that suspects this pair.
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
            # of the paths' digests, because a long path doesn't fit into an index
            models.UniqueConstraint("subject", MD5("from_path"), MD5("to_path"), name="one_decision_a_rename"),
            models.CheckConstraint(
                condition=~models.Q(from_path="") & ~models.Q(to_path="") & ~models.Q(from_path=models.F("to_path")),
                name="rename_has_two_paths",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.from_path} → {self.to_path}: {self.is_rename}"


class SamePerson(models.Model):
    """Two accounts of one person; `one` has the smaller id.

    If `one` only created the account `other`, they count as one person only in closed environments.
    """

    one = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    other = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    reason = models.TextField()
    stated_by = models.CharField(max_length=150)
    stated_at = models.DateTimeField(auto_now_add=True)
    is_added = models.BooleanField(default=False, help_text="one added the account of the other, and saw its password")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["one", "other"], name="same_person_once"),
            models.CheckConstraint(condition=models.Q(one__lt=models.F("other")), name="same_person_in_order"),
        ]

    def __str__(self) -> str:
        return f"{self.one_id} = {self.other_id}"
