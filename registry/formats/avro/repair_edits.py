"""The single edits of a repair: of fields, their defaults and aliases, and of types."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from registry.formats.avro.canonical import field_source, type_source
from registry.formats.avro.defaults import initial_value
from registry.formats.avro.model import (
    AvroSchema,
    AvroType,
    Enum,
    Fixed,
    Named,
    Record,
    RecordField,
    Spot,
    Union,
    field_at,
    root_of,
    type_at,
    type_label,
)
from registry.formats.avro.renames import likely_sources
from registry.formats.base import Incompatibility
from registry.formats.json_edit import NoSuchPlace, TextEdit, json_source
from registry.formats.json_pointer import parent, without_comments

_PARTS: Final = ("/symbols", "/size")


@dataclass(frozen=True, slots=True)
class Case:
    """A finding from the perspective of the edited side."""

    own: AvroSchema
    finding: Incompatibility
    pointer: str
    defined: frozenset[str]
    other_root: AvroType | None
    other_pointer: str

    @classmethod
    def of(cls, own: AvroSchema, other: AvroSchema, finding: Incompatibility, *, is_reader: bool) -> Case:
        """Return the case of a finding."""
        sides = [
            (finding.reader_pointer, finding.reader_source),
            (finding.writer_pointer, finding.writer_source),
        ]
        (pointer, source), (other_pointer, other_source) = sides if is_reader else sides[::-1]
        here = "/nowhere" if pointer is None or source is not None else pointer
        defined = frozenset(own.named)
        return cls(own, finding, here, defined, root_of(other, other_source), other_pointer or "")

    def spot(self) -> Spot:
        """Return the edited side's type; raises NoSuchPlace."""
        return required(type_at(self.own.root, use_of(self.pointer)))

    def other(self) -> Spot:
        """Return the other side's type; raises NoSuchPlace."""
        return required(type_at(self.other_root, use_of(self.other_pointer)))

    def definition(self) -> Named:
        """Return the edited named type if the edited text defines it; raises NoSuchPlace."""
        type_ = self.spot().type
        if not isinstance(type_, Named) or type_.source is not None:
            raise NoSuchPlace(self.pointer)
        return type_

    def own_field(self) -> tuple[Record, RecordField]:
        """Return the edited side's field; raises NoSuchPlace."""
        match = field_at(self.own.root, self.pointer)
        if match is None:
            raise NoSuchPlace(self.pointer)
        return match


Step = Callable[[Case, TextEdit], str]


def use_of(pointer: str) -> str:
    """Return the pointer to the use of a type, for a finding that points to a part of the definition."""
    for part in _PARTS:
        pointer = pointer.removesuffix(part)
    return pointer


def required(spot: Spot | None) -> Spot:
    """Return the spot; raises NoSuchPlace if it is None."""
    if spot is None:
        raise NoSuchPlace("type")
    return spot


def pretty(source: str) -> str:
    """Return JSON text with conventional spaces."""
    return json_source(json.loads(source))


_MAX_REMOVED_SINGLY: Final = 20


def add_default(case: Case, edit: TextEdit) -> str:
    """Give the field a default of its type, or of a union's first branch: null or an empty value."""
    _, field = case.own_field()
    value = json_source(initial_value(field.type))
    edit.set_member(case.pointer, "default", value)
    return f'give "{field.name}" the default {value}: {_instead(case, field, value)}'


def make_optional(case: Case, edit: TextEdit) -> str:
    """Make the field nullable with the default null."""
    _, field = case.own_field()
    pointer = f"{case.pointer}/type"
    if isinstance(field.type, Union):
        raise NoSuchPlace(pointer)
    edit.replace(pointer, f'["null", {edit.source(pointer)}]')
    edit.set_member(case.pointer, "default", "null")
    return f'make "{field.name}" nullable with the default null: {_instead(case, field, "null")}'


def _instead(case: Case, field: RecordField, value: str) -> str:
    """Describe the value that readers get from an invented default, and what it replaces."""
    own, other = case.own_field()[0], case.other().type
    source = likely_sources(own, other).get(field.name) if isinstance(other, Record) else None
    lost = f'instead of the data of "{source.name}"' if source is not None else "for all data written without it"
    return f"readers get {value} {lost}"


