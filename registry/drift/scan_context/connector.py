"""The facts of a connector's topics: their events in this scan, their schemas, and the registered versions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar, cast

from django.db.models import Max, Q

from registry.drift.debezium.facts import ConnectorFacts, Guard, TopicFacts
from registry.drift.debezium.row_schemas import LANGUAGES, SchemaText
from registry.drift.judge.model import Mark
from registry.drift.judge.topic_observations import milliseconds
from registry.drift.models import SchemaUse, Source
from registry.drift.scan_context.versions import (
    ReadSchema,
    VersionRow,
    by_mark,
    condition_of,
    read_schemas,
    version_rows,
)
from registry.drift.sources.base import ScannedTopic
from registry.observations import (
    ChangeEvents,
    ConnectSchema,
    FieldProfile,
    FramedMessages,
    NullMessages,
    Observation,
    Side,
    Span,
    TopicTotals,
)
from registry.subjects.models import Schema
from registry.subjects.policy.effective_policy import effective_configs
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName

SIDES: Final[tuple[Side, ...]] = ("key", "value")
MAX_GUARDED: Final = 20  # versions per subject that a prediction checks against
Where = tuple[str, Side]
TableName = tuple[str, str, str]  # database, schema, table
#: time and offset of a message
Age = tuple[int, int]
T = TypeVar("T")


@dataclass
class _TopicData:
    """The observations of one topic."""

    messages: int = 0
    null_keys: int = 0
    tombstones: int = 0
    newest_null_key: Age = (0, 0)
    profiles: list[FieldProfile] = field(default_factory=list)
    changes: list[ChangeEvents] = field(default_factory=list)


def topic_facts(
    source: Source, world: ConnectorFacts, topics: Mapping[str, ScannedTopic], observations: Sequence[Observation]
) -> dict[str, TopicFacts]:
    """Return the facts of every existing topic and of future topics of captured tables; seven queries."""
    captured = {world.topic_of(table.schema, table.name) for table in world.captured} - {None}
    names = sorted({name for name, collected in topics.items() if not collected.gone} | cast("set[str]", captured))
    collected = _collected(observations)
    tables = _tables(source, world, topics, collected)
    schemas = _Schemas(source, names, observations)
    facts = {}
    for name in names:
        own, there = collected.get(name, _TopicData()), topics.get(name, ScannedTopic(name))
        facts[name] = TopicFacts(
            topic=name,
            partitions=there.partitions,
            compacted=there.compacted,
            messages=own.messages,
            null_keys=own.null_keys,
            tombstones=own.tombstones,
            nulls_are_newest=schemas.is_newer(name, "key", own.newest_null_key),
            subjects=schemas.subjects(name),
            registered=schemas.registered(name),
            guards=schemas.guards(name),
            event_schemas=schemas.of_events(name),
            profiles=tuple(own.profiles),
            changes=tuple(own.changes),
            tables=tables.get(name, ()),
        )
    return facts


def _tables(
    source: Source, world: ConnectorFacts, topics: Mapping[str, ScannedTopic], collected: Mapping[str, _TopicData]
) -> dict[str, tuple[TableName, ...]]:
    """Return the tables of every existing topic: from earlier scans, from this scan's events, and expected ones."""
    tables_by_topic: dict[str, set[TableName]] = {}
    for name, stored in source.topics.values_list("name", "tables"):
        if name in topics and not topics[name].restarted:
            tables_by_topic[name] = {(str(database), str(schema), str(table)) for database, schema, table in stored}
    for name, own in collected.items():
        changed = {
            (events.database, events.schema, events.table)
            for events in own.changes
            if events.op != "m" and events.table
        }
        tables_by_topic.setdefault(name, set()).update(changed)
    for table in world.captured:
        topic = world.topic_of(table.schema, table.name)
        if topic is not None and topic in topics and not topics[topic].gone and world.catalog is not None:
            tables_by_topic.setdefault(topic, set()).add((world.catalog.database, table.schema, table.name))
    return {name: tuple(sorted(tables)) for name, tables in tables_by_topic.items()}


def _collected(observations: Iterable[Observation]) -> dict[str, _TopicData]:
    collected: dict[str, _TopicData] = {}
    for observation in observations:
        if isinstance(observation, TopicTotals):
            collected.setdefault(observation.topic, _TopicData()).messages = observation.messages
        elif isinstance(observation, ChangeEvents):
            collected.setdefault(observation.topic, _TopicData()).changes.append(observation)
        elif isinstance(observation, FieldProfile):
            collected.setdefault(observation.topic, _TopicData()).profiles.append(observation)
        elif isinstance(observation, NullMessages):
            topic = collected.setdefault(observation.topic, _TopicData())
            if observation.side == "key":
                topic.null_keys += observation.span.messages
                topic.newest_null_key = max(topic.newest_null_key, _age(observation.span))
            else:
                topic.tombstones += observation.span.messages
    return collected


