"""Loads what a scan is compared with from the database, in a constant number of queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, cast

from django.db.models import Max, Min, Q, Sum
from django.utils import timezone

from registry.drift.judge.declared_fields import DeclaredFields
from registry.drift.judge.finding_builder import SideOfTopic
from registry.drift.judge.model import (
    Cause,
    Event,
    FieldDay,
    FieldKey,
    JudgedFinding,
    KnownFinding,
    Mark,
    MarkUse,
    Memory,
    Registered,
    RegisteredVersion,
    TopicMemory,
    TopicSide,
)
from registry.drift.judge.topic_observations import (
    SIDES,
    PartitionSpan,
    TopicObservations,
    bare_name,
    collect_marks,
    milliseconds,
    subjects_of_side,
)
from registry.drift.judge.versions import judge_deleted
from registry.drift.models import FieldStatistic, Finding, SchemaUse, Source, Topic
from registry.drift.scan_context.versions import (
    ReadSchema,
    VersionRow,
    by_mark,
    condition_of,
    declared_of,
    read_schemas,
    subject_summaries,
    version_rows,
    writers_for,
)
from registry.drift.sources.base import ScannedTopic
from registry.formats import format_of
from registry.observations import FieldProfile, Framing, MessageIndexes, Observation, RankedMessages, Side, TopicTotals
from registry.subjects.models import Association, Schema
from registry.subjects.policy.change_guard import unrequested
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName

__all__ = ["deleted_in_use", "memory_of", "registered_for", "writers_for"]

BASELINE: Final = timedelta(days=28)
EVENTS: Final = timedelta(days=14)
MOST_ORDERS: Final = 20  # versions of a subject whose order of fields is read


# ---- registered versions -------------------------------------------------------------------------------------------


def registered_for(source: Source, observations: Sequence[Observation]) -> Registered:
    """Return the versions and subjects of the source's registry for those observations; about eleven queries."""
    registry, context = source.registry, source.context or DEFAULT_CONTEXT
    marks_by_side = collect_marks(observations)
    topics = sorted({observation.topic for observation in observations if isinstance(observation, TopicTotals)})
    if not topics:
        return Registered(registry=registry.name, context=context)
    unapproved = unrequested(registry)
    now = {mark for carried in marks_by_side.values() for mark in carried}
    marks = now | _marks_before(source, topics)
    of_marks = by_mark(version_rows(registry, condition_of(marks), unapproved=unapproved) if marks else (), marks)
    here, elsewhere = _split(of_marks, context)
    carried = (row for mark in now for row in here.get(mark, ()))
    read = read_schemas(_schemas({row.schema_pk for row in carried if _needs_record(row, marks_by_side)}))
    versions = {mark: tuple(_with_record(row, read) for row in rows) for mark, rows in here.items()}
    registered = Registered(
        registry=registry.name,
        context=context,
        versions=versions,
        elsewhere=elsewhere,
        subjects=subject_summaries(registry, context),
        associated=_associated(source, context, topics),
    )
    sides: list[TopicSide] = [(topic, side) for topic in topics for side in SIDES]
    subjects = {
        name
        for where in sides
        for name in subjects_of_side(where, sorted(marks_by_side.get(where, ())), registered).subjects
    }
    histories = _histories(source, context, subjects, unapproved=unapproved)
    declared_rows = _versions_to_declare(observations, here, histories)
    more = read_schemas(_schemas({row.schema_pk for row in declared_rows} - read.keys()))
    return replace(
        registered,
        histories={name: tuple(row.version for row in rows) for name, rows in histories.items()},
        declared=_declared(declared_rows, {**read, **more}),
        events=_events(histories),
    )


def _marks_before(source: Source, topics: Collection[str]) -> set[Mark]:
    """Return the marks that earlier scans saw in those topics; one query."""
    rows = SchemaUse.objects.filter(topic__source=source, topic__name__in=topics)
    values = rows.order_by("framing", "mark").values_list("framing", "mark").distinct()
    return {(cast("Framing", framing), mark) for framing, mark in values}


