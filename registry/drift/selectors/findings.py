"""Findings and mutes that a person may see, with hints at the producer of a finding's messages.

Headers and client ids aren't observed: no broker reveals which client wrote a message. The partition is known, which is
a hint if a producer writes to its own partition or with one key.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any, Final, TypedDict, Unpack

from django.db.models import Case, Count, F, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import TruncDate
from django.utils import timezone

from registry.access.permission_filters import READ, extent_of, require_extent
from registry.access.roles import Actor, may
from registry.drift.evidence import in_last_scan, read_evidence
from registry.drift.findings.redaction import redacted_cause, redacted_evidence, redacted_text
from registry.drift.models import SEVERITIES, Finding, FindingQuerySet, Mute, Scan, Source, Topic
from registry.drift.rules import FORMER
from registry.drift.scan.personal_data import masked_samples, tags_of_subjects
from registry.drift.selectors.sources import LATELY, ScanInfo
from registry.errors import FindingNotFound
from registry.frozen_rows import row_info

#: messages without a key go to partitions in turn, one batch each: few messages, or those of a moment, say nothing
FEWEST: Final = 10
SHORTEST_MS: Final = 60_000
MAX_GROUPED: Final = 5_000


@dataclass(frozen=True)
class OnePartition:
    """All messages of the finding's last scan are in this partition of `of` partitions."""

    partition: int
    of: int
    messages: int


def one_partition(evidence: Mapping[str, Any], partitions: int) -> OnePartition | None:
    """Return the only partition of the messages if that is significant; `partitions` is the topic's number of them."""
    parts = evidence.get("partitions")
    if partitions < 2 or not isinstance(parts, list) or len(parts) != 1 or not isinstance(parts[0], Mapping):
        return None
    names = ("partition", "messages", "first_time", "last_time")
    values: list[Any] = [parts[0].get(name) for name in names]
    if not all(isinstance(value, int) for value in values):
        return None
    partition, messages, first, last = values
    if messages < FEWEST or last - first < SHORTEST_MS:
        return None
    return OnePartition(partition, partitions, messages)


def newest_ended(source_ids: Iterable[int]) -> dict[int, Scan]:
    """Return the last done or failed scan of each source; one query."""
    ended = Scan.objects.filter(source__in=source_ids, state__in=("done", "failed"))
    return {scan.source_id: scan for scan in ended.order_by("source", "-id").distinct("source")}


def why_left_out(source: Source, topic: Topic, last: Scan | ScanInfo | None) -> str:
    """Return why scans of a source no longer read one of its topics; "" if they do."""
    from registry.drift.sources.kafka_cluster import chosen_topics  # imported late: it loads what scans need

    if topic.gone_at is not None:
        return f"the cluster no longer has topic {topic.name}"
    if not chosen_topics([topic.name], source.include, source.exclude):
        return f"the patterns of the source leave out topic {topic.name}"
    is_old = last and last.started_at and topic.checked_at and topic.checked_at < last.started_at
    if is_old and last and last.state == "done":
        return f"the last scan of the source no longer chose topic {topic.name}"
    return ""


def why_unchecked(source: Source, topic: Topic | None, last: Scan | None) -> str:
    """Return why scans can't tell whether a finding still applies, as a sentence; "" if they can."""
    from registry.drift.sources import SOURCES  # imported late: it loads what scans need

    reason = why_left_out(source, topic, last) if topic is not None else ""
    ended = last.finished_at if last and not source.every_seconds else None
    if source.kind not in SOURCES:
        reason = f"no class is registered for sources of kind {source.kind}"
    elif not reason and ended and ended < timezone.now() - LATELY:
        at = f"{ended.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        reason = f"the source has no schedule, and its last scan ended on {at}"
    if reason:
        return f"Not checked any more: {reason}."
    if last is not None and last.state == "failed":
        return f"Not checked by the last scan, which failed: {last.error}"
    return f"Not checked by the last scan: {topic.problem}" if topic is not None and topic.problem else ""


def without_reason(unchecked: str) -> str:
    """Return only that a finding isn't checked, for people who may not read about its source."""
    return f"{re.split('[:,]', unchecked)[0]}." if unchecked else ""


def unchecked_findings(rows: Iterable[Finding]) -> dict[int, str]:
    """Return by number why scans can't tell whether unresolved findings still apply; at most one query."""
    unresolved = [row for row in rows if row.state != "resolved"]
    last = newest_ended({row.source_id for row in unresolved}) if unresolved else {}
    reasons = {row.pk: why_unchecked(row.source, row.topic, last.get(row.source_id)) for row in unresolved}
    return {number: reason for number, reason in reasons.items() if reason}


