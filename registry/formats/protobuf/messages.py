"""The sentences that Confluent's registry writes in `verbose` answers about Protobuf schemas.

Clients and their tests look for them. {reader} and {writer} are "new" or "old", {location} is the place. Confluent
puts type and sentence in double quotes: `{errorType:"…", description:"…"}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DESCRIPTIONS: Final[Mapping[str, str]] = {
    "PACKAGE_CHANGED": "The package at '{location}' in the {reader} schema does not match the package in the "
    "{writer} schema",
    "MESSAGE_REMOVED": "The {reader} schema is missing a MESSAGE type at path '{location}' in the {writer} schema",
    "FIELD_KIND_CHANGED": "The type of a field at path '{location}' in the {reader} schema does not match the "
    "{writer} schema",
    "FIELD_SCALAR_KIND_CHANGED": "The kind of a SCALAR field at path '{location}' in the {reader} schema does not "
    "match its kind in the {writer} schema",
    "FIELD_NAMED_TYPE_CHANGED": "The type of a MESSAGE field at path '{location}' in the {reader} schema does not "
    "match its type in the {writer} schema",
    "FIELD_NUMERIC_LABEL_CHANGED": "The label for a NUMERIC field at path '{location}' in the {reader} schema does "
    "not match its label in the {writer} schema",
    "REQUIRED_FIELD_ADDED": "A required field  at path '{location}' in the {reader} schema is missing in the "
    "{writer} schema",
    "REQUIRED_FIELD_REMOVED": "The {reader} schema is missing a required field at path: '{location}' in the "
    "{writer} schema",
    "ONEOF_FIELD_REMOVED": "The {reader} schema is missing a oneof field at path '{location}' in the {writer} schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "Multiple fields in the oneof at path '{location}' in the {reader} schema are "
    "outside a oneof in the {writer} schema",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "A field in the oneof at path '{location}' in the {reader} schema is outside an "
    "existing oneof in the {writer} schema",
}
