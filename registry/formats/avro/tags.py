"""Tags of an Avro schema: `confluent:tags` at records and fields, entities being their full names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from registry.formats.avro.model import Array, AvroType, Field, Map, Named, Record, Schema, Union
from registry.formats.json_tags import no_such_path, tags_in, write_tags
from registry.formats.tags import FIELD, RECORD, Entity, EntityTags, TagChange


def tags(schema: Schema) -> tuple[EntityTags, ...]:
    """The tagged records and fields, each record before its fields, in the order of the text."""
    found: list[EntityTags] = []
    for record in _records(schema.root):
        if own := tags_in(record.props):
            found.append(EntityTags("sr_record", record.full_name, own))
        found.extend(
            EntityTags("sr_field", f"{record.full_name}.{field.name}", own)
            for field in record.fields
            if (own := tags_in(field.props))
        )
    return tuple(found)


def with_tags(text: str, schema: Schema, changes: Iterable[TagChange]) -> str:
    """The text with changed tags; raises InvalidSchema for an entity that it doesn't define itself."""
    own = [record for record in _records(schema.root) if record.source is None]
    known = {record.full_name: record for record in reversed(own)}
    simple = {record.simple: record for record in reversed(own)}
    namespace = schema.root.namespace if isinstance(schema.root, Named) else ""
    tags_at: dict[str, tuple[str, ...]] = {}
    for change in changes:
        found = _find(change.entity, known, simple, namespace)
        tags_at[found.pointer] = change.apply(tags_at.get(found.pointer, tags_in(found.props)))
    return write_tags(text, tags_at)


def has_top_level_field(schema: Schema, name: str) -> bool:
    """Whether the schema is a record with a field of that name."""
    return isinstance(schema.root, Record) and name in schema.root.by_name


def _find(entity: Entity, known: dict[str, Record], simple: dict[str, Record], namespace: str) -> Record | Field:
    """A record by its full name, or by its simple one where nothing or the schema's own namespace stands before it."""
    kind, path = entity
    name, _, field = path.rpartition(".") if kind == FIELD else (path, "", "")
    before, _, last = name.rpartition(".")
    record = known.get(name) or (simple.get(last) if before in ("", namespace) else None)
    found = record if kind == RECORD or record is None else record.by_name.get(field)
    if found is None:
        raise no_such_path(path)
    return found


def _records(root: AvroType) -> Iterator[Record]:
    """Every record once, in the order in which the text comes to it; without recursion."""
    seen: set[str] = set()
    stack = [root]
    while stack:
        found = stack.pop()
        if isinstance(found, Record):
            if found.full_name in seen:
                continue
            seen.add(found.full_name)
            yield found
        stack.extend(reversed(_inside(found)))


def _inside(found: AvroType) -> Sequence[AvroType]:
    if isinstance(found, Record):
        return [field.type for field in found.fields]
    if isinstance(found, Union):
        return found.branches
    if isinstance(found, Array):
        return [found.items]
    return [found.values] if isinstance(found, Map) else []
