"""The demo's query where Spark's Python worker is slow to start: it is tried again, and nothing else is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from dashboard.demo import streaming_query

SLOW = [
    "[STREAM_FAILED] Job aborted: org.apache.spark.SparkException: Python worker failed to connect back.",
    "[STREAM_FAILED] java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back",
]
OTHER = "[STREAM_FAILED] the topic orders is gone"


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """How the next runs of a release end: an error's text, or a number of batches."""
    queue: list[Any] = []

    def run(*_arguments: Any) -> int:
        outcome = queue.pop(0)
        if isinstance(outcome, str):
            raise StreamingQueryException(message=outcome)
        return int(outcome)

    session = SimpleNamespace(conf=SimpleNamespace(set=lambda name, value: None))
    monkeypatch.setattr(streaming_query, "open_session", lambda remote: session)
    monkeypatch.setattr(streaming_query, "close_session", lambda session: None)
    monkeypatch.setattr(streaming_query, "_run_first", run)
    monkeypatch.setattr(streaming_query, "_run_second", run)
    monkeypatch.setattr(streaming_query, "PAUSE", 0.0, raising=False)
    return queue


def run_demo(tmp_path: Path) -> list[str]:
    lines: list[str] = []
    streaming_query.run_queries("sc://localhost", "localhost:9092", tmp_path, lines.append)
    return lines


def test_a_release_is_tried_again(outcomes: list[Any], tmp_path: Path) -> None:
    outcomes += [SLOW[0], SLOW[1], 1, SLOW[1], 2]
    lines = run_demo(tmp_path)
    assert [line.partition(": ")[2].partition(";")[0] for line in lines] == [
        "Spark's Python worker did not start in time for the first release",
        "Spark's Python worker did not start in time for the first release",
        "first release ran 1 batches",
        "Spark's Python worker did not start in time for the second release",
        "second release ran 2 batches",
    ]


@pytest.mark.parametrize("ends", [[*SLOW, SLOW[0]], [OTHER]])
def test_it_ends_after_three_tries_and_at_once_for_another_reason(
    outcomes: list[Any], tmp_path: Path, ends: list[str]
) -> None:
    outcomes += [*ends, 1]
    with pytest.raises(StreamingQueryException):
        run_demo(tmp_path)
    assert outcomes == [1]
