"""The pass through Python for bodies that Spark SQL functions can't count, in one `mapInArrow` for all topics.

Bodies known to be dangerous are rejected before decoding (`workers.schema_shapes.AvroExtent`). If a message still kills
the worker process, the messages are halved until it is the only one left, and the pass continues without it.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.connect import functions as f
from pyspark.sql.connect.session import SparkSession

from registry.observations import Framing, KafkaConnection, Side, TopicScan
from registry.pipeline import kafka_reader, workers
from registry.pipeline.framing import SIDES, SIZE, body, is_one_of, text, with_framing, without_large
from registry.pipeline.kafka_reader import Piece
from registry.pipeline.session import Control
from registry.pipeline.workers.message_reader import DecodingPlan, reading

LARGEST_BODY: Final = 4 * 1024 * 1024  # larger bodies aren't decoded in Python but observed as not read
JSON_CLASSES: Final = ("json_object", "json_array")
_HEADERS: Final = {"newkey": "__debezium.newkey", "oldkey": "__debezium.oldkey"}

# The functions are sent to the workers with the query: a remote server needs no copy of this package.
cloudpickle.register_pickle_by_value(workers)


Marks = dict[tuple[str, Side], dict[Framing, list[bytes]]]  # by topic and side, as the bytes in messages


@dataclass(frozen=True)
class BodySelection:
    """The bodies of some pieces to decode: marks by topic and side, and JSON without a schema if in `plain`.

    With `is_share`, the bodies are also counted elsewhere, so bodies that are too large aren't reported.
    """

    pieces: tuple[Piece, ...]
    marks: Marks = field(default_factory=dict)
    indexed: dict[Framing, list[bytes]] = field(default_factory=dict)  # Protobuf: indexes may be in a header
    plain: frozenset[tuple[str, Side]] = frozenset()
    is_share: bool = False


def read_bodies(
    session: SparkSession, connection: KafkaConnection, selections: Sequence[BodySelection], plan: DecodingPlan
) -> DataFrame | None:
    """Return the lines of `workers.message_reader` about all selections; None if there is nothing to read."""
    selected = [
        _selected(kafka_reader.read_messages(session, connection, selection.pieces), selection)
        for selection in selections
        if selection.pieces
    ]
    if not selected:
        return None
    messages = selected[0]
    for other in selected[1:]:
        messages = messages.unionAll(other)
    return messages.mapInArrow(reading(plan), "line string")


def read_marks(session: SparkSession, connection: KafkaConnection, selection: BodySelection) -> DataFrame:
    """Return the selected messages without bodies and without Python: their position, size, class and mark."""
    messages = _selected(kafka_reader.read_messages(session, connection, selection.pieces), selection)
    return messages.drop(*(f"{side}_body" for side in SIDES))


def parsed(rows: Iterable[Any]) -> list[Any]:
    """Parse the collected lines."""
    return [json.loads(row.line) for row in rows]


def _selected(messages: DataFrame, selection: BodySelection) -> DataFrame:
    """Return topic, partition, offset, time, size, newkey, oldkey, and class, mark, body and `large` of each side.

    The body is null if it isn't selected or is too large; `large` is the size of a selected body that is too large.
    """
    columns = {"size": f.expr(SIZE), "time": f.expr("unix_millis(timestamp)")}
    columns |= {name: f.expr(_has_header(header)) for name, header in _HEADERS.items()}
    columns_out = ("topic", "partition", "offset", "time", "size", *_HEADERS)
    sides = (*SIDES, *(f"{side}_size" for side in SIDES))
    framed = with_framing(without_large(messages.withColumns(columns), LARGEST_BODY), *columns_out, *sides)
    bodies = {
        f"{side}_{part}": f.expr(expression)
        for side in SIDES
        for part, expression in zip(("body", "large"), _body_and_size(side, selection), strict=True)
    }
    wanted = " OR ".join(f"{name} IS NOT NULL" for name in bodies)
    chosen = framed.withColumns(bodies).where(wanted)
    parts = [f"{side}_{part}" for side in SIDES for part in ("class", "mark", "body", "large")]
    return chosen.select(*columns_out, *parts)


def _has_header(name: str) -> str:
    return f"headers IS NOT NULL AND array_contains(headers.key, '{name}')"


def _body_and_size(side: Side, selection: BodySelection) -> tuple[str, str]:
    """Return SQL expressions for the body of a selected side, and for the size of a selected side that is too large."""
    conditions = [
        f"(topic = {text(topic)} AND {is_one_of(side, marks)})"
        for (topic, of), marks in selection.marks.items()
        if of == side and any(marks.values())
    ]
    plain = [text(topic) for topic, of in sorted(selection.plain) if of == side]
    if plain:
        classes = ", ".join(repr(name) for name in JSON_CLASSES)
        conditions.append(f"(topic IN ({', '.join(plain)}) AND {side}_class IN ({classes}))")
    if not conditions:
        return "CAST(NULL AS BINARY)", "CAST(NULL AS INT)"
    expression = body(side)
    if selection.indexed.get("guid"):
        indexed = is_one_of(side, {"guid": selection.indexed["guid"]})
        in_header = f"{side}_indexes IS NOT NULL AND {indexed}"
        expression = f"CASE WHEN {in_header} THEN concat({side}_indexes, {side}) ELSE {expression} END"
    wanted = " OR ".join(conditions)
    large = "false" if selection.is_share else f"{side}_size > {LARGEST_BODY}"
    return (
        f"CASE WHEN {side}_size <= {LARGEST_BODY} AND ({wanted}) THEN {expression} END",
        f"CASE WHEN {large} AND ({wanted}) THEN {side}_size END",
    )


logger = logging.getLogger(__name__)

#: Spark's errors for a task whose Python process ended or was killed by the operating system
_DIED: Final = ("Python worker exited unexpectedly", "ExecutorLostFailure", "Python worker failed to connect back")
#: after this many process crashes by messages of one schema on a topic's side, its messages are no longer decoded
MOST_DEATHS: Final = 3
ENDED: Final = "decoding it ended the process that did"
RULES_ENDED: Final = "evaluating the rules of its schema takes more memory or time than a message may"
GIVEN_UP: Final = f"decoding ended the process that did, {MOST_DEATHS} times; no further message of it is decoded"
#: topic, side, framing and raw mark; the last two are empty for JSON without a schema
_Group = tuple[str, Side, str, bytes]


class Decoding:
    """Decodes bodies of one scan; `writers` maps (framing, raw mark) to (kind, text), `rules` to what the plan has."""

    def __init__(
        self,
        session: SparkSession,
        spec: TopicScan,
        control: Control,
        writers: Mapping[tuple[Framing, bytes], tuple[str, str]],
        rules: Mapping[tuple[Framing, bytes], tuple[list[dict[str, Any]], dict[str, tuple[str, ...]]]],
    ) -> None:
        self._session, self.spec, self._control, self._writers = session, spec, control, writers
        self._rules = dict(rules)
        self._deaths: Counter[_Group] = Counter()

    def lines(self, selections: Sequence[BodySelection]) -> list[Any]:
        """Return the lines of `workers.message_reader` about all selections and about messages that ended a process."""
        left = [part for selection in selections if (part := self._without_deadly(selection)).pieces]
        try:
            return self._decode(left)
        except PySparkException as error:
            if not any(mark in str(error) for mark in _DIED):
                raise
            logger.warning("a Spark worker's Python process ended; looking for the cause in %d messages", _size(left))
        lines = self._without_rules(left)
        if lines is not None:
            return lines
        halves = _halves(left)
        if halves is None:
            return self._blame(left)
        return [line for half in halves for line in self.lines(half)]

    def _without_rules(self, selections: Sequence[BodySelection]) -> list[Any] | None:
        """Return the lines without data contract rules, which then stay off; None if the rules aren't the cause."""
        own = {key: self._rules[key] for key in _keys(selections) & self._rules.keys()}
        off = {
            key: ([rule | {"not_checked": RULES_ENDED} for rule in rules], tags) for key, (rules, tags) in own.items()
        }
        if off == own:
            return None
        self._rules |= off
        try:
            return self._decode(selections)
        except PySparkException as error:
            if not any(mark in str(error) for mark in _DIED):
                raise
            self._rules |= own
            return None

    def _decode(self, selections: Sequence[BodySelection]) -> list[Any]:
        messages = read_bodies(self._session, self.spec.connection, selections, self._plan(selections))
        return parsed(self._control.run("decoding messages", messages.collect)) if messages is not None else []

    def _plan(self, selections: Sequence[BodySelection]) -> DecodingPlan:
        profile = self.spec.profile
        keys = _keys(selections)
        writers: dict[tuple[str, bytes], tuple[str, str]] = {key: self._writers[key] for key in keys}
        rules: Any = {key: self._rules[key] for key in keys & self._rules.keys()}
        return DecodingPlan(writers, profile.fields, profile.changes, profile.samples, profile.reveal, rules)

    def _blame(self, selections: Sequence[BodySelection]) -> list[Any]:
        """Return the lines of a single message that ended the process, decoding each side separately."""
        lines: list[Any] = []
        for selection in selections:
            for side in SIDES:
                alone = _of_side(selection, side)
                if not alone.marks and not alone.plain:
                    continue
                try:
                    lines += self._decode([alone])
                except PySparkException as error:
                    if not any(mark in str(error) for mark in _DIED):
                        raise
                    lines += self._blamed(alone, side)
        return lines

    def _blamed(self, selection: BodySelection, side: Side) -> Iterator[Any]:
        query = read_marks(self._session, self.spec.connection, selection)
        for row in self._control.run("looking for what ended a process", query.collect):
            raw = row[f"{side}_mark"]
            framing = row[f"{side}_class"] if raw is not None else ""
            group = (row.topic, side, framing, bytes(raw or b""))
            self._deaths[group] += 1
            logger.warning(
                "decoding the %s at %s:%d@%d ended its process", side, *(row.topic, row.partition, row.offset)
            )
            span = [1, row.size, row.offset, row.offset, row.time, row.time]
            key = [row.topic, side, row.partition, framing, group[3].hex(), "not_read"]
            yield ["undecodable", key, _one_undecodable(span, row.offset)]
            if self._deaths[group] == MOST_DEATHS:
                if framing:
                    yield ["given_up", [row.topic, side, framing, group[3].hex()], GIVEN_UP]
                logger.warning("%s: %s", group[:3], GIVEN_UP)

    def _without_deadly(self, selection: BodySelection) -> BodySelection:
        """Return the selection without the schemas whose messages ended the process too often."""
        deadly = {group for group, deaths in self._deaths.items() if deaths >= MOST_DEATHS}
        if not deadly:
            return selection
        marks: Marks = {
            (topic, side): {
                framing: [raw for raw in raws if (topic, side, framing, raw) not in deadly]
                for framing, raws in by_framing.items()
            }
            for (topic, side), by_framing in selection.marks.items()
        }
        plain = frozenset((topic, side) for topic, side in selection.plain if (topic, side, "", b"") not in deadly)
        return replace(selection, marks=marks, plain=plain)


