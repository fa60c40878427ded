"""Finds the offsets of groups of messages with Spark SQL functions. No row passes through Python."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.connect import functions as f
from pyspark.sql.connect.session import SparkSession

from registry.errors import SparkUnavailable
from registry.observations import KafkaConnection, MessageGroup, PartitionRange
from registry.pipeline import kafka_reader
from registry.pipeline.framing import FRAMINGS, SIDES, binary, mark_of, raw_mark, text, with_framing
from registry.pipeline.kafka_reader import Piece
from registry.pipeline.session import USER_ID, Control, OnProgress, first_line, session_for

MOST_READ: Final = 500_000  # messages
MOST_GROUPS: Final = 500
MOST_RANGES: Final = 20_000
Ranges = tuple[tuple[int, int], ...]


def find_offsets(
    connection: KafkaConnection,
    groups: Sequence[MessageGroup],
    *,
    remote: str,
    seconds: float,
    tag: str,
    session_id: str | None = None,
    on_progress: OnProgress | None = None,
) -> dict[MessageGroup, Ranges]:
    """Return the first and last offsets of messages in each group without others in between, as far as limits allow.

    Raises SparkUnavailable, also if Spark can't read them, ScanInterrupted, and what `on_progress` raised.
    """
    chosen = list(groups)[:MOST_GROUPS]
    pieces, _ = kafka_reader.cut(_pieces(chosen), MOST_READ)
    try:
        with (
            session_for(remote, session_id, USER_ID) as session,
            Control(session, seconds=seconds, tag=tag, on_progress=on_progress) as control,
        ):
            rows = control.run("listing the offsets of findings", _query(session, connection, chosen, pieces).collect)
    except PySparkException as error:
        raise SparkUnavailable(f"the offsets of findings couldn't be read: {first_line(error)}") from error
    found: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for row in rows:
        mark = mark_of(row.kind, row.mark) if row.kind in FRAMINGS else ""
        found.setdefault((row.topic, row.side, str(row.partition), row.kind, mark), []).append((row.first, row.last))
    return {
        group: tuple(item for item in sorted(ranges) if group.first <= item[0] and item[1] <= group.last)
        for group in chosen
        if (ranges := found.get((group.topic, group.side, str(group.partition), group.kind, group.mark)))
    }


def _pieces(groups: Sequence[MessageGroup]) -> list[Piece]:
    """Return one range per partition that spans all of its groups."""
    ends: dict[tuple[str, int], tuple[int, int]] = {}
    for group in groups:
        first, last = ends.get((group.topic, group.partition), (group.first, group.last))
        ends[group.topic, group.partition] = (min(first, group.first), max(last, group.last))
    return [
        Piece(topic, PartitionRange(partition, first, last + 1, first, last + 1))
        for (topic, partition), (first, last) in sorted(ends.items())
    ]


def _query(
    session: SparkSession, connection: KafkaConnection, groups: Sequence[MessageGroup], pieces: Sequence[Piece]
) -> DataFrame:
    """Return one row per range: neighbours have the same difference between offset and rank."""
    framed = with_framing(kafka_reader.read_messages(session, connection, pieces), "topic", "partition", "offset")
    parts = []
    for side in SIDES:
        if own := sorted({_condition(group) for group in groups if group.side == side}):
            columns = [f"'{side}' AS side", f"{side}_class AS kind", f"{side}_mark AS mark"]
            parts.append(framed.where(" OR ".join(own)).selectExpr("topic", "partition", "offset", *columns))
    selected = reduce(DataFrame.unionAll, parts)
    group = "topic, partition, side, kind, mark"
    island = f.expr(f"offset - row_number() OVER (PARTITION BY {group} ORDER BY offset)")
    ranges = selected.withColumn("island", island).groupBy(*group.split(", "), "island")
    ends = ranges.agg(f.min("offset").alias("first"), f.max("offset").alias("last"))
    return ends.orderBy("first").limit(MOST_RANGES)


def _condition(group: MessageGroup) -> str:
    condition = f"(topic = {text(group.topic)} AND {group.side}_class = '{group.kind}'"
    if group.kind in FRAMINGS:
        condition += f" AND {group.side}_mark = {binary(raw_mark(group.kind, group.mark))}"
    return f"{condition})"
