"""From the model to fastavro: a schema that it can encode and decode with, for data in Avro's own terms.

Logical types, docs and properties are left out: what decides whether bytes can be read is the type below, and values
stay the numbers and bytes that are on the wire. Names carry their kind, as fastavro would otherwise take a record for an
enum of the same name, and those without a namespace get one of their own, as it would give them that of the type around.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import fastavro

from registry.formats.avro.canonical import canonical_text
from registry.formats.avro.model import Array, AvroType, Enum, Field, Fixed, Map, Named, Record, Schema, Union

_NO_NAMESPACE: Final = "no_namespace__"
# A record around every schema adds no byte, and lets fastavro keep what it knows of a root that is no record itself.
_ROOT: Final = "no_namespace__.root__"
_VALUE: Final = "value"
_EMPTY_UNION: Final = "no_namespace__.empty_union"
_ADDED: Final = re.compile(r"\bno_namespace__\.|__kind_(?:record|enum|fixed)\b")


class Codec:
    """Encodes and decodes data of one schema; errors of fastavro come out as they are.

    `weight` is how many types and fields the schema has: fastavro looks at all of them in each call.
    """

    def __init__(self, schema: Schema) -> None:
        named: dict[str, Any] = {}
        known: set[str] = set()
        self.weight = 0
        for document in schema.documents:
            fastavro.parse_schema(self._weighed(_Plain(known).of(document.root)), named_schemas=named)
        root = {"type": "record", "name": _ROOT, "fields": [{"name": _VALUE, "type": _Plain(known).of(schema.root)}]}
        self.schema: Any = fastavro.parse_schema(self._weighed(root), named_schemas=named)
        # fastavro resolves nothing between two equal schemas: the doc makes this one another than any writer's.
        self._as_reader: Any = {**self.schema, "doc": "reader"}

    def _weighed(self, plain: Any) -> Any:
        """The schema, after its parts are counted."""
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
        """The bytes of a datum; the branch of a union is named by a tuple (type name, value)."""
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, self.schema, {_VALUE: datum}, strict=True)
        return buffer.getvalue()

    def decode(self, encoded: bytes, reader: Codec | None = None) -> Any:
        """The datum in the bytes, resolved to the reader's schema if there is one; all bytes must be used."""
        buffer = io.BytesIO(encoded)
        read: Any = fastavro.schemaless_reader(buffer, self.schema, None if reader is None else reader._as_reader)
        if buffer.tell() != len(encoded):
            raise ValueError(f"{len(encoded) - buffer.tell()} bytes are left over after decoding")
        return read[_VALUE]


@lru_cache(maxsize=256)
def codec(schema: Schema) -> Codec:
    """The codec of a schema; the last few are kept."""
    return Codec(schema)


def are_one(reader: Schema, writer: Schema) -> bool:
    """Whether fastavro takes two schemas for one, and so resolves nothing: they are equal with docs and all."""
    if reader.root is writer.root:
        return True
    try:
        return canonical_text(_whole(reader)) == canonical_text(_whole(writer))
    except RecursionError:
        return False


def _whole(schema: Schema) -> Schema:
    return Schema(schema.root, schema.named, frozenset(), ())


@lru_cache(maxsize=256)
def refusal(schema: Schema) -> Refusal | None:
    """Where fastavro refuses a schema because of its attributes and defaults, None if it takes it."""
    error = _why_refused(schema.root)
    return None if error is None else _located(schema.root, error)


@dataclass(frozen=True, slots=True)
class Refusal:
    """fastavro's error, the fields that lead to what it refuses, and the type that it refuses."""

    error: str
    fields: tuple[Field, ...]
    type: AvroType


