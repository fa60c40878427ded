"""The input and output types of the judge. Times are milliseconds since 1970 in UTC."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from registry.drift.evidence import make_evidence
from registry.drift.judge.declared_fields import DeclaredFields
from registry.drift.rules import RULES, Severity
from registry.observations import Framing, MessageGroup, Side

DEFAULT_CONTEXT = "."
GRACE: Final = 7 * 24 * 60 * 60 * 1000  # time for producers to move to a newer version or leave an old form
_UNSTORABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
HOUR_MS: Final = 3_600_000
MOST_HOURS: Final = 5 * 7 * 24  # of a topic's volume
#: how a message names its schema: where, and the text
Mark = tuple[Framing, str]
#: a topic's keys or values
TopicSide = tuple[str, Side]


@dataclass(frozen=True)
class RegisteredVersion:
    """A version that a mark names.

    `subject` is the qualified name. `released` is whether a promotion brought it to this environment, None if the
    registry isn't a target of promotions. `record` is the full name of its record or first message, if known.
    `status` is empty if active, else `deprecated`, `retired`, `quarantined` or `versions.BELOW`, with its start, the
    end of its use (0: none) and the reason. `minimum_version` is the subject's, for a version below it.
    """

    subject: str
    version: int
    deleted: bool = False
    schema_id: int = 0
    released: bool | None = None
    registered_at: int = 0
    registered_by: str = ""
    channel: str = ""
    schema_type: str = ""
    fingerprint: str = ""
    guid: str = ""
    record: str = ""
    status: str = ""
    status_since: int = 0
    status_until: int = 0
    status_message: str = ""
    minimum_version: int = 0


@dataclass(frozen=True)
class SubjectSummary:
    """A subject of the source's context: its qualified name, the number of its live versions, and since when."""

    name: str
    live: int
    since: int = 0


@dataclass(frozen=True)
class Event:
    """A version added to a subject, as a possible cause of drift."""

    at: int
    sentence: str
    subject: str


@dataclass(frozen=True)
class Registered:
    """What the registry has for a source: what was declared and registered, as opposed to observed.

    `versions` has the versions of every mark that this or an earlier scan saw, in the source's context (for a GUID, in
    any), `elsewhere` those of other contexts. `subjects` are all subjects of the context, by name without it.
    `histories` are all versions, ascending, of the topics' possible subjects, by qualified name; `declared` has the
    fields of their versions by subject and version. `associated` are subjects explicitly associated with a topic.
    `events` are recent changes.
    """

    registry: str
    context: str = DEFAULT_CONTEXT
    versions: Mapping[Mark, tuple[RegisteredVersion, ...]] = field(default_factory=dict)
    elsewhere: Mapping[Mark, tuple[RegisteredVersion, ...]] = field(default_factory=dict)
    subjects: Mapping[str, SubjectSummary] = field(default_factory=dict)
    histories: Mapping[str, tuple[RegisteredVersion, ...]] = field(default_factory=dict)
    declared: Mapping[tuple[str, int], DeclaredFields] = field(default_factory=dict)
    associated: Mapping[TopicSide, tuple[str, ...]] = field(default_factory=dict)
    events: tuple[Event, ...] = ()

    @cached_property
    def subjects_of_mark(self) -> dict[tuple[str, str], list[str]]:
        """Return the subjects of every known mark, including versions that this scan didn't see."""
        subjects: dict[tuple[str, str], list[str]] = {}
        for subject, history in self.histories.items():
            for version in history:
                subjects.setdefault(("id", str(version.schema_id)), []).append(subject)
                if version.guid:
                    subjects.setdefault(("guid", version.guid), []).append(subject)
        for mark, versions in self.versions.items():
            if versions:
                subjects.setdefault(mark, [versions[0].subject])
        return subjects

    @cached_property
    def marks_of_subject(self) -> dict[str, set[tuple[str, str]]]:
        """Return the inverse of `subjects_of_mark`."""
        marks: dict[str, set[tuple[str, str]]] = {}
        for mark, subjects in self.subjects_of_mark.items():
            for subject in subjects:
                marks.setdefault(subject, set()).add(mark)
        return marks


