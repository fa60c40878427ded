"""What comparing a schema may cost, estimated from its text alone, erring on the high side.

A unit is about a microsecond of containment checking, measured: a product of combinations costs the square of its
alternatives, an object costs about the fifth power of its properties.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from registry.formats.json_schema.conjunction import Definitions, Schema
from registry.formats.json_schema.drafts import NEWEST_DRAFT, subschemas

DEFAULT_COST_LIMIT: Final = 150_000
MAX_COST: Final = 10**12
_PRODUCT: Final = 11
_ONE_OF: Final = 10
_PROPERTY_POWER: Final = 5
_MAX_NESTING: Final = 100
_UNKNOWN: Final = 1_000


def cost_of(schema: Schema) -> int:
    """The estimate for a bundle in draft 2020-12, at most MAX_COST."""
    return _Estimate(Definitions.of(schema)).total(schema)


class _Estimate:
    """Walks a schema once; alternatives of what is shared are counted once and used again."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._known: dict[int, int] = {}

    def total(self, schema: Schema) -> int:
        """What all schema objects add, deeper ones more."""
        total = 0
        todo: list[tuple[Schema, int]] = [(schema, 0)]
        while todo and total < MAX_COST:
            item, depth = todo.pop()
            if isinstance(item, dict):
                total += (5 + self._own(item)) * (1 + depth)
                todo.extend((child, depth + 1) for _, child in subschemas(item, NEWEST_DRAFT.number))
        return min(MAX_COST, total)

    def _own(self, schema: Mapping[str, Any]) -> int:
        factors = self._factors(schema, 0)
        alternatives = self._alternatives(schema, 0)
        weight = _PRODUCT if sum(factor > 1 for factor in factors) > 1 else _ONE_OF if "oneOf" in schema else 1
        properties = len(schema.get("properties", {})) + len(schema.get("patternProperties", {}))
        return min(MAX_COST, alternatives**2 * weight + int((properties / 20) ** _PROPERTY_POWER * 25_000))

    def _alternatives(self, schema: Schema, depth: int) -> int:
        if not isinstance(schema, dict):
            return 1
        if depth > _MAX_NESTING:
            return _UNKNOWN
        if id(schema) not in self._known:
            self._known[id(schema)] = _UNKNOWN
            product = 1
            for factor in self._factors(schema, depth):
                product = min(MAX_COST, product * factor)
            self._known[id(schema)] = product
        return self._known[id(schema)]

    def _factors(self, schema: Mapping[str, Any], depth: int) -> list[int]:
        """How many alternatives each part of a schema object has; they multiply."""
        found: list[int] = []
        for keyword in ("anyOf", "oneOf"):
            members = schema.get(keyword)
            if members:
                found.append(sum(self._alternatives(member, depth + 1) for member in members))
        found.extend(self._alternatives(member, depth + 1) for member in schema.get("allOf", ()))
        if "$ref" in schema:
            found.append(self._alternatives(self._definitions.target(schema["$ref"]), depth + 1))
        if "if" in schema:
            found.append(3)
        if isinstance(schema.get("not"), dict):
            found.append(1 + len(schema["not"]))
        found.extend([2] * min(64, len(schema.get("dependentRequired", {})) + len(schema.get("dependentSchemas", {}))))
        if isinstance(schema.get("type"), list):
            found.append(len(schema["type"]))
        return found or [1]
