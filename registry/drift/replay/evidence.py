"""Evidence from data for a proposed schema: field statistics and a replay next to a compatibility report.

Evidence never changes a verdict: it is shown next to it, with the number and the age of the messages behind it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final, Literal

from django.db.models import Exists, F, Max, Min, Q, QuerySet, Sum
from django.utils import timezone

from registry.access.roles import Actor, require
from registry.drift.models import FieldStatistic, Topic
from registry.drift.replay.schema_replay import DEFAULT_MESSAGES, ReplayReport, replay_proposal, side_of, topics_of
from registry.drift.usage.version_usage import Coverage
from registry.errors import SubjectNotFound, VersionNotFound
from registry.formats import DEFAULT_FORMAT, FORMATS
from registry.formats.assessment import Assessment
from registry.formats.base import Reference
from registry.formats.report import ReportItem
from registry.subjects.comparison.comparison import report_proposal
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.versions.one_version import get_version
from registry.subjects.versions.qualified_names import SubjectName

Weight = Literal["on_paper", "confirmed", "contradicted", "unproved", "partly"]


@dataclass(frozen=True)
class ReportFinding:
    """A finding of a report: its rule, path, severity (`break`, `value loss`, `warning`) and direction.

    `writes` is the writer's type there, if the report names it.
    """

    rule: str
    path: str
    severity: str
    direction: str = "BACKWARD"
    against_version: int = 0
    writes: str = ""


@dataclass(frozen=True)
class FieldTotals:
    """A field's totals from scans: `present` of `messages` had it, `nulls` of them null."""

    path: str
    messages: int
    present: int
    nulls: int
    first_day: date | None = None
    last_day: date | None = None

    @property
    def filled(self) -> int:
        """Return the messages in which the field had a value."""
        return max(0, self.present - self.nulls)


@dataclass(frozen=True)
class ReplayTotals:
    """A replay in numbers: `tried` messages, of which `failed` weren't read.

    `losses` are messages by path with a filled value that is no longer read, `changes` those with a different value.
    `first_failure` is its position and reason as text. `unchecked` are messages with a value that weren't tried, by
    reason.
    """

    topic: str
    tried: int
    failed: int
    first_failure: str = ""
    losses: tuple[tuple[str, int], ...] = ()
    changes: tuple[tuple[str, int], ...] = ()
    unchecked: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class EvidenceLine:
    """What data shows about a finding, or about the whole report (`path` and `rule` empty)."""

    weight: Weight
    sentence: str
    rule: str = ""
    path: str = ""


#: rules that only matter if the field has a value
NEEDS_A_VALUE: Final = frozenset(
    {
        "TYPE_CHANGED", "TYPE_NARROWED", "NAME_CHANGED", "FIXED_SIZE_CHANGED", "ENUM_SYMBOL_MISSING",
        "ENUM_SYMBOL_DEFAULTED", "WIDENING_LOSES_PRECISION", "LOGICAL_TYPE_REINTERPRETED", "BYTES_READ_AS_STRING",
        "FIELD_KIND_CHANGED", "FIELD_SCALAR_KIND_CHANGED", "FIELD_NAMED_TYPE_CHANGED", "FIELD_NUMERIC_LABEL_CHANGED",
        "WIRE_TYPE_CHANGED", "VALUE_NARROWED", "REPEATED_READ_AS_SINGLE", "FIELD_RENUMBERED", "NUMBER_REUSED",
        "ONEOF_FIELD_REMOVED", "ENUM_VALUE_MISSING", "CLOSED_ENUM_VALUE_MISSING", "ENUM_VALUE_RENUMBERED",
        "ENUM_CLOSED", "KNOWN_TYPE_REINTERPRETED",
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    }
)  # fmt: skip
#: rules that only matter if the field is null
NEEDS_A_NULL: Final = frozenset({"NULL_NOT_ACCEPTED"})
#: rules of a union that matter if the field has the type that the reader lacks, which may be null
MISSES_A_BRANCH: Final = frozenset({"UNION_BRANCH_MISSING"})
#: rules for the old schema reading new data: a field that consumers require and nobody writes any more
REMOVED: Final = frozenset({"FIELD_WITHOUT_DEFAULT", "REQUIRED_FIELD_REMOVED", "REQUIRED_FIELD_ADDED"})
_STEP: Final = re.compile(r"\[[^\]]*\]|\{[^}]*\}")


