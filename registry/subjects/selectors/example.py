"""An example message of a version: generated from its schema, never taken from data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from registry.errors import InvalidDatum, SchemadeskError
from registry.formats.base import ParsedSchema
from registry.formats.effective_tags import SchemaTags
from registry.formats.placeholders import Placeholders
from registry.subjects import engines
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName
from registry.subjects.selectors.comparison import stored_version
from registry.subjects.selectors.notes import note_of
from registry.subjects.selectors.tags import tags_of_parsed


@dataclass(frozen=True)
class ExampleMessage:
    """A message in the format's JSON form. The engine made it and encoded it: `refused` is empty, or why it doesn't pass.

    `placeholders` counts values of personal fields, which stand for none: with them it may be that it doesn't pass.
    """

    value: Any
    placeholders: int = 0
    refused: str = ""


def example_of(registry: Registry, subject: SubjectName, version: int) -> ExampleMessage:
    """An example of a version, a soft-deleted one too; the same one each time.

    Raises SubjectNotFound, VersionNotFound, InvalidSchema, SchemaTooCostly, InvalidDatum where the schema has no data
    that can be made.
    """
    row, parsed = stored_version(registry, subject, version, deleted=True)
    return example_message(parsed, tags_of_parsed(parsed, row.schema.metadata, note_of(registry, subject)))


def example_message(parsed: ParsedSchema, tags: SchemaTags) -> ExampleMessage:
    """The same of a parsed schema with its tags. Raises InvalidDatum, SchemaTooCostly."""
    made = engines.example(parsed)
    placeholders = Placeholders(tags, is_union_wrapped=parsed.schema_type == "AVRO")
    value = placeholders.of(made)
    try:
        refused = engines.resolve(parsed, parsed, value).error
    except InvalidDatum as error:
        refused = error.message
    except SchemadeskError as error:
        refused = error.message
    return ExampleMessage(value, placeholders.put, refused)
