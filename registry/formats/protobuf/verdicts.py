"""Which rule a loss falls under, from the two fields that met."""

from __future__ import annotations

from typing import Any

from registry.formats.protobuf.hazards import field_hazards
from registry.formats.protobuf.model import Field, full_label
from registry.formats.protobuf.scalars import GROUPS, is_narrowing
from registry.formats.protobuf.well_known import is_reinterpreted


def rule_of(theirs: Field, ours: Field, *, is_zero: bool, is_unnamed: bool = False) -> str:
    """The rule of a value that changed.

    `is_zero`: the datum leaves the field out, because it is zero or empty; `is_unnamed`: it holds a number that the
    writer's enum has no name for.
    """
    if theirs.number != ours.number:
        return "FIELD_RENUMBERED"
    if theirs.is_map and ours.is_map and theirs.message is not None and ours.message is not None:
        return _rule_of_entries(theirs.message.by_number, ours.message.by_number, is_unnamed=is_unnamed)
    if (theirs.kind == "group") != (ours.kind == "group"):
        return "WIRE_TYPE_CHANGED"
    if theirs.is_map != ours.is_map or (theirs.message is None) != (ours.message is None):
        return "FIELD_KIND_CHANGED"
    if theirs.message is not None and ours.message is not None:
        is_merged = theirs.is_repeated and not ours.is_repeated
        if is_merged:
            return "REPEATED_READ_AS_SINGLE"
        is_other = is_reinterpreted(theirs.message, ours.message)
        return "KNOWN_TYPE_REINTERPRETED" if is_other else "FIELD_NAMED_TYPE_CHANGED"
    if GROUPS[theirs.kind] != GROUPS[ours.kind]:
        return "FIELD_SCALAR_KIND_CHANGED"
    if theirs.is_repeated and not ours.is_repeated:
        is_told = theirs.label and ours.label and GROUPS[ours.kind] != "text"
        return "FIELD_NUMERIC_LABEL_CHANGED" if is_told else "REPEATED_READ_AS_SINGLE"
    if is_zero:
        return "ZERO_READ_AS_DEFAULT"
    return _rule_of_values(theirs, ours, is_unnamed=is_unnamed)


def has_unnamed(field: Field, value: Any) -> bool:
    """Whether a value for a field, or one of several, is a number that the field's enum has no name for."""
    if field.is_map and field.message is not None:
        inner = field.message.by_number[2]
        return any(has_unnamed(inner, item) for _, item in value)
    if field.enum is None:
        return False
    return any(number not in field.enum.by_number for number in (value if field.is_repeated else (value,)))


def sides_of(rule: str, theirs: Field | None, ours: Field) -> tuple[Any, Any]:
    """What each side has, as the rule's sentence tells it: numbers, values of enums, defaults, else the types."""
    if theirs is None:
        return None, full_label(ours)
    if rule == "FIELD_RENUMBERED":
        return theirs.number, ours.number
    found = ((before, after) for told, _, before, after in field_hazards(theirs, ours, is_moved=True) if told == rule)
    return next(found, (full_label(theirs), full_label(ours)))


def _rule_of_entries(theirs: dict[int, Field], ours: dict[int, Field], *, is_unnamed: bool) -> str:
    for number in (1, 2):
        rule = rule_of(theirs[number], ours[number], is_zero=False, is_unnamed=is_unnamed)
        if rule not in ("VALUE_NARROWED", "FIELD_NAMED_TYPE_CHANGED") or is_narrowing(theirs[number], ours[number]):
            return rule
    return "FIELD_NAMED_TYPE_CHANGED"


def _rule_of_values(theirs: Field, ours: Field, *, is_unnamed: bool) -> str:
    if theirs.kind == "bytes" and ours.kind == "string":
        return "BYTES_READ_AS_STRING"
    if theirs.enum is not None and ours.enum is not None:
        if is_unnamed:
            return "ENUM_CLOSED"
        missing = set(theirs.enum.by_number) - set(ours.enum.by_number)
        return "CLOSED_ENUM_VALUE_MISSING" if ours.enum.is_closed and missing else "ENUM_VALUE_RENUMBERED"
    return "VALUE_NARROWED"
