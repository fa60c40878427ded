"""The parts of a schema's own file that pointers and names lead to."""

from __future__ import annotations

from registry.formats.pointer import unescape
from registry.formats.protobuf.model import Field, Message, Schema


def message_at(schema: Schema, pointer: str) -> Message | None:
    """The message of the schema's own file that a pointer leads to or into."""
    parts = [unescape(part) for part in pointer.split("/")[1:]]
    found: Message | None = None
    inside = schema.main.messages
    while len(parts) >= 2 and parts[0] == "messages":
        found = inside.get(parts[1])
        if found is None:
            return None
        inside, parts = found.messages, parts[2:]
    return found


def holder_at(schema: Schema, pointer: str) -> Message | None:
    """The message that a pointer of a field, oneof or value is in."""
    return message_at(schema, pointer)


def field_at(schema: Schema, pointer: str) -> Field | None:
    """The field of the schema's own file that a pointer leads to."""
    holder, kind, rest = pointer.rpartition("/fields/")
    message = message_at(schema, holder) if kind else None
    number = rest.split("/")[0]
    return message.by_number.get(int(number)) if message is not None and number.isdigit() else None


def message_of(schema: Schema, like: Message | None) -> Message | None:
    """The schema's own message of the same name as another's."""
    return None if like is None else message_of_name(schema, like.local_name)


def message_of_name(schema: Schema, local_name: str) -> Message | None:
    """The schema's own message of a name without the package."""
    return next((m for m in schema.messages.values() if m.source is None and m.local_name == local_name), None)
