"""Stores a scan's result: topics, uses, fields and findings, in one transaction and a fixed number of queries.

Findings that are new only because a newer detector ran are a new baseline, not new drift.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from registry.access.roles import system_actor
from registry.audit.context import record
from registry.drift.events import notify_opened, tell_of_resolved
from registry.drift.judge import JudgedFinding, Registered, message_types_by_side, subjects_by_side, unchecked, unproved
from registry.drift.models import FieldStatistic, Finding, Scan, SchemaUse, Source, Topic
from registry.drift.rules.detector import DETECTOR
from registry.drift.scan import aggregation
from registry.drift.scan.offsets import keep_ranges
from registry.drift.services import ScanClaim, queue_rest
from registry.drift.services.findings import active_mutes
from registry.drift.sources.base import ScannedTopic, ScanResult, deadline_seconds, keep_topics
from registry.drift.sources.kafka_offsets import keep_read_from
from registry.frozen_rows import row_info
from registry.observations import FIRST_SLICE
from registry.streams.state_history import keep_query


def use_of(row: SchemaUse) -> aggregation.PartitionUseTotals:
    """Convert a row to the use that scans merge."""
    return aggregation.PartitionUseTotals(
        messages=row.messages,
        undecodable=row.undecodable,
        bytes=row.bytes,
        first_offset=row.first_offset,
        last_offset=row.last_offset,
        first_time=round(row.first_time.timestamp() * 1000),
        last_time=round(row.last_time.timestamp() * 1000),
    )


def field_of(row: FieldStatistic) -> aggregation.FieldCounts:
    """Convert a row to the field counts that scans merge."""
    return row_info(aggregation.FieldCounts, row)


def time_of(milliseconds: int) -> datetime:
    """Convert milliseconds to a time; Kafka accepts any number, so values outside a calendar are clamped."""
    return datetime.fromtimestamp(min(max(milliseconds, 0), 253_402_300_799_000) / 1000, tz=UTC)


def detector_before(scan: Scan) -> int | None:
    """Return the detector of the source's last scan that read something; None without one, or if it wasn't stored."""
    done = Scan.objects.filter(source_id=scan.source_id, state="done", pk__lt=scan.pk).exclude(read__nothing=True)
    return done.order_by("-pk").values_list("detector", flat=True).first()


def note_detector(row: Finding, rule: str, looked: int | None) -> None:
    """Set the detector that found the finding; `looked` is the detector of earlier scans."""
    row.detector = DETECTOR.version
    row.rebaselined_from = looked if DETECTOR.is_new_in(rule, looked) else None


def new_drift(rows: Iterable[Finding]) -> list[Finding]:
    """Return the findings that are reported as new drift."""
    return [row for row in rows if row.rebaselined_from is None]


ACTOR = system_actor("scan")
BATCH = 5000
USE_KEY: Final = ("topic", "side", "framing", "mark", "partition")
FIELD_KEY: Final = ("topic", "side", "framing", "mark", "path", "day")
#: rules whose findings count the messages of each scan: whether they continue, and since when
RULES_WITH_HOURLY_COUNTS: Final = frozenset(
    {
        "UNKNOWN_SCHEMA_ID", "ID_OF_OTHER_SUBJECT", "ID_OF_OTHER_CONTEXT", "ID_DELETED", "ID_NOT_RELEASED",
        "ID_QUARANTINED", "ID_RETIRED", "ID_BELOW_MINIMUM_VERSION", "ID_DEPRECATED", "OLD_VERSION_WRITTEN", "SUBJECT_MISSING", "KEY_SCHEMA_CHANGED",
    }
)  # fmt: skip
#: columns that every scan that sees a finding writes, and columns of its state; audit triggers watch only the latter
SEEN: Final = (
    "rule", "severity", "sentence", "remedy", "location", "evidence", "count", "subject_name", "topic", "cause",
    "cause_group", "cause_subject", "last_seen", "last_scan", "clean_scans",
)  # fmt: skip
DECIDED: Final = (
    "state", "detector", "rebaselined_from", "resolved_at", "opened_at", "reopened", "muted", "acknowledged_by", "acknowledged_reason", "acknowledged_until",
)  # fmt: skip


#: maximum of messages that a scan reads first, however fast the last one was: they may be much larger now
LARGEST_FIRST: Final = 50_000
#: key in a scan's `read` and in findings' evidence: since when no scan has read rows
UNREAD_SINCE: Final = "rows_unread_since"


@transaction.atomic
def keep_result(claim: ScanClaim, result: ScanResult) -> bool:
    """Store a scan's result; returns False and stores nothing if the scan no longer belongs to this worker.

    The scan's row is locked and its claim compared, so that no scan is counted twice, however often it is delivered.
    """
    scan = Scan.objects.select_for_update().filter(pk=claim.scan_id, tag=claim.tag, state="running").first()
    if scan is None:
        return False
    source = Source.objects.select_related("registry").get(pk=claim.source_id)
    record(by=ACTOR, why=f"scan {claim.scan_id}")
    before = {row.name: dict(row.positions) for row in source.topics.all()}
    topics = keep_topics(source, result.topics)
    keep_read_from(topics, result.observations, before, [topic.name for topic in result.topics if topic.restarted])
    read = {topic.name: topic for topic in result.topics if topic.positions}
    _keep_uses(result, read, topics, before)
    _keep_fields(result, read, topics)
    _keep_subjects(result, read, topics)
    if result.query is not None:
        keep_query(source_id=source.pk, registry=source.registry, scanned=result.query)
    _keep_findings(scan, source, result, topics)
    _count_unseen(scan, source, result)
    _mark_out_of_reach(source, result)
    _keep_first_slice(source, result.read)
    scan.state, scan.finished_at, scan.lease_until = "done", timezone.now(), None
    scan.read = {**result.read, **unchecked(result.findings, result.observations)}
    scan.phase, scan.detector = "", DETECTOR.version
    scan.save(update_fields=["state", "finished_at", "lease_until", "read", "phase", "detector"])
    if result.waits:
        queue_rest(scan, source, reason=result.waits)
    return True


def first_slice_after(before: int, read: Mapping[str, Any], deadline: float) -> int:
    """Return how many messages the next scan reads first: what this one would read in a tenth of its time.

    A scan with fewer messages than its first slice says nothing about larger slices, unless it ran out of time. After
    a first slice that was read in its time, slices of less than FIRST_SLICE save no time: Spark's queries take longer
    than their messages, and a source would read ever less in each scan.
    """
    messages = int(read.get("messages") or 0)
    if not messages or (messages < before and read.get("bound_reached") != "deadline"):
        return before
    least = min(before, FIRST_SLICE) if messages >= before else 1
    return max(least, min(LARGEST_FIRST, int(messages / max(0.001, read["seconds"]) * deadline / 10)))


def _keep_first_slice(source: Source, read: Mapping[str, Any]) -> None:
    before = source.first_slice or FIRST_SLICE
    first = first_slice_after(before, read, deadline_seconds(source))
    if first != before:
        Source.objects.filter(pk=source.pk).update(first_slice=first)


def _keep_uses(
    result: ScanResult,
    read: Mapping[str, ScannedTopic],
    topics: Mapping[str, Topic],
    before: Mapping[str, Mapping[str, int]],
) -> None:
    uses = {key: use for key, use in aggregation.uses_of(result.observations).items() if key[0] in read}
    if not uses:
        return
    rows = SchemaUse.objects.filter(topic__in=[topics[name] for name in {key[0] for key in uses}])
    rows_before = {(row.topic_id, row.side, row.framing, row.mark, row.partition): use_of(row) for row in rows}
    ids = _schema_ids(result.registered)
    merged = []
    for (name, side, framing, mark, partition), use in uses.items():
        topic = topics[name]
        position = 0 if read[name].restarted else int(before.get(name, {}).get(str(partition), 0))
        whole = aggregation.merged_use(
            rows_before.get((topic.pk, side, framing, mark, partition)), use, position=position
        )
        merged.append(
            SchemaUse(
                **dict(zip(USE_KEY, (topic, side, framing, mark, partition), strict=True)),
                **asdict(whole) | {name: time_of(getattr(whole, name)) for name in ("first_time", "last_time")},
                schema_id=int(mark) if framing == "id" else ids.get((framing, mark)),
            )
        )
    _upsert(SchemaUse, merged, USE_KEY)


def _schema_ids(registered: Registered | None) -> dict[tuple[str, str], int]:
    """Return the schema id of each GUID or content type that the registry knows."""
    if registered is None:
        return {}
    return {
        (framing, mark): versions[0].schema_id
        for (framing, mark), versions in registered.versions.items()
        if framing != "id" and versions and versions[0].schema_id
    }


def _keep_fields(result: ScanResult, read: Mapping[str, ScannedTopic], topics: Mapping[str, Topic]) -> None:
    fields = {key: counts for key, counts in aggregation.fields_of(result.observations).items() if key[0] in read}
    if not fields:
        return
    day = timezone.now().astimezone(UTC).date()
    rows = FieldStatistic.objects.filter(topic__in=[topics[name] for name in {key[0] for key in fields}], day=day)
    counts_before = {(row.topic_id, row.side, row.framing, row.mark, row.path): field_of(row) for row in rows}
    merged = []
    for (name, side, framing, mark, path), counts in fields.items():
        before = counts_before.get((topics[name].pk, side, framing, mark, path))
        whole = asdict(aggregation.merged_field(before, counts, again=read[name].again))
        merged.append(
            FieldStatistic(topic=topics[name], side=side, framing=framing, mark=mark, path=path, day=day, **whole)
        )
    _upsert(FieldStatistic, merged, FIELD_KEY)


def _keep_subjects(result: ScanResult, read: Mapping[str, ScannedTopic], topics: Mapping[str, Topic]) -> None:
    """Store the subjects, naming strategies and message types found in each topic's messages."""
    if result.registered is None:
        return
    changed: dict[str, Topic] = {}
    for (name, side), types in sorted(message_types_by_side(result.observations, result.registered).items()):
        if name in read:
            row = changed[name] = topics[name]
            row.message_types = row.message_types | {
                side: aggregation.merged_types(row.message_types.get(side, {}), types)
            }
    for (name, side), belonging in sorted(subjects_by_side(result.observations, result.registered).items()):
        if name not in read:
            continue
        row = topics[name]
        for field, new in (("subjects", belonging.subjects), ("strategies", belonging.strategies)):
            stored = getattr(row, field)
            together = sorted({*stored.get(side, ()), *new})
            if together and together != stored.get(side):
                setattr(row, field, stored | {side: together})
                changed[name] = row
    if changed:
        Topic.objects.bulk_update(changed.values(), ["subjects", "strategies", "message_types"], batch_size=1000)