def restore_former_name(case: Case, edit: TextEdit) -> str:
    """Give a field that was renamed with an alias its old name, and make the new name the alias."""
    other_match, record = field_at(case.other_root, case.other_pointer), case.definition()
    if other_match is None or not isinstance(record, Record):
        raise NoSuchPlace(case.other_pointer)
    old = other_match[1].name
    own = next((field for field in record.fields if old in field.aliases), None)
    # a name that the other side also has must stay
    if own is None or old in record.by_name or own.name in other_match[0].by_name:
        raise NoSuchPlace(old)
    edit.set_member(own.pointer, "name", json_source(old))
    edit.replace(f"{own.pointer}/aliases/{own.aliases.index(old)}", json_source(own.name))
    return f'call "{own.name}" "{old}" again, with the alias "{own.name}": readers of the other side know no alias'


def restore_field(case: Case, edit: TextEdit) -> str:
    """Restore a field of the other side in the edited record."""
    return _restore_field(case, edit)


def restore_field_at_end(case: Case, edit: TextEdit) -> str:
    """Restore the field after all others, where the types that it needs are defined."""
    return _restore_field(case, edit, is_last=True)


def _restore_field(case: Case, edit: TextEdit, *, is_last: bool = False) -> str:
    other_match, record = field_at(case.other_root, case.other_pointer), case.definition()
    if other_match is None or not isinstance(record, Record):
        raise NoSuchPlace(case.other_pointer)
    source = pretty(field_source(other_match[1], record.namespace, case.defined))
    count = len(record.fields)
    edit.insert_item(f"{record.pointer}/fields", count if is_last else min(other_match[1].position, count), source)
    return f'restore the field "{other_match[1].name}"'


def drop_aliases(case: Case, edit: TextEdit) -> str:
    """Remove aliases of the field until at most one field of the writer matches it."""
    record, field = case.own_field()
    writer = case.other().type
    if not isinstance(writer, Record):
        raise NoSuchPlace(case.pointer)
    matching = [alias for alias in field.aliases if alias in writer.by_name]
    remaining = None if field.name in writer.by_name else matching[0] if matching else None
    gone = [alias for alias in matching if alias != remaining]
    _remove_aliases(edit, field, gone)
    lost = ", ".join(alias for alias in gone if alias not in record.by_name)
    loss = f': readers then drop the values of "{lost}"' if lost else ""
    return f'remove the alias "{", ".join(gone)}" from "{field.name}"{loss}' if gone else ""


def leave_alias_to_one(case: Case, edit: TextEdit) -> str:
    """Leave the name of a writer's field to one field: the one with that name, otherwise the first."""
    record, _ = case.own_field()
    name = str(case.finding.before)
    fields = [field for field in record.fields if name in field.aliases and field.name != name]
    gone = fields if name in record.by_name else fields[1:]
    for field in gone:
        _remove_aliases(edit, field, [name])
    return f'remove the alias "{name}" from {", ".join(field.name for field in gone[:10])}' if gone else ""


def leave_alias_to_one_with_defaults(case: Case, edit: TextEdit) -> str:
    """Like `leave_alias_to_one`, with defaults for the fields that then get nothing from the writer."""
    record, _ = case.own_field()
    title = leave_alias_to_one(case, edit)
    filled = [
        field
        for field in record.fields
        if not field.has_default and case.finding.before in field.aliases and field.name != case.finding.before
    ]
    for field in filled if case.finding.before in record.by_name else filled[1:]:
        edit.set_member(field.pointer, "default", json_source(initial_value(field.type)))
    return f"{title} and give it a default, which readers get instead of the writer's data" if title else ""


def _remove_aliases(edit: TextEdit, field: RecordField, aliases: list[str]) -> None:
    aliases_pointer = f"{field.pointer}/aliases"
    if len(aliases) > _MAX_REMOVED_SINGLY:
        edit.replace(aliases_pointer, json_source([alias for alias in field.aliases if alias not in set(aliases)]))
        aliases = []
    for alias in aliases:
        edit.remove(aliases_pointer, list(json.loads(without_comments(edit.source(aliases_pointer)))).index(alias))
    if edit.has(aliases_pointer) and not edit.node(aliases_pointer).starts:
        edit.remove_member(field.pointer, "aliases")


def restore_type(case: Case, edit: TextEdit) -> str:
    """Replace the edited type with the other side's."""
    own, other = _restorable(case)
    source = pretty(type_source(other.type, own.namespace, case.defined))
    edit.replace(use_of(case.pointer), source)
    return f"restore the type {type_label(other.type)}"


