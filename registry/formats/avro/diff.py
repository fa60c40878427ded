"""All differences between two Avro schemas, with pointers and paths, in the order of the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from registry.formats.avro.canonical import json_text
from registry.formats.avro.findings import root_path
from registry.formats.avro.model import Array, AvroType, Enum, Fixed, Map, Named, Record, RecordField, Union, type_label
from registry.formats.avro.renames import cure_of, effect_of, suspected_renames
from registry.formats.avro.resolution import READS
from registry.formats.avro.rules import DIFFERENCE_RULES
from registry.formats.base import Difference
from registry.formats.json_pointer import join

_LOGICAL_PROPERTIES: Final = frozenset({"logicalType", "precision", "scale"})


@dataclass(frozen=True, slots=True)
class DiffLocation:
    """The place where two types are compared: the path, and the pointers of both sides."""

    path: str
    old: str
    new: str

    def inside(self, *tokens: str | int) -> DiffLocation:
        """Return the location with the tokens appended on both sides."""
        return DiffLocation(self.path, join(self.old, *tokens), join(self.new, *tokens))

    def in_old(self, *tokens: str | int) -> DiffLocation:
        """Return the location with the tokens appended on the old side, for a part that the new side lacks."""
        return DiffLocation(self.path, join(self.old, *tokens), self.new)

    def in_new(self, *tokens: str | int) -> DiffLocation:
        """Return the location with the tokens appended on the new side, for a part that the old side lacks."""
        return DiffLocation(self.path, self.old, join(self.new, *tokens))


def difference(
    rule: str,
    location: DiffLocation,
    before: Any,
    after: Any,
    *,
    name: str = "",
    only: Literal["old", "new"] | None = None,
    score: float | None = None,
    reasons: tuple[str, ...] = (),
    effect: str = "",
    cure: str = "",
) -> Difference:
    """Return a difference with its sentence; `only` names the only side with such a place."""
    row = DIFFERENCE_RULES[rule]
    return Difference(
        rule=rule,
        kind=row.kind,
        pointer_old=None if only == "new" else location.old,
        pointer_new=None if only == "old" else location.new,
        path=location.path,
        before=before,
        after=after,
        message=row.sentence.format(name=name, before=_shown(before), after=_shown(after)),
        score=score,
        reasons=reasons,
        effect=effect,
        cure=cure,
    )


def field_difference(rule: str, path: str, field: RecordField) -> Difference:
    """Return the difference for a field that only one side has: FIELD_ADDED or FIELD_REMOVED."""
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


def default_differences(old: RecordField, new: RecordField, location: DiffLocation) -> Iterator[Difference]:
    """Yield the differences of a field's default."""
    if old.has_default and new.has_default:
        if json_text(old.default) != json_text(new.default):
            yield difference("DEFAULT_CHANGED", location.inside("default"), old.default, new.default)
    elif new.has_default:
        yield difference("DEFAULT_ADDED", location.in_new("default"), None, new.default)
    elif old.has_default:
        yield difference("DEFAULT_REMOVED", location.in_old("default"), old.default, None)


def symbol_differences(old: Enum, new: Enum, location: DiffLocation) -> Iterator[Difference]:
    """Yield the differences of an enum's symbols and default symbol."""
    for position, symbol in enumerate(old.symbols):
        if symbol not in new.symbol_set:
            yield difference("ENUM_SYMBOL_REMOVED", location.in_old("symbols", position), symbol, None, only="old")
    for position, symbol in enumerate(new.symbols):
        if symbol not in old.symbol_set:
            yield difference("ENUM_SYMBOL_ADDED", location.in_new("symbols", position), None, symbol, only="new")
    kept_old = [symbol for symbol in old.symbols if symbol in new.symbol_set]
    if kept_old != [symbol for symbol in new.symbols if symbol in old.symbol_set]:
        yield difference("ENUM_SYMBOLS_REORDERED", location.inside("symbols"), list(old.symbols), list(new.symbols))
    yield from _attribute("ENUM_DEFAULT", location, "default", old.default, new.default)


def logical_differences(old: AvroType, new: AvroType, location: DiffLocation) -> Iterator[Difference]:
    """Yield the differences of valid logical types; an invalid one is a property."""
    before = None if old.logical is None else str(old.logical)
    after = None if new.logical is None else str(new.logical)
    yield from _attribute("LOGICAL_TYPE", location, "logicalType", before, after)


def doc_differences(old: str | None, new: str | None, location: DiffLocation) -> Iterator[Difference]:
    """Yield the differences of documentation."""
    yield from _attribute("DOC", location, "doc", old, new)


