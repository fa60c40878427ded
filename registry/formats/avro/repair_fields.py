"""Steps of a repair that change fields: their defaults, their aliases, and fields that were removed."""

from __future__ import annotations

import json
from typing import Final

from registry.formats.avro.canonical import field_source
from registry.formats.avro.initial import initial_value
from registry.formats.avro.model import Field, Record, Union
from registry.formats.avro.places import field_at
from registry.formats.avro.renames import likely_sources
from registry.formats.avro.repair_case import Case, pretty
from registry.formats.json_edit import NoSuchPlace, TextEdit, json_source
from registry.formats.pointer import without_comments

_MAX_REMOVED_SINGLY: Final = 20


def add_default(case: Case, edit: TextEdit) -> str:
    """Gives the field a default of its type: null where that is allowed, else an empty value."""
    _, field = case.own_field()
    value = json_source(initial_value(field.type))
    edit.set_member(case.pointer, "default", value)
    return f'give "{field.name}" the default {value}: {_instead(case, field, value)}'


def make_optional(case: Case, edit: TextEdit) -> str:
    """Lets the field be null, and null its default."""
    _, field = case.own_field()
    place = f"{case.pointer}/type"
    if isinstance(field.type, Union):
        raise NoSuchPlace(place)
    edit.replace(place, f'["null", {edit.source(place)}]')
    edit.set_member(case.pointer, "default", "null")
    return f'make "{field.name}" nullable with the default null: {_instead(case, field, "null")}'


def _instead(case: Case, field: Field, value: str) -> str:
    """What readers get by an invented default, and in place of what."""
    own, other = case.own_field()[0], case.other().type
    source = likely_sources(own, other).get(field.name) if isinstance(other, Record) else None
    lost = f'in place of the data of "{source.name}"' if source is not None else "for all data written without it"
    return f"readers get {value} {lost}"


def restore_field(case: Case, edit: TextEdit) -> str:
    """Puts a field that the other side has back into the own record."""
    found = field_at(case.other_root, case.other_pointer)
    record = case.definition()
    if found is None or not isinstance(record, Record):
        raise NoSuchPlace(case.other_pointer)
    source = pretty(field_source(found[1], record.namespace, case.known))
    edit.insert_item(f"{record.pointer}/fields", min(found[1].position, len(record.fields)), source)
    return f'restore the field "{found[1].name}"'


def restore_field_at_end(case: Case, edit: TextEdit) -> str:
    """The same after all other fields, where the types that it needs are defined."""
    found = field_at(case.other_root, case.other_pointer)
    record = case.definition()
    if found is None or not isinstance(record, Record):
        raise NoSuchPlace(case.other_pointer)
    source = pretty(field_source(found[1], record.namespace, case.known))
    edit.insert_item(f"{record.pointer}/fields", len(record.fields), source)
    return f'restore the field "{found[1].name}"'


def drop_aliases(case: Case, edit: TextEdit) -> str:
    """Takes aliases of the field away until one field of the writer at most matches it."""
    _, field = case.own_field()
    writer = case.other().type
    if not isinstance(writer, Record):
        raise NoSuchPlace(case.pointer)
    matching = [alias for alias in field.aliases if alias in writer.by_name]
    kept = None if field.name in writer.by_name else matching[0] if matching else None
    gone = [alias for alias in matching if alias != kept]
    _remove_aliases(edit, field, gone)
    return f'remove the alias "{", ".join(gone)}" from "{field.name}"' if gone else ""


def leave_alias_to_one(case: Case, edit: TextEdit) -> str:
    """Leaves the name of a field of the writer to one field alone: the one of that name, else the first."""
    record, _ = case.own_field()
    name = str(case.found.before)
    fields = [field for field in record.fields if name in field.aliases and field.name != name]
    gone = fields if name in record.by_name else fields[1:]
    for field in gone:
        _remove_aliases(edit, field, [name])
    return f'remove the alias "{name}" from {", ".join(field.name for field in gone[:10])}' if gone else ""


def leave_alias_to_one_with_defaults(case: Case, edit: TextEdit) -> str:
    """The same, and the fields that then get nothing from the writer have a default."""
    record, _ = case.own_field()
    title = leave_alias_to_one(case, edit)
    filled = [
        field
        for field in record.fields
        if not field.has_default and case.found.before in field.aliases and field.name != case.found.before
    ]
    for field in filled if case.found.before in record.by_name else filled[1:]:
        edit.set_member(field.pointer, "default", json_source(initial_value(field.type)))
    return f"{title} and give it a default, which readers get in place of the writer's data" if title else ""


def _remove_aliases(edit: TextEdit, field: Field, aliases: list[str]) -> None:
    place = f"{field.pointer}/aliases"
    if len(aliases) > _MAX_REMOVED_SINGLY:
        edit.replace(place, json_source([alias for alias in field.aliases if alias not in set(aliases)]))
        aliases = []
    for alias in aliases:
        edit.remove(place, list(json.loads(without_comments(edit.source(place)))).index(alias))
    if edit.has(place) and not edit.node(place).starts:
        edit.remove_member(field.pointer, "aliases")
