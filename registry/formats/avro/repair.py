"""Edits that remove a finding, tried smallest first; the first one that parses and passes is used."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from registry.errors import InvalidSchema
from registry.formats.avro.diff import matched_fields
from registry.formats.avro.findings import judge
from registry.formats.avro.model import AvroSchema, field_at
from registry.formats.avro.parser import parse_schema
from registry.formats.avro.repair_edits import (
    Case,
    Step,
    add_branch,
    add_default,
    add_enum_default,
    add_null,
    add_symbols,
    add_to_list,
    add_type_alias,
    drop_aliases,
    drop_branch,
    drop_symbols,
    leave_alias_to_one,
    leave_alias_to_one_with_defaults,
    make_optional,
    rename_type,
    restore_definition,
    restore_field,
    restore_field_at_end,
    restore_former_name,
    restore_size,
    restore_type,
    restore_type_and_default,
    same_branch_first,
)
from registry.formats.base import Difference, Edit, Incompatibility, Judgement, ParsedSchema, ResolvedReference
from registry.formats.json_edit import NoSuchPlace, TextEdit

_RESTORE: Final[tuple[Step, ...]] = (restore_type, restore_definition, restore_type_and_default)

#: the steps after which readers get a made-up value in place of data
INVENTING: Final[frozenset[Step]] = frozenset(
    {add_default, make_optional, leave_alias_to_one_with_defaults, add_enum_default}
)

_UNCHANGED: Final = "Old data is read unchanged, and old readers get what they expect."
_INVENTED: Final = (
    "Readers get the default for old data, and can't tell it from a written value. Old readers aren't affected."
)
#: what each step does to old data and old readers
EFFECTS: Final[Mapping[Step, str]] = {
    add_default: _INVENTED,
    make_optional: "Old data stays readable, and null shows that it had no value. Old readers aren't affected.",
    leave_alias_to_one_with_defaults: _INVENTED,
    add_enum_default: f"Old data with a removed symbol loses it. {_INVENTED}",
    restore_former_name: "Old readers find the field under its old name. Old data is read through either name.",
    restore_field: "Old readers keep getting the field, if producers go on filling it. Old data keeps its values.",
    restore_field_at_end: "Old readers keep getting the field, if producers go on filling it. Old data keeps its values.",
    restore_type: _UNCHANGED,
    restore_definition: _UNCHANGED,
    restore_type_and_default: _UNCHANGED,
    restore_size: _UNCHANGED,
    add_branch: "Old data is read unchanged, and code must handle one more type. Old readers aren't affected.",
    add_null: "Old data with null is read unchanged, and code must handle null. Old readers may not accept null.",
    drop_branch: "Old readers can read all new data, which has no values of this type. Old data isn't affected.",
    add_symbols: "Old data with these symbols is read unchanged. Old readers aren't affected.",
    drop_symbols: "Old readers can read all new data, which has no such symbols. Old data isn't affected.",
    drop_aliases: "Old data stays readable: the field takes its values from one old field. Old readers aren't affected.",
    leave_alias_to_one: "Old data stays readable: one field takes the old values. Old readers aren't affected.",
    add_type_alias: "Old data is read under the new name. Old readers know no alias: upgrade them first.",
    rename_type: "Old data and old readers have the type under the name that they know.",
    same_branch_first: "Old data keeps its type when it is read. Old readers aren't affected.",
}

IN_READER: Final[Mapping[str, tuple[Step, ...]]] = {
    "FIELD_WITHOUT_DEFAULT": (add_default, make_optional),
    "TYPE_NARROWED": (*_RESTORE, add_branch),
    "TYPE_CHANGED": (*_RESTORE, add_branch),
    "NULL_NOT_ACCEPTED": (add_null,),
    "UNION_BRANCH_MISSING": (add_branch, *_RESTORE),
    "ENUM_SYMBOL_MISSING": (add_symbols, add_enum_default),
    "FIXED_SIZE_CHANGED": (restore_size,),
    "NAME_CHANGED": (add_type_alias, rename_type, *_RESTORE),
    "ALIAS_AMBIGUOUS": (drop_aliases,),
    "FIELD_ALIASED_TWICE": (leave_alias_to_one, leave_alias_to_one_with_defaults),
    "FIELD_ALIAS_ACROSS_NAMESPACES": (add_type_alias, rename_type),
    "UNION_BRANCH_AMBIGUOUS": _RESTORE,
    "UNION_BRANCH_ORDER": (same_branch_first,),
    "ENUM_SYMBOL_DEFAULTED": (add_symbols,),
    "WIDENING_LOSES_PRECISION": _RESTORE,
    "BYTES_READ_AS_STRING": _RESTORE,
    "STRING_READ_AS_UUID": _RESTORE,
    "BYTES_READ_AS_DECIMAL": _RESTORE,
    "LOGICAL_TYPE_REINTERPRETED": _RESTORE,
    "LOGICAL_TYPE_CHANGED": _RESTORE,
    "DECIMAL_PRECISION_NARROWED": _RESTORE,
}

IN_WRITER: Final[Mapping[str, tuple[Step, ...]]] = {
    "FIELD_WITHOUT_DEFAULT": (restore_former_name, restore_field, restore_field_at_end),
    "TYPE_NARROWED": _RESTORE,
    "TYPE_CHANGED": _RESTORE,
    "NULL_NOT_ACCEPTED": (drop_branch, *_RESTORE),
    "UNION_BRANCH_MISSING": (drop_branch, *_RESTORE),
    "ENUM_SYMBOL_MISSING": (drop_symbols,),
    "FIXED_SIZE_CHANGED": (restore_size,),
    "NAME_CHANGED": (rename_type, *_RESTORE),
    "FIELD_ALIAS_ACROSS_NAMESPACES": (rename_type,),
    "UNION_BRANCH_AMBIGUOUS": _RESTORE,
    "UNION_BRANCH_ORDER": _RESTORE,
    "ENUM_SYMBOL_DEFAULTED": (drop_symbols,),
    "WIDENING_LOSES_PRECISION": _RESTORE,
    "BYTES_READ_AS_STRING": _RESTORE,
    "STRING_READ_AS_UUID": _RESTORE,
    "BYTES_READ_AS_DECIMAL": _RESTORE,
    "DEFAULT_FILLED_DIFFERENTLY": (restore_former_name, restore_field, restore_field_at_end),
    "LOGICAL_TYPE_REINTERPRETED": _RESTORE,
    "LOGICAL_TYPE_CHANGED": _RESTORE,
    "DECIMAL_PRECISION_NARROWED": _RESTORE,
}


# Several branches of one union may have the same finding in one place.
_OF_BRANCHES: Final = frozenset({"UNION_BRANCH_MISSING", "UNION_BRANCH_AMBIGUOUS", "UNION_BRANCH_ORDER"})
# In a pair with many findings each trial takes long, so fewer steps are tried.
_MAX_FINDINGS_TRIED: Final = 4_000
_MAX_CAUSES: Final = 5
_RENAMES: Final = frozenset({"FIELD_RENAME_SUSPECTED", "TYPE_RENAMED", "NAMESPACE_CHANGED"})


def repair(schema: ParsedSchema, other: ParsedSchema, finding: Incompatibility, *, is_reader: bool) -> Edit | None:
    """Return the smallest edit of `schema` that removes the finding against `other`; None if no known edit does.

    The edited text parses with the same references, the finding is gone, and there are no more breaks than before. An
    edit that breaks the other direction is used only if there is no other.
    """
    own, theirs = schema.model, other.model
    if not isinstance(own, AvroSchema) or not isinstance(theirs, AvroSchema):
        return None
    before, back = _judge(own, theirs, is_reader), _judge(own, theirs, not is_reader)
    fallback: Edit | None = None
    tries_left = max(1, _MAX_FINDINGS_TRIED // (1 + len(before.breaks) + len(before.hazards)))
    for item, step in _steps(finding, is_reader):
        edit = TextEdit(schema.text)
        try:
            title = step(Case.of(own, theirs, item, is_reader=is_reader), edit)
        except NoSuchPlace:
            continue
        changed = _parsed(schema, own, edit.text) if title and tries_left else None
        if changed is None:
            continue
        tries_left -= 1
        after = _judge(changed, theirs, is_reader)
        most = len(before.breaks) - (item is not finding)  # a cause inside a union must remove the union's break too
        if len(after.breaks) > most or not _is_gone((finding, item), after, is_reader):
            continue
        suggestion = Edit(title, edit.text, is_invented=step in INVENTING, effect=EFFECTS[step])
        if len(_judge(changed, theirs, not is_reader).breaks) <= len(back.breaks):
            return suggestion
        fallback = fallback or suggestion
    return fallback


def _steps(finding: Incompatibility, is_reader: bool) -> Iterator[tuple[Incompatibility, Step]]:
    """Yield the steps to try: a broken union's causes are repaired before the union gets another branch."""
    steps = IN_READER if is_reader else IN_WRITER
    for item in (*finding.causes[:_MAX_CAUSES], finding):
        for step in steps.get(item.rule, ()):
            yield item, step


