"""Observations of topics. Offsets count from 0, times are milliseconds since 1970 in UTC, sizes are bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from registry.observations.specification import BodyProblem, Bound, ContractRule, Framing, Hint, Limit, Operation, Side


@dataclass(frozen=True)
class Span:
    """A number of messages of one partition and their range: first and last offset (both inclusive) and time."""

    messages: int
    bytes: int
    first_offset: int
    last_offset: int
    first_time: int
    last_time: int


@dataclass(frozen=True)
class PartitionRead:
    """How far a partition was read: from `start` to `end` (exclusive), with this number of `messages`.

    Fewer than `end - start` is normal for compacted and transactional topics. `gaps` are ranges of offsets before the
    first message of a slice (`end` exclusive): they have no message, or were deleted before that slice was read.
    """

    topic: str
    partition: int
    start: int
    end: int
    low: int
    high: int
    messages: int
    gaps: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class FramedMessages:
    """Messages whose key or value says which schema wrote it.

    `mark` is the schema id in decimal, the GUID in its canonical form (lower case, with hyphens), or
    `prefix.subject.vN` of a content type. `hours` counts the messages by hour of their time (hours since 1970), only
    for the newest hours. Empty: they weren't counted.
    """

    topic: str
    side: Side
    partition: int
    framing: Framing
    mark: str
    span: Span
    hours: Mapping[str, int] = field(default_factory=dict)

    @property
    def schema_id(self) -> int | None:
        """The schema id; None if the message has none."""
        return int(self.mark) if self.framing == "id" else None


@dataclass(frozen=True)
class UnframedMessages:
    """Messages whose key or value doesn't say which schema wrote it."""

    topic: str
    side: Side
    partition: int
    hint: Hint
    span: Span


@dataclass(frozen=True)
class NullMessages:
    """Messages without a key, or without a value (tombstones)."""

    topic: str
    side: Side
    partition: int
    span: Span


@dataclass(frozen=True)
class FramedTwice:
    """Messages with a GUID in a header whose body also begins with a frame (counted as framed, by GUID)."""

    topic: str
    side: Side
    partition: int
    guid: str
    schema_id: int
    span: Span


@dataclass(frozen=True)
class UndecodableMessages:
    """Framed messages whose body their schema doesn't decode or forbids (also counted as framed).

    With `framing` None and an empty `mark`: bytes that look like JSON (also counted as unframed). `offsets` are the
    first few of them, `reasons` the decoder's reason for each of these in the same order, "" if unknown; no content of
    the message. `by_reason` counts messages by reason, without those whose reason is unknown or one of too many. Each
    `problem` of a place is an observation of its own. `ranges` are the first and last offsets of all of them, without
    others in between, as far as there is room.
    """

    topic: str
    side: Side
    partition: int
    framing: Framing | None
    mark: str
    span: Span
    offsets: tuple[int, ...]
    reasons: tuple[str, ...]
    problem: BodyProblem = "malformed"
    by_reason: Mapping[str, int] = field(default_factory=dict)
    ranges: tuple[tuple[int, int], ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class MessageIndexes:
    """The message type of a Protobuf schema in the bodies: its path of indexes, such as `0` or `1.0`."""

    topic: str
    side: Side
    partition: int
    framing: Framing
    mark: str
    indexes: str
    span: Span


#: the end of the reason why JSON without a schema isn't valid, if its bytes begin as only a JSON object does
BEGINS_AS_OBJECT: Final = ", though it begins like a JSON object"
#: the kind of a Protobuf field that isn't declared, or declared with another encoding; and its encoding if the
#: schema reserves its number for extensions
UNKNOWN_KIND: Final = "unknown"
EXTENSION: Final = "extension"
#: among a field's values: those that its enum doesn't list
UNLISTED: Final = frozenset({"(unknown number)", "(not declared)"})


@dataclass(frozen=True)
class FieldProfile:
    """The contents of decoded messages at a path (`customer.address.zip`, `items[].sku`, `tags{}`).

    Of `messages` decoded, `present` have the path, and in `nulls` of those it is null. `kinds` counts the values by
    kind (Avro's or Protobuf's type name; of JSON: string, integer, number, boolean, object, array, null). `distinct` is
    an estimate. `minimum` and `maximum` are masked unless the scan was allowed to reveal; `values` counts only the
    symbols of enums and booleans. For JSON without a schema `framing` is None and `mark` is empty.

    A Protobuf field that the schema doesn't declare has the path `#7`; one that is declared with another encoding,
    `name#7`. Their kind is `unknown`, and `values` counts their encodings. `undeclared` is the partition and the offset
    of a message with a field or value that the schema doesn't declare, empty if there was none. `declared` is what the
    schema declares for a field with another encoding: its type and, in brackets, the encodings of that.

    `first_of_kind` is the partition and the offset of a message with a value of the kind, `absent` of one whose object
    around the path lacks it: only for what is decoded in Python, as far as one task of Spark saw it.

    `places` are partition, first and last offset of messages without others in between, as far as there is room: those
    that are `absent`, have an `unlisted` value, or a value of a kind that wasn't the first one of its task, by kind;
    `present` are those with an undeclared field, or of JSON one that earlier messages lacked.
    """

    topic: str
    side: Side
    framing: Framing | None
    mark: str
    path: str
    messages: int
    present: int
    nulls: int
    kinds: Mapping[str, int]
    distinct: int | None
    minimum: str | None
    maximum: str | None
    values: Mapping[str, int]
    undeclared: tuple[int, ...] = ()
    declared: str = ""
    first_of_kind: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    absent: tuple[int, ...] = ()
    other_types: int = 0
    places: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict, repr=False)

    @property
    def possible(self) -> int:
        """The messages that may have the path."""
        return self.messages - self.other_types


