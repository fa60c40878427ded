"""Edits that remove a finding, tried smallest first; the first one that parses and passes is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from registry.errors import InvalidDatum, InvalidSchema
from registry.formats.base import Difference, Edit, Incompatibility, ParsedSchema
from registry.formats.json_edit import NoSuchPlace, TextEdit
from registry.formats.json_pointer import parent, unescape
from registry.formats.json_schema.data import data_path, example_of, validation_failures
from registry.formats.json_schema.empirical_check import truth_of
from registry.formats.json_schema.findings import judge
from registry.formats.json_schema.model import Model, value_at
from registry.formats.json_schema.parser import parse_schema
from registry.formats.json_schema.repair_edits import (
    NAMED,
    Case,
    Step,
    add_required,
    add_values,
    case_of,
    copy_keyword,
    declare_covered,
    drop_keyword,
    drop_property_conditions,
    drop_required,
    drop_values,
    object_case,
    open_model,
    remove_properties,
    remove_property,
    require,
    require_declared,
    restore_properties,
    restore_property,
    restore_required_property,
    take_over_schema,
)
from registry.formats.json_schema.rules import RULES
from registry.formats.json_schema.text import spaced
from registry.formats.json_schema.validators import validator_of

IN_READER: Final[Mapping[str, tuple[Step, ...]]] = {
    "REQUIRED_ATTRIBUTE_ADDED": (drop_required,),
    "REQUIRED_FILLED_BY_DEFAULT": (drop_required,),
    "REQUIRED_ANY_VALUE": (drop_required,),
    "REQUIRED_UNDECLARED": (drop_required,),
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": (drop_required,),
    "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": (drop_required, drop_property_conditions, remove_property),
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL": (
        drop_required,
        drop_property_conditions,
        remove_property,
    ),
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": (drop_property_conditions, remove_property),
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": (restore_property, open_model),
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (restore_property,),
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (drop_property_conditions, remove_property),
    "ENUM_ARRAY_NARROWED": (add_values,),
    "ENUM_ARRAY_CHANGED": (add_values,),
}
IN_WRITER: Final[Mapping[str, tuple[Step, ...]]] = {
    "REQUIRED_ATTRIBUTE_ADDED": (add_required,),
    "REQUIRED_FILLED_BY_DEFAULT": (add_required,),
    "REQUIRED_ANY_VALUE": (add_required,),
    "REQUIRED_UNDECLARED": (add_required,),
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": (restore_required_property,),
    "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": (restore_required_property,),
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL": (restore_required_property,),
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": (restore_property,),
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": (remove_property,),
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (remove_property,),
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (restore_property,),
    "ENUM_ARRAY_NARROWED": (drop_values,),
    "ENUM_ARRAY_CHANGED": (drop_values,),
}
#: the same, by the keyword that rejects a datum
REFUSED_BY_READER: Final[Mapping[str, tuple[Step, ...]]] = {
    "required": (drop_required,),
    "additionalProperties": (restore_properties,),
    "unevaluatedProperties": (restore_properties,),
    "enum": (add_values,),
}
REFUSED_OF_WRITER: Final[Mapping[str, tuple[Step, ...]]] = {
    "required": (require_declared,),
    "additionalProperties": (remove_properties,),
    "unevaluatedProperties": (remove_properties,),
    "enum": (drop_values,),
}
_AS_BEFORE: Final = "Old data stays valid, and old readers accept what they accepted before."
_UNCHECKED: Final = "Old data stays valid. Nothing checks this any more, so code must handle any value."
_FOR_OLD_READERS: Final = "Old readers accept all new data. Data that lacks it or differs isn't valid."
#: what each step does to old data and old readers
EFFECTS: Final[Mapping[Step, str]] = {
    drop_required: "Old data without the property stays valid, and code must handle its absence.",
    drop_property_conditions: _UNCHECKED,
    remove_property: _UNCHECKED,
    remove_properties: "Old readers accept all new data, which can't have these properties.",
    restore_property: _AS_BEFORE,
    restore_properties: _AS_BEFORE,
    restore_required_property: _FOR_OLD_READERS,
    require_declared: _FOR_OLD_READERS,
    add_required: _FOR_OLD_READERS,
    declare_covered: _AS_BEFORE,
    open_model: "Old data with other properties stays valid, and nothing checks those.",
    add_values: "Old data with these values stays valid. Old readers aren't affected.",
    drop_values: "Old readers accept all new data, which can't have these values.",
    copy_keyword: _AS_BEFORE,
    drop_keyword: _UNCHECKED,
    take_over_schema: _AS_BEFORE,
}
#: object keywords that list property names; their values aren't copied as a whole
_OF_NAMES: Final = frozenset({"required", "additionalProperties", "unevaluatedProperties"})
# A broken combination is repaired inside a member before it is replaced as a whole.
_MAX_CAUSES: Final = 5


def repair(
    schema: ParsedSchema, own: Model, other: Model, finding: Incompatibility, *, is_reader: bool, policy: str
) -> Edit | None:
    """Return the smallest edit of `schema` that removes the finding; None if no known edit does.

    The edited text parses with the same references, the finding is gone, and there are no more breaks than before. An
    edit that breaks the other direction is used only if there is no other.
    """
    whole = case_of(own, other, finding, is_reader=is_reader)
    if whole is None:
        return None
    fallback: Edit | None = None
    back = len(_breaks_back(own, whole, policy)) if finding.rule != "DATUM_REFUSED" else None
    causes = (case_of(own, other, cause, is_reader=is_reader) for cause in finding.causes[:_MAX_CAUSES])
    for case in (*filter(None, causes), whole):
        for step_case, step in _steps(case, is_cause=case is not whole):
            edit = TextEdit(schema.text)
            try:
                title = step(step_case, edit)
            except (NoSuchPlace, TypeError, KeyError, AttributeError):
                continue
            if not title or edit.text == schema.text or not _passes(whole, edit.text, policy):
                continue
            changed = _parsed(own, edit.text)
            effect = EFFECTS[remove_properties if step is remove_property and not is_reader else step]
            suggestion = Edit(title, edit.text, effect=effect)
            if back is None or changed is None or len(_breaks_back(changed, whole, policy)) <= back:
                return suggestion
            fallback = fallback or suggestion
    return fallback


def _steps(case: Case, *, is_cause: bool) -> Iterator[tuple[Case, Step]]:
    """Yield the steps to try, each with its case.

    For a cause of a combination, no schema is replaced, because the other side's member may be a different one.
    """
    rule = case.finding.rule
    if rule == "DATUM_REFUSED":
        yield from _steps_of_refusal(case)
        return
    for step in (IN_READER if case.is_reader else IN_WRITER).get(rule, ()):
        yield case, step
    if case.own_pointer.endswith("/additionalProperties"):
        yield case, declare_covered
    if case.keyword and rule not in NAMED:
        yield case, copy_keyword
    if not is_cause:
        yield case, take_over_schema


def _steps_of_refusal(case: Case) -> Iterator[tuple[Case, Step]]:
    """Yield the steps for a rejected datum: what its keyword means, then the other side's keyword."""
    around = object_case(case)
    for step in (REFUSED_BY_READER if case.is_reader else REFUSED_OF_WRITER).get(case.keyword, ()):
        yield case, step
    if around is not None:
        yield around, drop_property_conditions if case.is_reader else restore_property
    if case.is_paired and case.keyword not in _OF_NAMES:
        yield case, copy_keyword
    if case.is_reader:
        yield case, drop_keyword
    if case.is_paired:
        yield case, take_over_schema


