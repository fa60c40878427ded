"""What a kind of source declares and does, what a scan of it gives, and the rows of its topics."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop

from registry.drift.judge import JudgedFinding, Registered
from registry.drift.judge.model import make_finding
from registry.drift.models import Cluster, SchemaUse, Source, Topic
from registry.drift.rules import Rule
from registry.errors import InvalidSource, SparkUnavailable
from registry.observations import Observation
from registry.streams.scan_result import ScannedQuery
from registry.subjects.models import Registry

__all__ = [
    "BOUNDS_SET",
    "CONFIG",
    "MAX_NAME",
    "WHAT_TO_READ",
    "FieldSet",
    "MissingKind",
    "OnProgress",
    "Rule",
    "ScanResult",
    "ScannedTopic",
    "SourceDraft",
    "SourceField",
    "SourceKind",
    "deadline_seconds",
    "make_finding",
    "session_of",
    "sessions_of",
    "spark_remote",
]


FACTS = ("partitions", "compacted", "retention_ms", "retention_bytes", "problem", "checked_at", "gone_at")


@dataclass(frozen=True)
class ScannedTopic:
    """A topic as one scan found it.

    `positions` are the next offsets to read, of those partitions that moved. `messages` were read, `fresh` of them for the first time. `clean` is true
    where the scan could have seen any finding of it: messages were read, to the end, without a problem. `again` is
    true where offsets were read that an earlier scan had read, so that counts aren't simply added. `restarted` is true
    where the topic was made anew: what was known of its offsets is void. `cluster_id` is the cluster's own id of it,
    empty where there is none. `waits` is true where `problem` is a broker that may be back soon: what was read of the
    topic by then counts. `tables` are those whose changes it carries, as (database, schema, table).
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
    waits: bool = False
    tables: tuple[tuple[str, str, str], ...] = ()


def note_topics(source: Source, topics: Iterable[ScannedTopic]) -> None:
    """Keep what the cluster says of the topics, before anything is read; two queries, however many there are.

    Facts alone: what a scan that fails afterwards leaves behind is still true.
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
    """Move positions and counts by what a scan read; gives the rows by name.

    Of a topic that was made anew, what was known of its offsets is dropped first.
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
        tables = [list(name) for name in sorted({*(tuple(name) for name in row.tables), *topic.tables})]
        # The id goes with the positions: a scan that fails leaves both, so that the next one notices another topic.
        stays = bool(topic.problem) and not topic.positions
        cluster_id = row.cluster_id if stays else topic.cluster_id or row.cluster_id
        is_same = (row.problem, row.cluster_id, row.tables) == (topic.problem, cluster_id, tables)
        if is_same and not topic.positions and topic.name not in restarted:
            continue
        row.cluster_id, row.tables = cluster_id, tables
        row.positions = row.positions | {str(number): offset for number, offset in topic.positions.items()}
        row.messages += topic.fresh
        row.problem = topic.problem
        row.read_at = now if topic.positions else row.read_at
        changed.append(row)
    if changed:
        Topic.objects.bulk_create(
            changed,
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=["positions", "messages", "message_types", "problem", "read_at", "cluster_id", "tables"],
            batch_size=1000,
        )
    return rows


MAX_PASSES = 2
MAX_NAME: Final = 1024
CONFIG: Final = "config"
WHAT_TO_READ: Final = gettext_noop("What to read")
#: done, total, phase
OnProgress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class SourceDraft:
    """A source as somebody asks for it, before it is stored; `config` has the values of its kind's own fields."""

    registry: Registry
    name: str
    cluster: Cluster | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ScanResult:
    """What a scan read and what was judged.

    `read` is what the page shows of it; its `nothing` is true where there was nothing to read. `complete` is False
    where a bound cut the scan short: then no finding that concerns no topic may be counted as unseen; nor may one of the
    rules `out_of_reach`, which are about rows that Spark can't open here, and of which nothing is known. `topics`,
    `waits` says which server was away that kept something from the scan: the rest is scanned again after a pause.
    `observations` and `registered` are what the kept knowledge of topics grows by, `query` that of streaming queries.
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
    """How long a scan of a source may take: its own limit, or the deployment's where that is tighter."""
    return float(min(source.max_seconds, settings.SCAN_DEADLINE_SECONDS))


