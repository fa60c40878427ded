"""Spark's StructType, read from its JSON: frozen values that compare as Spark compares them.

Limits keep a hostile schema cheap: MAX_FIELDS fields in all, MAX_DEPTH levels.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from registry.errors import InvalidSchema

MAX_DEPTH: Final = 100
MAX_FIELDS: Final = 20_000
_DECIMAL: Final = re.compile(r"decimal\((\d{1,2}),(-?\d{1,2})\)")


@dataclass(frozen=True, slots=True)
class Atomic:
    """A type without parts, by Spark's JSON name: `integer`, `string`, `decimal(10,2)`, `void` …"""

    name: str

    @property
    def decimal(self) -> tuple[int, int] | None:
        """Precision and scale, None for all other types."""
        found = _DECIMAL.fullmatch(self.name)
        return (int(found[1]), int(found[2])) if found else None

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
    """A field of a struct; `metadata` is JSON text with sorted keys, and counts when schemas are compared."""

    name: str
    type: SparkType
    nullable: bool
    metadata: str = "{}"


@dataclass(frozen=True, slots=True)
class StructType:
    """A struct; the order of its fields counts."""

    fields: tuple[StructField, ...] = field(default=())

    def __str__(self) -> str:
        shown = ",".join(f"{each.name}:{each.type}" for each in self.fields[:8])
        return f"struct<{shown}{',…' if len(self.fields) > 8 else ''}>"


SparkType = Atomic | ArrayType | MapType | StructType


def parse_struct(given: str | Mapping[str, Any]) -> StructType:
    """The StructType in JSON text or in its values; raises InvalidSchema that names the place and what was expected."""
    value: Any = given
    if isinstance(given, str):
        try:
            value = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise InvalidSchema(f"this is no JSON, so no StructType of Spark: {error}") from None
    parsed = _Parser().type(value, "", 0)
    if not isinstance(parsed, StructType):
        raise InvalidSchema(f"a StructType is expected, found {_shown(parsed)}")
    return parsed


def label(type_: SparkType) -> str:
    """A type for people, at most 200 characters."""
    return _shown(type_)


def below(path: str, name: str) -> str:
    """The path of a field inside of a struct; the value itself has the empty path."""
    return f"{path}.{name}" if path else name


def as_nullable(type_: SparkType) -> SparkType:
    """The type with every field, element and value nullable, as Spark makes a Scala state variable's."""
    if isinstance(type_, StructType):
        fields = (StructField(each.name, as_nullable(each.type), True, each.metadata) for each in type_.fields)
        return StructType(tuple(fields))
    if isinstance(type_, ArrayType):
        return ArrayType(as_nullable(type_.element), True)
    if isinstance(type_, MapType):
        return MapType(as_nullable(type_.key), as_nullable(type_.value), True)
    return type_


class _Parser:
    """Reads one schema and counts its fields."""

    def __init__(self) -> None:
        self._fields = 0

    def type(self, value: Any, path: str, depth: int) -> SparkType:
        """The type in JSON values."""
        if depth > MAX_DEPTH:
            raise InvalidSchema(f"the StructType is nested deeper than {MAX_DEPTH} levels")
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
        return StructType(tuple(self._field(each, path, depth) for each in listed))

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
    found = value.get(key)
    if not isinstance(found, bool):
        raise InvalidSchema(f"{path or 'the schema'} needs {key} as true or false, found {str(found)[:40]!r}")
    return found


def _shown(type_: SparkType) -> str:
    text = str(type_)
    return text if len(text) <= 200 else text[:199] + "…"
