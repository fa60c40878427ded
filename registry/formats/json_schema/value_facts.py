"""Facts about the valid values of a schema: content models, conjunctions, variants; and the cost of examining them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import jsonschema_rs

from registry.formats.json_schema.drafts import NEWEST_DRAFT, is_schema, subschemas
from registry.formats.json_schema.shapes import Shape
from registry.formats.json_schema.validators import PATTERN_OPTIONS


def rest_keyword(shape: Shape) -> str:
    """Return the keyword for the properties or items that aren't listed."""
    if shape.kind == "object":
        return "additionalProperties"
    return "items" if shape.draft.number >= 2020 else "additionalItems"


def permits_rest(shape: Shape) -> bool:
    """Return whether any unlisted property or item is allowed."""
    keyword = rest_keyword(shape)
    if keyword == "additionalItems" and shape.draft.number == 2019 and shape.schema.get("items") is False:
        return False
    return shape.schema.get(keyword) is not False


def rest_schema(shape: Shape) -> Shape | None:
    """Return the schema of unlisted properties or items; None if they have none."""
    keyword = rest_keyword(shape)
    rest = shape.schema.get(keyword)
    if not isinstance(rest, dict) or (keyword == "items" and not prefix(shape)):
        return None
    return shape.inner(keyword)


def prefix_keyword(shape: Shape) -> str:
    """Return the keyword for the tuple of an array."""
    return "prefixItems" if shape.draft.number >= 2020 else "items"


def prefix(shape: Shape) -> list[object]:
    """Return the tuple of an array; empty if it has none."""
    items = shape.schema.get(prefix_keyword(shape))
    return items if isinstance(items, list) else []


def all_items(shape: Shape) -> Shape | None:
    """Return the schema of every item; None if the array has a tuple."""
    items = shape.schema.get("items")
    if not is_schema(items) or (shape.draft.number >= 2020 and prefix(shape)):
        return None
    if shape.draft.number >= 2019 and isinstance(items, bool):
        return None
    return shape.inner("items")


def unevaluated(shape: Shape) -> Shape | None:
    """Return the schema of parts that no other keyword evaluates; only newer drafts have one."""
    keyword = "unevaluatedProperties" if shape.kind == "object" else "unevaluatedItems"
    if shape.draft.number < 2019 or not is_schema(shape.schema.get(keyword)):
        return None
    return shape.inner(keyword)


def is_open(shape: Shape) -> bool:
    """Return whether any unlisted property or item is allowed with any value."""
    if not permits_rest(shape) or rest_schema(shape) is not None:
        return False
    if shape.kind == "object" and shape.schema.get("patternProperties"):
        return False
    left = unevaluated(shape)
    return left is None or left.kind in ("empty", "true")


def covering(shape: Shape, name: str | None = None) -> Shape | None:
    """Return the schema for an unlisted property or item; None in a closed or an open model."""
    patterns = shape.schema.get("patternProperties") if name is not None else None
    if isinstance(patterns, dict):
        for pattern in patterns:
            if matches(pattern, name or ""):
                return shape.inner("patternProperties", pattern)
    rest = rest_schema(shape)
    if rest is not None:
        return rest
    left = unevaluated(shape)
    if permits_rest(shape) and left is not None and left.kind not in ("false", "empty", "true"):
        return left
    return None


def matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches in a text, with the bounded engine; False for an unsupported pattern."""
    try:
        return _matcher(pattern).is_valid(text)
    except ValueError:
        return False


def matches_whole(pattern: str, text: str) -> bool | None:
    """Return whether a pattern matches the whole text, with the bounded engine; None for an unsupported pattern."""
    try:
        _matcher(pattern)  # alone, too: brackets that only the wrapping closes are an error
        return _matcher(rf"\A(?:{pattern})\z").is_valid(text)
    except ValueError:
        return None


@lru_cache(maxsize=4_000)
def _matcher(pattern: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=PATTERN_OPTIONS, offline=True)


TYPES: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_MAX_FACTS: Final = 60
Schema = Any


@dataclass(frozen=True, slots=True)
class Definitions:
    """The definitions of a bundle in draft 2020-12."""

    schemas: Mapping[str, Schema]

    @classmethod
    def of(cls, bundle_value: Schema) -> Definitions:
        """Return the definitions of a bundle's document."""
        definitions = bundle_value.get("$defs", {}) if isinstance(bundle_value, dict) else {}
        return cls(definitions)

    def target(self, reference: str) -> Schema | None:
        """Return the target of a reference in the bundle; None for a meta-schema."""
        return self.schemas.get(reference.removeprefix("#/$defs/")) if reference.startswith("#/$defs/") else None


