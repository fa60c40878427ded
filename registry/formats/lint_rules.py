"""The rules of advice, one row each: what is said, why it matters, and the cure. None of them decides anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Weight = Literal["warning", "info"]

_ALL: Final = ("AVRO", "PROTOBUF", "JSON")


@dataclass(frozen=True, slots=True)
class LintRule:
    """A row of the table: what is said (a template over the values of a place), why, the cure, in which formats."""

    id: str
    weight: Weight
    sentence: str
    why: str
    cure: str
    formats: tuple[str, ...] = _ALL


_ROWS: Final = (
    LintRule(
        "NO_NAMESPACE",
        "warning",
        'the type "{name}" has no namespace',
        "Its full name is its simple name: it clashes with any other of that name, and generated classes have no"
        " package.",
        'add a "namespace", such as com.example.orders',
        ("AVRO",),
    ),
    LintRule(
        "NO_PACKAGE",
        "warning",
        "the file has no package",
        "Its messages clash with those of the same name in any other file that is imported beside it.",
        "add `package example.orders;` before the schema is used: it is part of each message's name",
        ("PROTOBUF",),
    ),
    LintRule(
        "NO_SCHEMA_KEYWORD",
        "warning",
        "the schema doesn't say its draft",
        "Validators then take the draft that they prefer, and keywords mean different things from draft to draft.",
        'add "$schema", such as "https://json-schema.org/draft/2020-12/schema"',
        ("JSON",),
    ),
    LintRule(
        "NO_TITLE",
        "info",
        "the schema has no title",
        "People and generated classes have no name for what it describes.",
        'add a "title" of one word',
        ("JSON",),
    ),
    LintRule(
        "NO_TYPE",
        "warning",
        '"{name}" has no type: any value is taken',
        "A property without a type, an enum or a reference checks nothing, and giving it one later breaks readers.",
        'give it a "type"',
        ("JSON",),
    ),
    LintRule(
        "OPENNESS_UNSAID",
        "info",
        "the object doesn't say whether it takes other properties",
        "Open objects take anything under a new name, so adding a property with a type may break; closed ones refuse it.",
        'say "additionalProperties": false, or true where others may add to it',
        ("JSON",),
    ),
    LintRule(
        "OPTIONAL_WITHOUT_DEFAULT",
        "warning",
        'the field "{name}" may be null and has no default',
        "It looks optional and isn't: a reader that has it stops at data of a writer that doesn't.",
        'put "null" first in the union and add "default": null',
        ("AVRO",),
    ),
    LintRule(
        "FIELD_HAS_NO_DEFAULT",
        "info",
        'the field "{name}" has no default',
        "A field without a default can never be dropped while somebody reads with it.",
        "give it a default, if a reader could go on without the value",
        ("AVRO",),
    ),
    LintRule(
        "ENUM_WITHOUT_DEFAULT",
        "info",
        'the enum "{name}" has no default symbol',
        "A symbol that is added later stops every reader that doesn't know it yet.",
        'add a "default" to the enum, such as a symbol UNKNOWN',
        ("AVRO",),
    ),
    LintRule(
        "TIME_WITHOUT_LOGICAL_TYPE",
        "info",
        'the field "{name}" looks like a time and is a bare number',
        "Whether it counts seconds, millis or micros is written nowhere, so programs guess.",
        "use a logical type, such as timestamp-millis",
        ("AVRO",),
    ),
    LintRule(
        "MONEY_AS_FLOAT",
        "warning",
        'the field "{name}" looks like money and is a binary floating-point number',
        "0.10 has no exact value in it: sums drift by cents.",
        "use a decimal, or whole cents",
        ("AVRO", "PROTOBUF"),
    ),
    LintRule(
        "ZERO_NOT_UNSPECIFIED",
        "warning",
        'the value 0 of the enum is "{name}"',
        "A field that was never set, and in readers a value that isn't known, reads as 0: it should mean nothing.",
        "let the value 0 be {prefix}_UNSPECIFIED",
        ("PROTOBUF",),
    ),
    LintRule(
        "NUMBERS_NOT_RESERVED",
        "info",
        "the numbers {numbers} are neither used nor reserved",
        "If a field had one of them, a new field of that number reads its old data as something else.",
        "add `reserved {numbers};` if they were ever used",
        ("PROTOBUF",),
    ),
    LintRule(
        "REQUIRED_FIELD",
        "warning",
        'the field "{name}" is required',
        "A required field can never be removed, and a reader refuses a whole message without it.",
        "make it optional, and check it in the program",
        ("PROTOBUF",),
    ),
    LintRule(
        "TYPE_NAME_STYLE",
        "info",
        'the name "{name}" isn\'t in PascalCase',
        "Generated classes take the name as it is.",
        "call it {better}, before data of it exist: the name is part of the schema",
        ("AVRO", "PROTOBUF"),
    ),
    LintRule(
        "FIELD_NAME_STYLE",
        "info",
        'the name "{name}" isn\'t in lower_snake_case',
        "Generators make accessors of the name's parts, and JSON names from its underscores.",
        "call it {better}",
        ("PROTOBUF",),
    ),
    LintRule(
        "NAMES_MIXED",
        "warning",
        'the name "{name}" is in {style}, most others are in {usual}',
        "Who writes a query or a mapping has to look each name up.",
        "call it {better}",
        ("AVRO", "JSON"),
    ),
    LintRule(
        "FIELD_WITHOUT_DOC",
        "info",
        'the field "{name}" isn\'t described',
        "What a name means is known to its author, and to others only if it is written.",
        "add a sentence: `doc` in Avro, a comment in Protobuf, `description` in JSON Schema",
    ),
    LintRule(
        "PERSONAL_WITHOUT_TAG",
        "warning",
        'the name "{name}" looks like personal data, and the field has no tag',
        "Fields that are tagged as personal are masked in samples and found by searches; untagged ones are shown.",
        "tag it, say PII, or with another tag that says it is none",
    ),
)
LINT_RULES: Final[Mapping[str, LintRule]] = {rule.id: rule for rule in _ROWS}
#: what a tag of the whole subject answers
TAG_RULES: Final = frozenset({"PERSONAL_WITHOUT_TAG"})
