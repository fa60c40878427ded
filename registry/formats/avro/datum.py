"""Data of a schema: encoding and decoding by fastavro, and reading and writing Avro's JSON encoding."""

from __future__ import annotations

import io
import math
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import fastavro

from registry.errors import InvalidDatum
from registry.formats.avro.canonical import canonical_text
from registry.formats.avro.defaults import NON_FINITE, why_invalid, why_invalid_inside
from registry.formats.avro.model import (
    Array,
    AvroSchema,
    AvroType,
    Enum,
    Fixed,
    Map,
    Named,
    Record,
    RecordField,
    Union,
    type_label,
)

_NO_NAMESPACE: Final = "no_namespace__"
# A record around every schema adds no bytes, and lets fastavro cache a root that isn't a record.
_ROOT: Final = "no_namespace__.root__"
_VALUE: Final = "value"
_EMPTY_UNION: Final = "no_namespace__.empty_union"
_ADDED: Final = re.compile(r"\bno_namespace__\.|__kind_(?:record|enum|fixed)\b")


class Codec:
    """An encoder and decoder of one schema's data; its errors are fastavro's own.

    `weight` is the schema's number of types and fields, all of which fastavro visits in each call.
    """

    def __init__(self, schema: AvroSchema) -> None:
        named: dict[str, Any] = {}
        defined: set[str] = set()
        self.weight = 0
        for document in schema.documents:
            fastavro.parse_schema(self._weighed(_Plain(defined).of(document.root)), named_schemas=named)
        root = {"type": "record", "name": _ROOT, "fields": [{"name": _VALUE, "type": _Plain(defined).of(schema.root)}]}
        self.schema: Any = fastavro.parse_schema(self._weighed(root), named_schemas=named)
        # fastavro skips resolution between equal schemas; the doc makes this one differ from any writer's.
        self._as_reader: Any = {**self.schema, "doc": "reader"}

    def _weighed(self, plain: Any) -> Any:
        """Return the schema after adding its parts to `weight`."""
        stack = [plain]
        while stack:
            item = stack.pop()
            self.weight += 1
            if isinstance(item, list):
                stack.extend(item)
            elif isinstance(item, dict):
                stack.extend(item.get("fields", ()))
                stack.extend(
                    item[key] for key in ("type", "items", "values") if isinstance(item.get(key), (dict, list))
                )
        return plain

    def encode(self, datum: Any) -> bytes:
        """Return the bytes of a datum; a tuple (type name, value) selects the branch of a union."""
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, self.schema, {_VALUE: datum}, strict=True)
        return buffer.getvalue()

    def decode(self, encoded: bytes, reader: Codec | None = None) -> Any:
        """Return the datum in the bytes, resolved to the reader's schema if given; all bytes must be used."""
        buffer = io.BytesIO(encoded)
        read: Any = fastavro.schemaless_reader(buffer, self.schema, None if reader is None else reader._as_reader)
        if buffer.tell() != len(encoded):
            raise ValueError(f"{len(encoded) - buffer.tell()} bytes are left over after decoding")
        return read[_VALUE]


@lru_cache(maxsize=256)
def codec(schema: AvroSchema) -> Codec:
    """Return the codec of a schema; cached."""
    return Codec(schema)


def skips_resolution(reader: AvroSchema, writer: AvroSchema) -> bool:
    """Return whether fastavro skips resolution because the two schemas are equal, including docs."""
    if reader.root is writer.root:
        return True
    try:
        return canonical_text(_whole(reader)) == canonical_text(_whole(writer))
    except RecursionError:
        return False


def _whole(schema: AvroSchema) -> AvroSchema:
    return AvroSchema(schema.root, schema.named, frozenset(), ())


@lru_cache(maxsize=256)
def refusal(schema: AvroSchema) -> Refusal | None:
    """Return where fastavro rejects a schema for its attributes or defaults; None if it accepts the schema."""
    error = _why_refused(schema.root)
    return None if error is None else _located(schema.root, error)


@dataclass(frozen=True, slots=True)
class Refusal:
    """fastavro's error, the fields on the path to the rejected type, and that type."""

    error: str
    fields: tuple[RecordField, ...]
    type: AvroType


def _located(root: AvroType, error: str) -> Refusal:
    """Find the innermost type that is rejected on its own."""
    fields: list[RecordField] = []
    type_ = root
    visited = {id(root)}
    while True:
        for field, inner in _inner(type_):
            reason = _why_refused(inner)
            if reason is not None and id(inner) not in visited:
                visited.add(id(inner))
                fields += [field] if field is not None else []
                type_, error = inner, reason
                break
        else:
            refused = next((field for field in _fields(type_) if _why_field_refused(field) is not None), None)
            return Refusal(error, (*fields, refused) if refused is not None else tuple(fields), type_)


