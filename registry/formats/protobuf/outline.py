"""The fields of a schema as a flat list for people: one row a field, nested ones after their parent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from registry.formats.base import OutlineField
from registry.formats.protobuf.compiler import KNOWN_NAMES
from registry.formats.protobuf.hazards import default_text
from registry.formats.protobuf.model import Field, Message, Schema, full_label
from registry.formats.protobuf.tags import TagsByName, tags_by_name
from registry.formats.tags import joined

MAX_ROWS: Final = 2_000
MAX_DEPTH: Final = 12


def outline(schema: Schema) -> tuple[OutlineField, ...]:
    """The fields of all messages that no other message of the file holds, at most MAX_ROWS rows, MAX_DEPTH deep.

    A message inside itself is named, not opened again; well-known types are named.
    """
    rows, tags = [], tags_by_name(schema)
    for message in _roots(schema):
        for row in _inside(message, message.local_name, 0, frozenset(), tags, ()):
            rows.append(row)
            if len(rows) == MAX_ROWS:
                return tuple(rows)
    return tuple(rows)


def _roots(schema: Schema) -> list[Message]:
    """Messages at the top of the file, those that are only parts of others left out where any is left."""
    tops = list(schema.main.messages.values())
    held: set[int] = set()
    for message in schema.messages.values():
        if message.source is None:
            held |= {id(field.message) for field in message.fields if field.message is not message}
            held |= {id(inner.message) for field in message.fields if field.is_map for inner in _entry(field)}
    return [message for message in tops if id(message) not in held] or tops


def _entry(field: Field) -> tuple[Field, ...]:
    return field.message.fields if field.message is not None else ()


def _inside(
    message: Message, path: str, depth: int, open_types: frozenset[str], known: TagsByName, outer: tuple[str, ...]
) -> Iterator[OutlineField]:
    if depth >= MAX_DEPTH or message.full_name in open_types:
        return
    around = joined(outer, known.get((message.full_name, ""), ()))
    for field in (*message.fields, *message.extended.values()):
        here = f"{path}.{field.shown_name}"
        tags = joined(around, known.get((message.full_name, field.name), ()))
        yield OutlineField(
            name=field.shown_name,
            path=here,
            type=_shown(field),
            depth=depth,
            required=field.is_required,
            default=None if field.declared_default is None else default_text(field),
            doc=field.doc or (field.message.doc if field.message is not None else ""),
            aliases=(),
            tags=tags,
            entity=f"{message.full_name}.{field.name}",
        )
        held, suffix = field.message, "[]" if field.is_repeated else ""
        if field.is_map and held is not None:
            held, suffix = held.by_number[2].message, "{}"
        if held is not None and held.source not in KNOWN_NAMES:
            yield from _inside(held, here + suffix, depth + 1, open_types | {message.full_name}, known, tags)


def _shown(field: Field) -> str:
    """The type with its label and number, the oneof, and the values of an enum."""
    text = f"{full_label(field)} = {field.number}"
    if field.oneof is not None:
        text += f", in oneof {field.oneof}"
    if field.enum is not None:
        names = list(field.enum.numbers)
        text += f" ({', '.join(names[:8])}{', …' if len(names) > 8 else ''})"
    return text
