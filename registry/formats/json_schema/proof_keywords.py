"""Rules that prove one keyword of the reader from known facts about a value."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from registry.formats.json_schema.keyword_comparison import is_multiple
from registry.formats.json_schema.value_facts import Facts, Schema, item_schema, matches, property_schemas, rest_of

if TYPE_CHECKING:
    from registry.formats.json_schema.proof import Proof


def string_holds(facts: Facts, keyword: str, constraint: Any) -> bool:
    """Return whether the facts imply a length or a pattern; only the same pattern implies a pattern."""
    if keyword == "maxLength":
        return any(value <= constraint for value in facts.values("maxLength"))
    if keyword == "minLength":
        return constraint == 0 or any(value >= constraint for value in facts.values("minLength"))
    return constraint == "" or any(value == constraint for value in facts.values("pattern"))


def number_holds(facts: Facts, keyword: str, limit: int | Decimal) -> bool:
    """Return whether the facts imply a bound or a divisor."""
    if keyword == "multipleOf":
        if any(is_multiple(value, limit) for value in facts.values("multipleOf")):
            return True
        return "number" not in facts.types and is_multiple(1, limit)
    inclusive, exclusive = list(facts.values(_INCLUSIVE[keyword])), list(facts.values(_EXCLUSIVE[keyword]))
    if keyword in ("maximum", "exclusiveMaximum"):
        within = any(value <= limit for value in exclusive)
        return within or any(value <= limit if keyword == "maximum" else value < limit for value in inclusive)
    within = any(value >= limit for value in exclusive)
    return within or any(value >= limit if keyword == "minimum" else value > limit for value in inclusive)


_INCLUSIVE = {"maximum": "maximum", "exclusiveMaximum": "maximum", "minimum": "minimum", "exclusiveMinimum": "minimum"}
_EXCLUSIVE = {
    "maximum": "exclusiveMaximum",
    "exclusiveMaximum": "exclusiveMaximum",
    "minimum": "exclusiveMinimum",
    "exclusiveMinimum": "exclusiveMinimum",
}


def object_holds(proof: Proof, facts: Facts, reader: Mapping[str, Any], keyword: str) -> bool:
    """Return whether the facts imply one of the reader's keywords for objects."""
    constraint: Any = reader[keyword]
    if keyword == "required":
        return set(constraint) <= facts.required()
    if keyword == "minProperties":
        return bool(constraint <= max([0, len(facts.required()), *facts.values("minProperties")]))
    if keyword == "maxProperties":
        return any(value <= constraint for value in facts.values("maxProperties")) or _at_most(facts, constraint)
    if keyword == "properties":
        return all(_property(proof, facts, name, schema) for name, schema in constraint.items())
    if keyword == "patternProperties":
        return all(_pattern(proof, facts, pattern, schema) for pattern, schema in constraint.items())
    if keyword in ("additionalProperties", "unevaluatedProperties"):
        return _rest(proof, facts, reader, constraint)
    if keyword == "propertyNames":
        return _names(proof, facts, constraint)
    if keyword == "dependentRequired":
        return all(_depends(facts, name, set(needed)) for name, needed in constraint.items())
    return all(_depends_on_schema(proof, facts, name, schema) for name, schema in constraint.items())


def array_holds(proof: Proof, facts: Facts, reader: Mapping[str, Any], keyword: str) -> bool:
    """Return whether the facts imply one of the reader's keywords for arrays."""
    constraint = reader[keyword]
    if keyword == "minItems":
        return constraint == 0 or any(value >= constraint for value in facts.values("minItems"))
    if keyword == "maxItems":
        return bool(_longest(facts) <= constraint)
    if keyword == "uniqueItems":
        return (
            constraint is False or any(value is True for value in facts.values("uniqueItems")) or _longest(facts) <= 1
        )
    if keyword == "prefixItems":
        return all(_item(proof, facts, index, schema) for index, schema in enumerate(constraint))
    if keyword in ("items", "unevaluatedItems"):
        first = len(reader.get("prefixItems", ()))
        last = max([first, *(len(value) for value in facts.values("prefixItems"))])
        return all(_item(proof, facts, index, constraint) for index in range(first, last + 1))
    return _contains(proof, facts, reader)


def _applied(facts: Facts, name: str) -> list[Schema]:
    return [schema for item in facts.items for schema in property_schemas(item, name)]


