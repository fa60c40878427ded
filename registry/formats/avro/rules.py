"""The rules of Avro's compatibility, one row each: what it says, why it matters, and the concrete cure.

A sentence is a template over the values of a finding: `path`, `reader` and `writer` (labels of the two sides),
`name`. `in_reader` is the cure where the reader can still be edited, `in_writer` where the writer can.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from registry.formats.rule import Rule

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
