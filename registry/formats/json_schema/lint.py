"""Advice on a JSON Schema: the schemas that stand in the text itself, each once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from registry.formats.json_schema.model import Model
from registry.formats.json_schema.paths import root_path
from registry.formats.json_tags import tags_in
from registry.formats.lint import Place, mixed_names
from registry.formats.lint_names import looks_personal
from registry.formats.pointer import join

#: keywords any of which says what values are taken
_SAYING: Final = frozenset(
    {"type", "$ref", "$dynamicRef", "$recursiveRef", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if"}
)
_CLOSING: Final = ("additionalProperties", "unevaluatedProperties")
_IN_PLACE: Final = ("allOf", "anyOf", "oneOf", "then", "else")
_MAPS: Final = ("$defs", "definitions")
_MAX_SCHEMAS: Final = 20_000

#: a schema as JSON, its path and pointer, whether what is around it is tagged, and whether it is a part of another
_Spot = tuple[Any, str, str, bool, bool]


def lint_places(model: Model) -> Iterator[Place]:
    """Where the rules aren't followed, outer schemas first."""
    root = model.root
    if isinstance(root, Mapping):
        if "$schema" not in root:
            yield Place("NO_SCHEMA_KEYWORD", "", "")
        if "title" not in root:
            yield Place("NO_TITLE", "", "")
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
                yield Place("OPENNESS_UNSAID", path, pointer)
            for name, held in properties.items():
                here, there = f"{path}.{name}", join(pointer, "properties", name)
                named.append((name, here, there))
                yield from _property(name, held, here, there, tagged)
        stack.extend(reversed(list(_inside(schema, path, pointer, tagged))))
    yield from mixed_names(named)


def _inside(schema: Mapping[str, Any], path: str, pointer: str, tagged: bool) -> Iterator[_Spot]:
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


def _property(name: str, held: Any, path: str, pointer: str, tagged: bool) -> Iterator[Place]:
    said = held if isinstance(held, Mapping) else {}
    values = {"name": name}
    if held is True or (isinstance(held, Mapping) and _SAYING.isdisjoint(held) and "properties" not in held):
        yield Place("NO_TYPE", path, pointer, values)
    if held is not False and not said.get("description") and "$ref" not in said:
        yield Place("FIELD_WITHOUT_DOC", path, pointer, values)
    if looks_personal(name) and not tagged and not tags_in(said):
        yield Place("PERSONAL_WITHOUT_TAG", path, pointer, values)