def _never_there(proof: Proof, facts: Facts, name: str) -> bool:
    return proof.facts(_applied(facts, name)).is_false


def _property(proof: Proof, facts: Facts, name: str, schema: Schema) -> bool:
    return proof.descend(_applied(facts, name), schema)


def _pattern(proof: Proof, facts: Facts, pattern: str, schema: Schema) -> bool:
    """Return whether names that match the reader's pattern fit: those that the writer lists, and any others."""
    names = {name for item in facts.items for name in item.get("properties", {}) if matches(pattern, name)}
    if not all(_property(proof, facts, name, schema) for name in names):
        return False
    return any(_others_fit(proof, item, schema, {pattern}, frozenset()) for item in facts.items)


def _rest(proof: Proof, facts: Facts, reader: Mapping[str, Any], schema: Schema) -> bool:
    """Return whether names that the reader doesn't list fit."""
    declared, patterns = reader.get("properties", {}), reader.get("patternProperties", {})
    names = {name for item in facts.items for name in item.get("properties", {}) if name not in declared}
    if not all(
        _property(proof, facts, name, schema)
        for name in names
        if not any(matches(pattern, name) for pattern in patterns)
    ):
        return False
    return (
        schema is True
        or schema == {}
        or any(_others_fit(proof, item, schema, set(), frozenset(patterns)) for item in facts.items)
    )


def _others_fit(
    proof: Proof, item: Mapping[str, Any], schema: Schema, same: set[str], excluded: frozenset[str]
) -> bool:
    """Return whether one fact implies that names which it doesn't list have values that fit.

    The names are known to match the patterns in `same`, and not to match those in `excluded`.
    """
    patterns = item.get("patternProperties", {})
    for pattern in same & patterns.keys():
        if proof.descend([patterns[pattern]], schema):
            return True
    rest = rest_of(item)
    alternatives = [] if same & patterns.keys() else [True if rest is None else rest]
    alternatives += [inner for pattern, inner in patterns.items() if pattern not in excluded]
    return all(proof.descend([alternative], schema) for alternative in alternatives)


def _at_most(facts: Facts, limit: int) -> bool:
    """Return whether a closed object lists at most `limit` properties."""
    return any(
        rest_of(item) is False and not item.get("patternProperties") and len(item.get("properties", {})) <= limit
        for item in facts.items
    )


def _names(proof: Proof, facts: Facts, schema: Schema) -> bool:
    if any(proof.descend([naming, {"type": "string"}], schema) for naming in facts.values("propertyNames")):
        return True
    return any(
        rest_of(item) is False
        and not item.get("patternProperties")
        and all(proof.descend([{"const": name}], schema) for name in item.get("properties", {}))
        for item in facts.items
    )


def _depends(facts: Facts, name: str, needed: set[str]) -> bool:
    implied = set(facts.required())
    for dependencies in facts.values("dependentRequired"):
        implied |= set(dependencies.get(name, ()))
    return needed <= implied


def _depends_on_schema(proof: Proof, facts: Facts, name: str, schema: Schema) -> bool:
    if _never_there(proof, facts, name):
        return True
    inner = [dependencies[name] for dependencies in facts.values("dependentSchemas") if name in dependencies]
    return proof.covers([*facts.items, *inner, _present(name)], schema)


def _present(name: str) -> Schema:
    return {"type": "object", "required": [name]}


def _longest(facts: Facts) -> float:
    """Return the maximum number of items of an array."""
    limits = [float(value) for value in facts.values("maxItems")]
    for item in facts.items:
        if item_schema(item, 10**9) is False:
            prefix = item.get("prefixItems", ())
            limits.append(next((index for index, schema in enumerate(prefix) if schema is False), len(prefix)))
    return min(limits, default=float("inf"))


def _item(proof: Proof, facts: Facts, index: int, schema: Schema) -> bool:
    if index >= _longest(facts):
        return True
    candidates = [item_schema(item, index) for item in facts.items]
    return proof.descend([candidate for candidate in candidates if candidate is not None], schema)


def _contains(proof: Proof, facts: Facts, reader: Mapping[str, Any]) -> bool:
    least, most = reader.get("minContains", 1), reader.get("maxContains")
    contained = reader["contains"]
    has_least, has_most = least == 0, most is None
    for item in facts.items:
        if "contains" not in item:
            continue
        if item.get("minContains", 1) >= least and proof.descend([item["contains"]], contained):
            has_least = True
    return has_least and has_most