def _inner(type_: AvroType) -> Iterator[tuple[RecordField | None, AvroType]]:
    if isinstance(type_, Record):
        yield from ((field, field.type) for field in type_.fields)
    elif isinstance(type_, Union):
        yield from ((None, branch) for branch in type_.branches)
    elif isinstance(type_, Array):
        yield None, type_.items
    elif isinstance(type_, Map):
        yield None, type_.values


def _fields(type_: AvroType) -> tuple[RecordField, ...]:
    return type_.fields if isinstance(type_, Record) else ()


def _why_refused(type_: AvroType) -> str | None:
    """Return fastavro's error for a type with all its attributes; None if it is accepted."""
    return _why_not_parsed({"name": _VALUE, "type": _Plain(has_attributes=True).of(type_)})


def _why_field_refused(field: RecordField) -> str | None:
    return _why_not_parsed(_Plain(has_attributes=True).field(field))


def _why_not_parsed(field: dict[str, Any]) -> str | None:
    try:
        fastavro.parse_schema({"type": "record", "name": _ROOT, "fields": [field]}, named_schemas={})
    except Exception as error:  # noqa: BLE001 - fastavro rejects schemas with errors of many types
        return plain_error(error)
    return None


def branch_name(type_: AvroType) -> str:
    """Return the name that selects a branch of a union in `Codec.encode`."""
    return _name(type_.full_name, type_.kind) if isinstance(type_, Named) else type_.kind


def plain_name(text: str) -> str:
    """Return a name, or a text with names, without what this module adds to names."""
    return _ADDED.sub("", text)


def plain_error(error: BaseException) -> str:
    """Return an error's message with the schema's own names, at most 500 characters."""
    text = plain_name(f"{type(error).__name__}: {error}"[:2_000])
    return text if len(text) <= 500 else text[:499] + "…"


def _name(full_name: str, kind: str) -> str:
    namespace = "" if "." in full_name else f"{_NO_NAMESPACE}."
    return f"{namespace}{full_name}__kind_{kind}"


class _Plain:
    """A converter of types to fastavro's JSON; a named type is defined at its first use; attributes are optional."""

    def __init__(self, defined: set[str] | None = None, *, has_attributes: bool = False) -> None:
        self._known = set() if defined is None else defined
        self._has_attributes = has_attributes

    def of(self, type_: AvroType) -> Any:
        """Return a type as JSON."""
        if isinstance(type_, Named):
            name = _name(type_.full_name, type_.kind)
            if name in self._known:
                return name
            self._known.add(name)
            return self._named(type_, name)
        if isinstance(type_, Union):
            return [self.of(branch) for branch in type_.branches] or self._unmatchable_type()
        if isinstance(type_, Array):
            return {**self._attributes(type_), "type": "array", "items": self.of(type_.items)}
        if isinstance(type_, Map):
            return {**self._attributes(type_), "type": "map", "values": self.of(type_.values)}
        attributes = self._attributes(type_)
        return {**attributes, "type": type_.kind} if attributes else type_.kind

    def _attributes(self, type_: AvroType) -> dict[str, Any]:
        return dict(type_.props) if self._has_attributes else {}

    def _unmatchable_type(self) -> Any:
        """Return a type that matches no other, for a union without branches: fastavro would treat that as no reader."""
        if _EMPTY_UNION in self._known:
            return _EMPTY_UNION
        self._known.add(_EMPTY_UNION)
        return {"type": "fixed", "name": _EMPTY_UNION, "size": 0}

    def _named(self, type_: Named, name: str) -> dict[str, Any]:
        plain: dict[str, Any] = {**self._attributes(type_), "type": type_.kind, "name": name}
        if type_.aliases:
            plain["aliases"] = [_name(alias, type_.kind) for alias in type_.aliases]
        if isinstance(type_, Enum):
            plain["symbols"] = list(type_.symbols)
            if type_.default is not None:
                plain["default"] = type_.default
        elif isinstance(type_, Fixed):
            plain["size"] = type_.size
        elif isinstance(type_, Record):
            plain["fields"] = [self.field(field) for field in type_.fields]
        return plain

    def field(self, field: RecordField) -> dict[str, Any]:
        """Return a field as JSON."""
        plain: dict[str, Any] = {"name": field.name, "type": self.of(field.type)}
        if field.aliases:
            plain["aliases"] = list(field.aliases)
        if field.has_default:
            plain["default"] = field.default
        return plain


MAX_DEPTH: Final = 150
MAX_STEPS: Final = 200_000
_SIMPLE: Final[Mapping[str, str]] = {
    "null": "null",
    "boolean": "true or false",
    "int": "a whole number of 32 bits",
    "long": "a whole number of 64 bits",
    "float": "a number",
    "double": "a number",
    "bytes": "a string of characters from U+0000 to U+00FF, one per byte",
    "string": "a string",
}