def spark_remote() -> str:
    """The address of the Spark Connect server. Raises SparkUnavailable where none is set."""
    if not settings.SPARK_REMOTE:
        raise SparkUnavailable(
            "No Spark Connect server is configured. Start `up` with Spark, or set SPARK_REMOTE.", is_lasting=True
        )
    return str(settings.SPARK_REMOTE)


def session_of(tag: str, number: int = 1) -> str:
    """The Spark session of a pass of a scan's claim, so that any process can interrupt it by the tag alone."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, tag if number == 1 else f"{tag}#{number}"))


def sessions_of(tag: str) -> tuple[str, ...]:
    """All sessions that a scan's claim may have."""
    return tuple(session_of(tag, number) for number in range(1, MAX_PASSES + 1))


_TYPES: Final = {str: "text", int: "a whole number", bool: "true or false"}


@dataclass(frozen=True)
class SourceField:
    """A value that sources of a kind have: what it may be, and how a form shows it.

    Its default has its type: text, a whole number, or true or false. The service checks values by it; the API's
    description and the form on the page are made of it. `form_name` is its name in the form, where another field has
    its own. Labels and other texts are English; pages show their translation.
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
        """Its name in the form."""
        return self.form_name or self.name

    def problem(self, value: object) -> str:
        """Why it can't have the value, after its name: `must be text`; empty where it can."""
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
    """Fields of a kind's form under a heading: its own ones, and by name those that every form may have.

    These are `name`, `registry`, `every_seconds`, `context`, `cluster`, `bootstrap` (the servers of a new cluster),
    `include`, `exclude`, `mode`, and `bounds` (how much a scan may do).
    """

    title: str
    fields: tuple[str | SourceField, ...]
    note: str = ""
    is_folded: bool = False


BOUNDS_SET: Final = FieldSet(gettext_noop("Bounds"), ("bounds",), is_folded=True)


class SourceKind:
    """A kind of source: all that the product knows of it. docs/how-to/add-a-source.md says how to add one.

    Its instance has no state. `config_name` is what the API calls the values of `fields`, `config_noun` what sentences
    call them; it may be optional as a whole, or fixed once a source is added. Sources of a kind without topics have
    `list_title` above them. `keeps_state`: its name is the path of a checkpoint. `connects`: its form may name servers
    instead of a connected cluster, and its name may be a topic's.
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
        """The name under which the source is stored, after looking that what it reads is there.

        Raises InvalidSource, InvalidCheckpoint or BrokerUnavailable. This one takes any name.
        """
        if not draft.name.strip() or len(draft.name) > MAX_NAME or not draft.name.isprintable():
            raise InvalidSource(f"Give the source a name of 1 to {MAX_NAME} printable characters.")
        return draft.name.strip()

    def scan(self, source: Source, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Observe and judge. Raises Unavailable errors, InvalidSource and InvalidCheckpoint with the reason."""
        raise NotImplementedError

    def amount(self, read: Mapping[str, Any]) -> str:
        """How much a scan read, in words, by its `read`."""
        return str(read.get("amount", gettext("read")))

    def checked_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The values of all fields, defaults for those left out. Raises InvalidSource for what a field can't be."""
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
        """The columns of a source's row that have checked values."""
        return {"config": dict(config)}

    def keep_config(self, source: Source, config: Mapping[str, Any]) -> None:
        """Store checked values that have a table of their own."""

    @property
    def form_sets(self) -> tuple[FieldSet, ...]:
        """The form of a new source."""
        return self.form or (FieldSet(WHAT_TO_READ, ("name", *self.fields, "registry", "every_seconds")),)

    def describe_name(self) -> str:
        """What the form says of the name."""
        return gettext(self.name_help)


class MissingKind(SourceKind):
    """A kind whose class isn't registered any more: its sources are shown and can be removed, not scanned."""

    def __init__(self, name: str) -> None:
        self.name = self.label = name  # type: ignore[misc]  # each has its own

    def scan(self, source: Source, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Raises InvalidSource."""
        raise InvalidSource(
            f"Sources of kind {self.name} can't be scanned: no class is registered for it. "
            "Add the class to SCHEMADESK_SOURCE_KINDS, or remove the source."
        )
