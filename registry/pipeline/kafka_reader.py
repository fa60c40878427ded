"""Reads messages of Kafka topics with Spark, in slices, and finds the topics that make a query fail.

Connection fields are typed, offsets are explicit, and only committed messages are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.connect.session import SparkSession

from registry.errors import BrokerUnavailable, InvalidSource
from registry.observations import Bounds, KafkaConnection, PartitionRange, TopicRead
from registry.pipeline.session import first_line

SMALLEST_SLICE = 1_000  # messages; in smaller slices the queries take longer than the messages
LARGEST_SLICE = 1_000_000


@dataclass(frozen=True)
class Piece:
    """A range of one partition of a topic."""

    topic: str
    range: PartitionRange

    @property
    def size(self) -> int:
        """Return the number of offsets in the range."""
        return self.range.end - self.range.start


def pieces(topics: Iterable[TopicRead]) -> list[Piece]:
    """Return all ranges within their watermarks: expired messages can't be read; reading past the end would block."""
    return [Piece(read.topic, part) for read in topics for part in clamp(read.ranges)]


def clamp(ranges: Iterable[PartitionRange]) -> list[PartitionRange]:
    """Return the ranges within their watermarks."""
    clamped = []
    for part in ranges:
        start = min(max(part.start, part.low), part.high)
        clamped.append(replace(part, start=start, end=max(start, min(part.end, part.high))))
    return clamped


def left(pieces: Iterable[Piece]) -> int:
    """Return how many offsets the pieces span."""
    return sum(piece.size for piece in pieces)


def next_size(
    read: int, read_bytes: int, bounds: Bounds, *, last: int = 0, seconds: float = 0.0, seconds_left: float = 0.0
) -> int:
    """Return the size of the next slice in messages, so that no bound is exceeded by much; 0 if a bound is reached.

    The `last` slice took `seconds`: at that rate, the next one takes half of the remaining time.
    """
    max_messages, max_bytes = bounds.max_messages, bounds.max_bytes
    if read >= max_messages or read_bytes >= max_bytes:
        return 0
    if read == 0:
        return max(1, min(bounds.first_slice, max_messages))
    average = max(1.0, read_bytes / read)
    in_time = int(last / max(0.001, seconds) * seconds_left / 2)
    size = min(LARGEST_SLICE, max(in_time, min(SMALLEST_SLICE, 10 * last)))
    return max(1, min(size, max_messages - read, int((max_bytes - read_bytes) / average) + 1))


def cut(pieces: list[Piece], size: int) -> tuple[list[Piece], list[Piece]]:
    """Take a slice of at most `size` offsets from the front of the pieces, in even shares; return it and the rest."""
    slice_, rest = [], []
    for piece, take in zip(pieces, even_shares([piece.size for piece in pieces], size), strict=True):
        part = piece.range
        if take:
            slice_.append(replace(piece, range=replace(part, end=part.start + take)))
        if take < piece.size:
            rest.append(replace(piece, range=replace(part, start=part.start + take)))
    return slice_, rest