def deprecated_beside(new: ParsedSchema, model: Model, old: Model, suspected: Difference) -> Edit | None:
    """Return the new schema with the old property kept as deprecated, and required if it was."""
    if suspected.rule != "PROPERTY_RENAME_SUSPECTED" or not suspected.pointer_old or not suspected.pointer_new:
        return None
    declaration = value_at(old.root, suspected.pointer_old)
    name, successor = (unescape(end.rpartition("/")[2]) for end in (suspected.pointer_old, suspected.pointer_new))
    before, after = (parent(parent(end)) for end in (suspected.pointer_old, suspected.pointer_new))
    if declaration is False:  # a forbidden property has no data to keep
        return None
    edit = TextEdit(new.text)
    deprecated = {**(declaration if isinstance(declaration, dict) else {}), "deprecated": True}
    required = value_at(old.root, before).get("required")
    is_required = isinstance(required, list) and name in required
    try:
        edit.set_member(parent(suspected.pointer_new), name, spaced(deprecated))
        if is_required:
            require(edit, after, value_at(model.root, after), name)
    except NoSuchPlace:
        return None
    if _parsed(model, edit.text) is None:
        return None
    where, also = f" in {after}" if after else "", ", and required as before" if is_required else ""
    return Edit(
        f'keep "{name}" as deprecated beside "{successor}"{where}{also}: JSON Schema has no aliases',
        edit.text,
        effect=f'Old data keeps its values under "{name}". Old readers get it if producers fill both.',
    )


