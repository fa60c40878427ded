"""How many schemas a validator may look at for one value: what is shared counts as often as it is reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from registry.formats.json_schema.conjunction import Definitions, Schema

MAX_UNFOLDED: Final = 20_000
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLE: Final = ("not", "if", "then", "else")


def unfolded(schema: Schema) -> int:
    """The most schemas that look at one value, for a bundle in draft 2020-12; MAX_UNFOLDED + 1 at most.

    A reference that leads back to itself without a property or an item between counts as too many.
    """
    definitions = Definitions.of(schema)
    known: dict[int, int] = {}
    for start in (schema, *definitions.schemas.values()):
        _settle(start, definitions, known)
    return min(MAX_UNFOLDED + 1, max(known.values(), default=1))


def _settle(start: Schema, definitions: Definitions, known: dict[int, int]) -> None:
    """Counts a schema and everything that looks at the same value, children first, without recursion."""
    stack: list[tuple[Any, bool]] = [(start, False)]
    around: set[int] = set()
    while stack:
        schema, is_done = stack.pop()
        if not isinstance(schema, dict) or (id(schema) in known and not is_done):
            continue
        children = list(_in_place(schema, definitions))
        if is_done:
            around.discard(id(schema))
            total = 1 + sum(known.get(id(child), 1) for child in children if isinstance(child, dict))
            known[id(schema)] = min(MAX_UNFOLDED + 1, total)
            continue
        if id(schema) in around:
            known[id(schema)] = MAX_UNFOLDED + 1
            continue
        around.add(id(schema))
        stack.append((schema, True))
        stack.extend((child, False) for child in children)


def _in_place(schema: Schema, definitions: Definitions) -> Iterator[Schema]:
    for keyword in _LISTS:
        yield from schema.get(keyword, ())
    for keyword in _SINGLE:
        if keyword in schema:
            yield schema[keyword]
    yield from schema.get("dependentSchemas", {}).values()
    if "$ref" in schema:
        yield definitions.target(schema["$ref"])