def _keep_findings(scan: Scan, source: Source, result: ScanResult, topics: Mapping[str, Topic]) -> None:
    """Insert new findings and update known ones: resolved ones reopen; acknowledged ones stay unless worse."""
    judged = {finding.fingerprint: finding for finding in result.findings}
    if not judged:
        return
    rows = Finding.objects.select_for_update(of=("self",)).filter(source=source, fingerprint__in=list(judged))
    stored = {row.fingerprint: row for row in rows}
    mutes = active_mutes(source.registry_id)
    again = {topic.name for topic in result.topics if topic.again}
    looked = detector_before(scan)
    now = timezone.now()
    new: list[Finding] = []
    same: list[Finding] = []
    changed: list[Finding] = []
    reopened: list[Finding] = []
    recounted: list[int] = []  # known findings whose messages were counted again
    for fingerprint, finding in judged.items():
        muted = aggregation.is_muted(mutes, finding.rule, finding.subject, finding.location)
        adds = bool(finding.topic) and finding.topic not in again and "seen_before" not in finding.evidence
        row = stored.get(fingerprint)
        if row is None:
            row = Finding(source=source, fingerprint=fingerprint, first_seen=now, first_scan=scan, muted=muted)
            note_detector(row, finding.rule, looked)
            _refresh(row, finding, scan, topics, now=now, count=finding.count)
            new.append(row)
            continue
        before = aggregation.FindingStatus(row.state, row.severity, row.count)
        if not adds and "seen_before" not in finding.evidence:
            recounted.append(row.pk)
        updated = aggregation.updated_finding(before, severity=finding.severity, count=finding.count, adds=adds)
        _refresh(row, finding, scan, topics, now=now, count=updated.count, adds=adds)
        if updated.reopened:
            row.opened_at = now if row.state == "resolved" else row.opened_at
            row.state, row.resolved_at, row.reopened = updated.state, None, row.reopened + 1
            row.acknowledged_by, row.acknowledged_reason, row.acknowledged_until = "", "", None
            note_detector(row, finding.rule, looked)
            reopened.append(row)
        (changed if updated.reopened or row.muted != muted else same).append(row)
        row.muted = muted
    Finding.objects.bulk_create(new, batch_size=BATCH)
    stored |= {row.fingerprint: row for row in new}
    _upsert(Finding, same, ("id",), SEEN)
    _upsert(Finding, changed, ("id",), (*SEEN, *DECIDED))
    keep_ranges([(stored[fingerprint], finding) for fingerprint, finding in judged.items()], recounted)
    notify_opened(source, opened=new_drift(new), reopened=new_drift(reopened))