@dataclass(frozen=True)
class TopicVolume:
    """Messages of a topic by hour, from hour `start` since 1970 on, and up to which offset they count.

    `since` is the hour of the last scan before. The last hour isn't over yet.
    """

    start: int
    hours: tuple[int, ...]
    end: int
    since: int = 0

    @property
    def now(self) -> int:
        """Return the hour that isn't over yet."""
        return self.start + len(self.hours) - 1

    def between(self, first: int, last: int) -> int | None:
        """Return the messages of hours `first` up to before `last`; None if they aren't all known."""
        if not self.start < first <= last <= self.now:  # the first hour has only a part
            return None
        return sum(self.hours[first - self.start : last - self.start])

    def with_scan(self, end: int, before_ms: int, now_ms: int) -> TopicVolume:
        """Return the volume with the offsets since the last scan, evenly by hour; it starts again if offsets went back."""
        since, now = before_ms // HOUR_MS, now_ms // HOUR_MS
        if end < self.end or now < self.now or not self.hours:
            return TopicVolume(now, (0,), end, now)
        hours = [*self.hours, *[0] * (now - self.now)]
        begin, whole, placed = max(before_ms, self.start * HOUR_MS), max(1, now_ms - before_ms), 0
        for hour in range(max(since, self.start), now + 1):
            upto = min(now_ms, (hour + 1) * HOUR_MS) - begin
            share = (end - self.end) * max(0, upto) // whole
            hours[hour - self.start] += share - placed
            placed = share
        kept = hours[-MOST_HOURS:]
        return TopicVolume(now - len(kept) + 1, tuple(kept), end, since)


@dataclass(frozen=True)
class TopicMemory:
    """A topic as earlier scans and the cluster describe it.

    `compacted` is None if the cluster doesn't say. `message_types` are Protobuf's by side, subject and full name, with the first and last time they were seen.
    `volume` includes the messages since the last scan; None if the cluster didn't say how many there are. `subjects`
    are those of its values.
    """

    compacted: bool | None = False
    gone: bool = False
    strategies: Mapping[Side, tuple[str, ...]] = field(default_factory=dict)
    message_types: Mapping[Side, Mapping[str, Mapping[str, tuple[int, int]]]] = field(default_factory=dict)
    volume: TopicVolume | None = None
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True)
class MarkUse:
    """Messages of a topic with a mark, over all earlier scans and partitions."""

    topic: str
    side: Side
    framing: Framing
    mark: str
    messages: int
    first_time: int
    last_time: int


@dataclass(frozen=True, order=True)
class FieldKey:
    """A field in a topic's messages with one mark; framing and mark are empty for JSON without a schema."""

    topic: str
    side: Side
    framing: str
    mark: str
    path: str


@dataclass(frozen=True)
class FieldDay:
    """A field on one day, `day` as `2026-11-21`; the counts are those of registry.observations.FieldProfile.

    `minimum` and `maximum` are masked; empty if unknown.
    """

    day: str
    messages: int
    present: int
    nulls: int
    kinds: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, int] = field(default_factory=dict)
    distinct: int | None = None
    minimum: str = ""
    maximum: str = ""


@dataclass(frozen=True)
class Cause:
    """The most likely cause of a finding: a sentence, and the title of the findings that share it; empty: unknown.

    `subject` is the one whose version it names.
    """

    sentence: str = ""
    group: str = ""
    subject: str = ""


@dataclass(frozen=True)
class KnownFinding:
    """An unresolved finding of an earlier scan: its cause, and when it was first seen."""

    cause: Cause = Cause()
    since: int = 0


