"""The findings of the three-way check: which of table, registered schema and events is behind, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from registry.drift.debezium.columns import (
    SIDES,
    Change,
    ColumnChange,
    KeyChange,
    RowShape,
    Side,
    TableComparison,
    compare,
)
from registry.drift.debezium.compatibility_prediction import NextSchema, predict_schema
from registry.drift.debezium.connector import Converter
from registry.drift.debezium.expected_columns import ExpectedShape, expected_of
from registry.drift.debezium.facts import ConnectorFacts, TopicFacts, listed
from registry.drift.debezium.last_rows import replaced_columns
from registry.drift.debezium.row_schemas import SchemaText, UnreadableShape, row_of
from registry.drift.debezium.tables import Table
from registry.drift.judge.model import JudgedFinding, make_finding
from registry.drift.rules.rule import Severity
from registry.observations import Side as TopicSide

RULE_OF: Final[Mapping[Change, str]] = {
    "added": "COLUMN_ADDED",
    "dropped": "COLUMN_DROPPED",
    "renamed": "COLUMN_RENAMED",
    "retyped": "COLUMN_TYPE_CHANGED",
    "scaled": "COLUMN_SCALE_CHANGED",
    "relabelled": "COLUMN_ENUM_CHANGED",
    "nullability": "COLUMN_NULLABILITY_CHANGED",
    "default": "COLUMN_DEFAULT_CHANGED",
}
#: changes that harm nobody before the next row, and little afterwards
_HARMLESS: Final = frozenset({"added", "relabelled", "default"})
_SIDE_WORDS: Final[Mapping[Side, str]] = {"table": "table", "registered": "registered schema", "events": "events"}
_NEXT_ROW: Final = (
    "The change takes effect with the table's next row. First check that consumers can handle it. An UPDATE of one "
    "row that changes nothing makes it take effect when you choose."
)
#: the sides that are behind → what that means, and what to do; `subject` is filled in
_BEHIND: Final[Mapping[frozenset[Side], tuple[str, str]]] = {
    frozenset({"events", "registered"}): (
        "The events and the registered schema are behind: no row has been written since.",
        (
            f"{_NEXT_ROW} The connector then registers the new schema; if the compatibility level rejects it, the "
            "connector's task fails."
        ),
    ),
    frozenset({"events"}): ("The events are behind: no row has been written since.", _NEXT_ROW),
    frozenset({"registered"}): (
        "The registered schema is behind.",
        "Register the events' schema under {subject}: consumers that use the registry don't see the change.",
    ),
    frozenset({"table"}): ("The table is behind.", "Alter the table, or drop the new schema."),
}


@dataclass(frozen=True)
class TableState:
    """A captured table with its topic and its three-way check; `unreadable` describes what couldn't be read."""

    table: Table
    topic: str
    expected: ExpectedShape
    compared: TableComparison
    unreadable: tuple[tuple[str, TopicSide, str], ...] = ()


def check_tables(world: ConnectorFacts) -> Iterator[TableState]:
    """Compare every captured table with its topic, if that is known and not shared with other tables.

    Without a catalog, the tables are those of the events, and their columns are unknown.
    """
    if world.catalog is None:
        for facts in world.topics.values():
            names = {(events.schema, events.table) for events in facts.changes if events.table}
            if len(names) == 1:
                yield _checked(world, Table(*names.pop(), (), ()), facts, ExpectedShape(None, None, {}, ()))
    captured = world.captured
    topics = [world.topic_of(table.schema, table.name) for table in captured]
    counts = Counter(topics)
    for table, topic in zip(captured, topics, strict=True):
        if topic is None or counts[topic] > 1:
            continue
        facts = world.topics.get(topic, TopicFacts(topic))
        yield _checked(world, table, facts, expected_of(table, world.config))


def _checked(world: ConnectorFacts, table: Table, facts: TopicFacts, expected: ExpectedShape) -> TableState:
    transforms = world.config.transforms
    added = tuple(name for transform in transforms for name in transform.added_fields)
    added_key = _added_to_keys(world)
    unreadable: list[tuple[str, TopicSide, str]] = []
    rows = _sides(facts, "value", expected.row, unreadable)
    keys = _sides(facts, "key", expected.key, unreadable)
    # The age of JSON keys without a schema is unknown: there, all keys must be null.
    if facts.lost_its_key and ("key" in facts.event_schemas or "key" not in facts.last_rows.rows):
        keys["events"] = RowShape({})
    compared = compare(
        rows,
        ignore=expected.either | frozenset(added),
        keys={side: _without(key, added_key) for side, key in keys.items()},
    )
    return TableState(table, facts.topic, expected, compared, tuple(unreadable))


