"""Random instances and an independent validator, to look for counterexamples; shares no code with the engine."""

from __future__ import annotations

import random
from typing import Any

import jsonschema

from tests.formats.json_schema.random_schemas import NAMES, WORDS

DRAFT_7 = jsonschema.Draft7Validator
POOL: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, 3, 5, 7, 12, 19, -1, 0.5, 3.5, 2.25, *WORDS, "a", "aa", "abc", "x", "ax", "Abc", "123", "7-k",
    "abcdefghijkl", [], {}, [1], ["a"], {"k": 1}, [None, None], {"name": 1},
)  # fmt: skip


def validator_of(schema: Any) -> Any:
    """The validator of the `jsonschema` package, without format checks and without network."""
    return jsonschema.validators.validator_for(schema, default=DRAFT_7)(schema)


def is_valid(validator: Any, value: Any) -> bool | None:
    """Whether it is valid; None for schemas that lead nowhere but to themselves."""
    try:
        return bool(validator.is_valid(value))
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - endless references end in a RecursionError, or in a panic of what it meets
        return None


class Values:
    """Random values of a schema: mostly by its keywords, sometimes at random."""

    def __init__(self, schema: Any, chance: random.Random) -> None:
        self._root = schema
        self._chance = chance

    def value(self) -> Any:
        return self._value(self._root, 0)

    def _value(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, dict) or depth > 7 or self._chance.random() < 0.08:
            return self._chance.choice(POOL)
        if "$ref" in schema:
            return self._value(self._target(schema["$ref"]), depth + 1)
        if "const" in schema and self._chance.random() < 0.9:
            return schema["const"]
        if "enum" in schema and self._chance.random() < 0.9:
            return self._chance.choice(schema["enum"])
        for keyword in ("anyOf", "oneOf", "allOf"):
            if keyword in schema and self._chance.random() < 0.9:
                members = [self._value(item, depth + 1) for item in schema[keyword]]
                if keyword == "allOf" and all(isinstance(item, dict) for item in members):
                    return {key: item for member in members for key, item in member.items()}
                return self._chance.choice(members)
        for keyword in ("then", "else"):
            if keyword in schema and self._chance.random() < 0.4:
                return self._value(schema[keyword], depth + 1)
        named = schema.get("type")
        if isinstance(named, list):
            named = self._chance.choice(named)
        if named == "object" or "properties" in schema or "required" in schema:
            return self._object(schema, depth)
        if named == "array" or "items" in schema or "prefixItems" in schema:
            return self._array(schema, depth)
        return self._scalar(schema, named)

    def _target(self, reference: str) -> Any:
        value = self._root
        for token in reference.removeprefix("#").split("/")[1:]:
            value = value[token]
        return value

    def _object(self, schema: dict[str, Any], depth: int) -> Any:
        found: dict[str, Any] = {}
        required = schema.get("required", [])
        for name, held in schema.get("properties", {}).items():
            if name in required or self._chance.random() < (0.5 if depth < 4 else 0.1):
                found[name] = self._value(held, depth + 1)
        for name in required:
            found.setdefault(name, self._chance.choice(POOL))
        extra = schema.get("additionalProperties")
        while extra is not False and self._chance.random() < 0.35:
            name = self._chance.choice((*NAMES, "extra", "x-1", "ne"))
            if name not in found:
                found[name] = self._value(extra, depth + 1) if isinstance(extra, dict) else self._chance.choice(POOL)
        return found

    def _array(self, schema: dict[str, Any], depth: int) -> Any:
        items, prefix = schema.get("items"), schema.get("prefixItems", [])
        if isinstance(items, list):
            prefix, items = items, schema.get("additionalItems")
        length = self._chance.choice((0, 1, 1, 2, 3, 4, 5, schema.get("minItems", 0), schema.get("maxItems", 2)))
        found = []
        for index in range(int(length)):
            if index < len(prefix):
                found.append(self._value(prefix[index], depth + 1))
            elif items is False:
                break
            else:
                found.append(self._value(items, depth + 1) if isinstance(items, dict) else self._chance.choice(POOL))
        return found

    def _scalar(self, schema: dict[str, Any], named: Any) -> Any:
        if named == "string" or "maxLength" in schema or "minLength" in schema:
            length = self._chance.choice((0, 1, 2, 3, 5, 9, 10, schema.get("maxLength", 4), schema.get("minLength", 0)))
            fixed = ("a" * int(length), "aaa", "123", "x", "b", "Abc", "4-k", "ac")
            return self._chance.choice(fixed)
        if named in ("integer", "number"):
            low, high = schema.get("minimum", -6), schema.get("maximum", schema.get("exclusiveMaximum", 25))
            whole = self._chance.randint(int(low), max(int(low), int(high)))
            return (
                whole if named == "integer" or self._chance.random() < 0.5 else whole + self._chance.choice((0.5, 0.25))
            )
        if named == "boolean":
            return self._chance.random() < 0.5
        if named == "null":
            return None
        return self._chance.choice(POOL)


def counterexample(writer: Any, reader: Any, seed: int, tries: int) -> Any:
    """A value that is valid under the writer and not under the reader, as a list of one; [] where none was found."""
    ours, theirs = validator_of(writer), validator_of(reader)
    values = Values(writer, random.Random(seed))
    for _ in range(tries):
        value = values.value()
        if is_valid(ours, value) and is_valid(theirs, value) is False:
            return [value]
    return []
