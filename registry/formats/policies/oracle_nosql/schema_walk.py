"""Differences between two Avro schemas for the store's evolution rules: by name, without aliases.

The walk has its own stack and visits each pair of named types once, so depth and recursion cost nothing extra.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from registry.errors import InvalidSchema, first_few
from registry.formats.avro.defaults import why_invalid
from registry.formats.avro.diff import DiffLocation
from registry.formats.avro.findings import root_path
from registry.formats.avro.model import Array, AvroType, Enum, Fixed, Map, Named, Record, RecordField, Union, type_label
from registry.formats.avro.renames import suspected_renames

MAX_STEPS: Final = 200_000
_WIDENINGS: Final = {
    "int": frozenset({"long", "float", "double"}),
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
}


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """A rule that applies at a place; `only_new` and `only_old` mean that the other side has no such place.

    `old_source` and `new_source` name the reference that contains the place; None for the schema's own text.
    """

    rule: str
    location: DiffLocation
    name: str = ""
    before: Any = None
    after: Any = None
    detail: str = ""
    score: float | None = None
    reasons: tuple[str, ...] = ()
    only_new: bool = False
    only_old: bool = False
    old_source: str | None = None
    new_source: str | None = None


Work = RuleMatch | tuple[AvroType, AvroType, DiffLocation]
Sources = tuple[str | None, str | None]


def evolution(old: AvroType, new: AvroType) -> Iterator[RuleMatch]:
    """Yield all matches of the rules for the change from `old` to `new`, in the order of the text.

    Raises InvalidSchema if the two schemas have more than MAX_STEPS places to compare.
    """
    visited = {(id(old), id(new))}
    location = DiffLocation(root_path(new), "", "")
    if isinstance(old, Record) and isinstance(new, Record) and old.full_name != new.full_name:
        yield RuleMatch("RECORD_RENAMED", location, before=old.full_name, after=new.full_name)
    first: list[Work] = [(old, new, location)]
    if isinstance(old, Record) and isinstance(new, Record):
        first = list(_records(old, new, location))
    stack: list[tuple[Work, Sources]] = [(work, (old.source, new.source)) for work in reversed(first)]
    steps = 0
    while stack:
        steps += 1
        if steps > MAX_STEPS:
            raise InvalidSchema(f"the two schemas have more than {MAX_STEPS} parts to compare: make them smaller")
        work, sources = stack.pop()
        if isinstance(work, RuleMatch):
            yield replace(work, old_source=sources[0], new_source=sources[1])
            continue
        before, after, here = work
        inner = (before.source, after.source) if isinstance(before, Named) and isinstance(after, Named) else sources
        for step in reversed(list(_between(before, after, here, visited))):
            # A changed name is reported where the type is used, everything else where it is defined.
            is_use = isinstance(step, RuleMatch) and step.rule == "TYPE_RENAMED"
            stack.append((step, sources if is_use else inner))


def new_fields(root: AvroType) -> Iterator[tuple[Record, RecordField, str]]:
    """Yield every field of every record of a schema once, with its named path."""
    visited: set[int] = set()
    stack: list[tuple[AvroType, str]] = [(root, root_path(root))]
    while stack:
        type_, path = stack.pop()
        if isinstance(type_, Record):
            if id(type_) in visited:
                continue
            visited.add(id(type_))
            for field in type_.fields:
                yield type_, field, f"{path}.{field.name}"
            stack.extend((field.type, f"{path}.{field.name}") for field in reversed(type_.fields))
        elif isinstance(type_, Array):
            stack.append((type_.items, f"{path}[]"))
        elif isinstance(type_, Map):
            stack.append((type_.values, f"{path}{{}}"))
        elif isinstance(type_, Union):
            stack.extend((branch, path) for branch in reversed(type_.branches))


def why_default_is_invalid(field: RecordField) -> str | None:
    """Return why a field's default doesn't match its type, or None; unions need a value of their first branch."""
    return why_invalid(field.type, field.default, is_strict=True)


def _between(old: AvroType, new: AvroType, location: DiffLocation, visited: set[tuple[int, int]]) -> Iterator[Work]:
    if isinstance(old, Union) and isinstance(new, Union):
        yield from _unions(old, new, location)
    elif isinstance(old, Union) or isinstance(new, Union):
        yield from _union_and_other(old, new, location)
    elif old.kind != new.kind:
        rule = "TYPE_WIDENED" if new.kind in _WIDENINGS.get(old.kind, ()) else "TYPE_CHANGED"
        yield RuleMatch(rule, location, before=type_label(old), after=type_label(new))
    else:
        yield from _same_kind(old, new, location, visited)


def _same_kind(old: AvroType, new: AvroType, location: DiffLocation, visited: set[tuple[int, int]]) -> Iterator[Work]:
    if isinstance(old, Named) and isinstance(new, Named):
        if old.full_name != new.full_name:
            yield RuleMatch("TYPE_RENAMED", location, before=old.full_name, after=new.full_name)
        if (id(old), id(new)) in visited:
            return
        visited.add((id(old), id(new)))
        location = DiffLocation(location.path, old.pointer, new.pointer)
    if old.logical != new.logical:
        yield RuleMatch("LOGICAL_TYPE_CHANGED", location, before=type_label(old), after=type_label(new))
    if isinstance(old, Record) and isinstance(new, Record):
        yield from _records(old, new, location)
    elif isinstance(old, Enum) and isinstance(new, Enum):
        yield from _enums(old, new, location)
    elif isinstance(old, Fixed) and isinstance(new, Fixed) and old.size != new.size:
        yield RuleMatch("FIXED_SIZE_CHANGED", location.inside("size"), before=old.size, after=new.size)
    elif isinstance(old, Array) and isinstance(new, Array):
        yield (old.items, new.items, _deeper(location, "[]", "items"))
    elif isinstance(old, Map) and isinstance(new, Map):
        yield (old.values, new.values, _deeper(location, "{}", "values"))


def _deeper(location: DiffLocation, sign: str, token: str) -> DiffLocation:
    inside = location.inside(token)
    return DiffLocation(location.path + sign, inside.old, inside.new)


def _records(old: Record, new: Record, location: DiffLocation) -> Iterator[Work]:
    removed = [field for field in old.fields if field.name not in new.by_name]
    added = [field for field in new.fields if field.name not in old.by_name]
    yield from _renames(removed, added, location)
    for field in removed:
        if not field.has_default:
            there = DiffLocation(f"{location.path}.{field.name}", field.pointer, location.new)
            yield RuleMatch(
                "FIELD_DELETED_WITHOUT_DEFAULT", there, field.name, type_label(field.type), None, only_old=True
            )
    for field in new.fields:
        before = old.by_name.get(field.name)
        path = f"{location.path}.{field.name}"
        if before is not None:
            here = DiffLocation(path, before.pointer, field.pointer)
            if before.has_default and not field.has_default:
                yield RuleMatch("DEFAULT_REMOVED", here, field.name, before.default, None)
            yield (before.type, field.type, here.inside("type"))
        elif not field.has_default:
            there = DiffLocation(path, location.old, field.pointer)
            yield RuleMatch(
                "FIELD_ADDED_WITHOUT_DEFAULT", there, field.name, None, type_label(field.type), only_new=True
            )


def _renames(removed: list[RecordField], added: list[RecordField], location: DiffLocation) -> Iterator[RuleMatch]:
    by_name = {field.name: field for field in removed}
    by_old_name: dict[str, RecordField] = {}
    for field in added:
        alias = next((alias for alias in field.aliases if alias in by_name and alias not in by_old_name), None)
        if alias is not None:
            by_old_name[alias] = field
            there = DiffLocation(f"{location.path}.{field.name}", by_name[alias].pointer, field.pointer)
            yield RuleMatch("FIELD_RENAMED", there, field.name, alias, field.name)
    renamed = {field.name for field in by_old_name.values()}
    left = [field for field in removed if field.name not in by_old_name]
    for rename in suspected_renames(left, [field for field in added if field.name not in renamed]):
        there = DiffLocation(f"{location.path}.{rename.new.name}", rename.old.pointer, rename.new.pointer)
        yield RuleMatch(
            "FIELD_RENAME_SUSPECTED",
            there,
            rename.new.name,
            rename.old.name,
            rename.new.name,
            detail=", ".join(rename.reasons),
            score=rename.score,
            reasons=rename.reasons,
        )


def _enums(old: Enum, new: Enum, location: DiffLocation) -> Iterator[RuleMatch]:
    gone = [symbol for symbol in old.symbols if symbol not in new.symbol_set]
    come = [symbol for symbol in new.symbols if symbol not in old.symbol_set]
    there = location.inside("symbols")
    if gone:
        yield RuleMatch("ENUM_SYMBOLS_REMOVED", there, first_few(gone, 20), list(old.symbols), list(new.symbols))
    if come:
        yield RuleMatch("ENUM_SYMBOLS_ADDED", there, first_few(come, 20), list(old.symbols), list(new.symbols))


def _union_and_other(old: AvroType, new: AvroType, location: DiffLocation) -> Iterator[Work]:
    """Yield the matches if only one side is a union; it is harmless if it has only the other side's type."""
    union, other = (old, new) if isinstance(old, Union) else (new, old)
    branches = _branches(union)
    same = branches.get(_key(other))
    before, after = type_label(old), type_label(new)
    if same is not None and len(branches) == 1:
        yield RuleMatch("UNION_OF_ONE", location, before=before, after=after)
        branch, position = same
        if union is old:
            yield (branch, other, location.in_old(position))
        else:
            yield (other, branch, location.in_new(position))
    elif same is not None and union is new:
        yield RuleMatch("UNION_INTRODUCED", location, before=before, after=after)
    else:
        yield RuleMatch("TYPE_CHANGED", location, before=before, after=after)


def _unions(old: Union, new: Union, location: DiffLocation) -> Iterator[Work]:
    before, after = _branches(old), _branches(new)
    for key, (branch, position) in before.items():
        if key not in after:
            label = type_label(branch)
            yield RuleMatch("UNION_BRANCH_REMOVED", location.in_old(position), label, label, None, only_old=True)
    for key, (branch, position) in after.items():
        if key not in before:
            label = type_label(branch)
            yield RuleMatch("UNION_BRANCH_ADDED", location.in_new(position), label, None, label, only_new=True)
        else:
            old_branch, at = before[key]
            yield (old_branch, branch, location.in_old(at).in_new(position))


def _branches(type_: AvroType) -> dict[str, tuple[AvroType, int]]:
    branches = type_.branches if isinstance(type_, Union) else (type_,)
    return {_key(branch): (branch, position) for position, branch in enumerate(branches)}


def _key(type_: AvroType) -> str:
    return type_.full_name if isinstance(type_, Named) else type_.kind