WORST_FIRST = Case(
    *(When(severity=severity, then=Value(rank)) for rank, severity in enumerate(SEVERITIES)),
    output_field=IntegerField(),
)


@dataclass(frozen=True)
class FindingInfo:
    """A finding with its evidence; `samples_hidden`: samples exist that the reader may not see.

    `producer_hint` points to the producer, if something stands out. `sentence`, `location`, `evidence` and, if known,
    `last_scan_count` are about the last scan that saw the finding; `count`, `first_seen` and `last_seen` are about all
    scans; `opened_at` is when it last opened again after it was resolved. Findings of a source with the same
    `cause_group` probably have one cause; "" for one on its own. `cause_subject` is the subject whose version caused it.
    `not_checked` is why scans can't tell whether it still applies; "" if they can.
    """

    id: int
    source_id: int
    source_name: str
    source_kind: str
    registry: str
    topic: str
    rule: str
    severity: str
    sentence: str
    remedy: str
    location: str
    subject: str
    evidence: dict[str, Any]
    cause: str
    cause_group: str
    state: str
    count: int
    first_seen: datetime
    last_seen: datetime
    acknowledged_by: str
    acknowledged_reason: str
    acknowledged_until: datetime | None
    assigned_to: str
    muted: bool
    clean_scans: int
    reopened: int
    resolved_at: datetime | None
    opened_at: datetime | None = None
    cause_subject: str = ""
    detector: int | None = None
    rebaselined_from: int | None = None
    samples_hidden: bool = False
    producer_hint: OnePartition | None = None
    last_scan_count: int | None = None
    not_checked: str = ""


@dataclass(frozen=True)
class MuteInfo:
    """A mute; its patterns are shell patterns, empty for any."""

    id: int
    registry: str
    rule: str
    subject: str
    location: str
    reason: str
    until: datetime | None
    created_at: datetime
    created_by: str


class FindingQuery(TypedDict, total=False):
    """Which findings to list: those that are open and not muted, by default; an empty filter means all.

    `muted=None` lists muted ones too. `unresolved_of` restricts to unresolved findings with these numbers, `group_of`
    to those that probably have the cause of this finding. `text` is searched in sentence, location, subject and rule.
    """

    state: str
    severity: str
    kind: str
    source_id: int | None
    registry: str
    subject: str
    topic: str
    rule: str
    assigned_to: str
    muted: bool | None
    text: str
    unresolved_of: Collection[int] | None
    group_of: int | None


_COLUMNS: Final = {
    "severity": "severity",
    "kind": "source__kind",
    "source_id": "source_id",
    "registry": "source__registry__name",
    "subject": "subject_name",
    "topic": "topic__name",
    "rule": "rule",
    "assigned_to": "assigned_to",
}


def _matching(by: Actor | None, query: FindingQuery) -> QuerySet[Finding]:
    """Return the findings that `by` may read and the query matches, worst and newest first."""
    values: Mapping[str, Any] = {**query, "rule": FORMER.get(rule := query.get("rule", ""), rule)}
    rows = _seen_by(by).filter(**{column: values[name] for name, column in _COLUMNS.items() if values.get(name)})
    if state := query.get("state", "open"):
        rows = rows.filter(state=state)
    for word in query.get("text", "").split():
        rows = rows.filter(
            Q(sentence__icontains=word)
            | Q(location__icontains=word)
            | Q(subject_name__icontains=word)
            | Q(rule__icontains=word)
        )
    if (muted := query.get("muted", False)) is not None:
        rows = rows.filter(muted=muted)
    if (unresolved := query.get("unresolved_of")) is not None:
        rows = rows.filter(pk__in=unresolved).exclude(state="resolved")
    if (member := query.get("group_of")) is not None:
        rows = rows.filter(_is_in_group(member, by))
    return rows.order_by(WORST_FIRST, "-last_seen", "-id")


def _is_in_group(finding_id: int, by: Actor | None) -> Q:
    """Return the condition that a finding is this one, or probably has its cause."""
    one = _seen_by(by).filter(pk=finding_id).exclude(cause_group="")
    return Q(pk=finding_id) | Q(source_id__in=one.values("source_id"), cause_group__in=one.values("cause_group"))


def decidable_group(finding_id: int, *, state: str, by: Actor) -> list[int]:
    """Return the numbers of the findings with this one's cause in a state that `by` may decide on, ascending."""
    rows = _seen_by(by).visible_to(by, "finding.decide").filter(_is_in_group(finding_id, by), state=state, muted=False)
    return list(rows.order_by("pk").values_list("pk", flat=True)[:MAX_GROUPED])


