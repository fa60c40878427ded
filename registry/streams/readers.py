"""Streaming queries that a subject's data go through: those that read it, and those whose state has its fields."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from django.db.models import Q

from registry.streams.models import CarriedVersion, QueryInput
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName

#: queries that are named
MOST: Final = 20


@dataclass(frozen=True)
class QueryReader:
    """A query, the topics that it reads of those asked for, and the versions whose fields its state has, ascending."""

    id: int
    path: str
    topics: tuple[str, ...]
    versions: tuple[int, ...]

    @property
    def name(self) -> str:
        """The last part of its checkpoint's path."""
        return PurePosixPath(self.path).name or self.path


def readers_of(registry: Registry, subject: SubjectName | None, *, topic: str = "") -> list[QueryReader]:
    """Queries that read the topic or the subject, and those whose state carries it, by path, 20 at most; two queries."""
    topics: dict[tuple[str, int], set[str]] = {}
    versions: dict[tuple[str, int], set[int]] = {}
    wanted = Q(topic=topic) if topic else Q(pk__in=())
    if subject is not None:
        wanted |= Q(context=subject.context, subject=subject.subject)
        carried = CarriedVersion.objects.filter(
            schema__variable__query__registry=registry,
            schema__variable__removed_at=None,
            context=subject.context,
            subject=subject.subject,
        )
        at = "schema__variable__query"
        for path, number, version in carried.values_list(f"{at}__path", f"{at}_id", "version").distinct():
            versions.setdefault((path, number), set()).add(version)
    inputs = QueryInput.objects.filter(wanted, query__registry=registry)
    for path, number, name in inputs.values_list("query__path", "query_id", "topic").distinct():
        topics.setdefault((path, number), set()).add(name)
    return [
        QueryReader(
            number, path, tuple(sorted(topics.get((path, number), ()))), tuple(sorted(versions.get((path, number), ())))
        )
        for path, number in sorted({*topics, *versions})[:MOST]
    ]