def _split(
    of_marks: Mapping[Mark, Sequence[VersionRow]], context: str
) -> tuple[dict[Mark, list[VersionRow]], dict[Mark, tuple[RegisteredVersion, ...]]]:
    """Return the versions of each mark in the source's context; and in other contexts if it has none."""
    here = {mark: [row for row in rows if row.context == context] for mark, rows in of_marks.items()}
    elsewhere = {
        mark: tuple(row.version for row in rows if row.context != context)
        for mark, rows in of_marks.items()
        if not here[mark]
    }
    return {mark: rows for mark, rows in here.items() if rows}, {mark: rows for mark, rows in elsewhere.items() if rows}


def _needs_record(row: VersionRow, marks_by_side: Mapping[TopicSide, set[Mark]]) -> bool:
    """Return whether the naming strategy is open: a subject named after a topic needs no look at its record."""
    return all(row.name != f"{topic}-{side}" for topic, side in marks_by_side)


def _with_record(row: VersionRow, read: Mapping[int, ReadSchema]) -> RegisteredVersion:
    return replace(row.version, record=read[row.schema_pk].record) if row.schema_pk in read else row.version


def _schemas(pks: Collection[int]) -> list[Schema]:
    return list(Schema.objects.filter(pk__in=pks).order_by("-pk")) if pks else []


def _associated(source: Source, context: str, topics: Collection[str]) -> dict[TopicSide, tuple[str, ...]]:
    rows = Association.objects.filter(
        registry=source.registry, resource_type="topic", resource_name__in=topics, subject__context__name=context
    )
    subjects: dict[TopicSide, tuple[str, ...]] = {}
    for topic, kind, name in rows.values_list("resource_name", "association_type", "subject__name"):
        side = cast("Side", kind)
        subjects[topic, side] = tuple(sorted({*subjects.get((topic, side), ()), SubjectName(context, name).qualified}))
    return subjects


def _histories(
    source: Source, context: str, subjects: Collection[str], *, unapproved: Q | None
) -> dict[str, list[VersionRow]]:
    """Return all versions of those subjects by qualified name, ascending; one query."""
    if not subjects:
        return {}
    names = {bare_name(subject) for subject in subjects}
    condition = Q(subject__context__name=context, subject__name__in=names)
    by_subject: dict[str, list[VersionRow]] = {}
    for row in version_rows(source.registry, condition, unapproved=unapproved):
        by_subject.setdefault(row.version.subject, []).append(row)
    return by_subject


def _versions_to_declare(
    observations: Iterable[Observation],
    here: Mapping[Mark, Sequence[VersionRow]],
    histories: Mapping[str, Sequence[VersionRow]],
) -> list[VersionRow]:
    """Return the versions whose fields are compared with data.

    JSON's by mark, live ones for plain JSON, Protobuf's, and all whose order of fields may tell which of them wrote bytes.
    """
    selected = {}
    for observation in observations:
        rows: Iterable[VersionRow] = ()
        if isinstance(observation, FieldProfile) and observation.framing:
            rows = (
                row
                for row in here.get((observation.framing, observation.mark), ())
                if format_of(row.version.schema_type).has_value_rules
            )
        elif isinstance(observation, FieldProfile):
            names = {f"{observation.topic}-{observation.side}"}
            rows = (
                row
                for subject, history in histories.items()
                for row in history
                if not row.version.deleted and (row.name in names or subject in names)
            )
        elif isinstance(observation, MessageIndexes):
            rows = here.get((observation.framing, observation.mark), ())
        elif isinstance(observation, RankedMessages) and observation.framing:
            owners = here.get((observation.framing, observation.mark), ())
            rows = (row for owner in owners for row in _in_field_order(histories.get(owner.version.subject, ())))
        selected.update({(row.version.subject, row.version.version): row for row in rows})
    return [selected[key] for key in sorted(selected)]


