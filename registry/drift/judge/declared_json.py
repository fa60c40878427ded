"""The fields that a JSON Schema declares: what `properties`, `items`, `$ref` and `allOf` say; the rest is open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from registry.drift.judge.declaring import MAX_DEPTH, MAX_STEPS, Collected, Others, below
from registry.formats.base import ParsedSchema

_KNOWN_KINDS: Final = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
#: keywords under which an object may get further fields, or none of what is said here may hold
_UNFOLLOWED: Final = (
    "$dynamicRef", "$recursiveRef", "patternProperties", "unevaluatedProperties", "dependentSchemas", "if", "not",
    "propertyNames", "anyOf", "oneOf",
)  # fmt: skip


#: in place of a part that can't be followed: whatever it says, nothing is concluded
UNKNOWN: Final[dict[str, Any]] = {"anyOf": []}


def read_json_schema(parsed: ParsedSchema, found: Collected) -> None:
    """Collect the fields of a parsed JSON Schema, from its bundle where it has references."""
    model = parsed.model
    root = model.root if len(model.documents) == 1 else model.bundle.value
    _JsonSchema(root, found).inside(root, "", 0, frozenset())


class _JsonSchema:
    """Reads a document whose references all lead into itself."""

    def __init__(self, root: Any, found: Collected) -> None:
        self._root = root
        self._found = found
        self._steps = 0

    def inside(self, schema: Any, path: str, depth: int, inside: frozenset[str]) -> None:
        """The fields below a place."""
        parts = list(self._parts(schema, inside))
        full = self._found.is_full(depth) or self._steps > MAX_STEPS
        if not parts or full or len(inside) > 4 * MAX_DEPTH:
            self._found.others[path] = "open"
            return
        self._found.others[path] = self._others(parts)
        required = {name for part, _ in parts for name in _names(part.get("required"))}
        for part, around in parts:
            properties = part.get("properties")
            for name, held in properties.items() if isinstance(properties, dict) else ():
                here = below(path, name)
                self._add(here, held, name in required, around)
                self.inside(held, here, depth + 1, around)
            if isinstance(part.get("items"), dict | bool):
                self._add(f"{path}[]", part["items"], False, around)
                self.inside(part["items"], f"{path}[]", depth + 1, around)

    def _parts(self, schema: Any, inside: frozenset[str]) -> Iterable[tuple[dict[str, Any], frozenset[str]]]:
        """The schema with what `$ref` and `allOf` add to it; nothing where one of them can't be followed.

        Definitions that each use the next one twice are small as a text and huge as a tree, so steps are counted.
        """
        self._steps += 1
        if not isinstance(schema, dict):
            return
        if self._steps > MAX_STEPS:
            yield UNKNOWN, inside
            return
        yield schema, inside
        reference = schema.get("$ref")
        if isinstance(reference, str):
            target = None if reference in inside else pointed(self._root, reference)
            if target is None:
                yield UNKNOWN, inside
            else:
                yield from self._parts(target, inside | {reference})
        members = schema.get("allOf")
        if isinstance(members, list) and len(inside) <= 4 * MAX_DEPTH:
            for index, member in enumerate(members[:64]):
                yield from self._parts(member, inside | {f"{id(schema)}/{index}"})

    def _others(self, parts: list[tuple[dict[str, Any], frozenset[str]]]) -> Others:
        if any(keyword in part for part, _ in parts for keyword in _UNFOLLOWED):
            return "open"
        additional = [part["additionalProperties"] for part, _ in parts if "additionalProperties" in part]
        if any(value is False for value in additional):
            return "closed"
        declares = any(isinstance(part.get("properties"), dict) for part, _ in parts)
        return "silent" if declares and not additional else "open"

    def _add(self, path: str, schema: Any, required: bool, inside: frozenset[str]) -> None:
        parts = list(self._parts(schema, inside))
        kinds: frozenset[str] | None = None
        symbols: frozenset[str] | None = None
        if not any(keyword in part for part, _ in parts for keyword in ("anyOf", "oneOf", "if", "not")):
            for part, _ in parts:
                said = _kinds_of(part)
                kinds = said if kinds is None else kinds if said is None else kinds & said
                listed = _symbols_of(part)
                symbols = listed if symbols is None else symbols if listed is None else symbols & listed
        self._found.add(path, kinds, required, symbols)


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _kinds_of(schema: Mapping[str, Any]) -> frozenset[str] | None:
    said = schema.get("type")
    names = [said] if isinstance(said, str) else _names(said)
    if not names or not _KNOWN_KINDS.issuperset(names):
        return None
    return frozenset(names) | ({"integer"} if "number" in names else frozenset())


def _symbols_of(schema: Mapping[str, Any]) -> frozenset[str] | None:
    listed = schema["enum"] if isinstance(schema.get("enum"), list) else None
    if "const" in schema:
        listed = [schema["const"]]
    if listed is None or not all(isinstance(value, str | None) for value in listed):
        return None
    return frozenset(value for value in listed if value is not None)


def pointed(root: Any, reference: str) -> Any:
    """What `#/…` leads to, None for anything else."""
    if reference == "#":
        return root
    if not reference.startswith("#/") or "%" in reference:
        return None
    place = root
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, dict) and name in place:
            place = place[name]
        elif isinstance(place, list) and name.isdigit() and int(name) < len(place):
            place = place[int(name)]
        else:
            return None
    return place
