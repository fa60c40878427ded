"""Which registries have which versions of a subject, and what each version changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from typing import Final

from registry.access.roles import Actor, may
from registry.formats.base import Difference, OutlineField, ParsedSchema
from registry.formats.compatibility import level_named
from registry.formats.report import Profile
from registry.subjects.comparison.comparison import LENIENT_POLICY, stored_version
from registry.subjects.comparison.parsed_versions import UNREADABLE, Reading
from registry.subjects.engine import schema_engine
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.policy.data_contracts import property_of
from registry.subjects.policy.effective_policy import NO_POLICY, EffectiveConfig, OwnConfig
from registry.subjects.versions.qualified_names import SubjectName

#: how the kinds of differences are counted in a version's one-line summary
KIND_WORDS = {
    "added": "{} added",
    "removed": "{} removed",
    "changed": "{} changed",
    "renamed": "{} renamed",
    "moved": "{} moved",
}
#: why a version isn't checked
NOT_ASKED: Final = "not checked under this level"
FIRST_OF_GROUP: Final = "first in its group"
NOT_READ: Final = "can't be read"


@dataclass(frozen=True)
class Arrival:
    """A version in a registry: its schema id there, and since when."""

    schema_id: int
    since: datetime


@dataclass(frozen=True)
class SubjectPresence:
    """Registry name → live version → fingerprint, over the registries of one project and location.

    `arrivals` has each version's schema id and time.
    """

    fingerprints: dict[str, dict[int, str]] = field(default_factory=dict)
    arrivals: dict[tuple[str, int], Arrival] = field(default_factory=dict)

    def version_with(self, registry: str, fingerprint: str) -> int | None:
        """Return the newest version of a registry with that content."""
        return self._newest.get(registry, {}).get(fingerprint)

    def visible_to(self, by: Actor, subject: SubjectName) -> SubjectPresence:
        """Return the part that `by` may read; a registry with an unreadable subject looks like one without it."""
        name = subject.qualified
        readable = {
            registry: versions
            for registry, versions in self.fingerprints.items()
            if may(by, "schema.read", registry=registry, subject=name)
        }
        return SubjectPresence(readable, {key: arrival for key, arrival in self.arrivals.items() if key[0] in readable})

    @cached_property
    def _newest(self) -> dict[str, dict[str, int]]:
        """Registry → content → the newest version with it."""
        return {
            registry: {fingerprint: version for version, fingerprint in sorted(versions.items())}
            for registry, versions in self.fingerprints.items()
        }


@dataclass(frozen=True)
class VersionSummary:
    """What a version changed from the live one before it, and whether the current settings would have accepted it.

    It is checked as a registration is, against version `against`: the previous one, or the previous one in its group if
    the settings name a group. `is_compatible` is None if nothing was checked, for the reason `unjudged`; `problem` is
    the error from reading or comparing.
    """

    previous: int
    sentence: str
    is_compatible: bool | None = None
    against: int | None = None
    unjudged: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Terms:
    """The effective settings that a registration is checked by; the cache key of a verdict on two schemas."""

    level: str
    profile: Profile
    lenient: bool
    policy: str

    @property
    def asks_nothing(self) -> bool:
        """Whether any schema is accepted."""
        return not level_named(self.level).directions and self.policy == NO_POLICY


def terms_of(config: EffectiveConfig, settings: OwnConfig) -> Terms:
    """Return the terms of a subject's settings."""
    lenient = settings.compatibility_policy == LENIENT_POLICY
    return Terms(config.level, config.profile, lenient=lenient, policy=config.policy)


def is_registered(registry: Registry, subject: SubjectName) -> bool:
    """Return whether the registry has a version of the subject, even a soft-deleted one, and so a page; one query."""
    return SchemaVersion.objects.filter(
        subject__context__registry=registry, subject__context__name=subject.context, subject__name=subject.subject
    ).exists()


def presence_of(registry: Registry, subject: SubjectName) -> SubjectPresence:
    """Return the subject's versions in every registry; one query."""
    rows = SchemaVersion.objects.filter(
        subject__context__registry__project=registry.project,
        subject__context__registry__location=registry.location,
        subject__context__name=subject.context,
        subject__name=subject.subject,
        deleted_at=None,
    ).values_list(
        "subject__context__registry__name", "version", "schema__fingerprint", "schema__schema_id", "created_at"
    )
    fingerprints: dict[str, dict[int, str]] = {}
    arrivals = {}
    for name, version, fingerprint, schema_id, since in rows:
        fingerprints.setdefault(name, {})[version] = fingerprint
        arrivals[name, version] = Arrival(schema_id, since)
    return SubjectPresence(fingerprints, arrivals)


