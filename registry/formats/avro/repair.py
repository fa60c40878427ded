"""Concrete edits that remove a finding, tried one after the other: the first whose text parses and passes is given."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from registry.errors import InvalidSchema
from registry.formats.avro.diff import matched_fields
from registry.formats.avro.findings import judge
from registry.formats.avro.model import Schema
from registry.formats.avro.parse import parse_schema
from registry.formats.avro.places import field_at
from registry.formats.avro.repair_case import Case, Step
from registry.formats.avro.repair_steps import IN_READER, IN_WRITER, INVENTING
from registry.formats.base import Difference, Edit, Incompatibility, Judgement, ParsedSchema, ResolvedReference
from registry.formats.json_edit import NoSuchPlace, TextEdit, json_source

# Several branches of one union may have the same finding, in one place.
_OF_BRANCHES: Final = frozenset({"UNION_BRANCH_MISSING", "UNION_BRANCH_AMBIGUOUS", "UNION_BRANCH_ORDER"})
# In a pair with many findings each trial takes long, so that fewer steps are tried.
_MAX_FINDINGS_TRIED: Final = 4_000
_MAX_CAUSES: Final = 5
_RENAMES: Final = frozenset({"FIELD_RENAME_SUSPECTED", "TYPE_RENAMED", "NAMESPACE_CHANGED"})


def repair(schema: ParsedSchema, other: ParsedSchema, found: Incompatibility, *, is_reader: bool) -> Edit | None:
    """The smallest edit of `schema` that removes the finding against `other`, None where no known one does.

    The edited text parses with the same references, the finding is gone, and there are no more breaks than before.
    """
    own, theirs = schema.model, other.model
    if not isinstance(own, Schema) or not isinstance(theirs, Schema):
        return None
    before = _judge(own, theirs, is_reader)
    tries_left = max(1, _MAX_FINDINGS_TRIED // (1 + len(before.breaks) + len(before.hazards)))
    for item, step in _steps(found, is_reader):
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
        if len(after.breaks) <= len(before.breaks) and _is_gone((found, item), after, is_reader):
            return Edit(title, edit.text, is_invented=step in INVENTING)
    return None


def _steps(found: Incompatibility, is_reader: bool) -> Iterator[tuple[Incompatibility, Step]]:
    """What may be tried: the causes of a union that breaks are mended before the union gets another branch."""
    steps = IN_READER if is_reader else IN_WRITER
    for item in (*found.causes[:_MAX_CAUSES], found):
        for step in steps.get(item.rule, ()):
            yield item, step


def accept_rename(old: ParsedSchema, new: ParsedSchema, suspected: Difference) -> Edit | None:
    """The edit of `new` that adds the old name of a field or a type as an alias; None where it isn't a rename."""
    model, before = new.model, old.model
    if suspected.rule not in _RENAMES or suspected.pointer_new is None:
        return None
    if not isinstance(model, Schema) or not isinstance(before, Schema):
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
    return Edit(f'add the alias "{alias}"', edit.text)


def _is_known(before: Schema, changed: Schema, suspected: Difference) -> bool:
    """Whether the two fields are one for readers: of all that differs, their records alone decide it."""
    old, new = field_at(before.root, suspected.pointer_old), field_at(changed.root, suspected.pointer_new)
    if old is None or new is None:  # defined in a schema that is referred to, where the edit can't be
        return False
    return matched_fields(old[0], new[0]).get(new[1].name) is old[1]


def _renamed(suspected: Difference) -> tuple[str, str]:
    """Where the alias goes, and what it is."""
    assert suspected.pointer_new is not None
    if suspected.rule == "FIELD_RENAME_SUSPECTED":
        return suspected.pointer_new, str(suspected.before)
    if suspected.rule == "TYPE_RENAMED":
        return suspected.pointer_new.removesuffix("/name"), str(suspected.before)
    return suspected.pointer_new, f"{suspected.before}.{suspected.path.rpartition('.')[2]}"


def add_to_list(edit: TextEdit, pointer: str, key: str, value: str) -> None:
    """Adds a string to an array member of an object, which is made if it isn't there; raises NoSuchPlace."""
    place = f"{pointer}/{key}"
    if edit.has(place):
        edit.insert_item(place, len(edit.node(place).starts), json_source(value))
    else:
        edit.set_member(pointer, key, f"[{json_source(value)}]")


def _parsed(schema: ParsedSchema, model: Schema, text: str) -> Schema | None:
    """The edited text's model; None if it doesn't parse. A schema with bad defaults may keep them."""
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


def _references(schema: ParsedSchema, model: Schema) -> list[ResolvedReference]:
    wanted = set(schema.references)
    return [item.reference for item in model.documents if item.reference.reference in wanted]


def _judge(own: Schema, theirs: Schema, is_reader: bool) -> Judgement:
    return judge(own.root, theirs.root) if is_reader else judge(theirs.root, own.root)


def _is_gone(mended: Sequence[Incompatibility], after: Judgement, is_reader: bool) -> bool:
    keys = {_key(item, is_reader) for item in mended}
    return not any(_key(item, is_reader) in keys for item in _all(after))


def _key(found: Incompatibility, is_reader: bool) -> tuple[str, str, str]:
    """What stays the same of a finding while the one side is edited."""
    other: Any = found.before if is_reader else found.after
    if found.rule in _OF_BRANCHES:
        other = [found.before, other]
    return found.rule, found.path, json.dumps(other, sort_keys=True, default=str)


def _all(judgement: Judgement) -> Iterator[Incompatibility]:
    todo = [*judgement.breaks, *judgement.hazards]
    while todo:
        item = todo.pop()
        yield item
        todo.extend(item.causes)
