"""The scan of a topic: one grouping a slice, merged here, handed out as observations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.connect import functions as f
from pyspark.sql.connect.session import SparkSession

from registry.errors import BrokerUnavailable, InvalidSource, ScanInterrupted
from registry.observations import (
    Bound,
    FramedMessages,
    Hint,
    NullMessages,
    Observation,
    OtherGroups,
    PartitionRange,
    PartitionRead,
    SchemaNotUsed,
    Side,
    Span,
    TopicScan,
    TopicTotals,
    UndecodableMessages,
    UnframedMessages,
)
from registry.pipeline import decode, slices
from registry.pipeline.control import Control
from registry.pipeline.readers import kafka
from registry.pipeline.session import first_line

SIDES: tuple[Side, Side] = ("key", "value")
GROUPED = ("partition", "key_class", "key_id", "key_ok", "value_class", "value_id", "value_ok")
_NO_BROKER = ("TimeoutException", "Timed out waiting for", "No resolvable bootstrap urls", "DisconnectException")
# partition, side, class, schema id, decoded?
GroupKey = tuple[int, Side, str, int | None, bool | None]


@dataclass
class _Tally:
    """What the slices so far add up to."""

    groups: dict[GroupKey, Span] = field(default_factory=dict)
    folded: dict[int, tuple[int, Span]] = field(default_factory=dict)
    partitions: dict[int, int] = field(default_factory=dict)
    messages: int = 0
    bytes: int = 0

    def add(self, row: Any) -> None:
        """Count one row of the grouping: for its partition, and for both of its sides."""
        span = Span(row.messages, row.bytes, row.first_offset, row.last_offset, row.first_time, row.last_time)
        self.partitions[row.partition] = self.partitions.get(row.partition, 0) + span.messages
        self.messages += span.messages
        self.bytes += span.bytes
        if row.folded:
            groups, before = self.folded.get(row.partition, (0, None))
            self.folded[row.partition] = (groups + row.groups, _joined(before, span))
            return
        for side in SIDES:
            raw, kind = row[f"{side}_id"], row[f"{side}_class"]
            schema_id = int.from_bytes(raw, "big") if raw is not None else None
            key = (row.partition, side, kind, schema_id, row[f"{side}_ok"])
            self.groups[key] = _joined(self.groups.get(key), span)

    def fold_beyond(self, most: int) -> None:
        """Keep the largest `most` groups; what slices found apart may be more together than each was allowed."""
        by_size = sorted(self.groups.items(), key=lambda item: -item[1].messages)
        for key, span in by_size[most:]:
            groups, before = self.folded.get(key[0], (0, None))
            self.folded[key[0]] = (groups + 1, _joined(before, span))
            del self.groups[key]


def scan_topic(session: SparkSession, spec: TopicScan, control: Control) -> Iterator[Observation]:
    """Observe the messages of a topic's ranges, until they end or a bound is reached.

    Raises InvalidSource, BrokerUnavailable, ScanInterrupted (when not even the first slice was done in time),
    SparkUnavailable, and what the caller's `on_progress` raised.
    """
    started = time.monotonic()
    kafka.check_topic(spec.topic, spec.ranges)
    usable, unusable = _usable_schemas(session, spec, control)
    asked = slices.clamp(spec.ranges)
    tally = _Tally()
    wanted = [part for part in asked if part.end > part.start]
    rest, bound = _read_slices(session, spec, control, usable=usable, rest=wanted, tally=tally)
    tally.fold_beyond(spec.bounds.max_groups)
    if tally.folded and bound is None:
        bound = "groups"
    stopped = {part.partition: part.start for part in rest}
    for part in asked:
        end = stopped.get(part.partition, part.end)
        count = tally.partitions.get(part.partition, 0)
        yield PartitionRead(part.partition, part.start, end, part.low, part.high, count)
    yield from _grouped(tally)
    yield from unusable
    elapsed = round(time.monotonic() - started, 3)
    yield TopicTotals(spec.topic, tally.messages, tally.bytes, bound, elapsed)


def _read_slices(
    session: SparkSession,
    spec: TopicScan,
    control: Control,
    *,
    usable: dict[int, str],
    rest: list[PartitionRange],
    tally: _Tally,
) -> tuple[list[PartitionRange], Bound | None]:
    """Read slice after slice into `tally`; returns what is left unread, and the bound that left it."""
    bounds = spec.bounds
    total, done, rate = slices.left(rest), 0, 0.0
    while rest:
        size = slices.next_size(done, tally.bytes, bounds.max_messages, bounds.max_bytes)
        if size == 0:
            return rest, "bytes" if tally.bytes >= bounds.max_bytes else "messages"
        if rate:
            size = min(size, max(slices.FIRST_SLICE, int(rate * control.seconds_left / 2)))
        piece, after = slices.cut(rest, size)
        began = time.monotonic()
        phase = f"reading messages {done + 1:,} to {done + slices.left(piece):,} of {total:,} from {spec.topic}"
        try:
            rows = control.run(phase, _collect(session, spec, usable, piece))
        except ScanInterrupted as error:
            if done and error.details.get("reason") == "deadline":
                return rest, "deadline"
            raise
        except PySparkException as error:
            raise _kafka_error(error, spec) or error from error
        for row in rows:
            tally.add(row)
        done += slices.left(piece)
        rate = slices.left(piece) / max(0.001, time.monotonic() - began)
        rest = after
    return [], None


def _collect(
    session: SparkSession, spec: TopicScan, usable: dict[int, str], piece: list[PartitionRange]
) -> Callable[[], list[Any]]:
    messages = kafka.read_messages(session, spec.connection, spec.topic, piece)
    return cast("Callable[[], list[Any]]", group_messages(messages, usable, spec.bounds.max_groups).collect)


def group_messages(messages: DataFrame, usable: dict[int, str], max_groups: int) -> DataFrame:
    """Messages counted by partition and by class, id and decodability of both sides.

    At most `max_groups` groups keep their ids, the largest and those with a known id first; the others of a
    partition become one row with `folded`, so that foreign bytes that look like ids can't make millions of rows.
    """
    sides = [
        column
        for side in SIDES
        for column in (
            decode.side_class(side).alias(f"{side}_class"),
            decode.raw_id(side).alias(f"{side}_id"),
            decode.decodes(side, usable).alias(f"{side}_ok"),
        )
    ]
    size = f.expr("coalesce(length(key), 0) + coalesce(length(value), 0)").alias("size")
    groups = (
        messages.select("partition", "offset", "timestamp", size, *sides)
        .groupBy(*GROUPED)
        .agg(
            f.count("*").alias("messages"),
            f.sum("size").alias("bytes"),
            f.min("offset").alias("first_offset"),
            f.max("offset").alias("last_offset"),
            f.expr("unix_millis(min(timestamp))").alias("first_time"),
            f.expr("unix_millis(max(timestamp))").alias("last_time"),
        )
    )
    ranked = groups.withColumn(
        "folded",
        f.expr(
            "row_number() OVER (ORDER BY (value_id IS NULL OR value_ok IS NOT NULL) AND "
            f"(key_id IS NULL OR key_ok IS NOT NULL) DESC, messages DESC) > {int(max_groups)}"
        ),
    )
    kept = [f.expr(f"CASE WHEN NOT folded THEN {name} END").alias(name) for name in GROUPED[1:]]
    return ranked.groupBy("partition", "folded", *kept).agg(
        f.count("*").alias("groups"),
        f.sum("messages").alias("messages"),
        f.sum("bytes").alias("bytes"),
        f.min("first_offset").alias("first_offset"),
        f.max("last_offset").alias("last_offset"),
        f.min("first_time").alias("first_time"),
        f.max("last_time").alias("last_time"),
    )


def _usable_schemas(
    session: SparkSession, spec: TopicScan, control: Control
) -> tuple[dict[int, str], list[SchemaNotUsed]]:
    """The writer schemas that Spark decodes with, wrapped, and those that it can't, each with the reason."""
    usable: dict[int, str] = {}
    unusable: list[SchemaNotUsed] = []
    for schema_id, text in sorted(spec.writer_schemas.items()):
        try:
            usable[schema_id] = decode.wrap(text)
        except decode.SchemaNotUsable as error:
            unusable.append(SchemaNotUsed(schema_id, str(error)))
    empty = session.sql("SELECT CAST(NULL AS BINARY) AS value LIMIT 0")

    def refused(schemas: dict[int, str]) -> PySparkException | None:
        def analyse() -> None:
            _ = empty.select(decode.decodes("value", schemas).alias("ok")).schema

        try:
            control.run("checking the registered schemas", analyse)
        except PySparkException as error:
            return error
        return None

    if not usable or refused(usable) is None:
        return usable, unusable
    for schema_id, wrapped in list(usable.items()):
        refusal = refused({schema_id: wrapped})
        if refusal is not None:
            del usable[schema_id]
            unusable.append(SchemaNotUsed(schema_id, f"Spark can't read this schema: {first_line(refusal)}"))
    return usable, unusable


