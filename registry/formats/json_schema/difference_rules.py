"""The differences between two JSON Schemas that are told to people, one row each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from registry.formats.rule import DifferenceRule

Category = Literal["value", "bound", "flag"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """A keyword with a value of its own: the prefix of its three rules, and what people call it."""

    keyword: str
    prefix: str
    words: str
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
    Attribute("minLength", "MIN_LENGTH", "the least length", "bound"),
    Attribute("maxLength", "MAX_LENGTH", "the greatest length", "bound"),
    Attribute("minItems", "MIN_ITEMS", "the least number of items", "bound"),
    Attribute("maxItems", "MAX_ITEMS", "the greatest number of items", "bound"),
    Attribute("minProperties", "MIN_PROPERTIES", "the least number of properties", "bound"),
    Attribute("maxProperties", "MAX_PROPERTIES", "the greatest number of properties", "bound"),
    Attribute("minContains", "MIN_CONTAINS", "minContains", "bound"),
    Attribute("maxContains", "MAX_CONTAINS", "maxContains", "bound"),
)


def _attribute_rows(attribute: Attribute) -> tuple[DifferenceRule, ...]:
    prefix, words = attribute.prefix, attribute.words
    added = DifferenceRule(f"{prefix}_ADDED", "added", f"{words} {{after}} is added")
    removed = DifferenceRule(f"{prefix}_REMOVED", "removed", f"{words} {{before}} is removed")
    changed = DifferenceRule(f"{prefix}_CHANGED", "changed", f"{words} changes from {{before}} to {{after}}")
    if attribute.category == "value":
        return added, removed, changed
    raised = DifferenceRule(f"{prefix}_RAISED", "changed", f"{words} is raised from {{before}} to {{after}}")
    lowered = DifferenceRule(f"{prefix}_LOWERED", "changed", f"{words} is lowered from {{before}} to {{after}}")
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
    DifferenceRule("CONTENT_MODEL_OPENED", "changed", "{name} now takes anything, before: {before}"),
    DifferenceRule("CONTENT_MODEL_CLOSED", "changed", "{name} now takes nothing, before: {before}"),
    DifferenceRule("CONTENT_MODEL_CHANGED", "changed", "what {name} takes changes from {before} to {after}"),
    DifferenceRule("PATTERN_PROPERTY_ADDED", "added", "a schema for names like {name} is added"),
    DifferenceRule("PATTERN_PROPERTY_REMOVED", "removed", "the schema for names like {name} is removed"),
    DifferenceRule("ITEMS_ADDED", "added", "the items are now restricted to {after}"),
    DifferenceRule("ITEMS_REMOVED", "removed", "the items are no longer restricted to {before}"),
    DifferenceRule("ITEMS_CHANGED", "changed", "the items change between one schema and a tuple"),
    DifferenceRule("TUPLE_ITEM_ADDED", "added", "the tuple gets item {name} ({after})"),
    DifferenceRule("TUPLE_ITEM_REMOVED", "removed", "the tuple loses item {name} ({before})"),
    DifferenceRule("COMBINATION_ADDED", "added", "{name} is added"),
    DifferenceRule("COMBINATION_REMOVED", "removed", "{name} is removed"),
    DifferenceRule("MEMBER_ADDED", "added", "{name} gets the member {after}"),
    DifferenceRule("MEMBER_REMOVED", "removed", "{name} loses the member {before}"),
    DifferenceRule("CONDITION_ADDED", "added", "{name} ({after}) is added"),
    DifferenceRule("CONDITION_REMOVED", "removed", "{name} ({before}) is removed"),
    DifferenceRule("DEPENDENCY_ADDED", "added", 'with "{name}", {after} is now asked for'),
    DifferenceRule("DEPENDENCY_REMOVED", "removed", 'with "{name}", {before} is no longer asked for'),
    DifferenceRule("DEPENDENCY_CHANGED", "changed", 'what is asked for with "{name}" changes from {before} to {after}'),
    DifferenceRule("DEFINITION_ADDED", "added", 'the definition "{name}" is added'),
    DifferenceRule("DEFINITION_REMOVED", "removed", 'the definition "{name}" is removed'),
    DifferenceRule("REFERENCE_ADDED", "added", "the schema now refers to {after}"),
    DifferenceRule("REFERENCE_REMOVED", "removed", "the schema no longer refers to {before}"),
    DifferenceRule("REFERENCE_CHANGED", "changed", "the reference changes from {before} to {after}"),
    DifferenceRule("REFERENCED_SCHEMA_CHANGED", "changed", "what {name} refers to is another text than before"),
    DifferenceRule("DRAFT_CHANGED", "changed", "the draft changes from {before} to {after}"),
    DifferenceRule("SCHEMA_KEYWORD_CHANGED", "changed", "how the draft is named changes from {before} to {after}"),
    DifferenceRule("SCHEMA_CHANGED", "changed", "the schema changes from {before} to {after}"),
    DifferenceRule("KEYWORD_ADDED", "added", 'the keyword "{name}" is added'),
    DifferenceRule("KEYWORD_REMOVED", "removed", 'the keyword "{name}" is removed'),
    DifferenceRule("KEYWORD_CHANGED", "changed", 'the keyword "{name}" changes'),
    DifferenceRule("NUMBER_REWRITTEN", "changed", "the number {before} is written as {after}"),
    DifferenceRule("REORDERED", "moved", "{name} stand in another order"),
)

_ROWS: Final = (*(row for attribute in ATTRIBUTES for row in _attribute_rows(attribute)), *_OTHERS)
DIFFERENCE_RULES: Final[Mapping[str, DifferenceRule]] = {rule.id: rule for rule in _ROWS}
ATTRIBUTE_OF: Final[Mapping[str, Attribute]] = {attribute.keyword: attribute for attribute in ATTRIBUTES}
