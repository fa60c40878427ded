"""Versions of a subject to try data on: loaded at once, then read, written and modified without further queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from registry.errors import InvalidInput, VersionNotFound
from registry.formats.base import ParsedSchema, Resolution
from registry.formats.hazard import Reset, Simulation, remedies
from registry.formats.hazard_remedies import Remedy
from registry.formats.json_change import Change
from registry.subjects import engines
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName
from registry.subjects.selectors.parsed import parse_stored
from registry.subjects.selectors.places import get_subject
from registry.subjects.selectors.versions import live


@dataclass(frozen=True)
class TrialVersions:
    """Parsed versions of one subject in one format, by number."""

    schemas: Mapping[int, ParsedSchema] = field(repr=False)

    def example(self, version: int) -> Any:
        """A datum of a version in the format's JSON form. Raises InvalidDatum."""
        return engines.example(self.schemas[version])

    def resolve(self, *, reader: int, writer: int, datum: Any) -> Resolution:
        """What one version makes of another's datum. Raises InvalidDatum."""
        return engines.resolve(self.schemas[reader], self.schemas[writer], datum)

    def simulate(self, *, written_by: int, modified_by: int, datum: Any, change: Change | None) -> Simulation:
        """A datum of one version, modified through another and read again. Raises InvalidDatum."""
        known, other = self.schemas[written_by], self.schemas[modified_by]
        return engines.simulate_read_modify_write(known, other, datum, change)

    def resets(self) -> tuple[Reset, ...]:
        """The fields that read-modify-writes among these versions reset. Raises InvalidInput for too many."""
        return engines.find_resets(sorted(self.schemas.items()))

    @staticmethod
    def remedies(resets: Sequence[Reset]) -> tuple[Remedy, ...]:
        """What avoids those resets, in words."""
        return remedies(resets)


def version_formats(registry: Registry, subject: SubjectName) -> tuple[tuple[int, str], ...]:
    """The live versions with their formats, newest first. Raises SubjectNotFound."""
    rows = live(get_subject(registry, subject).versions.all()).order_by("-version")
    return tuple(rows.values_list("version", "schema__schema_type"))


def load_for_trial(registry: Registry, subject: SubjectName, versions: Sequence[int]) -> TrialVersions:
    """Live versions of one format. Raises SubjectNotFound, VersionNotFound, InvalidInput for two formats."""
    rows = list(
        live(get_subject(registry, subject).versions.filter(version__in=versions))
        .select_related("schema")
        .order_by("version")
    )
    missing = sorted(set(versions) - {row.version for row in rows})
    if missing:
        raise VersionNotFound(f"Version {missing[0]} not found.", version=missing[0])
    if len({row.schema.schema_type for row in rows}) > 1:
        raise InvalidInput("The versions are of two formats: data of one can't be read as the other.")
    parsed = parse_stored([row.schema for row in rows])
    return TrialVersions({row.version: schema for row, schema in zip(rows, parsed, strict=True)})
