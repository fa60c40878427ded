"""Steps of a repair that change types: put back, made a union, given symbols, a size or another name."""

from __future__ import annotations

from typing import Final

from registry.formats.avro.canonical import type_source
from registry.formats.avro.model import AvroType, Enum, Fixed, Named, Union, type_label
from registry.formats.avro.places import field_at, type_at
from registry.formats.avro.repair_case import Case, pretty, required, use_of
from registry.formats.json_edit import NoSuchPlace, TextEdit, json_source
from registry.formats.pointer import parent

_MAX_REMOVED_SINGLY: Final = 20


def restore_type(case: Case, edit: TextEdit) -> str:
    """Puts the other side's type in the place of the own one."""
    own, other = case.spot(), case.other()
    source = pretty(type_source(other.type, own.namespace, case.known))
    edit.replace(use_of(case.pointer), source)
    return f"restore the type {type_label(other.type)}"


def restore_definition(case: Case, edit: TextEdit) -> str:
    """The same with the definition written out, where the own one goes with the type that is replaced."""
    own, other = case.spot(), case.other()
    inside = frozenset({own.type.full_name}) if isinstance(own.type, Named) else frozenset()
    if isinstance(other.type, Named):
        inside |= {other.type.full_name}
    source = pretty(type_source(other.type, own.namespace, case.known - inside))
    edit.replace(use_of(case.pointer), source)
    return f"restore the type {type_label(other.type)}"


def restore_type_and_default(case: Case, edit: TextEdit) -> str:
    """Puts the other side's type and default in the place of the own ones, which don't fit it."""
    own_field, other_field = parent(use_of(case.pointer)), parent(use_of(case.other_pointer))
    found = field_at(case.other_root, other_field)
    if found is None or field_at(case.own.root, own_field) is None:
        raise NoSuchPlace(own_field)
    title = restore_type(case, edit)
    if found[1].has_default:
        edit.set_member(own_field, "default", json_source(found[1].default))
        return f"{title} and its default"
    edit.remove_member(own_field, "default")
    return f"{title} without a default"


def add_branch(case: Case, edit: TextEdit) -> str:
    """Lets the own type be the other side's too, as a union."""
    own, other = case.spot(), case.other()
    place = use_of(case.pointer)
    if isinstance(other.type, Union):
        raise NoSuchPlace(place)
    source = pretty(type_source(other.type, own.namespace, case.known))
    if isinstance(own.type, Union):
        edit.insert_item(place, len(own.type.branches), source)
    else:
        edit.replace(place, f"[{edit.source(place)}, {source}]")
    return f"accept {type_label(other.type)} as a branch of the union"


def add_null(case: Case, edit: TextEdit) -> str:
    """Lets the own type be null, as the first branch; a default of another branch stays one."""
    own, place = case.spot(), case.pointer
    if isinstance(own.type, Union):
        edit.insert_item(place, 0, '"null"')
    else:
        edit.replace(place, f'["null", {edit.source(place)}]')
    return "accept null"


def drop_branch(case: Case, edit: TextEdit) -> str:
    """Takes the branch that the other side can't read out of the own union."""
    holder, _, index = case.pointer.rpartition("/")
    spot = required(type_at(case.own.root, holder))
    if not isinstance(spot.type, Union) or not index.isdigit():
        raise NoSuchPlace(case.pointer)
    label = type_label(spot.type.branches[int(index)])
    if len(spot.type.branches) == 2:
        edit.replace(holder, edit.source(f"{holder}/{1 - int(index)}"))
    else:
        edit.remove(holder, int(index))
    return f"don't write {label}"


def _missing_symbols(case: Case) -> tuple[Enum, list[str]]:
    """The own enum, and the other side's symbols that it lacks."""
    own, other = case.definition(), case.other().type
    if not isinstance(own, Enum) or not isinstance(other, Enum):
        raise NoSuchPlace(case.pointer)
    return own, [symbol for symbol in other.symbols if symbol not in own.symbol_set]