def list_findings(*, limit: int = 200, by: Actor | None = None, **query: Unpack[FindingQuery]) -> list[FindingInfo]:
    """Return findings, worst and newest first.

    With `by`, only findings that they may read, with samples if they may see them; without `by`, all findings and no
    samples.
    """
    return finding_infos(_matching(by, query).select_related("source__registry", "topic")[:limit], by)


@dataclass(frozen=True)
class FindingGroup:
    """Findings that probably have one cause: the worst of them, and the numbers of all of them, worst first."""

    worst: FindingInfo
    numbers: tuple[int, ...]


def list_finding_groups(
    *, offset: int = 0, limit: int = 200, by: Actor | None = None, **query: Unpack[FindingQuery]
) -> list[FindingGroup]:
    """Return findings, those with one cause as one; of the worst MAX_GROUPED. Otherwise as `list_findings`."""
    groups: dict[object, list[int]] = {}
    for number, source, title in _matching(by, query).values_list("pk", "source_id", "cause_group")[:MAX_GROUPED]:
        groups.setdefault((source, title) if title else number, []).append(number)
    page = list(groups.values())[offset : offset + limit]
    rows = Finding.objects.filter(pk__in=[numbers[0] for numbers in page]).select_related("source__registry", "topic")
    infos = {info.id: info for info in finding_infos(rows, by)}
    return [FindingGroup(infos[numbers[0]], tuple(numbers)) for numbers in page if numbers[0] in infos]


def open_findings_by_subject(registry_name: str) -> dict[str, int]:
    """Return the number of open findings by a registry's qualified subject; muted ones don't count."""
    rows = open_findings().filter(source__registry__name=registry_name).exclude(subject_name="")
    return dict(rows.values_list("subject_name").annotate(number=Count("pk")))


def findings_by_day(by: Actor, *, since: datetime) -> dict[date, tuple[int, int]]:
    """Return how many readable findings began and were resolved on each day (UTC) since then; muted ones too.

    A finding that came back counts on the day it was first seen, and on the last day it was resolved. Two queries.
    """
    counts: dict[date, list[int]] = {}
    for place, moment in enumerate(("first_seen", "resolved_at")):
        rows = Finding.objects.visible_to(by).filter(**{f"{moment}__gte": since})
        days = rows.annotate(day=TruncDate(moment, tzinfo=UTC)).order_by().values_list("day")
        for day, number in days.annotate(number=Count("pk")):
            counts.setdefault(day, [0, 0])[place] = number
    return {day: (began, resolved) for day, (began, resolved) in counts.items()}


def count_findings(by: Actor | None = None) -> dict[str, int]:
    """Return the number of readable findings by state; muted ones count as `muted`, whatever their state.

    One query.
    """
    muted = When(muted=True, then=Value("muted"))
    rows = _seen_by(by).values_list(Case(muted, default=F("state"))).annotate(number=Count("pk")).order_by()
    return dict(rows)


def open_findings_of(by: Actor) -> QuerySet[Finding]:
    """Return the readable findings that are open and not muted, which the frame of every page counts."""
    return Finding.objects.visible_to(by).filter(state="open", muted=False)


def get_finding(finding_id: int, *, by: Actor | None = None) -> FindingInfo:
    """Return one finding, with samples if `by` may see them.

    A finding that `by` may not read counts as not found. Raises NotSignedIn, NotAllowed, FindingNotFound.
    """
    if by is not None:
        require_extent(by, READ)
    row = _seen_by(by).select_related("source__registry", "topic").filter(pk=finding_id).first()
    if row is None:
        raise FindingNotFound(f"There is no finding {finding_id}.", finding=finding_id)
    return finding_infos([row], by)[0]


def list_mutes(registry: str = "", *, by: Actor) -> list[MuteInfo]:
    """Return the mutes of a registry (empty: of all readable ones), newest first; one query."""
    rows = Mute.objects.visible_to(by).select_related("registry")
    if registry:
        rows = rows.filter(registry__name=registry)
    return [row_info(MuteInfo, row, registry=row.registry.name) for row in rows.order_by("-pk")]


def open_findings() -> QuerySet[Finding]:
    """Return the findings that are open and not muted."""
    return Finding.objects.filter(state="open", muted=False)


def _seen_by(by: Actor | None) -> FindingQuerySet:
    """Return the findings that `by` may read; all if `by` is None."""
    return Finding.objects.all() if by is None else Finding.objects.visible_to(by)


