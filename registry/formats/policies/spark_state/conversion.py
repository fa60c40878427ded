"""The Avro schema that Spark 4.2 stores a state variable's value with.

Every field of a struct is nullable with the default null, whatever its type says; a nested struct is always a union
with null, and so are arrays and maps; the elements of an array and the values of a map are not, unless they are one of
these. A record is named after its field, the fixed of a decimal `fixed` in the field's name as namespace. Types that
aren't in the table have no Avro form: such a value can neither evolve nor be written with the Avro encoding.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from registry.formats.policies.spark_state.types import ArrayType, Atomic, MapType, SparkType, StructType, below

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
    """Why a value schema can't be converted: the exception that Spark stops with, the field, and its words."""

    error: str
    path: str
    reason: str


def why_no_avro(type_: SparkType, path: str = "") -> NoAvroForm | None:
    """The first reason, in the order of the fields, why Spark can't convert a type; None if it can."""
    if isinstance(type_, StructType):
        return _why_no_record(type_, path)
    if isinstance(type_, ArrayType):
        return why_no_avro(type_.element, f"{path}[]")
    if isinstance(type_, MapType):
        if type_.key != Atomic("string"):
            return NoAvroForm("IncompatibleSchemaException", path, f"a map's key must be string, not {type_.key}")
        return why_no_avro(type_.value, f"{path}{{}}")
    if type_.decimal is None and type_.name not in AVRO_TYPES:
        return NoAvroForm("IncompatibleSchemaException", path, f"{type_.name} has no Avro type")
    return None


def _why_no_record(struct: StructType, path: str) -> NoAvroForm | None:
    names: set[str] = set()
    for field in struct.fields:
        here = below(path, field.name)
        # Spark converts a field's type before Avro looks at its name.
        found = why_no_avro(field.type, here)
        if found is None and not _is_name(field.name):
            found = NoAvroForm("SchemaParseException", here, f'"{field.name}" is no name for Avro')
        if found is not None:
            return found
    for field in struct.fields:
        if field.name in names:
            here = below(path, field.name)
            return NoAvroForm("AvroRuntimeException", here, "the field is there twice")
        names.add(field.name)
    return None


def _is_name(name: str) -> bool:
    """Whether Avro takes the name: a letter of any script or `_`, then also digits; as Java sees characters."""
    first, rest = name[:1], name[1:]
    return (_is_letter(first) or first == "_") and all(
        _is_letter(char) or char == "_" or _is_digit(char) for char in rest
    )


def _is_letter(char: str) -> bool:
    # Java looks at UTF-16 units, so a character beyond the basic plane is no letter.
    return char != "" and ord(char) <= 0xFFFF and unicodedata.category(char) in ("Lu", "Ll", "Lt", "Lm", "Lo")


def _is_digit(char: str) -> bool:
    return ord(char) <= 0xFFFF and unicodedata.category(char) == "Nd"


def to_avro(struct: StructType) -> dict[str, Any]:
    """The Avro schema as JSON values, names defined wherever they are used; raises ValueError where why_no_avro says why."""
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
    """(path, path of the first) of fields whose Avro types share a name and differ: structs, or decimals.

    Avro's text of a schema defines a name once, so it can't tell the two apart. The value must have an Avro form.
    """
    first: dict[str, tuple[str, Any]] = {}
    stack: list[tuple[SparkType, str, str]] = [(each.type, each.name, each.name) for each in reversed(struct.fields)]
    while stack:
        type_, name, path = stack.pop()
        if isinstance(type_, ArrayType):
            stack.append((type_.element, name, f"{path}[]"))
        elif isinstance(type_, MapType):
            stack.append((type_.value, name, f"{path}{{}}"))
        elif isinstance(type_, StructType) or type_.decimal is not None:
            full_name = name if isinstance(type_, StructType) else f"{name}.fixed"
            known, definition = first.setdefault(full_name, (path, _avro(type_, name)))
            if definition != _avro(type_, name):
                yield path, known
            if isinstance(type_, StructType):
                stack.extend((each.type, each.name, below(path, each.name)) for each in reversed(type_.fields))


def names_differing_in_case(type_: SparkType, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, name of the first) of fields whose name is that of an earlier field of the same struct but for its case."""
    if isinstance(type_, StructType):
        first: dict[str, str] = {}
        for field in type_.fields:
            known = first.setdefault(field.name.lower(), field.name)
            if known != field.name:
                yield below(path, field.name), known
            yield from names_differing_in_case(field.type, below(path, field.name))
    elif isinstance(type_, ArrayType):
        yield from names_differing_in_case(type_.element, f"{path}[]")
    elif isinstance(type_, MapType):
        yield from names_differing_in_case(type_.value, f"{path}{{}}")


def decimal_bytes(precision: int) -> int:
    """How many bytes Spark gives to the unscaled value of a decimal of that precision."""
    size = 1
    while 2 ** (8 * size - 1) < 10**precision:
        size += 1
    return size
