"""The ways in which a value can be valid (one choice of every alternative), and the keyword objects that meet it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from registry.formats.json_schema.conjunction import Definitions, Facts, Schema, facts_of

MAX_VARIANTS: Final = 16
_MAX_VIEWS: Final = 40
_IN_PLACE_LISTS: Final = ("allOf", "anyOf", "oneOf")
_IN_PLACE: Final = ("not", "if", "then", "else")


def variants(schemas: list[Schema], definitions: Definitions) -> list[Facts]:
    """Facts of values valid under all of the schemas, one per choice of alternatives, at most MAX_VARIANTS."""
    found: list[Facts] = []
    todo: list[tuple[list[Schema], frozenset[tuple[int, str]]]] = [(schemas, frozenset())]
    steps = 0
    while todo and len(found) < MAX_VARIANTS and steps < MAX_VARIANTS * 8:
        steps += 1
        held, conditions = todo.pop()
        facts = facts_of(held, definitions)
        if facts.is_false or not facts.types:
            continue
        chosen = set(conditions)
        options = _open_choice(facts, chosen)
        if options is None:
            found.append(facts)
        else:
            todo.extend(([*held, *option], frozenset(chosen)) for option in reversed(options[:MAX_VARIANTS]))
    return found


def _open_choice(facts: Facts, chosen: set[tuple[int, str]]) -> list[list[Schema]] | None:
    """The options of the first alternative that isn't chosen yet; notes it as chosen."""
    for item in facts.items:
        for keyword in ("anyOf", "oneOf", "if"):
            if keyword not in item or (id(item), keyword) in chosen:
                continue
            chosen.add((id(item), keyword))
            if keyword == "if":
                return [[item["if"], item.get("then", True)], [item.get("else", True)]]
            return [[member] for member in item[keyword]]
    return None


def views(schemas: list[Schema], definitions: Definitions) -> list[Mapping[str, Any]]:
    """Every keyword object that looks at the same value as the schemas, whatever is chosen."""
    found: dict[int, Mapping[str, Any]] = {}
    todo = list(reversed(schemas))
    while todo and len(found) < _MAX_VIEWS:
        schema = todo.pop()
        if not isinstance(schema, dict) or id(schema) in found:
            continue
        found[id(schema)] = schema
        inner: list[Schema] = []
        for keyword in _IN_PLACE_LISTS:
            inner.extend(schema.get(keyword, ()))
        inner.extend(schema[keyword] for keyword in _IN_PLACE if keyword in schema)
        inner.extend(schema.get("dependentSchemas", {}).values())
        if "$ref" in schema:
            inner.append(definitions.target(schema["$ref"]))
        todo.extend(reversed(inner))
    return list(found.values())
