"""Concrete edits that remove a finding, tried one after the other: the first whose text parses and passes is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from registry.errors import InvalidSchema
from registry.formats.base import Difference, Edit, Incompatibility, ParsedSchema, ResolvedReference
from registry.formats.json_edit import NoSuchPlace, TextEdit
from registry.formats.json_pointer import join, parent, unescape
from registry.formats.json_schema.data import validation_failures
from registry.formats.json_schema.findings import judge
from registry.formats.json_schema.model import MISSING, Model, value_at
from registry.formats.json_schema.parser import parse_schema
from registry.formats.json_schema.rules import RULES
from registry.formats.json_schema.text import Interning, compact, spaced
from registry.formats.json_schema.validators import validator_of


@dataclass(frozen=True, slots=True)
class Case:
    """A finding seen from the side that is edited: the schemas of both sides around the keyword that is meant."""

    own: Model
    finding: Incompatibility
    own_pointer: str
    other_value: Any
    keyword: str
    name: str
    is_reader: bool

    @property
    def own_value(self) -> Any:
        """The own schema around the keyword."""
        return value_at(self.own.root, self.own_pointer)


Step = Callable[[Case, TextEdit], str]


def repair(
    schema: ParsedSchema, own: Model, other: Model, finding: Incompatibility, *, is_reader: bool, policy: str
) -> Edit | None:
    """The smallest edit of `schema` that removes the finding, None where no known one does.

    The edited text parses with the same references, the finding is gone, and there are no more breaks than before.
    """
    case = _case(own, other, finding, is_reader=is_reader)
    if case is None:
        return None
    for step in _steps(case):
        edit = TextEdit(schema.text)
        try:
            title = step(case, edit)
        except (NoSuchPlace, TypeError, KeyError, AttributeError):
            continue
        if title and edit.text != schema.text and _passes(case, other, edit.text, policy):
            return Edit(title, edit.text)
    return None


def deprecated_beside(new: ParsedSchema, model: Model, old: Model, suspected: Difference) -> Edit | None:
    """The new schema with the old property kept beside its successor, marked as deprecated."""
    if suspected.rule != "PROPERTY_RENAME_SUSPECTED" or not suspected.pointer_old or not suspected.pointer_new:
        return None
    declaration = value_at(old.root, suspected.pointer_old)
    name = unescape(suspected.pointer_old.rpartition("/")[2])
    successor = unescape(suspected.pointer_new.rpartition("/")[2])
    edit = TextEdit(new.text)
    deprecated = {**(declaration if isinstance(declaration, dict) else {}), "deprecated": True}
    try:
        edit.set_member(parent(suspected.pointer_new), name, _source(deprecated))
    except NoSuchPlace:
        return None
    if _parsed(model, edit.text) is None:
        return None
    return Edit(f'keep "{name}" as deprecated beside "{successor}": JSON Schema has no aliases', edit.text)


def _case(own: Model, other: Model, finding: Incompatibility, *, is_reader: bool) -> Case | None:
    sides = [(finding.reader_pointer, finding.reader_source), (finding.writer_pointer, finding.writer_source)]
    (pointer, source), (other_pointer, other_source) = sides if is_reader else sides[::-1]
    if pointer is None or other_pointer is None or source is not None:
        return None
    at = _at(finding)
    own_schema = _around(pointer, at)
    holder = next((item for item in other.documents if _name(item.reference) == other_source), other.documents[0])
    value = value_at(holder.value, _around(other_pointer, at))
    keyword = at[0] if at else ""
    return Case(own, finding, own_schema, value, keyword, at[1] if len(at) > 1 else finding.detail, is_reader)


def _name(reference: ResolvedReference | None) -> str | None:
    return None if reference is None else reference.name


def _at(finding: Incompatibility) -> tuple[str, ...]:
    """The tokens below the schema that a finding is about: a keyword, and the name in it."""
    tokens = finding.location.removeprefix("#/").split("/") if finding.location != "#/" else []
    if finding.rule == "DATUM_REFUSED":
        return (finding.detail,)
    if finding.rule in _NAMED and len(tokens) > 1:
        return (_NAMED[finding.rule], finding.detail)
    if finding.rule in _WHOLE:
        return ()
    return (tokens[-1],) if tokens else ()


def _around(pointer: str, at: tuple[str, ...]) -> str:
    """The pointer of the schema that holds the keyword."""
    for count in range(len(at), 0, -1):
        tail = join("", *at[:count])
        if pointer.endswith(tail):
            return pointer.removesuffix(tail)
    return pointer


def _steps(case: Case) -> Iterator[Step]:
    rule = case.finding.rule
    table = _IN_READER if case.is_reader else _IN_WRITER
    yield from table.get(rule, ())
    if case.keyword and rule not in _NAMED:
        yield _take_over_keyword
    if rule == "DATUM_REFUSED" and case.is_reader:
        yield _drop_keyword
    yield _take_over_schema


def _passes(case: Case, other: Model, text: str, policy: str) -> bool:
    changed = _parsed(case.own, text)
    if changed is None:
        return False
    if case.finding.rule == "DATUM_REFUSED":
        return _witness_is_settled(case, changed)
    before, after = (_judged(model, other, case, policy) for model in (case.own, changed))
    marks = {(item.rule, item.location) for item in after}
    if (case.finding.rule, case.finding.location) in marks:
        return False
    severe = [[item for item in items if item.severity == "break"] for items in (before, after)]
    return len(severe[1]) < len(severe[0]) or (
        RULES[case.finding.rule].severity != "break" and len(severe[1]) <= len(severe[0])
    )


def _witness_is_settled(case: Case, changed: Model) -> bool:
    """The reader takes the datum now, or the writer can't write it any more."""
    witness = case.finding.witness
    if witness is None or not witness.found:
        return False
    try:
        validator = validator_of(changed)
        if not case.is_reader:
            return not validator.is_valid(witness.datum)
        return all(refusal.message != witness.error for refusal in validation_failures(validator, witness.datum))
    except ValueError:
        return False


