"""Content models: what an object takes beside its properties, and an array beside its tuple."""

from __future__ import annotations

import jsonschema_rs

from registry.formats.json_schema.drafts import is_schema
from registry.formats.json_schema.shapes import Shape
from registry.formats.json_schema.validators import PATTERN_OPTIONS


def rest_keyword(shape: Shape) -> str:
    """The keyword that says what an object or array takes beyond what it lists."""
    if shape.kind == "object":
        return "additionalProperties"
    return "items" if shape.draft.number >= 2020 else "additionalItems"


def permits_rest(shape: Shape) -> bool:
    """Whether anything beyond what is listed is taken at all."""
    keyword = rest_keyword(shape)
    if keyword == "additionalItems" and shape.draft.number == 2019 and shape.schema.get("items") is False:
        return False
    return shape.schema.get(keyword) is not False


def rest_schema(shape: Shape) -> Shape | None:
    """The schema of what is taken beyond what is listed, None where there is none of its own."""
    keyword = rest_keyword(shape)
    held = shape.schema.get(keyword)
    if not isinstance(held, dict) or (keyword == "items" and not prefix(shape)):
        return None
    return shape.inner(keyword)


def prefix_keyword(shape: Shape) -> str:
    """The keyword that lists the tuple of an array."""
    return "prefixItems" if shape.draft.number >= 2020 else "items"


def prefix(shape: Shape) -> list[object]:
    """The tuple of an array, empty where it has none."""
    held = shape.schema.get(prefix_keyword(shape))
    return held if isinstance(held, list) else []


def all_items(shape: Shape) -> Shape | None:
    """The schema of every item, where the array has no tuple."""
    held = shape.schema.get("items")
    if not is_schema(held) or (shape.draft.number >= 2020 and prefix(shape)):
        return None
    if shape.draft.number >= 2019 and isinstance(held, bool):
        return None
    return shape.inner("items")


def unevaluated(shape: Shape) -> Shape | None:
    """The schema of what no other keyword has looked at, which newer drafts know."""
    keyword = "unevaluatedProperties" if shape.kind == "object" else "unevaluatedItems"
    if shape.draft.number < 2019 or not is_schema(shape.schema.get(keyword)):
        return None
    return shape.inner(keyword)


def is_open(shape: Shape) -> bool:
    """Whether anything at all may stand beyond what is listed."""
    if not permits_rest(shape) or rest_schema(shape) is not None:
        return False
    if shape.kind == "object" and shape.schema.get("patternProperties"):
        return False
    left = unevaluated(shape)
    return left is None or left.kind in ("empty", "true")


def covering(shape: Shape, name: str | None = None) -> Shape | None:
    """The schema that a property (or item) which isn't listed must fit, None in a closed or an open model."""
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
    """Whether a pattern is found in a text, by the bounded engine; False for one that it doesn't take."""
    try:
        return jsonschema_rs.is_valid({"pattern": pattern}, text, pattern_options=PATTERN_OPTIONS, offline=True)
    except ValueError:
        return False
