"""Differences of single parts: fields, enums and their values, with the pointers of both sides."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from registry.formats.base import Difference
from registry.formats.protobuf.findings import default_text
from registry.formats.protobuf.model import (
    GROUPS,
    MAX_FIELD_NUMBER,
    Enum,
    Field,
    Message,
    full_label,
    is_narrowing,
    type_label,
)
from registry.formats.protobuf.renames import cure_of, effect_of, suspected_renames
from registry.formats.protobuf.rules import DIFFERENCE_RULES


@dataclass(frozen=True, slots=True)
class DifferencePath:
    """The place of a part: the path for people, and the pointer on each side, None if the side lacks it."""

    path: str
    old: str | None
    new: str | None


def difference(
    rule: str,
    location: DifferencePath,
    before: Any,
    after: Any,
    *,
    name: str = "",
    score: float | None = None,
    reasons: tuple[str, ...] = (),
    effect: str = "",
    cure: str = "",
) -> Difference:
    """Return a difference with its sentence."""
    row = DIFFERENCE_RULES[rule]
    return Difference(
        rule=rule,
        kind=row.kind,
        pointer_old=location.old,
        pointer_new=location.new,
        path=location.path,
        before=before,
        after=after,
        message=row.sentence.format(name=name, before=_shown(before), after=_shown(after)),
        score=score,
        reasons=reasons,
        effect=effect,
        cure=cure,
    )


def _shown(value: Any) -> str:
    if value == "":
        return "none"
    if isinstance(value, dict) and "number" in value:
        return f"{value['type']} = {value['number']}" + (f", default {value['default']}" if "default" in value else "")
    return str(value)


def field_value(field: Field) -> dict[str, Any]:
    """Return a field that only one side has as JSON values."""
    value: dict[str, Any] = {"name": field.name, "type": full_label(field), "number": field.number}
    if field.declared_default is not None:
        value["default"] = field.declared_default
    if field.oneof is not None:
        value["oneof"] = field.oneof
    return value


def added_or_changed(rule: str, location: DifferencePath, before: Any, after: Any) -> Iterator[Difference]:
    """Yield RULE_ADDED or RULE_REMOVED if one value is None, or RULE_CHANGED if both exist and differ."""
    if before != after:
        event = "ADDED" if before is None else "REMOVED" if after is None else "CHANGED"
        yield difference(f"{rule}_{event}", location, before, after)


def doc_differences(before: str, after: str, location: DifferencePath) -> Iterator[Difference]:
    """Yield the difference if a comment is added, removed or changed."""
    yield from added_or_changed("DOC", location, before or None, after or None)


def option_differences(
    before: Mapping[str, str], after: Mapping[str, str], location: DifferencePath, name: str
) -> Iterator[Difference]:
    """Yield the options that are added, removed or changed; `deprecated` has its own rules."""
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
                yield difference(rule, location, old == "true", is_now, name=name)
            continue
        event = "ADDED" if old is None else "REMOVED" if new is None else "CHANGED"
        yield difference(f"OPTION_{event}", location, old, new, name=option)


def _reserved_differences(old: Message | Enum, new: Message | Enum, removed: Mapping[int, str]) -> Iterator[Difference]:
    """Yield changes of reserved numbers and names, except those that belong to `removed` fields or values."""
    reported = _reserved_for(removed, old, new)
    before, after = (
        [
            *(range_text(*span) for span in part.reserved if span not in reported),
            *(f'"{name}"' for name in sorted(part.reserved_names.difference(removed.values()))),
        ]
        for part in (old, new)
    )
    yield from _ranges(
        "RESERVED", before, after, DifferencePath(new.local_name, f"{old.pointer}/reserved", f"{new.pointer}/reserved")
    )


def _reserved_for(removed: Mapping[int, str], old: Message | Enum, new: Message | Enum) -> set[tuple[int, int]]:
    """Return the new ranges that add only removed numbers to reserved ones, and the old ranges inside them."""
    parts = sorted([*((number, number) for number in removed), *old.reserved])
    reported = set[tuple[int, int]]()
    for first, last in set(new.reserved).difference(old.reserved):
        start = end = bisect_left(parts, (first, first))
        following = first
        while end < len(parts) and parts[end][0] == following <= last:
            following = parts[end][1] + 1
            end += 1
        if following == last + 1 and any(part[0] in removed for part in parts[start:end]):
            reported |= {(first, last), *parts[start:end]}
    return reported


def _removal(
    rule: str, location: DifferencePath, value: Any, number: int, name: str, new: Message | Enum
) -> Difference:
    """Return the removal of a field or value, and say whether its number and name are reserved."""
    row = difference(rule, location, value, None, name=name)
    is_kept = any(first <= number <= last for first, last in new.reserved)
    kept = [*(["number"] if is_kept else []), *(["name"] if name in new.reserved_names else [])]
    verb = "are" if len(kept) > 1 else "is"
    return replace(row, message=f"{row.message}; its {' and '.join(kept)} {verb} reserved") if kept else row


def extension_range_differences(old: Message, new: Message, location: DifferencePath) -> Iterator[Difference]:
    """Yield the extension ranges that are added or removed."""
    before = [range_text(*span) for span in old.extension_ranges]
    after = [range_text(*span) for span in new.extension_ranges]
    yield from _ranges("EXTENSION_RANGE", before, after, location)


def _ranges(rule: str, before: Iterable[str], after: Iterable[str], location: DifferencePath) -> Iterator[Difference]:
    was, now = set(before), set(after)
    for item in after:
        if item not in was:
            yield difference(f"{rule}_ADDED", DifferencePath(location.path, None, location.new), None, item)
    for item in before:
        if item not in now:
            yield difference(f"{rule}_REMOVED", DifferencePath(location.path, location.old, None), item, None)


def range_text(first: int, last: int) -> str:
    """Return a range with its inclusive end as text."""
    if first == last:
        return str(first)
    return f"{first} to {'max' if last >= MAX_FIELD_NUMBER else last}"


def enum_differences(old: Enum, new: Enum) -> Iterator[Difference]:
    """Yield all differences between two enums with one name."""
    location = DifferencePath(new.local_name, old.pointer, new.pointer)
    yield from doc_differences(old.doc, new.doc, location)
    if old.is_closed != new.is_closed:
        yield difference("ENUM_CLOSED" if new.is_closed else "ENUM_OPENED", location, None, None)
    yield from option_differences(old.options, new.options, location, new.name)
    yield from _values(old, new)


def _values(old: Enum, new: Enum) -> Iterator[Difference]:
    gone = {number: name for name, number in old.numbers.items() if name not in new.numbers}
    for name, number in new.numbers.items():
        path, pointer = f"{new.local_name}.{name}", f"{new.pointer}/values/{number}"
        if name in old.numbers:
            was = old.numbers[name]
            location = DifferencePath(path, f"{old.pointer}/values/{was}", pointer)
            if was != number:
                yield difference("ENUM_VALUE_RENUMBERED", location, was, number, name=name)
            yield from doc_differences(old.value_docs.get(name, ""), new.value_docs.get(name, ""), location)
            before, after = old.value_options.get(name, {}), new.value_options.get(name, {})
            yield from option_differences(before, after, location, name)
        elif number in gone:
            location = DifferencePath(path, f"{old.pointer}/values/{number}", pointer)
            yield difference("ENUM_VALUE_RENAMED", location, gone.pop(number), name)
        else:
            yield difference("ENUM_VALUE_ADDED", DifferencePath(path, None, pointer), None, number, name=name)
    for number, name in gone.items():
        location = DifferencePath(f"{old.local_name}.{name}", f"{old.pointer}/values/{number}", None)
        yield _removal("ENUM_VALUE_REMOVED", location, number, number, name, new)
    yield from _reserved_differences(old, new, gone)


def field_differences(old: Message, new: Message) -> Iterator[Difference]:
    """Yield all differences of the fields, in the order of the new message, removed ones last."""
    pairs = _pairs(old, new)
    renamed = renamed_oneofs(old, new)
    met = {id(before) for before in pairs.values()}
    removed = [field for field in old.fields if id(field) not in met]
    renames = suspected_renames(removed, [field for field in new.fields if field.number not in pairs])
    for after in new.fields:
        before = pairs.get(after.number)
        path = f"{new.local_name}.{after.name}"
        if before is None:
            location = DifferencePath(path, None, after.pointer)
            yield difference("FIELD_ADDED", location, None, field_value(after), name=after.name)
        else:
            location = DifferencePath(path, before.pointer, after.pointer)
            yield from _field(before, after, location)
            yield from _oneof(before, after, location, renamed)
    for before in removed:
        location = DifferencePath(f"{old.local_name}.{before.name}", before.pointer, None)
        yield _removal("FIELD_REMOVED", location, field_value(before), before.number, before.name, new)
        yield from _unreserved(before, new)
    for rename in renames:
        location = DifferencePath(f"{new.local_name}.{rename.new.name}", rename.old.pointer, rename.new.pointer)
        names = rename.old.name, rename.new.name
        yield difference(
            "FIELD_RENAME_SUSPECTED",
            location,
            *names,
            score=rename.score,
            reasons=rename.reasons,
            effect=effect_of(rename),
            cure=cure_of(rename),
        )
    yield from _order(old, new, pairs)
    yield from _reserved_differences(old, new, {field.number: field.name for field in removed})


def _pairs(old: Message, new: Message) -> dict[int, Field]:
    """Map each new number to the old field; a field with the same name but another number was renumbered."""
    pairs: dict[int, Field] = {}
    old_names = {field.name: field for field in old.fields}
    new_names = {field.name for field in new.fields}
    for after in new.fields:
        before = old_names.get(after.name) or old.by_number.get(after.number)
        if before is not None and (before.name == after.name or before.name not in new_names):
            pairs[after.number] = before
    return pairs


def _unreserved(field: Field, new: Message) -> Iterator[Difference]:
    location = DifferencePath(f"{new.local_name}.{field.name}", field.pointer, new.pointer)
    if not new.is_reserved(field.number) and field.number not in new.by_number:
        yield difference("NUMBER_NOT_RESERVED", location, field.number, None, name=field.name)
    if field.name not in new.reserved_names:
        yield difference("NAME_NOT_RESERVED", location, field.name, None, name=field.name)


def _order(old: Message, new: Message, pairs: dict[int, Field]) -> Iterator[Difference]:
    indexes = {id(field): index for index, field in enumerate(old.fields)}
    # A stored text has oneofs after the other fields, wherever they are in the submitted text.
    apart: dict[tuple[bool, bool], list[int]] = {}
    for field in new.fields:
        if (before := pairs.get(field.number)) is not None:
            apart.setdefault((before.oneof is None, field.oneof is None), []).append(indexes[id(before)])
    if any(positions != sorted(positions) for positions in apart.values()):
        location = DifferencePath(new.local_name, old.pointer, new.pointer)
        names = [field.name for field in old.fields], [field.name for field in new.fields]
        yield difference("FIELDS_REORDERED", location, *names)


def _field(old: Field, new: Field, location: DifferencePath) -> Iterator[Difference]:
    if old.name != new.name:
        yield difference("FIELD_RENAMED", location, old.name, new.name)
    if old.number != new.number:
        yield difference("FIELD_RENUMBERED", location, old.number, new.number, name=new.name)
    if _type_key(old) != _type_key(new):
        here = DifferencePath(location.path, f"{location.old}/type", f"{location.new}/type")
        yield difference(_type_rule(old, new), here, type_label(old), type_label(new))
    labels = _label(old), _label(new)
    if labels[0] != labels[1]:
        yield difference("LABEL_CHANGED", location, *labels)
    here = DifferencePath(location.path, f"{location.old}/default", f"{location.new}/default")
    yield from added_or_changed("DEFAULT", here, _default(old), _default(new))
    if old.json_name != new.json_name and (old.name == new.name or not _is_derived(old, new)):
        yield difference("JSON_NAME_CHANGED", location, old.json_name, new.json_name)
    yield from option_differences(old.options, new.options, location, new.name)
    yield from doc_differences(old.doc, new.doc, location)


def _is_derived(old: Field, new: Field) -> bool:
    """Return whether both JSON names are derived from the names, so that the rename covers their change."""
    return all(field.json_name.lower() == field.name.replace("_", "").lower() for field in (old, new))


def _type_key(field: Field) -> str:
    """Return a type's name without the schema's own package."""
    if field.is_map and field.message is not None:
        return f"map<{field.message.by_number[1].kind}, {_type_key(field.message.by_number[2])}>"
    named = field.message or field.enum
    if named is not None:
        return f"{field.kind} {named.local_name if named.source is None else named.full_name}"
    return field.kind


def _type_rule(old: Field, new: Field) -> str:
    if old.is_map or new.is_map or GROUPS.get(old.kind, "") != GROUPS.get(new.kind, "other"):
        return "TYPE_CHANGED"
    if {old.kind, new.kind} == {"string", "bytes"}:
        return "TYPE_WIDENED" if new.kind == "bytes" else "TYPE_NARROWED"
    narrows, widens = is_narrowing(old, new), is_narrowing(new, old)
    if narrows == widens:
        return "TYPE_CHANGED"
    return "TYPE_NARROWED" if narrows else "TYPE_WIDENED"


def _label(field: Field) -> str:
    if field.is_map:
        return ""
    return "required" if field.is_required else full_label(field).removesuffix(type_label(field)).strip()


def renamed_oneofs(old: Message, new: Message) -> dict[str, str]:
    """Map new names of oneofs to removed ones with the same field numbers."""
    gone = {oneof.numbers: name for name, oneof in old.oneofs.items() if name not in new.oneofs}
    return {
        name: gone[oneof.numbers]
        for name, oneof in new.oneofs.items()
        if name not in old.oneofs and oneof.numbers in gone
    }


def _oneof(old: Field, new: Field, location: DifferencePath, renamed: dict[str, str]) -> Iterator[Difference]:
    if new.oneof == old.oneof or (new.oneof in renamed and renamed[new.oneof] == old.oneof):
        return
    rule = "MOVED_BETWEEN_ONEOFS"
    if old.oneof is None or new.oneof is None:
        rule = "MOVED_INTO_ONEOF" if old.oneof is None else "MOVED_OUT_OF_ONEOF"
    yield difference(rule, location, old.oneof, new.oneof)


def _default(field: Field) -> str | None:
    return None if field.declared_default is None else default_text(field)


def extension_differences(old: Sequence[Field], new: Sequence[Field]) -> Iterator[Difference]:
    """Yield the differences of extensions, by full name; changes are like those of any field."""
    before_by_name = {field.name: field for field in old}
    after_names = {field.name for field in new}
    for after in new:
        before = before_by_name.get(after.name)
        if before is None:
            location = DifferencePath(after.shown_name, None, after.pointer)
            yield difference("EXTENSION_ADDED", location, None, field_value(after), name=after.name)
        else:
            yield from _field(before, after, DifferencePath(after.shown_name, before.pointer, after.pointer))
    for before in old:
        if before.name not in after_names:
            location = DifferencePath(before.shown_name, before.pointer, None)
            yield difference("EXTENSION_REMOVED", location, field_value(before), None, name=before.name)
