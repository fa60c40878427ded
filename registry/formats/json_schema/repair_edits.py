"""The single edits of a repair, and the finding from the perspective of the edited side.

An edit changes the text and returns a title that says what it did and where. If it doesn't apply, it raises NoSuchPlace
or returns an empty title.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from registry.errors import InvalidSchema
from registry.formats.base import Edit, FieldEdit, Incompatibility, ResolvedReference
from registry.formats.json_edit import NoSuchPlace, TextEdit, json_source
from registry.formats.json_pointer import join, parent, unescape
from registry.formats.json_schema.data import instance_location
from registry.formats.json_schema.model import MISSING, Model, SchemaLocation, root_path, value_at
from registry.formats.json_schema.schema_outline import behind, declarations_of
from registry.formats.json_schema.text import Interning, compact, spaced

_TOKEN: Final = re.compile(r'\.(?P<name>[^.\[]+)|\[(?P<quoted>"(?:[^"\\]|\\.)*")?\]')
_REQUIRED_NAME: Final = re.compile(r'("(?:[^"\\]|\\.)*") is a required property')

#: rules whose finding is about one name in a keyword, with that keyword
NAMED: Final[Mapping[str, str]] = {
    "REQUIRED_ATTRIBUTE_ADDED": "required",
    "REQUIRED_FILLED_BY_DEFAULT": "required",
    "REQUIRED_ANY_VALUE": "required",
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
#: keywords of a property that reject no value
_NOTES: Final = ("title", "description", "$comment", "examples", "default", "deprecated", "readOnly", "writeOnly")
_AT_ROOT: Final = " at the root"


@dataclass(frozen=True, slots=True)
class Case:
    """A finding from the perspective of the edited side, with both sides' schemas around the affected keyword.

    `is_paired` is False if the two schemas are at different places, because one side doesn't describe the place.
    """

    own: Model
    other: Model
    finding: Incompatibility
    own_pointer: str
    other_value: Any
    keyword: str
    name: str
    is_reader: bool
    is_paired: bool = True

    @property
    def own_value(self) -> Any:
        """The edited side's schema around the keyword."""
        return value_at(self.own.root, self.own_pointer)

    @property
    def where(self) -> str:
        """The place of the edited schema for the end of a title; empty for the root."""
        return f" in {self.own_pointer}" if self.own_pointer else ""


Step = Callable[[Case, TextEdit], str]


def case_of(own: Model, other: Model, finding: Incompatibility, *, is_reader: bool) -> Case | None:
    """Return the case of a finding; None if the edited side's place is in another text."""
    sides = [(finding.reader_pointer, finding.reader_source), (finding.writer_pointer, finding.writer_source)]
    (pointer, source), (other_pointer, other_source) = sides if is_reader else sides[::-1]
    if pointer is None or other_pointer is None or source is not None:
        return None
    at = _at(finding)
    holder = next((item for item in other.documents if _name(item.reference) == other_source), other.documents[0])
    value = value_at(holder.value, _around(other_pointer, at))
    name = at[1] if len(at) > 1 else finding.detail
    case = Case(own, other, finding, _around(pointer, at), value, at[0] if at else "", name, is_reader)
    return _case_of_refusal(case) if finding.rule == "DATUM_REFUSED" else case


def object_case(case: Case) -> Case | None:
    """Return the case of the object around a property that only one side declares; None if both or neither do.

    `own_pointer` and `other_value` are the object's, `name` is the property's.
    """
    tokens = instance_path(case.own, case.finding.path)
    if case.is_paired or not tokens or not isinstance(tokens[-1], str):
        return None
    tail = join("", "properties", tokens[-1])
    own, theirs = (behind(model, instance_location(model, tokens[:-1])) for model in (case.own, case.other))
    if own.document:
        return None
    pointer = case.own_pointer.removesuffix(tail) if case.own_pointer.endswith(tail) else own.pointer
    value = value_at(case.other.documents[theirs.document].value, theirs.pointer)
    return replace(case, own_pointer=pointer, other_value=value, keyword="properties", name=tokens[-1])


