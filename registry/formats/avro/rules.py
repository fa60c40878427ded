"""Avro's tables of rules for compatibility and differences, and the sentences of Confluent's `verbose` answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from registry.formats.base import DifferenceRule, Rule

_ROWS: Final = (
    Rule(
        "FIELD_WITHOUT_DEFAULT",
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        "break",
        'the field "{name}" in the reader schema has no default and is missing in the writer schema',
        "A field that is missing in the data gets its default. Without a default, decoding fails.",
        'give "{name}" a default for data written without it, or an alias if the writer schema has it under '
        "another name",
        'keep "{name}" in the schema because the reader needs it',
    ),
    Rule(
        "TYPE_NARROWED",
        "TYPE_MISMATCH",
        "break",
        "the type is narrowed from {writer} to {reader}",
        "Avro widens int → long → float → double, but never the other way, because a value may not fit.",
        "keep {writer}, or add a new field of type {reader}",
        "keep {reader}, or add a new field of type {writer}",
    ),
    Rule(
        "TYPE_CHANGED",
        "TYPE_MISMATCH",
        "break",
        "the type {writer} can't be read as {reader}",
        "Avro has no conversion between the two.",
        "keep {writer} (as a union of both, if you need {reader} too), or add a new field of type {reader}",
        "keep {reader}, or add a new field of type {writer}",
    ),
    Rule(
        "NULL_NOT_ACCEPTED",
        "TYPE_MISMATCH",
        "break",
        "the writer may write null, which {reader} can't represent",
        "Decoding fails for any record with a null here.",
        'keep null: make the type a union of "null" and {reader}',
        "don't make the field nullable before all readers accept null",
    ),
    Rule(
        "UNION_BRANCH_MISSING",
        "MISSING_UNION_BRANCH",
        "break",
        "the writer may write {writer}, which is in no branch of {reader}",
        "Decoding fails for data of that branch because the reader schema has no matching branch.",
        "keep a branch in the union that reads {writer}",
        "don't write {writer} here before all readers have a branch for it",
    ),
    Rule(
        "ENUM_SYMBOL_MISSING",
        "MISSING_ENUM_SYMBOLS",
        "break",
        "the reader's enum lacks the symbols {name} and has no default",
        "Decoding fails for data with one of these symbols.",
        "keep the symbols, or give the enum a default symbol",
        "don't write the symbols {name} before all readers know them or have a default in their enum",
    ),
    Rule(
        "FIXED_SIZE_CHANGED",
        "FIXED_SIZE_MISMATCH",
        "break",
        "the fixed has {writer} bytes in the writer schema and {reader} bytes in the reader schema",
        "A fixed is written without its length, so both sides must have the same size.",
        "keep the size of {writer} bytes, or add a new field with a new fixed type",
        "keep the size of {reader} bytes, or add a new field with a new fixed type",
    ),
    Rule(
        "NAME_CHANGED",
        "NAME_MISMATCH",
        "break",
        "the type is named {writer} in the writer schema and {reader} in the reader schema",
        "Named types are matched by name: without an alias, they are different types for the reader.",
        'keep the name, or add "{writer}" to the aliases of {reader}',
        "keep the name {reader}: only the reader schema can declare an alias",
    ),
    Rule(
        "ALIAS_AMBIGUOUS",
        "AMBIGUOUS_ALIAS",
        "break",
        'the field "{name}" in the reader schema matches several fields of the writer schema by its name and '
        "aliases: {writer}",
        "It is ambiguous which field to read. The reference implementation fails on this pair.",
        'remove aliases of "{name}" until only one field of the writer schema matches',
        "write only one of the fields {writer}",
    ),
    Rule(
        "FIELD_ALIASED_TWICE",
        "",
        "warning",
        'the field "{writer}" of the writer schema is read into several fields of the reader schema: {reader}',
        "The established check accepts this, but decoders fail on it or fill only one of the fields.",
        'keep the alias "{writer}" in one field only',
        "write the fields of the reader schema separately",
    ),
    Rule(
        "FIELD_ALIAS_ACROSS_NAMESPACES",
        "",
        "warning",
        'the alias of the field "{name}" doesn\'t apply because the record is {writer} in the writer schema and '
        "{reader} in the reader schema",
        "Decoders apply a field's alias only if the record has the same full name. The established check accepts "
        "the pair.",
        'add "{writer}" to the aliases of {reader}',
        "keep the namespace of {reader}",
    ),
    Rule(
        "UNION_BRANCH_AMBIGUOUS",
        "",
        "warning",
        "several branches of {reader} match {writer} of the writer schema by name, and decoders may use the wrong one",
        "The established check accepts the pair if any branch fits. fastavro uses the first branch that matches "
        "by simple name, Java's decoder uses the one that matches by full name.",
        "give the branches different simple names, and no alias that matches another branch",
        "keep {writer} as in the branch of that name in the reader schema",
    ),
    Rule(
        "UNION_BRANCH_ORDER",
        "",
        "warning",
        "several branches of {reader} can read {writer} of the writer schema, and the first one doesn't preserve it",
        "According to the specification, the first matching branch is used. Java's decoder prefers a branch of "
        "the same type.",
        "put the branch of the same type before the others",
        "write a type that only one branch of {reader} can read",
    ),
    Rule(
        "NOT_DECODED",
        "",
        "break",
        "decoding {writer} of the writer schema as {reader} fails, although the rules allow it",
        "The rules of the format accept the pair, but the decoder used here doesn't.",
        "read {writer} as in the writer schema",
        "write {reader} as in the reader schema",
    ),
    Rule(
        "ENUM_SYMBOL_DEFAULTED",
        "",
        "value loss",
        "the enum in the reader schema lacks the symbols {name} and reads them as its default {reader}",
        "The pair is compatible, but the reader can't distinguish these symbols from a real {reader}.",
        "keep the symbols {name}",
        "don't write the symbols {name} before all readers know them",
    ),
    Rule(
        "WIDENING_LOSES_PRECISION",
        "",
        "value loss",
        "a large {writer} loses digits when it is read as {reader}",
        "Avro allows this widening, but a float represents only 24 bits of an integer exactly, and a double 53 bits.",
        "read the field as {writer}",
        "write the field as {reader}",
    ),
    Rule(
        "BYTES_READ_AS_STRING",
        "",
        "warning",
        "bytes in the writer schema are read as a string",
        "Avro allows this. For bytes that aren't UTF-8, decoding fails or returns replacement characters.",
        "read the field as bytes",
        "write only UTF-8",
    ),
    Rule(
        "STRING_READ_AS_UUID",
        "",
        "warning",
        "{writer} in the writer schema is read as {reader}, but not every string is a UUID",
        "Avro accepts any string. Readers that convert it to a UUID, such as generated Java classes, fail on "
        "other strings.",
        "keep {writer}, or add a new field of type {reader}",
        "write only UUIDs, and declare the field as {reader}",
    ),
    Rule(
        "BYTES_READ_AS_DECIMAL",
        "",
        "warning",
        "{writer} in the writer schema is read as {reader}, but not all bytes represent the intended number",
        "Avro accepts any bytes. Readers that convert them to a decimal, such as generated Java classes, fail on "
        "empty bytes.",
        "keep {writer}, or add a new field of type {reader}",
        "write only decimals, and declare the field as {reader}",
    ),
    Rule(
        "DEFAULT_FILLED_DIFFERENTLY",
        "",
        "warning",
        'decoders read the default of the field "{name}" as different values',
        "Java's decoder converts a default to the first branch that matches its shape, and fails on some. "
        "fastavro returns the JSON unchanged: bytes as a string, and records without the fields that the default "
        "omits.",
        'give "{name}" a complete default for the first branch of its type; for bytes, use a union with null first',
        'keep "{name}" in the schema',
    ),
    Rule(
        "SCHEMA_REFUSED",
        "",
        "break",
        "fastavro rejects the {name} schema at {reader}",
        "Java ignores invalid attributes, such as a scale above the precision. fastavro rejects the whole schema.",
        "correct or remove the attribute named in the error",
        "correct or remove the attribute named in the error",
    ),
    Rule(
        "LOGICAL_TYPE_REINTERPRETED",
        "",
        "value loss",
        "{writer} in the writer schema is read as {reader}: the same bytes represent another value",
        "Avro doesn't convert logical types. The number is read unchanged.",
        "keep {writer}, or add a new field",
        "keep {reader}, or add a new field",
    ),
    Rule(
        "LOGICAL_TYPE_CHANGED",
        "",
        "warning",
        "{writer} in the writer schema is read as {reader}",
        "The value is unchanged, but programs see it as another type.",
        "keep {writer}",
        "keep {reader}",
    ),
    Rule(
        "DECIMAL_PRECISION_NARROWED",
        "",
        "warning",
        "{writer} in the writer schema has more digits than {reader} in the reader schema",
        "Avro doesn't check this. Decoders or downstream systems may reject a value with more digits.",
        "keep the precision of {writer}",
        "keep the precision of {reader}",
    ),
)

#: the cure for FIELD_WITHOUT_DEFAULT if the writer seems to have the field under another name
RENAMED_IN_READER: Final = (
    'add the alias "{old}" to "{name}", which looks like the same field: readers then get the data of '
    '"{old}"; with a default instead, they get the default in place of that data'
)

RULES: Final[Mapping[str, Rule]] = {rule.id: rule for rule in _ROWS}


_DIFFERENCE_ROWS: Final = (
    DifferenceRule("FIELD_ADDED", "added", 'the field "{name}" of type {after} is added'),
    DifferenceRule("FIELD_REMOVED", "removed", 'the field "{name}" of type {before} is removed'),
    DifferenceRule("FIELD_RENAMED", "renamed", 'the field "{before}" is renamed to "{after}", with an alias'),
    DifferenceRule("FIELD_RENAME_SUSPECTED", "renamed", 'the field "{before}" may have been renamed to "{after}"'),
    DifferenceRule("FIELDS_REORDERED", "moved", "the order of the fields changes"),
    DifferenceRule("TYPE_WIDENED", "changed", "the type is widened from {before} to {after}"),
    DifferenceRule("TYPE_NARROWED", "changed", "the type is narrowed from {before} to {after}"),
    DifferenceRule(
        "TYPE_EXCHANGED",
        "changed",
        "the type changes from {before} to {after}, which are compatible in both directions",
    ),
    DifferenceRule("TYPE_CHANGED", "changed", "the type changes from {before} to {after}"),
    DifferenceRule("NULL_ADDED", "added", "null is now allowed"),
    DifferenceRule("NULL_REMOVED", "removed", "null is no longer allowed"),
    DifferenceRule("UNION_INTRODUCED", "changed", "the type {before} becomes the union {after}"),
    DifferenceRule("UNION_DISSOLVED", "changed", "the union {before} becomes the type {after}"),
    DifferenceRule("UNION_BRANCH_ADDED", "added", "the union gets the branch {after}"),
    DifferenceRule("UNION_BRANCH_REMOVED", "removed", "the union loses the branch {before}"),
    DifferenceRule("UNION_REORDERED", "moved", "the order of the branches of the union changes"),
    DifferenceRule("TYPE_RENAMED", "renamed", "the type {before} is renamed to {after}"),
    DifferenceRule("NAMESPACE_CHANGED", "changed", 'the namespace changes from "{before}" to "{after}"'),
    DifferenceRule("ERROR_CHANGED", "changed", "the {before} becomes an {after}"),
    DifferenceRule("ENUM_SYMBOL_ADDED", "added", 'the enum gets the symbol "{after}"'),
    DifferenceRule("ENUM_SYMBOL_REMOVED", "removed", 'the enum loses the symbol "{before}"'),
    DifferenceRule("ENUM_SYMBOLS_REORDERED", "moved", "the order of the symbols of the enum changes"),
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
    DifferenceRule("ALIASES_REORDERED", "moved", "the order of the aliases changes"),
    DifferenceRule("PROPERTY_ADDED", "added", 'the property "{name}" is added'),
    DifferenceRule("PROPERTY_REMOVED", "removed", 'the property "{name}" is removed'),
    DifferenceRule("PROPERTY_CHANGED", "changed", 'the property "{name}" changes'),
    DifferenceRule("PROPERTIES_REORDERED", "moved", "the order of the properties changes"),
)

DIFFERENCE_RULES: Final[Mapping[str, DifferenceRule]] = {rule.id: rule for rule in _DIFFERENCE_ROWS}


DESCRIPTIONS: Final[Mapping[str, str]] = {
    "FIXED_SIZE_MISMATCH": "The size of FIXED type field at path '{location}' in the {reader} schema does not match "
    "with the {writer} schema",
    "TYPE_MISMATCH": "The type (path '{location}') of a field in the {reader} schema does not match with the "
    "{writer} schema",
    "NAME_MISMATCH": "The name of the schema has changed (path '{location}')",
    "MISSING_ENUM_SYMBOLS": "The {reader} schema is missing enum symbols '{detail}' at path '{location}' in the "
    "{writer} schema",
    "MISSING_UNION_BRANCH": "The {reader} schema is missing a type inside a union field at path '{location}' in the "
    "{writer} schema",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "The field '{detail}' at path '{location}' in the {reader} schema has no "
    "default value and is missing in the {writer} schema",
}
