"""The fields of a schema as a flat list for people: one row a field, nested ones after their parent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from registry.formats.avro.canonical import json_text
from registry.formats.avro.findings import root_path
from registry.formats.avro.model import Array, AvroType, Enum, Field, Map, Named, Record, Union, type_label
from registry.formats.base import OutlineField
from registry.formats.json_tags import tags_in
from registry.formats.tags import joined

MAX_ROWS: Final = 2_000
MAX_DEPTH: Final = 12


def outline(root: AvroType) -> tuple[OutlineField, ...]:
    """At most MAX_ROWS rows, MAX_DEPTH deep; a type inside itself is named, not opened again."""
    rows = []
    for row in _inside(root, root_path(root), 0, frozenset(), ()):
        rows.append(row)
        if len(rows) == MAX_ROWS:
            break
    return tuple(rows)


def _inside(
    type_: AvroType, path: str, depth: int, open_types: frozenset[str], tags: tuple[str, ...]
) -> Iterator[OutlineField]:
    if depth >= MAX_DEPTH:
        return
    if isinstance(type_, Record) and type_.full_name not in open_types:
        around = joined(tags, tags_in(type_.props))
        for field in type_.fields:
            yield from _field(type_, field, path, depth, open_types | {type_.full_name}, around)
    elif isinstance(type_, Array):
        yield from _inside(type_.items, f"{path}[]", depth, open_types, tags)
    elif isinstance(type_, Map):
        yield from _inside(type_.values, f"{path}{{}}", depth, open_types, tags)
    elif isinstance(type_, Union):
        for branch in type_.branches:
            yield from _inside(branch, path, depth, open_types, tags)


def _field(
    record: Record, field: Field, path: str, depth: int, open_types: frozenset[str], around: tuple[str, ...]
) -> Iterator[OutlineField]:
    tags = joined(around, tags_in(field.props))
    here = f"{path}.{field.name}" if path else field.name
    yield OutlineField(
        name=field.name,
        path=here,
        type=_shown(field.type),
        depth=depth,
        required=not field.has_default,
        default=json_text(field.default) if field.has_default else None,
        doc=field.doc or _type_doc(field.type),
        aliases=field.aliases,
        tags=tags,
        entity=f"{record.full_name}.{field.name}",
    )
    yield from _inside(field.type, here, depth + 1, open_types, tags)


def _shown(type_: AvroType) -> str:
    """Like type_label, an optional type as `string?` and an enum with its symbols."""
    if isinstance(type_, Union) and len(type_.branches) == 2 and any(b.kind == "null" for b in type_.branches):
        return f"{_shown(next(b for b in type_.branches if b.kind != 'null'))}?"
    if isinstance(type_, Enum):
        shown = ", ".join(type_.symbols[:8]) + (", …" if len(type_.symbols) > 8 else "")
        return f"{type_.full_name} ({shown})"
    return type_label(type_)


def _type_doc(type_: AvroType) -> str:
    return (type_.doc or "") if isinstance(type_, Named) else ""
