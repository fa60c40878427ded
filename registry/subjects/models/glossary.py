"""The glossary: business terms, and the fields that they describe."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Length, Lower
from django.db.models.lookups import LessThanOrEqual

from registry.subjects.models.registries import MAX_FIELD, Subject, SubjectLinkedQuerySet

MAX_TERM = 100
MAX_OWNER = 200
MAX_MEANING = 4_000


class BusinessTerm(models.Model):
    """A term of the business with its meaning; it is the same in all registries.

    `updated_at` changes with every change: a writer passes the state that they read.
    """

    name = models.CharField(max_length=MAX_TERM)
    doc = models.TextField()
    owner = models.CharField(max_length=MAX_OWNER, blank=True, help_text="the person or team that decides its meaning")
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(Lower("name"), name="one_term_of_a_name"),
            models.CheckConstraint(condition=~models.Q(name="") & ~models.Q(doc=""), name="term_has_a_meaning"),
            models.CheckConstraint(condition=LessThanOrEqual(Length("doc"), 4_000), name="term_is_short"),
        ]

    def __str__(self) -> str:
        return self.name


class FieldTermQuerySet(SubjectLinkedQuerySet["FieldTerm"]):
    """Links of fields, visible with their subject."""

    subject = "subject__"


class FieldTerm(models.Model):
    """The term that a field of a subject means, in all versions that have the field.

    The migration makes the constraint to subjects, which deletes the row with its subject.
    """

    term = models.ForeignKey(BusinessTerm, on_delete=models.CASCADE, related_name="fields")
    subject = models.ForeignKey(Subject, on_delete=models.CASCADE, db_constraint=False, related_name="field_terms")
    path = models.CharField(max_length=MAX_FIELD)

    objects = FieldTermQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["subject", "path"], name="one_term_a_field")]

    def __str__(self) -> str:
        return f"{self.subject_id} {self.path}: {self.term_id}"
