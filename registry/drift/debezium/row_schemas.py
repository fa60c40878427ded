"""Reads the columns of rows and keys from schemas (Kafka Connect's JSON, Avro, JSON Schema) and from JSON data.

A value's schema is an envelope if it has `after` and `op`; otherwise it is the row itself. Connect's converters add
`connect.name`, `connect.type` and `connect.parameters` to Avro, and `title` (the name), `connect.type` and
`connect.parameters` to JSON Schema.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from registry.drift.debezium.columns import NO_DEFAULT, UNKNOWN_DEFAULT, FieldShape, RowShape
from registry.errors import InvalidSchema
from registry.formats.avro.json_reader import check_depth, read_json
from registry.formats.json_pointer import SchemaProblem
from registry.observations import FieldProfile, Side

MAX_UNIONS: Final = 100
_KINDS: Final[Mapping[str, str]] = {
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
    "fixed": "bytes",
    "enum": "string",
    "record": "struct",
    "map": "map",
    "array": "array",
}
_CONNECT: Final = "org.apache.kafka.connect.data."
#: Avro's logical types that Connect's converters use for Connect's own
_LOGICAL: Final = {
    "date": f"{_CONNECT}Date",
    "time-millis": f"{_CONNECT}Time",
    "timestamp-millis": f"{_CONNECT}Timestamp",
    "decimal": f"{_CONNECT}Decimal",
}


class AvroReader:
    """Reads fields of an Avro document (JSON whose depth was checked)."""

    def __init__(self, document: Any) -> None:
        self.named: dict[str, dict[str, Any]] = {}
        #: whether a Connect converter wrote it: then a type without `connect.name` has no semantic type
        self.from_connect = False
        self._collect(document, "")

    def _collect(self, node: Any, namespace: str) -> None:
        if isinstance(node, list):
            for branch in node:
                self._collect(branch, namespace)
        if not isinstance(node, dict):
            return
        self.from_connect = self.from_connect or "connect.name" in node
        name = node.get("name")
        if isinstance(name, str) and isinstance(node.get("type"), str) and node["type"] in ("record", "enum", "fixed"):
            namespace = name.rpartition(".")[0] or str(node.get("namespace", namespace))
            self.named.setdefault(f"{namespace}.{name.rpartition('.')[2]}".lstrip("."), node)
            self.named.setdefault(name, node)
        for key in ("fields", "items", "values", "type"):
            self._collect(node.get(key), namespace)

    def record(self, node: Any) -> dict[str, Any] | None:
        """Return the record that a type is or that its nullable type contains; None otherwise."""
        resolved = self._named(self._without_null(node)[0])
        return resolved if isinstance(resolved, dict) and resolved.get("type") == "record" else None

    def envelope_row(self, record: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the record of `after` if the record is an envelope; None otherwise."""
        named = {field["name"]: field for field in record["fields"]}
        if not {"after", "op"} <= named.keys():
            return None
        return self.record(named["after"]["type"])

    def fields(self, record: Mapping[str, Any]) -> list[FieldShape]:
        """Return the fields of a record."""
        return [self._field(field) for field in record["fields"]]

    def _field(self, field: Mapping[str, Any]) -> FieldShape:
        shape = self._shape(field["type"])
        default = shape.default
        if default is NO_DEFAULT and field.get("default") is not None:
            default = field["default"]
        return replace(shape, name=str(field["name"]), default=default)

    def _shape(self, node: Any) -> FieldShape:
        kind, optional = self._without_null(node)
        if isinstance(kind, list):
            return FieldShape("", "unknown", None, optional=optional)
        kind = self._named(kind)
        details: Mapping[str, Any] = kind if isinstance(kind, dict) else {"type": kind}
        base = details["type"]
        shape_kind: Any = _KINDS[base] if isinstance(base, str) and base in _KINDS else "unknown"
        if details.get("connect.type") in ("int8", "int16"):
            shape_kind = details["connect.type"]
        if shape_kind == "unknown":
            return FieldShape("", "unknown", None, optional=optional)
        return FieldShape(
            "",
            shape_kind,
            self._semantic(details),
            optional=optional,
            parameters=_parameters(details),
            default=details.get("connect.default", NO_DEFAULT),
            items=self._shape(details["items"]) if base == "array" else None,
        )

    def _semantic(self, details: Mapping[str, Any]) -> str | None:
        name = details.get("connect.name") or _LOGICAL.get(str(details.get("logicalType", "")))
        if name is None and isinstance(details.get("logicalType"), str):
            return None  # no Connect type is certain for Avro's other logical types
        return str(name) if name is not None else ("" if self.from_connect else None)

    def _named(self, node: Any) -> Any:
        return self.named.get(node, node) if isinstance(node, str) and node not in _KINDS else node

    def _without_null(self, node: Any) -> tuple[Any, bool]:
        """Return the only branch besides null (a list if there are several), and whether null is one."""
        if not isinstance(node, list):
            return node, False
        others = [branch for branch in node[:MAX_UNIONS] if branch != "null"]
        return (others[0] if len(others) == 1 else others), len(others) < len(node)


