"""A schema's properties as a flat list, the tags at its objects and properties, and advice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Final, NamedTuple

from registry.errors import SchemaTooCostly
from registry.formats.base import OutlineField
from registry.formats.json_pointer import join
from registry.formats.json_schema.model import ROOT, Model, Place, root_path
from registry.formats.json_schema.text import compact, type_words
from registry.formats.lint import Place as LintPlace
from registry.formats.lint import looks_personal, mixed_names
from registry.formats.tags import (
    FIELD,
    RECORD,
    Entity,
    EntityTags,
    TagChange,
    joined,
    no_such_path,
    tags_in,
    write_tags,
)

MAX_ROWS: Final = 2_000
MAX_DEPTH: Final = 12
_MAX_STEPS: Final = 20_000
_IN_PLACE: Final = ("allOf", "anyOf", "oneOf", "then", "else")
_OF_VALUES: Final = ("items", "prefixItems", "additionalProperties")


def outline(model: Model) -> tuple[OutlineField, ...]:
    """At most MAX_ROWS rows, MAX_DEPTH deep; a schema inside itself is named, not opened again."""
    rows: list[OutlineField] = []
    for row in _outline_schema(model, ROOT, root_path(model), 0, frozenset(), count(), ()):
        rows.append(row)
        if len(rows) == MAX_ROWS:
            break
    return tuple(rows)


def behind(model: Model, place: Place) -> Place:
    """The place that a plain chain of references leads to."""
    seen: set[Place] = set()
    while place not in seen:
        seen.add(place)
        target = model.targets.get(Place(place.document, join(place.pointer, "$ref")))
        if not isinstance(target, Place):
            break
        place = target
    return place


def _outline_schema(
    model: Model,
    place: Place,
    path: str,
    depth: int,
    around: frozenset[Place],
    steps: Iterator[int],
    outer: tuple[str, ...],
) -> Iterator[OutlineField]:
    place = behind(model, place)
    schema = model.at(place)
    if (
        next(steps) > _MAX_STEPS
        or depth >= MAX_DEPTH
        or place in around
        or not isinstance(schema, dict)
        or len(around) > 4 * MAX_DEPTH
    ):
        return
    inner, tags = around | {place}, joined(outer, tags_in(schema))
    properties, required = schema.get("properties"), schema.get("required")
    names = set(required) if isinstance(required, list) else set()
    for name, held in properties.items() if isinstance(properties, dict) else ():
        there = Place(place.document, join(place.pointer, "properties", name))
        here = f"{path}.{name}"
        own = joined(tags, _value_tags(model, there, steps))
        yield _row(model, there, name, held, here, depth, name in names, own)
        yield from _outline_schema(model, there, here, depth + 1, inner, steps, own)
    for keyword in _IN_PLACE:
        members = schema.get(keyword)
        for index, _ in enumerate(members) if isinstance(members, list) else ():
            yield from _outline_schema(
                model, Place(place.document, join(place.pointer, keyword, index)), path, depth, inner, steps, tags
            )
        if isinstance(members, dict):
            there = Place(place.document, join(place.pointer, keyword))
            yield from _outline_schema(model, there, path, depth, inner, steps, tags)
    for keyword, step in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(keyword), dict):
            there = Place(place.document, join(place.pointer, keyword))
            yield from _outline_schema(model, there, path + step, depth, inner, steps, tags)


def _value_tags(model: Model, place: Place, steps: Iterator[int]) -> tuple[str, ...]:
    """The tags of a property's value: of its own schema, of what that refers to, and of its members, items and entries."""
    found: dict[str, None] = {}
    seen: set[Place] = set()
    stack = [place]
    while stack:
        here = stack.pop()
        schema = model.at(here)
        if here in seen or not isinstance(schema, dict) or next(steps) > _MAX_STEPS:
            continue
        seen.add(here)
        found |= dict.fromkeys(tags_in(schema))
        stack.append(behind(model, here))
        for keyword in (*_IN_PLACE, *_OF_VALUES):
            members = schema.get(keyword)
            if isinstance(members, list):
                stack += [Place(here.document, join(here.pointer, keyword, index)) for index in range(len(members))]
            elif isinstance(members, dict):
                stack.append(Place(here.document, join(here.pointer, keyword)))
    return tuple(found)


