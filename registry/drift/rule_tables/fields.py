"""What is found in the fields of decoded messages, held against the declared schema and the last weeks."""

from __future__ import annotations

from typing import Final

from registry.drift.rule import Rule

ROWS: Final = (
    Rule(
        "FIELD_UNDECLARED",
        "risk",
        "Field {path} stands in {share} of {topic} ({side}), but {declared_by} {doesnt} declare it.",
        "Add the field to the schema by a new version, or take it out of the producer.",
    ),
    Rule(
        "FIELD_MISSING",
        "risk",
        "Field {path} is missing in {share} of {topic} ({side}), though {declared_by} {requires} it.",
        "Let the producer fill the field, or make it optional by a new version, with a default for consumers.",
    ),
    Rule(
        "FIELD_KIND_WRONG",
        "risk",
        "Field {path} is {observed} in {share} of {topic} ({side}); {declared_by} {declares} {declared}.",
        "Correct the producer. If the new kind is meant, add a field of that kind under a new name.",
    ),
    Rule(
        "ENUM_VALUE_UNDECLARED",
        "risk",
        "Field {path} holds a value in {share} of {topic} ({side}) that {declared_by} {doesnt} list.",
        "Add the value to the enum by a new version, consumers first; or correct the producer.",
    ),
    Rule(
        "FIELD_KIND_NEW",
        "risk",
        "Field {path} is {observed} in {share} of {topic} ({side}); in the {days} days before it was {before} alone.",
        "Ask the producer whether the change was meant. Register a schema for the topic, so that it is refused next "
        "time.",
    ),
    Rule(
        "NULL_SHARE_ROSE",
        "risk",
        "Field {path} is empty in {now} of {messages} of {topic} ({side}); in the {days} days before it was {least} to "
        "{most}.",
        "Ask the producer what changed at that time: a field renamed, a source not read any more, a new kind of "
        "record.",
    ),
    Rule(
        "ENUM_SHARE_SHIFTED",
        "notice",
        "The value {value} of field {path} stands in {now} of {messages} of {topic} ({side}); in the {days} days "
        "before it was {least} to {most}.",
        "Check whether the change was meant; a default in place of the real value looks like this.",
    ),
    Rule(
        "FIELD_NEVER_FILLED",
        "risk",
        "Field {path} is never filled any more in {messages} of {topic} ({side}); in the {days} days before it was "
        "filled in {least} to {most}.",
        "Ask the producer whether the field was dropped or renamed. If it is not needed any more, deprecate it in a "
        "new version.",
    ),
)