def _judged(own: Model, other: Model, case: Case, policy: str) -> tuple[Incompatibility, ...]:
    judgement = judge(own, other, policy) if case.is_reader else judge(other, own, policy)
    return (*judgement.breaks, *judgement.hazards)


def _parsed(own: Model, text: str) -> Model | None:
    references = [document.reference for document in own.documents[1:] if document.reference is not None]
    try:
        return parse_schema(text, references)
    except InvalidSchema:
        return None


def _source(value: Any) -> str:
    return spaced(value)


def _take_over_keyword(case: Case, edit: TextEdit) -> str:
    """Gives the own schema the other side's value of the keyword, or none where that has none."""
    other = case.other_value if isinstance(case.other_value, dict) else {}
    if case.keyword in other:
        edit.set_member(case.own_pointer, case.keyword, _source(other[case.keyword]))
        return f"set {case.keyword} to {compact(other[case.keyword])[:80]}"
    return _drop_keyword(case, edit)


def _drop_keyword(case: Case, edit: TextEdit) -> str:
    edit.remove_member(case.own_pointer, case.keyword)
    return f"remove {case.keyword}"


def _take_over_schema(case: Case, edit: TextEdit) -> str:
    """Puts the other side's schema in the place of the own one."""
    if case.other_value is MISSING or not case.own_pointer:
        raise NoSuchPlace(case.own_pointer)
    edit.replace(case.own_pointer, _source(case.other_value))
    return "restore the schema of the other side here" if case.is_reader else "take over the reader's schema here"


def _drop_required(case: Case, edit: TextEdit) -> str:
    names = case.own_value["required"]
    if len(names) == 1:
        edit.remove_member(case.own_pointer, "required")
    else:
        edit.remove(join(case.own_pointer, "required"), names.index(case.name))
    return f'make "{case.name}" optional'


def _add_required(case: Case, edit: TextEdit) -> str:
    required = case.own_value.get("required")
    if isinstance(required, list):
        edit.insert_item(join(case.own_pointer, "required"), len(required), compact(case.name))
    else:
        edit.set_member(case.own_pointer, "required", compact([case.name]))
    return f'require "{case.name}"'


