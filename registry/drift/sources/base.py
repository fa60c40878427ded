"""The interface of a kind of source, the result of a scan, and the rows of its topics."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop

from registry.drift.judge import JudgedFinding, Registered, TopicVolume
from registry.drift.judge.model import make_finding
from registry.drift.judge.topic_observations import milliseconds
from registry.drift.models import Cluster, SchemaUse, Source, Topic
from registry.drift.rules import Rule
from registry.errors import InvalidSource, SparkUnavailable
from registry.observations import Observation
from registry.streams.scan_result import ScannedQuery
from registry.subjects.models import Registry

__all__ = ["Rule", "make_finding"]


FACTS = ("partitions", "compacted", "retention_ms", "retention_bytes", "problem", "checked_at", "gone_at")


@dataclass(frozen=True)
class ScannedTopic:
    """A topic as one scan found it.

    `positions` are the next offsets to read in partitions that advanced. `messages` were read, `fresh` of them for the
    first time. `clean`: the scan could have seen any finding of the topic, as it read messages to the end without a
    problem. `again`: it read offsets that an earlier scan had read, so counts aren't simply added. `restarted`: the
    topic was recreated, so its earlier offsets are void. `cluster_id` is the cluster's id of the topic, empty if it has
    none. `settings_problem` is why its compaction and retention aren't known. `waits`: `problem` is a broker that may soon be back; what was read before counts. `tables` are those whose
    changes it carries, as (database, schema, table). `last_rows` are what later scans need to know of its newest change
    events, None if that is as before. `volume` has the messages by hour, None if they aren't known.
    """

    name: str
    partitions: int = 0
    cluster_id: str = ""
    compacted: bool = False
    retention_ms: int | None = None
    retention_bytes: int | None = None
    positions: Mapping[int, int] = field(default_factory=dict)
    messages: int = 0
    fresh: int = 0
    clean: bool = False
    again: bool = False
    restarted: bool = False
    gone: bool = False
    problem: str = ""
    settings_problem: str = ""
    waits: bool = False
    tables: tuple[tuple[str, str, str], ...] = ()
    last_rows: Mapping[str, Any] | None = None
    volume: TopicVolume | None = None


def note_topics(source: Source, topics: Iterable[ScannedTopic]) -> None:
    """Store what the cluster reports about topics, before anything is read; two queries in total.

    Only facts, which stay true if the scan fails afterwards.
    """
    now = timezone.now()
    gone_since = dict(source.topics.filter(gone_at__isnull=False).values_list("name", "gone_at"))
    rows = [
        Topic(
            source=source,
            checked_at=now,
            gone_at=gone_since.get(topic.name, now) if topic.gone else None,
            **{name: getattr(topic, name) for name in ("name", *FACTS[:5])},
        )
        for topic in topics
    ]
    Topic.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["source", "name"], update_fields=FACTS, batch_size=1000
    )


@transaction.atomic
def keep_topics(source: Source, scanned: Iterable[ScannedTopic]) -> dict[str, Topic]:
    """Update positions and counts from what a scan read; returns the rows by name.

    For a recreated topic, everything known about its offsets is deleted first.
    """
    topics = list(scanned)
    rows = {row.name: row for row in source.topics.filter(name__in=[topic.name for topic in topics])}
    now = timezone.now()
    missing = [
        Topic(source=source, name=topic.name, partitions=topic.partitions) for topic in topics if topic.name not in rows
    ]
    if missing:
        rows |= {row.name: row for row in Topic.objects.bulk_create(missing)}
    restarted = [topic.name for topic in topics if topic.restarted and not topic.problem]
    if restarted:
        SchemaUse.objects.filter(topic__source=source, topic__name__in=restarted).delete()
    changed = []
    for topic in topics:
        row = rows[topic.name]
        if topic.name in restarted:
            row.positions, row.messages, row.message_types, row.tables, row.read_at = {}, 0, {}, [], None
            row.last_rows = {}
        tables = [list(name) for name in sorted({*(tuple(name) for name in row.tables), *topic.tables})]
        # The id is stored with the positions: a failed scan changes neither, so the next one notices the other topic.
        stays = bool(topic.problem) and not topic.positions
        cluster_id = row.cluster_id if stays else topic.cluster_id or row.cluster_id
        is_same = (row.problem, row.cluster_id, row.tables) == (topic.problem, cluster_id, tables)
        is_same = is_same and (topic.volume is None or row.volume.get("end") == topic.volume.end)
        is_same = is_same and topic.last_rows in (None, row.last_rows)
        if is_same and not topic.positions and topic.name not in restarted:
            continue
        row.cluster_id, row.tables = cluster_id, tables
        row.positions = row.positions | {str(number): offset for number, offset in topic.positions.items()}
        row.messages += topic.fresh
        row.problem = topic.problem
        row.volume = row.volume if topic.volume is None else stored_volume(topic.volume)
        row.last_rows = row.last_rows if topic.last_rows is None else dict(topic.last_rows)
        row.read_at = now if topic.positions else row.read_at
        changed.append(row)
    if changed:
        Topic.objects.bulk_create(
            changed,
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=[
                "positions",
                "messages",
                "message_types",
                "problem",
                "read_at",
                "cluster_id",
                "tables",
                "last_rows",
                "volume",
            ],
            batch_size=1000,
        )
    return rows


def volume_of(row: Topic, end: int) -> TopicVolume:
    """Return a topic's messages by hour, with those up to the offset `end` (of all partitions together)."""
    now = timezone.now()
    values = row.volume or {"start": 0, "hours": (), "end": end}
    known = TopicVolume(values["start"], tuple(values["hours"]), values["end"])
    return known.with_scan(end, milliseconds(row.checked_at or now), milliseconds(now))


