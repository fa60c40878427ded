"""Fields that were seen, added to a JSON Schema. Pure."""

from __future__ import annotations

from typing import Any, Final

from registry.drift.judge.declared_json import pointed
from registry.drift.proposing_tree import DEEPEST, ITEMS, KEYED, Notes, Seen
from registry.errors import InvalidInput

DRAFT: Final = "http://json-schema.org/draft-07/schema#"
MOST_STEPS: Final = 64
_CHOICES: Final = ("anyOf", "oneOf", "if", "not", "$dynamicRef", "$recursiveRef")


def new_schema(root: Seen, name: str, notes: Notes) -> dict[str, Any]:
    """A schema of what was seen; what it doesn't name is allowed, as nothing says that it isn't."""
    return {"$schema": DRAFT, "title": name, **_fragment(root, notes, 0)}


def add_to(document: Any, root: Seen, notes: Notes) -> None:
    """Declare in the document what it doesn't yet. Raises InvalidInput for one that declares no object."""
    if not isinstance(document, dict):
        raise InvalidInput("The declared schema isn't an object that fields could be added to.")
    _add(document, document, root, notes, 0)


def _add(document: Any, schema: Any, seen: Seen, notes: Notes, depth: int) -> None:
    if depth >= DEEPEST or not seen.below:
        return
    parts = _parts(document, schema)
    if parts is None:
        for each in seen.fields.values():
            notes.leave_out(each.path, "the schema decides by conditions or references here")
        return
    items = next((part["items"] for part in parts if isinstance(part.get("items"), dict)), None)
    if ITEMS in seen.below and items is not None:
        _add(document, items, seen.below[ITEMS], notes, depth + 1)
    for name, each in seen.fields.items():
        declared = [part["properties"][name] for part in parts if name in _properties(part)]
        if declared:
            _add(document, declared[0], each, notes, depth + 1)
        elif any(_allows(part) for part in parts):
            continue  # its names are data, which the schema says
        else:
            closed = [part for part in parts if part.get("additionalProperties") is False]
            place = (closed or [part for part in parts if _properties(part)] or parts)[0]
            if not isinstance(place.get("properties"), dict):
                place["properties"] = {}
            place["properties"][name] = _fragment(each, notes, depth + 1)
            notes.add(each)


def _properties(part: dict[str, Any]) -> dict[str, Any]:
    held = part.get("properties")
    return held if isinstance(held, dict) else {}


def _allows(part: dict[str, Any]) -> bool:
    """Whether the object is a map: other names than those that it declares have a schema."""
    return isinstance(part.get("additionalProperties"), dict) or "patternProperties" in part


def _parts(document: Any, schema: Any) -> list[dict[str, Any]] | None:
    """The schema with those that `$ref` and `allOf` add to it; None where it decides by conditions or leads elsewhere."""
    found: list[dict[str, Any]] = []
    left = [schema]
    while left and len(found) < MOST_STEPS:
        part = left.pop(0)
        if not isinstance(part, dict) or any(keyword in part for keyword in _CHOICES):
            return None
        if any(part is known for known in found):
            continue
        found.append(part)
        if "$ref" in part:
            target = pointed(document, part["$ref"]) if isinstance(part["$ref"], str) else None
            if target is None:
                return None
            left.append(target)
        members = part.get("allOf")
        left += members if isinstance(members, list) else []
    # beside a reference older drafts read nothing else
    return [part for part in found if "$ref" not in part] or None


def _fragment(seen: Seen, notes: Notes, depth: int) -> dict[str, Any]:
    """A schema of what was seen at a path; of null alone nothing is concluded."""
    kinds = [*sorted(seen.kinds), *(["null"] if seen.nullable and seen.kinds else [])]
    schema: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}
    if depth >= DEEPEST:
        return schema
    if "array" in seen.kinds and ITEMS in seen.below:
        schema["items"] = _fragment(seen.below[ITEMS], notes, depth + 1)
        if not depth:
            notes.add(seen.below[ITEMS])
    if "object" in seen.kinds and seen.fields:
        schema["properties"] = {}
        for name, each in seen.fields.items():
            schema["properties"][name] = _fragment(each, notes, depth + 1)
            if not depth:
                notes.add(each)
    if "object" in seen.kinds and KEYED in seen.below:
        schema["additionalProperties"] = _fragment(seen.below[KEYED], notes, depth + 1)
    return schema