def _located(root: AvroType, error: str) -> Refusal:
    """Goes down to the innermost type that is refused by itself."""
    fields: list[Field] = []
    type_ = root
    seen = {id(root)}
    while True:
        for field, inner in _inner(type_):
            found = _why_refused(inner)
            if found is not None and id(inner) not in seen:
                seen.add(id(inner))
                fields += [field] if field is not None else []
                type_, error = inner, found
                break
        else:
            refused = next((field for field in _fields(type_) if _why_field_refused(field) is not None), None)
            return Refusal(error, (*fields, refused) if refused is not None else tuple(fields), type_)


def _inner(type_: AvroType) -> Iterator[tuple[Field | None, AvroType]]:
    if isinstance(type_, Record):
        yield from ((field, field.type) for field in type_.fields)
    elif isinstance(type_, Union):
        yield from ((None, branch) for branch in type_.branches)
    elif isinstance(type_, Array):
        yield None, type_.items
    elif isinstance(type_, Map):
        yield None, type_.values


def _fields(type_: AvroType) -> tuple[Field, ...]:
    return type_.fields if isinstance(type_, Record) else ()


def _why_refused(type_: AvroType) -> str | None:
    """fastavro's error at a type with all its attributes."""
    return _why_not_parsed({"name": _VALUE, "type": _Plain(has_attributes=True).of(type_)})


def _why_field_refused(field: Field) -> str | None:
    return _why_not_parsed(_Plain(has_attributes=True).field(field))


def _why_not_parsed(field: dict[str, Any]) -> str | None:
    try:
        fastavro.parse_schema({"type": "record", "name": _ROOT, "fields": [field]}, named_schemas={})
    except Exception as error:  # noqa: BLE001 - fastavro refuses schemas with errors of many types
        return plain_error(error)
    return None


def branch_name(type_: AvroType) -> str:
    """How a tuple names a branch of a union to `Codec.encode`."""
    return _name(type_.full_name, type_.kind) if isinstance(type_, Named) else type_.kind


def plain_name(text: str) -> str:
    """A name, or a text with names, as the schema has it: without what this module adds."""
    return _ADDED.sub("", text)


def plain_error(error: BaseException) -> str:
    """An error's message in the schema's own names, at most 500 characters."""
    text = plain_name(f"{type(error).__name__}: {error}"[:2_000])
    return text if len(text) <= 500 else text[:499] + "…"


def _name(full_name: str, kind: str) -> str:
    namespace = "" if "." in full_name else f"{_NO_NAMESPACE}."
    return f"{namespace}{full_name}__kind_{kind}"


class _Plain:
    """Writes types for fastavro, each named one where it comes first; with their attributes if these are asked for."""

    def __init__(self, known: set[str] | None = None, *, has_attributes: bool = False) -> None:
        self._known = set() if known is None else known
        self._has_attributes = has_attributes

    def of(self, type_: AvroType) -> Any:
        """A type as JSON."""
        if isinstance(type_, Named):
            name = _name(type_.full_name, type_.kind)
            if name in self._known:
                return name
            self._known.add(name)
            return self._named(type_, name)
        if isinstance(type_, Union):
            return [self.of(branch) for branch in type_.branches] or self._nothing()
        if isinstance(type_, Array):
            return {**self._attributes(type_), "type": "array", "items": self.of(type_.items)}
        if isinstance(type_, Map):
            return {**self._attributes(type_), "type": "map", "values": self.of(type_.values)}
        attributes = self._attributes(type_)
        return {**attributes, "type": type_.kind} if attributes else type_.kind

    def _attributes(self, type_: AvroType) -> dict[str, Any]:
        return dict(type_.props) if self._has_attributes else {}

    def _nothing(self) -> Any:
        """A union without branches, which fastavro would take for no reader at all: a type that matches no other."""
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

    def field(self, field: Field) -> dict[str, Any]:
        """A field as JSON."""
        plain: dict[str, Any] = {"name": field.name, "type": self.of(field.type)}
        if field.aliases:
            plain["aliases"] = list(field.aliases)
        if field.has_default:
            plain["default"] = field.default
        return plain
