"""Data of a schema as JSON: Avro's JSON encoding, read and written, and the plain values that people look at.

In the package a datum has the form that `Codec.encode` takes: bytes are bytes, and the value of a union is a tuple
(name of the branch, value).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any, Final

from registry.errors import InvalidDatum
from registry.formats.avro.codec import branch_name, plain_name
from registry.formats.avro.defaults import NON_FINITE, why_invalid, why_no_part
from registry.formats.avro.model import Array, AvroType, Enum, Fixed, Map, Named, Record, Union, type_label

MAX_DEPTH: Final = 150
MAX_STEPS: Final = 200_000
_SIMPLE: Final[Mapping[str, str]] = {
    "null": "null",
    "boolean": "true or false",
    "int": "a whole number of 32 bits",
    "long": "a whole number of 64 bits",
    "float": "a number",
    "double": "a number",
    "bytes": "a string of the characters U+0000 to U+00FF, one a byte",
    "string": "a string",
}


def datum_from_json(type_: AvroType, value: Any, path: str) -> Any:
    """The datum that a JSON value stands for; raises InvalidDatum with the path and what is expected there.

    A union's value is {"branch": value}, or the plain value where one branch alone takes it. A field that is left out
    has its default.
    """
    return _JsonReader().read(type_, value, path, 0)


class _JsonReader:
    """Reads one value; the work is bounded, as unions of unions would multiply it."""

    def __init__(self) -> None:
        self._steps_left = MAX_STEPS

    def read(self, type_: AvroType, value: Any, path: str, depth: int) -> Any:
        """The datum of a type; raises InvalidDatum."""
        self._steps_left -= 1
        if self._steps_left < 0:
            raise _TooMuch(f"{path}: the datum takes too long to match with the unions: name their branches")
        if depth > MAX_DEPTH:
            raise InvalidDatum(f"{path}: the datum is nested deeper than {MAX_DEPTH} levels", path=path)
        if isinstance(type_, Union):
            return self._union(type_, value, path, depth)
        if isinstance(type_, Record):
            return self._record(type_, value, path, depth)
        if isinstance(type_, Array):
            if not isinstance(value, list):
                raise _expected(path, f"an array of {type_label(type_.items)}", value)
            return [self.read(type_.items, item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
        if isinstance(type_, Map):
            if not isinstance(value, dict):
                raise _expected(path, f"an object with values of type {type_label(type_.values)}", value)
            return {key: self.read(type_.values, item, f"{path}{{{key}}}", depth + 1) for key, item in value.items()}
        return _leaf(type_, value, path)

    def _record(self, record: Record, value: Any, path: str, depth: int) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _expected(path, f"an object of {record.full_name}", value)
        unknown = next((key for key in value if key not in record.by_name), None)
        if unknown is not None:
            raise InvalidDatum(f'{path}: {record.full_name} has no field "{str(unknown)[:200]}"', path=path)
        datum = {}
        for field in record.fields:
            here = f"{path}.{field.name}"
            if field.name in value:
                datum[field.name] = self.read(field.type, value[field.name], here, depth + 1)
            elif field.has_default:
                datum[field.name] = datum_from_default(field.type, field.default)
            else:
                raise InvalidDatum(
                    f"{here}: a value of type {type_label(field.type)} is missing, and the field has no default",
                    path=here,
                )
        return datum

    def _union(self, union: Union, value: Any, path: str, depth: int) -> Any:
        named = self._named_branch(union, value)
        if named is not None:
            try:
                return (branch_name(named), self.read(named, next(iter(value.values())), path, depth + 1))
            except _TooMuch:
                raise
            except InvalidDatum:
                if not self._taken(union, value, path, depth):
                    raise
        taken = self._taken(union, value, path, depth)
        if len(taken) == 1:
            return taken[0]
        if not taken:
            raise _expected(path, f"a value of one of the branches of {type_label(union)}", value)
        names = ", ".join(plain_name(name) for name, _ in taken[:8])
        shown = plain_name(taken[0][0])
        raise InvalidDatum(
            f'{path}: the value fits several branches ({names}): name one, as in {{"{shown}": …}}', path=path
        )

    def _taken(self, union: Union, value: Any, path: str, depth: int) -> list[tuple[str, Any]]:
        """The branches that take a plain value, with what they make of it."""
        taken = []
        for branch in union.branches:
            try:
                taken.append((branch_name(branch), self.read(branch, value, path, depth + 1)))
            except _TooMuch:
                raise
            except InvalidDatum:
                continue
        return taken

    @staticmethod
    def _named_branch(union: Union, value: Any) -> AvroType | None:
        """The branch that an object of one key names: by its full name, else by a simple name that only one has."""
        if not isinstance(value, dict) or len(value) != 1:
            return None
        name = next(iter(value))
        for branch in union.branches:
            if (branch.full_name if isinstance(branch, Named) else branch.kind) == name:
                return branch
        simple = [branch for branch in union.branches if isinstance(branch, Named) and branch.simple == name]
        return simple[0] if len(simple) == 1 else None


class _TooMuch(InvalidDatum):
    """The budget is used up: no further branch is tried."""


def _leaf(type_: AvroType, value: Any, path: str) -> Any:
    if isinstance(type_, Enum):
        if not isinstance(value, str) or value not in type_.symbol_set:
            shown = ", ".join(type_.symbols[:20])
            raise _expected(path, f"one of the symbols {shown} of {type_.full_name}", value)
        return value
    reason = why_invalid(type_, value)
    if reason is not None:
        what = f"{type_.size} bytes of {type_.full_name}" if isinstance(type_, Fixed) else _SIMPLE[type_.kind]
        raise InvalidDatum(f"{path}: {what} ({type_.kind}): {reason}", path=path, expected=type_label(type_))
    if type_.kind in ("float", "double"):
        return _number(type_, value, path)
    if type_.kind in ("bytes", "fixed"):
        return value.encode("latin-1")
    if type_.kind == "string":
        _check_text(value, path)
    return value


def _number(type_: AvroType, value: Any, path: str) -> float:
    number = float(value)
    if type_.kind == "float" and math.isfinite(number) and abs(number) > 3.4028235677973366e38:
        raise InvalidDatum(f"{path}: {value} is too large for a float", path=path, expected="float")
    return number


def _check_text(value: str, path: str) -> None:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidDatum(
            f"{path}: the text holds half of a surrogate pair, which is no character", path=path
        ) from None


def _expected(path: str, what: str, value: Any) -> InvalidDatum:
    shown = "null" if value is None else repr(value) if not isinstance(value, bool) else str(value).lower()
    short = shown if len(shown) <= 80 else shown[:79] + "…"
    return InvalidDatum(f"{path}: {what} is expected, found {short}", path=path, expected=what)


def datum_from_default(type_: AvroType, value: Any) -> Any:
    """The datum that a field's default (JSON, already checked) stands for; a union's takes the first fitting branch."""
    if isinstance(type_, Union):
        branch = next((item for item in type_.branches if why_no_part(item, value) is None), type_.branches[0])
        return (branch_name(branch), datum_from_default(branch, value))
    if isinstance(type_, Record):
        return {
            field.name: datum_from_default(field.type, value.get(field.name, field.default)) for field in type_.fields
        }
    if isinstance(type_, Array):
        return [datum_from_default(type_.items, item) for item in value]
    if isinstance(type_, Map):
        return {key: datum_from_default(type_.values, item) for key, item in value.items()}
    if type_.kind in ("bytes", "fixed"):
        return value.encode("latin-1")
    return float(value) if type_.kind in ("float", "double") else value


def datum_to_json(value: Any) -> Any:
    """A datum in Avro's JSON encoding: branches as {"type": value}, bytes as U+0000 to U+00FF, NaN as "NaN"."""
    if isinstance(value, tuple):
        name, inner = value
        return None if inner is None else {plain_name(name): datum_to_json(inner)}
    if isinstance(value, dict):
        return {key: datum_to_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [datum_to_json(item) for item in value]
    return leaf_to_json(value)


def plain(value: Any) -> Any:
    """A datum as people read it: as its JSON, without the names of branches."""
    if isinstance(value, tuple):
        return plain(value[1])
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return leaf_to_json(value)


def leaf_to_json(value: Any) -> Any:
    """Bytes and numbers that JSON doesn't have as strings; everything else as it is."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, float) and not math.isfinite(value):
        return NON_FINITE["NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"]
    return value


def written_value(type_: AvroType, datum: Any) -> Any:
    """A datum as it is on the wire: floats rounded to the 32 bits that they have there."""
    if isinstance(type_, Union):
        return (datum[0], written_value(type_.branches[branch_position(type_, datum[0])], datum[1]))
    if isinstance(type_, Record):
        return {field.name: written_value(field.type, datum[field.name]) for field in type_.fields}
    if isinstance(type_, Array):
        return [written_value(type_.items, item) for item in datum]
    if isinstance(type_, Map):
        return {key: written_value(type_.values, item) for key, item in datum.items()}
    return stored(type_, datum)


def stored(type_: AvroType, value: Any) -> Any:
    """A number as its type holds it: a float has 32 bits, whatever Python would keep."""
    if type_.kind != "float" or not isinstance(value, float):
        return value
    return struct.unpack("<f", struct.pack("<f", value))[0]


def rounded(type_: AvroType, value: float) -> float:
    """As `stored`, and infinite where the number is too large for a float, as Java casts it."""
    try:
        return float(stored(type_, value))
    except OverflowError:
        return math.copysign(math.inf, value)


def change_of_default(type_: AvroType, meant: Any, read: Any) -> str:
    """How a value that a decoder filled in differs from the datum that the default stands for; empty if it doesn't."""
    if isinstance(type_, Union):
        return change_of_default(type_.branches[branch_position(type_, meant[0])], meant[1], read)
    if isinstance(type_, Record):
        return _change_of_record(type_, meant, read) if isinstance(read, dict) else _becomes(meant, read)
    if isinstance(type_, Array) and isinstance(read, list) and len(meant) == len(read):
        notes = (change_of_default(type_.items, ours, theirs) for ours, theirs in zip(meant, read, strict=True))
        return next(filter(None, notes), "")
    if isinstance(type_, Map) and isinstance(read, dict) and meant.keys() == read.keys():
        return next(filter(None, (change_of_default(type_.values, meant[key], read[key]) for key in meant)), "")
    if isinstance(meant, bytes) and isinstance(read, str):
        return f"a text ({read[:40]!r}) stands where bytes are expected"
    if isinstance(meant, float) and isinstance(read, str):
        return f"a text ({read[:40]!r}) stands where a number is expected"
    is_number = isinstance(read, (int, float)) and not isinstance(read, bool)
    if (read == meant and isinstance(read, bool) == isinstance(meant, bool)) or (
        isinstance(meant, float) and is_number and _is_near(type_, meant, read)
    ):
        return ""
    return _becomes(meant, read)


def _becomes(meant: Any, read: Any) -> str:
    return f"{str(plain(meant))[:80]} becomes {str(plain(read))[:80]}"


def _change_of_record(record: Record, meant: Any, read: Any) -> str:
    lacking = [field.name for field in record.fields if field.name not in read]
    if lacking:
        return f"it lacks {', '.join(lacking[:10])}, which {record.full_name} has a default of its own for"
    notes = (change_of_default(field.type, meant[field.name], read[field.name]) for field in record.fields)
    return next((note for note in notes if note), "")


def _is_near(type_: AvroType, meant: float, read: Any) -> bool:
    """Whether two numbers are one in the type's bits."""
    if math.isnan(meant):
        return isinstance(read, float) and math.isnan(read)
    near = rounded(type_, meant)
    return math.isfinite(near) and near == rounded(type_, float(read))


def branch_position(union: Union, name: str) -> int:
    """Where the branch that a datum names stands in the union."""
    return next(at for at, branch in enumerate(union.branches) if branch_name(branch) == name)
