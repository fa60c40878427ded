"""What the calls carry, read by a table of fields: what is unknown or of a wrong type is named with its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rest_framework.request import Request

from registry.api.google.wire import COMPATIBILITY_TYPES, MODE_TYPES, SCHEMA_TYPES
from registry.errors import InvalidCompatibility, InvalidInput, InvalidMode, InvalidSchema
from registry.formats.base import Reference

MAX_INT32 = 2**31 - 1
#: gives a field's value from the JSON value at a place; raises InvalidInput
Reader = Callable[[Any, str], Any]


def text(value: Any, place: str) -> str:
    """A string that PostgreSQL can hold."""
    if not isinstance(value, str):
        raise wrong(place, value, "a string")
    for position, char in enumerate(value):
        if char == "\0" or "\ud800" <= char <= "\udfff":
            raise InvalidInput(
                f"{place} has the character U+{ord(char):04X} at position {position + 1}, which no text may have.",
                field=place,
            )
    return value


def boolean(value: Any, place: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise wrong(place, value, "true or false")
    return value


def number(value: Any, place: str) -> int:
    """An int32; proto3's JSON allows it as a string too."""
    if isinstance(value, str) and value.removeprefix("-").isascii() and value.removeprefix("-").isdigit():
        value = int(value[:12])
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MAX_INT32:
        raise wrong(place, value, "a whole number of 32 bits")
    return value


def message(value: Any, place: str) -> dict[str, Any]:
    """An object, which is not looked into."""
    if not isinstance(value, dict):
        raise wrong(place, value, "an object")
    return value


def references(value: Any, place: str) -> tuple[Reference, ...]:
    """SchemaReferences."""
    if not isinstance(value, list):
        raise wrong(place, value, "an array")
    return tuple(_reference(item, f"{place}[{position}]") for position, item in enumerate(value))


def _reference(value: Any, place: str) -> Reference:
    found = _read(message(value, place), REFERENCE, f"{place}.")
    missing = next((name for name in REFERENCE if name not in found), None)
    if missing:
        raise InvalidInput(f"{place}.{missing} is missing.", field=f"{place}.{missing}")
    return Reference(**found)


def _enum(names: tuple[str, ...], error: type[InvalidInput]) -> Reader:
    def read(value: Any, place: str) -> str:
        if isinstance(value, str) and value.upper() in names:
            return value.upper()
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
            return names[value]
        shown = repr(value[:40]) if isinstance(value, str) else _kind(value)
        raise error(f"{place} is {shown}; it takes one of {', '.join(names)}.", field=place)

    return read


REFERENCE: Mapping[str, Reader] = {"name": text, "subject": text, "version": number}
_SCHEMA: Mapping[str, Reader] = {
    "schemaType": _enum(SCHEMA_TYPES, InvalidInput),
    "schema": text,
    "references": references,
}
#: request → its fields
VERSION = {**_SCHEMA, "version": number, "id": number, "normalize": boolean}
LOOK_UP = {**_SCHEMA, "normalize": boolean, "deleted": boolean}
CHECK = {**_SCHEMA, "verbose": boolean}
CONFIG: Mapping[str, Reader] = {
    "compatibility": _enum(COMPATIBILITY_TYPES, InvalidCompatibility),
    "normalize": boolean,
}
MODE: Mapping[str, Reader] = {"mode": _enum(MODE_TYPES, InvalidMode)}
REGISTRY: Mapping[str, Reader] = {"schemaRegistryId": text, "schemaRegistry": message}


def read(request: Request, fields: Mapping[str, Reader]) -> dict[str, Any]:
    """The body's fields; one that is null or absent is left out, as proto3's JSON has it. Raises InvalidInput."""
    body = request.data
    if body is None or (not body and not int(request.META.get("CONTENT_LENGTH") or 0)):
        raise InvalidInput("The request has no body; send a JSON object.")
    if not isinstance(body, dict):
        raise InvalidInput(f"The body is {_kind(body)}; send a JSON object.")
    return _read(body, fields, "")


def read_schema(request: Request, fields: Mapping[str, Reader]) -> dict[str, Any]:
    """The same for a body with a schema: `text`, `schema_type` and `references` are always there, under these names.

    Raises InvalidInput, InvalidSchema.
    """
    found = read(request, fields)
    schema = found.pop("schema", "")
    if not schema.strip():
        raise InvalidSchema("schema is missing or empty.", field="schema")
    kind = found.pop("schemaType", SCHEMA_TYPES[0])
    schema_type = "AVRO" if kind == SCHEMA_TYPES[0] else kind
    return {"references": (), **found, "text": schema, "schema_type": schema_type}


def _read(body: dict[str, Any], fields: Mapping[str, Reader], prefix: str) -> dict[str, Any]:
    by_name = {_snake(name): name for name in fields}
    found = {}
    for given, value in body.items():
        name = given if given in fields else by_name.get(given)
        if name is None:
            known = ", ".join(fields)
            place = prefix + given[:80]
            raise InvalidInput(f"Unknown name {place!r}: cannot find field. Known here: {known}.", field=place)
        if value is not None:
            found[name] = fields[name](value, prefix + name)
    return found


def _snake(name: str) -> str:
    """proto3's JSON also takes a field's original name."""
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


def wrong(place: str, value: Any, wanted: str) -> InvalidInput:
    """The error for a value of a wrong type."""
    return InvalidInput(f"{place} is {_kind(value)}; it takes {wanted}.", field=place)


_KINDS = {str: "a string", int: "a number", float: "a number", list: "an array", dict: "an object"}


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _KINDS.get(type(value), "null")


def flag(request: Request, name: str) -> bool:
    """A boolean query parameter, false unless it says `true`. Raises InvalidInput for anything but true and false."""
    given = request.query_params.get(name, "").lower()
    if given not in ("", "true", "false"):
        raise InvalidInput(f"The parameter {name} is {given[:40]!r}; it takes true or false.", field=name)
    return given == "true"


def schema_id(value: str) -> int:
    """The id in an address. Raises InvalidInput."""
    if not value.isascii() or not value.isdigit() or not 1 <= int(value[:12]) <= MAX_INT32:
        raise InvalidInput(f"{value[:40]!r} is not a schema id: it takes a number from 1 to {MAX_INT32}.", field="name")
    return int(value)
