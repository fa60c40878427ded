"""A subject's schema as Spark reads it, and the version that a state schema was most likely taken from. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from registry.errors import InvalidSchema
from registry.formats.policies.spark_state.struct_types import (
    ArrayType,
    Atomic,
    MapType,
    SparkType,
    StructField,
    StructType,
    below,
    parse_struct,
)

MIN_FIELDS: Final = 2  # a single name doesn't show where it came from
MAX_STRUCTS: Final = 200  # per value
MAX_DEPTH: Final = 40
MAX_PARTS: Final = 20_000  # per schema, with names expanded
_PLAIN: Final = {
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "enum": "string",
    "bytes": "binary",
    "fixed": "binary",
}
_LOGICAL: Final = {
    ("int", "date"): "date",
    ("long", "timestamp-millis"): "timestamp",
    ("long", "timestamp-micros"): "timestamp",
    ("long", "local-timestamp-millis"): "timestamp_ntz",
    ("long", "local-timestamp-micros"): "timestamp_ntz",
}
# (the subject's type, the state's): the state can hold every value of the subject's, as sums and counts should
_WIDER: Final = frozenset(
    {
        ("integer", "long"),
        ("integer", "float"),
        ("integer", "double"),
        ("long", "float"),
        ("long", "double"),
        ("float", "double"),
    }
)
_UNKNOWN: Final = Atomic("unknown")


@dataclass(frozen=True)
class SparkVersionSchema:
    """A version of a subject as Spark's `from_avro` returns it; times are milliseconds since 1970."""

    context: str
    subject: str
    version: int
    registered_at: int
    shape: StructType


@dataclass(frozen=True)
class MatchedStruct:
    """A struct of a state value (`path`, "" for the value itself), and a version that has all of its fields."""

    path: str
    fields: tuple[str, ...]
    version: SparkVersionSchema


@lru_cache(maxsize=512)
def spark_shape(avro_text: str) -> StructType | None:
    """Return the struct that Spark makes of an Avro record; None if it isn't one or needs other schemas to be read."""
    try:
        schema = json.loads(avro_text)
    except (ValueError, RecursionError):
        return None
    shape = _Converter().type(schema, 0)
    return shape if isinstance(shape, StructType) else None


class _Converter:
    """A converter of one schema; it looks up names defined before, and doesn't follow recursive ones.

    A name that is used again counts with all of its parts: a small text can mean an endless type.
    """

    def __init__(self) -> None:
        self._named: dict[str, tuple[SparkType, int]] = {}
        self._left = MAX_PARTS

    def type(self, schema: Any, depth: int) -> SparkType:
        self._left -= 1
        if depth > MAX_DEPTH or self._left < 0:
            return _UNKNOWN
        if isinstance(schema, list):
            return self._union(schema, depth)
        if isinstance(schema, str):
            return Atomic(_PLAIN[schema]) if schema in _PLAIN else self._known(schema)
        if not isinstance(schema, dict):
            return _UNKNOWN
        kind = schema.get("type")
        if kind in ("record", "error"):
            return self._record(schema, depth)
        if kind == "array":
            return ArrayType(self.type(schema.get("items"), depth + 1), True)
        if kind == "map":
            return MapType(Atomic("string"), self.type(schema.get("values"), depth + 1), True)
        if not isinstance(kind, str):
            return self.type(kind, depth + 1)
        atomic = self._atomic(schema, kind)
        if kind in ("enum", "fixed"):
            self._name(schema, atomic, 1)
        return atomic

    def _atomic(self, schema: Mapping[str, Any], kind: str) -> SparkType:
        logical = schema.get("logicalType")
        if logical == "decimal" and kind in ("bytes", "fixed"):
            return Atomic(f"decimal({schema.get('precision')},{schema.get('scale', 0)})")
        name = _LOGICAL.get((kind, logical)) if isinstance(logical, str) else None
        return Atomic(name) if name else self.type(kind, MAX_DEPTH) if kind not in _PLAIN else Atomic(_PLAIN[kind])

    def _union(self, branches: Sequence[Any], depth: int) -> SparkType:
        kinds = [branch for branch in branches if branch != "null"]
        if len(kinds) == 1:
            return self.type(kinds[0], depth + 1)
        if set(map(str, kinds)) == {"int", "long"}:
            return Atomic("long")
        return Atomic("double") if set(map(str, kinds)) == {"float", "double"} else _UNKNOWN

    def _record(self, schema: Mapping[str, Any], depth: int) -> SparkType:
        listed = schema.get("fields")
        fields = [field for field in listed if isinstance(field, dict)] if isinstance(listed, list) else []
        self._name(schema, _UNKNOWN, 1)
        before = self._left
        made = StructType(
            tuple(
                StructField(str(field.get("name")), self.type(field.get("type"), depth + 1), True) for field in fields
            )
        )
        self._name(schema, made, before - self._left)
        return made

    def _known(self, name: str) -> SparkType:
        made, parts = self._named.get(name, (_UNKNOWN, 1))
        self._left -= parts
        return made if self._left >= 0 else _UNKNOWN

    def _name(self, schema: Mapping[str, Any], made: SparkType, parts: int) -> None:
        name, space = str(schema.get("name", "")), schema.get("namespace")
        self._named[name] = made, parts
        if isinstance(space, str) and space and "." not in name:
            self._named[f"{space}.{name}"] = made, parts