def _in_field_order(history: Sequence[VersionRow]) -> Sequence[VersionRow]:
    """Return the newest versions of a subject, if the bytes of one can be read with another."""
    rows = [row for row in history if not format_of(row.version.schema_type).has_value_rules]
    return rows[-MOST_ORDERS:] if len(rows) > 1 else ()


def _declared(rows: Iterable[VersionRow], read: Mapping[int, ReadSchema]) -> dict[tuple[str, int], DeclaredFields]:
    listed = list(rows)
    by_schema = declared_of(read, {row.schema_pk for row in listed})
    return {
        (row.version.subject, row.version.version): by_schema[row.schema_pk]
        for row in listed
        if row.schema_pk in by_schema
    }


def _events(histories: Mapping[str, Sequence[VersionRow]]) -> tuple[Event, ...]:
    """Return the versions added to those subjects in the last two weeks."""
    since = timezone.now() - EVENTS
    events = [
        Event(
            row.version.registered_at,
            f"version {row.version.version} of {row.version.subject} was "
            f"{'released' if row.version.released else 'registered'} by {row.version.registered_by}",
            row.version.subject,
        )
        for rows in histories.values()
        for row in rows
        if row.version.registered_at >= milliseconds(since)
    ]
    return tuple(sorted(events, key=lambda event: (event.at, event.sentence)))


# ---- results of earlier scans --------------------------------------------------------------------------------------


def memory_of(
    source: Source, topics: Collection[str], surveyed: Mapping[str, ScannedTopic] = MappingProxyType({})
) -> Memory:
    """Return the results of the source's earlier scans; six queries.

    `topics` are those that were read: uses and baselines, which may be many rows, are loaded only for them. `surveyed`
    are those whose volume is known.
    """
    now = timezone.now()
    rows = list(
        source.topics.values_list(
            "name", "compacted", "retention_ms", "gone_at", "strategies", "message_types", "subjects", "checked_at"
        )
    )
    return Memory(
        as_of=milliseconds(now),
        topics={
            name: TopicMemory(
                compacted or (None if retention is None else False),  # a cluster that says one says the other
                gone is not None,
                {side: tuple(names) for side, names in strategies.items()},
                types,
                surveyed[name].volume if name in surveyed else None,
                tuple(subjects.get("value", ())),
            )
            for name, compacted, retention, gone, strategies, types, subjects, _ in rows
        },
        all_topics=_all_topics(source),
        discovered=any(checked is not None for *_, checked in rows),
        include=tuple(source.include),
        exclude=tuple(source.exclude),
        uses=_uses(source, topics),
        baselines=_baselines(source, topics, now),
        findings={
            row.fingerprint: KnownFinding(
                Cause(row.cause, row.cause_group, row.cause_subject), milliseconds(row.opened_at or row.first_seen)
            )
            for row in Finding.objects.filter(source=source).exclude(state="resolved").defer("evidence")
        },
        accepted=_accepted(source),
    )


def _accepted(source: Source) -> dict[str, int]:
    """Return since when the findings last that a person acknowledged without an end, also after they were resolved.

    Of one that earlier releases reopened, only its last time is certain.
    """
    rows = Finding.objects.filter(source=source, acknowledged_until=None).exclude(acknowledged_by="")
    return {
        fingerprint: milliseconds(opened_at or (last_seen if reopened else first_seen))
        for fingerprint, first_seen, last_seen, opened_at, reopened in rows.values_list(
            "fingerprint", "first_seen", "last_seen", "opened_at", "reopened"
        )
    }


def _all_topics(source: Source) -> frozenset[str]:
    """Return the existing topics of every source with the same registry and context."""
    rows = Topic.objects.filter(
        source__registry_id=source.registry_id, source__context__in=_same_context(source.context), gone_at=None
    )
    return frozenset(rows.values_list("name", flat=True))