class _Schemas:
    """Schemas of topics: the newest live versions of their subjects, and the newest schemas in their events."""

    def __init__(self, source: Source, topics: Collection[str], observations: Sequence[Observation]) -> None:
        self._context = source.context or DEFAULT_CONTEXT
        self._marks = newest_marks(source, topics, observations)
        self._carried = {where: mark for where, (_, mark) in self._marks.items()}
        self._shapes = newest_shapes(observations)
        named = {f"{topic}-{side}" for topic in topics for side in SIDES}
        marks = set(self._carried.values())
        condition = Q(subject__name__in=named, subject__context__name=self._context) | condition_of(marks)
        rows = version_rows(source.registry, condition, ghosts=None)
        here = [row for row in rows if row.context == self._context]
        self._by_mark = {mark: matches[-1] for mark, matches in by_mark(here, marks).items() if matches}
        self._live: dict[str, list[VersionRow]] = {}
        for row in here:
            if not row.version.deleted:
                self._live.setdefault(row.name, []).append(row)
        subjects = [SubjectName(self._context, name) for name in self._live if name in named]
        self._configs = effective_configs(source.registry, subjects)
        self._read = self._texts(named)

    def _texts(self, named: Collection[str]) -> dict[int, ReadSchema]:
        """Read the newest versions first, so that the limit omits the oldest."""
        newest = [rows[-1] for name, rows in self._live.items() if name in named]
        older = [row for name, rows in self._live.items() if name in named for row in rows[-MAX_GUARDED:-1]]
        order = [row.schema_pk for row in (*newest, *self._by_mark.values(), *older)]
        by_pk = Schema.objects.in_bulk(set(order))
        return read_schemas(by_pk[pk] for pk in dict.fromkeys(order) if pk in by_pk)

    def _schema(self, row: VersionRow) -> SchemaText | None:
        read = self._read.get(row.schema_pk)
        text = read.text() if read is not None else None
        if text is None or row.version.schema_type not in LANGUAGES:
            return None
        label = f"version {row.version.version}, id {row.version.schema_id}"
        return SchemaText(row.version.schema_type, text, label)

    def _newest(self, topic: str, side: Side) -> VersionRow | None:
        rows = self._live.get(f"{topic}-{side}")
        return rows[-1] if rows else None

    def subjects(self, topic: str) -> dict[Side, str]:
        """Return the qualified names of the topic's existing subjects."""
        return {side: row.version.subject for side in SIDES if (row := self._newest(topic, side)) is not None}

    def registered(self, topic: str) -> dict[Side, SchemaText]:
        """Return the newest live versions by side."""
        newest = {side: self._newest(topic, side) for side in SIDES}
        schemas = {side: self._schema(row) for side, row in newest.items() if row is not None}
        return {side: schema for side, schema in schemas.items() if schema is not None}

    def guards(self, topic: str) -> dict[Side, Guard]:
        """Return the checks that a new version must pass."""
        by_side: dict[Side, Guard] = {}
        for side in SIDES:
            name = f"{topic}-{side}"
            config = self._configs.get(SubjectName(self._context, name))
            texts = [self._schema(row) for row in self._live.get(name, [])[-MAX_GUARDED:]]
            if config is not None and texts and all(text is not None for text in texts):
                by_side[side] = Guard(config.level, tuple(text.text for text in texts if text is not None))
        return by_side

    def is_newer(self, topic: str, side: Side, age: Age) -> bool:
        """Return whether a message of that age is newer than all with a schema on that side."""
        ages = [newest[topic, side][0] for newest in (self._marks, self._shapes) if (topic, side) in newest]
        return age > max(ages, default=(-1, -1)) and age > (0, 0)

    def of_events(self, topic: str) -> dict[Side, SchemaText]:
        """Return the newest schemas in the events: registered ones, or Connect's own next to JSON."""
        schemas: dict[Side, SchemaText] = {}
        for side in SIDES:
            mark = self._carried.get((topic, side))
            row = self._by_mark.get(mark) if mark is not None else None
            schema = self._schema(row) if row is not None else None
            if schema is None and (topic, side) in self._shapes:
                schema = SchemaText("CONNECT", self._shapes[topic, side][1])
            if schema is not None:
                schemas[side] = schema
        return schemas


def newest_marks(
    source: Source, topics: Collection[str], observations: Sequence[Observation]
) -> dict[Where, tuple[Age, Mark]]:
    """Return the mark of the newest messages by topic and side, over this scan and all earlier ones.

    In one partition, the last offset is the newest; across partitions, time decides.
    """
    newest: dict[Where, tuple[Age, Mark]] = {}
    uses = SchemaUse.objects.filter(topic__source=source, topic__name__in=topics)
    rows = uses.values_list("topic__name", "side", "framing", "mark").annotate(Max("last_time"), Max("last_offset"))
    for topic, side, framing, mark, last_time, last_offset in rows:
        _keep(newest, (topic, side), (milliseconds(last_time), last_offset), (framing, mark))
    for observation in observations:
        if isinstance(observation, FramedMessages):
            _keep(
                newest,
                (observation.topic, observation.side),
                _age(observation.span),
                (observation.framing, observation.mark),
            )
    return newest


def newest_shapes(observations: Iterable[Observation]) -> dict[Where, tuple[Age, str]]:
    """Return the newest Connect schema next to a payload, by topic and side."""
    newest: dict[Where, tuple[Age, str]] = {}
    for observation in observations:
        if isinstance(observation, ConnectSchema):
            _keep(newest, (observation.topic, observation.side), _age(observation.span), observation.text)
    return newest


def _age(span: Span) -> Age:
    return span.last_time, span.last_offset


def _keep(newest: dict[Where, tuple[Age, T]], where: Where, age: Age, what: T) -> None:
    if where not in newest or newest[where][0] <= age:
        newest[where] = (age, what)