def instance_path(model: Model, path: str) -> list[str | int]:
    """Return the tokens of a path in a datum; index 0 represents any item of an array."""
    tokens: list[str | int] = []
    for match in _TOKEN.finditer(path.removeprefix(root_path(model))):
        name, quoted = match.group("name"), match.group("quoted")
        tokens.append(name if name is not None else json.loads(quoted) if quoted else 0)
    return tokens


def _case_of_refusal(case: Case) -> Case:
    """Return the case of a rejected datum: the affected property, and whether both sides describe the place."""
    witness = case.finding.witness
    missing = _REQUIRED_NAME.match(witness.error) if witness is not None else None
    if case.keyword == "required":
        return replace(case, name=json.loads(missing.group(1)) if missing else "")
    tokens = instance_path(case.own, case.finding.path)
    is_paired = not tokens or all(
        instance_location(model, tokens) != behind(model, instance_location(model, tokens[:-1]))
        for model in (case.own, case.other)
    )
    return replace(case, other_value=case.other_value if is_paired else MISSING, is_paired=is_paired)


def _name(reference: ResolvedReference | None) -> str | None:
    return None if reference is None else reference.name


def _at(finding: Incompatibility) -> tuple[str, ...]:
    """Return the tokens below the schema that a finding is about: a keyword, and the name in it."""
    tokens = finding.location.removeprefix("#/").split("/") if finding.location != "#/" else []
    if finding.rule == "DATUM_REFUSED":
        return (finding.detail,)
    if finding.rule in NAMED and len(tokens) > 1:
        return (NAMED[finding.rule], finding.detail)
    if finding.rule in _WHOLE:
        return ()
    return (tokens[-1],) if tokens else ()


def _around(pointer: str, at: tuple[str, ...]) -> str:
    """Return the pointer of the schema that contains the keyword."""
    for count in range(len(at), 0, -1):
        tail = join("", *at[:count])
        if pointer.endswith(tail):
            return pointer.removesuffix(tail)
    return pointer


def copy_keyword(case: Case, edit: TextEdit) -> str:
    """Copy the other side's value of the keyword, or remove the keyword if the other side lacks it."""
    other = case.other_value if isinstance(case.other_value, dict) else {}
    if case.keyword in other:
        edit.set_member(case.own_pointer, case.keyword, spaced(other[case.keyword]))
        return f"set {case.keyword} to {compact(other[case.keyword])[:80]}{case.where or _AT_ROOT}"
    return drop_keyword(case, edit)


def drop_keyword(case: Case, edit: TextEdit) -> str:
    """Remove the keyword."""
    edit.remove_member(case.own_pointer, case.keyword)
    return f"remove {case.keyword}{case.where or _AT_ROOT}"


def take_over_schema(case: Case, edit: TextEdit) -> str:
    """Replace the edited schema with the other side's."""
    if case.other_value is MISSING or not case.own_pointer:
        raise NoSuchPlace(case.own_pointer)
    edit.replace(case.own_pointer, spaced(case.other_value))
    whose = "restore the schema of the other side" if case.is_reader else "take over the reader's schema"
    return f"{whose} at {case.own_pointer}"


def declare_covered(case: Case, edit: TextEdit) -> str:
    """Declare a property that the other side declares, and leave other properties as they are."""
    tokens = instance_path(case.own, case.finding.path)
    if not tokens or not isinstance(tokens[-1], str) or case.other_value is MISSING:
        raise NoSuchPlace(case.own_pointer)
    pointer, name = parent(case.own_pointer), tokens[-1]
    if edit.has(join(pointer, "properties")):
        edit.set_member(join(pointer, "properties"), name, spaced(case.other_value))
    else:
        edit.set_member(pointer, "properties", spaced({name: case.other_value}))
    return f'declare the property "{name}"{f" in {pointer}" if pointer else ""} as the other side does'


