"""What crosses to and from Spark: the specification of a scan, and the facts that it observed, as JSON lines.

A fact is no judgement. Every line carries the format's version and the fact's type:
`{"v": 1, "type": "FramedMessages", …}`. Decoding is strict: an unknown type, a missing or additional field and a
value of another type are refused with the line they stand on. Offsets count from 0, `end` is exclusive, times are
milliseconds since 1970 in UTC, sizes are bytes.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, Union

FORMAT_VERSION = 1

Side = Literal["key", "value"]
Bound = Literal["messages", "bytes", "groups", "deadline"]
SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
# What bytes without the five bytes of framing look like, by their ends; never the bytes themselves.
Hint = Literal["empty", "json_object", "json_array", "xml", "avro_file", "gzip", "text", "binary"]


class MalformedObservation(ValueError):
    """A line that is no scan specification or observation of this format; the message names line and field."""


# ---- what to scan -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KafkaConnection:
    """How to reach a cluster: typed fields alone, since free properties can read files and run code.

    `password` never goes into a JSON line; whoever decodes a specification sets it again.
    """

    bootstrap: str
    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl_mechanism: SaslMechanism | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_pem: str | None = None


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
    """How much one scan may do; what is reached is said in the totals."""

    max_messages: int = 1_000_000
    max_bytes: int = 2 * 1024**3
    max_groups: int = 2_000
    deadline_seconds: float = 300.0


@dataclass(frozen=True)
class TopicScan:
    """Read one topic's committed messages; `writer_schemas` maps a schema id to its Avro text, references inlined."""

    connection: KafkaConnection
    topic: str
    ranges: tuple[PartitionRange, ...]
    writer_schemas: Mapping[int, str] = field(default_factory=dict)
    bounds: Bounds = Bounds()


@dataclass(frozen=True)
class StateVariableRead:
    """The rows of one state variable, as of `batch` (the newest when None).

    `variable` is None for built-in operators, which have one store; `join_side` is for stream-stream joins.
    """

    operator: int
    variable: str | None
    kind: str
    batch: int | None = None
    join_side: Literal["left", "right"] | None = None


@dataclass(frozen=True)
class StateScan:
    """Read rows of a checkpoint's state; `path` is one that the Spark server can open."""

    path: str
    variables: tuple[StateVariableRead, ...]
    bounds: Bounds = Bounds()


ScanSpec = TopicScan | StateScan


# ---- what was observed in a topic ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Span:
    """A number of messages of one partition and where they lie: first and last offset (both inclusive) and time."""

    messages: int
    bytes: int
    first_offset: int
    last_offset: int
    first_time: int
    last_time: int


@dataclass(frozen=True)
class PartitionRead:
    """How far a partition was read: from `start` up to `end` (exclusive), `messages` of them being there.

    Fewer than `end - start` is normal for compacted and transactional topics.
    """

    partition: int
    start: int
    end: int
    low: int
    high: int
    messages: int


@dataclass(frozen=True)
class FramedMessages:
    """Messages whose key or value begins with a zero byte and this schema id."""

    side: Side
    partition: int
    schema_id: int
    span: Span


@dataclass(frozen=True)
class UnframedMessages:
    """Messages whose key or value isn't framed with a schema id."""

    side: Side
    partition: int
    hint: Hint
    span: Span


@dataclass(frozen=True)
class NullMessages:
    """Messages without a key, or without a value: the latter are tombstones."""

    side: Side
    partition: int
    span: Span


@dataclass(frozen=True)
class UndecodableMessages:
    """Framed messages whose body the schema of their id doesn't decode (they are counted as framed as well)."""

    side: Side
    partition: int
    schema_id: int
    span: Span


@dataclass(frozen=True)
class SchemaNotUsed:
    """A writer schema that Spark couldn't decode with, so that nothing is known of the bodies of this id."""

    schema_id: int
    reason: str


@dataclass(frozen=True)
class OtherGroups:
    """What lies beyond the bound of groups: so many further combinations of ids in a partition, folded into one."""

    partition: int
    groups: int
    span: Span


@dataclass(frozen=True)
class TopicTotals:
    """The end of a topic scan: what was read in all, and which bound stopped it early (None when none did)."""

    topic: str
    messages: int
    bytes: int
    bound_reached: Bound | None
    seconds: float


# ---- what was observed in a checkpoint ----------------------------------------------------------------------------


@dataclass(frozen=True)
class StateSchemaVersion:
    """One version of a state variable's schemas (Spark's StructType JSON), from the checkpoint's files.

    `batch` is the first batch that wrote with it (None where Spark keeps no history), `written_at` its file's time. Internal families aren't listed.
    """

    operator: int
    variable: str
    kind: str
    version: int
    schema_id: int
    batch: int | None
    encoding: str
    key_schema: str
    value_schema: str
    written_at: int | None = None


@dataclass(frozen=True)
class StateLimit:
    """A limit of Spark's on state schemas: value schemas of a variable (its first counts), or schema files of an operator.

    Spark refuses the restart that would go beyond `allowed`.
    """

    limit: Literal["value_schemas", "schema_files"]
    operator: int
    variable: str | None
    used: int
    allowed: int


@dataclass(frozen=True)
class StateRows:
    """How many rows a state variable holds as of a batch (entries, for list and map state)."""

    operator: int
    variable: str | None
    batch: int
    rows: int


@dataclass(frozen=True)
class StateFieldNulls:
    """How many of a state variable's rows hold null in a field; `path` begins with `key` or `value`."""

    operator: int
    variable: str | None
    batch: int
    path: str
    rows: int
    nulls: int


