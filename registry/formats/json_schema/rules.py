"""The rules of JSON Schema compatibility, one row each, and the sentences of Confluent's `verbose` answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from registry.formats.base import Rule


@dataclass(frozen=True, slots=True)
class LimitKeyword:
    """A keyword with a numeric limit, for its two rules: a new limit and a tighter one."""

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
    why = f"The writer's {limit.of} may be outside this range, and the reader rejects those."
    return (
        Rule(
            f"{limit.prefix}_ADDED",
            f"{limit.prefix}_ADDED",
            "break",
            f"the reader schema has {limit.keyword} {{reader}}, the writer schema has none",
            why,
            f"remove {limit.keyword}",
            f"add {limit.keyword} {{reader}} to the writer schema as well",
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


_REFUSED: Final = "The writer may write a value that the reader rejects."
_ANY_VALUE: Final = (
    "The open content model of the writer schema allows any value under that name, but the reader rejects most values."
)
_CONTENT: Final = "Undeclared properties must match the content model of the reader schema."

_BREAKS: Final = (
    *(row for limit in _LIMITS for row in _limit_rows(limit)),
    _break(
        "TYPE_CHANGED",
        "the type changes from {writer} to {reader}",
        "No value of one type is valid for the other.",
        "keep {writer}, or accept both with anyOf",
        "keep {reader}, or add a new property of type {writer}",
    ),
    _break(
        "TYPE_NARROWED",
        "the type is narrowed from {writer} to {reader}",
        "The writer may write a number with a fraction, which isn't an integer.",
        "keep {writer}",
        "keep {reader}",
    ),
    _break(
        "SCHEMA_ADDED",
        "the reader schema restricts the items ({reader}), the writer schema doesn't",
        "The writer's arrays may contain anything.",
        "remove items",
        "add the same items to the writer schema",
    ),
    _break("PATTERN_ADDED", "the reader schema has the pattern {reader}, the writer schema has none", _REFUSED, "remove the pattern", "add the same pattern to the writer schema"),
    _break("PATTERN_CHANGED", "the pattern changes from {writer} to {reader}", "Whether one pattern includes another isn't checked: any changed pattern counts as breaking.", "keep the pattern {writer}", "keep the pattern {reader}"),
    _break("MULTIPLE_OF_ADDED", "the reader schema has multipleOf {reader}, the writer schema has none", _REFUSED, "remove multipleOf", "add multipleOf {reader} to the writer schema"),
    _break("MULTIPLE_OF_EXPANDED", "multipleOf increases from {writer} to {reader}", _REFUSED, "keep multipleOf at {writer}", "keep multipleOf at {reader}"),
    _break("MULTIPLE_OF_CHANGED", "multipleOf changes from {writer} to {reader}", _REFUSED, "keep multipleOf at {writer}", "keep multipleOf at {reader}"),
    _break("UNIQUE_ITEMS_ADDED", "items must be unique in the reader schema, but not in the writer schema", _REFUSED, "remove uniqueItems", "add uniqueItems to the writer schema as well"),
    _break(
        "REQUIRED_ATTRIBUTE_ADDED",
        'the property "{name}" is required in the reader schema and optional in the writer schema',
        "Data without the property is valid for the writer, but the reader rejects it.",
        'remove "{name}" from required',
        'require "{name}" in the writer schema as well',
    ),
    _break(
        "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        'the reader schema requires the property "{name}", which is unknown in the writer schema',
        "For the writer, data without the property is valid, and so is any value under that name.",
        'make "{name}" optional, and close the content model of the writer schema first (additionalProperties: '
"false)",
        'declare and require "{name}" in the writer schema as well',
    ),
    _break(
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
        'the reader schema requires the property "{name}" and gives it a default, but it is unknown in the '
"writer schema",
        "A default is only an annotation: validators don't fill it in, so they reject data without the property. And the "
        "writer may have any value under that name.",
        'make "{name}" optional, and close the content model of the writer schema first (additionalProperties: '
"false)",
        'declare and require "{name}" in the writer schema as well',
        lenient=True,
    ),
    _break(
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        'the reader schema declares the property "{name}" as {reader}, but the content model of the writer '
"schema is open",
        _ANY_VALUE,
        'remove the schema of "{name}", or close the content model in an earlier version (additionalProperties: '
"false)",
        'declare "{name}" as {reader} in the writer schema as well',
        lenient=True,
    ),
    _break(
        "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "the reader schema requires the property \"{name}\", which the writer schema doesn't declare",
        "Data without the property is valid for the writer, but the reader rejects it.",
        'make "{name}" optional',
        'declare and require "{name}" in the writer schema as well',
    ),
    _break(
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "the reader schema doesn't declare the property \"{name}\" and allows no additional properties",
        _CONTENT,
        'keep "{name}", or open the content model (remove additionalProperties: false)',
        'don\'t write "{name}" before all readers know it',
        lenient=True,
    ),
    _break(
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "the reader schema doesn't declare the property \"{name}\", and what it allows for additional properties "
"({reader}) doesn't cover {writer}",
        _CONTENT,
        'keep "{name}"',
        'write "{name}" only with values that match {reader}',
        lenient=True,
    ),
    _break(
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        'the reader schema declares the property "{name}" as {reader}, but the writer may have {writer} under '
"that name",
        "Everything that the content model of the writer schema allows must match the declaration in the reader "
"schema.",
        'declare "{name}" as {writer}',
        'declare "{name}" as {reader} in the writer schema as well',
        lenient=True,
    ),
    _break("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", "the reader schema restricts item {name} ({reader}), the writer schema allows anything there", _ANY_VALUE, "remove the item", "add the same item to the writer schema"),
    _break("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", "the reader schema doesn't allow an item {name}, but the writer may write one", _CONTENT, "keep the item, or allow additional items", "don't write the item before all readers know it"),
    _break("ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "the reader schema doesn't declare item {name}, and what it allows for additional items ({reader}) "
"doesn't cover {writer}", _CONTENT, "keep the item", "write the item only with values that match {reader}"),
    _break("ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "item {name} must be {reader} in the reader schema, but the writer may have {writer} there", _CONTENT, "change the item to {writer}", "add the same item to the writer schema"),
    _break("ADDITIONAL_PROPERTIES_REMOVED", "the reader schema allows no additional properties, the writer schema does", _CONTENT, "keep the content model open", "close the content model of the writer schema first", lenient=True),
    _break("ADDITIONAL_PROPERTIES_NARROWED", "the reader schema allows only some additional properties, the writer schema allows any", _CONTENT, "keep the content model open", "restrict the additional properties in the writer schema first", lenient=True),
    _break("UNEVALUATED_PROPERTIES_REMOVED", "the reader schema allows no unevaluated properties, the writer schema does", _CONTENT, "keep unevaluatedProperties unchanged", "close the content model of the writer schema first", lenient=True),
    _break("UNEVALUATED_PROPERTIES_NARROWED", "the reader schema allows only some unevaluated properties, the writer schema allows any", _CONTENT, "keep unevaluatedProperties unchanged", "restrict them in the writer schema first", lenient=True),
    _break("ADDITIONAL_ITEMS_REMOVED", "the reader schema allows no additional items, the writer schema does", _CONTENT, "allow additional items as before", "disallow additional items in the writer schema first"),
    _break("ADDITIONAL_ITEMS_NARROWED", "the reader schema allows only some additional items, the writer schema allows any", _CONTENT, "allow additional items as before", "restrict the additional items in the writer schema first"),
    _break("UNEVALUATED_ITEMS_REMOVED", "the reader schema allows no unevaluated items, the writer schema does", _CONTENT, "keep unevaluatedItems unchanged", "disallow them in the writer schema first"),
    _break("UNEVALUATED_ITEMS_NARROWED", "the reader schema allows only some unevaluated items, the writer schema allows any", _CONTENT, "keep unevaluatedItems unchanged", "restrict them in the writer schema first"),
    _break("DEPENDENCY_ARRAY_ADDED", 'with "{name}", the reader schema requires {reader}, the writer schema requires nothing more', _REFUSED, 'remove the dependency of "{name}"', "add the same dependency to the writer schema"),
    _break("DEPENDENCY_ARRAY_EXTENDED", 'with "{name}", the reader schema requires {reader}, the writer schema only {writer}', _REFUSED, 'require {writer} with "{name}"', "add the same dependency to the writer schema"),
    _break("DEPENDENCY_ARRAY_CHANGED", 'with "{name}", the reader schema requires {reader}, the writer schema {writer}', _REFUSED, 'require {writer} with "{name}"', "add the same dependency to the writer schema"),
    _break("DEPENDENCY_SCHEMA_ADDED", 'with "{name}", the reader schema has a subschema ({reader}), the writer schema has none', _REFUSED, 'remove the dependency of "{name}"', "add the same dependency to the writer schema"),
    _break("ENUM_ARRAY_NARROWED", "the reader schema lacks the values {name}", "The writer may write a value that isn't listed in the reader schema.", "keep the values {name}", "don't write {name} before all readers know them"),
    _break("ENUM_ARRAY_CHANGED", "the reader schema lacks the values {name} and has others", "The writer may write a value that isn't listed in the reader schema.", "keep the values {name}", "don't write {name} before all readers know them"),
    _break("CONST_CHANGED", "the constant changes from {writer} to {reader}", "The writer writes only one value, and the reader accepts only another one.", "keep {writer}, or list both with enum", "keep {reader}", kind="ENUM_ARRAY_CHANGED"),
    _break("COMBINED_TYPE_CHANGED", "the combination changes from {writer} to {reader}", "The two combinations accept different values.", "keep {writer}", "keep {reader}"),
    _break("PRODUCT_TYPE_EXTENDED", "allOf has more members in the reader schema than in the writer schema", "Every member is an additional condition.", "remove the new members", "add them to the writer first"),
    _break("SUM_TYPE_NARROWED", "{reader} in the reader schema has fewer members than {writer} in the writer schema", "A value of the removed member matches no other member.", "keep the members", "don't write values of those members before all readers know them"),
    _break("COMBINED_TYPE_SUBSCHEMAS_CHANGED", "the members of {writer} can't be matched with the members of {reader}", "Each member needs a member on the other side that accepts its values.", "keep the members, or widen them", "keep the members of the reader schema"),
    _break("NOT_TYPE_EXTENDED", "what the reader schema forbids with not isn't forbidden in the writer schema", "The writer may write a value that the reader forbids.", "forbid nothing new", "forbid the same in the writer schema first"),
)  # fmt: skip


def _hazard(id: str, sentence: str, why: str, in_reader: str, in_writer: str) -> Rule:
    return Rule(id, "", "warning", sentence, why, in_reader, in_writer)


_UNSEEN: Final = "The established check doesn't compare this keyword: the pair passes, but data may break."

_HAZARDS: Final = (
    _hazard("REQUIRED_FILLED_BY_DEFAULT", 'the reader schema requires the property "{name}" and gives it a default; the writer schema doesn\'t require it', "The established check accepts a required property that has a default. But a default is only an annotation: "
"validators don't fill it in, so they reject data without the property.", 'remove "{name}" from required', 'require "{name}" in the writer schema as well'),
    _hazard("REQUIRED_ANY_VALUE", 'the reader schema requires the property "{name}" with any value; the writer schema doesn\'t declare it', "The established check accepts a new property that may have any value, even a required one. But validators reject "
"data without the property.", 'remove "{name}" from required', 'require "{name}" in the writer schema as well'),
    _hazard("REQUIRED_UNDECLARED", 'the reader schema requires the property "{name}" without declaring it', _UNSEEN, 'remove "{name}" from required', 'require "{name}" in the writer schema as well'),
    _hazard("CONDITION_CHANGED", "if, then or else differ", _UNSEEN, "keep the condition", "keep the condition of the reader schema"),
    _hazard("PATTERN_PROPERTIES_CHANGED", "the schemas in patternProperties differ", _UNSEEN, "keep patternProperties", "keep those of the reader schema"),
    _hazard("PROPERTY_NAMES_CHANGED", "the allowed property names differ", _UNSEEN, "keep propertyNames", "keep those of the reader schema"),
    _hazard("CONTAINS_CHANGED", "the required content of the array differs", _UNSEEN, "keep contains", "keep that of the reader schema"),
    _hazard("EXCLUSIVE_BOUND_CHANGED", "{name} is now exclusive", _UNSEEN, "keep the bound inclusive", "make the bound exclusive in the writer schema first"),
    _hazard("TYPE_ADDED", "the reader schema accepts only {reader}, the writer schema has constraints without a type", "Constraints without a type accept values of all other types, and the reader rejects those. The established check "
"treats both as the same type.", "remove the type", "add the type {reader} to the writer schema first"),
    _hazard("FORMAT_CHANGED", "the format changes from {writer} to {reader}", "By default, a format is only an annotation. A validator that checks formats may reject data.", "keep the format {writer}", "keep the format {reader}"),
    _hazard("DRAFT_CHANGED", "the draft changes from {writer} to {reader}", "The same keywords may have another meaning in another draft.", "keep the draft of {writer}", "keep the draft of {reader}"),
)  # fmt: skip

_TRUTHS: Final = (
    Rule(
        "DATUM_REFUSED",
        "",
        "break",
        "the reader rejects data that the writer may write: {name}",
        "Checked by validation: the value is valid under the writer schema and invalid under the reader schema.",
        "accept what the writer may write at {path}",
        "don't write such values at {path} before all readers accept them",
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
