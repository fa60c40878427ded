"""The rows that make the lineage, each kind in one query, limited to what a person may read."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db.models import Exists, F, Func, Max, OuterRef, TextField, Value
from django.db.models.functions import Cast

from registry.access.models import Ownership
from registry.access.name_patterns import name_pattern
from registry.access.permission_filters import Extent
from registry.drift.models import SEVERITIES, SIDES, Finding, Scan, SchemaUse, Source, Topic
from registry.drift.usage.unused_subjects import context_name
from registry.streams.models import QueryInput, RunningDescription, StateVariable, StreamQuery
from registry.subjects.models import Client, SchemaVersion, Subject
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName

#: a registry and a qualified subject
Named = tuple[str, str]


@dataclass(frozen=True)
class SeenSchema:
    """The newest message of a topic's side with a schema id."""

    side: str
    schema_id: int
    last_time: datetime


@dataclass(frozen=True)
class LineageTopic:
    """A topic of a source; `subjects` are (registry and name, side, whether a scan found it in messages)."""

    pk: int
    registry: str
    context: str
    cluster: int | None
    source: int
    name: str
    subjects: tuple[tuple[Named, str, bool], ...]
    tables: tuple[str, ...]
    read_at: datetime | None
    uses: tuple[SeenSchema, ...] = ()


def topics(extent: Extent) -> Iterator[LineageTopic]:
    """Return the existing topics of the extent's registries, even of those that it covers in part; two queries."""
    rows = Topic.objects.filter(extent.any_of_registries("source__registry__name"), gone_at=None).order_by("pk")
    columns = ("pk", "source__registry__name", "source__context", "source__cluster_id", "source_id", "name")
    uses = _uses(extent)
    for *values, subjects, tables, read_at in rows.values_list(*columns, "subjects", "tables", "read_at"):
        number, registry, written, cluster, source, name = values
        context = context_name(written) if written.strip(":.") else DEFAULT_CONTEXT
        yield LineageTopic(
            pk=number,
            registry=registry,
            context=context,
            cluster=cluster,
            source=source,
            name=name,
            subjects=tuple(_subjects_of(registry, context, name, subjects)),
            tables=tuple(".".join(map(str, table)) for table in tables),
            read_at=read_at,
            uses=tuple(uses.get(number, ())),
        )


def _subjects_of(registry: str, context: str, topic: str, by_side: Any) -> Iterator[tuple[Named, str, bool]]:
    for side in SIDES:
        names = by_side.get(side) if isinstance(by_side, dict) else None
        for name in names or (f"{topic}-{side}",):
            qualified = name if name.startswith(":.") else SubjectName(context, name).qualified
            yield (registry, qualified), side, bool(names)


def _uses(extent: Extent) -> dict[int, list[SeenSchema]]:
    rows = SchemaUse.objects.filter(
        extent.any_of_registries("topic__source__registry__name"), topic__gone_at=None, schema_id__isnull=False
    )
    by_topic = defaultdict[int, list[SeenSchema]](list)
    for topic, side, schema, last in rows.values_list("topic", "side", "schema_id").annotate(last=Max("last_time")):
        by_topic[topic].append(SeenSchema(side, schema, last))
    return by_topic


@dataclass
class LineageSubject:
    """A subject, and its versions by schema id; scans fill in what is in use."""

    pk: int
    owners: tuple[str, ...] = ()
    versions: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))


def subjects(extent: Extent, mentioned: set[Named]) -> dict[Named, LineageSubject]:
    """Return the readable ones of the mentioned subjects; three queries, with those of owners and versions."""
    names = Subject.objects.covered_by(extent).filter(name__in={parts_of(name)[1] for _, name in mentioned})
    subjects: dict[Named, LineageSubject] = {}
    by_number: dict[int, LineageSubject] = {}
    owners = _owners()
    for number, registry, context, name in names.values_list("pk", "context__registry__name", "context__name", "name"):
        key = (registry, SubjectName(context, name).qualified)
        if key in mentioned:
            by_number[number] = subjects[key] = LineageSubject(number, tuple(_owners_of(owners, key)))
    versions = SchemaVersion.objects.filter(subject__in=by_number).order_by("version")
    for number, version, schema in versions.values_list("subject", "version", "schema__schema_id"):
        by_number[number].versions[schema].append(version)
    return subjects


def parts_of(qualified: str) -> tuple[str, str]:
    """Return the context and the name of a qualified subject, which scans and programs left as it is."""
    parts = qualified.split(":", 2)
    return (parts[1], parts[2]) if qualified.startswith(":.") and len(parts) == 3 else (DEFAULT_CONTEXT, qualified)


def _owners() -> list[tuple[str, str, str]]:
    """Return each ownership's registry, pattern and owner."""
    rows = Ownership.objects.order_by("group__name", "user__username", "pk")
    return [
        (registry, pattern, f"user:{user}" if group is None else f"group:{group}")
        for registry, pattern, group, user in rows.values_list(
            "registry", "subject_pattern", "group__name", "user__username"
        )
    ]