def evidence_for(
    findings: Sequence[ReportFinding], fields: Sequence[FieldTotals], replay: ReplayTotals | None = None
) -> tuple[EvidenceLine, ...]:
    """Return the lines of evidence: one per finding that data says something about, then the replay's.

    Statistics describe existing data: how the new schema reads it, and fields that it removes.
    """
    by_steps = {steps_of(item.path): item for item in fields}
    lines = []
    for finding in {(item.rule, item.path, item.direction, item.writes): item for item in findings}.values():
        line = _of_finding(finding, by_steps.get(below_root(finding.path)), replay)
        if line is not None:
            lines.append(line)
    if replay is not None:
        lines.append(_of_replay(findings, replay))
        lines += _changes(replay)
    return tuple(dict.fromkeys(lines))


def below_root(path: str) -> str:
    """Return a schema's path without the root, indexes and keys: `Order.items[].price` → `items.price`."""
    return steps_of(path).partition(".")[2]


def steps_of(path: str) -> str:
    """Return a path of the data without indexes and keys."""
    return _STEP.sub("", path)


def findings_of(items: Iterable[Any]) -> tuple[ReportFinding, ...]:
    """Return the findings of a report's items (`registry.formats.report.ReportItem`)."""
    return tuple(
        ReportFinding(
            item.rule,
            item.named_path,
            item.severity,
            item.direction,
            item.against_version,
            item.before if isinstance(item.before, str) else "",
        )
        for item in items
    )


def _of_finding(finding: ReportFinding, field: FieldTotals | None, replay: ReplayTotals | None) -> EvidenceLine | None:
    if field is not None and field.messages:
        line = _of_field(finding, field)
        if line is not None:
            return line
    lost = _counted(replay.losses if replay else (), finding.path)
    if replay is None or not lost or finding.direction != "BACKWARD":
        return None
    share = f"{_share(lost, replay.tried)} of {_many(replay.tried)}"
    return _line("confirmed", finding, f"{finding.path} loses its value in {share}.")


def _of_field(finding: ReportFinding, field: FieldTotals) -> EvidenceLine | None:
    word = "Breaking" if finding.severity == "break" else "A risk"
    of = _many(field.messages) + (f" since {field.first_day:%Y-%m-%d}" if field.first_day else "")
    state = "null" if field.present else "absent"
    if finding.direction == "FORWARD":
        if finding.rule not in REMOVED:
            return None
        if field.filled == 0:
            sentence = (
                f"{word} in theory: {finding.path} is {state} in all {of}. No consumer has received a value from it."
            )
            return _line("on_paper", finding, sentence)
        sentence = (
            f"{finding.path} is filled in {_share(field.filled, field.messages)} of {of}: consumers do receive it."
        )
        return _line("confirmed", finding, sentence)
    if finding.rule in MISSES_A_BRANCH and finding.writes != "null":
        if field.filled == 0:
            return _line("on_paper", finding, f"{word} in theory: {finding.path} is {state} in all {of}.")
        share = _share(field.filled, field.messages)
        return _line(
            "partly", finding, f"{finding.path} is filled in {share} of {of}; scans don't record with which type."
        )
    if finding.rule in NEEDS_A_VALUE:
        if field.filled == 0:
            return _line("on_paper", finding, f"{word} in theory: {finding.path} is {state} in all {of}.")
        return _line(
            "confirmed", finding, f"{finding.path} is filled in {_share(field.filled, field.messages)} of {of}."
        )
    if finding.rule in NEEDS_A_NULL | MISSES_A_BRANCH:
        if field.nulls == 0:
            return _line("on_paper", finding, f"{word} in theory: {finding.path} is never null in {of}.")
        return _line("confirmed", finding, f"{finding.path} is null in {_share(field.nulls, field.messages)} of {of}.")
    return None


def _of_replay(findings: Sequence[ReportFinding], replay: ReplayTotals) -> EvidenceLine:
    is_breaking = any(item.severity == "break" and item.direction == "BACKWARD" for item in findings)
    unchecked = _unchecked(replay)
    if replay.tried == 0:
        none = f"No message of {replay.topic} could be replayed, so the replay proves nothing."
        return EvidenceLine("unproved", none + unchecked)
    of = f"{'the' if unchecked else 'the last'} {_many(replay.tried)} of {replay.topic}"
    if unchecked:
        of += " that were checked"
    if replay.failed == 0:
        reads = f"the new schema reads all of {of}.{unchecked}"
        if is_breaking:
            return EvidenceLine("partly" if unchecked else "on_paper", f"Breaking in theory: {reads}")
        return EvidenceLine("partly" if unchecked else "confirmed", reads[:1].upper() + reads[1:])
    first = f" First failure: {replay.first_failure}" if replay.first_failure else ""
    share = f"{_share(replay.failed, replay.tried)} of {of} would fail.{unchecked}{first}"
    return EvidenceLine(
        *(("confirmed", share) if is_breaking else ("contradicted", f"Compatible in theory, but {share}"))
    )


