"""Tags of a JSON Schema: `confluent:tags` at objects and properties.

An entity's path is that of the established registry: `object.items.array.object.price` is the property `price` of the
objects in the array `items`. Members of `anyOf`, `allOf` and `oneOf` are numbered in an order by kind, title,
description and default, so that they have the same number however they are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from registry.errors import SchemaTooCostly
from registry.formats.json_schema.model import Model
from registry.formats.json_schema.text import compact
from registry.formats.json_tags import no_such_path, tags_in, write_tags
from registry.formats.pointer import join
from registry.formats.tags import FIELD, RECORD, Entity, EntityTags, TagChange

#: characters of all paths of one answer
MAX_PATHS: Final = 4_000_000
_CRITERIA: Final = {"anyOf": "anyof", "allOf": "allof", "oneOf": "oneof"}
#: the kinds in the order in which members are numbered
_KINDS: Final = (
    "array", "boolean", "combined", "conditional", "const", "empty", "enum", "false", "not", "null", "number",
    "object", "reference", "string", "true",
)  # fmt: skip
_RANKS: Final = {kind: rank for rank, kind in enumerate(_KINDS)} | {"integer": _KINDS.index("number")}
_OF_OBJECTS: Final = frozenset(
    {"properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties",
     "dependencies", "propertyNames"}
)  # fmt: skip
_OF_ARRAYS: Final = frozenset({"items", "minItems", "maxItems", "uniqueItems", "additionalItems", "contains"})


class _Place(NamedTuple):
    """A schema in the text, seen as one of its kinds; `is_field` says that it is a property's own."""

    schema: Any
    pointer: str
    is_field: bool = False
    kind: str | None = None


def tags(model: Model) -> tuple[EntityTags, ...]:
    """The tagged objects and properties, outer ones first. Raises SchemaTooCostly where the paths get too long."""
    found: list[EntityTags] = []
    length = 0
    stack: list[tuple[_Place, tuple[Any, ...]]] = [(_Place(model.root, ""), ())]
    while stack:
        place, before = stack.pop()
        for kind, name, there in _entities(place):
            if own := tags_in(there.schema):
                path = "".join(_labels(before)) + name
                length += len(path)
                if length > MAX_PATHS:
                    raise SchemaTooCostly(f"the paths of the tags have more than {MAX_PATHS:,} characters in all")
                found.append(EntityTags(FIELD if kind == FIELD else RECORD, path, own))
        stack.extend((child, (before, label)) for label, child in reversed(list(_inside(place))))
    return tuple(found)


def with_tags(text: str, model: Model, changes: Iterable[TagChange]) -> str:
    """The text with changed tags; raises InvalidSchema for an entity that isn't there."""
    tags_at: dict[str, tuple[str, ...]] = {}
    for change in changes:
        place = _find(model.root, change.entity)
        if place is None:
            raise no_such_path(change.entity[1])
        tags_at[place.pointer] = change.apply(tags_at.get(place.pointer, tags_in(place.schema)))
    return write_tags(text, tags_at)


def has_top_level_field(model: Model, name: str) -> bool:
    """Whether the schema itself says something of a property of that name."""
    properties = model.root.get("properties") if isinstance(model.root, dict) else None
    return isinstance(properties, dict) and name in properties


def _find(root: Any, entity: Entity) -> _Place | None:
    """The place of an entity: names may hold dots, so each way in which the path begins is followed, each place once."""
    kind, path = entity
    stack = [(_Place(root, ""), path)]
    while stack:
        place, rest = stack.pop()
        for found, name, there in _entities(place):
            if found == kind and name == rest:
                return there
        stack.extend((child, rest[len(label) :]) for label, child in _inside(place) if rest.startswith(label))
    return None


def _entities(place: _Place) -> Iterator[tuple[str, str, _Place]]:
    """What of a schema can have tags, with its kind and the end of its path."""
    if _kind(place) != "object":
        return
    if not place.is_field:
        yield RECORD, "object", place
    for name, schema in _members(place.schema, "properties"):
        yield FIELD, f"object.{name}", _Place(schema, join(place.pointer, "properties", name))


