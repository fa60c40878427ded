"""A schema's properties as a flat list, the tags of its objects and properties, and advice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count, islice
from typing import Any, Final, NamedTuple

from registry.errors import SchemaTooCostly
from registry.formats.base import OutlineField
from registry.formats.json_pointer import join
from registry.formats.json_schema.model import ROOT, Model, SchemaLocation, root_path
from registry.formats.json_schema.text import compact, type_words
from registry.formats.lint import LintViolation, looks_personal, mixed_names
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
    """Return at most MAX_ROWS rows, MAX_DEPTH deep; a schema inside itself isn't expanded again."""
    return tuple(row for _, row in _located_rows(model))


def declarations_of(model: Model, path: str) -> list[SchemaLocation]:
    """Return where the properties at a path of the outline are declared."""
    return list(dict.fromkeys(location for location, row in _located_rows(model) if row.path == path))


def _located_rows(model: Model) -> Iterable[tuple[SchemaLocation, OutlineField]]:
    return islice(_outline_schema(model, ROOT, root_path(model), 0, frozenset(), count(), ()), MAX_ROWS)


def behind(model: Model, location: SchemaLocation) -> SchemaLocation:
    """Return the final target of a plain chain of references."""
    visited: set[SchemaLocation] = set()
    while location not in visited:
        visited.add(location)
        target = model.targets.get(SchemaLocation(location.document, join(location.pointer, "$ref")))
        if not isinstance(target, SchemaLocation):
            break
        location = target
    return location


def _outline_schema(
    model: Model,
    location: SchemaLocation,
    path: str,
    depth: int,
    around: frozenset[SchemaLocation],
    steps: Iterator[int],
    outer: tuple[str, ...],
) -> Iterator[tuple[SchemaLocation, OutlineField]]:
    location = behind(model, location)
    schema = model.at(location)
    if (
        next(steps) > _MAX_STEPS
        or depth >= MAX_DEPTH
        or location in around
        or not isinstance(schema, dict)
        or len(around) > 4 * MAX_DEPTH
    ):
        return
    inner, tags = around | {location}, joined(outer, tags_in(schema))
    properties, required = schema.get("properties"), schema.get("required")
    names = set(required) if isinstance(required, list) else set()
    for name, property_schema in properties.items() if isinstance(properties, dict) else ():
        there = SchemaLocation(location.document, join(location.pointer, "properties", name))
        here = f"{path}.{name}"
        own = joined(tags, _value_tags(model, there, steps))
        yield there, _row(model, there, name, property_schema, here, depth, name in names, own)
        yield from _outline_schema(model, there, here, depth + 1, inner, steps, own)
    for keyword in _IN_PLACE:
        members = schema.get(keyword)
        for index, _ in enumerate(members) if isinstance(members, list) else ():
            yield from _outline_schema(
                model,
                SchemaLocation(location.document, join(location.pointer, keyword, index)),
                path,
                depth,
                inner,
                steps,
                tags,
            )
        if isinstance(members, dict):
            there = SchemaLocation(location.document, join(location.pointer, keyword))
            yield from _outline_schema(model, there, path, depth, inner, steps, tags)
    for keyword, step in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(keyword), dict):
            there = SchemaLocation(location.document, join(location.pointer, keyword))
            yield from _outline_schema(model, there, path + step, depth, inner, steps, tags)


def _value_tags(model: Model, location: SchemaLocation, steps: Iterator[int]) -> tuple[str, ...]:
    """Return the tags of a property's value: of its schema, its reference, and its members, items and entries."""
    tags: dict[str, None] = {}
    visited: set[SchemaLocation] = set()
    stack = [location]
    while stack:
        here = stack.pop()
        schema = model.at(here)
        if here in visited or not isinstance(schema, dict) or next(steps) > _MAX_STEPS:
            continue
        visited.add(here)
        tags |= dict.fromkeys(tags_in(schema))
        stack.append(behind(model, here))
        for keyword in (*_IN_PLACE, *_OF_VALUES):
            members = schema.get(keyword)
            if isinstance(members, list):
                stack += [
                    SchemaLocation(here.document, join(here.pointer, keyword, index)) for index in range(len(members))
                ]
            elif isinstance(members, dict):
                stack.append(SchemaLocation(here.document, join(here.pointer, keyword)))
    return tuple(tags)


def _row(
    model: Model,
    location: SchemaLocation,
    name: str,
    property_schema: Any,
    path: str,
    depth: int,
    is_required: bool,
    tags: tuple[str, ...],
) -> OutlineField:
    target = model.at(behind(model, location))
    notes = {
        **(target if isinstance(target, Mapping) else {}),
        **(property_schema if isinstance(property_schema, Mapping) else {}),
    }
    description = notes.get("description")
    return OutlineField(
        name=name,
        path=path,
        type=type_words(property_schema),
        depth=depth,
        required=is_required,
        default=compact(notes["default"]) if "default" in notes else None,
        doc=description if isinstance(description, str) else "",
        tags=tags,
    )


