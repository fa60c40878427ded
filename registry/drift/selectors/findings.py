"""Findings and mutes that a person may see, with hints at the producer of a finding's messages.

Headers and client ids aren't observed: no broker hands out which client wrote a message. What is known is the partition,
which says something where a producer writes to its own, or writes one key.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from django.db.models import Case, Count, F, IntegerField, Q, QuerySet, Value, When
from django.utils import timezone

from registry.access.permission_filters import READ, extent_of, require_extent
from registry.access.roles import Actor, may
from registry.drift.evidence import in_last_scan, read_evidence
from registry.drift.findings.redaction import redacted_evidence, redacted_text
from registry.drift.models import SEVERITIES, Finding, FindingQuerySet, Mute, Scan, Source, Topic
from registry.drift.scan.personal_data import masked_samples, tags_of_subjects
from registry.drift.selectors.sources import LATELY, ScanInfo
from registry.errors import FindingNotFound
from registry.frozen_rows import row_info

#: messages without a key go to partitions by turns, a batch each: a few, or those of a moment, say nothing
FEWEST: Final = 10
SHORTEST_MS: Final = 60_000


@dataclass(frozen=True)
class OnePartition:
    """All messages of the finding, in its last scan, lie in this partition of so many."""

    partition: int
    of: int
    messages: int


def one_partition(evidence: Mapping[str, Any], partitions: int) -> OnePartition | None:
    """That the messages lie in one partition alone, where that says something; `partitions` are those of the topic."""
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
    """The last scan of each source that was done or failed; one query."""
    ended = Scan.objects.filter(source__in=source_ids, state__in=("done", "failed"))
    return {scan.source_id: scan for scan in ended.order_by("source", "-id").distinct("source")}


def why_left_out(source: Source, topic: Topic, last: Scan | ScanInfo | None) -> str:
    """Why scans of a source no longer read one of its topics; "" where they do."""
    from registry.drift.sources.kafka_cluster import chosen_topics  # late: it loads what scans need

    if topic.gone_at is not None:
        return f"the cluster no longer has topic {topic.name}"
    if not chosen_topics([topic.name], source.include, source.exclude):
        return f"the patterns of the source leave out topic {topic.name}"
    is_old = last and last.started_at and topic.checked_at and topic.checked_at < last.started_at
    if is_old and last and last.state == "done":
        return f"the last scan of the source no longer chose topic {topic.name}"
    return ""


def why_unchecked(source: Source, topic: Topic | None, last: Scan | None) -> str:
    """Why scans can't tell whether a finding of the source still holds, as a sentence; "" where they can."""
    from registry.drift.sources import SOURCES  # late: it loads what scans need

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
    """That a finding isn't checked, for those who may not read about its source."""
    return f"{re.split('[:,]', unchecked)[0]}." if unchecked else ""


def unchecked_findings(rows: Iterable[Finding]) -> dict[int, str]:
    """Of findings that aren't resolved, by number, why scans can't tell whether they still hold; one query or none."""
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
    """A finding with its evidence; `samples_hidden` says that samples were kept which the reader may not see.

    `producer_hint` is what points to the producer, where something stands out. `sentence`, `location` and `evidence` are
    about the last scan that saw the finding, and so is `last_scan_count`, where it is known; `count`, `first_seen` and
    `last_seen` are about all scans. `not_checked` says why scans can't tell whether it still holds; "" where they can.
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


def list_findings(
    *,
    state: str = "open",
    severity: str = "",
    kind: str = "",
    source_id: int | None = None,
    registry: str = "",
    subject: str = "",
    topic: str = "",
    rule: str = "",
    assigned_to: str = "",
    muted: bool | None = False,
    text: str = "",
    unresolved_of: Collection[int] | None = None,
    limit: int = 200,
    by: Actor | None = None,
) -> list[FindingInfo]:
    """Findings, worst and newest first; an empty filter means all, as `muted=None` does.

    `unresolved_of` are numbers of some of them, of which those that are resolved are left out.
    `text` is looked for in words, place and subject. Of `by` those are listed that they may read, with samples of
    messages where they may see them; without one all are, and samples are for nobody.
    """
    rows = _seen_by(by).select_related("source__registry", "topic")
    for word in text.split():
        rows = rows.filter(
            Q(sentence__icontains=word)
            | Q(location__icontains=word)
            | Q(subject_name__icontains=word)
            | Q(rule__icontains=word)
        )
    filters = {
        "state": state,
        "severity": severity,
        "source__kind": kind,
        "source_id": source_id,
        "source__registry__name": registry,
        "subject_name": subject,
        "topic__name": topic,
        "rule": rule,
        "assigned_to": assigned_to,
    }
    rows = rows.filter(**{name: value for name, value in filters.items() if value})
    if muted is not None:
        rows = rows.filter(muted=muted)
    if unresolved_of is not None:
        rows = rows.filter(pk__in=unresolved_of).exclude(state="resolved")
    return finding_infos(rows.order_by(WORST_FIRST, "-last_seen", "-id")[:limit], by)


def open_findings_by_subject(registry_name: str) -> dict[str, int]:
    """Number of open findings that concern a subject of a registry, by its qualified name; muted ones don't count."""
    rows = open_findings().filter(source__registry__name=registry_name).exclude(subject_name="")
    return dict(rows.values_list("subject_name").annotate(number=Count("pk")))


