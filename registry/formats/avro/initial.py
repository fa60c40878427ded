"""A default for a field that has none: null where that is allowed, else the emptiest value of its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from registry.formats.avro.model import AvroType, Enum, Fixed, Record, Union
from registry.formats.json_edit import NoSuchPlace

_MAX_DEPTH: Final = 20
_MAX_FIXED: Final = 64
_VALUES: Final[Mapping[str, Any]] = {
    "null": None,
    "boolean": False,
    "int": 0,
    "long": 0,
    "float": 0.0,
    "double": 0.0,
    "bytes": "",
    "string": "",
    "array": [],
    "map": {},
}


def initial_value(type_: AvroType, depth: int = 0) -> Any:
    """The JSON value of a default; raises NoSuchPlace where the type has no value that a text should hold."""
    if depth > _MAX_DEPTH:
        raise NoSuchPlace("default")
    if isinstance(type_, Union):
        if not type_.branches:
            raise NoSuchPlace("default")
        has_null = any(branch.kind == "null" for branch in type_.branches)
        return None if has_null else initial_value(type_.branches[0], depth + 1)
    if isinstance(type_, Record):
        return {
            field.name: field.default if field.has_default else initial_value(field.type, depth + 1)
            for field in type_.fields
        }
    if isinstance(type_, Enum):
        if not type_.symbols:
            raise NoSuchPlace("default")
        return type_.default if type_.default is not None else type_.symbols[0]
    if isinstance(type_, Fixed):
        if type_.size > _MAX_FIXED:
            raise NoSuchPlace("default")
        return "\x00" * type_.size
    return _VALUES[type_.kind]