def _refresh(
    row: Finding,
    judged: JudgedFinding,
    scan: Scan,
    topics: Mapping[str, Topic],
    *,
    now: datetime,
    count: int,
    adds: bool = False,
) -> None:
    evidence = judged.evidence
    if judged.rule in RULES_WITH_HOURLY_COUNTS:
        before = row.evidence.get("ids_over_time") if row.pk else None
        # Messages read again were counted before: then only this scan's count.
        hours = aggregation.by_hour(
            aggregation.ByHour.of_evidence(row.evidence if row.pk and adds else {}),
            judged.evidence.get("partitions", ()),
        )
        seen = 0 if "seen_before" in evidence else judged.count
        evidence = evidence | {"ids_over_time": aggregation.over_time(before, now, seen)} | hours.to_evidence()
    if row.pk and adds and row.state != "resolved" and "by_reason" in evidence:
        evidence = evidence | aggregation.reasons_before(row.evidence, row.count)
    if "partitions" in evidence:
        evidence = evidence | {"partitions": aggregation.without_hours(evidence["partitions"])}
    row.rule, row.severity, row.sentence, row.remedy = judged.rule, judged.severity, judged.sentence, judged.remedy
    row.location, row.evidence, row.count, row.cause = judged.location, evidence, count, judged.cause
    row.cause_group, row.cause_subject = judged.cause_group, judged.cause_subject
    row.subject_name, row.topic = judged.subject, topics.get(judged.topic)
    row.last_seen, row.last_scan, row.clean_scans = now, scan, 0