def count_findings(by: Actor | None = None) -> dict[str, int]:
    """Number of findings by state, of those that somebody may read; muted ones count as `muted`, whatever their state.

    One query.
    """
    muted = When(muted=True, then=Value("muted"))
    rows = _seen_by(by).values_list(Case(muted, default=F("state"))).annotate(number=Count("pk")).order_by()
    return dict(rows)


def open_findings_of(by: Actor) -> QuerySet[Finding]:
    """Those that somebody may read and that are open and not muted, for the frame of every page to count."""
    return Finding.objects.visible_to(by).filter(state="open", muted=False)


def get_finding(finding_id: int, *, by: Actor | None = None) -> FindingInfo:
    """One finding, with samples of messages where `by` may see them.

    One that `by` may not read is as one that isn't there. Raises NotSignedIn, NotAllowed, FindingNotFound.
    """
    if by is not None:
        require_extent(by, READ)
    row = _seen_by(by).select_related("source__registry", "topic").filter(pk=finding_id).first()
    if row is None:
        raise FindingNotFound(f"There is no finding {finding_id}.", finding=finding_id)
    return finding_infos([row], by)[0]


def list_mutes(registry: str = "", *, by: Actor) -> list[MuteInfo]:
    """The mutes of a registry (empty: of all), newest first, of those that somebody may read wholly; one query."""
    rows = Mute.objects.visible_to(by).select_related("registry")
    if registry:
        rows = rows.filter(registry__name=registry)
    return [row_info(MuteInfo, row, registry=row.registry.name) for row in rows.order_by("-pk")]


def open_findings() -> QuerySet[Finding]:
    """Those that are open and not muted."""
    return Finding.objects.filter(state="open", muted=False)


def _seen_by(by: Actor | None) -> FindingQuerySet:
    """The findings that somebody may read; all where it is the product itself that looks."""
    return Finding.objects.all() if by is None else Finding.objects.visible_to(by)


@dataclass(frozen=True)
class OpenCounts:
    """The open findings, muted ones apart, by what can be filtered; each row is severity, kind, rule, registry, person."""

    rows: tuple[tuple[tuple[str, str, str, str, str], int], ...]
    muted: int

    def by(self, column: int) -> Counter[str]:
        """Numbers by the value at that place of a row."""
        counts: Counter[str] = Counter()
        for row, number in self.rows:
            counts[row[column]] += number
        return counts


def open_counts(registry: str = "", *, by: Actor) -> OpenCounts:
    """Of a registry, or of all, what somebody may read; one query."""
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
    """Findings as `by` may see them: the one place that hands evidence out of the database.

    Those who may not read the whole registry get neither the source's name nor those of other subjects.

    Samples are for those with the right to them, without what the subject's tags say is personal data by now; that is
    for those with a right of its own. One query, and a few more where there are samples to show.
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
    """What somebody gets who may read the finding's subject and not the registry."""
    sentence, remedy, cause = (
        redacted_text(text, info.evidence, info.subject) for text in (info.sentence, info.remedy, info.cause)
    )
    evidence = redacted_evidence(info.evidence, info.subject)
    info = replace(info, source_name="", not_checked=without_reason(info.not_checked))
    return replace(info, evidence=evidence, sentence=sentence, remedy=remedy, cause=cause)


def _shows_samples(info: FindingInfo, by: Actor | None) -> bool:
    may_see = by is not None and may(by, "sample.read", registry=info.registry, subject=info.subject)
    return bool(info.evidence.get("samples")) and may_see


def _shows_all(info: FindingInfo, by: Actor | None) -> bool:
    return by is not None and may(by, "sample.personal", registry=info.registry, subject=info.subject)


def finding_info(row: Finding) -> FindingInfo:
    """A finding with all of its evidence, samples too: for what shows none of it, or hides them."""
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