def _unchecked(replay: ReplayTotals) -> str:
    """Return a sentence about messages that the replay didn't check: they are neither read nor failures."""
    parts = [f"{_many(number)} {reason}" for reason, number in replay.unchecked if number]
    return f" Not checked: {', '.join(parts)}." if parts else ""


def _changes(replay: ReplayTotals) -> list[EvidenceLine]:
    """Return lines about values that are read differently from what was written."""
    lines = []
    for counted, outcome in ((replay.losses, "is no longer read"), (replay.changes, "is read as a different value")):
        for path, count in counted:
            share = _share(count, replay.tried)
            lines.append(
                EvidenceLine("confirmed", f"{path}: a value {outcome} in {share} of {_many(replay.tried)}.", path=path)
            )
    return lines


def _line(weight: Weight, finding: ReportFinding, sentence: str) -> EvidenceLine:
    return EvidenceLine(weight, sentence, finding.rule, finding.path)


def _counted(counted: Iterable[tuple[str, int]], path: str) -> int:
    return next((count for other, count in counted if steps_of(other) == steps_of(path)), 0)


def _many(messages: int) -> str:
    """Return a number of messages as text, such as `2.1 million messages`."""
    if messages == 1:
        return "1 message"
    if messages >= 1_000_000:
        return f"{messages / 1_000_000:.1f} million messages"
    return f"{messages:,} messages"


def _share(count: int, of: int) -> str:
    """Return a share in per cent, never rounded to none or all."""
    per_cent = 100 * count / of if of else 0.0
    if 0 < per_cent < 0.1:
        return "less than 0.1 %"
    if 99.9 < per_cent < 100:
        return "more than 99.9 %"
    return f"{per_cent:.1f} %".replace(".0 %", " %")


DAYS: Final = 30
MAX_PATHS: Final = 5_000
#: the level whose findings are weighed: all versions, both directions
_ALL: Final = "FULL_TRANSITIVE"


