"""Simulation with data: how versions of a subject decode each other's messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from registry.errors import InvalidInput, VersionNotFound
from registry.formats.base import ParsedSchema, Resolution
from registry.formats.json_change import Change
from registry.formats.read_modify_write import Remedy, Reset, Simulation, remedies
from registry.subjects.engine import schema_engine
from registry.subjects.models import Registry
from registry.subjects.versions.lookup import get_subject
from registry.subjects.versions.parsed_schemas import parse_stored
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import live, parse_version, version_row


@dataclass(frozen=True)
class TrialVersions:
    """Parsed versions of one subject in one format, by number."""

    schemas: Mapping[int, ParsedSchema] = field(repr=False)

    def example(self, version: int) -> Any:
        """Return a datum of a version in the format's JSON form. Raises InvalidDatum."""
        return schema_engine.example(self.schemas[version])

    def resolve(self, *, reader: int, writer: int, datum: Any) -> Resolution:
        """Read one version's datum with another version. Raises InvalidDatum."""
        return schema_engine.resolve(self.schemas[reader], self.schemas[writer], datum)

    def simulate(self, *, written_by: int, modified_by: int, datum: Any, change: Change | None) -> Simulation:
        """Modify a datum of one version through another and read it again. Raises InvalidDatum."""
        own, other = self.schemas[written_by], self.schemas[modified_by]
        return schema_engine.simulate_read_modify_write(own, other, datum, change)

    def resets(self) -> tuple[Reset, ...]:
        """Return the fields that read-modify-writes among these versions reset. Raises InvalidInput for too many."""
        return schema_engine.find_resets(sorted(self.schemas.items()))

    @staticmethod
    def remedies(resets: Sequence[Reset]) -> tuple[Remedy, ...]:
        """Return what avoids those resets, in words."""
        return remedies(resets)


def version_formats(registry: Registry, subject: SubjectName) -> tuple[tuple[int, str], ...]:
    """Return the live versions with their formats, newest first. Raises SubjectNotFound."""
    rows = live(get_subject(registry, subject).versions.all()).order_by("-version")
    return tuple(rows.values_list("version", "schema__schema_type"))


def load_for_trial(registry: Registry, subject: SubjectName, versions: Sequence[int]) -> TrialVersions:
    """Return live versions of one format. Raises SubjectNotFound, VersionNotFound, InvalidInput for two formats."""
    rows = list(
        live(get_subject(registry, subject).versions.filter(version__in=versions))
        .select_related("schema")
        .order_by("version")
    )
    missing = sorted(set(versions) - {row.version for row in rows})
    if missing:
        raise VersionNotFound(f"Version {missing[0]} not found.", version=missing[0])
    if len({row.schema.schema_type for row in rows}) > 1:
        raise InvalidInput("The versions have different formats: data in one format can't be read as the other.")
    parsed = parse_stored([row.schema for row in rows])
    return TrialVersions({row.version: schema for row, schema in zip(rows, parsed, strict=True)})


MAX_VERSIONS_TOGETHER = 10


@dataclass(frozen=True)
class Hazards:
    """The fields that versions in use at the same time reset for each other, and how to avoid it."""

    versions: tuple[int, ...]
    resets: tuple[Reset, ...]
    remedies: tuple[Remedy, ...]


def resolve_datum(
    registry: Registry, subject: SubjectName, *, reader: int | str, writer: int | str, datum: Any = None
) -> Resolution:
    """Read a datum of the writer version, by default a generated one, with the reader version.

    Raises SubjectNotFound, VersionNotFound, InvalidVersion, InvalidDatum, InvalidInput for two formats.
    """
    (_, read), (_, written) = _versions(registry, subject, [reader, writer])
    return schema_engine.resolve(read, written, schema_engine.example(written) if datum is None else datum)


def simulate(
    registry: Registry,
    subject: SubjectName,
    *,
    written_by: int | str,
    modified_by: int | str,
    datum: Any = None,
    change: Change | None = None,
) -> Simulation:
    """Simulate a read-modify-write by another version, and what the first one reads afterwards.

    Raises as `resolve_datum` does.
    """
    (_, own), (_, other) = _versions(registry, subject, [written_by, modified_by])
    written = schema_engine.example(own) if datum is None else datum
    return schema_engine.simulate_read_modify_write(own, other, written, change)


def find_hazards(registry: Registry, subject: SubjectName, versions: Sequence[int | str]) -> Hazards:
    """Return the hazards of versions in use at the same time. Raises as `resolve_datum` does."""
    if not 2 <= len(versions) <= MAX_VERSIONS_TOGETHER:
        raise InvalidInput(f"Choose 2 to {MAX_VERSIONS_TOGETHER} versions that are in use at the same time.")
    numbered = _versions(registry, subject, versions)
    resets = schema_engine.find_resets(numbered)
    return Hazards(tuple(number for number, _ in numbered), resets, remedies(resets))


def _versions(
    registry: Registry, subject: SubjectName, versions: Sequence[int | str]
) -> list[tuple[int, ParsedSchema]]:
    subject_row = get_subject(registry, subject)
    rows = [version_row(subject_row, parse_version(version)) for version in versions]
    if len({row.schema.schema_type for row in rows}) > 1:
        raise InvalidInput("The versions have different formats: data in one format can't be read as the other.")
    return list(zip((row.version for row in rows), parse_stored([row.schema for row in rows]), strict=True))
