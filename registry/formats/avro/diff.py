"""All differences between two Avro schemas, for people: typed, with pointers and paths, in the order of the text.

The walk keeps its own stack and meets each pair of named types once, so that depth and recursion cost nothing extra.
"""

from __future__ import annotations

from collections.abc import Iterator

from registry.formats.avro.differences import (
    Place,
    alias_differences,
    default_differences,
    difference,
    doc_differences,
    field_difference,
    logical_differences,
    property_differences,
    symbol_differences,
)
from registry.formats.avro.findings import root_path
from registry.formats.avro.model import (
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Record,
    Union,
    type_label,
)
from registry.formats.avro.renames import suspected_renames
from registry.formats.avro.resolution import READS
from registry.formats.base import Difference
from registry.formats.pointer import join

Work = Difference | tuple[AvroType, AvroType, Place]


def diff_types(old: AvroType, new: AvroType) -> tuple[Difference, ...]:
    """All differences between two root types."""
    found: list[Difference] = []
    seen: set[tuple[int, int]] = set()
    stack: list[Work] = [(old, new, Place(root_path(new), "", ""))]
    while stack:
        work = stack.pop()
        if isinstance(work, Difference):
            found.append(work)
            continue
        before, after, place = work
        if isinstance(before, Named) and isinstance(after, Named):
            key = (id(before), id(after))
            if key in seen:
                continue
            seen.add(key)
        if before is not after:
            stack.extend(reversed(list(_between(before, after, place))))
    return tuple(found)


def _between(old: AvroType, new: AvroType, place: Place) -> Iterator[Work]:
    if isinstance(old, Union) or isinstance(new, Union):
        yield from _unions(old, new, place)
        return
    if old.kind != new.kind:
        yield difference(_type_rule(old, new), place, type_label(old), type_label(new))
        return
    if isinstance(old, Array) and isinstance(new, Array):
        yield (old.items, new.items, Place(place.path + "[]", join(place.old, "items"), join(place.new, "items")))
    elif isinstance(old, Map) and isinstance(new, Map):
        yield (old.values, new.values, Place(place.path + "{}", join(place.old, "values"), join(place.new, "values")))
    elif isinstance(old, Named) and isinstance(new, Named):
        yield from _named(old, new, Place(place.path, old.pointer, new.pointer))
    yield from logical_differences(old, new, place)
    yield from property_differences(old.props, new.props, place, old.logical != new.logical)


def _type_rule(old: AvroType, new: AvroType) -> str:
    is_widened, is_narrowed = old.kind in READS.get(new.kind, ()), new.kind in READS.get(old.kind, ())
    if is_widened and is_narrowed:
        return "TYPE_EXCHANGED"
    return "TYPE_WIDENED" if is_widened else "TYPE_NARROWED" if is_narrowed else "TYPE_CHANGED"


def _unions(old: AvroType, new: AvroType, place: Place) -> Iterator[Work]:
    before, after = _branches(old), _branches(new)
    is_null_told = ("null" in before) != ("null" in after)
    if is_null_told:
        rule = "NULL_ADDED" if "null" in after else "NULL_REMOVED"
        yield difference(rule, place, type_label(old), type_label(new))
    before.pop("null", None)
    after.pop("null", None)
    if isinstance(old, Union) != isinstance(new, Union) and not (is_null_told and len(before) == len(after) == 1):
        rule = "UNION_INTRODUCED" if isinstance(new, Union) else "UNION_DISSOLVED"
        yield difference(rule, place, type_label(old), type_label(new))
    common = [key for key in before if key in after]
    gone = [key for key in before if key not in after]
    come = [key for key in after if key not in before]
    if len(gone) == len(come) == 1 and _may_be_one(before[gone[0]][0], after[come[0]][0]):
        yield _branch_work(old, new, place, before[gone[0]], after[come[0]])
        gone, come = [], []
    for key in gone if isinstance(old, Union) else ():
        type_, position = before[key]
        yield difference("UNION_BRANCH_REMOVED", place.in_old(position), type_label(type_), None, only="old")
    for key in come if isinstance(new, Union) else ():
        type_, position = after[key]
        yield difference("UNION_BRANCH_ADDED", place.in_new(position), None, type_label(type_), only="new")
    if isinstance(old, Union) and isinstance(new, Union) and _is_reordered(old, new):
        yield difference("UNION_REORDERED", place, _labels(old), _labels(new))
    for key in common:
        yield _branch_work(old, new, place, before[key], after[key])


def _branches(type_: AvroType) -> dict[str, tuple[AvroType, int]]:
    branches = type_.branches if isinstance(type_, Union) else (type_,)
    return {_branch_key(branch): (branch, position) for position, branch in enumerate(branches)}