def _without(row: RowShape, names: tuple[str, ...]) -> RowShape:
    return RowShape({name: shape for name, shape in row.fields.items() if name not in names}, row.exact, row.partly)


def _sides(
    facts: TopicFacts, side: TopicSide, table: RowShape | None, unreadable: list[tuple[str, TopicSide, str]]
) -> dict[Side, RowShape]:
    rows: dict[Side, RowShape] = {}
    if table is not None:
        rows["table"] = table
    read: tuple[tuple[Side, SchemaText | None, str], ...] = (
        ("registered", facts.registered.get(side), "registered schema"),
        ("events", facts.event_schemas.get(side), "schema in the events"),
    )
    for who, schema, label in read:
        if schema is None:
            continue
        try:
            rows[who] = row_of(schema, side)
        except UnreadableShape as error:
            unreadable.append((label, side, str(error)))
    if "events" not in rows:
        profiled = facts.last_rows.rows.get(side)
        if profiled is not None and (side == "value" or _one_key(profiled, facts)):
            rows["events"] = profiled
    return rows


def _one_key(shape: RowShape, facts: TopicFacts) -> bool:
    """Return whether all keys without a schema had the same fields; otherwise the newest is unknown."""
    return not shape.partly and facts.null_keys <= facts.count("t")


def judge_columns(world: ConnectorFacts) -> Iterator[JudgedFinding]:
    """Yield the findings of the three-way check."""
    for state in check_tables(world):
        facts = world.topics.get(state.topic, TopicFacts(state.topic))
        for departure in state.compared.columns:
            yield _column(state, departure, facts)
        if state.compared.key is not None:
            yield _key(state, state.compared.key, facts)
        yield from _replaced(state, facts)
        for label, side, reason in state.unreadable:
            names = {
                "what": label,
                "topic": state.topic,
                "side": side,
                "table": state.table.full_name,
                "reason": reason,
            }
            yield make_finding(
                "SCHEMA_NOT_COMPARED",
                names,
                (state.topic, side, label),
                location=f"{state.topic} ({side})",
                topic=state.topic,
                subject=facts.subjects.get(side, ""),
                evidence=names,
            )
        for side, prediction in next_schemas(world, state).items():
            if prediction.outcome == "refused":
                yield _refused(world, state, facts, side, prediction)


def _replaced(state: TableState, facts: TopicFacts) -> Iterator[JudgedFinding]:
    """Yield columns that are others than those of the newest events, under the same name."""
    table = state.table.full_name
    for column, before in replaced_columns(facts.last_rows.columns, state.table).items():
        if column not in state.expected.columns.values():
            continue
        origin = f"it has the values of the column that was {before}" if before else "it was dropped and added again"
        yield make_finding(
            "COLUMN_REPLACED",
            {"column": column, "table": table, "origin": origin},
            (table, column),
            location=f"{table}.{column}",
            severity=None if before else "risk",
            topic=state.topic,
            subject=facts.subjects.get("value", ""),
            evidence={"table": table, "column": column, "before": before, "topic": state.topic},
        )


def next_schemas(world: ConnectorFacts, state: TableState) -> dict[TopicSide, NextSchema]:
    """Return what the table's next row does to the subject of each side."""
    facts, added = world.topics.get(state.topic, TopicFacts(state.topic)), frozenset(_added_to_keys(world))
    expected = state.expected
    if world.published_as(state.table) != state.table.full_name:
        return {"value": NextSchema("no_event"), "key": NextSchema("no_event")}
    return {
        "value": _next_schema(facts, "value", expected.row, expected.either, world.config.value_converter),
        "key": _next_schema(facts, "key", expected.key, added, world.config.key_converter),
    }


def _next_schema(
    facts: TopicFacts, side: TopicSide, row: RowShape | None, ignore: frozenset[str], converter: Converter
) -> NextSchema:
    registered, guard = facts.registered.get(side), facts.guards.get(side)
    if converter in ("json", "json_with_schema"):
        return NextSchema("no_schema")
    if row is None:
        return NextSchema("not_checked", "the table's columns, or what the connector does with them, are unknown")
    if side == "key" and not row.fields:
        return NextSchema("no_key")
    if registered is not None and guard is not None:
        return predict_schema(registered, row, guard, side=side, ignore=ignore)
    if side in facts.subjects:
        return NextSchema("not_checked", "not all versions of the subject could be read as schemas of rows")
    if converter in ("worker", "other"):
        return NextSchema("not_checked", "the converter is unknown, and the subject has no version")
    if guard is not None and (guard.refusal or guard.mode != "READWRITE"):  # if the converter registers here
        return NextSchema("not_checked", f"the subject is new. {guard.refusal or f'Its mode is {guard.mode}.'}")
    return NextSchema("registered")