def _count_unseen(scan: Scan, source: Source, result: ScanResult) -> None:
    """Add a clean scan to findings that this scan could have seen and didn't; enough of them resolve a finding."""
    if result.read.get("nothing"):
        return
    clean = {topic.name for topic in result.topics if topic.clean}
    fingerprints = {finding.fingerprint for finding in result.findings}
    unknown = unproved(result.findings)
    unresolved = Finding.objects.filter(source=source).exclude(state="resolved").exclude(rule__in=result.out_of_reach)
    rows = unresolved.values_list("pk", "fingerprint", "topic__name", "rule", "clean_scans")
    unseen = [
        (number, clean_scans + 1)
        for number, fingerprint, topic, rule, clean_scans in rows
        if fingerprint not in fingerprints
        and (topic or "", rule) not in unknown
        and aggregation.could_have_seen(topic or "", complete=result.complete, clean_topics=clean)
    ]
    if not unseen:
        return
    Finding.objects.filter(pk__in=[number for number, _ in unseen]).update(clean_scans=F("clean_scans") + 1)
    over = [number for number, clean_scans in unseen if clean_scans >= source.clean_scans]
    if over:
        Finding.objects.filter(pk__in=over).update(state="resolved", resolved_at=timezone.now())
        tell_of_resolved(source, over)


def _mark_out_of_reach(source: Source, result: ScanResult) -> None:
    """Mark findings that stay because their rows can't be opened here; unmark them once rows are read again."""
    if result.query is None:
        return
    since = result.read.get(UNREAD_SINCE)
    findings = Finding.objects.filter(source=source).exclude(state="resolved")
    changed = list(
        findings.filter(rule__in=result.out_of_reach).exclude(evidence__has_key=UNREAD_SINCE)
        if since and result.out_of_reach
        else findings.filter(evidence__has_key=UNREAD_SINCE).exclude(rule__in=result.out_of_reach)
    )
    for row in changed:
        rest = {key: value for key, value in row.evidence.items() if key != UNREAD_SINCE}
        row.evidence = rest | {UNREAD_SINCE: since} if row.rule in result.out_of_reach else rest
    Finding.objects.bulk_update(changed, ["evidence"], batch_size=BATCH)


def _upsert(model: Any, rows: list[Any], key: tuple[str, ...], fields: tuple[str, ...] = ()) -> None:
    """Insert or update rows by `key`, one statement per batch; without `fields`, all other columns are updated."""
    names = fields or tuple(field.name for field in model._meta.concrete_fields if field.name not in (*key, "id"))
    if rows:
        model.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=list(key), update_fields=list(names), batch_size=BATCH
        )