def alias_differences(old: tuple[str, ...], new: tuple[str, ...], location: DiffLocation) -> Iterator[Difference]:
    """Yield the differences of aliases one by one, or a change of their order, which has no meaning in Avro."""
    if old == new:
        return
    before, after = set(old), set(new)
    for alias in old:
        if alias not in after:
            yield difference("ALIAS_REMOVED", location.in_old("aliases"), alias, None)
    for alias in new:
        if alias not in before:
            yield difference("ALIAS_ADDED", location.in_new("aliases"), None, alias)
    if before == after:
        yield difference("ALIASES_REORDERED", location.inside("aliases"), list(old), list(new))


def property_differences(
    old: Mapping[str, Any], new: Mapping[str, Any], location: DiffLocation, has_logical_difference: bool
) -> Iterator[Difference]:
    """Yield the differences of custom properties; those of a logical type only if not reported already."""
    if old is new:
        return
    for key in [*old, *(key for key in new if key not in old)]:
        if has_logical_difference and key in _LOGICAL_PROPERTIES:
            continue
        if key not in new:
            yield difference("PROPERTY_REMOVED", location.in_old(key), old[key], None, name=key)
        elif key not in old:
            yield difference("PROPERTY_ADDED", location.in_new(key), None, new[key], name=key)
        elif json_text(old[key]) != json_text(new[key]):
            yield difference("PROPERTY_CHANGED", location.inside(key), old[key], new[key], name=key)
    if list(old) != list(new) and set(old) == set(new):
        yield difference("PROPERTIES_REORDERED", location, list(old), list(new))


def _attribute(rule: str, location: DiffLocation, key: str, old: Any, new: Any) -> Iterator[Difference]:
    """Yield the difference of an attribute that is None if absent."""
    if old == new:
        return
    if old is None:
        yield difference(f"{rule}_ADDED", location.in_new(key), None, new)
    elif new is None:
        yield difference(f"{rule}_REMOVED", location.in_old(key), old, None)
    else:
        yield difference(f"{rule}_CHANGED", location.inside(key), old, new)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) and value else json_text(value)
    return text if len(text) <= 200 else text[:199] + "…"


Work = Difference | tuple[AvroType, AvroType, DiffLocation]


def diff_types(old: AvroType, new: AvroType) -> tuple[Difference, ...]:
    """Return all differences between two root types."""
    differences: list[Difference] = []
    visited: set[tuple[int, int]] = set()
    stack: list[Work] = [(old, new, DiffLocation(root_path(new), "", ""))]
    while stack:
        work = stack.pop()
        if isinstance(work, Difference):
            differences.append(work)
            continue
        before, after, location = work
        if isinstance(before, Named) and isinstance(after, Named):
            key = (id(before), id(after))
            if key in visited:
                continue
            visited.add(key)
        if before is not after:
            stack.extend(reversed(list(_between(before, after, location))))
    return tuple(differences)


def _between(old: AvroType, new: AvroType, location: DiffLocation) -> Iterator[Work]:
    if isinstance(old, Union) or isinstance(new, Union):
        yield from _unions(old, new, location)
        return
    if old.kind != new.kind:
        yield difference(_type_rule(old, new), location, type_label(old), type_label(new))
        return
    if isinstance(old, Array) and isinstance(new, Array):
        yield (
            old.items,
            new.items,
            DiffLocation(location.path + "[]", join(location.old, "items"), join(location.new, "items")),
        )
    elif isinstance(old, Map) and isinstance(new, Map):
        yield (
            old.values,
            new.values,
            DiffLocation(location.path + "{}", join(location.old, "values"), join(location.new, "values")),
        )
    elif isinstance(old, Named) and isinstance(new, Named):
        yield from _named(old, new, DiffLocation(location.path, old.pointer, new.pointer))
    yield from logical_differences(old, new, location)
    yield from property_differences(old.props, new.props, location, old.logical != new.logical)


def _type_rule(old: AvroType, new: AvroType) -> str:
    is_widened, is_narrowed = old.kind in READS.get(new.kind, ()), new.kind in READS.get(old.kind, ())
    if is_widened and is_narrowed:
        return "TYPE_EXCHANGED"
    return "TYPE_WIDENED" if is_widened else "TYPE_NARROWED" if is_narrowed else "TYPE_CHANGED"


def _unions(old: AvroType, new: AvroType, location: DiffLocation) -> Iterator[Work]:
    before, after = _branches(old), _branches(new)
    has_null_difference = ("null" in before) != ("null" in after)
    if has_null_difference:
        rule = "NULL_ADDED" if "null" in after else "NULL_REMOVED"
        yield difference(rule, location, type_label(old), type_label(new))
    before.pop("null", None)
    after.pop("null", None)
    if isinstance(old, Union) != isinstance(new, Union) and not (
        has_null_difference and len(before) == len(after) == 1
    ):
        rule = "UNION_INTRODUCED" if isinstance(new, Union) else "UNION_DISSOLVED"
        yield difference(rule, location, type_label(old), type_label(new))
    common = [key for key in before if key in after]
    gone = [key for key in before if key not in after]
    come = [key for key in after if key not in before]
    if len(gone) == len(come) == 1 and _may_be_one(before[gone[0]][0], after[come[0]][0]):
        yield _branch_work(old, new, location, before[gone[0]], after[come[0]])
        gone, come = [], []
    for key in gone if isinstance(old, Union) else ():
        type_, position = before[key]
        yield difference("UNION_BRANCH_REMOVED", location.in_old(position), type_label(type_), None, only="old")
    for key in come if isinstance(new, Union) else ():
        type_, position = after[key]
        yield difference("UNION_BRANCH_ADDED", location.in_new(position), None, type_label(type_), only="new")
    if isinstance(old, Union) and isinstance(new, Union) and _is_reordered(old, new):
        yield difference("UNION_REORDERED", location, _labels(old), _labels(new))
    for key in common:
        yield _branch_work(old, new, location, before[key], after[key])


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
    """Return whether the only removed and the only added branch are reported as a change of one type."""
    return old.kind == new.kind or _type_rule(old, new) != "TYPE_CHANGED"


