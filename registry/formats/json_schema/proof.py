"""Proofs, keyword by keyword, that a reader accepts every value of a writer; a failed proof doesn't mean the opposite.

Each rule is sound on its own: unknown parts of the writer count as "anything", unknown parts of the reader as
"rejected". A pair that recurs inside itself holds if a property or an item is in between, because values are finite.
The number of steps, and with it the cost, is limited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from registry.formats.json_schema.proof_keywords import array_holds, number_holds, object_holds, string_holds
from registry.formats.json_schema.text import json_equal
from registry.formats.json_schema.value_facts import Definitions, Facts, Schema, facts_of, property_schemas

MAX_STEPS: Final = 30_000
_MAX_NESTING: Final = 55
_MAX_SPLITS: Final = 6
_MAX_VALUES: Final = 2_000
_NONE: Final = 10**9

Check = Callable[[Any, Schema], bool]


class _OutOfSteps(Exception):
    """The proof has too many steps."""


class Proof:
    """One attempt for a reader's and a writer's bundle, both in draft 2020-12.

    `takes(value, schema)` says whether a schema of the reader accepts a value, `gives` whether one of the writer does.
    """

    def __init__(self, reader: Schema, writer: Schema, takes: Check, gives: Check) -> None:
        self._reader, self._writer = reader, writer
        self.readers, self.writers = Definitions.of(reader), Definitions.of(writer)
        self._takes, self._gives = takes, gives
        self._steps = 0
        self._nesting = 0
        self._descents = 0
        self._lowest = _NONE
        self._open: dict[tuple[Any, ...], tuple[int, int]] = {}
        self._alive: list[Schema] = []
        self._known: dict[tuple[Any, ...], bool] = {}
        self._member_ids: dict[int, frozenset[int]] = {}

    def holds(self) -> bool:
        """Return whether the proof was found."""
        try:
            return self.covers([self._writer], self._reader)
        except (_OutOfSteps, RecursionError):
            return False

    def facts(self, schemas: list[Schema]) -> Facts:
        """Return the facts of writer schemas; the schemas are kept alive because they are identified by id."""
        self._alive.extend(schemas)
        return facts_of(schemas, self.writers)

    def descend(self, schemas: list[Schema], reader: Schema) -> bool:
        """Like `covers`, for a part of the value: a property or an item."""
        self._descents += 1
        try:
            return self.covers(schemas, reader)
        finally:
            self._descents -= 1

    def covers(self, schemas: list[Schema], reader: Schema, splits: int = 0) -> bool:
        """Return whether every value that is valid under all of the writer's schemas is valid under the reader's."""
        if reader is True or reader == {}:
            return True
        facts = self.facts(schemas)
        if facts.is_false or not facts.types:
            return True
        key = (tuple(sorted(id(item) for item in facts.items)), id(reader) if isinstance(reader, dict) else reader)
        if key in self._known:
            return self._known[key]
        if key in self._open:
            descents, level = self._open[key]
            self._lowest = min(self._lowest, level)
            return self._descents > descents
        return self._prove(key, facts, reader, splits)

    def _prove(self, key: tuple[Any, ...], facts: Facts, reader: Schema, splits: int) -> bool:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise _OutOfSteps
        if self._nesting > _MAX_NESTING:
            return False
        level = len(self._open)
        self._open[key] = (self._descents, level)
        self._nesting += 1
        outer, self._lowest = self._lowest, _NONE
        try:
            is_proved = (
                self._finite(facts, reader) or self._all_keywords(facts, reader) or self._split(facts, reader, splits)
            )
        finally:
            del self._open[key]
            self._nesting -= 1
        # A result that depends on no open pair is final.
        if self._lowest >= level:
            self._known[key] = is_proved
            self._lowest = outer
        else:
            self._lowest = min(self._lowest, outer)
        return is_proved

    def _finite(self, facts: Facts, reader: Schema) -> bool:
        values = facts.finite()
        if values is None or len(values) > _MAX_VALUES:
            return False
        return all(
            self._takes(value, reader) or not all(self._gives(value, item) for item in facts.items) for value in values
        )

    def _all_keywords(self, facts: Facts, reader: Schema) -> bool:
        if not isinstance(reader, dict):
            return False
        return all(self._keyword(facts, reader, keyword) for keyword in reader if keyword not in _IGNORED)

    def _keyword(self, facts: Facts, reader: Mapping[str, Any], keyword: str) -> bool:
        constraint = reader[keyword]
        if keyword in _IN_PLACE:
            return _IN_PLACE[keyword](self, facts, reader)
        if keyword == "type":
            names = {constraint} if isinstance(constraint, str) else set(constraint)
            return facts.types <= (names | {"integer"} if "number" in names else names)
        kind = _KEYWORD_KIND.get(keyword)
        if kind is None:
            return False
        if not facts.types & _TYPES_OF_KIND[kind]:
            return True
        if kind == "string":
            return string_holds(facts, keyword, constraint)
        if kind == "number":
            return number_holds(facts, keyword, constraint)
        return (object_holds if kind == "object" else array_holds)(self, facts, reader, keyword)

    def _split(self, facts: Facts, reader: Schema, splits: int) -> bool:
        """Prove each alternative of the writer on its own."""
        if splits >= _MAX_SPLITS:
            return False
        alternatives = self._alternatives(facts)
        if not alternatives:
            return False
        return all(self.covers([*facts.items, extra], reader, splits + 1) for extra in alternatives)

    def _alternatives(self, facts: Facts) -> list[Schema]:
        """Return schemas at least one of which is valid for every value, from the first fact with several."""
        fact_ids = {id(item) for item in facts.items}
        for item in facts.items:
            for keyword in ("anyOf", "oneOf"):
                members = item.get(keyword)
                if members and fact_ids.isdisjoint(self._ids_of(members)):
                    return list(members)
            if "if" in item and not any(id(item.get(key)) in fact_ids for key in ("then", "else")):
                return [{"allOf": [item["if"], item.get("then", True)]}, item.get("else", True)]
        types = facts.types
        if "number" in types:
            types = types - {"integer"}
        if len(types) > 1:
            return [_ONLY[name] for name in sorted(types)]
        return []

    def _ids_of(self, members: list[Schema]) -> frozenset[int]:
        """Return the ids of the members of a union; cached, because each member is compared with all of them."""
        if id(members) not in self._member_ids:
            self._member_ids[id(members)] = frozenset(map(id, members))
        return self._member_ids[id(members)]

    def disjoint(self, schemas: list[Schema], other: Schema) -> bool:
        """Return whether no value is valid under both the writer's schemas and the reader's, by type or constant."""
        facts, theirs = self.facts(schemas), facts_of([other], self.readers)
        if facts.is_false or theirs.is_false:
            return True
        common = facts.types & theirs.types
        if not common:
            return True
        values = facts.finite()
        if values is not None and len(values) <= _MAX_VALUES:
            return not any(self._takes(value, other) for value in values)
        if common == {"object"}:
            return self._properties_disjoint(facts, theirs)
        return False

    def _properties_disjoint(self, facts: Facts, theirs: Facts) -> bool:
        """Return whether both objects require a property for which no value fits both."""
        if self._nesting > _MAX_NESTING:
            return False
        self._nesting += 1
        try:
            for name in facts.required() & theirs.required():
                ours = [schema for item in facts.items for schema in property_schemas(item, name)]
                others = [schema for item in theirs.items for schema in property_schemas(item, name)]
                if any(self.disjoint(ours, other) for other in others):
                    return True
            return False
        finally:
            self._nesting -= 1


def _reference(proof: Proof, facts: Facts, reader: Mapping[str, Any]) -> bool:
    target = proof.readers.target(reader["$ref"])
    return target is not None and proof.covers(list(facts.items), target)


def _all_of(proof: Proof, facts: Facts, reader: Mapping[str, Any]) -> bool:
    return all(proof.covers(list(facts.items), member) for member in reader["allOf"])


def _any_of(proof: Proof, facts: Facts, reader: Mapping[str, Any]) -> bool:
    return any(proof.covers(list(facts.items), member) for member in reader["anyOf"])


def _one_of(proof: Proof, facts: Facts, reader: Mapping[str, Any]) -> bool:
    members = reader["oneOf"]
    for position, member in enumerate(members):
        if proof.covers(list(facts.items), member) and all(
            proof.disjoint(list(facts.items), other) for at, other in enumerate(members) if at != position
        ):
            return True
    return _same_text(proof, facts, reader, "oneOf")


def _not(proof: Proof, facts: Facts, reader: Mapping[str, Any]) -> bool:
    return proof.disjoint(list(facts.items), reader["not"]) or _same_text(proof, facts, reader, "not")


def _condition(proof: Proof, facts: Facts, reader: Mapping[str, Any]) -> bool:
    ours, then, otherwise = list(facts.items), reader.get("then", True), reader.get("else", True)
    if proof.covers(ours, then) and proof.covers(ours, otherwise):
        return True
    if proof.covers(ours, then) and proof.covers(ours, reader["if"]):
        return True
    if proof.covers(ours, otherwise) and proof.disjoint(ours, reader["if"]):
        return True
    return any(
        _is_closed_text(item["if"])
        and json_equal(item["if"], reader["if"])
        and proof.covers([*ours, item.get("then", True)], then)
        and proof.covers([*ours, item.get("else", True)], otherwise)
        for item in facts.items
        if "if" in item
    )


def _listed(proof: Proof, facts: Facts, reader: Mapping[str, Any]) -> bool:
    """Handle an enum or a constant of the reader; a writer with listed values was checked already."""
    return facts.types == {"null"} and None in reader.get("enum", [reader.get("const", 0)])


def _same_text(proof: Proof, facts: Facts, reader: Mapping[str, Any], keyword: str) -> bool:
    """Return whether the writer has exactly the same constraint, without references."""
    constraint = reader[keyword]
    return _is_closed_text(constraint) and any(json_equal(value, constraint) for value in facts.values(keyword))


def _is_closed_text(schema: Schema) -> bool:
    """Return whether a schema has no references, so that equal text means equal schemas."""
    todo = [schema]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            if "$ref" in item:
                return False
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
    return True


_ONLY: Final[Mapping[str, Schema]] = {
    name: {"type": name} for name in ("null", "boolean", "integer", "number", "string", "array", "object")
}
_IGNORED: Final = frozenset({"$defs", "then", "else", "minContains", "maxContains", "$schema"})
_IN_PLACE: Final[Mapping[str, Callable[[Proof, Facts, Mapping[str, Any]], bool]]] = {
    "$ref": _reference,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _condition,
    "enum": _listed,
    "const": _listed,
}
_KEYWORD_KIND: Final[Mapping[str, str]] = {
    **dict.fromkeys(("minLength", "maxLength", "pattern"), "string"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
    **dict.fromkeys(
        ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "unevaluatedItems"), "array"
    ),
    **dict.fromkeys(
        (
            "properties", "patternProperties", "additionalProperties", "required", "minProperties", "maxProperties",
            "propertyNames", "dependentRequired", "dependentSchemas", "unevaluatedProperties",
        ),
        "object",
    ),
}  # fmt: skip
_TYPES_OF_KIND: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset({"string"}),
    "number": frozenset({"number", "integer"}),
    "array": frozenset({"array"}),
    "object": frozenset({"object"}),
}
