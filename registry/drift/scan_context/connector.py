"""The facts of a connector's topics: their events in this scan, their schemas, and the registered versions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar, cast

from django.db.models import Max, Q

from registry.access.roles import system_actor
from registry.drift.debezium.columns import RowShape
from registry.drift.debezium.facts import ConnectorFacts, Guard, TopicFacts
from registry.drift.debezium.last_rows import LastRows, columns_after
from registry.drift.debezium.row_schemas import LANGUAGES, SchemaText, row_of_profiles
from registry.drift.debezium.tables import Table
from registry.drift.judge.model import Mark
from registry.drift.judge.topic_observations import milliseconds
from registry.drift.models import SchemaUse, Source, Topic
from registry.drift.scan_context.versions import (
    ReadSchema,
    VersionRow,
    by_mark,
    condition_of,
    read_schemas,
    version_rows,
)
from registry.drift.sources.base import ScannedTopic
from registry.errors import ReleaseRequired
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
from registry.subjects.models import Registry, Schema
from registry.subjects.policy.change_guard import ask
from registry.subjects.policy.effective_policy import scope_settings_for_many
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
    """Return the facts of every existing topic and of future topics of captured tables; nine queries."""
    captured = {world.topic_of(table.schema, table.name) for table in world.captured} - {None}
    names = sorted({name for name, collected in topics.items() if not collected.gone} | cast("set[str]", captured))
    collected = _collected(observations)
    stored = _stored(source, topics)
    tables = _tables(world, topics, collected, stored)
    before = {name: LastRows.read(row.last_rows) for name, row in stored.items()}
    schemas = _Schemas(source, names, observations, _still_newest(before, collected))
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
            changes=tuple(own.changes),
            tables=tables.get(name, ()),
            last_rows=schemas.last_rows(name, own, before.get(name, LastRows()), is_reread=there.again),
        )
    return facts


def _stored(source: Source, topics: Mapping[str, ScannedTopic]) -> dict[str, Topic]:
    """Return the rows of existing topics that weren't recreated, with what earlier scans read of their events."""
    rows = source.topics.only("name", "tables", "last_rows", "source_id")
    return {row.name: row for row in rows if row.name in topics and not topics[row.name].restarted}


def _still_newest(before: Mapping[str, LastRows], collected: Mapping[str, _TopicData]) -> dict[Where, tuple[Age, str]]:
    """Return the Connect schemas of earlier scans, unless this one read JSON on that side."""
    return {
        (name, side): ((time, offset), text)
        for name, last in before.items()
        for side, (time, offset, text) in last.schemas.items()
        if not any(
            profile.side == side and profile.framing is None for profile in collected.get(name, _TopicData()).profiles
        )
    }


def captured_by_topic(world: ConnectorFacts) -> dict[str | None, list[Table]]:
    """Return the captured tables by topic; None for those whose topic is unknown."""
    by_topic: dict[str | None, list[Table]] = defaultdict(list)
    for table in world.captured:
        by_topic[world.topic_of(table.schema, table.name)].append(table)
    return by_topic


def last_rows_of(topic: TopicFacts, tables: Sequence[Table]) -> dict[str, Any]:
    """Return what the next scans need to know of the newest events of a topic of these tables, as JSON values."""
    columns = topic.last_rows.columns
    if len(tables) == 1:
        columns = columns_after(columns, tables[0], is_newer=topic.count("cudr") > 0)
    return replace(topic.last_rows, columns=columns).stored()


def _tables(
    world: ConnectorFacts,
    topics: Mapping[str, ScannedTopic],
    collected: Mapping[str, _TopicData],
    stored: Mapping[str, Topic],
) -> dict[str, tuple[TableName, ...]]:
    """Return the tables of every existing topic: from earlier scans, from this scan's events, and expected ones."""
    tables_by_topic: dict[str, set[TableName]] = {
        name: {(str(database), str(schema), str(table)) for database, schema, table in row.tables}
        for name, row in stored.items()
    }
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

    def __init__(
        self,
        source: Source,
        topics: Collection[str],
        observations: Sequence[Observation],
        before: Mapping[Where, tuple[Age, str]],
    ) -> None:
        self._context = source.context or DEFAULT_CONTEXT
        self._marks = newest_marks(source, topics, observations)
        self._carried = {where: mark for where, (_, mark) in self._marks.items()}
        self._shapes = newest_shapes(observations, before)
        named = {f"{topic}-{side}" for topic in topics for side in SIDES}
        marks = set(self._carried.values())
        condition = Q(subject__name__in=named, subject__context__name=self._context) | condition_of(marks)
        rows = version_rows(source.registry, condition, unapproved=None)
        here = [row for row in rows if row.context == self._context]
        self._by_mark = {mark: matches[-1] for mark, matches in by_mark(here, marks).items() if matches}
        self._live: dict[str, list[VersionRow]] = {}
        for row in here:
            if not row.version.deleted:
                self._live.setdefault(row.name, []).append(row)
        subjects = [SubjectName(self._context, name) for name in named]
        self._is_closed = _is_closed(source.registry)
        self._registry, self._settings = source.registry, scope_settings_for_many(source.registry, subjects)
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
        """Return the checks that a new version, or the first one, must pass."""
        by_side: dict[Side, Guard] = {}
        for side in SIDES:
            name = f"{topic}-{side}"
            settings = self._settings.get(SubjectName(self._context, name))
            live = self._live.get(name, [])
            texts = [self._schema(row) for row in live[-MAX_GUARDED:]]
            if settings is not None and all(text is not None for text in texts):
                history = tuple(text.text for text in texts if text is not None)
                level, mode = settings.config().level, settings.mode(self._registry).mode
                by_side[side] = Guard(
                    level, history, is_cut=len(live) > MAX_GUARDED, mode=mode, is_closed=self._is_closed
                )
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

    def last_rows(self, topic: str, own: _TopicData, before: LastRows, *, is_reread: bool) -> LastRows:
        """Return the newest events: messages that are read again aren't newer than those of earlier scans."""
        schemas = {side: (*self._shapes[topic, side][0], self._shapes[topic, side][1]) for side in SIDES
                   if (topic, side) in self._shapes}  # fmt: skip
        rows: dict[Side, RowShape] = {}
        for side in SIDES:
            earlier = before.rows.get(side)
            row = row_of_profiles(own.profiles, side, None if is_reread else earlier) or earlier
            if row is not None and side not in schemas:
                rows[side] = row
        return LastRows(schemas, rows, before.columns)


def _is_closed(registry: Registry) -> bool:
    """Return whether a closed environment rejects what isn't released; nobody's break-glass is used here."""
    try:
        ask("version.register", registry, "", system_actor("scan"))
    except ReleaseRequired:
        return True
    return False


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


def newest_shapes(
    observations: Iterable[Observation], before: Mapping[Where, tuple[Age, str]]
) -> dict[Where, tuple[Age, str]]:
    """Return the newest Connect schema next to a payload, by topic and side; `before` are those of earlier scans."""
    newest = dict(before)
    for observation in observations:
        if isinstance(observation, ConnectSchema):
            _keep(newest, (observation.topic, observation.side), _age(observation.span), observation.text)
    return newest


def _age(span: Span) -> Age:
    return span.last_time, span.last_offset


def _keep(newest: dict[Where, tuple[Age, T]], where: Where, age: Age, what: T) -> None:
    if where not in newest or newest[where][0] <= age:
        newest[where] = (age, what)