def _grouped(tally: _Tally) -> Iterator[Observation]:
    """The groups as observations, by partition and side; decoded and undecodable ones of an id count as framed."""
    framed: dict[tuple[int, Side, int], Span] = {}
    others: list[Observation] = []
    for (partition, side, kind, schema_id, ok), span in sorted(tally.groups.items(), key=lambda item: str(item[0])):
        if kind == "null":
            others.append(NullMessages(side, partition, span))
        elif schema_id is None:
            others.append(UnframedMessages(side, partition, cast("Hint", kind), span))
        else:
            key = (partition, side, schema_id)
            framed[key] = _joined(framed.get(key), span)
            if ok is False:
                others.append(UndecodableMessages(side, partition, schema_id, span))
    for (partition, side, schema_id), span in sorted(framed.items()):
        yield FramedMessages(side, partition, schema_id, span)
    yield from others
    for partition, (groups, span) in sorted(tally.folded.items()):
        yield OtherGroups(partition, groups, span)


def _joined(one: Span | None, other: Span) -> Span:
    if one is None:
        return other
    return Span(
        one.messages + other.messages,
        one.bytes + other.bytes,
        min(one.first_offset, other.first_offset),
        max(one.last_offset, other.last_offset),
        min(one.first_time, other.first_time),
        max(one.last_time, other.last_time),
    )


def _kafka_error(error: PySparkException, spec: TopicScan) -> BrokerUnavailable | InvalidSource | None:
    """The broker's part in a failed query; None when it had none."""
    text = str(error)
    if "UnknownTopicOrPartition" in text:
        return InvalidSource(f"{spec.topic} or one of its partitions is gone from {spec.connection.bootstrap}")
    if not any(mark in text for mark in _NO_BROKER):
        return None
    return BrokerUnavailable(
        f"the Kafka cluster at {spec.connection.bootstrap} didn't answer Spark while reading {spec.topic}: "
        f"{first_line(error)}; check that the Spark server reaches it too"
    )
