"""Which registries have which versions of a subject, and what each version changed."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from registry.formats.base import Difference, OutlineField, ParsedSchema
from registry.subjects import engines
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.names import SubjectName
from registry.subjects.selectors.comparison import history, stored_version
from registry.subjects.selectors.places import get_subject

#: how the kinds of differences are counted in a version's one-line summary
KIND_WORDS = {
    "added": "{} added",
    "removed": "{} removed",
    "changed": "{} changed",
    "renamed": "{} renamed",
    "moved": "{} moved",
}


@dataclass(frozen=True)
class SubjectPresence:
    """Registry name → live version → fingerprint, over the registries of one project and location."""

    held: dict[str, dict[int, str]] = field(default_factory=dict)

    def registries_with(self, fingerprint: str) -> set[str]:
        """The registries that have a live version of that content."""
        return {name for name, versions in self.held.items() if fingerprint in versions.values()}

    def version_with(self, registry: str, fingerprint: str) -> int | None:
        """The newest version of a registry with that content."""
        found = [version for version, other in self.held.get(registry, {}).items() if other == fingerprint]
        return max(found, default=None)


@dataclass(frozen=True)
class VersionSummary:
    """What a version changed against the live one before it, and whether it reads that one's data."""

    previous: int
    sentence: str
    is_compatible: bool


def presence_of(registry: Registry, subject: SubjectName) -> SubjectPresence:
    """Where the subject is; one query."""
    rows = SchemaVersion.objects.filter(
        subject__context__registry__project=registry.project,
        subject__context__registry__location=registry.location,
        subject__context__name=subject.context,
        subject__name=subject.subject,
        deleted_at=None,
    ).values_list("subject__context__registry__name", "version", "schema__fingerprint")
    held: dict[str, dict[int, str]] = {}
    for name, version, fingerprint in rows:
        held.setdefault(name, {})[version] = fingerprint
    return SubjectPresence(held)


def summarize_versions(registry: Registry, subject: SubjectName) -> dict[int, VersionSummary]:
    """A summary for each live version but the first. Raises SubjectNotFound."""
    versions = history(get_subject(registry, subject, deleted=True))
    summaries = {}
    for (number, before), (following, after) in itertools.pairwise(versions):
        if before.schema_type != after.schema_type:
            sentence = f"{before.schema_type} became {after.schema_type}"
            summaries[following] = VersionSummary(number, sentence, is_compatible=False)
            continue
        told = engines.of_pair(before, after, _Told, partial(_told, before, after))
        summaries[following] = VersionSummary(number, told.sentence, told.is_compatible)
    return summaries


@dataclass(frozen=True)
class _Told:
    """What a summary says of two schemas, whatever versions they are of."""

    sentence: str
    is_compatible: bool
    weight: int = 1


def _told(before: ParsedSchema, after: ParsedSchema) -> _Told:
    report = engines.check(after, [(1, before)], "BACKWARD")
    return _Told(_sentence(engines.diff(before, after)), report.is_compatible)


def _sentence(differences: tuple[Difference, ...]) -> str:
    counts = Counter[str](difference.kind for difference in differences)
    return ", ".join(words.format(counts[kind]) for kind, words in KIND_WORDS.items() if counts[kind]) or "no change"


def outline_of(registry: Registry, subject: SubjectName, version: int) -> tuple[OutlineField, ...]:
    """The fields of a version, nested ones after their parent. Raises SubjectNotFound, VersionNotFound."""
    _, schema = stored_version(registry, subject, version, deleted=True)
    return engines.outline(schema)


def field_origins(registry: Registry, subject: SubjectName) -> dict[str, int]:
    """The path of every field that a live version has, with the version that brought it (back)."""
    origins: dict[str, int] = {}
    for number, schema in history(get_subject(registry, subject, deleted=True)):
        paths = [field.path for field in engines.outline(schema)]
        origins = {path: origins.get(path, number) for path in paths}
    return origins