def _parameters(details: Mapping[str, Any]) -> dict[str, str]:
    connect_parameters = details.get("connect.parameters")
    parameters = (
        {str(name): str(value) for name, value in connect_parameters.items()}
        if isinstance(connect_parameters, dict)
        else {}
    )
    if details.get("logicalType") == "decimal":
        parameters.setdefault("scale", str(details.get("scale", 0)))
        if "precision" in details:
            parameters.setdefault("connect.decimal.precision", str(details["precision"]))
    if details.get("type") == "enum" and isinstance(details.get("symbols"), list):
        parameters.setdefault("allowed", ",".join(map(str, details["symbols"])))
    return parameters


MAX_REFERENCES: Final = 20
_SEEN: Final = {
    "integer": "json_integer",
    "number": "json_number",
    "string": "json_string",
    "boolean": "json_boolean",
    "object": "json_object",
    "array": "json_array",
}
_JSON_SCHEMA_KINDS: Final = frozenset({"int8", "int16", "int32", "int64", "float32", "float64", "bytes", "map"})


class JsonSchemaReader:
    """Reads fields of a JSON Schema document (JSON whose depth was checked); resolves only local references."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self.from_connect = '"connect.' in str(document).replace("'", '"')

    def resolved(self, node: Any) -> dict[str, Any]:
        """Resolve local references; an external one gives an empty schema."""
        for _ in range(MAX_REFERENCES):
            if not isinstance(node, dict):
                return {}
            target = node.get("$ref")
            if not isinstance(target, str):
                return node
            node = self._at(target)
        return {}

    def _at(self, pointer: str) -> Any:
        if not pointer.startswith("#"):
            return {}
        node = self.document
        for part in filter(None, pointer[1:].split("/")):
            key = part.replace("~1", "/").replace("~0", "~")
            node = node.get(key) if isinstance(node, dict) else None
        return node

    def envelope_row(self, root: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the schema of `after` if the root is an envelope; None otherwise."""
        properties = root.get("properties")
        if not isinstance(properties, dict) or not {"after", "op"} <= properties.keys():
            return None
        return self._without_null(properties["after"])[0]

    def fields(self, node: Mapping[str, Any]) -> list[FieldShape] | None:
        """Return the properties as fields; None without properties."""
        properties = node.get("properties")
        if not isinstance(properties, dict):
            return None
        listed = node.get("required")
        required = listed if isinstance(listed, list) else []
        return [self._field(str(name), schema, name in required) for name, schema in properties.items()]

    def _field(self, name: str, node: Any, required: bool) -> FieldShape:
        schema, nullable = self._without_null(node)
        kind, logical = self._kind(schema)
        parameters = schema.get("connect.parameters")
        items = schema.get("items") if kind in ("array", "json_array") else None
        # To readers of rows, a property that isn't required may be null.
        return FieldShape(
            name,
            kind,
            logical,
            optional=nullable or not (required or self.from_connect),
            parameters={str(key): str(value) for key, value in parameters.items()}
            if isinstance(parameters, dict)
            else {},
            default=_plain_default(kind, schema.get("default")),
            items=self._field("", items, False) if isinstance(items, dict) else None,
        )

    def _kind(self, schema: Mapping[str, Any]) -> tuple[Any, str | None]:
        title = schema.get("title")
        own = schema.get("connect.type")
        if own in _JSON_SCHEMA_KINDS:
            return own, title if isinstance(title, str) else ""
        declared = schema.get("type")
        kind = _SEEN.get(declared) if isinstance(declared, str) else None
        if kind is None:
            return "unknown", None
        if self.from_connect and isinstance(title, str):
            plain = {"json_object": "struct", "json_string": "string", "json_array": "array", "json_boolean": "boolean"}
            return plain.get(kind, kind), title
        return kind, None

    def _without_null(self, node: Any) -> tuple[dict[str, Any], bool]:
        """Return the only alternative besides null, and whether null is one."""
        schema = self.resolved(node)
        for word in ("oneOf", "anyOf"):
            branches = schema.get(word)
            if isinstance(branches, list):
                others = [self.resolved(branch) for branch in branches if self.resolved(branch).get("type") != "null"]
                return (others[0] if len(others) == 1 else {}), len(others) < len(branches)
        listed = schema.get("type")
        if isinstance(listed, list):
            others_named = [branch for branch in listed if branch != "null"]
            one = {**schema, "type": others_named[0] if len(others_named) == 1 else others_named}
            return one, "null" in listed
        return schema, False