def accept_rename(old: ParsedSchema, new: ParsedSchema, suspected: Difference) -> Edit | None:
    """Return the edit of `new` that adds the old name of a field or type as an alias; None if it isn't a rename."""
    model, before = new.model, old.model
    if suspected.rule not in _RENAMES or suspected.pointer_new is None:
        return None
    if not isinstance(model, AvroSchema) or not isinstance(before, AvroSchema):
        return None
    pointer, alias = _renamed(suspected)
    edit = TextEdit(new.text)
    try:
        add_to_list(edit, pointer, "aliases", alias)
    except NoSuchPlace:
        return None
    changed = _parsed(new, model, edit.text)
    if changed is None:
        return None
    if suspected.rule == "FIELD_RENAME_SUSPECTED" and not _is_known(before, changed, suspected):
        return None
    return Edit(f'add the alias "{alias}"', edit.text, effect=EFFECTS[add_type_alias])


def _is_known(before: AvroSchema, changed: AvroSchema, suspected: Difference) -> bool:
    """Return whether readers treat the two fields as one; only their records decide it."""
    old, new = field_at(before.root, suspected.pointer_old), field_at(changed.root, suspected.pointer_new)
    if old is None or new is None:  # defined in a referenced schema, where the edit isn't possible
        return False
    return matched_fields(old[0], new[0]).get(new[1].name) is old[1]