def stored_volume(volume: TopicVolume) -> dict[str, Any]:
    """Return the volume as a topic's row has it."""
    return {"start": volume.start, "hours": list(volume.hours), "end": volume.end}


MAX_NAME: Final = 1024
CONFIG: Final = "config"
WHAT_TO_READ: Final = gettext_noop("What to read")
#: done, total, phase
OnProgress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class SourceDraft:
    """A requested source before it is stored; `config` has the values of its kind's own fields."""

    registry: Registry
    name: str
    cluster: Cluster | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ScanResult:
    """What a scan read, and its findings.

    `read` is shown on the page; its `nothing` is true if there was nothing to read. `complete` is False if a limit cut
    the scan short: then findings without a topic don't count as unseen. Nor do findings of the rules in `out_of_reach`,
    which are about data that the scan couldn't read, such as rows that Spark can't open here. `waits` names the server
    that was away and kept something from the scan: the rest is scanned again after a pause. `topics`, `observations`
    and `registered` update the stored data of topics, `query` that of streaming queries.
    """

    findings: tuple[JudgedFinding, ...]
    read: dict[str, Any]
    complete: bool
    topics: tuple[ScannedTopic, ...] = ()
    observations: tuple[Observation, ...] = ()
    registered: Registered | None = None
    query: ScannedQuery | None = None
    out_of_reach: frozenset[str] = frozenset()
    waits: str = ""


def deadline_seconds(source: Source) -> float:
    """Return the time limit of a source's scans in seconds: its own, or the deployment's if that is lower."""
    return float(min(source.max_seconds, settings.SCAN_DEADLINE_SECONDS))


def spark_remote() -> str:
    """Return the address of the Spark Connect server. Raises SparkUnavailable if none is configured."""
    if not settings.SPARK_REMOTE:
        raise SparkUnavailable(
            "No Spark Connect server is configured. Start `up` with Spark, or set SPARK_REMOTE.", is_lasting=True
        )
    return str(settings.SPARK_REMOTE)


