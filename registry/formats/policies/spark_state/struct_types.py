"""Spark's StructType, parsed from its JSON, and the Avro schema that Spark 4.2 stores it with."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, Final

from registry.errors import InvalidSchema

MAX_DEPTH: Final = 100
MAX_FIELDS: Final = 20_000
_DECIMAL: Final = re.compile(r"decimal\((\d{1,2}),(-?\d{1,2})\)")


@dataclass(frozen=True, slots=True)
class Atomic:
    """A type without parts, with Spark's JSON name: `integer`, `string`, `decimal(10,2)`, `void` …"""

    name: str

    @property
    def decimal(self) -> tuple[int, int] | None:
        """Precision and scale; None for all other types."""
        match = _DECIMAL.fullmatch(self.name)
        return (int(match[1]), int(match[2])) if match else None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array of `element`."""

    element: SparkType
    contains_null: bool

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """A map from `key` to `value`."""

    key: SparkType
    value: SparkType
    value_contains_null: bool

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


@dataclass(frozen=True, slots=True)
class StructField:
    """A field of a struct; `metadata` is JSON text with sorted keys, and is part of comparisons."""

    name: str
    type: SparkType
    nullable: bool
    metadata: str = "{}"


@dataclass(frozen=True, slots=True)
class StructType:
    """A struct; the order of its fields matters."""

    fields: tuple[StructField, ...] = dataclass_field(default=())

    def __str__(self) -> str:
        shown = ",".join(f"{field.name}:{field.type}" for field in self.fields[:8])
        return f"struct<{shown}{',…' if len(self.fields) > 8 else ''}>"


SparkType = Atomic | ArrayType | MapType | StructType


def parse_struct(schema: str | Mapping[str, Any]) -> StructType:
    """Parse a StructType from JSON text or values; raises InvalidSchema with the place and the expected value."""
    value: Any = schema
    if isinstance(schema, str):
        try:
            value = json.loads(schema)
        except (ValueError, RecursionError) as error:
            raise InvalidSchema(f"this is not JSON, so it is not a Spark StructType: {error}") from None
    parsed = _Parser().type(value, "", 0)
    if not isinstance(parsed, StructType):
        raise InvalidSchema(f"a StructType is expected, found {_shown(parsed)}")
    return parsed


def label(type_: SparkType) -> str:
    """Return a type for people, at most 200 characters."""
    return _shown(type_)


def below(path: str, name: str) -> str:
    """Return the path of a field inside a struct; the value itself has the empty path."""
    return f"{path}.{name}" if path else name


def as_nullable(type_: SparkType) -> SparkType:
    """Return the type with every field, element and value nullable, as Spark does for a Scala state variable."""
    if isinstance(type_, StructType):
        fields = (StructField(field.name, as_nullable(field.type), True, field.metadata) for field in type_.fields)
        return StructType(tuple(fields))
    if isinstance(type_, ArrayType):
        return ArrayType(as_nullable(type_.element), True)
    if isinstance(type_, MapType):
        return MapType(as_nullable(type_.key), as_nullable(type_.value), True)
    return type_


class _Parser:
    """A reader of one schema that counts its fields."""

    def __init__(self) -> None:
        self._fields = 0

    def type(self, value: Any, path: str, depth: int) -> SparkType:
        """Return the type in JSON values."""
        if depth > MAX_DEPTH:
            raise InvalidSchema(f"the StructType is nested more than {MAX_DEPTH} levels deep")
        if isinstance(value, str):
            return Atomic("decimal(10,0)" if value == "decimal" else value)
        if isinstance(value, Mapping):
            match value.get("type"):
                case "struct":
                    return self._struct(value, path, depth)
                case "array":
                    element = self.type(value.get("elementType"), f"{path}[]", depth + 1)
                    return ArrayType(element, _flag(value, "containsNull", path))
                case "map":
                    key = self.type(value.get("keyType"), f"{path}{{key}}", depth + 1)
                    inner = self.type(value.get("valueType"), f"{path}{{}}", depth + 1)
                    return MapType(key, inner, _flag(value, "valueContainsNull", path))
                case "udt":
                    return Atomic("udt " + str(value.get("class") or value.get("pyClass") or "")[:100])
        raise InvalidSchema(f"{path or 'the schema'} has no type that Spark writes: {str(value)[:80]!r}")

    def _struct(self, value: Mapping[str, Any], path: str, depth: int) -> StructType:
        listed = value.get("fields")
        if not isinstance(listed, list):
            raise InvalidSchema(f"{path or 'the schema'} is a struct without a list of fields")
        self._fields += len(listed)
        if self._fields > MAX_FIELDS:
            raise InvalidSchema(f"the StructType has more than {MAX_FIELDS} fields")
        return StructType(tuple(self._field(field, path, depth) for field in listed))

    def _field(self, value: Any, path: str, depth: int) -> StructField:
        if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
            raise InvalidSchema(f"{path or 'the schema'} has a field without a name: {str(value)[:80]!r}")
        name = value["name"]
        here = below(path, name)
        metadata = value.get("metadata")
        return StructField(
            name,
            self.type(value.get("type"), here, depth + 1),
            _flag(value, "nullable", here),
            json.dumps(metadata, sort_keys=True) if isinstance(metadata, Mapping) else "{}",
        )


def _flag(value: Mapping[str, Any], key: str, path: str) -> bool:
    flag = value.get(key)
    if not isinstance(flag, bool):
        raise InvalidSchema(f"{path or 'the schema'} needs {key} as true or false, found {str(flag)[:40]!r}")
    return flag


def _shown(type_: SparkType) -> str:
    text = str(type_)
    return text if len(text) <= 200 else text[:199] + "…"


# Spark's type → (Avro's type, logical type)
AVRO_TYPES: Final[Mapping[str, tuple[str, str | None]]] = {
    "void": ("null", None),
    "boolean": ("boolean", None),
    "byte": ("int", None),
    "short": ("int", None),
    "integer": ("int", None),
    "long": ("long", None),
    "date": ("int", "date"),
    "timestamp": ("long", "timestamp-micros"),
    "timestamp_ntz": ("long", "local-timestamp-micros"),
    "float": ("float", None),
    "double": ("double", None),
    "string": ("string", None),
    "binary": ("bytes", None),
}


@dataclass(frozen=True, slots=True)
class NoAvroForm:
    """Why a value schema can't be converted: the exception that Spark stops with, the field, and the reason."""

    error: str
    path: str
    reason: str