@dataclass(frozen=True)
class StateUnreadable:
    """A state variable whose rows Spark couldn't read as of a batch, and why."""

    operator: int
    variable: str | None
    batch: int | None
    reason: str


@dataclass(frozen=True)
class StateTotals:
    """The end of a state scan: what was read in all, and which bound stopped it early."""

    path: str
    variables: int
    rows: int
    bound_reached: Bound | None
    seconds: float


Observation = (
    PartitionRead
    | FramedMessages
    | UnframedMessages
    | NullMessages
    | UndecodableMessages
    | SchemaNotUsed
    | OtherGroups
    | TopicTotals
    | StateSchemaVersion
    | StateLimit
    | StateRows
    | StateFieldNulls
    | StateUnreadable
    | StateTotals
)

_OBSERVATIONS: dict[str, type[Any]] = {kind.__name__: kind for kind in typing.get_args(Observation)}
_SPECS: dict[str, type[Any]] = {kind.__name__: kind for kind in typing.get_args(ScanSpec)}
_NEVER_WRITTEN = frozenset({"password"})


# ---- JSON lines ---------------------------------------------------------------------------------------------------


def encode_observations(observations: Iterable[Observation]) -> str:
    """The observations as JSON lines, each ended by a newline."""
    return "".join(f"{_line(observation)}\n" for observation in observations)


def decode_observations(text: str) -> Iterator[Observation]:
    """The observations of JSON lines, empty lines skipped; raises MalformedObservation with the line's number."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _decode(line, _OBSERVATIONS, f"line {number}")


def encode_spec(spec: ScanSpec) -> str:
    """A scan specification as one JSON line without its newline; the password stays out."""
    return _line(spec)


def decode_spec(line: str) -> ScanSpec:
    """The scan specification of a JSON line; raises MalformedObservation."""
    decoded: ScanSpec = _decode(line, _SPECS, "the specification")
    return decoded


def _line(thing: Any) -> str:
    plain = {"v": FORMAT_VERSION, "type": type(thing).__name__, **_plain(thing)}
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _plain(thing: Any) -> Any:
    if is_dataclass(thing) and not isinstance(thing, type):
        return {
            part.name: _plain(getattr(thing, part.name)) for part in fields(thing) if part.name not in _NEVER_WRITTEN
        }
    if isinstance(thing, tuple):
        return [_plain(item) for item in thing]
    if isinstance(thing, Mapping):
        return {str(key): _plain(value) for key, value in thing.items()}
    return thing


def _decode(line: str, kinds: Mapping[str, type[Any]], where: str) -> Any:
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise MalformedObservation(f"{where} is no JSON: {error}") from error
    if not isinstance(plain, dict):
        raise MalformedObservation(f"{where} is {_shown(plain)}, not an object")
    version, kind = plain.pop("v", None), plain.pop("type", None)
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise MalformedObservation(f"{where} has format version {_shown(version)}, this program reads {FORMAT_VERSION}")
    if not isinstance(kind, str) or kind not in kinds:
        raise MalformedObservation(f"{where} has type {_shown(kind)}, known are {', '.join(sorted(kinds))}")
    return _build(kinds[kind], plain, f"{where}, {kind}")


def _build(kind: type[Any], plain: Any, where: str) -> Any:
    if not isinstance(plain, dict):
        raise MalformedObservation(f"{where} is {_shown(plain)}, not an object")
    hints = typing.get_type_hints(kind)
    wanted = {part.name: part for part in fields(kind) if part.name not in _NEVER_WRITTEN}
    unknown = sorted(set(plain) - set(wanted))
    missing = sorted(set(wanted) - set(plain))
    if unknown or missing:
        problem = f"has no field {missing[0]}" if missing else f"has a field too many: {unknown[0][:80]}"
        raise MalformedObservation(f"{where} {problem}")
    return kind(**{name: _value(hints[name], plain[name], f"{where}.{name}") for name in wanted})


def _value(hint: Any, plain: Any, where: str) -> Any:
    """The value of type `hint` that `plain` stands for; raises MalformedObservation for any other type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        if plain is None and type(None) in arguments:
            return None
        return _value(next(argument for argument in arguments if argument is not type(None)), plain, where)
    if origin is Literal:
        if isinstance(plain, str) and plain in arguments:
            return plain
        raise MalformedObservation(f"{where} is {_shown(plain)}, not one of {', '.join(map(str, arguments))}")
    if origin is tuple:
        if not isinstance(plain, list):
            raise MalformedObservation(f"{where} is {_shown(plain)}, not a list")
        return tuple(_value(arguments[0], item, f"{where}[{index}]") for index, item in enumerate(plain))
    if origin is Mapping:
        return _id_map(arguments[1], plain, where)
    if is_dataclass(hint):
        return _build(typing.cast("type[Any]", hint), plain, where)
    accepted = (int, float) if hint is float else (hint,)
    if type(plain) not in accepted:
        raise MalformedObservation(f"{where} is {_shown(plain)}, not {hint.__name__}")
    return float(plain) if hint is float else plain


def _id_map(hint: Any, plain: Any, where: str) -> dict[int, Any]:
    if not isinstance(plain, dict):
        raise MalformedObservation(f"{where} is {_shown(plain)}, not an object")
    decoded = {}
    for key, value in plain.items():
        if not (key.isascii() and key.isdigit() and len(key) <= 19):
            raise MalformedObservation(f"{where} has the key {_shown(key)}, not a schema id")
        decoded[int(key)] = _value(hint, value, f"{where}[{key}]")
    return decoded


def _shown(plain: Any) -> str:
    text = json.dumps(plain, ensure_ascii=True, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
