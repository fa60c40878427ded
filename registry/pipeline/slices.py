"""Cutting a topic's ranges into pieces, so that a bound or the deadline ends a scan between two of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from registry.observations import PartitionRange

FIRST_SLICE = 50_000  # messages; shows their average size before more is read
LARGEST_SLICE = 1_000_000


def clamp(ranges: Iterable[PartitionRange]) -> list[PartitionRange]:
    """The ranges inside their watermarks: what expired can't be read, and reading past the end would wait."""
    clamped = []
    for part in ranges:
        start = min(max(part.start, part.low), part.high)
        clamped.append(replace(part, start=start, end=max(start, min(part.end, part.high))))
    return clamped


def left(ranges: Iterable[PartitionRange]) -> int:
    """How many offsets the ranges span."""
    return sum(part.end - part.start for part in ranges)


def next_size(read: int, read_bytes: int, max_messages: int, max_bytes: int) -> int:
    """How many messages the next slice may have, so that neither bound is passed by much; 0 when one is reached."""
    if read >= max_messages or read_bytes >= max_bytes:
        return 0
    if read == 0:
        return min(FIRST_SLICE, max_messages)
    average = max(1.0, read_bytes / read)
    return max(1, min(LARGEST_SLICE, max_messages - read, int((max_bytes - read_bytes) / average) + 1))


def cut(ranges: list[PartitionRange], size: int) -> tuple[list[PartitionRange], list[PartitionRange]]:
    """A slice of at most `size` offsets, taken evenly from the front of every range, and what is left after it."""
    slice_, rest = [], []
    total, room = left(ranges), size
    for part in ranges:
        span = part.end - part.start
        take = span if size >= total else min(span, room, -(-size * span // total))
        room -= take
        if take:
            slice_.append(replace(part, end=part.start + take))
        if take < span:
            rest.append(replace(part, start=part.start + take))
    return slice_, rest