def why_no_avro(type_: SparkType, path: str = "") -> NoAvroForm | None:
    """Return the first reason, in the order of the fields, why Spark can't convert a type; None if it can."""
    if isinstance(type_, StructType):
        return _why_no_record(type_, path)
    if isinstance(type_, ArrayType):
        return why_no_avro(type_.element, f"{path}[]")
    if isinstance(type_, MapType):
        if type_.key != Atomic("string"):
            return NoAvroForm(
                "IncompatibleSchemaException", path, f"the key of a map must be a string, not {type_.key}"
            )
        return why_no_avro(type_.value, f"{path}{{}}")
    if type_.decimal is None and type_.name not in AVRO_TYPES:
        return NoAvroForm("IncompatibleSchemaException", path, f"{type_.name} has no Avro type")
    return None


def _why_no_record(struct: StructType, path: str) -> NoAvroForm | None:
    names: set[str] = set()
    for field in struct.fields:
        here = below(path, field.name)
        # Spark converts a field's type before Avro checks its name.
        obstacle = why_no_avro(field.type, here)
        if obstacle is None and not _is_name(field.name):
            obstacle = NoAvroForm("SchemaParseException", here, f'"{field.name}" is not a valid Avro name')
        if obstacle is not None:
            return obstacle
    for field in struct.fields:
        if field.name in names:
            here = below(path, field.name)
            return NoAvroForm("AvroRuntimeException", here, "the field appears twice")
        names.add(field.name)
    return None


def _is_name(name: str) -> bool:
    """Return whether Avro accepts the name: a letter of any script or `_`, then also digits, by Java's definition."""
    first, rest = name[:1], name[1:]
    return (_is_letter(first) or first == "_") and all(
        _is_letter(char) or char == "_" or _is_digit(char) for char in rest
    )


def _is_letter(char: str) -> bool:
    # Java checks UTF-16 units, so a character beyond the basic plane isn't a letter.
    return char != "" and ord(char) <= 0xFFFF and unicodedata.category(char) in ("Lu", "Ll", "Lt", "Lm", "Lo")


