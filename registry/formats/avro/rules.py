"""The tables of Avro's rules: compatibility, differences, and the sentences of Confluent's `verbose` answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from registry.formats.rule import DifferenceRule, Rule

_ROWS: Final = (
    Rule(
        "FIELD_WITHOUT_DEFAULT",
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        "break",
        "the reader's field \"{name}\" has no default and the writer doesn't write it",
        "A field that the data doesn't hold is filled from its default; without one the reader stops with an error.",
        'give "{name}" a default, which readers get for all data written without it, or an alias if the writer has it under '
        "another name",
        'keep "{name}" in the schema: the reader needs it',
    ),
    Rule(
        "TYPE_NARROWED",
        "TYPE_MISMATCH",
        "break",
        "the type is narrowed from {writer} to {reader}",
        "Avro widens int → long → float → double, and never back: a value may not fit.",
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
        "the writer may write null, which {reader} can't hold",
        "Any datum with a null in this place stops the reader.",
        'keep null: make the type a union of "null" and {reader}',
        "don't make the field nullable before all readers accept null",
    ),
    Rule(
        "UNION_BRANCH_MISSING",
        "MISSING_UNION_BRANCH",
        "break",
        "the writer may write {writer}, which is in no branch of {reader}",
        "A datum of that branch matches nothing that the reader knows.",
        "keep a branch in the union that reads {writer}",
        "don't write {writer} here before all readers have a branch for it",
    ),
    Rule(
        "ENUM_SYMBOL_MISSING",
        "MISSING_ENUM_SYMBOLS",
        "break",
        "the reader's enum lacks the symbols {name} and has no default",
        "A datum with one of these symbols stops the reader.",
        "keep the symbols, or give the enum a default symbol",
        "don't write the symbols {name} before all readers know them or their enum has a default",
    ),
    Rule(
        "FIXED_SIZE_CHANGED",
        "FIXED_SIZE_MISMATCH",
        "break",
        "the fixed has {writer} bytes for the writer and {reader} for the reader",
        "A fixed is written without its length, so both sides must have the same size.",
        "keep the size of {writer} bytes, or add a new field with a new fixed type",
        "keep the size of {reader} bytes, or add a new field with a new fixed type",
    ),
    Rule(
        "NAME_CHANGED",
        "NAME_MISMATCH",
        "break",
        "the writer's type {writer} has another name than the reader's {reader}",
        "Named types are matched by name: without an alias the reader takes the two for different types.",
        'keep the name, or add "{writer}" to the aliases of {reader}',
        "keep the name {reader}: only a reader can name an alias",
    ),
    Rule(
        "ALIAS_AMBIGUOUS",
        "AMBIGUOUS_ALIAS",
        "break",
        'the reader\'s field "{name}" matches several fields of the writer by its name and aliases: {writer}',
        "The reader can't tell which of them it should take; the reference implementation fails on the pair.",
        'remove aliases of "{name}" until one field of the writer matches',
        "write only one of the fields {writer}",
    ),
    Rule(
        "FIELD_ALIASED_TWICE",
        "",
        "warning",
        'the writer\'s field "{writer}" is read into several fields of the reader: {reader}',
        "The established check accepts this, and decoders fail on it or fill only one of the fields.",
        'leave the alias "{writer}" in one field alone',
        "write the fields of the reader separately",
    ),
    Rule(
        "FIELD_ALIAS_ACROSS_NAMESPACES",
        "",
        "warning",
        'the alias of the field "{name}" doesn\'t apply, because the record is {writer} for the writer and {reader} '
        "for the reader",
        "Decoders apply a field's alias only to a record of the same full name; the established check accepts the pair.",
        'add "{writer}" to the aliases of {reader}',
        "keep the namespace of {reader}",
    ),
    Rule(
        "UNION_BRANCH_AMBIGUOUS",
        "",
        "warning",
        "several branches of {reader} match the writer's {writer} by name, and decoders may take the wrong one",
        "The established check accepts the pair if any branch fits; fastavro takes the first one that matches by simple name, "
        "Java's decoder the one of the full name.",
        "give the branches different simple names and no alias of one another",
        "keep {writer} as the reader's branch of that name has it",
    ),
    Rule(
        "UNION_BRANCH_ORDER",
        "",
        "warning",
        "several branches of {reader} can read the writer's {writer}, and the first of them isn't the one that keeps it",
        "The specification takes the first branch that matches, Java's decoder one of the same type before others.",
        "put the branch of the same type before the others",
        "write a type that only one branch of {reader} can read",
    ),
    Rule(
        "NOT_DECODED",
        "",
        "break",
        "the decoder stops at the writer's {writer}, though no rule forbids reading it as {reader}",
        "The rules of the format accept the pair, and the decoder that was used here doesn't.",
        "read {writer} as the writer has it",
        "write {reader} as the readers have it",
    ),
    Rule(
        "ENUM_SYMBOL_DEFAULTED",
        "",
        "value loss",
        "the reader's enum lacks the symbols {name} and reads them as its default {reader}",
        "The pair is compatible, and the reader can't tell these symbols from a real {reader}.",
        "keep the symbols {name}",
        "don't write the symbols {name} before all readers know them",
    ),
    Rule(
        "WIDENING_LOSES_PRECISION",
        "",
        "value loss",
        "a large {writer} loses digits as {reader}",
        "Avro allows this widening, but a float holds 24 bits of a whole number and a double 53.",
        "read the field as {writer}",
        "write the field as {reader}",
    ),
    Rule(
        "BYTES_READ_AS_STRING",
        "",
        "warning",
        "the writer's bytes are read as a string",
        "Avro allows this, and bytes that aren't UTF-8 stop the reader or turn into replacement characters.",
        "read the field as bytes",
        "write UTF-8 alone",
    ),
    Rule(
        "STRING_READ_AS_UUID",
        "",
        "warning",
        "the writer's {writer} is read as {reader}, and not every text is a UUID",
        "Avro passes any text; a reader that converts it to a UUID, as generated Java classes do, stops at other texts.",
        "keep {writer}, or add a new field of type {reader}",
        "write UUIDs alone, and declare the field as {reader}",
    ),
    Rule(
        "BYTES_READ_AS_DECIMAL",
        "",
        "warning",
        "the writer's {writer} is read as {reader}, and not all bytes are the number that was meant",
        "Avro passes any bytes; a reader that converts them to a decimal, as generated Java classes do, stops at empty ones.",
        "keep {writer}, or add a new field of type {reader}",
        "write decimals alone, and declare the field as {reader}",
    ),
    Rule(
        "DEFAULT_FILLED_DIFFERENTLY",
        "",
        "warning",
        'decoders fill the field "{name}" with different values from its default',
        "Java's decoder casts a default to the first branch that takes its shape, and stops at some; fastavro gives the JSON as "
        "it stands: bytes as a text, and records without the parts that the default leaves out.",
        'give "{name}" a default that is complete and of the first branch of its type; for bytes, a union with null first',
        'keep "{name}" in the schema',
    ),
    Rule(
        "SCHEMA_REFUSED",
        "",
        "break",
        "fastavro refuses the {name}'s schema at {reader}",
        "Java ignores attributes that it can't use, such as a scale above the precision; fastavro refuses the whole schema.",
        "mend or remove the attribute that the error names",
        "mend or remove the attribute that the error names",
    ),
    Rule(
        "LOGICAL_TYPE_REINTERPRETED",
        "",
        "value loss",
        "the writer's {writer} is read as {reader}: the same bytes stand for another value",
        "Avro doesn't convert logical types; the number is taken as it stands.",
        "keep {writer}, or add a new field",
        "keep {reader}, or add a new field",
    ),
    Rule(
        "LOGICAL_TYPE_CHANGED",
        "",
        "warning",
        "the writer's {writer} is read as {reader}",
        "The value stays, but programs see it as another type.",
        "keep {writer}",
        "keep {reader}",
    ),
    Rule(
        "DECIMAL_PRECISION_NARROWED",
        "",
        "warning",
        "the writer's {writer} has more digits than the reader's {reader}",
        "Avro doesn't check it; decoders or the systems behind them may refuse a value with more digits.",
        "keep the precision of {writer}",
        "keep the precision of {reader}",
    ),
)

#: the cure of FIELD_WITHOUT_DEFAULT where the writer seems to have the field under another name
RENAMED_IN_READER: Final = (
    'add the alias "{old}" to "{name}", which looks like the same field: readers get the data of "{old}"; with a default '
    "instead they get the default in place of these data"
)

RULES: Final[Mapping[str, Rule]] = {rule.id: rule for rule in _ROWS}


_DIFFERENCE_ROWS: Final = (
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
