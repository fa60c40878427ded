"""Random pairs of JSON Schemas by a seed, random instances, and an independent validator to look for counterexamples."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import jsonschema

DRAFTS = {
    4: "http://json-schema.org/draft-04/schema#",
    6: "http://json-schema.org/draft-06/schema#",
    7: "http://json-schema.org/draft-07/schema#",
    2019: "https://json-schema.org/draft/2019-09/schema",
    2020: "https://json-schema.org/draft/2020-12/schema",
}
NAMES = ("id", "name", "price", "tags", "city", "note")
PATTERNS = ("^a+$", "^[0-9]{3}$", "x", "^(a|b)c?", "^[A-Z][a-z]*$", r"^\d+-\w+$")
NAME_PATTERNS = ("^x-", "^n", "e$")
WORDS = ("red", "green", "blue", "n/a", "")
TYPES = ("string", "integer", "number", "boolean", "null", "object", "array")


class Maker:
    """Makes schemas of one draft."""

    def __init__(self, chance: random.Random, draft: int = 7) -> None:
        self.chance = chance
        self.draft = draft
        self.definitions: dict[str, Any] = {}

    def document(self) -> Any:
        if self.chance.random() < 0.3:
            for name in ("A", "B")[: self.chance.randint(1, 2)]:
                self.definitions[name] = True if self.draft > 4 else {}
                self.definitions[name] = self.schema(2)
        root = self.schema(0) if self.chance.random() < 0.1 else self.object(0)
        if not isinstance(root, dict):
            root = {"type": "object"}
        if self.definitions:
            root = {**root, "definitions": copy.deepcopy(self.definitions)}
        return {"$schema": DRAFTS[self.draft], **root} if self.draft != 7 or self.chance.random() < 0.3 else root

    def schema(self, depth: int) -> Any:
        roll = self.chance.random()
        if roll < 0.03 and self.draft > 4:
            return self.chance.random() < 0.7
        if roll < 0.06:
            return {}
        if roll < 0.11 and self.definitions:
            return {"$ref": f"#/definitions/{self.chance.choice(sorted(self.definitions))}"}
        if roll < 0.13 and depth:
            return {"$ref": "#"}
        if roll < 0.25 and depth < 4:
            return self.combination(depth)
        if roll < 0.31:
            return self.values()
        if roll < 0.36:
            return {"type": sorted(self.chance.sample(TYPES, self.chance.randint(1, 3)))}
        return self.typed(depth)

    def typed(self, depth: int) -> Any:
        kinds: list[Callable[[int], Any]] = [self.string, self.number, self.integer, self.plain]
        if depth < 4:
            kinds += [self.object, self.array]
        return self.chance.choice(kinds)(depth)

    def plain(self, depth: int) -> Any:
        return {"type": self.chance.choice(("boolean", "null"))}

    def values(self) -> Any:
        pool: list[Any] = [*WORDS, 1, 2, 3.5, True, None, {"k": 1}, [1]]
        if self.chance.random() < 0.3 and self.draft > 4:
            return {"const": self.chance.choice(pool)}
        members = self.chance.sample(pool, self.chance.randint(1, 4))
        return (
            {"enum": members}
            if self.chance.random() < 0.5
            else {"type": "string", "enum": self.chance.sample(WORDS, 3)}
        )

    def string(self, depth: int) -> Any:
        result: dict[str, Any] = {"type": "string"}
        if self.chance.random() < 0.35:
            result["maxLength"] = self.chance.randint(2, 9)
        if self.chance.random() < 0.25:
            result["minLength"] = self.chance.randint(0, 3)
        if self.chance.random() < 0.2:
            result["pattern"] = self.chance.choice(PATTERNS)
        if self.chance.random() < 0.1:
            result["format"] = self.chance.choice(("date", "email"))
        return result

    def number(self, depth: int) -> Any:
        return self.bounded("number")

    def integer(self, depth: int) -> Any:
        return self.bounded("integer")

    def bounded(self, name: str) -> Any:
        result: dict[str, Any] = {"type": name}
        if self.chance.random() < 0.3:
            result["minimum"] = self.chance.randint(-5, 5)
        if self.chance.random() < 0.3:
            result["maximum"] = self.chance.randint(6, 20)
        if self.chance.random() < 0.1 and self.draft > 4:
            result["exclusiveMaximum"] = self.chance.randint(6, 20)
        if self.chance.random() < 0.1:
            result["multipleOf"] = self.chance.choice((2, 3, 0.5, 4))
        return result

    def object(self, depth: int) -> Any:
        names = self.chance.sample(NAMES, self.chance.randint(0, 4))
        result: dict[str, Any] = {"type": "object", "properties": {name: self.schema(depth + 1) for name in names}}
        for name in names:
            if isinstance(result["properties"][name], dict) and self.chance.random() < 0.1:
                result["properties"][name]["default"] = None
        if names and self.chance.random() < 0.5:
            result["required"] = self.chance.sample(names, self.chance.randint(1, len(names)))
        roll = self.chance.random()
        if roll < 0.4:
            result["additionalProperties"] = False
        elif roll < 0.55:
            result["additionalProperties"] = self.schema(depth + 2)
        if self.chance.random() < 0.12:
            result["patternProperties"] = {self.chance.choice(NAME_PATTERNS): self.schema(depth + 2)}
        if self.chance.random() < 0.06:
            result["maxProperties"] = self.chance.randint(2, 4)
        if self.chance.random() < 0.05:
            result["dependencies" if self.draft < 2019 else "dependentRequired"] = {"id": ["name"]}
        if self.chance.random() < 0.04 and self.draft > 4:
            result["propertyNames"] = {"maxLength": self.chance.randint(3, 6)}
        if not result["properties"] and self.chance.random() < 0.5:
            del result["properties"]
        return result

    def array(self, depth: int) -> Any:
        result: dict[str, Any] = {"type": "array"}
        if self.chance.random() < 0.75:
            result["items"] = self.schema(depth + 1)
        elif self.chance.random() < 0.5:
            parts = [self.schema(depth + 2) for _ in range(self.chance.randint(1, 2))]
            if self.draft == 2020:
                result["prefixItems"] = parts
            else:
                result["items"] = parts
            if self.chance.random() < 0.5:
                result["items" if self.draft == 2020 else "additionalItems"] = (
                    self.schema(depth + 2) if self.draft == 4 and self.chance.random() < 0.3 else False
                )
        if self.chance.random() < 0.25:
            result["maxItems"] = self.chance.randint(1, 4)
        if self.chance.random() < 0.15:
            result["minItems"] = self.chance.randint(0, 2)
        if self.chance.random() < 0.1:
            result["uniqueItems"] = True
        if self.chance.random() < 0.05 and self.draft > 4:
            result["contains"] = self.schema(depth + 2)
        return result

    def combination(self, depth: int) -> Any:
        roll = self.chance.random()
        if roll < 0.12:
            return {"not": self.schema(depth + 2)}
        if roll < 0.2 and self.draft >= 7:
            return {"if": self.schema(depth + 2), "then": self.schema(depth + 2), "else": self.schema(depth + 2)}
        keyword = self.chance.choice(("anyOf", "oneOf", "allOf"))
        return {keyword: [self.schema(depth + 1) for _ in range(self.chance.randint(1, 3))]}

    def changed(self, schema: Any, depth: int = 0) -> Any:
        """A copy with one to three changes somewhere."""
        result = copy.deepcopy(schema)
        for _ in range(self.chance.choice((1, 1, 1, 2, 3))):
            result = self._change(result, depth)
        return result

    def _change(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, dict) or depth > 4:
            return self.schema(depth + 1)
        inner = [
            key
            for key in (
                "properties",
                "items",
                "additionalProperties",
                "anyOf",
                "oneOf",
                "allOf",
                "not",
                "definitions",
                "patternProperties",
            )
            if schema.get(key) not in (None, True, False, {}, [])
        ]
        if inner and self.chance.random() < 0.55:
            key = self.chance.choice(inner)
            value = schema[key]
            if key in ("properties", "definitions", "patternProperties"):
                name = self.chance.choice(sorted(value))
                if key == "properties" and self.chance.random() < 0.25:
                    del value[name]
                    if self.chance.random() < 0.5 and name in schema.get("required", []):
                        schema["required"] = [item for item in schema["required"] if item != name] or [NAMES[0]]
                else:
                    value[name] = self._change(value[name], depth + 1)
            elif isinstance(value, list):
                roll = self.chance.random()
                position = self.chance.randrange(len(value))
                if roll < 0.2:
                    value.append(self.schema(depth + 1))
                elif roll < 0.4 and len(value) > 1:
                    del value[position]
                else:
                    value[position] = self._change(value[position], depth + 1)
            else:
                schema[key] = self._change(value, depth + 1)
            return schema
        return self._tweak(schema, depth)

    def _tweak(self, schema: dict[str, Any], depth: int) -> Any:
        numbers = [
            key
            for key, value in schema.items()
            if isinstance(value, (int, float))
            and not isinstance(value, bool)
            and key in ("maxLength", "minLength", "minimum", "maximum", "maxItems", "minItems", "maxProperties")
        ]
        roll = self.chance.random()
        if numbers and roll < 0.3:
            key = self.chance.choice(numbers)
            schema[key] = max(0, schema[key] + self.chance.choice((-1, 1, 2)))
        elif numbers and roll < 0.4:
            del schema[self.chance.choice(numbers)]
        elif schema.get("type") == "object" and roll < 0.85:
            self._tweak_object(schema, depth)
        elif schema.get("type") == "string" and roll < 0.8:
            schema.update(self.string(depth))
        elif schema.get("type") == "integer" and roll < 0.6:
            schema["type"] = "number"
        elif "enum" in schema and roll < 0.8:
            schema["enum"] = [*schema["enum"], "new"] if roll < 0.6 or len(schema["enum"]) < 2 else schema["enum"][1:]
        elif roll < 0.9 and "title" not in schema:
            schema["title"] = "T"
        else:
            return self.schema(depth + 1)
        return schema

    def _tweak_object(self, schema: dict[str, Any], depth: int) -> None:
        properties = schema.setdefault("properties", {})
        roll = self.chance.random()
        if roll < 0.4:
            properties[self.chance.choice((*NAMES, "extra"))] = self.schema(depth + 1)
        elif roll < 0.6 and properties:
            schema["required"] = sorted({*schema.get("required", []), self.chance.choice(sorted(properties))})
        elif roll < 0.7:
            schema.pop("required", None)
        elif roll < 0.85:
            schema["additionalProperties"] = self.chance.choice((True, False))
        else:
            schema.pop("additionalProperties", None)


IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")


def leads_to_itself(document: dict[str, Any]) -> bool:
    """Whether a schema refers to itself without a property or an item between: no validator can make sense of it."""
    definitions = document.get("definitions", {})
    names = {f"#/definitions/{name}": schema for name, schema in definitions.items()} | {"#": document}
    leads = {name: _in_place_references(schema) for name, schema in names.items()}
    for start in leads:
        todo, visited = list(leads[start]), set()
        while todo:
            name = todo.pop()
            if name == start:
                return True
            if name not in visited:
                visited.add(name)
                todo.extend(leads.get(name, ()))
    return False


def _in_place_references(schema: Any) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    references = {schema["$ref"]} if "$ref" in schema else set()
    for keyword in IN_PLACE:
        members = schema.get(keyword)
        for member in members if isinstance(members, list) else [members]:
            references |= _in_place_references(member)
    return references


def random_pair(seed: int, draft: int = 7) -> tuple[str, str]:
    """The texts of a schema and of a changed copy."""
    for attempt in range(100):
        pair = _pair(random.Random(f"{seed}/{attempt}"), draft)
        if not any(leads_to_itself(document) for document in pair):
            break
    return json.dumps(pair[0]), json.dumps(pair[1])


def _pair(chance: random.Random, draft: int) -> tuple[dict[str, Any], dict[str, Any]]:
    maker = Maker(chance, draft)
    first = maker.document()
    second = maker.changed(first)
    if not isinstance(second, dict):
        second = {"type": "object"}
    if "definitions" in first:
        second.setdefault("definitions", first["definitions"])
    if "$schema" in first:
        second["$schema"] = first["$schema"]
    return first, second


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
        members: dict[str, Any] = {}
        required = schema.get("required", [])
        for name, property_schema in schema.get("properties", {}).items():
            if name in required or self._chance.random() < (0.5 if depth < 4 else 0.1):
                members[name] = self._value(property_schema, depth + 1)
        for name in required:
            members.setdefault(name, self._chance.choice(POOL))
        extra = schema.get("additionalProperties")
        while extra is not False and self._chance.random() < 0.35:
            name = self._chance.choice((*NAMES, "extra", "x-1", "ne"))
            if name not in members:
                members[name] = self._value(extra, depth + 1) if isinstance(extra, dict) else self._chance.choice(POOL)
        return members

    def _array(self, schema: dict[str, Any], depth: int) -> Any:
        items, prefix = schema.get("items"), schema.get("prefixItems", [])
        if isinstance(items, list):
            prefix, items = items, schema.get("additionalItems")
        length = self._chance.choice((0, 1, 1, 2, 3, 4, 5, schema.get("minItems", 0), schema.get("maxItems", 2)))
        result = []
        for index in range(int(length)):
            if index < len(prefix):
                result.append(self._value(prefix[index], depth + 1))
            elif items is False:
                break
            else:
                result.append(self._value(items, depth + 1) if isinstance(items, dict) else self._chance.choice(POOL))
        return result

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
