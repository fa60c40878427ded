"""Names, docs, aliases and properties: what all of Avro's definitions have, read strictly."""

from __future__ import annotations

import re
from typing import Any, Final

from registry.formats.avro.json_text import check_depth
from registry.formats.json_source import SchemaProblem

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def qualified(name: str, namespace: str, pointer: str) -> str:
    """The full name; a name with dots brings its own namespace, one that starts with a dot has none."""
    full_name = name if "." in name or not namespace else f"{namespace}.{name}"
    if full_name.startswith("."):
        full_name = full_name[1:]
    for part in full_name.split("."):
        check_name(part, "name" if part == full_name else f'part of the name "{full_name[:200]}"', pointer)
    return full_name


def check_name(name: str, what: str, pointer: str) -> None:
    """Raises SchemaProblem if a name isn't one of Avro's: ASCII letters, digits and _, no digit first."""
    if _NAME.fullmatch(name) is None:
        raise SchemaProblem(
            f'"{name[:200]}" can\'t be a {what}: a name starts with a letter A to Z, a to z or _, '
            "and goes on with these or digits",
            pointer,
        )


def properties(value: dict[str, Any], reserved: frozenset[str], pointer: str) -> dict[str, Any]:
    """What the object says beyond Avro's own attributes."""
    props = {key: item for key, item in value.items() if key not in reserved}
    for item in props.values():
        if isinstance(item, (dict, list)):
            check_depth(item, pointer)
    return props


def doc_of(value: dict[str, Any], pointer: str) -> str | None:
    """The doc, None if there is none."""
    doc = value.get("doc")
    if doc is not None and not isinstance(doc, str):
        raise SchemaProblem(f'a "doc" is a string, not {json_kind(doc)}', pointer + "/doc")
    return doc


def aliases_of(value: dict[str, Any], pointer: str) -> tuple[str, ...]:
    """The aliases as written, each once."""
    aliases = value["aliases"]
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise SchemaProblem('"aliases" is an array of strings', pointer + "/aliases")
    return tuple(dict.fromkeys(aliases))


def json_kind(value: Any) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "an object"