def summarize_versions(
    readings: Sequence[Reading], config: EffectiveConfig, settings: OwnConfig, *, of: Collection[int] | None = None
) -> dict[int, VersionSummary]:
    """Return a summary for each live version but the first, or only for those of `of`, under the effective settings.

    No query. For each of these, the readings include the live version before it, and the one before it in its group.
    """
    terms, group = terms_of(config, settings), settings.compatibility_group
    return {
        reading.version: _summary(readings[position - 1], _peer(readings[:position], reading, group), reading, terms)
        for position, reading in enumerate(readings)
        if position and (of is None or reading.version in of)
    }


def _peer(before: Sequence[Reading], reading: Reading, group: str | None) -> Reading | None:
    """Return the version that a registration compares with: the previous one, in its group if there are groups."""
    if not group:
        return before[-1]
    value = property_of(reading.metadata, group)
    return next((other for other in reversed(before) if property_of(other.metadata, group) == value), None)


def _summary(before: Reading, peer: Reading | None, after: Reading, terms: Terms) -> VersionSummary:
    sentence, unsaid = _change_sentence(before, after)
    is_compatible, unjudged, unread = _judged(peer, after, terms)
    return VersionSummary(
        previous=before.version,
        sentence=sentence,
        is_compatible=is_compatible,
        against=peer.version if peer else None,
        unjudged=unjudged,
        problem=unsaid or unread,
    )


def _change_sentence(before: Reading, after: Reading) -> tuple[str, str]:
    """Return what changed in words; or "", and the error from reading or comparing."""
    if before.schema is None or after.schema is None:
        return "", _unread(before, after)
    if before.schema_type != after.schema_type:
        return f"{before.schema_type} became {after.schema_type}", ""
    try:
        change = schema_engine.of_pair(
            before.schema, after.schema, _ChangeSentence, partial(_changes, before.schema, after.schema)
        )
    except UNREADABLE as error:
        return "", error.placed
    return change.sentence, ""


def _judged(peer: Reading | None, after: Reading, terms: Terms) -> tuple[bool | None, str, str]:
    """Return whether the version would be accepted after the other; or None, the reason, and the error."""
    if terms.asks_nothing:
        return None, NOT_ASKED, ""
    if peer is None:
        return None, FIRST_OF_GROUP, ""
    if peer.schema is None or after.schema is None:
        return None, NOT_READ, _unread(peer, after)
    try:
        verdict = schema_engine.of_pair(
            peer.schema, after.schema, terms, partial(_verdict, peer.schema, after.schema, terms)
        )
    except UNREADABLE as error:
        return None, NOT_READ, error.placed
    return verdict.is_accepted, "", ""


def _unread(*readings: Reading) -> str:
    """Return the first one that can't be read, and why."""
    unreadable = next(reading for reading in readings if reading.schema is None)
    return f"Version {unreadable.version} can't be read: {unreadable.error.placed if unreadable.error else ''}"


@dataclass(frozen=True)
class _ChangeSentence:
    """What changed between two schemas, in one line; independent of settings."""

    sentence: str
    weight: int = 1


@dataclass(frozen=True)
class _Verdict:
    """Whether one schema is accepted after another, under certain terms."""

    is_accepted: bool
    weight: int = 1


def _changes(before: ParsedSchema, after: ParsedSchema) -> _ChangeSentence:
    return _ChangeSentence(_sentence(schema_engine.diff(before, after)))


def _verdict(before: ParsedSchema, after: ParsedSchema, terms: Terms) -> _Verdict:
    history = [(1, before)]
    report = schema_engine.check(after, history, terms.level, profile=terms.profile, lenient=terms.lenient)
    if not report.is_compatible or terms.policy == NO_POLICY:
        return _Verdict(report.is_compatible)
    return _Verdict(schema_engine.check_policy(terms.policy, after, history).is_accepted())


def _sentence(differences: tuple[Difference, ...]) -> str:
    counts = Counter[str](difference.kind for difference in differences)
    return ", ".join(phrase.format(counts[kind]) for kind, phrase in KIND_WORDS.items() if counts[kind]) or "no change"


def outline_of(registry: Registry, subject: SubjectName, version: int | None) -> tuple[OutlineField, ...]:
    """Return the fields of a version or (None) of the newest live one, nested ones after their parent.

    Raises SubjectNotFound, VersionNotFound, and InvalidSchema, InvalidReference or Unavailable if it can't be read.
    """
    _, schema = stored_version(registry, subject, version, deleted=version is not None)
    return schema_engine.outline(schema)