def datum_from_json(type_: AvroType, value: Any, path: str) -> Any:
    """Convert a JSON value to a datum; raises InvalidDatum with the path and the expected value.

    A union's value is {"branch": value}, or the plain value if only one branch accepts it. A missing field gets its
    default.
    """
    return _JsonReader().read(type_, value, path, 0)


class _JsonReader:
    """A reader of one JSON value with a step limit, because unions of unions would multiply the work."""

    def __init__(self) -> None:
        self._steps_left = MAX_STEPS

    def read(self, type_: AvroType, value: Any, path: str, depth: int) -> Any:
        """Return the datum of a type; raises InvalidDatum."""
        self._steps_left -= 1
        if self._steps_left < 0:
            raise _TooMuch(f"{path}: the record takes too long to match with the unions: name their branches")
        if depth > MAX_DEPTH:
            raise InvalidDatum(f"{path}: the record is nested more than {MAX_DEPTH} levels deep", path=path)
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
        """Return the branches that accept a plain value, each with the resulting datum."""
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
        """Return the branch that an object's only key names: by full name, otherwise by a unique simple name."""
        if not isinstance(value, dict) or len(value) != 1:
            return None
        name = next(iter(value))
        for branch in union.branches:
            if (branch.full_name if isinstance(branch, Named) else branch.kind) == name:
                return branch
        simple = [branch for branch in union.branches if isinstance(branch, Named) and branch.simple == name]
        return simple[0] if len(simple) == 1 else None


class _TooMuch(InvalidDatum):
    """The step limit is exceeded; no further branch is tried."""


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
            f"{path}: the text contains half of a surrogate pair, which is not a character", path=path
        ) from None


def _expected(path: str, what: str, value: Any) -> InvalidDatum:
    shown = "null" if value is None else repr(value) if not isinstance(value, bool) else str(value).lower()
    short = shown if len(shown) <= 80 else shown[:79] + "…"
    return InvalidDatum(f"{path}: {what} is expected, found {short}", path=path, expected=what)


def datum_from_default(type_: AvroType, value: Any) -> Any:
    """Convert a field's default (JSON, already checked) to a datum; a union uses the first branch that fits."""
    if isinstance(type_, Union):
        branch = next((item for item in type_.branches if why_invalid_inside(item, value) is None), type_.branches[0])
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
    """Convert a datum to Avro's JSON encoding: branches as {"type": value}, bytes as U+0000 to U+00FF, NaN as "NaN"."""
    if isinstance(value, tuple):
        name, inner = value
        return None if inner is None else {plain_name(name): datum_to_json(inner)}
    if isinstance(value, dict):
        return {key: datum_to_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [datum_to_json(item) for item in value]
    return leaf_to_json(value)


def plain(value: Any) -> Any:
    """Convert a datum to its JSON without the names of branches, for people."""
    if isinstance(value, tuple):
        return plain(value[1])
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return leaf_to_json(value)


def leaf_to_json(value: Any) -> Any:
    """Convert bytes and numbers that JSON lacks to strings; other values stay."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, float) and not math.isfinite(value):
        return NON_FINITE["NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"]
    return value


def written_value(type_: AvroType, datum: Any) -> Any:
    """Return the datum as it is encoded: floats rounded to 32 bits."""
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
    """Round a number to what its type can hold: a float has 32 bits, unlike Python's."""
    if type_.kind != "float" or not isinstance(value, float):
        return value
    return struct.unpack("<f", struct.pack("<f", value))[0]


def rounded(type_: AvroType, value: float) -> float:
    """Round as `stored`, but return infinity for a number too large for a float, like Java's cast."""
    try:
        return float(stored(type_, value))
    except OverflowError:
        return math.copysign(math.inf, value)


def change_of_default(type_: AvroType, meant: Any, read: Any) -> str:
    """Describe how a default that a decoder filled in differs from the intended datum; empty if it doesn't."""
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
        return f"found a string ({read[:40]!r}) where bytes are expected"
    if isinstance(meant, float) and isinstance(read, str):
        return f"found a string ({read[:40]!r}) where a number is expected"
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
        return f"it lacks {', '.join(lacking[:10])}, which have their own defaults in {record.full_name}"
    notes = (change_of_default(field.type, meant[field.name], read[field.name]) for field in record.fields)
    return next((note for note in notes if note), "")


def _is_near(type_: AvroType, meant: float, read: Any) -> bool:
    """Return whether two numbers have the same bits in the type."""
    if math.isnan(meant):
        return isinstance(read, float) and math.isnan(read)
    near = rounded(type_, meant)
    return math.isfinite(near) and near == rounded(type_, float(read))


def branch_position(union: Union, name: str) -> int:
    """Return the position in the union of the branch that a datum names."""
    return _positions(union)[name]


@lru_cache(maxsize=32)
def _positions(union: Union) -> Mapping[str, int]:
    return {branch_name(branch): at for at, branch in reversed(list(enumerate(union.branches)))}