def drop_required(case: Case, edit: TextEdit) -> str:
    """Make the property optional."""
    names = case.own_value["required"]
    if case.name not in names:
        raise NoSuchPlace(case.name)
    if len(names) == 1:
        edit.remove_member(case.own_pointer, "required")
    else:
        edit.remove(join(case.own_pointer, "required"), names.index(case.name))
    return f'make "{case.name}"{case.where} optional'


def add_required(case: Case, edit: TextEdit) -> str:
    """Make the property required."""
    require(edit, case.own_pointer, case.own_value, case.name)
    return f'require "{case.name}"{case.where}'


def require(edit: TextEdit, pointer: str, schema: Mapping[str, Any], name: str) -> None:
    """Add a name to the required names of an object; raises NoSuchPlace."""
    required = schema.get("required")
    if not isinstance(required, list):
        edit.set_member(pointer, "required", compact([name]))
    elif name not in required:
        edit.insert_item(join(pointer, "required"), len(required), compact(name))


def drop_property_conditions(case: Case, edit: TextEdit) -> str:
    """Keep only the property's annotations, without conditions, and make it optional."""
    declaration = case.own_value["properties"][case.name]
    notes = {key: declaration[key] for key in _NOTES if key in declaration} if isinstance(declaration, dict) else {}
    edit.set_member(join(case.own_pointer, "properties"), case.name, spaced(notes))
    is_required = case.name in case.own_value.get("required", ())
    if is_required:
        drop_required(case, edit)
    also = ", and optional" if is_required else ""
    return f'let "{case.name}"{case.where} be any value{also}: the other side takes any value under that name'


def restore_property(case: Case, edit: TextEdit) -> str:
    """Declare the property like the other side."""
    declaration = case.other_value["properties"][case.name]
    if isinstance(case.own_value.get("properties"), dict):
        edit.set_member(join(case.own_pointer, "properties"), case.name, spaced(declaration))
    else:
        edit.set_member(case.own_pointer, "properties", spaced({case.name: declaration}))
    return f'declare the property "{case.name}"{case.where} as the other side does'


def restore_required_property(case: Case, edit: TextEdit) -> str:
    """Declare the property like the other side, and require it."""
    title = restore_property(case, edit)
    require(edit, case.own_pointer, case.own_value, case.name)
    return f"{title}, and require it"


def require_declared(case: Case, edit: TextEdit) -> str:
    """Require the property, and declare it like the other side if only that declares it."""
    properties = case.other_value.get("properties")
    is_declared = isinstance(properties, dict) and case.name in properties
    if is_declared and case.name not in case.own_value.get("properties", {}):
        return restore_required_property(case, edit)
    return add_required(case, edit)


def remove_property(case: Case, edit: TextEdit) -> str:
    """Remove the property."""
    edit.remove_member(join(case.own_pointer, "properties"), case.name)
    if case.name in case.own_value.get("required", ()):
        drop_required(case, edit)
    return f'remove the property "{case.name}"{case.where}'


def restore_properties(case: Case, edit: TextEdit) -> str:
    """Declare what only the other side declares, because the edited closed content model rejects it."""
    own, other = _declared(case.own_value), _declared(case.other_value)
    return _edit_named(case, edit, [name for name in other if name not in own], restore_property)


def remove_properties(case: Case, edit: TextEdit) -> str:
    """Remove what the other side doesn't declare, because it accepts no other properties."""
    own, other = _declared(case.own_value), _declared(case.other_value)
    return _edit_named(case, edit, [name for name in own if name not in other], remove_property)


def _edit_named(case: Case, edit: TextEdit, names: list[str], step: Step) -> str:
    """Apply a step to the only name, or to the one in the witness's error, which is about one datum."""
    if len(names) != 1:
        error = case.finding.witness.error if case.finding.witness is not None else ""
        names = [name for name in names if f"'{name}'" in error or f'"{name}"' in error][:1]
    return step(replace(case, name=names[0]), edit) if names else ""


