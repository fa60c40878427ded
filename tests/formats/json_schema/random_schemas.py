"""Random pairs of JSON Schemas: a schema and a changed copy, reproducible by a seed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

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
        found = self.chance.sample(pool, self.chance.randint(1, 4))
        return (
            {"enum": found} if self.chance.random() < 0.5 else {"type": "string", "enum": self.chance.sample(WORDS, 3)}
        )

    def string(self, depth: int) -> Any:
        found: dict[str, Any] = {"type": "string"}
        if self.chance.random() < 0.35:
            found["maxLength"] = self.chance.randint(2, 9)
        if self.chance.random() < 0.25:
            found["minLength"] = self.chance.randint(0, 3)
        if self.chance.random() < 0.2:
            found["pattern"] = self.chance.choice(PATTERNS)
        if self.chance.random() < 0.1:
            found["format"] = self.chance.choice(("date", "email"))
        return found

    def number(self, depth: int) -> Any:
        return self.bounded("number")

    def integer(self, depth: int) -> Any:
        return self.bounded("integer")

    def bounded(self, name: str) -> Any:
        found: dict[str, Any] = {"type": name}
        if self.chance.random() < 0.3:
            found["minimum"] = self.chance.randint(-5, 5)
        if self.chance.random() < 0.3:
            found["maximum"] = self.chance.randint(6, 20)
        if self.chance.random() < 0.1 and self.draft > 4:
            found["exclusiveMaximum"] = self.chance.randint(6, 20)
        if self.chance.random() < 0.1:
            found["multipleOf"] = self.chance.choice((2, 3, 0.5, 4))
        return found

    def object(self, depth: int) -> Any:
        names = self.chance.sample(NAMES, self.chance.randint(0, 4))
        found: dict[str, Any] = {"type": "object", "properties": {name: self.schema(depth + 1) for name in names}}
        for name in names:
            if isinstance(found["properties"][name], dict) and self.chance.random() < 0.1:
                found["properties"][name]["default"] = None
        if names and self.chance.random() < 0.5:
            found["required"] = self.chance.sample(names, self.chance.randint(1, len(names)))
        roll = self.chance.random()
        if roll < 0.4:
            found["additionalProperties"] = False
        elif roll < 0.55:
            found["additionalProperties"] = self.schema(depth + 2)
        if self.chance.random() < 0.12:
            found["patternProperties"] = {self.chance.choice(NAME_PATTERNS): self.schema(depth + 2)}
        if self.chance.random() < 0.06:
            found["maxProperties"] = self.chance.randint(2, 4)
        if self.chance.random() < 0.05:
            found["dependencies" if self.draft < 2019 else "dependentRequired"] = {"id": ["name"]}
        if self.chance.random() < 0.04 and self.draft > 4:
            found["propertyNames"] = {"maxLength": self.chance.randint(3, 6)}
        if not found["properties"] and self.chance.random() < 0.5:
            del found["properties"]
        return found

    def array(self, depth: int) -> Any:
        found: dict[str, Any] = {"type": "array"}
        if self.chance.random() < 0.75:
            found["items"] = self.schema(depth + 1)
        elif self.chance.random() < 0.5:
            parts = [self.schema(depth + 2) for _ in range(self.chance.randint(1, 2))]
            if self.draft == 2020:
                found["prefixItems"] = parts
            else:
                found["items"] = parts
            if self.chance.random() < 0.5:
                found["items" if self.draft == 2020 else "additionalItems"] = (
                    self.schema(depth + 2) if self.draft == 4 and self.chance.random() < 0.3 else False
                )
        if self.chance.random() < 0.25:
            found["maxItems"] = self.chance.randint(1, 4)
        if self.chance.random() < 0.15:
            found["minItems"] = self.chance.randint(0, 2)
        if self.chance.random() < 0.1:
            found["uniqueItems"] = True
        if self.chance.random() < 0.05 and self.draft > 4:
            found["contains"] = self.schema(depth + 2)
        return found

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
        found = copy.deepcopy(schema)
        for _ in range(self.chance.choice((1, 1, 1, 2, 3))):
            found = self._change(found, depth)
        return found

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
            held = schema[key]
            if key in ("properties", "definitions", "patternProperties"):
                name = self.chance.choice(sorted(held))
                if key == "properties" and self.chance.random() < 0.25:
                    del held[name]
                    if self.chance.random() < 0.5 and name in schema.get("required", []):
                        schema["required"] = [item for item in schema["required"] if item != name] or [NAMES[0]]
                else:
                    held[name] = self._change(held[name], depth + 1)
            elif isinstance(held, list):
                roll = self.chance.random()
                position = self.chance.randrange(len(held))
                if roll < 0.2:
                    held.append(self.schema(depth + 1))
                elif roll < 0.4 and len(held) > 1:
                    del held[position]
                else:
                    held[position] = self._change(held[position], depth + 1)
            else:
                schema[key] = self._change(held, depth + 1)
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
    names = {f"#/definitions/{name}": held for name, held in definitions.items()} | {"#": document}
    leads = {name: _in_place_references(held) for name, held in names.items()}
    for start in leads:
        todo, seen = list(leads[start]), set()
        while todo:
            name = todo.pop()
            if name == start:
                return True
            if name not in seen:
                seen.add(name)
                todo.extend(leads.get(name, ()))
    return False


def _in_place_references(schema: Any) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    found = {schema["$ref"]} if "$ref" in schema else set()
    for keyword in IN_PLACE:
        held = schema.get(keyword)
        for member in held if isinstance(held, list) else [held]:
            found |= _in_place_references(member)
    return found


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
