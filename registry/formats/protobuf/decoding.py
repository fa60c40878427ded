"""Bodies of messages on the wire: their message type in a schema, and the message as JSON.

A body starts with the path of message indexes in the file: their number and each index as zigzag varints. A single zero
byte means the path [0].
"""

from __future__ import annotations

from typing import Any, Final

from registry.errors import InvalidDatum
from registry.formats.protobuf.dynamic_messages import Codec
from registry.formats.protobuf.model import Message, Schema
from registry.formats.protobuf.resolution import read_message
from registry.formats.protobuf.text.statements import MessageStatement

MAX_INDEXES: Final = 40
_MAX_VARINT_BYTES: Final = 5


def split_indexes(body: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return the path of indexes at the start, and the rest. Raises InvalidDatum with `byte`."""
    count, at = _zigzag(body, 0)
    if count == 0:
        return (0,), body[at:]
    if not 0 < count <= MAX_INDEXES:
        raise InvalidDatum(f"byte 0: {count} message indexes are declared; 1 to {MAX_INDEXES} are possible", byte=0)
    indexes = []
    for _ in range(count):
        index, at = _zigzag(body, at)
        indexes.append(index)
    return tuple(indexes), body[at:]


def message_at(schema: Schema, indexes: tuple[int, ...]) -> Message:
    """Return the message that a path of indexes selects. Raises InvalidDatum.

    The indexes count the messages that the text declares, including map entries that it writes out, like clients with a
    descriptor. If that selects no message, the indexes count those of the descriptor, which has all map entries.
    """
    return _message_said(schema, indexes) or _message_described(schema, indexes)


def _message_said(schema: Schema, indexes: tuple[int, ...]) -> Message | None:
    types, names = schema.statements.types, [schema.proto.package] if schema.proto.package else []
    for index in indexes:
        declared = [item for item in types if isinstance(item, MessageStatement)]
        if not 0 <= index < len(declared):
            return None
        names.append(declared[index].name)
        types = declared[index].types
    return schema.messages.get(".".join(names))


def _message_described(schema: Schema, indexes: tuple[int, ...]) -> Message:
    declared, names = schema.proto.message_type, [schema.proto.package] if schema.proto.package else []
    for index in indexes:
        if not 0 <= index < len(declared):
            where = ".".join(names) or "the schema"
            raise InvalidDatum(
                f"message index {index} of {list(indexes)} is out of range: {where} has {len(declared)} messages there"
            )
        names.append(declared[index].name)
        declared = declared[index].nested_type
    message = schema.messages.get(".".join(names))
    if message is None:
        raise InvalidDatum(f"message indexes {list(indexes)} lead to {'.'.join(names)}, which has no data")
    return message


def decode_body(schema: Schema, data: bytes, indexes: tuple[int, ...]) -> tuple[str, Any]:
    """Return the full name of the message type, and the message in the JSON form. Raises InvalidDatum."""
    message, codec = message_at(schema, indexes), Codec(schema)
    return message.full_name, codec.json(read_message(codec, message, data))


def _zigzag(body: bytes, at: int) -> tuple[int, int]:
    value = 0
    for step in range(_MAX_VARINT_BYTES):
        if at + step >= len(body):
            raise InvalidDatum(f"byte {len(body)}: the body ends within its message indexes", byte=len(body))
        byte = body[at + step]
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at + step + 1
    raise InvalidDatum(f"byte {at}: a message index has more than 32 bits", byte=at)