def _inside(place: _Place) -> Iterator[tuple[str, _Place]]:
    """The schemas in a schema, each with what stands for it in a path."""
    schema, pointer, kind = place.schema, place.pointer, _kind(place)
    if kind == "object":
        for name, inner in _members(schema, "properties"):
            yield f"object.{name}.", _Place(inner, join(pointer, "properties", name), is_field=True)
        for keyword in ("definitions", "$defs"):
            for name, inner in _members(schema, keyword):
                yield f"object.{keyword}.{name}.", _Place(inner, join(pointer, keyword, name))
    elif kind == "array":
        if isinstance(schema.get("items"), dict):
            yield "array.", _Place(schema["items"], join(pointer, "items"))
    elif kind == "conditional":
        for keyword in ("if", "then", "else"):
            if isinstance(schema.get(keyword), dict):
                yield f"conditional.{keyword}.", _Place(schema[keyword], join(pointer, keyword))
    elif kind == "not":
        yield "not.", _Place(schema["not"], join(pointer, "not"))
    elif kind in _CRITERIA:
        items = [_Place(item, join(pointer, kind, index)) for index, item in enumerate(schema[kind])]
        yield from _numbered(_CRITERIA[kind], sorted(items, key=_order))
    elif kind == "types":
        yield from _numbered("anyof", sorted(_as_types(place), key=_order))
    elif kind == "parts":
        yield from _numbered("allof", sorted(_as_parts(place), key=_order))


def _numbered(label: str, places: Iterable[_Place]) -> Iterator[tuple[str, _Place]]:
    for index, place in enumerate(places):
        yield f"{label}.{index}.", place


def _kind(place: _Place) -> str:
    """What a schema is: a type, a keyword that holds others, several `types`, or several `parts` that all hold."""
    if place.kind is not None:
        return place.kind
    if not isinstance(place.schema, dict):
        return "true" if place.schema is True else "false"
    parts = _parts(place.schema)
    return parts[0] if len(parts) == 1 else "parts" if parts else "empty"


def _parts(schema: dict[str, Any]) -> list[str]:
    """The kinds that one schema is at once."""
    if "$ref" in schema:
        return ["reference"]
    found = [keyword for keyword in _CRITERIA if isinstance(schema.get(keyword), list)]
    found += ["conditional"] if isinstance(schema.get("if"), dict) else []
    found += ["not"] if isinstance(schema.get("not"), dict) else []
    typed = _typed(schema)
    return found + ([typed] if typed else [])


def _typed(schema: dict[str, Any]) -> str:
    declared = schema.get("type")
    if "const" in schema or "enum" in schema:
        return "const" if "const" in schema else "enum"
    if isinstance(declared, list):
        return "types" if len(declared) > 1 else str(declared[0]) if declared else ""
    if isinstance(declared, str):
        return declared
    if not _OF_OBJECTS.isdisjoint(schema):
        return "object"
    return "array" if not _OF_ARRAYS.isdisjoint(schema) else ""


def _as_types(place: _Place) -> list[_Place]:
    return [place._replace(kind=str(kind), is_field=False) for kind in place.schema["type"]]


def _as_parts(place: _Place) -> list[_Place]:
    return [place._replace(kind=kind, is_field=False) for kind in _parts(place.schema)]


def _order(place: _Place) -> tuple[Any, ...]:
    kind = _kind(place)
    rank = _RANKS.get(kind, _RANKS["combined"])
    schema = place.schema if isinstance(place.schema, dict) else {}
    default = compact(schema["default"]) if "default" in schema else None
    said = [schema.get("title"), schema.get("description"), default]
    return (rank, *((text is not None, str(text or "")) for text in said))


def _members(schema: dict[str, Any], keyword: str) -> list[tuple[str, Any]]:
    held = schema.get(keyword)
    return list(held.items()) if isinstance(held, dict) else []


def _labels(before: tuple[Any, ...]) -> list[str]:
    """The labels of a chain, outermost first."""
    found: list[str] = []
    while before:
        before, label = before
        found.append(label)
    return found[::-1]
