"""Streaming queries that use a subject: those that read it, and those whose state still carries one of its versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Final

from django.db.models import Max, Q

from registry.streams.models import CarriedVersion, QueryInput
from registry.subjects.models import Registry
from registry.subjects.usage.evidence import Evidence
from registry.subjects.versions.qualified_names import SubjectName

#: queries that are named
MOST: Final = 20


@dataclass(frozen=True)
class QueryReader:
    """A query, the requested topics that it reads, and the versions whose fields its state has, ascending."""

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
    condition = Q(topic=topic) if topic else Q(pk__in=())
    if subject is not None:
        condition |= Q(context=subject.context, subject=subject.subject)
        carried = CarriedVersion.objects.filter(
            schema__variable__query__registry=registry,
            schema__variable__removed_at=None,
            context=subject.context,
            subject=subject.subject,
        )
        at = "schema__variable__query"
        for path, number, version in carried.values_list(f"{at}__path", f"{at}_id", "version").distinct():
            versions.setdefault((path, number), set()).add(version)
    inputs = QueryInput.objects.filter(condition, query__registry=registry)
    for path, number, name in inputs.values_list("query__path", "query_id", "topic").distinct():
        topics.setdefault((path, number), set()).add(name)
    return [
        QueryReader(
            number, path, tuple(sorted(topics.get((path, number), ()))), tuple(sorted(versions.get((path, number), ())))
        )
        for path, number in sorted({*topics, *versions})[:MOST]
    ]


MAX_NAMED: Final = 20


def state_evidence(registry: Registry, subject: SubjectName, versions: Sequence[int]) -> dict[int, list[Evidence]]:
    """What the scanned queries' state says of versions; one query. Nothing for a version that no state carries.

    The schema that a variable is written with now is certain. Of one that it was written with before it evolved, rows
    that were never written again are stored still; whether there are any, Spark's reader doesn't tell.
    """
    rows = (
        CarriedVersion.objects.filter(
            schema__variable__query__registry=registry,
            schema__variable__removed_at=None,
            context=subject.context,
            subject=subject.subject,
            version__in=list(versions),
        )
        .select_related("schema__variable__query")
        .annotate(newest=Max("schema__variable__schemas__version"))
        .order_by("version", "schema__variable__query__path", "schema__variable__name", "-schema__version")
    )
    by_version: dict[int, list[Evidence]] = {}
    for row in rows:
        listed = by_version.setdefault(row.version, [])
        if len(listed) < MAX_NAMED:
            listed.append(_evidence(row, is_current=row.schema.version == row.newest))
    return by_version


def _evidence(row: CarriedVersion, *, is_current: bool) -> Evidence:
    variable = row.schema.variable
    where = f"state variable {variable.label} of the query at {variable.query.path}"
    fields = ", ".join(row.fields[:8]) + (" …" if len(row.fields) > 8 else "")
    seen_at: datetime = variable.query.scanned_at
    if is_current:
        return Evidence(
            "state", "yes", f"The {where} holds its fields ({fields}).", as_of=seen_at, names=f"The {where}"
        )
    return Evidence(
        "state",
        "unknown",
        f"The {where} was written with its fields ({fields}) until it evolved. Rows not rewritten since are still "
        "stored that way, and Spark doesn't report which.",
        as_of=seen_at,
        names=f"The {where}",
    )