SchemaLanguage = Literal["AVRO", "JSON", "CONNECT"]
LANGUAGES: Final[tuple[SchemaLanguage, ...]] = get_args(SchemaLanguage)
MAX_FIELDS: Final = 5_000
MOST_PATHS: Final = 500  # per side of a topic in a scan's profile


class UnreadableShape(ValueError):
    """A schema that doesn't describe a row; the message says why."""


@dataclass(frozen=True)
class SchemaText:
    """A schema in one of the three languages; `label` identifies it for people, such as `version 3 (id 12)`."""

    language: SchemaLanguage
    text: str
    label: str = ""


def row_of(schema: SchemaText, side: Side) -> RowShape:
    """Return the row or key of a schema. Raises UnreadableShape."""
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
        raise UnreadableShape(f"it isn't a row schema ({type(error).__name__})") from error
    if len(fields) > MAX_FIELDS:
        raise UnreadableShape(f"it has more than {MAX_FIELDS} fields")
    return RowShape({shape.name: shape for shape in fields})


def _avro(value: Any, side: Side) -> list[FieldShape]:
    reader = AvroReader(value)
    record = reader.record(value)
    if record is None:
        raise UnreadableShape("its type isn't a record")
    after = reader.envelope_row(record) if side == "value" else None
    return reader.fields(after or record)


def _json_schema(value: Any, side: Side) -> list[FieldShape]:
    reader = JsonSchemaReader(value)
    root = reader.resolved(value)
    after = reader.envelope_row(root) if side == "value" else None
    fields = reader.fields(after or root)
    if fields is None:
        raise UnreadableShape("it declares no properties")
    return fields


def _plain_default(kind: str, default: Any) -> object:
    """Return a default in JSON as Avro has it: bytes are a text of one character each, not base64."""
    if default is None:
        return NO_DEFAULT
    if kind != "bytes" or not isinstance(default, str):
        return default
    try:
        return base64.b64decode(default, validate=True).decode("latin-1")
    except ValueError:
        return UNKNOWN_DEFAULT