@dataclass(frozen=True)
class OpenCounts:
    """The open findings by what can be filtered, muted ones separate; a row: severity, kind, rule, registry, person."""

    rows: tuple[tuple[tuple[str, str, str, str, str], int], ...]
    muted: int

    def by(self, column: int) -> Counter[str]:
        """Return the numbers by the value in a column of the rows."""
        counts: Counter[str] = Counter()
        for row, number in self.rows:
            counts[row[column]] += number
        return counts


def open_counts(registry: str = "", *, by: Actor) -> OpenCounts:
    """Return the counts of readable open findings of a registry, or of all; one query."""
    rows = _seen_by(by).filter(state="open")
    if registry:
        rows = rows.filter(source__registry__name=registry)
    columns = ("severity", "source__kind", "rule", "source__registry__name", "assigned_to", "muted")
    counted = rows.values_list(*columns).annotate(number=Count("pk")).order_by()
    shown: list[tuple[tuple[str, str, str, str, str], int]] = []
    muted = 0
    for severity, kind, rule, name, person, is_muted, number in counted:
        if is_muted:
            muted += number
        else:
            shown.append(((severity, kind, rule, name, person), number))
    return OpenCounts(tuple(shown), muted)


def finding_infos(rows: Iterable[Finding], by: Actor | None) -> list[FindingInfo]:
    """Return findings as `by` may see them: the only function that reads evidence from the database.

    Those who may not read the whole registry get neither the source's name, nor those of other subjects, nor what their
    schemas decode.

    Samples need a right of their own. Data that the subject's tags now declare as personal is masked, except with a
    further right. One query, and a few more if there are samples to show.
    """
    listed = list(rows)
    unchecked = unchecked_findings(listed)
    infos = [replace(finding_info(row), not_checked=unchecked.get(row.pk, "")) for row in listed]
    if by is not None:
        extent = extent_of(by, READ)
        infos = [info if extent.has_all_of(info.registry) else _of_its_subject_alone(info) for info in infos]
    masked = {
        row.pk: row
        for row, info in zip(listed, infos, strict=True)
        if _shows_samples(info, by) and not _shows_all(info, by)
    }
    tags = tags_of_subjects((row.source.registry, row.subject_name) for row in masked.values() if row.subject_name)
    shown = []
    for info in infos:
        evidence = dict(info.evidence)
        if not evidence.get("samples"):
            shown.append(info)
        elif not _shows_samples(info, by):
            del evidence["samples"]
            shown.append(replace(info, evidence=evidence, samples_hidden=True))
        elif info.id in masked and (subject_tags := tags.get((info.registry, info.subject))) is not None:
            evidence["samples"] = masked_samples(evidence["samples"], subject_tags)
            shown.append(replace(info, evidence=evidence))
        else:
            shown.append(info)
    return shown


def _of_its_subject_alone(info: FindingInfo) -> FindingInfo:
    """Return the finding for people who may read its subject but not the registry."""
    sentence, remedy = (redacted_text(text, info.evidence, info.subject) for text in (info.sentence, info.remedy))
    cause, group = (
        redacted_cause(text, info.cause_subject, info.evidence, info.subject) for text in (info.cause, info.cause_group)
    )
    evidence = redacted_evidence(info.evidence, info.subject)
    hidden = "samples" in info.evidence and "samples" not in evidence
    info = replace(
        info, source_name="", cause_subject="", not_checked=without_reason(info.not_checked), samples_hidden=hidden
    )
    return replace(info, evidence=evidence, sentence=sentence, remedy=remedy, cause=cause, cause_group=group)


def _shows_samples(info: FindingInfo, by: Actor | None) -> bool:
    may_see = by is not None and may(by, "sample.read", registry=info.registry, subject=info.subject)
    return bool(info.evidence.get("samples")) and may_see


def _shows_all(info: FindingInfo, by: Actor | None) -> bool:
    return by is not None and may(by, "sample.personal", registry=info.registry, subject=info.subject)


def finding_info(row: Finding) -> FindingInfo:
    """Return a finding with all evidence, including samples: for callers that hide or don't show it."""
    evidence = read_evidence(row.rule, row.evidence)
    return row_info(
        FindingInfo,
        row,
        source_name=row.source.name,
        source_kind=row.source.kind,
        registry=row.source.registry.name,
        topic=row.topic.name if row.topic else "",
        subject=row.subject_name,
        evidence=evidence,
        producer_hint=one_partition(evidence, row.topic.partitions) if row.topic else None,
        samples_hidden=False,
        not_checked="",
        last_scan_count=in_last_scan(evidence),
    )