#: keywords that restrict the allowed values
_SAYING: Final = frozenset(
    {"type", "$ref", "$dynamicRef", "$recursiveRef", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if"}
)
_CLOSING: Final = ("additionalProperties", "unevaluatedProperties")
_MAPS: Final = ("$defs", "definitions")
_MAX_SCHEMAS: Final = 20_000

#: a schema as JSON, its path and pointer, whether an enclosing schema is tagged, and whether it is a part of another
_LintTarget = tuple[Any, str, str, bool, bool]


def lint_violations(model: Model) -> Iterator[LintViolation]:
    """Yield the lint violations, outer schemas first."""
    root = model.root
    if isinstance(root, Mapping):
        if "$schema" not in root:
            yield LintViolation("NO_SCHEMA_KEYWORD", "", "")
        if "title" not in root:
            yield LintViolation("NO_TITLE", "", "")
    named: list[tuple[str, str, str | None]] = []
    stack: list[_LintTarget] = [(root, root_path(model), "", False, False)]
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
                yield LintViolation("OPENNESS_UNSAID", path, pointer)
            for name, property_schema in properties.items():
                here, there = f"{path}.{name}", join(pointer, "properties", name)
                named.append((name, here, there))
                yield from _property(name, property_schema, here, there, tagged)
        stack.extend(reversed(list(_nested_targets(schema, path, pointer, tagged))))
    yield from mixed_names(named)


def _nested_targets(schema: Mapping[str, Any], path: str, pointer: str, tagged: bool) -> Iterator[_LintTarget]:
    properties = schema.get("properties")
    for name, definitions in properties.items() if isinstance(properties, Mapping) else ():
        yield definitions, f"{path}.{name}", join(pointer, "properties", name), tagged, False
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
        definitions = schema.get(keyword)
        for name, definition in definitions.items() if isinstance(definitions, Mapping) else ():
            yield definition, name, join(pointer, keyword, name), tagged, False


def _property(name: str, schema: Any, path: str, pointer: str, tagged: bool) -> Iterator[LintViolation]:
    keywords = schema if isinstance(schema, Mapping) else {}
    values = {"name": name}
    if schema is True or (isinstance(schema, Mapping) and _SAYING.isdisjoint(schema) and "properties" not in schema):
        yield LintViolation("NO_TYPE", path, pointer, values)
    if schema is not False and not keywords.get("description") and "$ref" not in keywords:
        yield LintViolation("FIELD_WITHOUT_DOC", path, pointer, values)
    if looks_personal(name) and not tagged and not tags_in(keywords):
        yield LintViolation("PERSONAL_WITHOUT_TAG", path, pointer, values)


#: the most characters in all paths of one answer
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


class _SchemaNode(NamedTuple):
    """A schema in the text, read as one of its kinds; `is_field` says that it is a property's own schema."""

    schema: Any
    pointer: str
    is_field: bool = False
    kind: str | None = None


def tags(model: Model) -> tuple[EntityTags, ...]:
    """Return the tagged objects and properties, outer ones first. Raises SchemaTooCostly if the paths are too long."""
    entities: list[EntityTags] = []
    length = 0
    stack: list[tuple[_SchemaNode, tuple[Any, ...]]] = [(_SchemaNode(model.root, ""), ())]
    while stack:
        node, before = stack.pop()
        for kind, name, there in _entities(node):
            if own := tags_in(there.schema):
                path = "".join(_labels(before)) + name
                length += len(path)
                if length > MAX_PATHS:
                    raise SchemaTooCostly(f"the paths of the tags have more than {MAX_PATHS:,} characters in total")
                entities.append(EntityTags(FIELD if kind == FIELD else RECORD, path, own))
        stack.extend((child, (before, label)) for label, child in reversed(list(_nested_nodes(node))))
    return tuple(entities)


def with_tags(text: str, model: Model, changes: Iterable[TagChange]) -> str:
    """Return the text with changed tags; raises InvalidSchema for an entity that doesn't exist."""
    tags_at: dict[str, tuple[str, ...]] = {}
    for change in changes:
        node = _find(model.root, change.entity)
        if node is None:
            raise no_such_path(change.entity[1])
        tags_at[node.pointer] = change.apply(tags_at.get(node.pointer, tags_in(node.schema)))
    return write_tags(text, tags_at)


def has_top_level_field(model: Model, name: str) -> bool:
    """Return whether the schema declares a top-level property with that name."""
    properties = model.root.get("properties") if isinstance(model.root, dict) else None
    return isinstance(properties, dict) and name in properties


def _find(root: Any, entity: Entity) -> _SchemaNode | None:
    """Return the node of an entity; names may contain dots, so every matching start of the path is followed."""
    kind, path = entity
    stack = [(_SchemaNode(root, ""), path)]
    while stack:
        node, rest = stack.pop()
        for entity_kind, name, there in _entities(node):
            if entity_kind == kind and name == rest:
                return there
        stack.extend((child, rest[len(label) :]) for label, child in _nested_nodes(node) if rest.startswith(label))
    return None


def _entities(node: _SchemaNode) -> Iterator[tuple[str, str, _SchemaNode]]:
    """Yield what can have tags in a schema: kind, end of the path, node."""
    if _kind(node) != "object":
        return
    if not node.is_field:
        yield RECORD, "object", node
    for name, schema in _members(node.schema, "properties"):
        yield FIELD, f"object.{name}", _SchemaNode(schema, join(node.pointer, "properties", name))


def _nested_nodes(node: _SchemaNode) -> Iterator[tuple[str, _SchemaNode]]:
    """Yield the schemas inside a schema, each with its label in a path."""
    schema, pointer, kind = node.schema, node.pointer, _kind(node)
    if kind == "object":
        for name, inner in _members(schema, "properties"):
            yield f"object.{name}.", _SchemaNode(inner, join(pointer, "properties", name), is_field=True)
        for keyword in ("definitions", "$defs"):
            for name, inner in _members(schema, keyword):
                yield f"object.{keyword}.{name}.", _SchemaNode(inner, join(pointer, keyword, name))
    elif kind == "array":
        if isinstance(schema.get("items"), dict):
            yield "array.", _SchemaNode(schema["items"], join(pointer, "items"))
    elif kind == "conditional":
        for keyword in ("if", "then", "else"):
            if isinstance(schema.get(keyword), dict):
                yield f"conditional.{keyword}.", _SchemaNode(schema[keyword], join(pointer, keyword))
    elif kind == "not":
        yield "not.", _SchemaNode(schema["not"], join(pointer, "not"))
    elif kind in _CRITERIA:
        items = [_SchemaNode(item, join(pointer, kind, index)) for index, item in enumerate(schema[kind])]
        yield from _numbered(_CRITERIA[kind], sorted(items, key=_order))
    elif kind == "types":
        yield from _numbered("anyof", sorted(_as_types(node), key=_order))
    elif kind == "parts":
        yield from _numbered("allof", sorted(_as_parts(node), key=_order))


def _numbered(label: str, nodes: Iterable[_SchemaNode]) -> Iterator[tuple[str, _SchemaNode]]:
    for index, node in enumerate(nodes):
        yield f"{label}.{index}.", node


def _kind(node: _SchemaNode) -> str:
    """Return the kind of a schema: a type, a keyword with schemas, several `types`, or `parts` that all apply."""
    if node.kind is not None:
        return node.kind
    if not isinstance(node.schema, dict):
        return "true" if node.schema is True else "false"
    parts = _parts(node.schema)
    return parts[0] if len(parts) == 1 else "parts" if parts else "empty"


def _parts(schema: dict[str, Any]) -> list[str]:
    """Return all kinds of one schema."""
    if "$ref" in schema:
        return ["reference"]
    kinds = [keyword for keyword in _CRITERIA if isinstance(schema.get(keyword), list)]
    kinds += ["conditional"] if isinstance(schema.get("if"), dict) else []
    kinds += ["not"] if isinstance(schema.get("not"), dict) else []
    typed = _typed(schema)
    return kinds + ([typed] if typed else [])


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


def _as_types(node: _SchemaNode) -> list[_SchemaNode]:
    return [node._replace(kind=str(kind), is_field=False) for kind in node.schema["type"]]


def _as_parts(node: _SchemaNode) -> list[_SchemaNode]:
    return [node._replace(kind=kind, is_field=False) for kind in _parts(node.schema)]


def _order(node: _SchemaNode) -> tuple[Any, ...]:
    kind = _kind(node)
    rank = _RANKS.get(kind, _RANKS["combined"])
    schema = node.schema if isinstance(node.schema, dict) else {}
    default = compact(schema["default"]) if "default" in schema else None
    texts = [schema.get("title"), schema.get("description"), default]
    return (rank, *((text is not None, str(text or "")) for text in texts))


def _members(schema: dict[str, Any], keyword: str) -> list[tuple[str, Any]]:
    members = schema.get(keyword)
    return list(members.items()) if isinstance(members, dict) else []


def _labels(before: tuple[Any, ...]) -> list[str]:
    """Return the labels of a chain, outermost first."""
    labels: list[str] = []
    while before:
        before, label = before
        labels.append(label)
    return labels[::-1]
