"""The first pass over messages: how many of which framing, by partition; one Spark job for all topics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as f

from registry.observations import Framing, Side, WriterSchema
from registry.pipeline.framing import FRAMINGS, SIDES, binary, is_one_of, raw_mark, with_framing

GROUPED = ("topic", "partition", *(f"{side}_{part}" for side in SIDES for part in ("class", "mark", "inner")))
_FRAMED = f"IN ({', '.join(repr(name) for name in FRAMINGS)})"
#: hours that are counted of a group, the newest; what a producer writes as a time may be anything
MOST_HOURS: Final = 24
_HOUR = "greatest(0, unix_millis(timestamp)) DIV 3600000"
SIZE = "coalesce(length(key), 0) + coalesce(length(value), 0)"


def group_messages(messages: DataFrame, writers: Iterable[WriterSchema], max_groups: int) -> DataFrame:
    """Messages counted by partition and by class and mark of both sides.

    At most `max_groups` groups keep their marks, those of known schemas and the largest first; the others of a
    partition become one row with `folded`, so that foreign bytes that look like ids can't make millions of rows.
    """
    marks = marks_of(writers)
    kept = ("topic", "partition", "offset", "timestamp", "size", *SIDES)
    framed = with_framing(messages.withColumn("size", f.expr(SIZE)), *kept)
    inner = {f"{side}_inner": f.expr(_inner(side, marks.get("id", []))) for side in SIDES}
    framed = framed.withColumns(inner).select(*GROUPED, "offset", "timestamp", "size")
    groups = _with_hours(framed)
    known = " AND ".join(_known(side, marks) for side in SIDES)
    order = f"ORDER BY ({known}) DESC, messages DESC"
    ranked = groups.withColumn("folded", f.expr(f"row_number() OVER ({order}) > {int(max_groups)}"))
    whole = [f.expr(f"CASE WHEN NOT folded THEN {name} END").alias(name) for name in GROUPED[2:]]
    return ranked.groupBy("topic", "partition", "folded", *whole).agg(
        f.count("*").alias("groups"),
        *_together(),
        f.expr("first(hours) FILTER (WHERE NOT folded)").alias("hours"),
    )


def _with_hours(framed: DataFrame) -> DataFrame:
    """The groups, each with its messages by hour: the newest hours alone, which are counted whole."""
    by_hour = framed.groupBy(*GROUPED, f.expr(_HOUR).alias("hour")).agg(
        f.count("*").alias("messages"),
        f.sum("size").alias("bytes"),
        f.min("offset").alias("first_offset"),
        f.max("offset").alias("last_offset"),
        f.expr("unix_millis(min(timestamp))").alias("first_time"),
        f.expr("unix_millis(max(timestamp))").alias("last_time"),
    )
    newest = f"slice(sort_array(collect_list(struct(hour, messages)), false), 1, {MOST_HOURS})"
    return by_hour.groupBy(*GROUPED).agg(
        *_together(),
        f.expr(newest).alias("hours"),
    )


def _together() -> list[Column]:
    """What groups have together that become one."""
    return [
        f.sum("messages").alias("messages"),
        f.sum("bytes").alias("bytes"),
        f.min("first_offset").alias("first_offset"),
        f.max("last_offset").alias("last_offset"),
        f.min("first_time").alias("first_time"),
        f.max("last_time").alias("last_time"),
    ]


def marks_of(writers: Iterable[WriterSchema]) -> dict[Framing, list[bytes]]:
    """The raw marks of the writers, by framing."""
    marks: dict[Framing, list[bytes]] = {}
    for writer in writers:
        marks.setdefault(writer.framing, []).append(raw_mark(writer.framing, writer.mark))
    return marks


def _inner(side: Side, ids: Iterable[bytes]) -> str:
    """The known schema id that the bytes begin with although a header has a GUID: they were framed twice."""
    listed = ", ".join(binary(raw) for raw in sorted(set(ids)))
    if not listed:
        return "CAST(NULL AS BINARY)"
    framed = f"{side}_class = 'guid' AND substring({side}, 1, 1) = X'00' AND substring({side}, 2, 4) IN ({listed})"
    return f"CASE WHEN {framed} THEN substring({side}, 2, 4) END"


def _known(side: Side, marks: dict[Framing, list[bytes]]) -> str:
    return f"({side}_class NOT {_FRAMED} OR {is_one_of(side, marks)})"