def _open_property(case: Case, edit: TextEdit) -> str:
    """Leaves the property declared, without any condition, and optional."""
    edit.set_member(join(case.own_pointer, "properties"), case.name, "{}")
    if case.name in case.own_value.get("required", ()):
        _drop_required(case, edit)
    return f'let "{case.name}" be any value, and optional'


def _restore_property(case: Case, edit: TextEdit) -> str:
    declaration = case.other_value["properties"][case.name]
    if isinstance(case.own_value.get("properties"), dict):
        edit.set_member(join(case.own_pointer, "properties"), case.name, _source(declaration))
    else:
        edit.set_member(case.own_pointer, "properties", _source({case.name: declaration}))
    return f'declare the property "{case.name}" as the other side does'


def _restore_required_property(case: Case, edit: TextEdit) -> str:
    title = _restore_property(case, edit)
    _add_required(case, edit)
    return f"{title}, and require it"


def _remove_property(case: Case, edit: TextEdit) -> str:
    edit.remove_member(join(case.own_pointer, "properties"), case.name)
    if case.name in case.own_value.get("required", ()):
        _drop_required(case, edit)
    return f'remove the property "{case.name}"'


def _open_model(case: Case, edit: TextEdit) -> str:
    edit.remove_member(case.own_pointer, "additionalProperties")
    return "open the content model"


def _add_values(case: Case, edit: TextEdit) -> str:
    """Lists the other side's values as well."""
    interning = Interning()
    own = {interning.number(value) for value in case.own_value["enum"]}
    missing = [value for value in case.other_value["enum"] if interning.number(value) not in own]
    for value in missing:
        edit.insert_item(join(case.own_pointer, "enum"), 10**9, compact(value))
    return f"list {', '.join(compact(value) for value in missing)[:120]} as well"


def _drop_values(case: Case, edit: TextEdit) -> str:
    """Lists no values that the other side lacks."""
    interning = Interning()
    numbers = {interning.number(value) for value in case.other_value["enum"]}
    values = [value for value in case.own_value["enum"] if interning.number(value) in numbers]
    edit.set_member(case.own_pointer, "enum", _source(values))
    return "list only values that the reader knows"


_NAMED: Final[Mapping[str, str]] = {
    "REQUIRED_ATTRIBUTE_ADDED": "required",
    "REQUIRED_FILLED_BY_DEFAULT": "required",
    "REQUIRED_UNDECLARED": "required",
    "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": "properties",
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL": "properties",
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": "properties",
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": "properties",
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": "properties",
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": "properties",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": "properties",
}
_WHOLE: Final = frozenset(
    {
        "TYPE_CHANGED",
        "COMBINED_TYPE_CHANGED",
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
        "PRODUCT_TYPE_EXTENDED",
        "SUM_TYPE_NARROWED",
    }
)
_IN_READER: Final[Mapping[str, tuple[Step, ...]]] = {
    "REQUIRED_ATTRIBUTE_ADDED": (_drop_required,),
    "REQUIRED_FILLED_BY_DEFAULT": (_drop_required,),
    "REQUIRED_UNDECLARED": (_drop_required,),
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": (_drop_required,),
    "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": (_open_property, _remove_property),
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL": (_open_property, _remove_property),
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": (_open_property, _remove_property),
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": (_restore_property, _open_model),
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (_restore_property,),
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (_open_property, _remove_property),
    "ENUM_ARRAY_NARROWED": (_add_values,),
    "ENUM_ARRAY_CHANGED": (_add_values,),
}
_IN_WRITER: Final[Mapping[str, tuple[Step, ...]]] = {
    "REQUIRED_ATTRIBUTE_ADDED": (_add_required,),
    "REQUIRED_FILLED_BY_DEFAULT": (_add_required,),
    "REQUIRED_UNDECLARED": (_add_required,),
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": (_restore_required_property,),
    "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": (_restore_required_property,),
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL": (_restore_property,),
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": (_restore_property,),
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": (_remove_property,),
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (_remove_property,),
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (_restore_property,),
    "ENUM_ARRAY_NARROWED": (_drop_values,),
    "ENUM_ARRAY_CHANGED": (_drop_values,),
}
