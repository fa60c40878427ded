"""Framing and decodability, said in Spark's own functions: no row passes through Python.

A framed key or value is a zero byte, the schema id in four bytes, and the body.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql.connect import functions as f
from pyspark.sql.connect.avro.functions import from_avro

from registry.observations import Side

MAX_DEPTH = 100  # of a writer schema
WRAPPER = "schemadesk_body"
_KEPT: Final = ("type", "name", "namespace", "fields", "items", "values", "symbols", "size")

# The first one that holds names what a side's bytes are; {0} is the column.
CLASSES: Final = (
    ("null", "{0} IS NULL"),
    ("framed", "length({0}) >= 5 AND substring({0}, 1, 1) = X'00'"),
    ("empty", "length({0}) = 0"),
    ("json_object", "substring({0}, 1, 1) = X'7B' AND substring({0}, -1, 1) = X'7D'"),
    ("json_array", "substring({0}, 1, 1) = X'5B' AND substring({0}, -1, 1) = X'5D'"),
    ("xml", "substring({0}, 1, 1) = X'3C'"),
    ("avro_file", "substring({0}, 1, 4) = X'4F626A01'"),
    ("gzip", "substring({0}, 1, 2) = X'1F8B'"),
    ("text", "substring({0}, 1, 1) BETWEEN X'20' AND X'7E'"),
    ("binary", "true"),
)


class SchemaNotUsable(ValueError):
    """A writer schema that Spark shall not or can not decode with; the message says why."""


def side_class(side: Side) -> Column:
    """The class of a side's bytes, one of CLASSES' names."""
    whens = " ".join(f"WHEN {condition.format(side)} THEN '{name}'" for name, condition in CLASSES)
    return f.expr(f"CASE {whens} END")


def raw_id(side: Side) -> Column:
    """The four bytes of a framed side's schema id, null when it isn't framed."""
    framed = dict(CLASSES)["framed"].format(side)
    return f.expr(f"CASE WHEN {framed} THEN substring({side}, 2, 4) END")


def decodes(side: Side, wrapped: Mapping[int, str]) -> Column:
    """Whether a framed side's body decodes with the schema of its id; null for ids that aren't in `wrapped`.

    `wrapped` maps an id to what `wrap` gave. `from_avro` gives null for what it can't decode, and the field `ok`,
    which only the reader's schema has, is true in everything else: an all-null record is no failure.
    """
    body = f.expr(f"substring({side}, 6)")
    answer: Column | None = None
    for schema_id, writer in wrapped.items():
        is_id = raw_id(side) == f.lit(bytearray(schema_id.to_bytes(4, "big")))
        options = {"mode": "PERMISSIVE", "avroSchema": _with_ok(writer)}
        ok = f.coalesce(from_avro(body, writer, options).getField("ok"), f.lit(False))
        answer = f.when(is_id, ok) if answer is None else answer.when(is_id, ok)
    return f.lit(None).cast("boolean") if answer is None else answer


def wrap(writer_schema: str) -> str:
    """The writer's schema as the one field of a record, with nothing that its binary form doesn't depend on.

    A record adds no byte, and gives any schema, also a plain string or union, a place for the reader's `ok`.
    Without logical types and defaults, an odd but decodable value (a date out of range) is no failure. Raises
    SchemaNotUsable for what isn't Avro's JSON and for lists whose items take no byte: a few bytes of data could
    declare billions of them.
    """
    try:
        parsed = json.loads(writer_schema)
    except (ValueError, RecursionError) as error:
        raise SchemaNotUsable(f"the registered text is no JSON: {error}") from error
    bare = _bare(parsed, 0)
    _refuse_empty_items(bare, {}, "")
    return json.dumps({"type": "record", "name": WRAPPER, "fields": [{"name": "body", "type": bare}]})


def _with_ok(wrapped: str) -> str:
    reader = json.loads(wrapped)
    reader["fields"].append({"name": "ok", "type": "boolean", "default": True})
    return json.dumps(reader)


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