@dataclass(frozen=True, slots=True)
class Facts:
    """Keyword objects that all apply to a value; `is_false` if no value is possible."""

    items: tuple[Mapping[str, Any], ...]
    is_false: bool = False

    @property
    def types(self) -> frozenset[str]:
        """The types that the value may have; `number` includes `integer`."""
        allowed = TYPES
        for item in self.items:
            named = item.get("type")
            if named is not None:
                names = {named} if isinstance(named, str) else set(named)
                if "number" in names:
                    names.add("integer")
                allowed = allowed & names
        return allowed

    def values(self, keyword: str) -> Iterator[Any]:
        """Yield the values of a keyword in all facts."""
        for item in self.items:
            if keyword in item:
                yield item[keyword]

    def required(self) -> frozenset[str]:
        """Return the required names."""
        return frozenset(name for names in self.values("required") if isinstance(names, list) for name in names)

    def finite(self) -> list[Any] | None:
        """Return all possible values if an enum or a constant lists them; otherwise None."""
        for item in self.items:
            if "const" in item:
                return [item["const"]]
        for item in self.items:
            if "enum" in item:
                return list(item["enum"])
        return None


def facts_of(schemas: list[Schema], definitions: Definitions) -> Facts:
    """Return the facts about a value that is valid under all of the schemas."""
    items: list[Mapping[str, Any]] = []
    todo, visited = list(reversed(schemas)), set[int]()
    while todo and len(items) < _MAX_FACTS:
        schema = todo.pop()
        if schema is False:
            return Facts((), is_false=True)
        if not isinstance(schema, dict) or not schema or id(schema) in visited:
            continue
        visited.add(id(schema))
        items.append(schema)
        inner = list(schema.get("allOf", ()))
        if "$ref" in schema:
            target = definitions.target(schema["$ref"])
            if target is not None:
                inner.append(target)
        todo.extend(reversed(inner))
    return Facts(tuple(items))


def property_schemas(item: Mapping[str, Any], name: str) -> list[Schema]:
    """Return the schemas in one keyword object that apply to the value of a property."""
    schemas = []
    declared = item.get("properties", {})
    if name in declared:
        schemas.append(declared[name])
    schemas.extend(schema for pattern, schema in item.get("patternProperties", {}).items() if matches(pattern, name))
    if not schemas:
        rest = rest_of(item)
        if rest is not None:
            schemas.append(rest)
    return schemas


def rest_of(item: Mapping[str, Any]) -> Schema | None:
    """Return the schema for properties that a keyword object doesn't list; None if it has none."""
    if "additionalProperties" in item:
        return item["additionalProperties"]
    if "unevaluatedProperties" in item and not _IN_PLACE & item.keys():
        return item["unevaluatedProperties"]
    return None


def item_schema(item: Mapping[str, Any], index: int) -> Schema | None:
    """Return the schema in one keyword object that applies to the item at an index; None if it has none."""
    prefix = item.get("prefixItems", ())
    if index < len(prefix):
        return prefix[index]
    if "items" in item:
        return item["items"]
    if "unevaluatedItems" in item and not (_IN_PLACE | {"contains"}) & item.keys():
        return item["unevaluatedItems"]
    return None


_IN_PLACE: Final = frozenset({"allOf", "anyOf", "oneOf", "if", "not", "$ref", "dependentSchemas"})


MAX_VARIANTS: Final = 16
_MAX_VIEWS: Final = 40
_IN_PLACE_LISTS: Final = ("allOf", "anyOf", "oneOf")
_VARIANT_KEYWORDS: Final = ("not", "if", "then", "else")


def variants(schemas: list[Schema], definitions: Definitions) -> list[Facts]:
    """Return facts for values valid under all schemas, one for each choice of alternatives, at most MAX_VARIANTS."""
    combinations: list[Facts] = []
    todo: list[tuple[list[Schema], frozenset[tuple[int, str]]]] = [(schemas, frozenset())]
    steps = 0
    while todo and len(combinations) < MAX_VARIANTS and steps < MAX_VARIANTS * 8:
        steps += 1
        conjuncts, conditions = todo.pop()
        facts = facts_of(conjuncts, definitions)
        if facts.is_false or not facts.types:
            continue
        chosen = set(conditions)
        options = _open_choice(facts, chosen)
        if options is None:
            combinations.append(facts)
        else:
            todo.extend(([*conjuncts, *option], frozenset(chosen)) for option in reversed(options[:MAX_VARIANTS]))
    return combinations