_CONNECT_KINDS: Final = {"float": "float32", "double": "float64"}


def _connect(value: Any, side: Side) -> list[FieldShape]:
    """Read Kafka Connect's JSON form of a schema, as JsonConverter writes it."""
    if value["type"] != "struct":
        raise UnreadableShape("its type isn't a struct")
    named = {field["field"]: field for field in value["fields"]}
    row = value
    if side == "value" and {"after", "op"} <= named.keys():
        row = named["after"]
    elif side == "value" and {"op", "message", "source"} <= named.keys():
        raise UnreadableShape("it is a message event's schema, not a row's")
    return [replace(_connect_field(field), name=str(field["field"])) for field in row["fields"]]


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
        parameters={str(name): str(setting) for name, setting in parameters.items()} if parameters else {},
        default=_plain_default(kind, value.get("default")),
        items=_connect_field(items) if kind == "array" and isinstance(items, dict) else None,
    )


_READERS: Final[dict[SchemaLanguage, Callable[[Any, Side], list[FieldShape]]]] = {
    "AVRO": _avro,
    "JSON": _json_schema,
    "CONNECT": _connect,
}

# ---- JSON without a schema ----------------------------------------------------------------------------------------


def row_of_profiles(profiles: Iterable[FieldProfile], side: Side, before: RowShape | None = None) -> RowShape | None:
    """Return the newest row or key in a topic's JSON data; `before` if no row was seen.

    `before` is the row of earlier messages. If only some of these messages have a field, it was added or dropped
    meanwhile: the earlier messages say which. Without them, the field is in `partly`. The shape isn't exact if the scan
    omitted names: it masks those that don't look like names (the path `{}`) and follows a limited number of paths.
    """
    own = {profile.path: profile for profile in profiles if profile.side == side and profile.framing is None}
    if side == "value" and "after" in own and "op" in own:
        parent, prefix = "after", "after."
        rows = own["after"].present - own["after"].nulls
    else:
        parent, prefix = "", ""
        rows = max((profile.messages for profile in own.values()), default=0)
    fields, partly = {}, set()
    earlier = before or RowShape({}, exact=False)
    for path, profile in own.items() if rows else ():
        name = path.removeprefix(prefix)
        if not name or not path.startswith(prefix) or not profile.present or _is_below(name, prefix, own):
            continue
        known = earlier.fields.get(name)
        if profile.present < rows and known is not None and name not in earlier.partly:
            continue  # dropped
        # It is unknown whether a null is from before or after a change.
        fields[name] = FieldShape(name, _seen_kind(profile, known), None)
        if profile.present < rows and (known is not None or not earlier.exact):
            partly.add(name)
    exact = f"{parent}{{}}" not in own and len(own) < MOST_PATHS
    return RowShape(fields, exact, frozenset(partly)) if fields else before


def _is_below(name: str, prefix: str, own: Mapping[str, FieldProfile]) -> bool:
    """Return whether a path is inside a field's value; a column's name may contain a dot."""
    if "[]" in name or "{}" in name:
        return True
    parts = name.split(".")
    return any(prefix + ".".join(parts[:number]) in own for number in range(1, len(parts)))


_NUMBERS: Final = frozenset({"integer", "number"})


def _seen_kind(profile: FieldProfile, before: FieldShape | None) -> Any:
    """Return the kind of the newest values: that of earlier ones if all are null, the other of two kinds otherwise."""
    kinds = {kind for kind, count in profile.kinds.items() if count and kind != "null"}
    earlier = before.kind.removeprefix("json_") if before is not None else "unknown"
    if not kinds and before is not None:
        return before.kind
    others = kinds - (_NUMBERS if earlier in _NUMBERS else {earlier})
    kinds = others if others and earlier != "unknown" else kinds
    if kinds == _NUMBERS:
        return "json_number"
    return f"json_{kinds.pop()}" if len(kinds) == 1 else "unknown"
