"""From the model to fastavro: a schema that it can encode and decode with, for data in Avro's own terms.

Logical types, docs and properties are left out: what decides whether bytes can be read is the type below, and values
stay the numbers and bytes that are on the wire. Names carry their kind, as fastavro would otherwise take a record for an
enum of the same name, and those without a namespace get one of their own, as it would give them that of the type around.
"""

from __future__ import annotations

import io
import re
from functools import lru_cache
from typing import Any, Final

import fastavro

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
            fastavro.parse_schema(self._weighed(_plain(document.root, known)), named_schemas=named)
        root = {"type": "record", "name": _ROOT, "fields": [{"name": _VALUE, "type": _plain(schema.root, known)}]}
        self.schema: Any = fastavro.parse_schema(self._weighed(root), named_schemas=named)

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
        """The datum in the bytes, read as the reader's if there is one; all bytes must be used."""
        buffer = io.BytesIO(encoded)
        read: Any = fastavro.schemaless_reader(buffer, self.schema, None if reader is None else reader.schema)
        if buffer.tell() != len(encoded):
            raise ValueError(f"{len(encoded) - buffer.tell()} bytes are left over after decoding")
        return read[_VALUE]


@lru_cache(maxsize=256)
def codec(schema: Schema) -> Codec:
    """The codec of a schema; the last few are kept."""
    return Codec(schema)


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


def _plain(type_: AvroType, known: set[str]) -> Any:
    if isinstance(type_, Named):
        name = _name(type_.full_name, type_.kind)
        if name in known:
            return name
        known.add(name)
        return _plain_named(type_, name, known)
    if isinstance(type_, Union):
        return [_plain(branch, known) for branch in type_.branches] or _nothing(known)
    if isinstance(type_, Array):
        return {"type": "array", "items": _plain(type_.items, known)}
    if isinstance(type_, Map):
        return {"type": "map", "values": _plain(type_.values, known)}
    return type_.kind


def _nothing(known: set[str]) -> Any:
    """A union without branches, which fastavro would take for no reader at all: a type that matches no other."""
    if _EMPTY_UNION in known:
        return _EMPTY_UNION
    known.add(_EMPTY_UNION)
    return {"type": "fixed", "name": _EMPTY_UNION, "size": 0}


def _plain_named(type_: Named, name: str, known: set[str]) -> dict[str, Any]:
    plain: dict[str, Any] = {"type": type_.kind, "name": name}
    if type_.aliases:
        plain["aliases"] = [_name(alias, type_.kind) for alias in type_.aliases]
    if isinstance(type_, Enum):
        plain["symbols"] = list(type_.symbols)
        if type_.default is not None:
            plain["default"] = type_.default
    elif isinstance(type_, Fixed):
        plain["size"] = type_.size
    elif isinstance(type_, Record):
        plain["fields"] = [_plain_field(field, known) for field in type_.fields]
    return plain


def _plain_field(field: Field, known: set[str]) -> dict[str, Any]:
    plain: dict[str, Any] = {"name": field.name, "type": _plain(field.type, known)}
    if field.aliases:
        plain["aliases"] = list(field.aliases)
    if field.has_default:
        plain["default"] = _plain_default(field)
    return plain


def _plain_default(field: Field) -> Any:
    if field.type.kind in ("float", "double"):
        return float(field.default)
    return field.default
