"""Differences of keywords that hold values: types, enums, bounds, annotations, and keywords that nobody knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from registry.formats.base import Difference
from registry.formats.json_schema.difference_rules import ATTRIBUTE_OF
from registry.formats.json_schema.differences import Sides, difference
from registry.formats.json_schema.interning import Interning
from registry.formats.json_schema.text import compact

Schema = Mapping[str, Any]
_ABSENT: Final = object()


def attribute_differences(keyword: str, old: Schema, new: Schema, sides: Sides) -> Iterator[Difference]:
    """Of a keyword with a value of its own; bounds are told as raised or lowered."""
    attribute = ATTRIBUTE_OF[keyword]
    before, after = old.get(keyword, _ABSENT), new.get(keyword, _ABSENT)
    there = sides.inside(keyword)
    if before is _ABSENT:
        yield difference(f"{attribute.prefix}_ADDED", there, None, after, only="new")
    elif after is _ABSENT:
        yield difference(f"{attribute.prefix}_REMOVED", there, before, None, only="old")
    elif compact(before) != compact(after):
        yield difference(_changed(attribute.prefix, attribute.category == "bound", before, after), there, before, after)


def _changed(prefix: str, is_bound: bool, before: Any, after: Any) -> str:
    if not _is_number(before) or not _is_number(after):
        return f"{prefix}_CHANGED"
    if before == after:
        return "NUMBER_REWRITTEN"
    if not is_bound:
        return f"{prefix}_CHANGED"
    return f"{prefix}_RAISED" if before < after else f"{prefix}_LOWERED"


def keyword_differences(keyword: str, old: Schema, new: Schema, sides: Sides) -> Iterator[Difference]:
    """Of a keyword that no draft knows, or one in a form that isn't its own."""
    before, after = old.get(keyword, _ABSENT), new.get(keyword, _ABSENT)
    there = sides.inside(keyword)
    if before is _ABSENT:
        yield difference("KEYWORD_ADDED", there, None, after, name=keyword, only="new")
    elif after is _ABSENT:
        yield difference("KEYWORD_REMOVED", there, before, None, name=keyword, only="old")
    elif compact(before) != compact(after):
        yield difference("KEYWORD_CHANGED", there, before, after, name=keyword)


def type_differences(keyword: str, old: Schema, new: Schema, sides: Sides) -> Iterator[Difference]:
    """Of the type: a set of names, in which number holds integer."""
    there = sides.inside("type")
    if keyword not in old:
        yield difference("TYPE_ADDED", there, None, _words(new["type"]), only="new")
        return
    if keyword not in new:
        yield difference("TYPE_REMOVED", there, _words(old["type"]), None, only="old")
        return
    before, after = _types(old["type"]), _types(new["type"])
    if before != after:
        rule = "TYPE_WIDENED" if before < after else "TYPE_NARROWED" if after < before else "TYPE_CHANGED"
        yield difference(rule, there, _words(old["type"]), _words(new["type"]))
    elif compact(old["type"]) != compact(new["type"]):
        yield difference("REORDERED", there, old["type"], new["type"], name="the names of the type")


def enum_differences(keyword: str, old: Schema, new: Schema, sides: Sides) -> Iterator[Difference]:
    """Of the values of an enum, one by one."""
    there = sides.inside("enum")
    if keyword not in old:
        yield difference("ENUM_ADDED", there, None, new["enum"], only="new")
        return
    if keyword not in new:
        yield difference("ENUM_REMOVED", there, old["enum"], None, only="old")
        return
    interning = Interning()
    before, after = old["enum"], new["enum"]
    ours, theirs = [interning.number(value) for value in before], [interning.number(value) for value in after]
    known_ours, known_theirs = set(ours), set(theirs)
    for index, number in enumerate(ours):
        if number not in known_theirs:
            yield difference("ENUM_VALUE_REMOVED", there.inside(index), before[index], None, only="old")
    for index, number in enumerate(theirs):
        if number not in known_ours:
            yield difference("ENUM_VALUE_ADDED", there.inside(index), None, after[index], only="new")
    kept_ours, kept_theirs = [n for n in ours if n in known_theirs], [n for n in theirs if n in known_ours]
    if kept_ours != kept_theirs or (known_ours == known_theirs and compact(before) != compact(after)):
        yield difference("REORDERED", there, before, after, name="the values of the enum")


def order_differences(words: str, old: list[Any], new: list[Any], sides: Sides) -> Iterator[Difference]:
    """What both sides have stands in another order."""
    if old == new:
        return
    known_old, known_new = set(old), set(new)
    kept_old, kept_new = [key for key in old if key in known_new], [key for key in new if key in known_old]
    if kept_old != kept_new:
        yield difference("REORDERED", sides, kept_old, kept_new, name=words)


def _types(named: Any) -> frozenset[str]:
    names = {named} if isinstance(named, str) else set(named)
    return frozenset(names | {"integer"} if "number" in names else names)


def _words(named: Any) -> str:
    return named if isinstance(named, str) else " or ".join(named)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)
