"""The index: its tables, and texts as it stores them. Built from the latest live version of each subject.

And what the subjects of each owner had on a day.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping
from typing import Final

from django.contrib.postgres.indexes import GinIndex
from django.db import models

from registry.audit.context import storable_text

NAME, PARENT, TYPE, DOC, TAGS = "n", "p", "t", "d", "g"
KINDS = (NAME, PARENT, TYPE, DOC, TAGS)


def _trigrams(kind: str, name: str) -> GinIndex:
    return GinIndex(fields=["folded"], opclasses=["gin_trgm_ops"], condition=models.Q(kind=kind), name=name)


class SearchTerm(models.Model):
    """A text of fields: a name, the path before it, a type, a description, or tags (one per line)."""

    id = models.AutoField(primary_key=True)
    kind = models.CharField(max_length=1)
    value = models.TextField()
    folded = models.TextField(help_text="the same without upper case, which is what is searched")
    digest = models.UUIDField(help_text="of the value, which may be longer than a key can be")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "digest"], name="one_search_term"),
            models.CheckConstraint(condition=models.Q(kind__in=KINDS), name="known_kind_of_term"),
        ]
        indexes = [
            _trigrams(NAME, "search_names"),
            _trigrams(PARENT, "search_parents"),
            _trigrams(TYPE, "search_types"),
            _trigrams(DOC, "search_docs"),
            _trigrams(TAGS, "search_tags"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.value[:80]}"


class IndexedSubject(models.Model):
    """A subject in the index. `problem` says why its schema couldn't be read; then it has no fields."""

    subject_id = models.BigIntegerField(primary_key=True)
    registry_id = models.BigIntegerField()
    context_id = models.BigIntegerField()
    name = models.CharField(max_length=1300, db_collation="C", help_text="qualified")
    schema_type = models.CharField(max_length=16)
    version = models.PositiveIntegerField()
    version_pk = models.BigIntegerField(help_text="of the version that the fields are of")
    field_count = models.PositiveIntegerField(default=0)
    problem = models.TextField(blank=True)
    doc = models.TextField(blank=True, help_text="of the schema's root and of the subject's note")
    tags = models.TextField(blank=True, help_text="of the subject's note, one a line")
    folded_name = models.TextField(help_text="the same without upper case, which is what is searched")
    folded_doc = models.TextField(blank=True)
    folded_tags = models.TextField(blank=True)
    folded_refs = models.TextField(blank=True, help_text="names and subjects of what the schema refers to, one a line")
    noted_at = models.DateTimeField(null=True, help_text="of the note that was read")
    indexed_at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes = [
            models.Index(fields=["name", "subject_id"], include=["registry_id"], name="indexed_by_name"),
            models.Index(fields=["registry_id", "name"], include=["subject_id"], name="indexed_by_registry"),
            GinIndex(fields=["folded_name"], opclasses=["gin_trgm_ops"], name="indexed_by_trigrams"),
            GinIndex(
                fields=["folded_doc"],
                opclasses=["gin_trgm_ops"],
                condition=~models.Q(folded_doc=""),
                name="indexed_by_doc",
            ),
            GinIndex(
                fields=["folded_tags"],
                opclasses=["gin_trgm_ops"],
                condition=~models.Q(folded_tags=""),
                name="indexed_by_tags",
            ),
            GinIndex(
                fields=["folded_refs"],
                opclasses=["gin_trgm_ops"],
                condition=~models.Q(folded_refs=""),
                name="indexed_by_refs",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


class IndexedField(models.Model):
    """A field of that version; `position` is its row in the version's structure, from 1.

    The other columns are terms.
    """

    pk = models.CompositePrimaryKey("subject_id", "position")
    subject_id = models.BigIntegerField()
    position = models.PositiveSmallIntegerField()
    name_id = models.IntegerField()
    parent_id = models.IntegerField()
    type_id = models.IntegerField()
    doc_id = models.IntegerField(null=True)
    tags_id = models.IntegerField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["name_id", "subject_id", "position"],
                include=["parent_id", "type_id", "doc_id", "tags_id"],
                name="fields_by_name",
            ),
            models.Index(fields=["type_id", "subject_id", "position"], name="fields_by_type"),
            models.Index(
                fields=["doc_id", "subject_id", "position"],
                condition=models.Q(doc_id__isnull=False),
                name="fields_by_doc",
            ),
            models.Index(
                fields=["tags_id", "subject_id", "position"],
                condition=models.Q(tags_id__isnull=False),
                name="fields_by_tags",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject_id} field {self.position}"


class StaleSubject(models.Model):
    """A subject to index again; triggers write it in the transaction of the change, so none is lost."""

    subject_id = models.BigIntegerField(db_index=True)

    def __str__(self) -> str:
        return str(self.subject_id)


class TeamFigure(models.Model):
    """The figures of an owner's subjects on a day (see `team_figures`). There is none for a day without the task."""

    registry_id = models.BigIntegerField()
    day = models.DateField(db_index=True)
    owner = models.CharField(max_length=160)
    subjects = models.PositiveIntegerField()
    described = models.PositiveIntegerField()
    owned = models.PositiveIntegerField()
    with_channel = models.PositiveIntegerField()
    fields = models.PositiveBigIntegerField()
    documented = models.PositiveBigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["registry_id", "owner", "day"], name="one_figure_a_day")]

    def __str__(self) -> str:
        return f"{self.day} {self.owner}: {self.subjects}"


#: characters that are stored of each kind
LONGEST: Final[Mapping[str, int]] = {NAME: 500, PARENT: 1_500, TYPE: 500, DOC: 2_000, TAGS: 2_000}


def stored_text(kind: str, value: str) -> str:
    """Return a text as it is stored: cleaned and cut."""
    return storable_text(value)[: LONGEST[kind]]


def fold(text: str) -> str:
    """Return the text as it is searched: case-folded, by the same rules as the words of a query."""
    return text.casefold()


def lines(texts: Iterable[str]) -> str:
    """Join words, one per line, with a line end before the first and after the last, to match whole words."""
    single_lines = [word.replace("\n", " ") for word in texts]
    return "\n" + "".join(f"{word}\n" for word in single_lines) if single_lines else ""


def split_lines(text: str) -> tuple[str, ...]:
    """Split what `lines` has joined."""
    return tuple(filter(None, text.split("\n")))


def digest(value: str) -> uuid.UUID:
    """Return the key of a stored text."""
    return uuid.UUID(bytes=hashlib.sha256(value.encode()).digest()[:16])


def term_digest(kind: str, value: str) -> uuid.UUID:
    """Return the key of a text of a kind."""
    return digest(stored_text(kind, value))
