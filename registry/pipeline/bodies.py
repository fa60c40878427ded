"""The pass through Python: bodies that Spark's own functions can't count, in one `mapInArrow` for all topics."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql.connect import functions as f
from pyspark.sql.connect.session import SparkSession

from registry.observations import Framing, KafkaConnection, Side
from registry.pipeline import workers
from registry.pipeline.framing import SIDES, body, is_one_of, text, with_framing
from registry.pipeline.grouping import SIZE
from registry.pipeline.readers import kafka
from registry.pipeline.slices import Piece
from registry.pipeline.workers.reading import Plan, reading

LARGEST_BODY: Final = 4 * 1024 * 1024  # larger ones aren't decoded in Python
PARTITIONS: Final = 8  # of small readings, so that each has few tasks
JSON_CLASSES: Final = ("json_object", "json_array")
_HEADERS: Final = {"newkey": "__debezium.newkey", "oldkey": "__debezium.oldkey"}

# The functions go to the workers with the query: a remote server needs no copy of this package.
cloudpickle.register_pickle_by_value(workers)


Marks = dict[tuple[str, Side], dict[Framing, list[bytes]]]  # of topics and sides, as they stand in messages


@dataclass(frozen=True)
class Wanted:
    """What is to be decoded of some pieces: marks by topic and side, and JSON without a schema where `plain`."""

    pieces: tuple[Piece, ...]
    marks: Marks = field(default_factory=dict)
    indexed: dict[Framing, list[bytes]] = field(default_factory=dict)  # Protobuf's, whose indexes may be in a header
    plain: frozenset[tuple[str, Side]] = frozenset()


def read_bodies(
    session: SparkSession, connection: KafkaConnection, wanted: Sequence[Wanted], plan: Plan
) -> DataFrame | None:
    """The lines of `workers.reading` about all that is wanted; None when nothing is."""
    selected = [
        _selected(kafka.read_messages(session, connection, each.pieces), each) for each in wanted if each.pieces
    ]
    if not selected:
        return None
    messages = selected[0]
    for other in selected[1:]:
        messages = messages.unionAll(other)
    return messages.mapInArrow(reading(plan), "line string")


def read_marks(session: SparkSession, connection: KafkaConnection, wanted: Wanted) -> DataFrame:
    """The wanted messages without their bodies, and without Python: where each stands, its size, class and mark."""
    messages = _selected(kafka.read_messages(session, connection, wanted.pieces), wanted)
    return messages.drop(*(f"{side}_body" for side in SIDES))


def parsed(rows: Iterable[Any]) -> list[Any]:
    """The collected lines, read."""
    return [json.loads(row.line) for row in rows]


def _selected(messages: DataFrame, wanted: Wanted) -> DataFrame:
    """Columns: topic, partition, offset, time, size, newkey, oldkey, and of each side class, mark and wanted body."""
    columns = {"size": f.expr(SIZE), "time": f.expr("unix_millis(timestamp)")}
    columns |= {name: f.expr(_has_header(header)) for name, header in _HEADERS.items()}
    kept = ("topic", "partition", "offset", "time", "size", *_HEADERS, *SIDES)
    framed = with_framing(messages.withColumns(columns), *kept)
    bodies = {f"{side}_body": f.expr(_body(side, wanted)) for side in SIDES}
    chosen = framed.withColumns(bodies).where("key_body IS NOT NULL OR value_body IS NOT NULL")
    parts = [f"{side}_{part}" for side in SIDES for part in ("class", "mark", "body")]
    return chosen.select(*kept[:-2], *parts)


def _has_header(name: str) -> str:
    return f"headers IS NOT NULL AND array_contains(headers.key, '{name}')"


def _body(side: Side, wanted: Wanted) -> str:
    conditions = [
        f"(topic = {text(topic)} AND {is_one_of(side, marks)})"
        for (topic, of), marks in wanted.marks.items()
        if of == side and any(marks.values())
    ]
    plain = [text(topic) for topic, of in sorted(wanted.plain) if of == side]
    if plain:
        classes = ", ".join(repr(name) for name in JSON_CLASSES)
        conditions.append(f"(topic IN ({', '.join(plain)}) AND {side}_class IN ({classes}))")
    if not conditions:
        return "CAST(NULL AS BINARY)"
    found = body(side)
    if wanted.indexed.get("guid"):
        indexed = is_one_of(side, {"guid": wanted.indexed["guid"]})
        found = f"CASE WHEN {indexed} THEN concat({side}_indexes, {side}) ELSE {found} END"
    small = f"length({side}) <= {LARGEST_BODY}"
    return f"CASE WHEN {small} AND ({' OR '.join(conditions)}) THEN {found} END"
