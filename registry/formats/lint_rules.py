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
        "Its full name is only its simple name. It clashes with other types of the same name, and generated "
        "classes have no package.",
        'add a "namespace", for example com.example.orders',
        ("AVRO",),
    ),
    LintRule(
        "NO_PACKAGE",
        "warning",
        "the file has no package",
        "Its messages clash with messages of the same name in other imported files.",
        "add `package example.orders;` before the schema is used, because the package is part of each message's name",
        ("PROTOBUF",),
    ),
    LintRule(
        "NO_SCHEMA_KEYWORD",
        "warning",
        "the schema doesn't declare its draft",
        "Validators then use their own default draft, and keywords have different meanings in different drafts.",
        'add "$schema", for example "https://json-schema.org/draft/2020-12/schema"',
        ("JSON",),
    ),
    LintRule(
        "NO_TITLE",
        "info",
        "the schema has no title",
        "Readers and generated classes have no name for the described data.",
        'add a one-word "title"',
        ("JSON",),
    ),
    LintRule(
        "NO_TYPE",
        "warning",
        '"{name}" has no type, so any value is accepted',
        "A property without a type, an enum or a reference checks nothing, and adding one later is a breaking change.",
        'give it a "type"',
        ("JSON",),
    ),
    LintRule(
        "OPENNESS_UNSAID",
        "info",
        "the object doesn't declare whether it accepts other properties",
        "Open objects accept any value under an undeclared name, so adding a typed property may be a breaking "
        "change. Closed objects reject undeclared properties.",
        'set "additionalProperties" to false, or to true if others may add properties',
        ("JSON",),
    ),
    LintRule(
        "OPTIONAL_WITHOUT_DEFAULT",
        "warning",
        'the field "{name}" may be null and has no default',
        "It looks optional but isn't: if the writer schema lacks the field, decoding fails.",
        'put "null" first in the union and add "default": null',
        ("AVRO",),
    ),
    LintRule(
        "FIELD_HAS_NO_DEFAULT",
        "info",
        'the field "{name}" has no default',
        "A field without a default can't be removed while any reader schema still has it.",
        "give it a default, if readers can work without the value",
        ("AVRO",),
    ),
    LintRule(
        "ENUM_WITHOUT_DEFAULT",
        "info",
        'the enum "{name}" has no default symbol',
        "If a symbol is added later, decoding fails for every reader that doesn't know it yet.",
        'add a "default" to the enum, for example a symbol UNKNOWN',
        ("AVRO",),
    ),
    LintRule(
        "TIME_WITHOUT_LOGICAL_TYPE",
        "info",
        'the field "{name}" looks like a time but is a plain number',
        "The schema doesn't say whether it counts seconds, milliseconds or microseconds, so programs have to guess.",
        "use a logical type, for example timestamp-millis",
        ("AVRO",),
    ),
    LintRule(
        "MONEY_AS_FLOAT",
        "warning",
        'the field "{name}" looks like money but is a binary floating-point number',
        "It can't represent 0.10 exactly, so sums are off by cents.",
        "use a decimal, or an integer number of cents",
        ("AVRO", "PROTOBUF"),
    ),
    LintRule(
        "ZERO_NOT_UNSPECIFIED",
        "warning",
        'the value 0 of the enum is "{name}"',
        "An unset field, and in some readers an unknown value, reads as 0. The value 0 should therefore have no "
        "meaning.",
        "name the value 0 {prefix}_UNSPECIFIED",
        ("PROTOBUF",),
    ),
    LintRule(
        "NUMBERS_NOT_RESERVED",
        "info",
        "the numbers {numbers} are neither used nor reserved",
        "If an old field had one of these numbers, a new field with that number misreads old data.",
        "add `reserved {numbers};` if they were ever used",
        ("PROTOBUF",),
    ),
    LintRule(
        "REQUIRED_FIELD",
        "warning",
        'the field "{name}" is required',
        "A required field can never be removed, and readers reject any message without it.",
        "make it optional, and check it in the application",
        ("PROTOBUF",),
    ),
    LintRule(
        "TYPE_NAME_STYLE",
        "info",
        'the name "{name}" isn\'t in PascalCase',
        "Generated classes use the name unchanged.",
        "rename it to {better} before any data exists, because the name is part of the schema",
        ("AVRO", "PROTOBUF"),
    ),
    LintRule(
        "FIELD_NAME_STYLE",
        "info",
        'the name "{name}" isn\'t in lower_snake_case',
        "Code generators derive accessors and JSON names from the underscores in the name.",
        "rename it to {better}",
        ("PROTOBUF",),
    ),
    LintRule(
        "NAMES_MIXED",
        "warning",
        'the name "{name}" is in {style}, most others are in {usual}',
        "People who write queries or mappings have to look up each name.",
        "rename it to {better}",
        ("AVRO", "JSON"),
    ),
    LintRule(
        "FIELD_WITHOUT_DOC",
        "info",
        'the field "{name}" has no description',
        "The author knows what the name means. Others know only if it is documented.",
        "add a description: `doc` in Avro, a comment in Protobuf, `description` in JSON Schema",
    ),
    LintRule(
        "PERSONAL_WITHOUT_TAG",
        "warning",
        'the name "{name}" looks like personal data, but the field has no tag',
        "Fields that are tagged as personal data are masked in samples and can be found by searches. Untagged "
        "fields are shown.",
        "tag it as PII, or with another tag to confirm that it isn't personal data",
    ),
)
LINT_RULES: Final[Mapping[str, LintRule]] = {rule.id: rule for rule in _ROWS}
#: what a tag of the whole subject answers
TAG_RULES: Final = frozenset({"PERSONAL_WITHOUT_TAG"})