def even_shares(sizes: Sequence[int], room: int) -> list[int]:
    """Share out the room: each gets its whole size, or about as much as the others, so no backlog crowds out the rest."""
    shares = [0] * len(sizes)
    for number, index in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[index] = min(sizes[index], -(-room // (len(sizes) - number)))
        room -= shares[index]
    return shares


_ADDRESS: Final = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):(?P<port>\d{1,5})")
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_MIN_PARTITIONS: Final = 32  # for fine steps of progress; only above _SMALL messages
_SMALL: Final = 100_000
_FEW_TASKS: Final = 8  # for at most _SMALL messages: a task for each partition takes longer than its messages

# Measured: the default wait costs half a second per partition, the default poll a third of the throughput.
_FIXED: Final = {
    "kafka.isolation.level": "read_committed",
    "kafka.fetch.max.wait.ms": "20",
    "kafka.max.poll.records": "5000",
    "kafka.request.timeout.ms": "10000",
    "kafka.default.api.timeout.ms": "10000",  # can't be less than the request timeout
    "fetchOffset.numRetries": "1",
    "failOnDataLoss": "false",  # messages may expire during a scan; the number read is observed
}
_LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def connection_options(connection: KafkaConnection) -> dict[str, str]:
    """Return Spark's options for a connection; raises InvalidSource for an unusable address or credentials."""
    for address in connection.bootstrap.split(","):
        match = _ADDRESS.fullmatch(address.strip())
        if match is None or not 0 < int(match["port"]) < 65536:
            raise InvalidSource("bootstrap servers are host:port, several separated by commas")
    options = {
        "kafka.bootstrap.servers": connection.bootstrap,
        "kafka.security.protocol": connection.security_protocol,
        **_FIXED,
    }
    if connection.is_one_by_one:
        options["kafka.max.poll.records"] = "1"
    if connection.security_protocol.startswith("SASL"):
        options |= _sasl_options(connection)
    if connection.ca_pem is not None:
        options |= {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.certificates": connection.ca_pem}
    if connection.client_key is not None and connection.client_chain is not None:
        options |= {
            "kafka.ssl.keystore.type": "PEM",
            "kafka.ssl.keystore.key": connection.client_key,
            "kafka.ssl.keystore.certificate.chain": connection.client_chain,
        }
    return options


def _sasl_options(connection: KafkaConnection) -> dict[str, str]:
    if connection.sasl_mechanism is None or connection.username is None or connection.password is None:
        raise InvalidSource(f"{connection.security_protocol} needs a SASL mechanism, a user name and a password")
    username, password = _quoted(connection.username), _quoted(connection.password)
    module = _LOGIN_MODULES[connection.sasl_mechanism]
    return {
        "kafka.sasl.mechanism": connection.sasl_mechanism,
        "kafka.sasl.jaas.config": f"{module} required username={username} password={password};",
    }


def _quoted(text: str) -> str:
    """Quote a text for JAAS's grammar, so that it can't end early and add settings."""
    if any(ord(character) < 32 for character in text):
        raise InvalidSource("Kafka user names and passwords can't contain control characters")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def check_topic(topic: str, ranges: Sequence[PartitionRange]) -> None:
    """Raise InvalidSource for an invalid topic name or ranges that make no sense."""
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise InvalidSource("a topic's name has 1 to 249 of the characters A-Z a-z 0-9 . _ -")
    partitions = [part.partition for part in ranges]
    if len(set(partitions)) != len(partitions):
        raise InvalidSource(f"the same partition of {topic} is to be read twice")
    for part in ranges:
        if part.partition < 0 or not 0 <= part.start <= part.end or part.low > part.high:
            raise InvalidSource(f"partition {part.partition} of {topic} can't be read from {part.start} to {part.end}")


def check_topics(topics: Sequence[TopicRead]) -> None:
    """Raise InvalidSource for invalid topic names, repeated topics, or ranges that make no sense."""
    names = [read.topic for read in topics]
    for read in topics:
        check_topic(read.topic, read.ranges)
        if names.count(read.topic) > 1:
            raise InvalidSource(f"the topic {read.topic} is to be read twice")


def read_messages(session: SparkSession, connection: KafkaConnection, pieces: Sequence[Piece]) -> DataFrame:
    """Return the messages of `pieces`: topic, partition, offset, timestamp, key, value, headers."""
    assigned: dict[str, list[int]] = {}
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for piece in pieces:
        part = piece.range
        assigned.setdefault(piece.topic, []).append(part.partition)
        starts.setdefault(piece.topic, {})[str(part.partition)] = part.start
        ends.setdefault(piece.topic, {})[str(part.partition)] = part.end
    options = connection_options(connection) | {
        "assign": json.dumps(assigned),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
        "includeHeaders": "true",
    }
    if sum(piece.size for piece in pieces) > _SMALL:
        options["minPartitions"] = str(max(_MIN_PARTITIONS, len(pieces)))
    messages = session.read.format("kafka").options(**options).load()
    if "minPartitions" not in options and len(pieces) > _FEW_TASKS:
        messages = messages.coalesce(_FEW_TASKS)
    return messages.select("topic", "partition", "offset", "timestamp", "key", "value", "headers")


class Loss(NamedTuple):
    """Why a topic can't be read; `may_pass` if its broker may only be away, as in a restart."""

    reason: str
    may_pass: bool = False


_NO_READ: Final = Loss("its reading isn't allowed to this user; grant it Read")
# Text in the error of Kafka's client → why a topic can't be read. Only the cluster knows whether a topic was deleted or
# its broker is away.
_LOSSES: Final = (
    ("TopicAuthorizationException", _NO_READ),
    ("Not authorized to access topics", _NO_READ),
    ("UnknownTopicOrPartition", Loss("it was deleted, or one of its partitions is gone", may_pass=True)),
    ("UnknownTopicIdException", Loss("it was deleted or recreated during the scan")),
    (
        "before the position for partition",
        Loss("no broker leads one of its partitions: it was deleted, or a broker is away", may_pass=True),
    ),
    (
        "Failed to get offsets",
        Loss("its offsets are unknown: it was deleted, a broker is away, or this user lacks Describe", may_pass=True),
    ),
    ("before the last committed offset", Loss("no broker leads one of its partitions", may_pass=True)),
    ("LeaderNotAvailable", Loss("no broker leads one of its partitions", may_pass=True)),
    ("NotLeaderOrFollower", Loss("another broker leads one of its partitions now", may_pass=True)),
    ("UnknownProducerId", Loss("it was deleted meanwhile")),
    ("OffsetOutOfRange", Loss("its messages expired or were deleted while they were read")),
    ("Cannot fetch offset", Loss("its messages are gone: it was deleted meanwhile")),
)
_NO_BROKER = ("Timed out waiting for", "No resolvable bootstrap urls", "DisconnectException", "TimeoutException")
_NO_SIGN_IN = ("SaslAuthenticationException", "SslAuthenticationException")


def loss_of(error: PySparkException) -> Loss | None:
    """Return why a topic couldn't be read; None if the error isn't about a topic."""
    text = str(error)
    return next((loss for mark, loss in _LOSSES if mark in text), None)


def broker_error(error: PySparkException, bootstrap: str, topics: Sequence[str]) -> BrokerUnavailable | None:
    """Return the error of a failed query that the whole cluster caused; None for any other error."""
    text = str(error)
    if any(mark in text for mark in _NO_SIGN_IN):
        return BrokerUnavailable(
            f"Spark couldn't sign in to the Kafka cluster at {bootstrap}: {first_line(error)}; check the cluster's "
            "user, secret and certificates",
            is_lasting=True,
        )
    if not any(mark in text for mark in _NO_BROKER):
        return None
    shown = topics[0] if len(topics) == 1 else f"{len(topics)} topics"
    return BrokerUnavailable(
        f"the Kafka cluster at {bootstrap} didn't answer Spark while reading {shown}: "
        f"{first_line(error)}; check that the Spark server reaches it too"
    )


def lost_topics(
    error: PySparkException, pieces: Sequence[Piece], readable: Callable[[Sequence[Piece]], PySparkException | None]
) -> dict[str, Loss]:
    """Return the topics that made a query over `pieces` fail, each with its reason; empty if no topic is the cause.

    If the error names some topics, those are the cause. Otherwise halves are tried separately: `readable` reads one
    message of each topic and returns the error, or None.
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