@dataclass(frozen=True)
class Memory:
    """The results of a source's earlier scans.

    `as_of` is the time of the judgement. `topics` are the source's; `all_topics` are the existing ones of every source
    with the registry and context; `discovered` is whether they were ever listed. `include` and `exclude` are the
    source's patterns. `findings` are the unresolved ones by fingerprint; `accepted` has since when those last that a person
    acknowledged without an end: what they report is the usual from then on.
    """

    as_of: int = 0
    topics: Mapping[str, TopicMemory] = field(default_factory=dict)
    all_topics: frozenset[str] = frozenset()
    discovered: bool = False
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    uses: tuple[MarkUse, ...] = ()
    baselines: Mapping[FieldKey, tuple[FieldDay, ...]] = field(default_factory=dict)
    findings: Mapping[str, KnownFinding] = field(default_factory=dict)
    accepted: Mapping[str, int] = field(default_factory=dict)

    def is_recent(self, time: int) -> bool:
        """Return whether something last seen then still counts."""
        return time > self.as_of - GRACE

    @cached_property
    def uses_of_side(self) -> dict[TopicSide, list[MarkUse]]:
        """Return the uses of each topic's side."""
        uses: dict[TopicSide, list[MarkUse]] = {}
        for use in self.uses:
            uses.setdefault((use.topic, use.side), []).append(use)
        return uses

    @cached_property
    def baselines_of_side(self) -> dict[TopicSide, list[tuple[FieldKey, tuple[FieldDay, ...]]]]:
        """Return the baselines of each topic's side, sorted by key."""
        baselines: dict[TopicSide, list[tuple[FieldKey, tuple[FieldDay, ...]]]] = {}
        for key in sorted(self.baselines):
            baselines.setdefault((key.topic, key.side), []).append((key, self.baselines[key]))
        return baselines


@dataclass(frozen=True)
class OffendingMessages:
    """Messages of a finding in one partition: first and last offsets without others in between.

    If they aren't known, `group` says which messages they are.
    """

    partition: int
    ranges: tuple[tuple[int, int], ...] = ()
    group: MessageGroup | None = None


@dataclass(frozen=True)
class JudgedFinding:
    """A judgement: `fingerprint` is stable from scan to scan, `count` is messages (or 1), `evidence` is JSON.

    `topic` is a topic's name or empty, `subject` a qualified subject or empty, `cause` the most likely cause.
    `cause_group` is the same text for all findings that probably have one cause; empty for a finding on its own.
    `offending` is empty if the offsets of its messages aren't known.
    """

    rule: str
    severity: Severity
    fingerprint: str
    sentence: str
    remedy: str
    location: str
    count: int
    evidence: dict[str, Any]
    topic: str = ""
    subject: str = ""
    cause: str = ""
    cause_group: str = ""
    cause_subject: str = ""
    offending: tuple[OffendingMessages, ...] = ()


def fingerprint_of(rule: str, identity: Sequence[str]) -> str:
    """Return the SHA-256 of a rule and an identity that is stable from scan to scan."""
    return hashlib.sha256("\x1f".join((RULES[rule].first_id, *identity)).encode("utf-8", "surrogatepass")).hexdigest()


def storable(value: Any) -> Any:
    """Replace control characters and lone surrogates in a JSON value's texts.

    Names come from the data, and PostgreSQL's JSON accepts neither NUL nor lone surrogates.
    """
    if isinstance(value, str):
        return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, Mapping):
        return {storable(name): storable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value


MOST_LISTED: Final = 100


def listing(name: str, values: Sequence[Any], most: int = MOST_LISTED) -> dict[str, Any]:
    """Return a list as evidence: the first `most` items, and in `not_listed` the number of the others."""
    more = {"not_listed": len(values) - most} if len(values) > most else {}
    return {name: list(values[:most]), **more}


def make_finding(
    rule: str,
    names: Mapping[str, Any],
    identity: Sequence[str],
    *,
    location: str,
    evidence: Mapping[str, Any],
    count: int = 1,
    severity: Severity | None = None,
    topic: str = "",
    subject: str = "",
    cause: Cause = Cause(),  # frozen
) -> JudgedFinding:
    """Return a finding of a rule: `names` fill its templates, `identity` is stable from scan to scan.

    `topic` is set if the topic's messages prove the finding: it then resolves after clean scans that read messages. A
    finding without a topic resolves without messages.
    """
    row = RULES[rule]
    return JudgedFinding(
        rule=rule,
        severity=severity or row.severity,
        fingerprint=fingerprint_of(rule, identity),
        sentence=storable(row.sentence.format_map(names).strip()),
        remedy=storable(row.remedy.format_map(names).strip()),
        location=storable(location),
        count=max(1, count),
        evidence=storable(make_evidence(rule, evidence)),
        topic=topic,
        subject=subject,
        cause=cause.sentence,
        cause_group=storable(row.group.format_map(names) or cause.group),
        cause_subject=cause.subject,
    )