def _owners_of(owners: Iterable[tuple[str, str, str]], named: Named) -> Iterable[str]:
    registry, subject = named
    return dict.fromkeys(
        owner for scope, pattern, owner in owners if scope in ("", registry) and name_pattern(pattern).allows(subject)
    )


@dataclass(frozen=True)
class LineageConnector:
    """A connector's source."""

    source: int
    name: str
    registry: str
    is_scanned: bool


def connectors(extent: Extent) -> Iterator[LineageConnector]:
    """Return the connectors of completely covered registries."""
    scanned = Exists(Scan.objects.filter(source=OuterRef("pk"), state="done"))
    rows = Source.objects.covered_by(extent).filter(connector__isnull=False).annotate(scanned=scanned)
    for values in rows.values_list("pk", "connector__name", "registry__name", "scanned"):
        yield LineageConnector(*values)


@dataclass(frozen=True)
class LineageQuery:
    """A streaming query."""

    pk: int
    path: str
    registry: str
    source: int
    scanned_at: datetime


def queries(extent: Extent) -> Iterator[LineageQuery]:
    """Return the streaming queries of completely covered registries."""
    rows = StreamQuery.objects.covered_by(extent)
    for values in rows.values_list("pk", "path", "registry__name", "source_id", "scanned_at"):
        yield LineageQuery(*values)


@dataclass(frozen=True)
class LineageInput:
    """A topic that a query reads; `subject` is the qualified one of its messages, "" if unknown."""

    query: int
    registry: str
    topic: str
    subject: str


def inputs(extent: Extent) -> Iterator[LineageInput]:
    """Return what these queries read."""
    rows = QueryInput.objects.filter(query__in=StreamQuery.objects.covered_by(extent))
    columns = ("query_id", "query__registry__name", "topic", "context", "subject")
    for query, registry, topic, context, subject in rows.values_list(*columns):
        yield LineageInput(query, registry, topic, SubjectName(context, subject).qualified if subject else "")


def variables(extent: Extent) -> Iterator[tuple[int, str, str, int, datetime]]:
    """Return the state variables of these queries: number, label, registry, query, and when it was scanned."""
    rows = StateVariable.objects.filter(removed_at=None, query__in=StreamQuery.objects.covered_by(extent))
    yield from rows.values_list("pk", "label", "query__registry__name", "query_id", "query__scanned_at")


#: the sink of a description, as JSON: `keep_description` lays its keys out, and a text within has no line breaks
_SINK: Final = r'\n  "sink": ("[^\n]*")'
#: characters of a sink that are shown
MAX_SINK: Final = 500


def sinks(extent: Extent) -> Iterator[tuple[int, str, str, datetime]]:
    """Return the sinks that the newest descriptions of these queries name: query, registry, sink, time of the description."""
    rows = RunningDescription.objects.filter(query__in=StreamQuery.objects.covered_by(extent))
    newest = rows.order_by("query_id", "-id").distinct("query_id")
    sink = Func(F("text"), Cast(Value(_SINK), TextField()), function="substring", output_field=TextField())
    for query, registry, text, at in newest.values_list("query_id", "query__registry__name", sink, "sent_at"):
        if text:
            yield query, registry, json.loads(text)[:MAX_SINK].encode("utf-8", "replace").decode(), at


@dataclass(frozen=True)
class LineageClient:
    """A declared client of a subject; `version` is None if it uses the newest."""

    name: str
    registry: str
    subject: str
    reads: bool
    writes: bool
    version: int | None
    seen_at: datetime


def clients(extent: Extent) -> Iterator[LineageClient]:
    """Return the declared clients of readable subjects, by name."""
    rows = Client.objects.filter(subject__in=Subject.objects.covered_by(extent)).order_by("name", "pk")
    columns = ("name", "subject__context__registry__name", "subject__context__name", "subject__name")
    for name, registry, context, subject, *values in rows.values_list(
        *columns, "reads", "writes", "version", "seen_at"
    ):
        yield LineageClient(name, registry, SubjectName(context, subject).qualified, *values)


@dataclass(frozen=True)
class LineageHealth:
    """The worst severity of open findings: by subject, by topic, and by source of those about neither."""

    subjects: dict[Named, str]
    topics: dict[int, str]
    sources: dict[int, str]


def open_health(extent: Extent) -> LineageHealth:
    """Return how bad the readable open findings are, without muted ones and notices."""
    rows = Finding.objects.covered_by(extent).filter(state="open", muted=False).exclude(severity="notice")
    columns = ("source__registry__name", "subject_name", "topic_id", "source_id", "severity")
    health = LineageHealth({}, {}, {})
    for registry, subject, topic, source, severity in rows.values_list(*columns).distinct():
        if subject:
            _note(health.subjects, (registry, subject), severity)
        if topic:
            _note(health.topics, topic, severity)
        if not topic:
            _note(health.sources, source, severity)
    return health


def _note(worst: dict[Any, str], key: object, severity: str) -> None:
    worst[key] = min(worst.get(key, severity), severity, key=SEVERITIES.index)
