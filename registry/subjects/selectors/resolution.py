"""What versions of a subject make of each other's data, by really encoding and decoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from registry.errors import InvalidInput
from registry.formats.base import ParsedSchema, Resolution
from registry.formats.hazard import Reset, Simulation, remedies
from registry.formats.hazard_remedies import Remedy
from registry.formats.json_change import Change
from registry.subjects import engines
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName
from registry.subjects.selectors.parsed import parse_stored
from registry.subjects.selectors.places import get_subject
from registry.subjects.selectors.versions import parse_version, version_row

MAX_VERSIONS_TOGETHER = 10


@dataclass(frozen=True)
class Hazards:
    """The fields that versions in use at the same time reset for each other, and what avoids it."""

    versions: tuple[int, ...]
    resets: tuple[Reset, ...]
    remedies: tuple[Remedy, ...]


def resolve_datum(
    registry: Registry, subject: SubjectName, *, reader: int | str, writer: int | str, datum: Any = None
) -> Resolution:
    """What the reader version gets from a datum of the writer version; without a datum, from a generated one.

    Raises SubjectNotFound, VersionNotFound, InvalidVersion, InvalidDatum, InvalidInput for two formats.
    """
    (_, read), (_, written) = _versions(registry, subject, [reader, writer])
    return engines.resolve(read, written, engines.example(written) if datum is None else datum)


def simulate(
    registry: Registry,
    subject: SubjectName,
    *,
    written_by: int | str,
    modified_by: int | str,
    datum: Any = None,
    change: Change | None = None,
) -> Simulation:
    """A read-modify-write by another version, and what the first one finds afterwards. Raises as `resolve_datum`."""
    (_, known), (_, other) = _versions(registry, subject, [written_by, modified_by])
    given = engines.example(known) if datum is None else datum
    return engines.simulate_read_modify_write(known, other, given, change)


def find_hazards(registry: Registry, subject: SubjectName, versions: Sequence[int | str]) -> Hazards:
    """The hazards of versions that are in use at the same time. Raises as `resolve_datum`."""
    if not 2 <= len(versions) <= MAX_VERSIONS_TOGETHER:
        raise InvalidInput(f"Name 2 to {MAX_VERSIONS_TOGETHER} versions that are in use at the same time.")
    found = _versions(registry, subject, versions)
    resets = engines.find_resets(found)
    return Hazards(tuple(number for number, _ in found), resets, remedies(resets))


def _versions(
    registry: Registry, subject: SubjectName, versions: Sequence[int | str]
) -> list[tuple[int, ParsedSchema]]:
    place = get_subject(registry, subject)
    rows = [version_row(place, parse_version(version)) for version in versions]
    if len({row.schema.schema_type for row in rows}) > 1:
        raise InvalidInput("The versions are of two formats: data of one can't be read as the other.")
    return list(zip((row.version for row in rows), parse_stored([row.schema for row in rows]), strict=True))