def _same_context(context: str) -> tuple[str, ...]:
    return ("", DEFAULT_CONTEXT) if context in ("", DEFAULT_CONTEXT) else (context,)


def _uses(source: Source, topics: Collection[str]) -> tuple[MarkUse, ...]:
    rows = (
        SchemaUse.objects.filter(topic__source=source, topic__name__in=topics)
        .values("topic__name", "side", "framing", "mark")
        .annotate(sum_messages=Sum("messages"), first=Min("first_time"), last=Max("last_time"))
        .order_by("topic__name", "side", "framing", "mark")
    )
    return tuple(
        MarkUse(
            topic=row["topic__name"],
            side=cast("Side", row["side"]),
            framing=cast("Framing", row["framing"]),
            mark=row["mark"],
            messages=row["sum_messages"],
            first_time=milliseconds(row["first"]),
            last_time=milliseconds(row["last"]),
        )
        for row in rows
    )


def deleted_in_use(
    source: Source,
    topics: Iterable[ScannedTopic],
    observations: Iterable[Observation],
    registered: Registered,
    memory: Memory,
) -> list[JudgedFinding]:
    """Return findings about deleted versions whose messages earlier scans read but this one didn't; three queries.

    Expired messages don't count, nor those of a topic that is gone or was recreated.
    """
    names = [topic.name for topic in topics if not topic.gone and not topic.restarted]
    condition = Q(subject__context__name=source.context or DEFAULT_CONTEXT)
    deleted = version_rows(source.registry, condition & ~Q(deleted_at=None), unapproved=None)
    ids = {row.version.schema_id for row in deleted}
    uses = SchemaUse.objects.filter(topic__source=source, topic__name__in=names, schema_id__in=ids)
    read = collect_marks(observations)
    parts: dict[tuple[Topic, Side, Mark], list[PartitionSpan]] = {}
    for use in uses.select_related("topic").order_by("topic__name", "side", "framing", "mark", "partition"):
        side, mark = cast("Side", use.side), (cast("Framing", use.framing), use.mark)
        first, last = milliseconds(use.first_time), milliseconds(use.last_time)
        expires = None if use.topic.compacted else use.topic.retention_ms
        is_left = expires is None or expires < 0 or last + expires > memory.as_of
        if is_left and mark not in read.get((use.topic.name, side), ()):
            span = PartitionSpan(use.partition, use.first_offset, use.last_offset, use.messages, first, last)
            parts.setdefault((use.topic, side, mark), []).append(span)
    marks = {mark for _, _, mark in parts}
    rows = by_mark(
        version_rows(source.registry, condition & condition_of(marks), unapproved=None) if marks else (), marks
    )
    findings: list[JudgedFinding] = []
    for (topic, side, mark), spans in parts.items():
        reading = TopicObservations(topic.name, messages=topic.messages)
        where = SideOfTopic(reading, side, registered, memory, tuple(topic.subjects.get(side, ())))
        findings += judge_deleted(where, mark, spans, [row.version for row in rows[mark]])
    return findings


def _baselines(source: Source, topics: Collection[str], now: datetime) -> dict[FieldKey, tuple[FieldDay, ...]]:
    rows = FieldStatistic.objects.filter(
        topic__source=source, topic__name__in=topics, day__gte=(now - BASELINE).date()
    ).order_by("day")
    by_field: dict[FieldKey, list[FieldDay]] = {}
    names = [each.name for each in fields(FieldDay)]
    for topic, side, framing, mark, path, day, *counts in rows.values_list(
        "topic__name", "side", "framing", "mark", "path", *names
    ).iterator(5_000):
        key = FieldKey(topic, cast("Side", side), framing, mark, path)
        by_field.setdefault(key, []).append(FieldDay(day.isoformat(), *counts))
    return {key: tuple(days) for key, days in by_field.items()}
