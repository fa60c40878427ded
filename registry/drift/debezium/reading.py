"""Rows and keys as schemas tell them: Kafka Connect's own beside JSON, Avro's, JSON Schema's; and as JSON data shows them.

A value's schema is an envelope when it has `after` and `op`, else it is the row itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from registry.drift.debezium.reading_avro import AvroReader
from registry.drift.debezium.reading_json_schema import JsonSchemaReader
from registry.drift.debezium.shapes import NO_DEFAULT, FieldShape, RowShape
from registry.errors import InvalidSchema
from registry.formats.avro.json_text import check_depth, read_json
from registry.formats.json_source import SchemaProblem
from registry.observations import FieldProfile, Side

SchemaLanguage = Literal["AVRO", "JSON", "CONNECT"]
MAX_FIELDS: Final = 5_000
MOST_PATHS: Final = 500  # of one side of a topic, that a scan profiles


class UnreadableShape(ValueError):
    """A schema that tells no row; the message says why."""


@dataclass(frozen=True)
class SchemaText:
    """A schema in one of the three languages; `label` is how people know it, such as `version 3 (id 12)`."""

    language: SchemaLanguage
    text: str
    label: str = ""


def row_of(schema: SchemaText, side: Side) -> RowShape:
    """The row or key of a schema. Raises UnreadableShape."""
    try:
        value = read_json(schema.text)
        check_depth(value, "")
    except InvalidSchema as error:
        raise UnreadableShape(f"{error.message}") from error
    except SchemaProblem as problem:
        raise UnreadableShape(problem.message) from problem
    try:
        fields = _READERS[schema.language](value, side)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableShape(f"it is no schema of a row ({type(error).__name__})") from error
    if len(fields) > MAX_FIELDS:
        raise UnreadableShape(f"it has more than {MAX_FIELDS} fields")
    return RowShape({shape.name: shape for shape in fields})


def _avro(value: Any, side: Side) -> list[FieldShape]:
    reader = AvroReader(value)
    record = reader.record(value)
    if record is None:
        raise UnreadableShape("its type is no record")
    after = reader.envelope_row(record) if side == "value" else None
    return reader.fields(after or record)


def _json_schema(value: Any, side: Side) -> list[FieldShape]:
    reader = JsonSchemaReader(value)
    root = reader.resolved(value)
    after = reader.envelope_row(root) if side == "value" else None
    fields = reader.fields(after or root)
    if fields is None:
        raise UnreadableShape("it says nothing of properties")
    return fields


_CONNECT_KINDS: Final = {"float": "float32", "double": "float64"}


def _connect(value: Any, side: Side) -> list[FieldShape]:
    """Kafka Connect's JSON form of its schemas, as JsonConverter writes it."""
    if value["type"] != "struct":
        raise UnreadableShape("its type is no struct")
    named = {each["field"]: each for each in value["fields"]}
    row = value
    if side == "value" and {"after", "op"} <= named.keys():
        row = named["after"]
    elif side == "value" and {"op", "message", "source"} <= named.keys():
        raise UnreadableShape("it is the schema of a message event, not of a row")
    return [replace(_connect_field(each), name=str(each["field"])) for each in row["fields"]]


def _connect_field(value: Mapping[str, Any]) -> FieldShape:
    kind = _CONNECT_KINDS.get(value["type"], value["type"])
    items = value.get("items")
    parameters = value.get("parameters")
    logical = str(value.get("name", ""))
    return FieldShape(
        "",
        kind,
        logical,
        optional=bool(value.get("optional", False)),
        parameters={str(name): str(each) for name, each in parameters.items()} if parameters else {},
        default=value.get("default", NO_DEFAULT),
        items=_connect_field(items) if kind == "array" and isinstance(items, dict) else None,
    )


_READERS: Final[dict[SchemaLanguage, Callable[[Any, Side], list[FieldShape]]]] = {
    "AVRO": _avro,
    "JSON": _json_schema,
    "CONNECT": _connect,
}

# ---- JSON without a schema ----------------------------------------------------------------------------------------


def row_of_profiles(profiles: Iterable[FieldProfile], side: Side) -> RowShape | None:
    """The row or key as the JSON data of one topic shows it; None where no row was seen.

    Fields that only some messages have are `partly` there. The shape isn't exact where a scan leaves out names: those
    that don't look like names are masked (the path `{}`), and it follows so many paths alone.
    """
    own = {each.path: each for each in profiles if each.side == side and each.framing is None}
    if side == "value" and "after" in own and "op" in own:
        parent, prefix = "after", "after."
        rows = own["after"].present - own["after"].nulls
    else:
        parent, prefix = "", ""
        rows = max((each.messages for each in own.values()), default=0)
    if not rows:
        return None
    fields, partly = {}, set()
    for path, each in own.items():
        name = path.removeprefix(prefix)
        if not name or not path.startswith(prefix) or not each.present or _is_below(name, prefix, own):
            continue
        # Whether a null is from before or after a change nobody tells.
        fields[name] = FieldShape(name, _seen_kind(each), None)
        if each.present < rows:
            partly.add(name)
    exact = f"{parent}{{}}" not in own and len(own) < MOST_PATHS
    return RowShape(fields, exact, frozenset(partly)) if fields else None


def _is_below(name: str, prefix: str, own: Mapping[str, FieldProfile]) -> bool:
    """Whether a path leads into a field's value; a column's name may have a dot of its own."""
    if "[]" in name or "{}" in name:
        return True
    parts = name.split(".")
    return any(prefix + ".".join(parts[:number]) in own for number in range(1, len(parts)))


def _seen_kind(profile: FieldProfile) -> Any:
    kinds = {kind for kind, count in profile.kinds.items() if count and kind != "null"}
    if kinds == {"integer", "number"}:
        return "json_number"
    return f"json_{kinds.pop()}" if len(kinds) == 1 else "unknown"