def structs_of(value_schema: str) -> list[tuple[str, StructType]]:
    """Return the structs of a state value with their paths, the value itself first; empty if it isn't a StructType."""
    try:
        value = parse_struct(value_schema)
    except InvalidSchema:
        return []
    return [item for item, _ in zip(_below("", value), range(MAX_STRUCTS), strict=False)]


def _below(path: str, type_: SparkType) -> Iterator[tuple[str, StructType]]:
    if isinstance(type_, StructType):
        yield path, type_
        for field in type_.fields:
            yield from _below(below(path, field.name), field.type)
    elif isinstance(type_, ArrayType):
        yield from _below(f"{path}[]", type_.element)
    elif isinstance(type_, MapType):
        yield from _below(f"{path}{{}}", type_.value)


def names_and_types(struct: StructType) -> dict[str, str]:
    """Return the types of a struct's fields, by name."""
    return {field.name: str(field.type) for field in struct.fields}


def carried_versions(
    value_schema: str, written_at: int | None, versions: Sequence[SparkVersionSchema]
) -> list[MatchedStruct]:
    """Return the version that each struct of a state value was most likely taken from, for each subject.

    A struct carries a version if it has at least MIN_FIELDS fields and the version has all of them, by name and type.
    Of several, versions with exactly these fields come first; of those, the newest that was registered before the
    schema was written, else the oldest.
    """
    carried = []
    subjects = sorted({(version.context, version.subject) for version in versions})
    for path, struct in structs_of(value_schema):
        fields = names_and_types(struct)
        if len(fields) < MIN_FIELDS:
            continue
        for subject in subjects:
            fitting = [
                version
                for version in versions
                if (version.context, version.subject) == subject
                and fields.items() <= names_and_types(version.shape).items()
            ]
            if fitting:
                carried.append(MatchedStruct(path, tuple(fields), _likeliest(fitting, len(fields), written_at)))
    return carried


def _likeliest(fitting: Sequence[SparkVersionSchema], fields: int, written_at: int | None) -> SparkVersionSchema:
    exact = [version for version in fitting if len(version.shape.fields) == fields]
    earlier = [version for version in exact or fitting if written_at is None or version.registered_at <= written_at]
    return (
        max(earlier, key=lambda version: version.version)
        if earlier
        else min(exact or fitting, key=lambda version: version.version)
    )


def departures(value_schema: str, latest: StructType) -> list[tuple[str, str, str]]:
    """Return fields whose type in the state isn't the subject's: (path, type in the state, type in the subject).

    Only structs that share at least MIN_FIELDS names with the subject are compared; a wider type of a number in the
    state isn't a departure.
    """
    declared = names_and_types(latest)
    result = []
    for path, struct in structs_of(value_schema):
        state_types = names_and_types(struct)
        shared = [name for name in state_types if name in declared]
        if len(shared) >= MIN_FIELDS:
            result += [
                (below(path, name), state_types[name], declared[name])
                for name in shared
                if state_types[name] != declared[name]
                and (declared[name], state_types[name]) not in _WIDER
                and "unknown" not in declared[name]
            ]
    return result
