"""The options of one declaration in the normal form: full names, by name, and one value for each that isn't repeated."""

from __future__ import annotations

from typing import Any

from registry.formats.protobuf.scopes import Names, Scope
from registry.formats.protobuf.statement_reader import plain
from registry.formats.protobuf.statements import FieldStatement, MessageStatement, Option, Primitive

_SIMPLE = frozenset({"boolean", "enum", "number"})


def merged(options: list[Option], names: Names, scope: Scope) -> list[Option]:
    """The options as the normal form writes them."""
    by_name: dict[str, list[Option]] = {}
    for option in sorted((_named(item, names, scope) for item in options), key=lambda item: item.name):
        by_name.setdefault(option.name, []).append(option)
    found: list[Option] = []
    for name, same in by_name.items():
        declared = names.extensions.get(name.removeprefix("."))
        if declared is None or declared.label == "repeated":
            found += same
            continue
        first, *others = same
        for other in others:
            first = _merge(declared, first, other, names, scope)
        found.append(first)
    return found


def _named(option: Option, names: Names, scope: Scope) -> Option:
    full_name = names.extension(option.name, scope) if option.is_custom else None
    return option if full_name is None else _as_map(Option(full_name, option.kind, option.value, is_custom=True))


def _as_map(option: Option) -> Option:
    """An option that is set part by part, as one with an aggregate value."""
    if option.kind != "option":
        return option
    return Option(option.name, "map", _inside(option.value), option.is_custom)


def _inside(option: Option) -> dict[str, Any]:
    value = option.value
    if option.kind in _SIMPLE:
        value = Primitive(option.kind, value)
    elif option.kind == "option":
        value = _inside(value)
    return {option.name: value}


def _merge(declared: FieldStatement, first: Option, other: Option, names: Names, scope: Scope) -> Option:
    other = _as_map(other)
    if first.kind != "map" or other.kind != "map":
        return other
    return Option(other.name, "map", _merged_maps(declared, first.value, other.value, names, scope), other.is_custom)


def _merged_maps(
    declared: FieldStatement | None, first: dict[str, Any], other: dict[str, Any], names: Names, scope: Scope
) -> dict[str, Any]:
    holder = _message_of(declared, names, scope)
    found = dict(first)
    for name, value in other.items():
        inner = None if holder is None else next((item for item in _fields(holder) if item.name == name), None)
        found[name] = _merged_values(inner, found[name], value, names, scope) if name in found else value
    return found


def _merged_values(inner: FieldStatement | None, first: Any, other: Any, names: Names, scope: Scope) -> Any:
    if inner is not None and inner.label != "repeated" and not inner.type.startswith("map<"):
        if isinstance(first, dict) and isinstance(other, dict) and _message_of(inner, names, scope) is not None:
            return _merged_maps(inner, first, other, names, scope)
        return other
    values: dict[Any, Any] = {}
    for side in (first, other):
        for value in side if isinstance(side, list) else [side]:
            values.setdefault(plain(value), value)
    return list(values.values())


def _message_of(declared: FieldStatement | None, names: Names, scope: Scope) -> MessageStatement | None:
    full_name = None if declared is None else names.type(declared.type, scope)
    found = names.types.get(full_name) if full_name is not None else None
    return found if isinstance(found, MessageStatement) else None


def _fields(message: MessageStatement) -> list[FieldStatement]:
    return [*message.fields, *(field for oneof in message.oneofs for field in oneof.fields)]
