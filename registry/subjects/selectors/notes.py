"""What stewards wrote about subjects: tags and a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Count, QuerySet

from registry.subjects.models import Registry, SubjectNote
from registry.subjects.names import SubjectName

#: the state of a subject without a note
NONE: Final = "none"


@dataclass(frozen=True)
class Note:
    """The tags and the text of a subject, both empty where nobody wrote any; then `updated_at` is None."""

    tags: tuple[str, ...] = ()
    doc: str = ""
    updated_at: datetime | None = None
    updated_by: str = ""

    @property
    def state(self) -> str:
        """What changes with every change; who writes says which state they had read."""
        return NONE if self.updated_at is None else self.updated_at.isoformat()

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """The text in the pieces between empty lines."""
        return tuple(part.strip() for part in self.doc.split("\n\n") if part.strip())


def note_info(row: SubjectNote | None) -> Note:
    """The row as a value; an empty one for none."""
    return Note() if row is None else Note(tuple(row.tags), row.doc, row.updated_at, row.updated_by)


def note_of(registry: Registry, subject: SubjectName) -> Note:
    """What is written about a subject; one query. Whether there is such a subject isn't asked."""
    return note_info(
        _rows(registry).filter(subject__context__name=subject.context, subject__name=subject.subject).first()
    )


def notes_of(registry: Registry, subjects: Collection[SubjectName] | None = None) -> dict[SubjectName, Note]:
    """What is written about those subjects (None: about all), those without a note left out; one query."""
    rows = _rows(registry).select_related("subject__context")
    if subjects is not None:
        rows = rows.filter(subject__name__in={each.subject for each in subjects})
    found = {SubjectName(row.subject.context.name, row.subject.name): note_info(row) for row in rows}
    return found if subjects is None else {name: note for name, note in found.items() if name in set(subjects)}


def tag_counts(registry: Registry) -> dict[str, int]:
    """The tags of the registry's subjects in lower case with how many have each, most used first; one query."""
    counts: Counter[str] = Counter()
    alike = _rows(registry).filter(tags__len__gt=0).values_list("tags").annotate(notes=Count("pk"))
    for tags, notes in alike.order_by():
        counts.update(dict.fromkeys({tag.lower() for tag in tags}, notes))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _rows(registry: Registry) -> QuerySet[SubjectNote]:
    return SubjectNote.objects.filter(subject__context__registry=registry)