@dataclass(frozen=True)
class WeighedReplay:
    """A replay with its evidence next to the report, and the topics that carry the subject."""

    replay: ReplayReport
    evidence: tuple[EvidenceLine, ...]
    carriers: tuple[Coverage, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the replay as JSON values."""
        return {**self.replay.to_dict(), "evidence": [vars(line) for line in self.evidence]}


def replay_and_weigh(
    registry: Registry,
    subject: SubjectName,
    *,
    by: Actor,
    text: str = "",
    schema_type: str = "",
    references: Sequence[Reference] = (),
    version: int | str = "",
    topic: str = "",
    messages: int = DEFAULT_MESSAGES,
) -> WeighedReplay:
    """Replay a text or a version, weighed with its report. Raises the errors of `replay_proposal`.

    A text without a type has the type of the subject's newest version.
    """
    if not text:
        info = get_version(registry, subject, version or "latest", deleted=True)
        text, schema_type, references = info.schema.text, info.schema.schema_type, info.schema.references
    elif not schema_type:
        with suppress(SubjectNotFound, VersionNotFound):
            schema_type = get_version(registry, subject, "latest", deleted=True).schema.schema_type
    schema_type = schema_type or DEFAULT_FORMAT
    carriers = topics_of(registry, subject)
    replayed = replay_proposal(
        registry,
        subject,
        by=by,
        text=text,
        schema_type=schema_type,
        references=references,
        topic=topic,
        messages=messages,
        carriers=carriers,
    )
    proposal = report_proposal(registry, subject, text=text, schema_type=schema_type, references=references, by=by)
    lines = evidence_lines(registry, subject, proposal.assessment, replayed, by=by, carriers=carriers)
    return WeighedReplay(replayed, lines, carriers)


def evidence_lines(
    registry: Registry,
    subject: SubjectName,
    assessment: Assessment,
    replay: ReplayReport | None = None,
    *,
    by: Actor,
    carriers: Sequence[Coverage] | None = None,
) -> tuple[EvidenceLine, ...]:
    """Return the evidence of the last weeks' data, and of a replay if given, for a report.

    Four queries, one if `carriers` (from `topics_of`) are given. Raises NotAllowed.
    """
    items = assessment.strip.reports[_ALL].items
    return lines_of_items(registry, subject, items, replay, by=by, carriers=carriers)


def lines_of_items(
    registry: Registry,
    subject: SubjectName,
    items: Sequence[ReportItem],
    replay: ReplayReport | None = None,
    *,
    by: Actor,
    carriers: Sequence[Coverage] | None = None,
) -> tuple[EvidenceLine, ...]:
    """Return the same for the findings of any report."""
    require(by, "schema.read", registry=registry.name, subject=subject.qualified)
    fields = fields_seen(registry, subject, carriers)
    if not fields and replay is None:
        return ()
    return evidence_for(findings_of(items), fields, seen_of(replay) if replay else None)


def scanned_by(registry: Registry, subject: SubjectName) -> int | None:
    """Return the source of the subject's topic that was checked longest ago; None if no source has one."""
    own = [item.topic_id for item in topics_of(registry, subject) if item.gone_at is None]
    rows = Topic.objects.filter(pk__in=own).order_by(F("checked_at").asc(nulls_first=True))
    return rows.values_list("source_id", flat=True).first()


def decoded_fields(registry: Registry, subject: SubjectName, topics: Collection[int]) -> QuerySet[FieldStatistic]:
    """Return the last weeks' statistics of messages that the subject's consumers decode.

    JSON without a frame only counts for a subject of JSON schemas: deserializers of other formats fail on it.
    """
    framed_formats = [kind for kind, form in FORMATS.items() if not form.has_value_rules]
    others = SchemaVersion.objects.filter(
        subject__context__registry=registry,
        subject__context__name=subject.context,
        subject__name=subject.subject,
        schema__schema_type__in=framed_formats,
    )
    since = timezone.now().date() - timedelta(days=DAYS)
    rows = FieldStatistic.objects.filter(topic__in=topics, side=side_of(subject), day__gte=since)
    return rows.exclude(Q(framing="") & Exists(others))


def fields_seen(
    registry: Registry, subject: SubjectName, carriers: Sequence[Coverage] | None = None
) -> tuple[FieldTotals, ...]:
    """Return the fields of the subject's data in the last weeks, over all writers."""
    topics = [topic.topic_id for topic in (topics_of(registry, subject) if carriers is None else carriers)]
    rows = (
        decoded_fields(registry, subject, topics)
        .values("path")
        .annotate(
            all_messages=Sum("messages"),
            all_present=Sum("present"),
            all_nulls=Sum("nulls"),
            first=Min("day"),
            last=Max("day"),
        )
        .order_by("path")
    )
    return tuple(
        FieldTotals(row["path"], row["all_messages"], row["all_present"], row["all_nulls"], row["first"], row["last"])
        for row in rows[:MAX_PATHS]
    )


def filled_fields(registry: Registry, subject: SubjectName, paths: Collection[str]) -> dict[str, str]:
    """Return how much data fills the fields at a schema's paths, as in `registry.subjects.usage.evidence.Filled`."""
    fields = fields_seen(registry, subject)
    return {path: _filled(below_root(path), fields) for path in sorted(paths)} if fields else {}


def _filled(path: str, fields: Sequence[FieldTotals]) -> str:
    """Return the field's share, by path or else by name: a nested message's path starts at that message."""
    found = [field for field in fields if steps_of(field.path) == path]
    name = path.rpartition(".")[2]
    found = found or [field for field in fields if steps_of(field.path).rpartition(".")[2] == name]
    field = max(found, key=lambda item: item.filled, default=None)
    if field is None or not field.filled:
        return ""
    since = f" since {field.first_day:%Y-%m-%d}" if field.first_day else ""
    return f"{_share(field.filled, field.messages)} of {_many(field.messages)}{since}"


def seen_of(replay: ReplayReport) -> ReplayTotals:
    """Return the replay in numbers; messages that are invalid under their own schema were not tried."""
    losses: dict[str, int] = {}
    changes: dict[str, int] = {}
    for writer in replay.writers:
        for path, counts in writer.fields.items():
            for kind, totals in (("lost", losses), ("changed", changes)):
                if kind in counts:
                    totals[path] = totals.get(path, 0) + counts[kind]
    first = min((failure for writer in replay.writers for failure in writer.failures), key=_place, default=None)
    first_failure = f"offset {first.offset:,} of partition {first.partition}: {first.reason}" if first else ""
    return ReplayTotals(
        replay.topic,
        replay.read + replay.failed,
        replay.failed,
        first_failure,
        tuple(losses.items()),
        tuple(changes.items()),
        (
            ("invalid under their own schema", replay.unreadable),
            ("without a schema id", replay.unframed),
            ("with the schema id of no version of the subject", replay.unknown),
            ("too large", replay.too_large),
            ("not reached in time", replay.not_tried),
        ),
    )


def _place(failure: Any) -> tuple[int, int]:
    return failure.partition, failure.offset