def _added_to_keys(world: ConnectorFacts) -> tuple[str, ...]:
    return tuple(transform.added_key_field for transform in world.config.transforms if transform.added_key_field)


def _refused(
    world: ConnectorFacts, state: TableState, facts: TopicFacts, side: TopicSide, refusal: NextSchema
) -> JudgedFinding:
    subject, guard = facts.subjects.get(side, ""), facts.guards[side]
    return make_finding(
        "NEXT_ROW_REJECTED",
        {
            "table": state.table.full_name,
            "connector": world.config.name,
            "subject": subject,
            "level": guard.mode if guard.mode.startswith("READONLY") else guard.level,
            "reason": refusal.reason,
            "change": refusal.cure,
        },
        (state.table.full_name, *(("key",) if side == "key" else ())),
        location=f"{state.table.full_name} (key)" if side == "key" else state.table.full_name,
        subject=subject,
        evidence={
            "table": state.table.full_name,
            "side": side,
            "reasons": list(refusal.reasons),
            "schema": refusal.schema,
        },
    )


def _column(state: TableState, departure: ColumnChange, facts: TopicFacts) -> JudgedFinding:
    column = state.expected.columns.get(departure.column, departure.column)
    lagging, remedy = _behind(departure.behind, state.compared.sides, facts.subjects.get("value"))
    names = {
        "column": column,
        "table": state.table.full_name,
        "becomes": state.expected.columns.get(departure.becomes, departure.becomes),
        "says": _says(departure.says, facts, "value"),
        "lagging": lagging,
        "remedy": remedy,
        "proof": _proof(state, departure),
    }
    return make_finding(
        RULE_OF[departure.change],
        names,
        (state.table.full_name, column),
        location=f"{state.table.full_name}.{column}",
        severity=_severity(departure),
        topic=state.topic,
        subject=facts.subjects.get("value", ""),
        evidence={
            "table": state.table.full_name,
            "column": column,
            "becomes": names["becomes"],
            "says": dict(departure.says),
            "behind": [side for side in SIDES if side in departure.behind],
            "topic": state.topic,
        },
    )


def _proof(state: TableState, departure: ColumnChange) -> str:
    """Return the proof of a rename: no column of the table was ever dropped."""
    if departure.change != "renamed" or state.table.dropped_columns:
        return ""
    return " (no column has ever been dropped from the table)"


def _severity(departure: ColumnChange) -> Severity | None:
    """Return `notice` for a harmless change before the next row, and for a column that is no longer null; else None."""
    if departure.change == "nullability" and not departure.narrows:
        return "notice"
    if departure.change in _HARMLESS and "events" in departure.behind:
        return "notice"
    return None


def _key(state: TableState, key: KeyChange, facts: TopicFacts) -> JudgedFinding:
    lagging, remedy = _behind(key.behind, frozenset(key.says), facts.subjects.get("key"))
    says = {side: ", ".join(columns) or "no key" for side, columns in key.says.items()}
    return make_finding(
        "KEY_REMOVED" if key.lost else "KEY_CHANGED",
        {"table": state.table.full_name, "says": _says(says, facts, "key"), "lagging": lagging, "remedy": remedy},
        (state.table.full_name,),
        location=state.table.full_name,
        topic=state.topic,
        subject=facts.subjects.get("key", ""),
        evidence={
            "table": state.table.full_name,
            "says": {side: list(columns) for side, columns in key.says.items()},
            "behind": [side for side in SIDES if side in key.behind],
            "topic": state.topic,
        },
    )


def _behind(behind: frozenset[Side], sides: frozenset[Side], subject: str | None) -> tuple[str, str]:
    """Return which side is behind, as a sentence, and what to do."""
    if behind == frozenset({"registered"}) and "events" not in sides:
        return "The registered schema is behind, and no events have been read to compare it with.", _NEXT_ROW
    lagging, remedy = _BEHIND[behind]
    return lagging, remedy.format(subject=subject or "the topic's subject")


def _says(says: Mapping[Side, str], facts: TopicFacts, side: TopicSide) -> str:
    """Return `Table: int64; registered schema (version 3) and events: int32.`"""
    groups: dict[str, list[str]] = {}
    for who in SIDES:
        if who in says:
            schema = {"registered": facts.registered, "events": facts.event_schemas}.get(who, {}).get(side)
            label = f" ({schema.label})" if schema is not None and schema.label else ""
            groups.setdefault(says[who], []).append(_SIDE_WORDS[who] + label)
    parts = [f"{listed(who_says)}: {text}" for text, who_says in groups.items()]
    sentence = "; ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."
