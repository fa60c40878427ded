"""Which of several topics make a query fail, so that the others can be read without them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from pyspark.errors import PySparkException

from registry.errors import BrokerUnavailable
from registry.pipeline.session import first_line
from registry.pipeline.slices import Piece


class Loss(NamedTuple):
    """Why a topic can't be read; `may_pass` where its broker may only be away, as in a restart."""

    reason: str
    may_pass: bool = False


_NO_READ: Final = Loss("its reading isn't allowed to this user; grant it Read")
# What Kafka's client says → why a topic can't be read. Whether a topic was deleted, or its broker is away, only the
# cluster can tell.
_LOSSES: Final = (
    ("TopicAuthorizationException", _NO_READ),
    ("Not authorized to access topics", _NO_READ),
    ("UnknownTopicOrPartition", Loss("it was deleted, or one of its partitions is gone", may_pass=True)),
    ("UnknownTopicIdException", Loss("it was deleted, or made anew, meanwhile")),
    (
        "before the position for partition",
        Loss("no broker leads one of its partitions: it was deleted, or a broker is away", may_pass=True),
    ),
    (
        "Failed to get offsets",
        Loss("its offsets aren't told: it was deleted, a broker is away, or this user lacks Describe", may_pass=True),
    ),
    ("before the last committed offset", Loss("no broker leads one of its partitions", may_pass=True)),
    ("LeaderNotAvailable", Loss("no broker leads one of its partitions", may_pass=True)),
    ("NotLeaderOrFollower", Loss("another broker leads one of its partitions now", may_pass=True)),
    ("UnknownProducerId", Loss("it was deleted meanwhile")),
    ("OffsetOutOfRange", Loss("its messages expired or were deleted while they were read")),
    ("Cannot fetch offset", Loss("its messages are gone: it was deleted meanwhile")),
)
_NO_BROKER = (
    "Timed out waiting for",
    "No resolvable bootstrap urls",
    "DisconnectException",
    "SaslAuthenticationException",
    "SslAuthenticationException",
    "TimeoutException",
)


def loss_of(error: PySparkException) -> Loss | None:
    """Why a topic couldn't be read, where the error is one of a topic; None for any other."""
    text = str(error)
    return next((loss for mark, loss in _LOSSES if mark in text), None)


def broker_error(error: PySparkException, bootstrap: str, topics: Sequence[str]) -> BrokerUnavailable | None:
    """The whole cluster's part in a failed query; None when it had none."""
    if not any(mark in str(error) for mark in _NO_BROKER):
        return None
    shown = topics[0] if len(topics) == 1 else f"{len(topics)} topics"
    return BrokerUnavailable(
        f"the Kafka cluster at {bootstrap} didn't answer Spark while reading {shown}: "
        f"{first_line(error)}; check that the Spark server reaches it too"
    )


def lost_topics(
    error: PySparkException, pieces: Sequence[Piece], readable: Callable[[Sequence[Piece]], PySparkException | None]
) -> dict[str, Loss]:
    """The topics that made a query over `pieces` fail, with the reason of each; empty when no topic is to blame.

    Those that the error names are blamed; where it names none, halves are tried apart with `readable`, which gives the
    error of reading one message of each, or None.
    """
    loss = loss_of(error)
    if loss is None:
        return {}
    topics = sorted({piece.topic for piece in pieces})
    if len(topics) == 1:
        return {topics[0]: loss}
    named = [topic for topic in topics if _names(str(error), topic)]
    if named and len(named) < len(topics):
        return dict.fromkeys(named, loss)
    lost: dict[str, Loss] = {}
    for half in (topics[: len(topics) // 2], topics[len(topics) // 2 :]):
        part = [piece for piece in pieces if piece.topic in half]
        refused = readable(part)
        if refused is not None:
            lost |= lost_topics(refused, part, readable)
    return lost


def _names(text: str, topic: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9._-]){re.escape(topic)}(?:-\d+)?(?![A-Za-z0-9._-])", text) is not None
