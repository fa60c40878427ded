"""What a schema is, in a few words for people."""

from __future__ import annotations

from typing import Any

from registry.formats.json_schema.text import compact


def type_words(schema: Any, depth: int = 0) -> str:
    """The type of a schema: `string (date)`, `array of integer`, `string or null`, `Address` for a reference."""
    if schema is True or schema == {}:
        return "any"
    if not isinstance(schema, dict):
        return "nothing"
    if isinstance(schema.get("$ref"), str):
        return _short(schema["$ref"].rstrip("/").rpartition("/")[2] or schema["$ref"])
    if "const" in schema:
        return _short(f"constant {compact(schema['const'])}")
    named = schema.get("type")
    if isinstance(named, list):
        return " or ".join(str(name) for name in named)
    if "enum" in schema and isinstance(schema["enum"], list):
        return f"{named or 'value'} of {len(schema['enum'])}"
    if named == "array" and isinstance(schema.get("items"), (dict, bool)) and depth < 4:
        return f"array of {type_words(schema['items'], depth + 1)}"
    if isinstance(named, str):
        return f"{named} ({schema['format']})" if isinstance(schema.get("format"), str) else named
    return _combined(schema, depth)


def _combined(schema: dict[str, Any], depth: int) -> str:
    for keyword, glue in (("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")):
        members = schema.get(keyword)
        if isinstance(members, list) and members and depth < 3:
            shown = [type_words(member, depth + 1) for member in members[:4]]
            return glue.join(shown) + (" …" if len(members) > 4 else "")
    if "properties" in schema or "additionalProperties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema else "any"


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"
