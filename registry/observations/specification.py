"""The specification of a scan: topics of a cluster, or the state of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

Side = Literal["key", "value"]
# What ends the reading of a topic early; `broker`: a broker went away.
Bound = Literal["messages", "bytes", "groups", "deadline", "broker"]
SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
# What bytes without the five bytes of framing look like, by how they begin and end; never the bytes themselves.
# `cut_frame` is a zero byte followed by less than a schema id.
Hint = Literal[
    "empty", "cut_frame", "glue", "azure", "single_object", "json_object", "json_array", "xml", "avro_file", "gzip", "text", "binary"
]  # fmt: skip
# How a message says which schema wrote it: with an id in its first five bytes, with a GUID (in the header
# `__value_schema_id` or `__key_schema_id`, or in its first 17 bytes), or in the content type of Spring's converters.
Framing = Literal["id", "guid", "content_type"]
# Why a body counts as undecodable: its bytes don't fit its schema (or aren't JSON); it was decoded, but the schema's
# rules for values forbid it; or it is unknown, because reading it was given up to keep the scan going.
BodyProblem = Literal["malformed", "violates", "not_read"]
# What a scan counts up to a limit: fields of messages and how deep they are nested, symbols of an enum, tables with change
# events of one operation, Kafka Connect schemas beside payloads.
Limit = Literal["fields", "depth", "symbols", "tables", "connect_schemas"]
# Debezium's operations: create, update, delete, read (a snapshot's row), truncate, message.
Operation = Literal["c", "u", "d", "r", "t", "m"]
FIRST_SLICE: Final = 1_000  # messages that a scan reads first if no earlier one measured its speed


@dataclass(frozen=True)
class KafkaConnection:
    """How to reach a cluster: only typed fields, since free properties can read files and run code.

    `client_key` and `client_chain` are the private key and the certificates of mutual TLS, as PEM. The secrets are
    never shown. `is_one_by_one`: no more than one message is fetched into memory at once, which is slow.
    """

    bootstrap: str
    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl_mechanism: SaslMechanism | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_pem: str | None = None
    client_key: str | None = field(default=None, repr=False)
    client_chain: str | None = None
    is_one_by_one: bool = False


@dataclass(frozen=True)
class PartitionRange:
    """Offsets of one partition to read, from `start` up to but not including `end`, between its two watermarks."""

    partition: int
    start: int
    end: int
    low: int
    high: int


@dataclass(frozen=True)
class Bounds:
    """How much one scan may do; the totals say which bound was reached.

    `first_slice` is how many messages are read first. That slice may take `first_seconds` even if the deadline is
    sooner, and the single message that follows it twice as long: without them a scan keeps nothing.
    """

    max_messages: int = 1_000_000
    max_bytes: int = 2 * 1024**3
    max_groups: int = 2_000
    deadline_seconds: float = 300.0
    first_slice: int = FIRST_SLICE
    first_seconds: float = 30.0


@dataclass(frozen=True)
class TopicRead:
    """The ranges of one topic to read."""

    topic: str
    ranges: tuple[PartitionRange, ...]


@dataclass(frozen=True)
class ContractRule:
    """A condition of a schema's data contract: `type` is CEL or CEL_FIELD, `tags` those that a field needs.

    `on_failure` is the action of a client that reads, ERROR by default. `not_checked` is why the rule can't be evaluated
    on stored messages, empty if it can.
    """

    name: str
    type: str
    expression: str
    mode: str
    on_failure: str
    tags: tuple[str, ...] = ()
    not_checked: str = ""


@dataclass(frozen=True)
class WriterSchema:
    """A registered schema that may have encoded bodies; `mark` identifies it in a message (see FramedMessages).

    `text` is self-contained: Avro's JSON with references inlined; for Protobuf a FileDescriptorSet in base64 whose last
    file is the schema's; for JSON Schema a text with its references bundled. `rules` are those of its data contract,
    `tags` the tags of its fields by path, if a rule needs them.
    """

    framing: Framing
    mark: str
    kind: str
    text: str
    rules: tuple[ContractRule, ...] = ()
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Profile:
    """What a scan counts beyond framing. Nothing leaves Spark unmasked unless `reveal`, which requires a permission.

    `samples` is the number of messages that are returned for each schema on a topic's side, masked or not. `changes`
    reads the bodies as Debezium's change events too.
    """

    fields: bool = True
    changes: bool = False
    samples: int = 0
    reveal: bool = False


@dataclass(frozen=True)
class TopicScan:
    """A read of the committed messages of some topics of one cluster, in as few Spark jobs as possible."""

    connection: KafkaConnection
    topics: tuple[TopicRead, ...]
    writers: tuple[WriterSchema, ...] = ()
    profile: Profile = Profile()
    bounds: Bounds = Bounds()


@dataclass(frozen=True)
class MessageGroup:
    """Messages of a partition's side with one framing and mark, from offset `first` to `last` (inclusive).

    Without a framing, `kind` is the hint, or `null`, and the mark is empty.
    """

    topic: str
    side: Side
    partition: int
    kind: str
    mark: str
    first: int
    last: int


@dataclass(frozen=True)
class StateVariableRead:
    """A read of the rows of one state variable, as of `batch` (None: the newest).

    `variable` is None for built-in operators, which have one store; `join_side` is for stream-stream joins. The kind
    `timers` reads the timers that the operator has registered.
    """

    operator: int
    variable: str | None
    kind: str
    batch: int | None = None
    join_side: Literal["left", "right"] | None = None


@dataclass(frozen=True)
class StateScan:
    """A read of rows of a checkpoint's state; `path` is one that the Spark server can open."""

    path: str
    variables: tuple[StateVariableRead, ...]
    bounds: Bounds = Bounds()


ScanSpec = TopicScan | StateScan
