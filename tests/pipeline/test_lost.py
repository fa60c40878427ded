"""Which topics are lost for good, and which have a broker that may be back."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from registry.observations import PartitionRange
from registry.pipeline.kafka_reader import Loss, Piece, loss_of, lost_topics

pytestmark = pytest.mark.requirement("CARD-3")


@pytest.mark.parametrize(
    ("message", "may_pass"),
    [
        ("TimeoutException: Timeout of 10000ms expired before the position for partition orders-0 could be determined", True),
        ("UnknownTopicOrPartitionException: This server does not host this topic-partition.", True),
        ("LeaderNotAvailableException: There is no leader for this topic-partition", True),
        ("NotLeaderOrFollowerException: the broker is not the leader", True),
        ("TopicAuthorizationException: Not authorized to access topics: [orders]", False),
        ("UnknownTopicIdException: it is another topic now", False),
        ("OffsetOutOfRangeException: out of range", False),
    ],
)  # fmt: skip
def test_only_an_absence_may_pass(message: str, may_pass: bool) -> None:
    loss = loss_of(PySparkException(message))
    assert loss is not None
    assert loss.may_pass is may_pass


def test_an_error_of_no_topic_blames_none() -> None:
    assert loss_of(PySparkException("division by zero")) is None


def test_the_topics_that_an_error_names_are_blamed() -> None:
    pieces = [Piece(name, PartitionRange(0, 0, 5, 0, 5)) for name in ("orders", "orders-2", "people")]
    error = PySparkException("before the position for partition people-0 could be determined")
    lost = lost_topics(error, pieces, lambda _: pytest.fail("nothing is to be tried"))
    assert {name: type(loss) for name, loss in lost.items()} == {"people": Loss}
