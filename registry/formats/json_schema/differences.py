"""Single differences: their rules, sentences and values, and the differences of keywords that hold values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from registry.formats.base import Difference, DifferenceRule
from registry.formats.json_pointer import join
from registry.formats.json_schema.text import Interning, compact, to_plain, type_words

Category = Literal["value", "bound", "flag"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """A keyword with a value: the prefix of its rules, and its label for people."""

    keyword: str
    prefix: str
    label: str
    category: Category = "value"


ATTRIBUTES: Final = (
    Attribute("title", "TITLE", "the title"),
    Attribute("description", "DESCRIPTION", "the description"),
    Attribute("default", "DEFAULT", "the default"),
    Attribute("examples", "EXAMPLES", "the examples"),
    Attribute("format", "FORMAT", "the format"),
    Attribute("pattern", "PATTERN", "the pattern"),
    Attribute("const", "CONST", "the constant"),
    Attribute("$id", "ID", "the address ($id)"),
    Attribute("id", "ID", "the address (id)"),
    Attribute("$anchor", "ANCHOR", "the anchor"),
    Attribute("$comment", "COMMENT", "the comment"),
    Attribute("deprecated", "DEPRECATED", "deprecated"),
    Attribute("readOnly", "READ_ONLY", "readOnly"),
    Attribute("writeOnly", "WRITE_ONLY", "writeOnly"),
    Attribute("contentEncoding", "CONTENT_ENCODING", "the content encoding"),
    Attribute("contentMediaType", "CONTENT_MEDIA_TYPE", "the content type"),
    Attribute("uniqueItems", "UNIQUE_ITEMS", "uniqueItems"),
    Attribute("multipleOf", "MULTIPLE_OF", "multipleOf"),
    Attribute("minimum", "MINIMUM", "the minimum", "bound"),
    Attribute("maximum", "MAXIMUM", "the maximum", "bound"),
    Attribute("exclusiveMinimum", "EXCLUSIVE_MINIMUM", "the exclusive minimum", "bound"),
    Attribute("exclusiveMaximum", "EXCLUSIVE_MAXIMUM", "the exclusive maximum", "bound"),
    Attribute("minLength", "MIN_LENGTH", "the minimum length", "bound"),
    Attribute("maxLength", "MAX_LENGTH", "the maximum length", "bound"),
    Attribute("minItems", "MIN_ITEMS", "the minimum number of items", "bound"),
    Attribute("maxItems", "MAX_ITEMS", "the maximum number of items", "bound"),
    Attribute("minProperties", "MIN_PROPERTIES", "the minimum number of properties", "bound"),
    Attribute("maxProperties", "MAX_PROPERTIES", "the maximum number of properties", "bound"),
    Attribute("minContains", "MIN_CONTAINS", "minContains", "bound"),
    Attribute("maxContains", "MAX_CONTAINS", "maxContains", "bound"),
)


def _attribute_rows(attribute: Attribute) -> tuple[DifferenceRule, ...]:
    prefix, label = attribute.prefix, attribute.label
    added = DifferenceRule(f"{prefix}_ADDED", "added", f"{label} {{after}} is added")
    removed = DifferenceRule(f"{prefix}_REMOVED", "removed", f"{label} {{before}} is removed")
    changed = DifferenceRule(f"{prefix}_CHANGED", "changed", f"{label} changes from {{before}} to {{after}}")
    if attribute.category == "value":
        return added, removed, changed
    raised = DifferenceRule(f"{prefix}_RAISED", "changed", f"{label} is raised from {{before}} to {{after}}")
    lowered = DifferenceRule(f"{prefix}_LOWERED", "changed", f"{label} is lowered from {{before}} to {{after}}")
    # Draft 4 has exclusive bounds that are true or false.
    return (added, removed, raised, lowered, *((changed,) if prefix.startswith("EXCLUSIVE") else ()))


_OTHERS: Final = (
    DifferenceRule("PROPERTY_ADDED", "added", 'the property "{name}" ({after}) is added'),
    DifferenceRule("PROPERTY_REMOVED", "removed", 'the property "{name}" ({before}) is removed'),
    DifferenceRule(
        "PROPERTY_RENAME_SUSPECTED", "renamed", 'the property "{before}" may have been renamed to "{after}"'
    ),
    DifferenceRule("REQUIRED_ADDED", "changed", 'the property "{name}" is now required'),
    DifferenceRule("REQUIRED_REMOVED", "changed", 'the property "{name}" is no longer required'),
    DifferenceRule("TYPE_ADDED", "added", "the type is now restricted to {after}"),
    DifferenceRule("TYPE_REMOVED", "removed", "the type is no longer restricted to {before}"),
    DifferenceRule("TYPE_WIDENED", "changed", "the type is widened from {before} to {after}"),
    DifferenceRule("TYPE_NARROWED", "changed", "the type is narrowed from {before} to {after}"),
    DifferenceRule("TYPE_CHANGED", "changed", "the type changes from {before} to {after}"),
    DifferenceRule("ENUM_ADDED", "added", "the values are now restricted to {after}"),
    DifferenceRule("ENUM_REMOVED", "removed", "the values are no longer restricted to {before}"),
    DifferenceRule("ENUM_VALUE_ADDED", "added", "the enum gets the value {after}"),
    DifferenceRule("ENUM_VALUE_REMOVED", "removed", "the enum loses the value {before}"),
    DifferenceRule("CONTENT_MODEL_OPENED", "changed", "{name} now accepts anything (before: {before})"),
    DifferenceRule("CONTENT_MODEL_CLOSED", "changed", "{name} now accepts nothing (before: {before})"),
    DifferenceRule(
        "CONTENT_MODEL_CHANGED", "changed", "the values that {name} accepts change from {before} to {after}"
    ),
    DifferenceRule("PATTERN_PROPERTY_ADDED", "added", "a schema for names like {name} is added"),
    DifferenceRule("PATTERN_PROPERTY_REMOVED", "removed", "the schema for names like {name} is removed"),
    DifferenceRule("ITEMS_ADDED", "added", "the items are now restricted to {after}"),
    DifferenceRule("ITEMS_REMOVED", "removed", "the items are no longer restricted to {before}"),
    DifferenceRule("ITEMS_CHANGED", "changed", "the items change between a single schema and a tuple"),
    DifferenceRule("TUPLE_ITEM_ADDED", "added", "the tuple gets item {name} ({after})"),
    DifferenceRule("TUPLE_ITEM_REMOVED", "removed", "the tuple loses item {name} ({before})"),
    DifferenceRule("COMBINATION_ADDED", "added", "{name} is added"),
    DifferenceRule("COMBINATION_REMOVED", "removed", "{name} is removed"),
    DifferenceRule("MEMBER_ADDED", "added", "{name} gets the member {after}"),
    DifferenceRule("MEMBER_REMOVED", "removed", "{name} loses the member {before}"),
    DifferenceRule("CONDITION_ADDED", "added", "{name} ({after}) is added"),
    DifferenceRule("CONDITION_REMOVED", "removed", "{name} ({before}) is removed"),
    DifferenceRule("DEPENDENCY_ADDED", "added", 'with "{name}", {after} is now required'),
    DifferenceRule("DEPENDENCY_REMOVED", "removed", 'with "{name}", {before} is no longer required'),
    DifferenceRule("DEPENDENCY_CHANGED", "changed", 'what "{name}" requires changes from {before} to {after}'),
    DifferenceRule("DEFINITION_ADDED", "added", 'the definition "{name}" is added'),
    DifferenceRule("DEFINITION_REMOVED", "removed", 'the definition "{name}" is removed'),
    DifferenceRule("REFERENCE_ADDED", "added", "the schema now refers to {after}"),
    DifferenceRule("REFERENCE_REMOVED", "removed", "the schema no longer refers to {before}"),
    DifferenceRule("REFERENCE_CHANGED", "changed", "the reference changes from {before} to {after}"),
    DifferenceRule("REFERENCED_SCHEMA_CHANGED", "changed", "the text that {name} refers to changes"),
    DifferenceRule("DRAFT_CHANGED", "changed", "the draft changes from {before} to {after}"),
    DifferenceRule("SCHEMA_KEYWORD_CHANGED", "changed", "the URI of the draft changes from {before} to {after}"),
    DifferenceRule("SCHEMA_CHANGED", "changed", "the schema changes from {before} to {after}"),
    DifferenceRule("KEYWORD_ADDED", "added", 'the keyword "{name}" is added'),
    DifferenceRule("KEYWORD_REMOVED", "removed", 'the keyword "{name}" is removed'),
    DifferenceRule("KEYWORD_CHANGED", "changed", 'the keyword "{name}" changes'),
    DifferenceRule("NUMBER_REWRITTEN", "changed", "the number {before} is written as {after}"),
    DifferenceRule("REORDERED", "moved", "the order of {name} changes"),
)

_ROWS: Final = (*(row for attribute in ATTRIBUTES for row in _attribute_rows(attribute)), *_OTHERS)
DIFFERENCE_RULES: Final[Mapping[str, DifferenceRule]] = {rule.id: rule for rule in _ROWS}
ATTRIBUTE_OF: Final[Mapping[str, Attribute]] = {attribute.keyword: attribute for attribute in ATTRIBUTES}


@dataclass(frozen=True, slots=True)
class Sides:
    """The place where two schemas are compared: the path for people, and the pointer of each side."""

    path: str
    old: str
    new: str

    def inside(self, *tokens: str | int, step: str = "") -> Sides:
        """Return the place with the same tokens appended on both sides."""
        return Sides(self.path + step, join(self.old, *tokens), join(self.new, *tokens))

    def apart(self, old: tuple[str | int, ...], new: tuple[str | int, ...], step: str = "") -> Sides:
        """Return the place with different tokens appended on each side."""
        return Sides(self.path + step, join(self.old, *old), join(self.new, *new))


def difference(
    rule: str,
    sides: Sides,
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
        pointer_old=None if only == "new" else sides.old,
        pointer_new=None if only == "old" else sides.new,
        path=sides.path,
        before=to_plain(before),
        after=to_plain(after),
        message=row.sentence.format(name=name, before=shown(before), after=shown(after)),
        score=score,
        reasons=reasons,
        effect=effect,
        cure=cure,
    )


def shown(value: Any) -> str:
    """Return a value for a sentence: a schema by its type, other values as JSON, shortened."""
    if isinstance(value, dict):
        return type_words(value)
    text = value if isinstance(value, str) else compact(value)
    return text if len(text) <= 160 else text[:159] + "…"


Schema = Mapping[str, Any]
_ABSENT: Final = object()


def attribute_differences(keyword: str, old: Schema, new: Schema, sides: Sides) -> Iterator[Difference]:
    """Yield the differences of a keyword with a value; bounds are raised or lowered."""
    attribute = ATTRIBUTE_OF[keyword]
    before, after = old.get(keyword, _ABSENT), new.get(keyword, _ABSENT)
    there = sides.inside(keyword)
    if before is _ABSENT:
        yield difference(f"{attribute.prefix}_ADDED", there, None, after, only="new")
    elif after is _ABSENT:
        yield difference(f"{attribute.prefix}_REMOVED", there, before, None, only="old")
    elif compact(before) != compact(after):
        yield difference(_changed(attribute.prefix, attribute.category == "bound", before, after), there, before, after)


def _changed(prefix: str, is_bound: bool, before: Any, after: Any) -> str:
    if not _is_number(before) or not _is_number(after):
        return f"{prefix}_CHANGED"
    if before == after:
        return "NUMBER_REWRITTEN"
    if not is_bound:
        return f"{prefix}_CHANGED"
    return f"{prefix}_RAISED" if before < after else f"{prefix}_LOWERED"


def keyword_differences(keyword: str, old: Schema, new: Schema, sides: Sides) -> Iterator[Difference]:
    """Yield the differences of an unknown keyword, or of one with an invalid value."""
    before, after = old.get(keyword, _ABSENT), new.get(keyword, _ABSENT)
    there = sides.inside(keyword)
    if before is _ABSENT:
        yield difference("KEYWORD_ADDED", there, None, after, name=keyword, only="new")
    elif after is _ABSENT:
        yield difference("KEYWORD_REMOVED", there, before, None, name=keyword, only="old")
    elif compact(before) != compact(after):
        yield difference("KEYWORD_CHANGED", there, before, after, name=keyword)


def type_differences(keyword: str, old: Schema, new: Schema, sides: Sides) -> Iterator[Difference]:
    """Yield the differences of the type, a set of names in which number includes integer."""
    there = sides.inside("type")
    if keyword not in old:
        yield difference("TYPE_ADDED", there, None, _words(new["type"]), only="new")
        return
    if keyword not in new:
        yield difference("TYPE_REMOVED", there, _words(old["type"]), None, only="old")
        return
    before, after = _types(old["type"]), _types(new["type"])
    if before != after:
        rule = "TYPE_WIDENED" if before < after else "TYPE_NARROWED" if after < before else "TYPE_CHANGED"
        yield difference(rule, there, _words(old["type"]), _words(new["type"]))
    elif compact(old["type"]) != compact(new["type"]):
        yield difference("REORDERED", there, old["type"], new["type"], name="the names of the type")


def enum_differences(keyword: str, old: Schema, new: Schema, sides: Sides) -> Iterator[Difference]:
    """Yield the differences of an enum, value by value."""
    there = sides.inside("enum")
    if keyword not in old:
        yield difference("ENUM_ADDED", there, None, new["enum"], only="new")
        return
    if keyword not in new:
        yield difference("ENUM_REMOVED", there, old["enum"], None, only="old")
        return
    interning = Interning()
    before, after = old["enum"], new["enum"]
    ours, theirs = [interning.number(value) for value in before], [interning.number(value) for value in after]
    known_ours, known_theirs = set(ours), set(theirs)
    for index, number in enumerate(ours):
        if number not in known_theirs:
            yield difference("ENUM_VALUE_REMOVED", there.inside(index), before[index], None, only="old")
    for index, number in enumerate(theirs):
        if number not in known_ours:
            yield difference("ENUM_VALUE_ADDED", there.inside(index), None, after[index], only="new")
    kept_ours, kept_theirs = [n for n in ours if n in known_theirs], [n for n in theirs if n in known_ours]
    if kept_ours != kept_theirs or (known_ours == known_theirs and compact(before) != compact(after)):
        yield difference("REORDERED", there, before, after, name="the values of the enum")


def order_differences(label: str, old: list[Any], new: list[Any], sides: Sides) -> Iterator[Difference]:
    """Yield a difference if the common items are in another order."""
    if old == new:
        return
    known_old, known_new = set(old), set(new)
    kept_old, kept_new = [key for key in old if key in known_new], [key for key in new if key in known_old]
    if kept_old != kept_new:
        yield difference("REORDERED", sides, kept_old, kept_new, name=label)


def _types(named: Any) -> frozenset[str]:
    names = {named} if isinstance(named, str) else set(named)
    return frozenset(names | {"integer"} if "number" in names else names)


def _words(named: Any) -> str:
    return named if isinstance(named, str) else " or ".join(named)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def rename_effect(name: str, successor: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Describe the effect of a renamed property on both schemas' readers; `old` and `new` are the enclosing objects."""
    return f"{_effect('new', successor, name, new)} {_effect('old', name, successor, old)}"


def _effect(side: str, ours: str, theirs: str, schema: Mapping[str, Any]) -> str:
    """Describe the effect on readers with `ours` of data written with `theirs`."""
    required = schema.get("required")
    if isinstance(required, list) and ours in required:
        return f'Readers with the {side} schema refuse all data written with "{theirs}": they require "{ours}".'
    if schema.get("additionalProperties") is False:
        return f'Readers with the {side} schema refuse all data written with "{theirs}": they take no other properties.'
    return (
        f'Readers with the {side} schema find no "{ours}" in data written with "{theirs}". '
        f'They ignore the value of "{theirs}".'
    )


def rename_cure(name: str, successor: str) -> str:
    """Return what to do if a property was renamed."""
    return (
        f'Keep "{name}" as deprecated beside "{successor}", and write both until all readers know "{successor}": '
        "JSON Schema has no aliases."
    )
