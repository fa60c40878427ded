"""Which of several topics make a query fail, so that the others can be read without them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pyspark.errors import PySparkException

from registry.errors import BrokerUnavailable
from registry.pipeline.session import first_line
from registry.pipeline.slices import Piece

# What Kafka's client says → why a topic can't be read.
_REASONS = (
    ("TopicAuthorizationException", "its reading isn't allowed to this user; grant it Read"),
    ("Not authorized to access topics", "its reading isn't allowed to this user; grant it Read"),
    ("UnknownTopicOrPartition", "it was deleted, or one of its partitions is gone"),
    ("UnknownTopicIdException", "it was deleted, or made anew, meanwhile"),
    ("before the position for partition", "no broker leads one of its partitions: it was deleted, or a broker is away"),
    ("Failed to get offsets", "its offsets aren't told: it was deleted, or this user lacks Describe"),
    ("before the last committed offset", "no broker leads one of its partitions"),
    ("UnknownProducerId", "it was deleted meanwhile"),
    ("OffsetOutOfRange", "its messages expired or were deleted while they were read"),
    ("Cannot fetch offset", "its messages are gone: it was deleted meanwhile"),
)
_NO_BROKER = (
    "Timed out waiting for",
    "No resolvable bootstrap urls",
    "DisconnectException",
    "SaslAuthenticationException",
    "SslAuthenticationException",
    "TimeoutException",
)


def reason_of(error: PySparkException) -> str | None:
    """Why a topic couldn't be read, where the error is one of a topic; None for any other."""
    text = str(error)
    return next((reason for mark, reason in _REASONS if mark in text), None)


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
) -> dict[str, str]:
    """The topics that made a query over `pieces` fail, with the reason of each; empty when no topic is to blame.

    Those that the error names are blamed; where it names none, halves are tried apart with `readable`, which gives the
    error of reading one message of each, or None.
    """
    reason = reason_of(error)
    if reason is None:
        return {}
    topics = sorted({piece.topic for piece in pieces})
    if len(topics) == 1:
        return {topics[0]: reason}
    named = [topic for topic in topics if _names(str(error), topic)]
    if named and len(named) < len(topics):
        return dict.fromkeys(named, reason)
    lost: dict[str, str] = {}
    for half in (topics[: len(topics) // 2], topics[len(topics) // 2 :]):
        part = [piece for piece in pieces if piece.topic in half]
        refused = readable(part)
        if refused is not None:
            lost |= lost_topics(refused, part, readable)
    return lost


def _names(text: str, topic: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9._-]){re.escape(topic)}(?:-\d+)?(?![A-Za-z0-9._-])", text) is not None
