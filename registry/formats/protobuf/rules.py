"""The rules of Protobuf's compatibility, one row each: what it says, why it matters, and the concrete cure.

A sentence is a template over `name` (the field, message or oneof), `reader` and `writer` (what each side has there).
`in_reader` is the cure where the reader can still be edited, `in_writer` where the writer can. `no_proof` says why
data may survive what the established check refuses, where that can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from registry.formats.base import Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: `kind` is the reference implementation's name of the case, empty where it has none."""

    id: str
    kind: str
    severity: Severity
    sentence: str
    why: str
    in_reader: str
    in_writer: str
    no_proof: str = ""


_ROWS: Final = (
    Rule(
        "PACKAGE_CHANGED",
        "PACKAGE_CHANGED",
        "break",
        'the package is "{writer}" for the writer and "{reader}" for the reader',
        "The established check takes messages of another package for other messages.",
        'keep the package "{writer}"',
        'keep the package "{reader}"',
        "the package isn't part of the data: a reader finds the message by its place or its name in the package",
    ),
    Rule(
        "MESSAGE_REMOVED",
        "MESSAGE_REMOVED",
        "break",
        'the reader lacks the message "{name}"',
        "A record may hold any message of the writer's file; a reader without it has nothing to read the record with.",
        'keep the message "{name}", with `option deprecated = true;` if nobody should use it any more',
        'don\'t write "{name}" before all readers have it',
        "the message is nested: only fields that hold it carry its data, and what they become is told of them",
    ),
    Rule(
        "FIELD_KIND_CHANGED",
        "FIELD_KIND_CHANGED",
        "break",
        'the field "{name}" is {writer} for the writer and {reader} for the reader',
        "A value, a message and a map are written in different ways: the reader misreads or ignores the field.",
        "keep {writer}, or add a new field with a new number",
        "keep {reader}, or add a new field with a new number",
        "the bytes of both are alike, and the reader gets what was written",
    ),
    Rule(
        "FIELD_SCALAR_KIND_CHANGED",
        "FIELD_SCALAR_KIND_CHANGED",
        "break",
        'the field "{name}" changes from {writer} to {reader}, which are written in different ways',
        "Numbers of different encodings take one another for garbage, or for an unknown field.",
        "keep {writer}, or add a new field of type {reader} with a new number",
        "keep {reader}, or add a new field of type {writer} with a new number",
        "all values that the writer's type allows happen to be read alike",
    ),
    Rule(
        "FIELD_NAMED_TYPE_CHANGED",
        "FIELD_NAMED_TYPE_CHANGED",
        "break",
        'the field "{name}" holds {writer} for the writer and {reader} for the reader',
        "The established check takes messages of different names for different ones.",
        "keep the type {writer}, or add a new field with a new number",
        "keep the type {reader}, or add a new field with a new number",
        "the name of a type isn't part of the data, and the fields of both messages read each other",
    ),
    Rule(
        "REFERENCED_TYPE_CHANGED",
        "FIELD_NAMED_TYPE_CHANGED",
        "break",
        'the field "{name}" holds {reader}, whose definition in another file isn\'t compatible',
        "What an imported message breaks breaks every message that holds it.",
        "import the version of the file that the writer uses, or one that is compatible with it",
        "import the version of the file that the reader uses, or one that is compatible with it",
        "the change in the imported file leaves the data as they are",
    ),
    Rule(
        "FIELD_NUMERIC_LABEL_CHANGED",
        "FIELD_NUMERIC_LABEL_CHANGED",
        "break",
        'the numeric field "{name}" is {writer} for the writer and {reader} for the reader',
        "A list isn't a number: a single field keeps the last value of a list, and of a packed list none.",
        "keep {writer}, or add a new field with a new number",
        "keep {reader}, or add a new field with a new number",
        "readers take a single value and a packed list for each other, and no value is lost in this direction",
    ),
    Rule(
        "REQUIRED_FIELD_ADDED",
        "REQUIRED_FIELD_ADDED",
        "break",
        'the reader requires the field "{name}", which the writer doesn\'t have',
        "A message without a required field is refused as a whole.",
        'make "{name}" optional',
        'write "{name}": add it to the schema as the reader has it',
        "no message of the writer reaches the field",
    ),
    Rule(
        "REQUIRED_FIELD_REMOVED",
        "REQUIRED_FIELD_REMOVED",
        "break",
        'the reader lacks the field "{name}", which the writer requires',
        "Data that the new side writes lack the field, and everybody who still has it refuses them.",
        'keep "{name}"; make it optional first, and remove it when no schema requires it any more',
        'make "{name}" optional first, and add it to the readers before you write it',
        "a reader ignores what it doesn't know; it is the other direction that breaks",
    ),
    Rule(
        "ONEOF_FIELD_REMOVED",
        "ONEOF_FIELD_REMOVED",
        "break",
        'the oneof lacks the member "{name}" for the reader',
        "For a reader without the member the oneof looks as if nothing was set.",
        'keep the member "{name}", with `deprecated = true` if nobody should use it any more',
        'don\'t write "{name}" before all readers have it',
        "the value stays among the unknown fields of the message; the reader sees an unset oneof",
    ),
    Rule(
        "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
        "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
        "break",
        'several fields of the writer are members of the oneof "{name}" for the reader: {reader}',
        "The writer may set them together; a oneof keeps the last one alone.",
        "leave the fields outside of the oneof",
        'put the fields into a oneof "{name}" as the reader has it',
        "the writer can't set two of the fields together",
    ),
    Rule(
        "FIELD_MOVED_TO_EXISTING_ONEOF",
        "FIELD_MOVED_TO_EXISTING_ONEOF",
        "break",
        'members of the oneof "{name}" for the reader exclude each other anew: {reader}',
        "The writer may set two of them together; a oneof keeps the last one alone.",
        "leave the fields where they were",
        'put the fields into one oneof "{name}" as the reader has it',
        "the writer can't set two of the fields together",
    ),
    Rule(
        "VALUE_NARROWED",
        "",
        "value loss",
        'values of {writer} in "{name}" change when they are read as {reader}',
        "The established check allows the change; a number that doesn't fit loses bits or its sign.",
        "keep {writer}, or add a new field of type {reader} with a new number",
        "keep {reader}, or add a new field of type {writer} with a new number",
    ),
    Rule(
        "BYTES_READ_AS_STRING",
        "",
        "value loss",
        'the bytes in "{name}" are read as a string',
        "The established check allows it; bytes that aren't UTF-8 stop a reader that checks its strings, or are replaced.",
        "keep bytes",
        "write a string, or UTF-8 alone",
    ),
    Rule(
        "REPEATED_READ_AS_SINGLE",
        "",
        "value loss",
        'of the values in "{name}" the reader keeps one at most',
        "Of several values a single field keeps the last one, of a packed list none; messages are merged into one.",
        'keep "{name}" repeated',
        'write at most one value in "{name}" before all readers read several',
    ),
    Rule(
        "WIRE_TYPE_CHANGED",
        "",
        "value loss",
        'the field "{name}" changes from {writer} to {reader}, which are written in different ways',
        "The established check doesn't look at groups; the reader doesn't recognize the value.",
        "keep {writer}",
        "keep {reader}",
    ),
    Rule(
        "REQUIRED_INTRODUCED",
        "",
        "value loss",
        'the reader requires "{name}", which the writer may leave out',
        "The established check allows it; a message without a required field is refused as a whole.",
        'leave "{name}" optional',
        'require "{name}" too',
    ),
    Rule(
        "CLOSED_ENUM_VALUE_MISSING",
        "",
        "value loss",
        'the reader\'s enum lacks the values {writer} of "{name}" and is closed',
        "A closed enum treats an unknown number as if the field wasn't set.",
        "keep the values {writer}",
        "don't write {writer} before all readers know them",
    ),
    Rule(
        "ENUM_VALUE_MISSING",
        "",
        "warning",
        'the reader\'s enum lacks the values {writer} of "{name}"',
        "The number is kept, and the reader has no name for it; in JSON it is a number.",
        "keep the values {writer}",
        "don't write {writer} before all readers know them",
    ),
    Rule(
        "ENUM_VALUE_RENUMBERED",
        "",
        "value loss",
        'values in "{name}" have other numbers for the reader: {writer} for the writer, {reader} for the reader',
        "Numbers are written, not names: the reader takes one value for another.",
        "give the values the numbers of the writer",
        "give the values the numbers of the reader",
    ),
    Rule(
        "ENUM_VALUE_RENAMED",
        "",
        "warning",
        'values in "{name}" have other names for the reader: {writer} for the writer, {reader} for the reader',
        "Binary data stay; JSON and code see another name.",
        "keep the names of the writer, the new ones as aliases",
        "keep the names of the reader, the new ones as aliases",
    ),
    Rule(
        "DEFAULT_CHANGED",
        "",
        "warning",
        'where "{name}" isn\'t set, the writer means {writer} and the reader takes {reader}',
        "Defaults aren't part of the data: each side takes its own.",
        "keep the default {writer}",
        "keep the default {reader}",
    ),
    Rule(
        "ZERO_READ_AS_DEFAULT",
        "",
        "value loss",
        'the writer\'s {writer} in "{name}" is read as {reader}',
        "A field without presence isn't written where it is zero or empty; the reader then takes its own default.",
        "keep the default {writer}, or the field without presence",
        'declare "{name}" with presence (`optional`)',
    ),
    Rule(
        "FIELD_RENAMED",
        "",
        "warning",
        'the field is "{writer}" for the writer and "{reader}" for the reader',
        "Binary data go by the number; JSON, masks and code go by the name.",
        'keep the name "{writer}", or its JSON name with `json_name`',
        'keep the name "{reader}", or its JSON name with `json_name`',
    ),
    Rule(
        "NUMBER_REUSED",
        "",
        "warning",
        "the number {name} is {writer} for the writer and {reader} for the reader",
        "If it is another field, its values are taken for something that they aren't.",
        "reserve the number and give the new field another one",
        "give the new field a number that the reader doesn't have",
    ),
    Rule(
        "FIELD_RENUMBERED",
        "",
        "value loss",
        'the field "{name}" has the number {writer} for the writer and {reader} for the reader',
        "Data go by the number: the reader doesn't see the value, or sees it in another field.",
        "keep the number {writer}",
        "keep the number {reader}",
    ),
    Rule(
        "JSON_NAME_CHANGED",
        "",
        "warning",
        'the field "{name}" is "{writer}" in the writer\'s JSON and "{reader}" in the reader\'s',
        "Binary data stay; JSON goes by this name.",
        'keep `json_name = "{writer}"`',
        'keep `json_name = "{reader}"`',
    ),
)

RULES: Final[Mapping[str, Rule]] = {rule.id: rule for rule in _ROWS}
