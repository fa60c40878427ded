"""What people of declared clients say of a request that their clients don't go on with."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import MD5

from registry.promotions.models.requests import PERSON, PromotionRequest

#: as a qualified name of a subject and a client's name are at most
MAX_SUBJECT = 1280
MAX_CLIENT = 128


class Acknowledgement(models.Model):
    """Somebody knows what a plan does to a client of theirs; one of an earlier plan no longer counts.

    The client is named as the plan names it: it may be withdrawn later, and what was said of it stays.
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
            # of the subject's digest: a name of many characters doesn't fit into an index
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
