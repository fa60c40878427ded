"""Cutting the ranges of topics into slices, so that a bound or the deadline ends a scan between two of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from registry.observations import Bounds, PartitionRange, TopicRead

FIRST_SLICE = 50_000  # messages; shows their average size before more is read
SMALLEST_SLICE = 1_000  # messages; below it the queries of a slice take longer than its messages
LARGEST_SLICE = 1_000_000


@dataclass(frozen=True)
class Piece:
    """A range of one partition of a topic."""

    topic: str
    range: PartitionRange

    @property
    def size(self) -> int:
        """How many offsets it spans."""
        return self.range.end - self.range.start


def pieces(topics: Iterable[TopicRead]) -> list[Piece]:
    """All ranges, inside their watermarks: what expired can't be read, and reading past the end would wait."""
    return [Piece(read.topic, part) for read in topics for part in clamp(read.ranges)]


def clamp(ranges: Iterable[PartitionRange]) -> list[PartitionRange]:
    """The ranges inside their watermarks."""
    clamped = []
    for part in ranges:
        start = min(max(part.start, part.low), part.high)
        clamped.append(replace(part, start=start, end=max(start, min(part.end, part.high))))
    return clamped


def left(asked: Iterable[Piece]) -> int:
    """How many offsets the pieces span."""
    return sum(piece.size for piece in asked)


def next_size(read: int, read_bytes: int, bounds: Bounds) -> int:
    """How many messages the next slice may have, so that neither bound is passed by much; 0 when one is reached."""
    max_messages, max_bytes = bounds.max_messages, bounds.max_bytes
    if read >= max_messages or read_bytes >= max_bytes:
        return 0
    if read == 0:
        return max(1, min(bounds.first_slice or FIRST_SLICE, max_messages))
    average = max(1.0, read_bytes / read)
    return max(1, min(LARGEST_SLICE, max_messages - read, int((max_bytes - read_bytes) / average) + 1))


def cut(asked: list[Piece], size: int) -> tuple[list[Piece], list[Piece]]:
    """A slice of at most `size` offsets, taken evenly from the front of every piece, and what is left after it."""
    slice_, rest = [], []
    total, room = left(asked), size
    for piece in asked:
        part = piece.range
        take = piece.size if size >= total else min(piece.size, room, -(-size * piece.size // total))
        room -= take
        if take:
            slice_.append(replace(piece, range=replace(part, end=part.start + take)))
        if take < piece.size:
            rest.append(replace(piece, range=replace(part, start=part.start + take)))
    return slice_, rest
