"""The fields that a schema declares, as observations name them: the *declared* side of a comparison with data.

Kinds are those of JSON: string, integer, number, boolean, object, array, null. What a schema leaves open, or what is
too deep to follow, is said to be open, so that nothing is concluded from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from registry.drift.judge.declared_json import read_json_schema
from registry.drift.judge.declaring import MAX_DEPTH, MAX_FIELDS, Collected, Declared, DeclaredField, below
from registry.formats.avro import model as avro
from registry.formats.base import ParsedSchema
from registry.formats.protobuf import model as protobuf

__all__ = ["MAX_FIELDS", "Declared", "DeclaredField", "declared_fields", "record_name"]

_AVRO_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "null": frozenset({"null"}),
    "boolean": frozenset({"boolean"}),
    "int": frozenset({"integer"}),
    "long": frozenset({"integer"}),
    "float": frozenset({"number", "integer"}),
    "double": frozenset({"number", "integer"}),
    "bytes": frozenset({"string"}),
    "fixed": frozenset({"string"}),
    "string": frozenset({"string"}),
    "enum": frozenset({"string"}),
    "array": frozenset({"array"}),
    "map": frozenset({"object"}),
    "record": frozenset({"object"}),
}
_WHOLE: Final = frozenset({"integer", "string"})  # Protobuf's JSON form writes 64 bits as text, and reads both
_REAL: Final = frozenset({"number", "integer", "string"})
_PROTOBUF_KINDS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "sint32", "sint64"), _WHOLE),
    **dict.fromkeys(("fixed32", "fixed64", "sfixed32", "sfixed64"), _WHOLE),
    **dict.fromkeys(("float", "double"), _REAL),
    "bool": frozenset({"boolean"}),
    "string": frozenset({"string"}),
    "bytes": frozenset({"string"}),
    "enum": frozenset({"string", "integer"}),
    "message": frozenset({"object"}),
    "group": frozenset({"object"}),
}


def declared_fields(parsed: ParsedSchema) -> Declared | None:
    """What a parsed schema declares; None where it has no model here, or is of an unknown format.

    At most MAX_FIELDS fields, MAX_DEPTH deep: where it stops, it says `open`.
    """
    reader = _READERS.get(parsed.schema_type)
    if reader is None or parsed.model is None:
        return None
    found = Collected()
    reader(parsed, found)
    return Declared(found.fields, found.others, found.messages)


# ---- Avro ---------------------------------------------------------------------------------------------------------


def _read_avro(parsed: ParsedSchema, found: Collected) -> None:
    _avro_inside(parsed.model.root, "", 0, frozenset(), found)


def _avro_inside(type_: avro.AvroType, path: str, depth: int, inside: frozenset[str], found: Collected) -> None:
    if isinstance(type_, avro.Union):
        for branch in type_.branches:
            _avro_inside(branch, path, depth, inside, found)
    elif isinstance(type_, avro.Record):
        if type_.full_name in inside or found.is_full(depth):
            found.others[path] = "open"
            return
        found.others.setdefault(path, "closed")
        for each in type_.fields:
            here = below(path, each.name)
            found.add(here, _avro_kinds(each.type), not each.has_default, _avro_symbols(each.type))
            _avro_inside(each.type, here, depth + 1, inside | {type_.full_name}, found)
    elif isinstance(type_, avro.Array):
        found.add(f"{path}[]", _avro_kinds(type_.items), False, _avro_symbols(type_.items))
        _avro_inside(type_.items, f"{path}[]", depth + 1, inside, found)
    elif isinstance(type_, avro.Map):
        found.others[path] = "open"  # its keys look like fields in plain JSON


def _avro_kinds(type_: avro.AvroType) -> frozenset[str] | None:
    if isinstance(type_, avro.Union):
        kinds = [_avro_kinds(branch) for branch in type_.branches]
        return None if any(kind is None for kind in kinds) else frozenset().union(*(kind or () for kind in kinds))
    if type_.logical is not None:
        return None  # JSON has no one form of dates, decimals and durations
    return _AVRO_KINDS.get(type_.kind)


def _avro_symbols(type_: avro.AvroType) -> frozenset[str] | None:
    branches = type_.branches if isinstance(type_, avro.Union) else (type_,)
    others = [branch for branch in branches if branch.kind != "null"]
    if len(others) == 1 and isinstance(others[0], avro.Enum):
        return frozenset(others[0].symbols)
    return None


# ---- Protobuf -----------------------------------------------------------------------------------------------------


def _read_protobuf(parsed: ParsedSchema, found: Collected) -> None:
    proto = parsed.model.proto
    _name_messages(proto.message_type, f"{proto.package}." if proto.package else "", "", found)
    for message in parsed.model.main.messages.values():
        _message_inside(message, "", 0, frozenset(), found)
        break  # JSON doesn't say its message type: it is held against the first, which the indexes leave out too


def _name_messages(messages: Iterable[Any], prefix: str, indexes: str, found: Collected) -> None:
    for number, message in enumerate(messages):
        if len(found.messages) >= MAX_FIELDS or indexes.count(".") >= MAX_DEPTH:
            return
        place = f"{indexes}.{number}" if indexes else str(number)
        found.messages[place] = f"{prefix}{message.name}"
        _name_messages(message.nested_type, f"{prefix}{message.name}.", place, found)


def _message_inside(message: protobuf.Message, path: str, depth: int, inside: frozenset[str], found: Collected) -> None:
    known = (message.full_name or "").startswith("google.protobuf.")
    if message.full_name in inside or found.is_full(depth) or known:
        found.others[path] = "open"
        return
    found.others.setdefault(path, "closed")
    for each in message.fields:
        here = below(path, each.name)
        kinds = _PROTOBUF_KINDS.get(each.kind)
        if each.message is not None and each.message.full_name.startswith("google.protobuf."):
            kinds = None
        symbols = None  # an open enum may hold any number
        single = kinds if kinds is None else kinds | {"null"}
        if each.is_map:
            found.add(here, frozenset({"object", "null"}), False, symbols)
            found.others[here] = "open"
        elif each.is_repeated:
            found.add(here, frozenset({"array", "null"}), False, symbols)
            found.add(f"{here}[]", kinds, False, symbols)
            if each.message is not None:
                _message_inside(each.message, f"{here}[]", depth + 1, inside | {message.full_name}, found)
        else:
            found.add(here, single, each.is_required, symbols)
            if each.message is not None:
                _message_inside(each.message, here, depth + 1, inside | {message.full_name}, found)


_READERS: Final[Mapping[str, Callable[[ParsedSchema, Collected], None]]] = {
    "AVRO": _read_avro,
    "PROTOBUF": _read_protobuf,
    "JSON": read_json_schema,
}


def record_name(parsed: ParsedSchema) -> str:
    """The full name that the strategies RecordName and TopicRecordName take; empty where the schema has none here."""
    if parsed.schema_type == "AVRO" and parsed.model is not None:
        root = parsed.model.root
        return str(root.full_name) if isinstance(root, avro.Named) else ""
    if parsed.schema_type == "PROTOBUF" and parsed.model is not None:
        return next((str(message.full_name) for message in parsed.model.main.messages.values()), "")
    if parsed.schema_type == "JSON":
        try:
            root = json.loads(parsed.canonical)
        except (ValueError, RecursionError):
            return ""
        title = root.get("title") if isinstance(root, dict) else None
        return title if isinstance(title, str) else ""
    return ""