def _one_undecodable(span: list[int], offset: int) -> dict[str, Any]:
    return {"span": span, "offsets": [[offset, ENDED]], "reasons": {ENDED: 1}, "ranges": [[offset, offset]]}


def _keys(selections: Sequence[BodySelection]) -> set[tuple[Framing, bytes]]:
    return {
        (framing, raw)
        for selection in selections
        for marks in selection.marks.values()
        for framing, raws in marks.items()
        for raw in raws
    }


def _size(selections: Sequence[BodySelection]) -> int:
    return sum(piece.size for selection in selections for piece in selection.pieces)


def _of_side(selection: BodySelection, side: Side) -> BodySelection:
    marks = {
        topic_side: some for topic_side, some in selection.marks.items() if topic_side[1] == side and any(some.values())
    }
    return replace(
        selection, marks=marks, plain=frozenset(topic_side for topic_side in selection.plain if topic_side[1] == side)
    )


def _halves(selections: Sequence[BodySelection]) -> tuple[list[BodySelection], list[BodySelection]] | None:
    """Split the messages into two halves; None for a single message."""
    total = _size(selections)
    if total < 2:
        return None
    first: list[BodySelection] = []
    second: list[BodySelection] = []
    room = total // 2
    for selection in selections:
        before, after = [], []
        for piece in selection.pieces:
            taken = min(piece.size, room)
            room -= taken
            middle = piece.range.start + taken
            if taken:
                before.append(replace(piece, range=replace(piece.range, end=middle)))
            if taken < piece.size:
                after.append(replace(piece, range=replace(piece.range, start=middle)))
        for half, pieces in ((first, before), (second, after)):
            if pieces:
                half.append(replace(selection, pieces=tuple(pieces)))
    return first, second
