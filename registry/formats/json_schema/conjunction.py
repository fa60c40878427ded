"""What is known of a value that is valid under a schema: a list of plain keyword objects that all hold.

`allOf` and `$ref` are opened; alternatives (`anyOf`, `oneOf`, `if`, a list of types) stay closed until they are split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from registry.formats.json_schema.content import matches

TYPES: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_MAX_FACTS: Final = 60
Schema = Any


@dataclass(frozen=True, slots=True)
class Definitions:
    """The definitions of a bundle in draft 2020-12."""

    schemas: Mapping[str, Schema]

    @classmethod
    def of(cls, bundle_value: Schema) -> Definitions:
        """Those of a bundle's document."""
        held = bundle_value.get("$defs", {}) if isinstance(bundle_value, dict) else {}
        return cls(held)

    def target(self, reference: str) -> Schema | None:
        """What a reference of the bundle leads to, None for a meta-schema."""
        return self.schemas.get(reference.removeprefix("#/$defs/")) if reference.startswith("#/$defs/") else None


@dataclass(frozen=True, slots=True)
class Facts:
    """Keyword objects that all hold of a value; `is_false` if no value can be meant."""

    items: tuple[Mapping[str, Any], ...]
    is_false: bool = False

    @property
    def types(self) -> frozenset[str]:
        """The types that the value may have; a number that is whole counts as integer and number."""
        found = TYPES
        for item in self.items:
            named = item.get("type")
            if named is not None:
                names = {named} if isinstance(named, str) else set(named)
                if "number" in names:
                    names.add("integer")
                found = found & names
        return found

    def values(self, keyword: str) -> Iterator[Any]:
        """The values that a keyword has among the facts."""
        for item in self.items:
            if keyword in item:
                yield item[keyword]

    def required(self) -> frozenset[str]:
        """The names that must be there."""
        return frozenset(name for names in self.values("required") if isinstance(names, list) for name in names)

    def finite(self) -> list[Any] | None:
        """The only values that are possible, where an enum or a constant lists them."""
        for item in self.items:
            if "const" in item:
                return [item["const"]]
        for item in self.items:
            if "enum" in item:
                return list(item["enum"])
        return None


def facts_of(schemas: list[Schema], definitions: Definitions) -> Facts:
    """The facts of a value that is valid under all of some schemas."""
    items: list[Mapping[str, Any]] = []
    todo, seen = list(reversed(schemas)), set[int]()
    while todo and len(items) < _MAX_FACTS:
        schema = todo.pop()
        if schema is False:
            return Facts((), is_false=True)
        if not isinstance(schema, dict) or not schema or id(schema) in seen:
            continue
        seen.add(id(schema))
        items.append(schema)
        inner = list(schema.get("allOf", ()))
        if "$ref" in schema:
            target = definitions.target(schema["$ref"])
            if target is not None:
                inner.append(target)
        todo.extend(reversed(inner))
    return Facts(tuple(items))


def property_schemas(item: Mapping[str, Any], name: str) -> list[Schema]:
    """The schemas of one keyword object that the value of a property must fit."""
    found = []
    declared = item.get("properties", {})
    if name in declared:
        found.append(declared[name])
    found.extend(schema for pattern, schema in item.get("patternProperties", {}).items() if matches(pattern, name))
    if not found:
        rest = rest_of(item)
        if rest is not None:
            found.append(rest)
    return found


def rest_of(item: Mapping[str, Any]) -> Schema | None:
    """The schema of properties that a keyword object doesn't list, None where it says nothing."""
    if "additionalProperties" in item:
        return item["additionalProperties"]
    if "unevaluatedProperties" in item and not _IN_PLACE & item.keys():
        return item["unevaluatedProperties"]
    return None


def item_schema(item: Mapping[str, Any], index: int) -> Schema | None:
    """The schema of one keyword object that the item at an index must fit, None where it says nothing."""
    prefix = item.get("prefixItems", ())
    if index < len(prefix):
        return prefix[index]
    if "items" in item:
        return item["items"]
    if "unevaluatedItems" in item and not (_IN_PLACE | {"contains"}) & item.keys():
        return item["unevaluatedItems"]
    return None


_IN_PLACE: Final = frozenset({"allOf", "anyOf", "oneOf", "if", "not", "$ref", "dependentSchemas"})
