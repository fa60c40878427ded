"""A subject's live versions, read one by one: one that can't be read any more says why, and the others are there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from registry.errors import InvalidReference, InvalidSchema, SchemadeskError, Unavailable
from registry.formats.base import ParsedSchema
from registry.subjects import engines
from registry.subjects.contracts import Contract, property_of
from registry.subjects.models import Registry, Schema, SchemaVersion
from registry.subjects.names import SubjectName
from registry.subjects.selectors.comparison import stored_version
from registry.subjects.selectors.parsed import parser_of
from registry.subjects.selectors.places import get_subject
from registry.subjects.selectors.versions import VersionInfo, infos_of, named_versions

#: what reading or comparing a stored text may meet: it is damaged, refers to what is, or takes more than is allowed now
UNREADABLE: Final = (InvalidSchema, InvalidReference, Unavailable)


@dataclass(frozen=True)
class Reading:
    """A version as it was read: without a `schema` where that can't be, which `error` says."""

    version: int
    schema_type: str
    metadata: Contract | None
    schema: ParsedSchema | None
    error: SchemadeskError | None = None


def version_numbers(registry: Registry, subject: SubjectName) -> list[tuple[int, bool]]:
    """All versions, newest first, each with whether it is soft-deleted; no text is read. Raises SubjectNotFound."""
    rows = SchemaVersion.objects.filter(
        subject__context__registry=registry, subject__context__name=subject.context, subject__name=subject.subject
    ).order_by("-version")
    found = [(number, deleted_at is not None) for number, deleted_at in rows.values_list("version", "deleted_at")]
    if not found:
        get_subject(registry, subject, deleted=True)
    return found


def earlier_peers(registry: Registry, subject: SubjectName, numbers: Collection[int], group: str) -> set[int]:
    """For each of those versions the live one before it that has the same `group` in its metadata; one query."""
    rows = named_versions(registry, subject).select_related(None).order_by("version")
    last: dict[Any, int] = {}
    found = set()
    for number, metadata in rows.values_list("version", "schema__metadata"):
        kind = property_of(metadata, group)
        if number in numbers and kind in last:
            found.add(last[kind])
        last[kind] = number
    return found


def read_whole(
    registry: Registry, subject: SubjectName, *, only: Collection[int] | None = None
) -> tuple[list[VersionInfo], tuple[Reading, ...]]:
    """Versions as values, newest first, soft-deleted ones too; and the live ones as they were read, ascending.

    All of them, or those of `only` that are there. Their texts are read once, which is most of what a subject of wide
    schemas costs. Raises SubjectNotFound.
    """
    wanted = named_versions(registry, subject, deleted=True)
    rows = list((wanted if only is None else wanted.filter(version__in=only)).order_by("-version"))
    if not rows:
        get_subject(registry, subject, deleted=True)
    return infos_of(rows), _readings([row for row in reversed(rows) if row.deleted_at is None])


def parsed_of(registry: Registry, info: VersionInfo, readings: Sequence[Reading]) -> ParsedSchema:
    """A version's schema: of the readings where it is among them, else read now. Raises what UNREADABLE names."""
    reading = next((each for each in readings if each.version == info.version), None)
    if reading is None:
        return stored_version(registry, info.subject, info.version, deleted=True)[1]
    if reading.schema is None:
        raise reading.error or InvalidSchema("The schema can't be read.")
    return reading.schema


def _readings(rows: Sequence[SchemaVersion]) -> tuple[Reading, ...]:
    try:
        parse = parser_of([row.schema for row in rows])
    except UNREADABLE as error:  # references that are nested too deep: of which version isn't known
        return tuple(_reading(row, None, error) for row in rows)
    return tuple(_read(row, parse) for row in rows)


def _read(row: SchemaVersion, parse: Callable[[Schema], ParsedSchema]) -> Reading:
    try:
        return _reading(row, parse(row.schema))
    except UNREADABLE as error:
        return _reading(row, None, error)


def _reading(row: SchemaVersion, schema: ParsedSchema | None, error: SchemadeskError | None = None) -> Reading:
    return Reading(row.version, row.schema.schema_type, row.schema.metadata, schema, error)


def origins_of(readings: Sequence[Reading], *, is_whole: bool = True) -> dict[str, int]:
    """The path of every field that the newest version has, with the version that brought it (back).

    A field that comes up behind a version that can't be read is left out: it may have come with that one. So is one
    that the first of them has where that isn't the subject's first (`is_whole` False).
    """
    origins: dict[str, int | None] = {}
    after_gap = not is_whole
    for reading in readings:
        paths = _paths(reading)
        if paths is None:
            after_gap = True
            continue
        origins = {path: origins.get(path, None if after_gap else reading.version) for path in paths}
        after_gap = False
    return {path: version for path, version in origins.items() if version is not None}


def _paths(reading: Reading) -> list[str] | None:
    if reading.schema is None:
        return None
    try:
        return [field.path for field in engines.outline(reading.schema)]
    except UNREADABLE:
        return None