def _renamed(suspected: Difference) -> tuple[str, str]:
    """Return the pointer for the alias, and the alias."""
    assert suspected.pointer_new is not None
    if suspected.rule == "FIELD_RENAME_SUSPECTED":
        return suspected.pointer_new, str(suspected.before)
    if suspected.rule == "TYPE_RENAMED":
        return suspected.pointer_new.removesuffix("/name"), str(suspected.before)
    return suspected.pointer_new, f"{suspected.before}.{suspected.path.rpartition('.')[2]}"


def _parsed(schema: ParsedSchema, model: AvroSchema, text: str) -> AvroSchema | None:
    """Return the edited text's model; None if it doesn't parse. A schema with invalid defaults may keep them."""
    references = _references(schema, model)
    try:
        return parse_schema(text, references)
    except InvalidSchema:
        pass
    try:
        parse_schema(schema.text, references)
    except InvalidSchema:
        try:
            return parse_schema(text, references, validate_defaults=False)
        except InvalidSchema:
            return None
    return None


def _references(schema: ParsedSchema, model: AvroSchema) -> list[ResolvedReference]:
    own_references = set(schema.references)
    return [item.reference for item in model.documents if item.reference.reference in own_references]


def _judge(own: AvroSchema, theirs: AvroSchema, is_reader: bool) -> Judgement:
    return judge(own.root, theirs.root) if is_reader else judge(theirs.root, own.root)


def _is_gone(mended: Sequence[Incompatibility], after: Judgement, is_reader: bool) -> bool:
    keys = {_key(item, is_reader) for item in mended}
    return not any(_key(item, is_reader) in keys for item in _all(after))


def _key(finding: Incompatibility, is_reader: bool) -> tuple[str, str, str]:
    """Return the part of a finding that stays the same while one side is edited."""
    other: Any = finding.before if is_reader else finding.after
    if finding.rule in _OF_BRANCHES:
        other = [finding.before, other]
    return finding.rule, finding.path, json.dumps(other, sort_keys=True, default=str)


def _all(judgement: Judgement) -> Iterator[Incompatibility]:
    todo = [*judgement.breaks, *judgement.hazards]
    while todo:
        item = todo.pop()
        yield item
        todo.extend(item.causes)
