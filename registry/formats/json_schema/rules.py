"""The rules of JSON Schema's compatibility, one row each, and the sentences of Confluent's `verbose` answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from registry.formats.rule import Rule


@dataclass(frozen=True, slots=True)
class LimitKeyword:
    """A keyword with a number: the words for its row where it is new, and where it is tighter."""

    prefix: str
    keyword: str
    is_upper: bool
    of: str


_LIMITS: Final = (
    LimitKeyword("MAX_LENGTH", "maxLength", True, "strings"),
    LimitKeyword("MIN_LENGTH", "minLength", False, "strings"),
    LimitKeyword("MAXIMUM", "maximum", True, "numbers"),
    LimitKeyword("MINIMUM", "minimum", False, "numbers"),
    LimitKeyword("EXCLUSIVE_MAXIMUM", "exclusiveMaximum", True, "numbers"),
    LimitKeyword("EXCLUSIVE_MINIMUM", "exclusiveMinimum", False, "numbers"),
    LimitKeyword("MAX_ITEMS", "maxItems", True, "arrays"),
    LimitKeyword("MIN_ITEMS", "minItems", False, "arrays"),
    LimitKeyword("MAX_PROPERTIES", "maxProperties", True, "objects"),
    LimitKeyword("MIN_PROPERTIES", "minProperties", False, "objects"),
    LimitKeyword("MAX_CONTAINS", "maxContains", True, "arrays"),
    LimitKeyword("MIN_CONTAINS", "minContains", False, "arrays"),
)


def _limit_rows(limit: LimitKeyword) -> tuple[Rule, Rule]:
    event = "DECREASED" if limit.is_upper else "INCREASED"
    verb = "lowered" if limit.is_upper else "raised"
    why = f"The writer's {limit.of} may lie outside, and the reader refuses those."
    return (
        Rule(
            f"{limit.prefix}_ADDED",
            f"{limit.prefix}_ADDED",
            "break",
            f"the reader has {limit.keyword} {{reader}}, the writer has none",
            why,
            f"leave {limit.keyword} out",
            f"give the writer the {limit.keyword} {{reader}} as well",
        ),
        Rule(
            f"{limit.prefix}_{event}",
            f"{limit.prefix}_{event}",
            "break",
            f"{limit.keyword} is {verb} from {{writer}} to {{reader}}",
            why,
            f"keep {limit.keyword} at {{writer}}",
            f"keep {limit.keyword} at {{reader}}",
        ),
    )


def _break(
    id: str, sentence: str, why: str, in_reader: str, in_writer: str, kind: str = "", lenient: bool = False
) -> Rule:
    return Rule(id, kind or id, "break", sentence, why, in_reader, in_writer, is_lenient=lenient)


_REFUSED: Final = "The writer may write a value that the reader refuses."
_ANY_VALUE: Final = "The writer's open content model lets any value stand under that name, and the reader refuses most."
_CONTENT: Final = "What is not listed must fit the reader's content model."

_BREAKS: Final = (
    *(row for limit in _LIMITS for row in _limit_rows(limit)),
    _break(
        "TYPE_CHANGED",
        "the type changes from {writer} to {reader}",
        "No value of the one type is one of the other.",
        "keep {writer}, or take both with anyOf",
        "keep {reader}, or add a new property of type {writer}",
    ),
    _break(
        "TYPE_NARROWED",
        "the type is narrowed from {writer} to {reader}",
        "The writer may write a number with a fraction, which is no integer.",
        "keep {writer}",
        "keep {reader}",
    ),
    _break(
        "SCHEMA_ADDED",
        "the reader says what the items must be ({reader}), the writer doesn't",
        "The writer's arrays may hold anything.",
        "leave items out",
        "give the writer the same items",
    ),
    _break("PATTERN_ADDED", "the reader has the pattern {reader}, the writer has none", _REFUSED, "leave the pattern out", "give the writer the same pattern"),
    _break("PATTERN_CHANGED", "the pattern changes from {writer} to {reader}", "Whether one pattern contains another isn't decided: a changed one counts as a break.", "keep the pattern {writer}", "keep the pattern {reader}"),
    _break("MULTIPLE_OF_ADDED", "the reader has multipleOf {reader}, the writer has none", _REFUSED, "leave multipleOf out", "give the writer multipleOf {reader}"),
    _break("MULTIPLE_OF_EXPANDED", "multipleOf grows from {writer} to {reader}", _REFUSED, "keep multipleOf at {writer}", "keep multipleOf at {reader}"),
    _break("MULTIPLE_OF_CHANGED", "multipleOf changes from {writer} to {reader}", _REFUSED, "keep multipleOf at {writer}", "keep multipleOf at {reader}"),
    _break("UNIQUE_ITEMS_ADDED", "the reader's items must differ from each other, the writer's need not", _REFUSED, "leave uniqueItems out", "give the writer uniqueItems as well"),
    _break(
        "REQUIRED_ATTRIBUTE_ADDED",
        'the property "{name}" is required by the reader and optional for the writer',
        "Data without the property are valid for the writer, and the reader refuses them.",
        'leave "{name}" out of required',
        'require "{name}" in the writer as well',
    ),
    _break(
        "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        'the reader requires the property "{name}", which the writer doesn\'t know',
        "Data without the property are valid for the writer, and so is any value under that name.",
        'make "{name}" optional, and close the writer\'s content model first (additionalProperties: false)',
        'declare and require "{name}" in the writer as well',
    ),
    _break(
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
        'the reader requires the property "{name}", which the writer doesn\'t know, and gives it a default',
        "A default fills nothing in when data are validated, and the writer may have any value under that name.",
        'make "{name}" optional, and close the writer\'s content model first (additionalProperties: false)',
        'declare "{name}" in the writer as well',
        lenient=True,
    ),
    _break(
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        'the reader declares the property "{name}" as {reader}, and the writer\'s content model is open',
        _ANY_VALUE,
        'leave out the schema of "{name}", or close the content model in an earlier version (additionalProperties: false)',
        'declare "{name}" as {reader} in the writer as well',
        lenient=True,
    ),
    _break(
        "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        'the reader requires the property "{name}", which the writer doesn\'t declare',
        "Data without the property are valid for the writer, and the reader refuses them.",
        'make "{name}" optional',
        'declare and require "{name}" in the writer as well',
    ),
    _break(
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        'the reader doesn\'t know the property "{name}" and takes no other properties',
        _CONTENT,
        'keep "{name}", or open the content model (leave additionalProperties: false out)',
        'don\'t write "{name}" before all readers know it',
        lenient=True,
    ),
    _break(
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        'the reader doesn\'t list the property "{name}", and what it takes of others ({reader}) doesn\'t cover {writer}',
        _CONTENT,
        'keep "{name}"',
        'write "{name}" only with values that fit {reader}',
        lenient=True,
    ),
    _break(
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        'the reader declares the property "{name}" as {reader}; the writer may have {writer} under that name',
        "What the writer's content model lets through must fit what the reader declares.",
        'declare "{name}" as {writer}',
        'declare "{name}" as {reader} in the writer as well',
        lenient=True,
    ),
    _break("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", "the reader says what item {name} must be ({reader}), the writer takes anything there", _ANY_VALUE, "leave the item out", "give the writer the same item"),
    _break("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", "the reader takes no item {name}, the writer may write one", _CONTENT, "keep the item, or take further items", "don't write the item before all readers know it"),
    _break("ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "the reader doesn't list item {name}, and what it takes of others ({reader}) doesn't cover {writer}", _CONTENT, "keep the item", "write the item only with values that fit {reader}"),
    _break("ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "the reader says that item {name} must be {reader}; the writer may have {writer} there", _CONTENT, "make the item {writer}", "give the writer the same item"),
    _break("ADDITIONAL_PROPERTIES_REMOVED", "the reader takes no further properties, the writer does", _CONTENT, "keep the content model open", "close the writer's content model first", lenient=True),
    _break("ADDITIONAL_PROPERTIES_NARROWED", "the reader takes only some further properties, the writer takes any", _CONTENT, "keep the content model open", "narrow the writer's further properties first", lenient=True),
    _break("UNEVALUATED_PROPERTIES_REMOVED", "the reader takes no properties that it doesn't evaluate, the writer does", _CONTENT, "leave unevaluatedProperties as it was", "close the writer's content model first", lenient=True),
    _break("UNEVALUATED_PROPERTIES_NARROWED", "the reader takes only some properties that it doesn't evaluate, the writer takes any", _CONTENT, "leave unevaluatedProperties as it was", "narrow the writer's first", lenient=True),
    _break("ADDITIONAL_ITEMS_REMOVED", "the reader takes no further items, the writer does", _CONTENT, "take further items as before", "take no further items in the writer first"),
    _break("ADDITIONAL_ITEMS_NARROWED", "the reader takes only some further items, the writer takes any", _CONTENT, "take further items as before", "narrow the writer's further items first"),
    _break("UNEVALUATED_ITEMS_REMOVED", "the reader takes no items that it doesn't evaluate, the writer does", _CONTENT, "leave unevaluatedItems as it was", "take none in the writer first"),
    _break("UNEVALUATED_ITEMS_NARROWED", "the reader takes only some items that it doesn't evaluate, the writer takes any", _CONTENT, "leave unevaluatedItems as it was", "narrow the writer's first"),
    _break("DEPENDENCY_ARRAY_ADDED", 'with "{name}" the reader requires {reader}, the writer requires nothing more', _REFUSED, 'leave the dependency of "{name}" out', "give the writer the same dependency"),
    _break("DEPENDENCY_ARRAY_EXTENDED", 'with "{name}" the reader requires {reader}, the writer only {writer}', _REFUSED, 'require {writer} with "{name}"', "give the writer the same dependency"),
    _break("DEPENDENCY_ARRAY_CHANGED", 'with "{name}" the reader requires {reader}, the writer {writer}', _REFUSED, 'require {writer} with "{name}"', "give the writer the same dependency"),
    _break("DEPENDENCY_SCHEMA_ADDED", 'with "{name}" the reader has a schema ({reader}), the writer has none', _REFUSED, 'leave the dependency of "{name}" out', "give the writer the same dependency"),
    _break("ENUM_ARRAY_NARROWED", "the reader lacks the values {name}", "The writer may write a value that the reader doesn't list.", "keep the values {name}", "don't write {name} before all readers know them"),
    _break("ENUM_ARRAY_CHANGED", "the reader lacks the values {name}, and has others", "The writer may write a value that the reader doesn't list.", "keep the values {name}", "don't write {name} before all readers know them"),
    _break("CONST_CHANGED", "the constant changes from {writer} to {reader}", "The writer writes one value alone, and the reader takes another alone.", "keep {writer}, or list both with enum", "keep {reader}", kind="ENUM_ARRAY_CHANGED"),
    _break("COMBINED_TYPE_CHANGED", "the combination changes from {writer} to {reader}", "The two combinations take different values.", "keep {writer}", "keep {reader}"),
    _break("PRODUCT_TYPE_EXTENDED", "the reader's allOf has more members than the writer's", "Every member is one more condition.", "leave the new members out", "add them to the writer first"),
    _break("SUM_TYPE_NARROWED", "the reader's {reader} has fewer members than the writer's {writer}", "A value of the member that is gone fits no other.", "keep the members", "don't write values of those members before all readers know them"),
    _break("COMBINED_TYPE_SUBSCHEMAS_CHANGED", "the members of {writer} can't be paired with those of {reader}", "Each member needs one on the other side that takes its values.", "keep the members, or widen them", "keep the members of the reader"),
    _break("NOT_TYPE_EXTENDED", "what the reader forbids with not isn't forbidden by the writer", "The writer may write a value that the reader forbids.", "forbid no more than before", "forbid the same in the writer first"),
)  # fmt: skip


def _hazard(id: str, sentence: str, why: str, in_reader: str, in_writer: str) -> Rule:
    return Rule(id, "", "warning", sentence, why, in_reader, in_writer)


_UNSEEN: Final = "The established check doesn't compare this keyword: the pair passes, and data may break in truth."

_HAZARDS: Final = (
    _hazard(
        "REQUIRED_FILLED_BY_DEFAULT",
        'the reader requires the property "{name}", which the writer may leave out; its default counts as a way out',
        "Break in truth: a default fills nothing in when data are validated, so data without the property fail.",
        'leave "{name}" out of required',
        'require "{name}" in the writer as well',
    ),
    _hazard("REQUIRED_UNDECLARED", 'the reader requires the property "{name}" without declaring it', _UNSEEN, 'leave "{name}" out of required', 'require "{name}" in the writer as well'),
    _hazard("CONDITION_CHANGED", "if, then or else differ", _UNSEEN, "keep the condition", "keep the condition of the reader"),
    _hazard("PATTERN_PROPERTIES_CHANGED", "the schemas by name pattern differ", _UNSEEN, "keep patternProperties", "keep those of the reader"),
    _hazard("PROPERTY_NAMES_CHANGED", "what names properties may have differs", _UNSEEN, "keep propertyNames", "keep those of the reader"),
    _hazard("CONTAINS_CHANGED", "what the array must contain differs", _UNSEEN, "keep contains", "keep that of the reader"),
    _hazard("EXCLUSIVE_BOUND_CHANGED", "{name} is now exclusive", _UNSEEN, "keep the bound inclusive", "make the writer's bound exclusive first"),
    _hazard("TYPE_ADDED", "the reader takes only {reader}, the writer has constraints without a type", "Break in truth: constraints without a type take values of all other types. The established check takes both for the same type.", "leave the type out", "give the writer the type {reader} first"),
    _hazard("FORMAT_CHANGED", "the format changes from {writer} to {reader}", "A format is an annotation by default; a validator that checks formats may refuse data.", "keep the format {writer}", "keep the format {reader}"),
    _hazard("DRAFT_CHANGED", "the draft changes from {writer} to {reader}", "The same keywords may mean something else under another draft.", "keep the draft of {writer}", "keep the draft of {reader}"),
)  # fmt: skip

_TRUTHS: Final = (
    Rule(
        "DATUM_REFUSED",
        "",
        "break",
        "the reader refuses data that the writer may write: {name}",
        "The datum is valid under the writer and invalid under the reader; both were validated.",
        "take what the writer may write at {path}",
        "don't write such values at {path} before all readers take them",
    ),
)

_ROWS: Final = (*_BREAKS, *_HAZARDS, *_TRUTHS)
RULES: Final[Mapping[str, Rule]] = {rule.id: rule for rule in _ROWS}
BREAKING: Final[Mapping[str, frozenset[str]]] = {
    "strict": frozenset(rule.kind for rule in _BREAKS),
    "lenient": frozenset(rule.kind for rule in _BREAKS if not rule.is_lenient),
}


_NOT_PRESENT: Final = "The keyword at path '{location}' in the {reader} schema is not present in the {writer} schema"
_MORE: Final = "The value at path '{location}' in the {reader} schema is more than its value in the {writer} schema"
_LESS: Final = "The value at path '{location}' in the {reader} schema is less than its value in the {writer} schema"
_DIFFERENT: Final = "The value at path '{location}' is different between the {reader} and {writer} schema"
_FEWER: Final = (
    "An array or combined type at path '{location}' has fewer elements in the {reader} schema than the {writer} schema"
)
_LONGER: Final = (
    "An array or combined type at path '{location}' has more elements in the {reader} schema than the {writer} schema"
)
_TYPE: Final = "A type at path '{location}' is different between the {reader} schema and the {writer} schema"
_OPEN: Final = (
    "The {reader} schema has an open content model and has a property or item at path '{location}' which is missing "
    "in the {writer} schema"
)
_CLOSED: Final = (
    "The {reader} has a closed content model and is missing a property or item present at path '{location}' in the "
    "{writer} schema"
)
_REMOVED_NOT_COVERED: Final = (
    "A property or item is missing in the {reader} schema but present at path '{location}' in the {writer} schema and "
    "is not covered by its partially open content model"
)
_ADDED_NOT_COVERED: Final = (
    "The {reader} schema has a property or item at path '{location}' which is missing in the {writer} schema and is "
    "not covered by its partially open content model"
)

_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    _NOT_PRESENT: (
        "MAXIMUM_ADDED",
        "MINIMUM_ADDED",
        "EXCLUSIVE_MAXIMUM_ADDED",
        "EXCLUSIVE_MINIMUM_ADDED",
        "MULTIPLE_OF_ADDED",
        "MAX_LENGTH_ADDED",
        "MIN_LENGTH_ADDED",
        "PATTERN_ADDED",
        "REQUIRED_ATTRIBUTE_ADDED",
        "MAX_PROPERTIES_ADDED",
        "MIN_PROPERTIES_ADDED",
        "DEPENDENCY_ARRAY_ADDED",
        "DEPENDENCY_SCHEMA_ADDED",
        "MAX_ITEMS_ADDED",
        "MIN_ITEMS_ADDED",
        "MAX_CONTAINS_ADDED",
        "MIN_CONTAINS_ADDED",
        "UNIQUE_ITEMS_ADDED",
        "ADDITIONAL_ITEMS_REMOVED",
        "ADDITIONAL_PROPERTIES_REMOVED",
        "UNEVALUATED_PROPERTIES_REMOVED",
        "UNEVALUATED_ITEMS_REMOVED",
    ),
    _MORE: (
        "MIN_LENGTH_INCREASED",
        "MINIMUM_INCREASED",
        "EXCLUSIVE_MINIMUM_INCREASED",
        "MIN_PROPERTIES_INCREASED",
        "MULTIPLE_OF_EXPANDED",
        "MIN_ITEMS_INCREASED",
        "MIN_CONTAINS_INCREASED",
    ),
    _LESS: (
        "MAX_LENGTH_DECREASED",
        "MAXIMUM_DECREASED",
        "MAX_ITEMS_DECREASED",
        "MAX_CONTAINS_DECREASED",
        "EXCLUSIVE_MAXIMUM_DECREASED",
        "MAX_PROPERTIES_DECREASED",
    ),
    _DIFFERENT: ("PATTERN_CHANGED", "MULTIPLE_OF_CHANGED", "DEPENDENCY_ARRAY_CHANGED"),
    _FEWER: (
        "ADDITIONAL_ITEMS_NARROWED",
        "ENUM_ARRAY_NARROWED",
        "SUM_TYPE_NARROWED",
        "ADDITIONAL_PROPERTIES_NARROWED",
        "UNEVALUATED_PROPERTIES_NARROWED",
        "UNEVALUATED_ITEMS_NARROWED",
    ),
    _LONGER: ("DEPENDENCY_ARRAY_EXTENDED", "PRODUCT_TYPE_EXTENDED", "NOT_TYPE_EXTENDED"),
    _TYPE: (
        "TYPE_CHANGED",
        "TYPE_NARROWED",
        "COMBINED_TYPE_CHANGED",
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
        "ENUM_ARRAY_CHANGED",
    ),
    _OPEN: (
        "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "ITEM_ADDED_TO_OPEN_CONTENT_MODEL",
    ),
    _CLOSED: ("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL"),
    _REMOVED_NOT_COVERED: (
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ),
    _ADDED_NOT_COVERED: (
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ),
}

DESCRIPTIONS: Final[Mapping[str, str]] = {
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": (
        "The {reader} schema has an unopen content model and has a required property at path '{location}' which is "
        "missing in the {writer} schema"
    ),
    "SCHEMA_ADDED": "",
    **{kind: sentence for sentence, kinds in _KINDS.items() for kind in kinds},
}
