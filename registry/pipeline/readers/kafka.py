"""Kafka's messages as Spark reads them: typed connection fields, explicit offsets, committed messages only."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.connect.session import SparkSession

from registry.errors import InvalidSource
from registry.observations import KafkaConnection, PartitionRange, TopicRead
from registry.pipeline.slices import Piece

_ADDRESS: Final = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):(?P<port>\d{1,5})")
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_MIN_PARTITIONS: Final = 32  # for fine steps of progress; only above this many messages
_SMALL: Final = 100_000

# Found by measuring: the default wait costs half a second a partition, the default poll a third of the rate.
_FIXED: Final = {
    "kafka.isolation.level": "read_committed",
    "kafka.fetch.max.wait.ms": "20",
    "kafka.max.poll.records": "5000",
    "kafka.request.timeout.ms": "10000",
    "kafka.default.api.timeout.ms": "10000",  # may not be below the request's
    "fetchOffset.numRetries": "1",
    "failOnDataLoss": "false",  # messages may expire while a scan runs; how many were read is observed
}
_LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def connection_options(connection: KafkaConnection) -> dict[str, str]:
    """Spark's options for a connection; raises InvalidSource for an address or credentials that can't be used."""
    for address in connection.bootstrap.split(","):
        match = _ADDRESS.fullmatch(address.strip())
        if match is None or not 0 < int(match["port"]) < 65536:
            raise InvalidSource("bootstrap servers are host:port, several separated by commas")
    options = {
        "kafka.bootstrap.servers": connection.bootstrap,
        "kafka.security.protocol": connection.security_protocol,
        **_FIXED,
    }
    if connection.security_protocol.startswith("SASL"):
        options |= _sasl_options(connection)
    if connection.ca_pem is not None:
        options |= {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.certificates": connection.ca_pem}
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
    """A text as the login configuration's grammar takes it, so that it can't end early and add settings."""
    if any(ord(character) < 32 for character in text):
        raise InvalidSource("user names and passwords of Kafka hold no control characters")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def check_topic(topic: str, ranges: Sequence[PartitionRange]) -> None:
    """Raise InvalidSource for a name that no topic has, and for ranges that don't make sense."""
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise InvalidSource("a topic's name has 1 to 249 of the characters A-Z a-z 0-9 . _ -")
    partitions = [part.partition for part in ranges]
    if len(set(partitions)) != len(partitions):
        raise InvalidSource(f"the same partition of {topic} is to be read twice")
    for part in ranges:
        if part.partition < 0 or not 0 <= part.start <= part.end or part.low > part.high:
            raise InvalidSource(f"partition {part.partition} of {topic} can't be read from {part.start} to {part.end}")


def check_topics(topics: Sequence[TopicRead]) -> None:
    """Raise InvalidSource for names that no topic has, for one named twice, and for ranges that don't make sense."""
    names = [read.topic for read in topics]
    for read in topics:
        check_topic(read.topic, read.ranges)
        if names.count(read.topic) > 1:
            raise InvalidSource(f"the topic {read.topic} is to be read twice")


def read_messages(session: SparkSession, connection: KafkaConnection, pieces: Sequence[Piece]) -> DataFrame:
    """The messages of `pieces`: topic, partition, offset, timestamp, key, value, headers."""
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
    return messages.select("topic", "partition", "offset", "timestamp", "key", "value", "headers")
