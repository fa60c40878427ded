"""An Avro schema with what its bytes depend on, and nothing else."""

from __future__ import annotations

import json
from typing import Any, Final

MAX_DEPTH = 100
_KEPT: Final = ("type", "name", "namespace", "fields", "items", "values", "symbols", "size")
# The unit that a whole number counts time in; kept as a property, so that a mask can show the year alone.
CALENDARS: Final = {
    "date": "date",
    "timestamp-millis": "ms",
    "timestamp-micros": "us",
    "timestamp-nanos": "ns",
    "local-timestamp-millis": "ms",
    "local-timestamp-micros": "us",
    "local-timestamp-nanos": "ns",
}


class SchemaNotUsable(ValueError):
    """A writer schema that Spark shall not or can not decode with; the message says why."""


def bare(writer_schema: str) -> Any:
    """The writer's schema with nothing that its binary form doesn't depend on, but the calendar of whole numbers.

    Without logical types and defaults, an odd but decodable value (a date out of range) is no failure. Raises
    SchemaNotUsable for what isn't Avro's JSON and for lists whose items take no byte: a few bytes of data could
    declare billions of them.
    """
    try:
        parsed = json.loads(writer_schema)
    except (ValueError, RecursionError) as error:
        raise SchemaNotUsable(f"the registered text is no JSON: {error}") from error
    stripped = _bare(parsed, 0)
    _refuse_empty_items(stripped, {}, "")
    return stripped


def _bare(schema: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise SchemaNotUsable(f"the schema is nested more than {MAX_DEPTH} levels deep")
    if isinstance(schema, str):
        return schema
    if isinstance(schema, list):
        return [_bare(branch, depth + 1) for branch in schema]
    if not isinstance(schema, dict) or "type" not in schema:
        raise SchemaNotUsable("the registered text is no Avro schema")
    kept = {name: schema[name] for name in _KEPT if name in schema}
    if isinstance(schema.get("logicalType"), str) and schema["logicalType"] in CALENDARS:
        kept["calendar"] = CALENDARS[schema["logicalType"]]
    if isinstance(kept["type"], (dict, list)):
        return _bare(kept["type"], depth + 1)
    for inner in ("items", "values"):
        if inner in kept:
            kept[inner] = _bare(kept[inner], depth + 1)
    if "fields" in kept:
        kept["fields"] = [_bare_field(field, depth) for field in kept["fields"]]
    return kept


def _bare_field(field: Any, depth: int) -> dict[str, Any]:
    if not isinstance(field, dict) or "name" not in field or "type" not in field:
        raise SchemaNotUsable("the registered text has a field without name or type")
    return {"name": field["name"], "type": _bare(field["type"], depth + 1)}


def _refuse_empty_items(schema: Any, named: dict[str, bool], namespace: str) -> bool:
    """Whether a value of this schema may take no byte at all; raises SchemaNotUsable for a list of such."""
    if isinstance(schema, str):
        return schema == "null" or named.get(_full_name(schema, namespace), named.get(schema, False))
    if isinstance(schema, list):
        for branch in schema:
            _refuse_empty_items(branch, named, namespace)
        return False  # a union writes the number of its branch
    kind = schema["type"]
    if kind in ("array", "map"):
        inner = schema.get("items" if kind == "array" else "values")
        empty = _refuse_empty_items(inner, named, namespace)
        if kind == "array" and empty:
            raise SchemaNotUsable("it has a list whose items take no bytes, so a few bytes could declare billions")
        return False
    namespace = _namespace(schema, namespace)
    full_name = _full_name(str(schema.get("name", "")), namespace)
    if kind in ("record", "error"):
        named[full_name] = False  # a record in itself can't end without another way out
        fields = [_refuse_empty_items(part["type"], named, namespace) for part in schema.get("fields", ())]
        named[full_name] = all(fields)
    elif kind == "fixed":
        named[full_name] = schema.get("size") == 0
    else:
        return bool(kind == "null" or named.get(_full_name(str(kind), namespace), False))
    return named[full_name]


def _namespace(schema: dict[str, Any], outer: str) -> str:
    name = str(schema.get("name", ""))
    return name.rpartition(".")[0] if "." in name else str(schema.get("namespace", outer))


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