def _row(
    model: Model, place: Place, name: str, held: Any, path: str, depth: int, is_required: bool, tags: tuple[str, ...]
) -> OutlineField:
    target = model.at(behind(model, place))
    notes = {**(target if isinstance(target, Mapping) else {}), **(held if isinstance(held, Mapping) else {})}
    description = notes.get("description")
    return OutlineField(
        name=name,
        path=path,
        type=type_words(held),
        depth=depth,
        required=is_required,
        default=compact(notes["default"]) if "default" in notes else None,
        doc=description if isinstance(description, str) else "",
        tags=tags,
    )


#: keywords any of which says what values are taken
_SAYING: Final = frozenset(
    {"type", "$ref", "$dynamicRef", "$recursiveRef", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if"}
)
_CLOSING: Final = ("additionalProperties", "unevaluatedProperties")
_MAPS: Final = ("$defs", "definitions")
_MAX_SCHEMAS: Final = 20_000

#: a schema as JSON, its path and pointer, whether what is around it is tagged, and whether it is a part of another
_Spot = tuple[Any, str, str, bool, bool]


def lint_places(model: Model) -> Iterator[LintPlace]:
    """Where the rules aren't followed, outer schemas first."""
    root = model.root
    if isinstance(root, Mapping):
        if "$schema" not in root:
            yield LintPlace("NO_SCHEMA_KEYWORD", "", "")
        if "title" not in root:
            yield LintPlace("NO_TITLE", "", "")
    named: list[tuple[str, str, str | None]] = []
    stack: list[_Spot] = [(root, root_path(model), "", False, False)]
    for _ in range(_MAX_SCHEMAS):
        if not stack:
            break
        schema, path, pointer, around, is_part = stack.pop()
        if not isinstance(schema, Mapping):
            continue
        tagged = around or bool(tags_in(schema))
        properties = schema.get("properties")
        if isinstance(properties, Mapping):
            if properties and not is_part and not any(word in schema for word in _CLOSING):
                yield LintPlace("OPENNESS_UNSAID", path, pointer)
            for name, held in properties.items():
                here, there = f"{path}.{name}", join(pointer, "properties", name)
                named.append((name, here, there))
                yield from _property(name, held, here, there, tagged)
        stack.extend(reversed(list(_nested_spots(schema, path, pointer, tagged))))
    yield from mixed_names(named)


def _nested_spots(schema: Mapping[str, Any], path: str, pointer: str, tagged: bool) -> Iterator[_Spot]:
    properties = schema.get("properties")
    for name, held in properties.items() if isinstance(properties, Mapping) else ():
        yield held, f"{path}.{name}", join(pointer, "properties", name), tagged, False
    for keyword, step in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(keyword), Mapping):
            yield schema[keyword], path + step, join(pointer, keyword), tagged, False
    for keyword in _IN_PLACE:
        members = schema.get(keyword)
        if isinstance(members, list):
            for index, member in enumerate(members):
                yield member, path, join(pointer, keyword, index), tagged, True
        else:
            yield members, path, join(pointer, keyword), tagged, True
    for keyword in _MAPS:
        held = schema.get(keyword)
        for name, definition in held.items() if isinstance(held, Mapping) else ():
            yield definition, name, join(pointer, keyword, name), tagged, False


def _property(name: str, held: Any, path: str, pointer: str, tagged: bool) -> Iterator[LintPlace]:
    said = held if isinstance(held, Mapping) else {}
    values = {"name": name}
    if held is True or (isinstance(held, Mapping) and _SAYING.isdisjoint(held) and "properties" not in held):
        yield LintPlace("NO_TYPE", path, pointer, values)
    if held is not False and not said.get("description") and "$ref" not in said:
        yield LintPlace("FIELD_WITHOUT_DOC", path, pointer, values)
    if looks_personal(name) and not tagged and not tags_in(said):
        yield LintPlace("PERSONAL_WITHOUT_TAG", path, pointer, values)


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
        stack.extend((child, (before, label)) for label, child in reversed(list(_nested_places(place))))
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
        stack.extend((child, rest[len(label) :]) for label, child in _nested_places(place) if rest.startswith(label))
    return None


def _entities(place: _Place) -> Iterator[tuple[str, str, _Place]]:
    """What of a schema can have tags, with its kind and the end of its path."""
    if _kind(place) != "object":
        return
    if not place.is_field:
        yield RECORD, "object", place
    for name, schema in _members(place.schema, "properties"):
        yield FIELD, f"object.{name}", _Place(schema, join(place.pointer, "properties", name))


def _nested_places(place: _Place) -> Iterator[tuple[str, _Place]]:
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
