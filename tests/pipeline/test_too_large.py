"""Messages that Spark has too little memory to read are found and skipped."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from registry.observations import PartitionRange
from registry.pipeline.kafka_reader import Piece
from registry.pipeline.run import _ScanProgress
from registry.pipeline.too_large import find_too_large


def piece(topic: str, start: int, end: int, partition: int = 0) -> Piece:
    return Piece(topic, PartitionRange(partition, start, end, 0, 1_000))


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        pytest.param((40, 41), (40, 41), id="one message"),
        pytest.param((7, 8), (7, 8), id="the first of the slice"),
        pytest.param((99, 100), (99, 100), id="the last of the slice"),
        pytest.param((40, 90), (40, 90), id="the rest of its batch can't be read either"),
        pytest.param((40, 300), (40, 100), id="a batch that goes on after the slice"),
        pytest.param((0, 300), (7, 100), id="a batch around the slice"),
        pytest.param((0, 0), None, id="everything can be read"),
    ],
)
def test_the_range_that_cannot_be_read_is_found(batch: tuple[int, int], expected: tuple[int, int] | None) -> None:
    queries = []

    def is_readable(some: Sequence[Piece]) -> bool:
        queries.append(some)
        return not any(
            part.topic == "bombs" and part.range.start < batch[1] and batch[0] < part.range.end for part in some
        )

    slice_ = [piece("fine", 0, 50), piece("bombs", 7, 100), piece("more", 0, 5)]
    found = find_too_large(slice_, is_readable)
    assert found == ([piece("bombs", *expected)] if expected else [])
    assert len(queries) <= 40


def test_what_is_behind_a_skipped_range_is_read_after_what_precedes_it() -> None:
    """A query reads one range of a partition."""
    reading = _ScanProgress([piece("bombs", 0, 100), piece("bombs", 0, 50, 1), piece("fine", 0, 9)])
    reading.skip([piece("bombs", 40, 42), piece("bombs", 0, 1, 1)])
    reading.skip([piece("bombs", 10, 20)])
    assert reading.rest == [piece("fine", 0, 9), piece("bombs", 1, 50, 1), piece("bombs", 0, 10)]
    assert reading.unread[3:] == [piece("bombs", 20, 40), piece("bombs", 42, 100)]
    for expected in (piece("bombs", 20, 40), piece("bombs", 42, 100)):
        reading.note_slice(1, 1.0, [])
        assert reading.rest == [expected]
    reading.note_slice(1, 1.0, [])
    assert reading.unread == []
