"""Rows that scans kept, as the values that the next scan is merged into."""

from __future__ import annotations

from datetime import UTC, datetime

from registry.drift.merging import FieldCounts, Use
from registry.drift.models import FieldStatistic, SchemaUse


def use_of(row: SchemaUse) -> Use:
    """A use as scans merge it."""
    return Use(
        messages=row.messages,
        undecodable=row.undecodable,
        bytes=row.bytes,
        first_offset=row.first_offset,
        last_offset=row.last_offset,
        first_time=round(row.first_time.timestamp() * 1000),
        last_time=round(row.last_time.timestamp() * 1000),
    )


def field_of(row: FieldStatistic) -> FieldCounts:
    """A field's day as scans merge it."""
    return FieldCounts(
        messages=row.messages,
        present=row.present,
        nulls=row.nulls,
        kinds=row.kinds,
        values=row.values,
        distinct=row.distinct,
        minimum=row.minimum,
        maximum=row.maximum,
    )


def time_of(milliseconds: int) -> datetime:
    """Kafka takes any number as a time; what no calendar has is brought to its ends."""
    return datetime.fromtimestamp(min(max(milliseconds, 0), 253_402_300_799_000) / 1000, tz=UTC)
