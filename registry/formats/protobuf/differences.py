"""Differences of single parts: a sentence each, with the pointers of both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from registry.formats.base import Difference
from registry.formats.protobuf.difference_rules import DIFFERENCE_RULES
from registry.formats.protobuf.model import MAX_FIELD_NUMBER, Enum, Field, Message, full_label


@dataclass(frozen=True, slots=True)
class Spot:
    """Where something is or was: the path for people, and the pointer on each side, None where it isn't."""

    path: str
    old: str | None
    new: str | None


def difference(
    rule: str,
    spot: Spot,
    before: Any,
    after: Any,
    *,
    name: str = "",
    score: float | None = None,
    reasons: tuple[str, ...] = (),
) -> Difference:
    """A difference with its sentence."""
    row = DIFFERENCE_RULES[rule]
    return Difference(
        rule=rule,
        kind=row.kind,
        pointer_old=spot.old,
        pointer_new=spot.new,
        path=spot.path,
        before=before,
        after=after,
        message=row.sentence.format(name=name, before=_shown(before), after=_shown(after)),
        score=score,
        reasons=reasons,
    )


def _shown(value: Any) -> str:
    if value == "":
        return "none"
    if isinstance(value, dict) and "number" in value:
        return f"{value['type']} = {value['number']}" + (f", default {value['default']}" if "default" in value else "")
    return str(value)


def field_value(field: Field) -> dict[str, Any]:
    """A field as JSON values, for one that only one side has."""
    value: dict[str, Any] = {"name": field.name, "type": full_label(field), "number": field.number}
    if field.declared_default is not None:
        value["default"] = field.declared_default
    if field.oneof is not None:
        value["oneof"] = field.oneof
    return value


def added_or_changed(rule: str, spot: Spot, before: Any, after: Any) -> Iterator[Difference]:
    """RULE_ADDED, RULE_REMOVED or RULE_CHANGED of a value, by which of the two is None."""
    if before != after:
        event = "ADDED" if before is None else "REMOVED" if after is None else "CHANGED"
        yield difference(f"{rule}_{event}", spot, before, after)


def doc_differences(before: str, after: str, spot: Spot) -> Iterator[Difference]:
    """A comment that comes, goes or changes."""
    yield from added_or_changed("DOC", spot, before or None, after or None)


def option_differences(
    before: Mapping[str, str], after: Mapping[str, str], spot: Spot, name: str
) -> Iterator[Difference]:
    """Options that come, go or change; `deprecated` in words of its own."""
    if before == after:
        return
    for option in dict.fromkeys((*after, *before)):
        old, new = before.get(option), after.get(option)
        if old == new:
            continue
        if option == "deprecated":
            is_now = new == "true"
            if is_now or old == "true":
                rule = "DEPRECATED" if is_now else "NO_LONGER_DEPRECATED"
                yield difference(rule, spot, old == "true", is_now, name=name)
            continue
        event = "ADDED" if old is None else "REMOVED" if new is None else "CHANGED"
        yield difference(f"OPTION_{event}", spot, old, new, name=option)


def reserved_differences(old: Message | Enum, new: Message | Enum, spot: Spot) -> Iterator[Difference]:
    """Numbers and names that are reserved or no longer."""
    before, after = _reserved(old), _reserved(new)
    here = Spot(spot.path, f"{spot.old}/reserved", f"{spot.new}/reserved")
    yield from _ranges("RESERVED", before, after, here)


def extension_range_differences(old: Message, new: Message, spot: Spot) -> Iterator[Difference]:
    """Numbers that are for extensions or no longer."""
    before = [range_text(*span) for span in old.extension_ranges]
    after = [range_text(*span) for span in new.extension_ranges]
    yield from _ranges("EXTENSION_RANGE", before, after, spot)


def _ranges(rule: str, before: Iterable[str], after: Iterable[str], spot: Spot) -> Iterator[Difference]:
    was, now = set(before), set(after)
    for item in after:
        if item not in was:
            yield difference(f"{rule}_ADDED", Spot(spot.path, None, spot.new), None, item)
    for item in before:
        if item not in now:
            yield difference(f"{rule}_REMOVED", Spot(spot.path, spot.old, None), item, None)


def _reserved(part: Message | Enum) -> list[str]:
    return [*(range_text(*span) for span in part.reserved), *(f'"{name}"' for name in sorted(part.reserved_names))]


def range_text(first: int, last: int) -> str:
    """A range as the text writes it."""
    if first == last:
        return str(first)
    return f"{first} to {'max' if last >= MAX_FIELD_NUMBER else last}"