def _is_digit(char: str) -> bool:
    return ord(char) <= 0xFFFF and unicodedata.category(char) == "Nd"


def to_avro(struct: StructType) -> dict[str, Any]:
    """Return the Avro schema as JSON values, with names defined at every use; raises ValueError if there is none."""
    reason = why_no_avro(struct)
    if reason is not None:
        raise ValueError(f"{reason.path}: {reason.reason}")
    return _record(struct, "topLevelRecord")


def _record(struct: StructType, name: str) -> dict[str, Any]:
    fields = []
    for field in struct.fields:
        inner = _avro(field.type, field.name)
        is_told = inner == "null" or isinstance(inner, list)
        fields.append({"name": field.name, "type": inner if is_told else ["null", inner], "default": None})
    return {"type": "record", "name": name, "fields": fields}


def _avro(type_: SparkType, name: str) -> Any:
    if isinstance(type_, StructType):
        return ["null", _record(type_, name)]
    if isinstance(type_, ArrayType):
        return ["null", {"type": "array", "items": _avro(type_.element, name)}]
    if isinstance(type_, MapType):
        return ["null", {"type": "map", "values": _avro(type_.value, name)}]
    if type_.decimal is not None:
        precision, scale = type_.decimal
        decimal = {"logicalType": "decimal", "precision": precision, "scale": scale}
        return {"type": "fixed", "name": "fixed", "namespace": name, "size": decimal_bytes(precision), **decimal}
    avro, logical = AVRO_TYPES[type_.name]
    return avro if logical is None else {"type": avro, "logicalType": logical}


def shared_names(struct: StructType) -> Iterator[tuple[str, str]]:
    """Yield (path, path of the first) of fields whose Avro types share a name but differ: structs or decimals.

    Avro's text of a schema defines a name only once, so it can't distinguish the two. The value must have an Avro form.
    """
    first: dict[str, tuple[str, Any]] = {}
    stack: list[tuple[SparkType, str, str]] = [
        (field.type, field.name, field.name) for field in reversed(struct.fields)
    ]
    while stack:
        type_, name, path = stack.pop()
        if isinstance(type_, ArrayType):
            stack.append((type_.element, name, f"{path}[]"))
        elif isinstance(type_, MapType):
            stack.append((type_.value, name, f"{path}{{}}"))
        elif isinstance(type_, StructType) or type_.decimal is not None:
            full_name = name if isinstance(type_, StructType) else f"{name}.fixed"
            first_path, definition = first.setdefault(full_name, (path, _avro(type_, name)))
            if definition != _avro(type_, name):
                yield path, first_path
            if isinstance(type_, StructType):
                stack.extend((field.type, field.name, below(path, field.name)) for field in reversed(type_.fields))


def names_differing_in_case(type_: SparkType, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (path, name of the first) of fields whose name equals an earlier one of the struct except for case."""
    if isinstance(type_, StructType):
        first: dict[str, str] = {}
        for field in type_.fields:
            first_name = first.setdefault(field.name.lower(), field.name)
            if first_name != field.name:
                yield below(path, field.name), first_name
            yield from names_differing_in_case(field.type, below(path, field.name))
    elif isinstance(type_, ArrayType):
        yield from names_differing_in_case(type_.element, f"{path}[]")
    elif isinstance(type_, MapType):
        yield from names_differing_in_case(type_.value, f"{path}{{}}")


def decimal_bytes(precision: int) -> int:
    """Return the number of bytes that Spark uses for the unscaled value of a decimal with that precision."""
    size = 1
    while 2 ** (8 * size - 1) < 10**precision:
        size += 1
    return size


def spark_json(type_: SparkType) -> Any:
    """Return a type as StructType JSON."""
    if isinstance(type_, StructType):
        fields = [
            {"name": field.name, "type": spark_json(field.type), "nullable": field.nullable, "metadata": {}}
            for field in type_.fields
        ]
        return {"type": "struct", "fields": fields}
    if isinstance(type_, ArrayType):
        return {"type": "array", "elementType": spark_json(type_.element), "containsNull": type_.contains_null}
    if isinstance(type_, MapType):
        return {
            "type": "map",
            "keyType": spark_json(type_.key),
            "valueType": spark_json(type_.value),
            "valueContainsNull": type_.value_contains_null,
        }
    return type_.name
