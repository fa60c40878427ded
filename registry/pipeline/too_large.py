"""Finds messages that Spark has too little memory to read.

A broker limits the compressed size only: a batch of 30 KB can hold a message of 300 MB.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from pyspark.errors import PySparkException

from registry.pipeline.kafka_reader import Loss, Piece

REASON: Final = "Spark has too little memory to read it"
LOSS: Final = Loss("Spark's memory is exhausted; raise it, or read fewer topics at once", may_pass=True)
# The second is the error of a cluster that ends an executor whose memory is exhausted.
_EXHAUSTED: Final = ("java.lang.OutOfMemoryError", "ExecutorLostFailure")


def is_exhausted(error: PySparkException) -> bool:
    """Return whether a query failed because Spark's memory was exhausted."""
    return any(mark in str(error) for mark in _EXHAUSTED)


def find_too_large(pieces: Sequence[Piece], is_readable: Callable[[Sequence[Piece]], bool]) -> list[Piece]:
    """Return the first range of each partition that can't be read. `is_readable` reads some pieces.

    The rest of a message's batch can't be read either, because the batch is decompressed from its start.
    """
    if is_readable(pieces):
        return []
    if len(pieces) > 1:
        middle = len(pieces) // 2
        halves = (pieces[:middle], pieces[middle:])
        return [found for half in halves for found in find_too_large(half, is_readable)]
    (piece,) = pieces
    first = _smallest(piece.range.start, piece.range.end - 1, lambda last: not is_readable([_part(piece, last=last)]))
    return [_part(piece, first=first, last=_last(piece, first, is_readable))]


def _last(piece: Piece, first: int, is_readable: Callable[[Sequence[Piece]], bool]) -> int:
    """Return the last offset of the range that begins with `first`, looking further ahead each time."""
    unread, step, end = first, 1, piece.range.end - 1
    while unread < end:
        ahead = min(unread + step, end)
        if is_readable([_part(piece, first=ahead, last=ahead)]):
            return _smallest(unread + 1, ahead, lambda at: is_readable([_part(piece, first=at, last=at)])) - 1
        unread, step = ahead, step * 2
    return end


def _smallest(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the smallest number from `low` to `high` for which `holds` is true; it is for `high`."""
    return low + bisect_left(range(low, high), True, key=holds)


def _part(piece: Piece, *, first: int | None = None, last: int) -> Piece:
    start = piece.range.start if first is None else first
    return replace(piece, range=replace(piece.range, start=start, end=last + 1))


def lines(skipped: Sequence[Piece], now: int) -> list[Any]:
    """Return the lines about ranges that were skipped, in the form of `workers.message_reader`.

    The time of a message is in its batch too: what is known is that it was written before `now`.
    """
    return [
        [
            "undecodable",
            [piece.topic, "value", piece.range.partition, "", "", "not_read"],
            {
                "span": [piece.size, 0, piece.range.start, piece.range.end - 1, now, now],
                "offsets": [[piece.range.start, REASON]],
                "reasons": {REASON: piece.size},
                "ranges": [[piece.range.start, piece.range.end - 1]],
            },
        ]
        for piece in skipped
    ]