def restore_definition(case: Case, edit: TextEdit) -> str:
    """Like `restore_type`, with the definition in full because the replaced type contained it."""
    own, other = _restorable(case)
    inside = frozenset({own.type.full_name}) if isinstance(own.type, Named) else frozenset()
    if isinstance(other.type, Named):
        inside |= {other.type.full_name}
    source = pretty(type_source(other.type, own.namespace, case.defined - inside))
    edit.replace(use_of(case.pointer), source)
    return f"restore the type {type_label(other.type)}"


def _restorable(case: Case) -> tuple[Spot, Spot]:
    """Return both types; raises NoSuchPlace if a branch of the other side's union would replace the edited union."""
    own, other = case.spot(), case.other()
    around = type_at(case.other_root, parent(use_of(case.other_pointer)))
    if isinstance(own.type, Union) and around is not None and isinstance(around.type, Union):
        raise NoSuchPlace(case.pointer)
    return own, other


def restore_type_and_default(case: Case, edit: TextEdit) -> str:
    """Replace the edited type and its unsuitable default with those of the other side."""
    own_field, other_field = parent(use_of(case.pointer)), parent(use_of(case.other_pointer))
    other_match = field_at(case.other_root, other_field)
    if other_match is None or field_at(case.own.root, own_field) is None:
        raise NoSuchPlace(own_field)
    title = restore_type(case, edit)
    if other_match[1].has_default:
        edit.set_member(own_field, "default", json_source(other_match[1].default))
        return f"{title} and its default"
    edit.remove_member(own_field, "default")
    return f"{title} without a default"


def add_branch(case: Case, edit: TextEdit) -> str:
    """Make the edited type a union that includes the other side's."""
    own, other = case.spot(), case.other()
    pointer = use_of(case.pointer)
    if isinstance(other.type, Union):
        raise NoSuchPlace(pointer)
    source = pretty(type_source(other.type, own.namespace, case.defined))
    if isinstance(own.type, Union):
        edit.insert_item(pointer, len(own.type.branches), source)
    else:
        edit.replace(pointer, f"[{edit.source(pointer)}, {source}]")
    return f"accept {type_label(other.type)} as a branch of the union"


def add_null(case: Case, edit: TextEdit) -> str:
    """Make the edited type nullable; null comes last if there is a default, whose branch older Avro needs first."""
    own, pointer, match = case.spot(), case.pointer, field_at(case.own.root, parent(case.pointer))
    is_last = match is not None and match[1].has_default
    if isinstance(own.type, Union):
        edit.insert_item(pointer, len(own.type.branches) if is_last else 0, '"null"')
    else:
        branches = [edit.source(pointer), '"null"'] if is_last else ['"null"', edit.source(pointer)]
        edit.replace(pointer, f"[{', '.join(branches)}]")
    return "accept null"


def drop_branch(case: Case, edit: TextEdit) -> str:
    """Remove the branch that the other side can't read from the edited union."""
    holder, _, index = case.pointer.rpartition("/")
    spot = required(type_at(case.own.root, holder))
    if not isinstance(spot.type, Union) or not index.isdigit():
        raise NoSuchPlace(case.pointer)
    branch, around = spot.type.branches[int(index)], type_at(case.other_root, use_of(case.other_pointer))
    others = around.type.branches if around is not None and isinstance(around.type, Union) else ()
    if any(_are_alike(item, branch) for item in others):
        raise NoSuchPlace(case.pointer)  # the other side has the branch, so the break is inside it
    if len(spot.type.branches) == 2:
        edit.replace(holder, edit.source(f"{holder}/{1 - int(index)}"))
    else:
        edit.remove(holder, int(index))
    return f"don't write {type_label(branch)}"


def _are_alike(one: AvroType, other: AvroType) -> bool:
    """Return whether readers treat two branches as one, by name or kind."""
    if isinstance(one, Named) and isinstance(other, Named):
        return one.full_name == other.full_name
    return one.kind == other.kind


def _missing_symbols(case: Case) -> tuple[Enum, list[str]]:
    """Return the edited enum, and the other side's symbols that it lacks."""
    own, other = case.definition(), case.other().type
    if not isinstance(own, Enum) or not isinstance(other, Enum):
        raise NoSuchPlace(case.pointer)
    return own, [symbol for symbol in other.symbols if symbol not in own.symbol_set]


