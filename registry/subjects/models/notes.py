"""What stewards write about a subject: tags and a text. Owners are rules of their own, in registry.access."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Length
from django.db.models.lookups import LessThanOrEqual

from registry.subjects.models.places import Subject

MAX_TAGS = 32
MAX_TAG = 64
MAX_DOC = 20_000


class SubjectNote(models.Model):
    """The tags and the text of a subject; one without a row has neither.

    What is said of a version stands in its schema: its text's docs and tags, and its metadata. The tags are words of
    ASCII letters, digits and `_ . : -`, each once, in the order of their characters. `updated_at` changes with every
    change: who writes says which state they had read.
    """

    subject = models.OneToOneField(Subject, on_delete=models.CASCADE, related_name="note")
    tags = ArrayField(models.CharField(max_length=MAX_TAG), default=list, blank=True)
    doc = models.TextField(blank=True)
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.TextField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(tags__len__lte=32), name="note_has_few_tags"),
            models.CheckConstraint(condition=LessThanOrEqual(Length("doc"), 20_000), name="note_is_short"),
            models.CheckConstraint(condition=~models.Q(tags=[], doc=""), name="note_says_something"),
        ]

    def __str__(self) -> str:
        return f"{self.subject_id}: {', '.join(self.tags)}"
