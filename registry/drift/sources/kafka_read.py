"""What a scan of topics read, as the JSON that its row keeps and its page shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from registry.drift.sources.base import TopicSeen
from registry.observations import (
    FramedMessages,
    NullMessages,
    Observation,
    OffsetsExpired,
    PartitionRead,
    ScanTotals,
    SchemaNotUsed,
    TopicTotals,
    UnframedMessages,
)

MAX_ROWS: Final = 1000


def read_json(topics: Sequence[TopicSeen], observations: Sequence[Observation], *, seconds: float) -> dict[str, Any]:
    """Totals, positions, messages by schema, and what people have to know of it.

    `nothing` is true where the source has no topic, or where none could be asked: such a source is not scanned.
    `messages` of 0 without it means that nothing new had come since the last scan. Lists are cut at 1,000 rows;
    `left_out` says of which.
    """
    totals = next((seen for seen in observations if isinstance(seen, ScanTotals)), None)
    bounds = {seen.topic: seen.bound_reached for seen in observations if isinstance(seen, TopicTotals)}
    asked = [topic for topic in topics if not topic.gone and (topic.messages or not topic.problem)]
    rows: dict[str, list[dict[str, Any]]] = {
        "topics": [_topic(topic, bounds) for topic in topics if topic.messages or topic.gone or topic.problem],
        "partitions": [_partition(seen) for seen in observations if isinstance(seen, PartitionRead)],
        "ids": _marks(observations),
        "unframed": _hints(observations),
        "unreadable": [{"topic": topic.name, "reason": topic.problem} for topic in topics if topic.problem],
        "schemas_not_used": [
            {"framing": seen.framing, "mark": seen.mark, "reason": seen.reason}
            for seen in observations
            if isinstance(seen, SchemaNotUsed)
        ],
        "expired": [
            {"topic": each.topic, "partition": each.partition, "start": each.start, "end": each.end}
            for each in observations
            if isinstance(each, OffsetsExpired)
        ],
    }
    return {
        "nothing": not asked,
        "messages": totals.messages if totals else 0,
        "bytes": totals.bytes if totals else 0,
        "seconds": round(seconds, 2),
        "bound_reached": totals.bound_reached if totals else None,
        "tombstones": _tombstones(observations),
        "topics_asked": len(asked),
        "topics_read": sum(1 for topic in topics if topic.messages),
        "restarted": sorted(topic.name for topic in topics if topic.restarted),
        "gone": sorted(topic.name for topic in topics if topic.gone),
        **{name: found[:MAX_ROWS] for name, found in rows.items()},
        "left_out": {name: len(found) - MAX_ROWS for name, found in rows.items() if len(found) > MAX_ROWS},
    }


def _topic(topic: TopicSeen, bounds: Mapping[str, str | None]) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "messages": topic.messages,
        "bound_reached": bounds.get(topic.name),
        "gone": topic.gone,
        "restarted": topic.restarted,
    }


def _partition(seen: PartitionRead) -> dict[str, Any]:
    return {
        "topic": seen.topic,
        "partition": seen.partition,
        "start": seen.start,
        "end": seen.end,
        "high": seen.high,
        "messages": seen.messages,
    }


def _marks(observations: Iterable[Observation]) -> list[dict[str, Any]]:
    """Messages by topic, side and mark; `schema_id` is a number where the mark is one."""
    counts: dict[tuple[str, str, str, str], int] = {}
    for seen in observations:
        if isinstance(seen, FramedMessages):
            key = (seen.topic, seen.side, seen.framing, seen.mark)
            counts[key] = counts.get(key, 0) + seen.span.messages
    return [
        {
            "topic": topic,
            "side": side,
            "framing": framing,
            "schema_id": int(mark) if framing == "id" else mark,
            "messages": number,
        }
        for (topic, side, framing, mark), number in sorted(counts.items())
    ]


def _hints(observations: Iterable[Observation]) -> list[dict[str, Any]]:
    counts: dict[tuple[str, str, str], int] = {}
    for seen in observations:
        if isinstance(seen, UnframedMessages):
            key = (seen.topic, seen.side, seen.hint)
            counts[key] = counts.get(key, 0) + seen.span.messages
    return [
        {"topic": topic, "side": side, "hint": hint, "messages": number}
        for (topic, side, hint), number in sorted(counts.items())
    ]


def _tombstones(observations: Iterable[Observation]) -> int:
    return sum(seen.span.messages for seen in observations if isinstance(seen, NullMessages) and seen.side == "value")
