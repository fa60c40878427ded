"""The status of versions: deprecated, retired, quarantined. A version without a row is in use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import QuerySet

from registry.errors import InvalidInput
from registry.subjects.models import Registry, SchemaVersion, VersionStanding
from registry.subjects.versions.qualified_names import SubjectName

#: from the mildest on
SEVERITY: Final = {word: rank for rank, word in enumerate(VersionStanding.STANDINGS)}
PAGE: Final = 100


@dataclass(frozen=True)
class Standing:
    """What was decided of a version: since when, by whom and why; `ends_at`: to be used until then at most."""

    standing: str
    message: str
    ends_at: datetime | None
    decided_by: str
    decided_at: datetime


@dataclass(frozen=True)
class StandingOfVersion:
    """A standing with the version that it is of; `id` is the version's own, by which lists go on."""

    id: int
    subject: SubjectName
    version: int
    deleted: bool
    standing: Standing


def standing_info(row: VersionStanding | None) -> Standing | None:
    """The row as a value; None for none."""
    return None if row is None else _info(row)


def _info(row: VersionStanding) -> Standing:
    return Standing(row.standing, row.message, row.ends_at, row.decided_by, row.decided_at)


def joined_standing(row: SchemaVersion) -> Standing | None:
    """The standing of a version's row that was read with `select_related("standing")`; otherwise it costs a query."""
    return standing_info(getattr(row, "standing", None))


def list_standings(
    registry: Registry, *, subject: SubjectName | None = None, standing: str = "", after: int = 0, limit: int = PAGE
) -> list[StandingOfVersion]:
    """The versions of a registry, or of one subject, that aren't in good standing, in the order of their ids; one query.

    `after` is the id of the last one that was seen. Raises InvalidInput for a standing that doesn't exist.
    """
    if standing and standing not in SEVERITY:
        raise InvalidInput(f"Unknown status {standing[:40]!r}. Use one of {', '.join(SEVERITY)}.")
    rows = VersionStanding.objects.filter(version__subject__context__registry=registry, version__gt=after)
    if subject is not None:
        rows = rows.filter(version__subject__context__name=subject.context, version__subject__name=subject.subject)
    if standing:
        rows = rows.filter(standing=standing)
    rows = rows.select_related("version__subject__context").order_by("version")[:limit]
    return [
        StandingOfVersion(
            id=row.version.pk,
            subject=SubjectName(row.version.subject.context.name, row.version.subject.name),
            version=row.version.version,
            deleted=row.version.deleted_at is not None,
            standing=_info(row),
        )
        for row in rows
    ]


def standings_of_schemas(
    schema_pks: Collection[int], versions: QuerySet[SchemaVersion] | None = None
) -> Mapping[int, Standing]:
    """What stands of whole definitions, by their rows; one query. `versions` are those that count (None: all).

    A definition is told of only where no live version that has it (of soft-deleted ones where none is live) is in good
    standing: a client that reads by id may be of any of them. What is told is the mildest of the standings, with the
    latest end where each has one.
    """
    by_schema: dict[int, list[tuple[bool, Standing | None]]] = {}
    every = SchemaVersion.objects.all() if versions is None else versions
    rows = every.filter(schema__in=schema_pks).select_related("standing").defer("submitted")
    for row in rows.order_by("pk"):
        by_schema.setdefault(row.schema_id, []).append((row.deleted_at is None, joined_standing(row)))
    joined = {pk: _together(versions) for pk, versions in by_schema.items()}
    return {pk: standing for pk, standing in joined.items() if standing is not None}


def _together(versions: Iterable[tuple[bool, Standing | None]]) -> Standing | None:
    listed = list(versions)
    counted = [standing for live, standing in listed if live] or [standing for _, standing in listed]
    marked = [standing for standing in counted if standing is not None]
    if not marked or len(marked) < len(counted):
        return None
    mildest = min(marked, key=lambda standing: (SEVERITY[standing.standing], -standing.decided_at.timestamp()))
    ends = [standing.ends_at for standing in marked if standing.ends_at is not None]
    return Standing(
        standing=mildest.standing,
        message=mildest.message,
        ends_at=max(ends) if len(ends) == len(marked) else None,
        decided_by=mildest.decided_by,
        decided_at=max(standing.decided_at for standing in marked),
    )
