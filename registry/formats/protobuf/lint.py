"""Advice on a Protobuf schema: what the file itself declares, not what it imports."""

from __future__ import annotations

from collections.abc import Iterator

from registry.formats.lint import Place
from registry.formats.lint_names import in_style, is_lower_snake, is_pascal, looks_like_money, looks_personal
from registry.formats.protobuf.model import Enum, Field, Message, Schema
from registry.formats.protobuf.tags import TagsByName, tags_by_name


def lint_places(schema: Schema) -> Iterator[Place]:
    """Where the rules aren't followed, in the order of the declarations."""
    if not schema.main.package:
        yield Place("NO_PACKAGE", "", None)
    tags = tags_by_name(schema)
    for message in schema.main.messages.values():
        yield from _message(message, tags)
    for enum in schema.main.enums.values():
        yield from _enum(enum)


def _message(message: Message, tags: TagsByName) -> Iterator[Place]:
    if message.is_map_entry:
        return
    yield from _type_name(message)
    yield from _numbers(message)
    is_tagged = bool(tags.get((message.full_name, "")))
    for field in message.fields:
        yield from _field(message, field, is_tagged or bool(tags.get((message.full_name, field.name))))
    for enum in message.enums.values():
        yield from _enum(enum)
    for inner in message.messages.values():
        yield from _message(inner, tags)


def _type_name(found: Message | Enum) -> Iterator[Place]:
    if not is_pascal(found.name):
        values = {"name": found.name, "better": in_style(found.name, "PascalCase")}
        yield Place("TYPE_NAME_STYLE", found.local_name, found.pointer, values)


def _numbers(message: Message) -> Iterator[Place]:
    """Numbers below the highest that nothing uses and nothing keeps free; ranges, however wide."""
    taken = sorted(
        [(number, number) for number in message.by_number]
        + [*message.reserved, *message.extension_ranges, (19_000, 19_999)]
    )
    highest, free, gaps = max(message.by_number, default=0), 1, []
    for first, last in taken:
        if first > free and free <= highest:
            gaps.append((free, min(first - 1, highest)))
        free = max(free, last + 1)
    if gaps:
        told = ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in gaps[:10])
        values = {"numbers": told + (", …" if len(gaps) > 10 else "")}
        yield Place("NUMBERS_NOT_RESERVED", message.local_name, message.pointer, values)


def _field(message: Message, field: Field, is_tagged: bool) -> Iterator[Place]:
    def place(rule: str, **values: str) -> Place:
        return Place(rule, f"{message.local_name}.{field.name}", field.pointer, {"name": field.name, **values})

    if not is_lower_snake(field.name):
        yield place("FIELD_NAME_STYLE", better=in_style(field.name, "snake_case"))
    if field.is_required:
        yield place("REQUIRED_FIELD")
    if not field.doc:
        yield place("FIELD_WITHOUT_DOC")
    if looks_like_money(field.name) and field.kind in ("float", "double"):
        yield place("MONEY_AS_FLOAT")
    if looks_personal(field.name) and not is_tagged:
        yield place("PERSONAL_WITHOUT_TAG")


def _enum(enum: Enum) -> Iterator[Place]:
    yield from _type_name(enum)
    zero = enum.by_number.get(0)
    # closed enums keep what they don't know apart from 0
    if zero is not None and not enum.is_closed and not zero.upper().endswith(("UNSPECIFIED", "UNKNOWN")):
        values = {"name": zero, "prefix": in_style(enum.name, "UPPER_CASE")}
        yield Place("ZERO_NOT_UNSPECIFIED", f"{enum.local_name}.{zero}", f"{enum.pointer}/values/0", values)
