"""Programs that read or write a subject's data, as they or their people say."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from registry.subjects.models.places import Subject

MAX_NAME = 128
MAX_CONTACT = 200
MAX_FIELD = 512
MAX_FIELDS = 200


class Client(models.Model):
    """A program, and the version of the subject that it was built with; None: it takes the newest at each start.

    `fields` are paths of the fields that it reads, none: it says nothing of fields. `seen_at` is when it was declared
    or reported last: a program may say it at each of its starts.
    """

    subject = models.ForeignKey(Subject, on_delete=models.CASCADE, related_name="clients")
    name = models.CharField(max_length=MAX_NAME)
    reads = models.BooleanField()
    writes = models.BooleanField()
    version = models.PositiveIntegerField(null=True, blank=True)
    fields = ArrayField(models.CharField(max_length=MAX_FIELD), default=list, blank=True)
    contact = models.CharField(max_length=MAX_CONTACT, blank=True, help_text="whom to talk to")
    declared_at = models.DateTimeField(auto_now_add=True)
    declared_by = models.TextField()
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["subject", "name"], name="one_client_of_a_name"),
            models.CheckConstraint(
                condition=models.Q(reads=True) | models.Q(writes=True), name="client_reads_or_writes"
            ),
            models.CheckConstraint(
                condition=models.Q(version=None) | models.Q(version__gte=1), name="client_version_counts_from_one"
            ),
            models.CheckConstraint(condition=models.Q(fields__len__lte=MAX_FIELDS), name="client_has_few_fields"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.subject_id}"
