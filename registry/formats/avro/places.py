"""From a pointer into a schema's text to the part of the model that stands there."""

from __future__ import annotations

from dataclasses import dataclass

from registry.formats.avro.model import Array, AvroType, Field, Map, Named, Record, Schema, Union


@dataclass(frozen=True, slots=True)
class Spot:
    """A type where it is used, with the namespace that a name without dots has there."""

    type: AvroType
    namespace: str


def root_of(schema: Schema, source: str | None) -> AvroType | None:
    """The root type of the schema's own text, or of the reference of that name."""
    if source is None:
        return schema.root
    return next((item.root for item in schema.documents if item.reference.name == source), None)


def type_at(root: AvroType | None, pointer: str | None) -> Spot | None:
    """The type that a pointer leads to, None if it leads to something else."""
    if root is None or pointer is None:
        return None
    type_, namespace = root, ""
    tokens = pointer.split("/")[1:]
    while tokens:
        inner = _step(type_, tokens)
        if inner is None:
            return None
        if isinstance(type_, Named):
            namespace = type_.namespace
        type_ = inner
    return Spot(type_, namespace)


def field_at(root: AvroType | None, pointer: str | None) -> tuple[Record, Field] | None:
    """The field that a pointer leads to, with its record; None if it leads to something else."""
    holder, _, index = (pointer or "").rpartition("/")
    spot = type_at(root, holder.removesuffix("/fields"))
    if spot is None or not holder.endswith("/fields") or not isinstance(spot.type, Record):
        return None
    return (spot.type, spot.type.fields[int(index)]) if index.isdigit() and int(index) < len(spot.type.fields) else None


def _step(type_: AvroType, tokens: list[str]) -> AvroType | None:
    """The type one step further; takes the tokens of the step away."""
    part = tokens.pop(0)
    if isinstance(type_, Record) and part == "fields" and len(tokens) >= 2 and tokens[1] == "type":
        index = tokens[0]
        del tokens[:2]
        return type_.fields[int(index)].type if index.isdigit() and int(index) < len(type_.fields) else None
    if isinstance(type_, Array) and part == "items":
        return type_.items
    if isinstance(type_, Map) and part == "values":
        return type_.values
    if isinstance(type_, Union) and part.isdigit() and int(part) < len(type_.branches):
        return type_.branches[int(part)]
    return None