def add_symbols(case: Case, edit: TextEdit) -> str:
    """Gives the own enum the symbols that the other side has."""
    own, missing = _missing_symbols(case)
    if missing:
        edit.append_items(f"{own.pointer}/symbols", [json_source(symbol) for symbol in missing])
    return f"restore the symbols {', '.join(missing[:20])}" if missing else ""


def add_enum_default(case: Case, edit: TextEdit) -> str:
    """Gives the own enum a default symbol, as which unknown ones are read."""
    own = case.definition()
    if not isinstance(own, Enum) or not own.symbols:
        raise NoSuchPlace(case.pointer)
    edit.set_member(own.pointer, "default", json_source(own.symbols[0]))
    return f'read unknown symbols as the default "{own.symbols[0]}"'


def drop_symbols(case: Case, edit: TextEdit) -> str:
    """Takes the symbols that the other side lacks out of the own enum."""
    own, other = case.definition(), case.other().type
    if not isinstance(own, Enum) or not isinstance(other, Enum):
        raise NoSuchPlace(case.pointer)
    gone = [symbol for symbol in own.symbols if symbol not in other.symbol_set]
    if len(gone) > _MAX_REMOVED_SINGLY:
        kept = [symbol for symbol in own.symbols if symbol in other.symbol_set]
        edit.replace(f"{own.pointer}/symbols", json_source(kept))
    else:
        for symbol in reversed(gone):
            edit.remove(f"{own.pointer}/symbols", own.symbols.index(symbol))
    return f"don't write the symbols {', '.join(gone[:20])}" if gone else ""


def restore_size(case: Case, edit: TextEdit) -> str:
    """Gives the own fixed the other side's size."""
    own, other = case.definition(), case.other().type
    if not isinstance(own, Fixed) or not isinstance(other, Fixed):
        raise NoSuchPlace(case.pointer)
    edit.replace(f"{own.pointer}/size", str(other.size))
    return f"restore the size of {other.size} bytes"


def add_type_alias(case: Case, edit: TextEdit) -> str:
    """Gives the own type the other side's full name as an alias."""
    own, other = _named_sides(case)
    alias = other.full_name if other.namespace or not own.namespace else f".{other.full_name}"
    place = f"{own.pointer}/aliases"
    if edit.has(place):
        edit.insert_item(place, len(edit.node(place).starts), json_source(alias))
    else:
        edit.set_member(own.pointer, "aliases", f"[{json_source(alias)}]")
    return f'add the alias "{alias}" to {own.full_name}'


def rename_type(case: Case, edit: TextEdit) -> str:
    """Gives the own type the other side's name."""
    own, other = _named_sides(case)
    edit.replace(f"{own.pointer}/name", json_source(other.full_name if other.namespace else other.simple))
    if not other.namespace and own.namespace:
        edit.set_member(own.pointer, "namespace", '""')
    elif edit.has(f"{own.pointer}/namespace"):
        edit.replace(f"{own.pointer}/name", json_source(other.simple))
        edit.replace(f"{own.pointer}/namespace", json_source(other.namespace))
    return f"rename {own.full_name} to {other.full_name}"


def _named_sides(case: Case) -> tuple[Named, Named]:
    """The own and the other named type; of a finding of a field: the records."""
    field = field_at(case.own.root, case.pointer)
    own: AvroType = case.definition() if field is None else field[0]
    other_field = field_at(case.other_root, case.other_pointer)
    other: AvroType = case.other().type if other_field is None else other_field[0]
    if not isinstance(own, Named) or not isinstance(other, Named) or own.source is not None:
        raise NoSuchPlace(case.pointer)
    return own, other


def same_branch_first(case: Case, edit: TextEdit) -> str:
    """Puts the branch of the other side's own type before the others."""
    own, other = case.spot().type, case.other().type
    if not isinstance(own, Union):
        raise NoSuchPlace(case.pointer)
    position = next((at for at, branch in enumerate(own.branches) if branch.kind == other.kind), 0)
    source = edit.source(f"{case.pointer}/{position}")
    edit.remove(case.pointer, position)
    edit.insert_item(case.pointer, 0, source)
    return f"put {type_label(own.branches[position])} before the other branches"