def _declared(schema: Any) -> Mapping[str, Any]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def open_model(case: Case, edit: TextEdit) -> str:
    """Allow other properties in the object."""
    edit.remove_member(case.own_pointer, "additionalProperties")
    return f"open the content model{case.where}"


def add_values(case: Case, edit: TextEdit) -> str:
    """Add the other side's values."""
    interning = Interning()
    own = {interning.number(value) for value in case.own_value["enum"]}
    missing = [value for value in case.other_value["enum"] if interning.number(value) not in own]
    for value in missing:
        edit.insert_item(join(case.own_pointer, "enum"), 10**9, compact(value))
    return f"list {', '.join(compact(value) for value in missing)[:120]} as well{case.where}"


def drop_values(case: Case, edit: TextEdit) -> str:
    """Remove values that the other side lacks."""
    interning = Interning()
    numbers = {interning.number(value) for value in case.other_value["enum"]}
    values = [value for value in case.own_value["enum"] if interning.number(value) in numbers]
    edit.set_member(case.own_pointer, "enum", spaced(values))
    return f"list only values that the reader knows{case.where}"


# -- a change of one property, wherever it leads -----------------------------------------------------------------------

#: a type that may replace a property's own
_OTHER_TYPES: Final = ("boolean", "string", "number", "array")


def edit_property(text: str, model: Model, path: str, edit: FieldEdit) -> Edit:
    """Return the text with the property at a path changed, and a title. Raises InvalidSchema."""
    editor, titles = TextEdit(text), []
    for location in declarations_of(model, path):
        if location.document:
            name = model.source(location)
            raise InvalidSchema(f"{path} is declared in the referenced schema {name}: change it there.")
        try:
            titles.append(_edit_declaration(editor, model, location, edit))
        except NoSuchPlace as error:
            raise InvalidSchema(f"The place {error} can't be edited.") from error
    if not titles:
        raise InvalidSchema(f"The schema has no property {path}.")
    return Edit("; ".join(dict.fromkeys(titles)), editor.text)


def _edit_declaration(editor: TextEdit, model: Model, location: SchemaLocation, edit: FieldEdit) -> str:
    """Change one declaration, and return a title. Raises NoSuchPlace."""
    properties, name = parent(location.pointer), unescape(location.pointer.rpartition("/")[2])
    if edit == "change type":
        kind = _other_type(model, location)
        editor.replace(location.pointer, json_source({"type": kind}))
        return f'make "{name}" {"an" if kind == "array" else "a"} {kind}'
    source = editor.source(location.pointer)
    editor.remove_member(properties, name)
    if edit == "remove":
        _require(editor, model, parent(properties), lambda names: [other for other in names if other != name])
        return f'remove "{name}"'
    renamed, declared = name, value_at(model.root, properties)
    while renamed in declared:
        renamed += "_renamed"
    editor.set_member(properties, renamed, source)
    _require(editor, model, parent(properties), lambda names: [renamed if other == name else other for other in names])
    return f'rename "{name}" to "{renamed}"'


def _require(editor: TextEdit, model: Model, pointer: str, change: Callable[[list[Any]], list[Any]]) -> None:
    """Change the required names of an object that has any."""
    required = value_at(model.root, join(pointer, "required"))
    if isinstance(required, list):
        editor.replace(join(pointer, "required"), json_source(change(required)))


def _other_type(model: Model, location: SchemaLocation) -> str:
    """Return a type that the property's schema doesn't name."""
    schema = model.at(behind(model, location))
    named = schema.get("type") if isinstance(schema, dict) else None
    kinds = {named} if isinstance(named, str) else set(named or ())
    other = next((kind for kind in _OTHER_TYPES if kind not in kinds), "")
    if not other:
        raise InvalidSchema("The property accepts every type that could replace its own.")
    return other
