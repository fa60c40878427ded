"""One model of a row's columns, in Kafka Connect's terms, for the table, the registered schema and the events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

ConnectType = Literal[
    "int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string", "bytes", "struct", "array", "map"
]
#: of values whose schema nobody tells: JSON's own kinds, and nothing at all
SeenType = Literal["json_integer", "json_number", "json_string", "json_boolean", "json_object", "json_array", "unknown"]
Kind = ConnectType | SeenType


@dataclass(frozen=True)
class Unset:
    """A default that isn't there (`no default`), or isn't known (`unknown`): neither is null."""

    word: str


NO_DEFAULT: Final = Unset("no default")
UNKNOWN_DEFAULT: Final = Unset("unknown")


@dataclass(frozen=True)
class FieldShape:
    """A column as a field. `logical` is the semantic type's name, empty for none, None where nobody tells.

    `optional` is None where nobody tells. `parameters` are those that carry meaning: a decimal's `scale` and
    `connect.decimal.precision`, an enum's `allowed`, the `length` of bits.
    """

    name: str
    kind: Kind
    logical: str | None = ""
    optional: bool | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    default: object = UNKNOWN_DEFAULT
    items: FieldShape | None = None

    @property
    def type_words(self) -> str:
        """The type as people read it, such as `int32 (Date)` or `array of string`."""
        kind = self.kind.removeprefix("json_")
        if self.items is not None:
            kind += f" of {self.items.type_words}"
        elif self.kind.startswith("json_"):
            kind = f"a JSON {kind}"
        return f"{kind} ({self.logical.rpartition('.')[2]})" if self.logical else kind


@dataclass(frozen=True)
class RowShape:
    """The columns of a row or a key. `exact` is False where fields that are there may be missing from it.

    `partly` are fields that some of the messages have: of them nobody tells whether the newest do.
    """

    fields: Mapping[str, FieldShape]
    exact: bool = True
    partly: frozenset[str] = frozenset()


#: what a value of a Connect type may look like in JSON without a schema
_JSON_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "int8": frozenset({"json_integer", "json_number"}),
    "int16": frozenset({"json_integer", "json_number"}),
    "int32": frozenset({"json_integer", "json_number"}),
    "int64": frozenset({"json_integer", "json_number"}),
    "float32": frozenset({"json_integer", "json_number", "json_string"}),  # NaN and infinity are text
    "float64": frozenset({"json_integer", "json_number", "json_string"}),
    "boolean": frozenset({"json_boolean"}),
    "string": frozenset({"json_string"}),
    "bytes": frozenset({"json_string", "json_number", "json_integer"}),  # base64; decimals may be numbers
    "struct": frozenset({"json_object"}),
    "array": frozenset({"json_array"}),
    "map": frozenset({"json_object", "json_array"}),
}


def same_type(one: FieldShape, other: FieldShape) -> bool:
    """Whether two fields hold the same kind of value, as far as both sides tell; parameters aside."""
    if "unknown" in (one.kind, other.kind):
        return True
    if one.kind.startswith("json_") or other.kind.startswith("json_"):
        return _same_json(one, other)
    if one.kind != other.kind:
        return False
    if one.logical is not None and other.logical is not None and one.logical != other.logical:
        return False
    if one.items is not None and other.items is not None:
        return same_type(one.items, other.items)
    return True


def _same_json(one: FieldShape, other: FieldShape) -> bool:
    if one.kind.startswith("json_") and other.kind.startswith("json_"):
        return one.kind == other.kind or {one.kind, other.kind} == {"json_integer", "json_number"}
    told, seen = (other, one) if one.kind.startswith("json_") else (one, other)
    return seen.kind in _JSON_KINDS[told.kind]


def same_parameters(one: FieldShape, other: FieldShape) -> bool:
    """Whether scale, precision, labels and length agree, where both sides have them."""
    if one.items is not None and other.items is not None:
        return same_parameters(one.items, other.items)
    shared = one.parameters.keys() & other.parameters.keys()
    return all(one.parameters[name] == other.parameters[name] for name in shared)


def same_default(one: FieldShape, other: FieldShape) -> bool:
    """Whether the defaults agree, where both are known; an optional field's null is no default."""
    first, second = (_default(each) for each in (one, other))
    if UNKNOWN_DEFAULT in (first, second):
        return True
    return type(first) is type(second) and first == second


def _default(shape: FieldShape) -> object:
    if shape.default is None:
        return NO_DEFAULT
    if isinstance(shape.default, int | float) and not isinstance(shape.default, bool):
        return float(shape.default)
    return shape.default