@dataclass(frozen=True)
class RankedMessages:
    """Some decoded messages with one mark, chosen at random, with the ranks of their values (`workers.value_ranks`).

    Each of `rows` has a partition, an offset, and the ranks at `paths` (None: the message has no value there).
    """

    topic: str
    side: Side
    framing: Framing | None
    mark: str
    paths: tuple[str, ...]
    rows: tuple[tuple[int, int, tuple[int | None, ...]], ...] = field(repr=False)


@dataclass(frozen=True)
class ContractRuleResult:
    """A data contract's rule on the decoded messages with one mark: it is broken in `broken` of `messages`.

    `first` are the partition and offset of some broken messages, `paths` counts broken messages by field (CEL_FIELD).
    `not_checked` counts further messages by why the rule couldn't be evaluated on them.
    """

    topic: str
    side: Side
    framing: Framing
    mark: str
    rule: ContractRule
    messages: int
    broken: int
    first: tuple[tuple[int, int], ...] = ()
    paths: Mapping[str, int] = field(default_factory=dict)
    not_checked: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ChangeEvents:
    """Debezium's change events of one table, operation and partition.

    Of them, `with_before` have a row before, `newkey` and `oldkey` have the headers of a change of the primary key,
    `snapshot` come from a snapshot, `in_transaction` name a transaction, `unavailable` have a value that the log didn't
    have. A message event (`m`) has no table.
    """

    topic: str
    partition: int
    op: Operation
    database: str
    schema: str
    table: str
    span: Span
    with_before: int
    newkey: int
    oldkey: int
    snapshot: int
    in_transaction: int
    unavailable: int


@dataclass(frozen=True)
class ConnectSchema:
    """A distinct Kafka Connect schema beside the payload in JSON messages, as its JSON text."""

    topic: str
    side: Side
    digest: str
    text: str
    span: Span
    partition: int


@dataclass(frozen=True)
class Sample:
    """A message as a person may see it: `text` is its decoded value as JSON, masked unless `revealed`."""

    topic: str
    side: Side
    partition: int
    offset: int
    time: int
    framing: Framing | None
    mark: str
    text: str
    revealed: bool


@dataclass(frozen=True)
class SchemaNotUsed:
    """A writer schema that Spark couldn't decode with, so that nothing is known of the bodies with its mark.

    With `topic`, only of that topic, and with `side`, only of that side: others may have been decoded. Some of those
    bodies may have been decoded too, before it was given up.
    """

    framing: Framing
    mark: str
    reason: str
    topic: str = ""
    side: Side | None = None


@dataclass(frozen=True)
class LimitExceeded:
    """What wasn't counted on a topic's side because of a limit: `number` beyond `most` (None: unknown).

    `messages` have some of it, as far as they are counted. Without `framing` it is about JSON without a schema, or
    about several schemas.
    """

    topic: str
    side: Side
    framing: Framing | None
    mark: str
    limit: Limit
    most: int
    number: int | None
    messages: int | None


@dataclass(frozen=True)
class OtherGroups:
    """Combinations of ids in a partition beyond the bound of groups, `groups` of them, folded into one."""

    topic: str
    partition: int
    groups: int
    span: Span


@dataclass(frozen=True)
class OffsetsExpired:
    """Offsets that the cluster deleted before a scan read them, from `start` to `end` (exclusive).

    If the topic is compacted or transactional, there may have been fewer messages than `end - start`.
    """

    topic: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True)
class TopicRemade:
    """A topic that was deleted and created again since it was last read (milliseconds since 1970).

    The ids are the cluster's own, "" if it has none. `unread` is how many offsets the last scan had left, None if
    unknown; how many came after it is always unknown.
    """

    topic: str
    id_before: str
    id_now: str
    last_read: int
    unread: int | None


@dataclass(frozen=True)
class TopicLost:
    """A topic that couldn't be read to its end: it was deleted meanwhile, or reading it isn't allowed.

    `may_pass`: its broker is away, as in a restart. Then what was read of it counts, and its totals are reported too.
    """

    topic: str
    reason: str
    may_pass: bool = False


@dataclass(frozen=True)
class TopicTotals:
    """The end of one topic: what was read of it, and which bound ended it early (None: none did)."""

    topic: str
    messages: int
    bytes: int
    bound_reached: Bound | None


@dataclass(frozen=True)
class ScanTotals:
    """The end of a scan of topics: what was read in total, and in how many seconds."""

    topics: int
    messages: int
    bytes: int
    bound_reached: Bound | None
    seconds: float
