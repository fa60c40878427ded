"""The sentences that Confluent's registry writes in `verbose` answers; clients and their tests look for them.

{reader} and {writer} are "new" or "old"; {location} is the place as that registry writes it (`#/properties/foo`).
"""

from collections.abc import Mapping
from typing import Final

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
