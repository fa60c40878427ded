"""The differences between two Protobuf schemas that are told to people, one row each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from registry.formats.rule import DifferenceRule

_ROWS: Final = (
    DifferenceRule("SYNTAX_CHANGED", "changed", "the syntax changes from {before} to {after}"),
    DifferenceRule("PACKAGE_CHANGED", "changed", 'the package changes from "{before}" to "{after}"'),
    DifferenceRule("IMPORT_ADDED", "added", 'the import of "{name}" is added'),
    DifferenceRule("IMPORT_REMOVED", "removed", 'the import of "{name}" is removed'),
    DifferenceRule("IMPORT_KIND_CHANGED", "changed", 'the import of "{name}" changes from {before} to {after}'),
    DifferenceRule("IMPORT_CONTENT_CHANGED", "changed", 'what is imported from "{name}" changes'),
    DifferenceRule("MESSAGE_ADDED", "added", 'the message "{name}" is added'),
    DifferenceRule("MESSAGE_REMOVED", "removed", 'the message "{name}" is removed'),
    DifferenceRule(
        "MESSAGES_REORDERED", "moved", "the messages stand in another order, which changes their numbers in records"
    ),
    DifferenceRule("FIELD_ADDED", "added", 'the field "{name}" is added: {after}'),
    DifferenceRule("FIELD_REMOVED", "removed", 'the field "{name}" is removed: {before}'),
    DifferenceRule(
        "NUMBER_NOT_RESERVED", "changed", 'the number {before} of the removed field "{name}" isn\'t reserved'
    ),
    DifferenceRule("NAME_NOT_RESERVED", "changed", 'the name of the removed field "{name}" isn\'t reserved'),
    DifferenceRule("FIELD_RENAMED", "renamed", 'the field "{before}" is renamed to "{after}"'),
    DifferenceRule("FIELD_RENAME_SUSPECTED", "renamed", 'the field "{before}" may have been renamed to "{after}"'),
    DifferenceRule("FIELD_RENUMBERED", "changed", 'the number of "{name}" changes from {before} to {after}'),
    DifferenceRule("FIELDS_REORDERED", "moved", "the fields stand in another order"),
    DifferenceRule("TYPE_WIDENED", "changed", "the type is widened from {before} to {after}"),
    DifferenceRule("TYPE_NARROWED", "changed", "the type is narrowed from {before} to {after}"),
    DifferenceRule("TYPE_CHANGED", "changed", "the type changes from {before} to {after}"),
    DifferenceRule("LABEL_CHANGED", "changed", "the label changes from {before} to {after}"),
    DifferenceRule("MOVED_INTO_ONEOF", "moved", 'the field moves into the oneof "{after}"'),
    DifferenceRule("MOVED_OUT_OF_ONEOF", "moved", 'the field moves out of the oneof "{before}"'),
    DifferenceRule("MOVED_BETWEEN_ONEOFS", "moved", 'the field moves from the oneof "{before}" to "{after}"'),
    DifferenceRule("ONEOF_ADDED", "added", 'the oneof "{name}" is added'),
    DifferenceRule("ONEOF_REMOVED", "removed", 'the oneof "{name}" is removed'),
    DifferenceRule("ONEOF_RENAMED", "renamed", 'the oneof "{before}" is renamed to "{after}"'),
    DifferenceRule("DEFAULT_ADDED", "added", "the default {after} is added"),
    DifferenceRule("DEFAULT_REMOVED", "removed", "the default {before} is removed"),
    DifferenceRule("DEFAULT_CHANGED", "changed", "the default changes from {before} to {after}"),
    DifferenceRule("JSON_NAME_CHANGED", "changed", 'the JSON name changes from "{before}" to "{after}"'),
    DifferenceRule("DEPRECATED", "changed", '"{name}" is now deprecated'),
    DifferenceRule("NO_LONGER_DEPRECATED", "changed", '"{name}" is no longer deprecated'),
    DifferenceRule("OPTION_ADDED", "added", "the option {name} = {after} is added"),
    DifferenceRule("OPTION_REMOVED", "removed", "the option {name} = {before} is removed"),
    DifferenceRule("OPTION_CHANGED", "changed", "the option {name} changes from {before} to {after}"),
    DifferenceRule("DOC_ADDED", "added", "a comment is added"),
    DifferenceRule("DOC_REMOVED", "removed", "the comment is removed"),
    DifferenceRule("DOC_CHANGED", "changed", "the comment changes"),
    DifferenceRule("RESERVED_ADDED", "added", "{after} is now reserved"),
    DifferenceRule("RESERVED_REMOVED", "removed", "{before} is no longer reserved"),
    DifferenceRule("EXTENSION_RANGE_ADDED", "added", "the numbers {after} are now for extensions"),
    DifferenceRule("EXTENSION_RANGE_REMOVED", "removed", "the numbers {before} are no longer for extensions"),
    DifferenceRule("EXTENSION_ADDED", "added", 'the extension "{name}" is added: {after}'),
    DifferenceRule("EXTENSION_REMOVED", "removed", 'the extension "{name}" is removed: {before}'),
    DifferenceRule("ENUM_ADDED", "added", 'the enum "{name}" is added'),
    DifferenceRule("ENUM_REMOVED", "removed", 'the enum "{name}" is removed'),
    DifferenceRule("ENUM_VALUE_ADDED", "added", 'the enum gets the value "{name}" = {after}'),
    DifferenceRule("ENUM_VALUE_REMOVED", "removed", 'the enum loses the value "{name}" = {before}'),
    DifferenceRule("ENUM_VALUE_RENAMED", "renamed", 'the value "{before}" is renamed to "{after}"'),
    DifferenceRule("ENUM_VALUE_RENUMBERED", "changed", 'the number of "{name}" changes from {before} to {after}'),
    DifferenceRule("ENUM_CLOSED", "changed", "the enum is now closed: it no longer takes numbers without a name"),
    DifferenceRule("ENUM_OPENED", "changed", "the enum is now open: it takes numbers without a name"),
    DifferenceRule("SERVICE_ADDED", "added", 'the service "{name}" is added'),
    DifferenceRule("SERVICE_REMOVED", "removed", 'the service "{name}" is removed'),
    DifferenceRule("METHOD_ADDED", "added", 'the method "{name}" is added: {after}'),
    DifferenceRule("METHOD_REMOVED", "removed", 'the method "{name}" is removed: {before}'),
    DifferenceRule("METHOD_CHANGED", "changed", "the method changes from {before} to {after}"),
)

DIFFERENCE_RULES: Final[Mapping[str, DifferenceRule]] = {rule.id: rule for rule in _ROWS}
