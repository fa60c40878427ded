"""The differences of the fields of one message: met by number and name, then by name, then by number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from registry.formats.base import Difference
from registry.formats.protobuf.differences import (
    Spot,
    added_or_changed,
    difference,
    doc_differences,
    field_value,
    option_differences,
)
from registry.formats.protobuf.hazards import default_text
from registry.formats.protobuf.model import Field, Message, full_label, type_label
from registry.formats.protobuf.renames import suspected_renames
from registry.formats.protobuf.scalars import GROUPS, is_narrowing


def field_differences(old: Message, new: Message) -> Iterator[Difference]:
    """All differences of the fields, in the order of the new message, what is gone behind."""
    pairs = _pairs(old, new)
    renamed = renamed_oneofs(old, new)
    met = {id(before) for before in pairs.values()}
    removed = [field for field in old.fields if id(field) not in met]
    renames = suspected_renames(removed, [field for field in new.fields if field.number not in pairs])
    for after in new.fields:
        before = pairs.get(after.number)
        path = f"{new.local_name}.{after.name}"
        if before is None:
            spot = Spot(path, None, after.pointer)
            yield difference("FIELD_ADDED", spot, None, field_value(after), name=after.name)
        else:
            spot = Spot(path, before.pointer, after.pointer)
            yield from _field(before, after, spot)
            yield from _oneof(before, after, spot, renamed)
    for before in removed:
        spot = Spot(f"{old.local_name}.{before.name}", before.pointer, None)
        yield difference("FIELD_REMOVED", spot, field_value(before), None, name=before.name)
        yield from _unreserved(before, new)
    for rename in renames:
        spot = Spot(f"{new.local_name}.{rename.new.name}", rename.old.pointer, rename.new.pointer)
        names = rename.old.name, rename.new.name
        yield difference("FIELD_RENAME_SUSPECTED", spot, *names, score=rename.score, reasons=rename.reasons)
    yield from _order(old, new, pairs)


def _pairs(old: Message, new: Message) -> dict[int, Field]:
    """The old field of each new number; a name under another number is the same field with a new number."""
    pairs: dict[int, Field] = {}
    old_names = {field.name: field for field in old.fields}
    new_names = {field.name for field in new.fields}
    for after in new.fields:
        before = old_names.get(after.name) or old.by_number.get(after.number)
        if before is not None and (before.name == after.name or before.name not in new_names):
            pairs[after.number] = before
    return pairs


def _unreserved(field: Field, new: Message) -> Iterator[Difference]:
    spot = Spot(f"{new.local_name}.{field.name}", field.pointer, new.pointer)
    if not new.is_reserved(field.number) and field.number not in new.by_number:
        yield difference("NUMBER_NOT_RESERVED", spot, field.number, None, name=field.name)
    if field.name not in new.reserved_names:
        yield difference("NAME_NOT_RESERVED", spot, field.name, None, name=field.name)


def _order(old: Message, new: Message, pairs: dict[int, Field]) -> Iterator[Difference]:
    places = {id(field): place for place, field in enumerate(old.fields)}
    found = [places[id(pairs[field.number])] for field in new.fields if field.number in pairs]
    if found != sorted(found):
        spot = Spot(new.local_name, old.pointer, new.pointer)
        names = [field.name for field in old.fields], [field.name for field in new.fields]
        yield difference("FIELDS_REORDERED", spot, *names)


def _field(old: Field, new: Field, spot: Spot) -> Iterator[Difference]:
    if old.name != new.name:
        yield difference("FIELD_RENAMED", spot, old.name, new.name)
    if old.number != new.number:
        yield difference("FIELD_RENUMBERED", spot, old.number, new.number, name=new.name)
    if _type_key(old) != _type_key(new):
        here = Spot(spot.path, f"{spot.old}/type", f"{spot.new}/type")
        yield difference(_type_rule(old, new), here, type_label(old), type_label(new))
    labels = _label(old), _label(new)
    if labels[0] != labels[1]:
        yield difference("LABEL_CHANGED", spot, *labels)
    here = Spot(spot.path, f"{spot.old}/default", f"{spot.new}/default")
    yield from added_or_changed("DEFAULT", here, _default(old), _default(new))
    if old.json_name != new.json_name and (old.name == new.name or not _is_derived(old, new)):
        yield difference("JSON_NAME_CHANGED", spot, old.json_name, new.json_name)
    yield from option_differences(old.options, new.options, spot, new.name)
    yield from doc_differences(old.doc, new.doc, spot)


def _is_derived(old: Field, new: Field) -> bool:
    """Whether both JSON names follow from the names, so that the rename says it all."""
    return all(field.json_name.lower() == field.name.replace("_", "").lower() for field in (old, new))


def _type_key(field: Field) -> str:
    """A type's name without the schema's own package."""
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
    """New names of oneofs that hold the same numbers under a name that is gone, with the old ones."""
    gone = {oneof.numbers: name for name, oneof in old.oneofs.items() if name not in new.oneofs}
    return {
        name: gone[oneof.numbers]
        for name, oneof in new.oneofs.items()
        if name not in old.oneofs and oneof.numbers in gone
    }


def _oneof(old: Field, new: Field, spot: Spot, renamed: dict[str, str]) -> Iterator[Difference]:
    if new.oneof == old.oneof or (new.oneof in renamed and renamed[new.oneof] == old.oneof):
        return
    rule = "MOVED_BETWEEN_ONEOFS"
    if old.oneof is None or new.oneof is None:
        rule = "MOVED_INTO_ONEOF" if old.oneof is None else "MOVED_OUT_OF_ONEOF"
    yield difference(rule, spot, old.oneof, new.oneof)


def _default(field: Field) -> str | None:
    return None if field.declared_default is None else default_text(field)


def extension_differences(old: Sequence[Field], new: Sequence[Field]) -> Iterator[Difference]:
    """Extensions by their full name: added, removed, or changed like any field."""
    before_by_name = {field.name: field for field in old}
    after_names = {field.name for field in new}
    for after in new:
        before = before_by_name.get(after.name)
        if before is None:
            spot = Spot(after.shown_name, None, after.pointer)
            yield difference("EXTENSION_ADDED", spot, None, field_value(after), name=after.name)
        else:
            yield from _field(before, after, Spot(after.shown_name, before.pointer, after.pointer))
    for before in old:
        if before.name not in after_names:
            spot = Spot(before.shown_name, before.pointer, None)
            yield difference("EXTENSION_REMOVED", spot, field_value(before), None, name=before.name)
