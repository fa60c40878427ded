"""Bodies of messages: bytes that somebody wrote with a schema, decoded with it, or with another one as the reader.

Bytes are hostile: of a body at most MAX_BODY are read, the number of values and the depth are bounded by the formats.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Protocol

from registry.errors import InvalidDatum
from registry.formats.avro import decoding as avro
from registry.formats.avro.datum import plain
from registry.formats.avro.model import Record
from registry.formats.base import ParsedSchema, Resolution, SchemaFormat
from registry.formats.json_schema import data as json_data
from registry.formats.json_schema.data import data_path, reader_location, validation_failures
from registry.formats.json_schema.model import root_path
from registry.formats.protobuf import decoding as protobuf
from registry.formats.protobuf.resolution import BodyReader

MAX_BODY: Final = 1024 * 1024
MAX_PROBLEMS: Final = 20
TOO_LONG: Final = "a pattern of the schema takes too long on this value"


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """A body as JSON for people; `type_name` is the type at its root, `indexes` Protobuf's path to it.

    `problems` is what a JSON Schema says against the value: JSON can be read without being valid.
    """

    value: Any
    type_name: str
    indexes: tuple[int, ...] = ()
    problems: tuple[str, ...] = ()


class BodyReplay(Protocol):
    """Reads bodies of one writer with one reader."""

    def __call__(self, body: bytes, indexes: tuple[int, ...] | None) -> Resolution:
        """What the reader makes of a body. Raises InvalidDatum where it isn't one of the writer's.

        `indexes` is Protobuf's path to the message where a header has it; None: it stands before the message.
        """


def decode_body(
    engine: SchemaFormat, schema: ParsedSchema, body: bytes, indexes: tuple[int, ...] | None = None
) -> DecodedBody:
    """The body, decoded. `indexes` as in `Replay`. Raises InvalidDatum, which names the byte or the place."""
    _check_size(body)
    return _DECODERS[engine.name](schema, body, indexes)


def replay_of(engine: SchemaFormat, reader: ParsedSchema, writer: ParsedSchema) -> BodyReplay:
    """A replay for a pair of schemas of one format."""
    return _REPLAYS[engine.name](reader, writer)


def _check_size(body: bytes) -> None:
    if len(body) > MAX_BODY:
        raise InvalidDatum(f"the body has {len(body):,} bytes; at most {MAX_BODY:,} are read")


# -- decoding -------------------------------------------------------------------------------------------------------


def _decode_avro(schema: ParsedSchema, body: bytes, indexes: tuple[int, ...] | None) -> DecodedBody:
    root = schema.model.root
    return DecodedBody(
        plain(avro.decode_body(schema.model, body)), root.full_name if isinstance(root, Record) else root.kind
    )


def _decode_protobuf(schema: ParsedSchema, body: bytes, indexes: tuple[int, ...] | None) -> DecodedBody:
    if indexes is None:
        indexes, body = protobuf.split_indexes(body)
    name, value = protobuf.decode_body(schema.model, body, indexes)
    return DecodedBody(value, name, indexes)


def _decode_json(schema: ParsedSchema, body: bytes, indexes: tuple[int, ...] | None) -> DecodedBody:
    value = json_value(body)
    validator = json_data.validator_for(schema.model)
    failures = validation_failures(validator, value)
    problems = tuple(f"{data_path(schema.model, item.instance_path)}: {item.message}" for item in failures)
    if not failures and not json_data.is_valid(validator, value):
        problems = (TOO_LONG,)
    return DecodedBody(value, root_path(schema.model), (), problems[:MAX_PROBLEMS])


def json_value(body: bytes) -> Any:
    """The JSON value in the bytes. Raises InvalidDatum with line and column."""
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise InvalidDatum(f"byte {error.start}: the body isn't UTF-8", byte=error.start) from None
    except json.JSONDecodeError as error:
        raise InvalidDatum(f"line {error.lineno}, column {error.colno}: the body isn't JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidDatum(f"the body isn't valid JSON: {str(error)[:200]}") from None
    json_data.check_datum(value)
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


_DECODERS: Final[Mapping[str, Callable[[ParsedSchema, bytes, tuple[int, ...] | None], DecodedBody]]] = {
    "AVRO": _decode_avro,
    "PROTOBUF": _decode_protobuf,
    "JSON": _decode_json,
}


# -- another reader -------------------------------------------------------------------------------------------------


def _replay_avro(reader: ParsedSchema, writer: ParsedSchema) -> BodyReplay:
    def replay(body: bytes, indexes: tuple[int, ...] | None) -> Resolution:
        _check_size(body)
        return avro.resolve_body(reader.model, writer.model, body)

    return replay


def _replay_protobuf(reader: ParsedSchema, writer: ParsedSchema) -> BodyReplay:
    bodies = BodyReader(reader.model, writer.model)

    def replay(body: bytes, indexes: tuple[int, ...] | None) -> Resolution:
        _check_size(body)
        if indexes is None:
            indexes, body = protobuf.split_indexes(body)
        return bodies.resolve(body, protobuf.message_at(writer.model, indexes))

    return replay


def _replay_json(reader: ParsedSchema, writer: ParsedSchema) -> BodyReplay:
    """A value is read as it is or refused; the place is the schema's, as names in data are data."""
    validators = [json_data.validator_for(schema.model) for schema in (writer, reader)]

    def replay(body: bytes, indexes: tuple[int, ...] | None) -> Resolution:
        _check_size(body)
        value = json_value(body)
        if not json_data.is_valid(validators[0], value):
            raise InvalidDatum("the value isn't valid under its writer schema")
        if json_data.is_valid(validators[1], value):
            return Resolution(value, "", value)
        failures = validation_failures(validators[1], value)
        keywords = dict.fromkeys(
            f"#{reader_location(reader.model, item.schema_path).pointer} ({item.keyword})" for item in failures
        )
        return Resolution(value, "", error=f"rejected by {', '.join(list(keywords)[:5])}" if keywords else TOO_LONG)

    return replay


_REPLAYS: Final[Mapping[str, Callable[[ParsedSchema, ParsedSchema], BodyReplay]]] = {
    "AVRO": _replay_avro,
    "PROTOBUF": _replay_protobuf,
    "JSON": _replay_json,
}
