"""The differences between two Avro schemas that are told to people, one row each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from registry.formats.rule import DifferenceRule

_ROWS: Final = (
    DifferenceRule("FIELD_ADDED", "added", 'the field "{name}" of type {after} is added'),
    DifferenceRule("FIELD_REMOVED", "removed", 'the field "{name}" of type {before} is removed'),
    DifferenceRule("FIELD_RENAMED", "renamed", 'the field "{before}" is renamed to "{after}", with an alias'),
    DifferenceRule("FIELD_RENAME_SUSPECTED", "renamed", 'the field "{before}" may have been renamed to "{after}"'),
    DifferenceRule("FIELDS_REORDERED", "moved", "the fields stand in another order"),
    DifferenceRule("TYPE_WIDENED", "changed", "the type is widened from {before} to {after}"),
    DifferenceRule("TYPE_NARROWED", "changed", "the type is narrowed from {before} to {after}"),
    DifferenceRule("TYPE_EXCHANGED", "changed", "the type changes from {before} to {after}, which read each other"),
    DifferenceRule("TYPE_CHANGED", "changed", "the type changes from {before} to {after}"),
    DifferenceRule("NULL_ADDED", "added", "null is now allowed"),
    DifferenceRule("NULL_REMOVED", "removed", "null is no longer allowed"),
    DifferenceRule("UNION_INTRODUCED", "changed", "the type {before} becomes the union {after}"),
    DifferenceRule("UNION_DISSOLVED", "changed", "the union {before} becomes the type {after}"),
    DifferenceRule("UNION_BRANCH_ADDED", "added", "the union gets the branch {after}"),
    DifferenceRule("UNION_BRANCH_REMOVED", "removed", "the union loses the branch {before}"),
    DifferenceRule("UNION_REORDERED", "moved", "the branches of the union stand in another order"),
    DifferenceRule("TYPE_RENAMED", "renamed", "the type {before} is renamed to {after}"),
    DifferenceRule("NAMESPACE_CHANGED", "changed", 'the namespace changes from "{before}" to "{after}"'),
    DifferenceRule("ERROR_CHANGED", "changed", "the {before} becomes an {after}"),
    DifferenceRule("ENUM_SYMBOL_ADDED", "added", 'the enum gets the symbol "{after}"'),
    DifferenceRule("ENUM_SYMBOL_REMOVED", "removed", 'the enum loses the symbol "{before}"'),
    DifferenceRule("ENUM_SYMBOLS_REORDERED", "moved", "the symbols of the enum stand in another order"),
    DifferenceRule("ENUM_DEFAULT_ADDED", "added", 'the enum gets the default symbol "{after}"'),
    DifferenceRule("ENUM_DEFAULT_REMOVED", "removed", 'the enum loses its default symbol "{before}"'),
    DifferenceRule(
        "ENUM_DEFAULT_CHANGED", "changed", 'the enum\'s default symbol changes from "{before}" to "{after}"'
    ),
    DifferenceRule("FIXED_SIZE_CHANGED", "changed", "the size of the fixed changes from {before} to {after} bytes"),
    DifferenceRule("DEFAULT_ADDED", "added", "the default {after} is added"),
    DifferenceRule("DEFAULT_REMOVED", "removed", "the default {before} is removed"),
    DifferenceRule("DEFAULT_CHANGED", "changed", "the default changes from {before} to {after}"),
    DifferenceRule("ORDER_CHANGED", "changed", "the sort order changes from {before} to {after}"),
    DifferenceRule("LOGICAL_TYPE_ADDED", "added", "the logical type {after} is added"),
    DifferenceRule("LOGICAL_TYPE_REMOVED", "removed", "the logical type {before} is removed"),
    DifferenceRule("LOGICAL_TYPE_CHANGED", "changed", "the logical type changes from {before} to {after}"),
    DifferenceRule("DOC_ADDED", "added", "documentation is added"),
    DifferenceRule("DOC_REMOVED", "removed", "the documentation is removed"),
    DifferenceRule("DOC_CHANGED", "changed", "the documentation changes"),
    DifferenceRule("ALIAS_ADDED", "added", 'the alias "{after}" is added'),
    DifferenceRule("ALIAS_REMOVED", "removed", 'the alias "{before}" is removed'),
    DifferenceRule("ALIASES_REORDERED", "moved", "the aliases stand in another order"),
    DifferenceRule("PROPERTY_ADDED", "added", 'the property "{name}" is added'),
    DifferenceRule("PROPERTY_REMOVED", "removed", 'the property "{name}" is removed'),
    DifferenceRule("PROPERTY_CHANGED", "changed", 'the property "{name}" changes'),
    DifferenceRule("PROPERTIES_REORDERED", "moved", "the properties stand in another order"),
)

DIFFERENCE_RULES: Final[Mapping[str, DifferenceRule]] = {rule.id: rule for rule in _ROWS}
