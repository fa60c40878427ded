"""Single differences: of attributes, each with its place, its sentence and both values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from registry.formats.avro.canonical import json_text
from registry.formats.avro.difference_rules import DIFFERENCE_RULES
from registry.formats.avro.model import AvroType, Enum, Field, type_label
from registry.formats.base import Difference
from registry.formats.pointer import join

_LOGICAL_PROPERTIES: Final = frozenset({"logicalType", "precision", "scale"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where two types meet: the path, and the pointers of both sides."""

    path: str
    old: str
    new: str

    def inside(self, *tokens: str | int) -> Place:
        """The same tokens further on both sides."""
        return Place(self.path, join(self.old, *tokens), join(self.new, *tokens))

    def in_old(self, *tokens: str | int) -> Place:
        """Further on the old side alone: what the new one lacks."""
        return Place(self.path, join(self.old, *tokens), self.new)

    def in_new(self, *tokens: str | int) -> Place:
        """Further on the new side alone: what the old one lacks."""
        return Place(self.path, self.old, join(self.new, *tokens))


def difference(
    rule: str,
    place: Place,
    before: Any,
    after: Any,
    *,
    name: str = "",
    only: Literal["old", "new"] | None = None,
    score: float | None = None,
    reasons: tuple[str, ...] = (),
) -> Difference:
    """A difference with its sentence; `only` names the side that has a pointer, where the other has no such place."""
    row = DIFFERENCE_RULES[rule]
    return Difference(
        rule=rule,
        kind=row.kind,
        pointer_old=None if only == "new" else place.old,
        pointer_new=None if only == "old" else place.new,
        path=place.path,
        before=before,
        after=after,
        message=row.sentence.format(name=name, before=_shown(before), after=_shown(after)),
        score=score,
        reasons=reasons,
    )


def field_difference(rule: str, path: str, field: Field) -> Difference:
    """A field that only one side has: FIELD_ADDED or FIELD_REMOVED."""
    is_added = rule == "FIELD_ADDED"
    label = type_label(field.type)
    message = DIFFERENCE_RULES[rule].sentence.format(name=field.name, before=label, after=label)
    if is_added:
        message += f" with the default {_shown(field.default)}" if field.has_default else " without a default"
    value = {"name": field.name, "type": label, **({"default": field.default} if field.has_default else {})}
    return Difference(
        rule=rule,
        kind=DIFFERENCE_RULES[rule].kind,
        pointer_old=None if is_added else field.pointer,
        pointer_new=field.pointer if is_added else None,
        path=f"{path}.{field.name}",
        before=None if is_added else value,
        after=value if is_added else None,
        message=message,
    )


def default_differences(old: Field, new: Field, place: Place) -> Iterator[Difference]:
    """Of the defaults of a field."""
    if old.has_default and new.has_default:
        if json_text(old.default) != json_text(new.default):
            yield difference("DEFAULT_CHANGED", place.inside("default"), old.default, new.default)
    elif new.has_default:
        yield difference("DEFAULT_ADDED", place.in_new("default"), None, new.default)
    elif old.has_default:
        yield difference("DEFAULT_REMOVED", place.in_old("default"), old.default, None)


def symbol_differences(old: Enum, new: Enum, place: Place) -> Iterator[Difference]:
    """Of the symbols and the default symbol of an enum."""
    for position, symbol in enumerate(old.symbols):
        if symbol not in new.symbol_set:
            yield difference("ENUM_SYMBOL_REMOVED", place.in_old("symbols", position), symbol, None, only="old")
    for position, symbol in enumerate(new.symbols):
        if symbol not in old.symbol_set:
            yield difference("ENUM_SYMBOL_ADDED", place.in_new("symbols", position), None, symbol, only="new")
    kept_old = [symbol for symbol in old.symbols if symbol in new.symbol_set]
    if kept_old != [symbol for symbol in new.symbols if symbol in old.symbol_set]:
        yield difference("ENUM_SYMBOLS_REORDERED", place.inside("symbols"), list(old.symbols), list(new.symbols))
    yield from _attribute("ENUM_DEFAULT", place, "default", old.default, new.default)


def logical_differences(old: AvroType, new: AvroType, place: Place) -> Iterator[Difference]:
    """Of valid logical types; an invalid one is a property."""
    before = None if old.logical is None else str(old.logical)
    after = None if new.logical is None else str(new.logical)
    yield from _attribute("LOGICAL_TYPE", place, "logicalType", before, after)


def doc_differences(old: str | None, new: str | None, place: Place) -> Iterator[Difference]:
    """Of documentation."""
    yield from _attribute("DOC", place, "doc", old, new)


def alias_differences(old: tuple[str, ...], new: tuple[str, ...], place: Place) -> Iterator[Difference]:
    """Of aliases, one by one; their order means nothing to Avro, and a change of it alone is told as well."""
    if old == new:
        return
    before, after = set(old), set(new)
    for alias in old:
        if alias not in after:
            yield difference("ALIAS_REMOVED", place.in_old("aliases"), alias, None)
    for alias in new:
        if alias not in before:
            yield difference("ALIAS_ADDED", place.in_new("aliases"), None, alias)
    if before == after:
        yield difference("ALIASES_REORDERED", place.inside("aliases"), list(old), list(new))


def property_differences(
    old: Mapping[str, Any], new: Mapping[str, Any], place: Place, is_logical_told: bool
) -> Iterator[Difference]:
    """Of the properties beyond Avro's own; those of a logical type only where it isn't told already."""
    if old is new:
        return
    for key in [*old, *(key for key in new if key not in old)]:
        if is_logical_told and key in _LOGICAL_PROPERTIES:
            continue
        if key not in new:
            yield difference("PROPERTY_REMOVED", place.in_old(key), old[key], None, name=key)
        elif key not in old:
            yield difference("PROPERTY_ADDED", place.in_new(key), None, new[key], name=key)
        elif json_text(old[key]) != json_text(new[key]):
            yield difference("PROPERTY_CHANGED", place.inside(key), old[key], new[key], name=key)
    if list(old) != list(new) and set(old) == set(new):
        yield difference("PROPERTIES_REORDERED", place, list(old), list(new))


def _attribute(rule: str, place: Place, key: str, old: Any, new: Any) -> Iterator[Difference]:
    """The difference of an attribute that is None where it is absent."""
    if old == new:
        return
    if old is None:
        yield difference(f"{rule}_ADDED", place.in_new(key), None, new)
    elif new is None:
        yield difference(f"{rule}_REMOVED", place.in_old(key), old, None)
    else:
        yield difference(f"{rule}_CHANGED", place.inside(key), old, new)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json_text(value)
    return text if len(text) <= 200 else text[:199] + "…"