def _branch_work(
    old: AvroType, new: AvroType, location: DiffLocation, before: tuple[AvroType, int], after: tuple[AvroType, int]
) -> Work:
    at_old = join(location.old, before[1]) if isinstance(old, Union) else location.old
    at_new = join(location.new, after[1]) if isinstance(new, Union) else location.new
    return (before[0], after[0], DiffLocation(location.path, at_old, at_new))


def _named(old: Named, new: Named, location: DiffLocation) -> Iterator[Work]:
    if old.simple != new.simple:
        yield difference("TYPE_RENAMED", location.inside("name"), old.full_name, new.full_name)
    elif old.namespace != new.namespace:
        yield difference("NAMESPACE_CHANGED", location, old.namespace, new.namespace)
    yield from doc_differences(old.doc, new.doc, location)
    yield from alias_differences(old.aliases, new.aliases, location)
    if isinstance(old, Record) and isinstance(new, Record):
        if old.is_error != new.is_error:
            labels = ("error", "ordinary record") if old.is_error else ("record", "error")
            yield difference("ERROR_CHANGED", location.inside("type"), *labels)
        yield from _fields(old, new, location)
    elif isinstance(old, Enum) and isinstance(new, Enum):
        yield from symbol_differences(old, new, location)
    elif isinstance(old, Fixed) and isinstance(new, Fixed) and old.size != new.size:
        yield difference("FIXED_SIZE_CHANGED", location.inside("size"), old.size, new.size)


def _fields(old: Record, new: Record, location: DiffLocation) -> Iterator[Work]:
    matched = matched_fields(old, new)
    taken = {field.name for field in matched.values()}
    for after in new.fields:
        before = matched.get(after.name)
        if before is None:
            yield field_difference("FIELD_ADDED", location.path, after)
        else:
            yield from _field(before, after, location.path)
    removed = [field for field in old.fields if field.name not in taken]
    for field in removed:
        yield field_difference("FIELD_REMOVED", location.path, field)
    added = [field for field in new.fields if field.name not in matched]
    for rename in suspected_renames(removed, added):
        there = DiffLocation(f"{location.path}.{rename.new.name}", rename.old.pointer, rename.new.pointer)
        yield difference(
            "FIELD_RENAME_SUSPECTED",
            there,
            rename.old.name,
            rename.new.name,
            score=rename.score,
            reasons=rename.reasons,
            effect=effect_of(rename),
            cure=cure_of(rename),
        )
    old_positions = [matched[field.name].position for field in new.fields if field.name in matched]
    if old_positions != sorted(old_positions):
        names_old, names_new = [f.name for f in old.fields], [f.name for f in new.fields]
        yield difference("FIELDS_REORDERED", location.inside("fields"), names_old, names_new)


def matched_fields(old: Record, new: Record) -> dict[str, RecordField]:
    """Map each field of the new record to the old record's field with that name, otherwise with one of its aliases."""
    matched = {field.name: old.by_name[field.name] for field in new.fields if field.name in old.by_name}
    taken = set(matched)
    for field in new.fields:
        if field.name not in matched:
            alias = next((name for name in field.aliases if name in old.by_name and name not in taken), None)
            if alias is not None:
                taken.add(alias)
                matched[field.name] = old.by_name[alias]
    return matched


def _field(old: RecordField, new: RecordField, path: str) -> Iterator[Work]:
    location = DiffLocation(f"{path}.{new.name}", old.pointer, new.pointer)
    if old.name != new.name:
        yield difference("FIELD_RENAMED", location.inside("name"), old.name, new.name)
    if old.type is not new.type or isinstance(new.type, Named):
        yield (old.type, new.type, location.inside("type"))
    yield from default_differences(old, new, location)
    if old.order != new.order:
        yield difference("ORDER_CHANGED", location.inside("order"), old.order, new.order)
    yield from doc_differences(old.doc, new.doc, location)
    yield from alias_differences(old.aliases, new.aliases, location)
    yield from property_differences(old.props, new.props, location, False)