def _open_choice(facts: Facts, chosen: set[tuple[int, str]]) -> list[list[Schema]] | None:
    """Return the options of the first alternative that isn't chosen yet, and mark it as chosen."""
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
    """Return every keyword object that may apply to the same value as the schemas, whatever is chosen."""
    objects: dict[int, Mapping[str, Any]] = {}
    todo = list(reversed(schemas))
    while todo and len(objects) < _MAX_VIEWS:
        schema = todo.pop()
        if not isinstance(schema, dict) or id(schema) in objects:
            continue
        objects[id(schema)] = schema
        inner: list[Schema] = []
        for keyword in _IN_PLACE_LISTS:
            inner.extend(schema.get(keyword, ()))
        inner.extend(schema[keyword] for keyword in _VARIANT_KEYWORDS if keyword in schema)
        inner.extend(schema.get("dependentSchemas", {}).values())
        if "$ref" in schema:
            inner.append(definitions.target(schema["$ref"]))
        todo.extend(reversed(inner))
    return list(objects.values())


MAX_UNFOLDED: Final = 20_000
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLE: Final = ("not", "if", "then", "else")


def unfolded(schema: Schema) -> int:
    """Return the maximum number of schemas that apply to one value, in draft 2020-12; at most MAX_UNFOLDED + 1.

    A reference that leads back to itself without a property or an item in between counts as too many.
    """
    definitions = Definitions.of(schema)
    counts: dict[int, int] = {}
    for start in (schema, *definitions.schemas.values()):
        _settle(start, definitions, counts)
    return min(MAX_UNFOLDED + 1, max(counts.values(), default=1))


def _settle(start: Schema, definitions: Definitions, counts: dict[int, int]) -> None:
    """Count a schema and everything that applies to the same value, children first, without recursion."""
    stack: list[tuple[Any, bool]] = [(start, False)]
    around: set[int] = set()
    while stack:
        schema, is_done = stack.pop()
        if not isinstance(schema, dict) or (id(schema) in counts and not is_done):
            continue
        children = list(_in_place(schema, definitions))
        if is_done:
            around.discard(id(schema))
            total = 1 + sum(counts.get(id(child), 1) for child in children if isinstance(child, dict))
            counts[id(schema)] = min(MAX_UNFOLDED + 1, total)
            continue
        if id(schema) in around:
            counts[id(schema)] = MAX_UNFOLDED + 1
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


DEFAULT_COST_LIMIT: Final = 150_000
MAX_COST: Final = 10**12
_PRODUCT: Final = 11
_ONE_OF: Final = 10
_PROPERTY_POWER: Final = 5
_MAX_NESTING: Final = 100
_UNKNOWN: Final = 1_000


def cost_of(schema: Schema) -> int:
    """Return the estimate for a bundle in draft 2020-12, at most MAX_COST."""
    return _Estimate(Definitions.of(schema)).total(schema)


class _Estimate:
    """A walk over a schema that counts shared alternatives once."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._known: dict[int, int] = {}

    def total(self, schema: Schema) -> int:
        """Return the sum over all schema objects; deeper ones count more."""
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
        """Return the number of alternatives of each part of a schema object; they multiply."""
        factors: list[int] = []
        for keyword in ("anyOf", "oneOf"):
            members = schema.get(keyword)
            if members:
                factors.append(sum(self._alternatives(member, depth + 1) for member in members))
        factors.extend(self._alternatives(member, depth + 1) for member in schema.get("allOf", ()))
        if "$ref" in schema:
            factors.append(self._alternatives(self._definitions.target(schema["$ref"]), depth + 1))
        if "if" in schema:
            factors.append(3)
        if isinstance(schema.get("not"), dict):
            factors.append(1 + len(schema["not"]))
        factors.extend(
            [2] * min(64, len(schema.get("dependentRequired", {})) + len(schema.get("dependentSchemas", {})))
        )
        if isinstance(schema.get("type"), list):
            factors.append(len(schema["type"]))
        return factors or [1]