def session_of(tag: str) -> str:
    """Return the id of the Spark session that a scan's claim uses, so that any process can interrupt it by the tag."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, tag.rpartition("-")[2]))


_TYPES: Final = {str: "text", int: "a whole number", bool: "true or false"}


@dataclass(frozen=True)
class SourceField:
    """A field of a kind's sources: its allowed values, and how a form shows it.

    The default's type is the field's type: text, integer or boolean. The service validates values with it; the API's
    description and the page's form are generated from it. `form_name` is its name in the form if another field has the
    same name. Labels and other texts are English; pages show their translation.
    """

    name: str
    label: str
    default: str | int | bool = ""
    required: bool = False
    longest: int = 255
    least: int = 0
    most: int = 2**31 - 1
    help: str = ""
    placeholder: str = ""
    form_name: str = ""

    @property
    def in_form(self) -> str:
        """Return its name in the form."""
        return self.form_name or self.name

    def problem(self, value: object) -> str:
        """Return why a value is invalid, such as `must be text`; empty if it is valid."""
        if type(value) is not type(self.default):
            return f"must be {_TYPES[type(self.default)]}"
        if self.required and not str(value).strip():
            return "must not be empty"
        if isinstance(value, str) and len(value) > self.longest:
            return f"must have at most {self.longest:,} characters"
        if type(value) is int and not self.least <= value <= self.most:
            return f"must be a whole number from {self.least:,} to {self.most:,}"
        return ""


@dataclass(frozen=True)
class FieldSet:
    """Fields of a kind's form under a heading: its own, and by name those that every form may have.

    These are `name`, `registry`, `every_seconds`, `context`, `cluster`, `bootstrap` (the servers of a new cluster),
    `include`, `exclude`, `mode`, and `bounds` (the limits of a scan).
    """

    title: str
    fields: tuple[str | SourceField, ...]
    note: str = ""
    is_folded: bool = False


BOUNDS_SET: Final = FieldSet(gettext_noop("Bounds"), ("bounds",), is_folded=True)


class SourceKind:
    """A kind of source: everything specific to it. See docs/how-to/add-a-source.md to add one.

    Instances have no state. `config_name` is the API's name for the values of `fields`, `config_noun` the one in
    sentences; they may be optional as a whole, or fixed once a source is added. `list_title` is the heading of sources
    without topics. `keeps_state`: its name is the path of a checkpoint. `connects`: its form accepts servers instead of
    a connected cluster, and its name may be a topic's.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    icon: ClassVar[str] = "layers"
    list_title: ClassVar[str] = ""
    name_label: ClassVar[str] = gettext_noop("Name")
    name_help: ClassVar[str] = gettext_noop("The name shown here.")
    rules: ClassVar[tuple[Rule, ...]] = ()
    fields: ClassVar[tuple[SourceField, ...]] = ()
    form: ClassVar[tuple[FieldSet, ...]] = ()
    config_name: ClassVar[str] = CONFIG
    config_noun: ClassVar[str] = CONFIG
    is_config_optional: ClassVar[bool] = False
    is_config_fixed: ClassVar[bool] = False
    has_topics: ClassVar[bool] = False
    keeps_state: ClassVar[bool] = False
    connects: ClassVar[bool] = False
    is_registry: ClassVar[bool] = False

    def check(self, draft: SourceDraft) -> str:
        """Check that the source exists and return the name under which it is stored.

        Raises InvalidSource, InvalidCheckpoint or BrokerUnavailable. This implementation accepts any name.
        """
        if not draft.name.strip() or len(draft.name) > MAX_NAME or not draft.name.isprintable():
            raise InvalidSource(f"Give the source a name of 1 to {MAX_NAME} printable characters.")
        return draft.name.strip()

    def scan(self, source: Source, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Observe and judge. Raises Unavailable errors, InvalidSource and InvalidCheckpoint with the reason."""
        raise NotImplementedError

    def amount(self, read: Mapping[str, Any]) -> str:
        """Return how much a scan read as text, from its `read`."""
        return str(read.get("amount", gettext("read")))

    def checked_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of all fields, with defaults. Raises InvalidSource for invalid values."""
        unknown = sorted(set(config) - {item.name for item in self.fields})
        if unknown:
            names = ", ".join(item.name for item in self.fields) or "none"
            raise InvalidSource(f"A {self.config_noun} has no setting {unknown[0][:40]!r}; it has {names}.")
        values = {item.name: config.get(item.name, item.default) for item in self.fields}
        for item in self.fields:
            if problem := item.problem(values[item.name]):
                raise InvalidSource(f"{item.name} of a {self.config_noun} {problem}.")
        return values

    def columns(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of a source's row that store validated values."""
        return {"config": dict(config)}

    def keep_config(self, source: Source, config: Mapping[str, Any]) -> None:
        """Store validated values that have their own table."""

    @property
    def form_sets(self) -> tuple[FieldSet, ...]:
        """Return the form of a new source."""
        return self.form or (FieldSet(WHAT_TO_READ, ("name", *self.fields, "registry", "every_seconds")),)

    def describe_name(self) -> str:
        """Return the form's help text for the name."""
        return gettext(self.name_help)


class MissingKind(SourceKind):
    """A kind whose class is no longer registered: its sources can be shown and removed, but not scanned."""

    def __init__(self, name: str) -> None:
        self.name = self.label = name  # type: ignore[misc]  # each has its own

    def scan(self, source: Source, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Raise InvalidSource."""
        raise InvalidSource(
            f"Sources of kind {self.name} can't be scanned: no class is registered for it. "
            "Add the class to SCHEMADESK_SOURCE_KINDS, or remove the source."
        )