def _branch_key(branch: AvroType) -> str:
    return branch.full_name if isinstance(branch, Named) else branch.kind


def _labels(union: Union) -> list[str]:
    return [type_label(branch) for branch in union.branches]


def _is_reordered(old: Union, new: Union) -> bool:
    before = [_branch_key(branch) for branch in old.branches]
    after = [_branch_key(branch) for branch in new.branches]
    common = set(before) & set(after)
    return [key for key in before if key in common] != [key for key in after if key in common]


def _may_be_one(old: AvroType, new: AvroType) -> bool:
    """Whether the only branch that went and the only one that came are told as a change of one type."""
    return old.kind == new.kind or _type_rule(old, new) != "TYPE_CHANGED"


def _branch_work(
    old: AvroType, new: AvroType, place: Place, before: tuple[AvroType, int], after: tuple[AvroType, int]
) -> Work:
    at_old = join(place.old, before[1]) if isinstance(old, Union) else place.old
    at_new = join(place.new, after[1]) if isinstance(new, Union) else place.new
    return (before[0], after[0], Place(place.path, at_old, at_new))


def _named(old: Named, new: Named, place: Place) -> Iterator[Work]:
    if old.simple != new.simple:
        yield difference("TYPE_RENAMED", place.inside("name"), old.full_name, new.full_name)
    elif old.namespace != new.namespace:
        yield difference("NAMESPACE_CHANGED", place, old.namespace, new.namespace)
    yield from doc_differences(old.doc, new.doc, place)
    yield from alias_differences(old.aliases, new.aliases, place)
    if isinstance(old, Record) and isinstance(new, Record):
        if old.is_error != new.is_error:
            words = ("error", "ordinary record") if old.is_error else ("record", "error")
            yield difference("ERROR_CHANGED", place.inside("type"), *words)
        yield from _fields(old, new, place)
    elif isinstance(old, Enum) and isinstance(new, Enum):
        yield from symbol_differences(old, new, place)
    elif isinstance(old, Fixed) and isinstance(new, Fixed) and old.size != new.size:
        yield difference("FIXED_SIZE_CHANGED", place.inside("size"), old.size, new.size)


def _fields(old: Record, new: Record, place: Place) -> Iterator[Work]:
    matched = matched_fields(old, new)
    taken = {field.name for field in matched.values()}
    for after in new.fields:
        before = matched.get(after.name)
        if before is None:
            yield field_difference("FIELD_ADDED", place.path, after)
        else:
            yield from _field(before, after, place.path)
    removed = [field for field in old.fields if field.name not in taken]
    for field in removed:
        yield field_difference("FIELD_REMOVED", place.path, field)
    added = [field for field in new.fields if field.name not in matched]
    for rename in suspected_renames(removed, added):
        there = Place(f"{place.path}.{rename.new.name}", rename.old.pointer, rename.new.pointer)
        yield difference(
            "FIELD_RENAME_SUSPECTED",
            there,
            rename.old.name,
            rename.new.name,
            score=rename.score,
            reasons=rename.reasons,
        )
    kept = [matched[field.name].position for field in new.fields if field.name in matched]
    if kept != sorted(kept):
        names_old, names_new = [f.name for f in old.fields], [f.name for f in new.fields]
        yield difference("FIELDS_REORDERED", place.inside("fields"), names_old, names_new)


def matched_fields(old: Record, new: Record) -> dict[str, Field]:
    """For each field of the new record that has one: the field of the old, by name, else by alias."""
    matched = {field.name: old.by_name[field.name] for field in new.fields if field.name in old.by_name}
    taken = set(matched)
    for field in new.fields:
        if field.name not in matched:
            alias = next((name for name in field.aliases if name in old.by_name and name not in taken), None)
            if alias is not None:
                taken.add(alias)
                matched[field.name] = old.by_name[alias]
    return matched


def _field(old: Field, new: Field, path: str) -> Iterator[Work]:
    place = Place(f"{path}.{new.name}", old.pointer, new.pointer)
    if old.name != new.name:
        yield difference("FIELD_RENAMED", place.inside("name"), old.name, new.name)
    if old.type is not new.type or isinstance(new.type, Named):
        yield (old.type, new.type, place.inside("type"))
    yield from default_differences(old, new, place)
    if old.order != new.order:
        yield difference("ORDER_CHANGED", place.inside("order"), old.order, new.order)
    yield from doc_differences(old.doc, new.doc, place)
    yield from alias_differences(old.aliases, new.aliases, place)
    yield from property_differences(old.props, new.props, place, False)