def add_symbols(case: Case, edit: TextEdit) -> str:
    """Add the other side's symbols to the edited enum."""
    own, missing = _missing_symbols(case)
    if missing:
        edit.append_items(f"{own.pointer}/symbols", [json_source(symbol) for symbol in missing])
    return f"restore the symbols {', '.join(missing[:20])}" if missing else ""


def add_enum_default(case: Case, edit: TextEdit) -> str:
    """Give the edited enum a default symbol, which replaces unknown ones."""
    own = case.definition()
    if not isinstance(own, Enum) or not own.symbols:
        raise NoSuchPlace(case.pointer)
    edit.set_member(own.pointer, "default", json_source(own.symbols[0]))
    return f'read unknown symbols as the default "{own.symbols[0]}"'


def drop_symbols(case: Case, edit: TextEdit) -> str:
    """Remove the symbols that the other side lacks from the edited enum."""
    own, other = case.definition(), case.other().type
    if not isinstance(own, Enum) or not isinstance(other, Enum):
        raise NoSuchPlace(case.pointer)
    gone = [symbol for symbol in own.symbols if symbol not in other.symbol_set]
    if len(gone) > _MAX_REMOVED_SINGLY:
        remaining = [symbol for symbol in own.symbols if symbol in other.symbol_set]
        edit.replace(f"{own.pointer}/symbols", json_source(remaining))
    else:
        for symbol in reversed(gone):
            edit.remove(f"{own.pointer}/symbols", own.symbols.index(symbol))
    return f"don't write the symbols {', '.join(gone[:20])}" if gone else ""


def restore_size(case: Case, edit: TextEdit) -> str:
    """Give the edited fixed type the other side's size."""
    own, other = case.definition(), case.other().type
    if not isinstance(own, Fixed) or not isinstance(other, Fixed):
        raise NoSuchPlace(case.pointer)
    edit.replace(f"{own.pointer}/size", str(other.size))
    return f"restore the size of {other.size} bytes"


def add_type_alias(case: Case, edit: TextEdit) -> str:
    """Add the other side's full name to the edited type's aliases."""
    own, other = _named_sides(case)
    alias = other.full_name if other.namespace or not own.namespace else f".{other.full_name}"
    add_to_list(edit, own.pointer, "aliases", alias)
    return f'add the alias "{alias}" to {own.full_name}'


def add_to_list(edit: TextEdit, pointer: str, key: str, value: str) -> None:
    """Add a string to an object's array member, which is created if missing; raises NoSuchPlace."""
    list_pointer = f"{pointer}/{key}"
    if edit.has(list_pointer):
        edit.insert_item(list_pointer, len(edit.node(list_pointer).starts), json_source(value))
    else:
        edit.set_member(pointer, key, f"[{json_source(value)}]")


def rename_type(case: Case, edit: TextEdit) -> str:
    """Give the edited type the other side's name."""
    own, other = _named_sides(case)
    edit.replace(f"{own.pointer}/name", json_source(other.full_name if other.namespace else other.simple))
    if not other.namespace and own.namespace:
        edit.set_member(own.pointer, "namespace", '""')
    elif edit.has(f"{own.pointer}/namespace"):
        edit.replace(f"{own.pointer}/name", json_source(other.simple))
        edit.replace(f"{own.pointer}/namespace", json_source(other.namespace))
    return f"rename {own.full_name} to {other.full_name}"


def _named_sides(case: Case) -> tuple[Named, Named]:
    """Return both named types; for a finding about a field, the records."""
    field = field_at(case.own.root, case.pointer)
    own: AvroType = case.definition() if field is None else field[0]
    other_field = field_at(case.other_root, case.other_pointer)
    other: AvroType = case.other().type if other_field is None else other_field[0]
    if not isinstance(own, Named) or not isinstance(other, Named) or own.source is not None:
        raise NoSuchPlace(case.pointer)
    return own, other


def same_branch_first(case: Case, edit: TextEdit) -> str:
    """Move the branch with the other side's type to the front of the union."""
    own, other = case.spot().type, case.other().type
    if not isinstance(own, Union):
        raise NoSuchPlace(case.pointer)
    position = next((at for at, branch in enumerate(own.branches) if branch.kind == other.kind), 0)
    source = edit.source(f"{case.pointer}/{position}")
    edit.remove(case.pointer, position)
    edit.insert_item(case.pointer, 0, source)
    return f"put {type_label(own.branches[position])} before the other branches"