def _passes(case: Case, text: str, policy: str) -> bool:
    changed = _parsed(case.own, text)
    if changed is None:
        return False
    if case.finding.rule == "DATUM_REFUSED":
        return _witness_is_settled(case, changed) and _is_no_worse(case, changed)
    before, after = (_judged(model, case, policy) for model in (case.own, changed))
    marks = {(item.rule, item.location) for item in after}
    if (case.finding.rule, case.finding.location) in marks:
        return False
    severe = [[item for item in items if item.severity == "break"] for items in (before, after)]
    return len(severe[1]) < len(severe[0]) or (
        RULES[case.finding.rule].severity != "break" and len(severe[1]) <= len(severe[0])
    )


def _witness_is_settled(case: Case, changed: Model) -> bool:
    """Return whether the reader no longer rejects the datum at that place, or the writer can no longer write it."""
    finding, witness = case.finding, case.finding.witness
    if witness is None or not witness.found:
        return False
    try:
        validator = validator_of(changed)
        if not case.is_reader:
            return not validator.is_valid(witness.datum) and _has_data(changed)
        return not any(
            failure.keyword == finding.detail
            and data_path(changed, failure.instance_path) == finding.path
            and (failure.keyword != "required" or failure.message == witness.error)
            for failure in validation_failures(validator, witness.datum)
        )
    except ValueError:
        return False


def _has_data(model: Model) -> bool:
    """Return whether the schema has a datum: a schema that allows none breaks nothing but is no cure."""
    try:
        example_of(model)
    except InvalidDatum:
        return False
    return True


def _is_no_worse(case: Case, changed: Model) -> bool:
    """Return whether no more data is rejected than before, as far as data is found."""
    before, after = (
        truth_of(model, case.other) if case.is_reader else truth_of(case.other, model) for model in (case.own, changed)
    )
    return after.answer != "no" or len(after.findings) <= len(before.findings)


def _judged(own: Model, case: Case, policy: str) -> tuple[Incompatibility, ...]:
    judgement = judge(own, case.other, policy) if case.is_reader else judge(case.other, own, policy)
    return (*judgement.breaks, *judgement.hazards)


def _breaks_back(own: Model, case: Case, policy: str) -> tuple[Incompatibility, ...]:
    """Return the breaks of the opposite direction."""
    judgement = judge(case.other, own, policy) if case.is_reader else judge(own, case.other, policy)
    return judgement.breaks


def _parsed(own: Model, text: str) -> Model | None:
    references = [document.reference for document in own.documents[1:] if document.reference is not None]
    try:
        return parse_schema(text, references)
    except InvalidSchema:
        return None
