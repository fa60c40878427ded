"""Protobuf (proto2, proto3 and editions): the SchemaFormat that delegates to the modules of this package."""

from __future__ import annotations

import re
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from registry.errors import InvalidSchema
from registry.formats import cost
from registry.formats.base import (
    BodyReplay,
    DecodedBody,
    Difference,
    Edit,
    FieldEdit,
    Incompatibility,
    Judgement,
    OutlineField,
    ParsedSchema,
    Resolution,
    ResolvedReference,
    Truth,
    Witness,
    check_size,
)
from registry.formats.lint import LintFinding, findings_at
from registry.formats.protobuf import (
    decoding,
    dynamic_messages,
    empirical_check,
    repair,
    resolution,
    rules,
    schema_outline,
    verdict,
)
from registry.formats.protobuf.compiler import MAIN
from registry.formats.protobuf.diff import diff_schemas
from registry.formats.protobuf.empirical_check import find_witness
from registry.formats.protobuf.file_descriptors import descriptor_set, fingerprint, is_encoded, serialized
from registry.formats.protobuf.model import Schema
from registry.formats.protobuf.options import Options
from registry.formats.protobuf.parser import parse_schema
from registry.formats.protobuf.schema_outline import lint_violations, outline
from registry.formats.protobuf.text import positions
from registry.formats.protobuf.text.compilable import names_of, read_all
from registry.formats.protobuf.text.name_resolution import documents
from registry.formats.protobuf.text.printer import print_file
from registry.formats.protobuf.text.self_contained import self_contained
from registry.formats.protobuf.text.stored_text import bare_text, normal_text, stored_text
from registry.formats.protobuf.verdict import warnings
from registry.formats.schema_format import SchemaFormat
from registry.formats.tags import EntityTags, TagChange

_DECLARATION = re.compile(r"\b(syntax\s*=|message\s+\w+\s*\{|enum\s+\w+\s*\{)")


class ProtobufFormat(SchemaFormat):
    """Protobuf as a stateless SchemaFormat."""

    name = "PROTOBUF"
    title = "Protobuf"
    why_not_proposed = "a person must assign its field numbers"
    file_extensions = (".proto",)
    has_references = has_message_indexes = has_descriptors = has_many_roots = True
    field_edits = ("remove", "rename", "change type")
    forms = {"serialized": "serialized", "ignore_extensions": "without_extensions"}
    name_pattern = re.compile(r"\bmessage\s+(\w{1,80})")
    confluent_sentences = rules.DESCRIPTIONS
    confluent_shape = '{{errorType:"{kind}", description:"{said}"}}'
    cost_limits = cost.PROTOBUF_LIMITS
    measures = staticmethod(cost.proto_measures)

    def parse(self, text: str, references: Sequence[ResolvedReference] = (), *, is_new: bool = True) -> ParsedSchema:
        """Parse `text`: a .proto file, or the base64 of a FileDescriptorProto.

        A text that isn't new may name types that nothing declares, as Confluent's registry imports it. Raises
        InvalidSchema with line and column and all errors of the compiler, SchemaTooCostly beyond the limits of
        `compiler`, and InvalidReference if a reference's name can't be an import path.
        """
        try:
            model = parse_schema(text, references, is_new=is_new)
            options = Options(model.pool)
            canonical = stored_text(model.statements)
            earlier = print_file(model.earlier, options) if model.earlier is not None else None
            identity = fingerprint(model.protos, options)
        except RecursionError:
            raise InvalidSchema("the schema is nested too deeply for this process") from None
        return ParsedSchema(
            schema_type=self.name,
            text=text,
            canonical=canonical,
            fingerprint=identity,
            earlier_canonical=earlier,
            missing_types=model.missing_types,
            references=tuple(item.reference for item in references),
            model=model,
        )

    def normalize(self, parsed: ParsedSchema) -> str:
        """Return the text that `normalize=true` registers."""
        model = _model(parsed)
        others = read_all({reference.name: reference.text for reference in documents(model.references).values()})
        return normal_text(model.statements, names_of(model.statements, MAIN, others))

    def serialized(self, parsed: ParsedSchema) -> str:
        """Return the descriptor in base64."""
        return serialized(_model(parsed))

    def without_extensions(self, parsed: ParsedSchema) -> str:
        """Return the text without extensions and custom options."""
        return bare_text(_model(parsed).statements)

    def diff(self, old: ParsedSchema, new: ParsedSchema) -> tuple[Difference, ...]:
        """Return all changes, for people, in the order of the new text."""
        return diff_schemas(_model(old), _model(new))

    def outline(self, parsed: ParsedSchema) -> tuple[OutlineField, ...]:
        """Return the fields as a flat list, nested ones after their parent."""
        return outline(_model(parsed))

    def self_contained(self, parsed: ParsedSchema) -> str:
        """Return one .proto text with its imports included; see `self_contained.self_contained`."""
        return self_contained(_model(parsed))

    def judge(self, reader: ParsedSchema, writer: ParsedSchema) -> Judgement:
        """Return all breaks, as in Confluent's registry, and all hazards."""
        return verdict.judge(_model(reader), _model(writer))

    def truth(self, reader: ParsedSchema, writer: ParsedSchema) -> Truth:
        """Check what really happens to the writer's data by writing and reading it; see `empirical_check.truth`."""
        return _truth(_model(reader), _model(writer))

    def witness(self, reader: ParsedSchema, writer: ParsedSchema, finding: Incompatibility | None = None) -> Witness:
        """Prove one finding, or (None) any loss of the pair; a witness that isn't found says why."""
        if finding is not None and finding.witness is not None:
            return finding.witness
        return find_witness(self.truth(reader, writer), finding)

    def example(self, parsed: ParsedSchema) -> Any:
        """Return a datum of the first message in the JSON form; raises InvalidDatum if none can be made."""
        return dynamic_messages.example(_model(parsed))

    def resolve(self, reader: ParsedSchema, writer: ParsedSchema, datum: Any, message: str | None = None) -> Resolution:
        """Read a datum of the writer's first message, or of `message`, with the reader; raises InvalidDatum."""
        return resolution.resolve(_model(reader), _model(writer), datum, message)

    def repair(
        self, schema: ParsedSchema, other: ParsedSchema, finding: Incompatibility, *, is_reader: bool
    ) -> Edit | None:
        """Return the edit of `schema` that removes the finding against `other`; None if there is no edit."""
        return repair.repair(_model(schema), _model(other), finding, is_reader=is_reader)

    def accept_rename(self, old: ParsedSchema, new: ParsedSchema, suspected: Difference) -> Edit | None:
        """Return the edit of `new` that restores a renamed field's number and JSON name; None if not possible."""
        return repair.accept_rename(_model(old), _model(new), suspected)

    def edit_field(self, schema: ParsedSchema, path: str, edit: FieldEdit) -> Edit:
        """Return the text with the field changed in its message. Raises InvalidSchema."""
        return schema_outline.edit_field(_model(schema), path, edit)

    def lint(self, parsed: ParsedSchema) -> tuple[LintFinding, ...]:
        """Return advice on the schema alone, warnings first; it affects no verdict."""
        return findings_at(lint_violations(_model(parsed)), lambda pointer: self.position(parsed, pointer))

    def position(self, parsed: ParsedSchema, pointer: str) -> tuple[int, int] | None:
        """Return line and column (from 1) of a pointer's target; None for base64, which has no lines to show."""
        model = _model(parsed)
        return None if model.is_encoded else positions.position(model, pointer)

    def tags(self, parsed: ParsedSchema) -> tuple[EntityTags, ...]:
        """Return the tagged records and fields with their tags, in the order of the text."""
        return schema_outline.tags(_model(parsed))

    def with_tags(self, parsed: ParsedSchema, changes: Sequence[TagChange]) -> str:
        """Return the text with changed tags; raises InvalidSchema for an entity that it doesn't define."""
        return schema_outline.with_tags(_model(parsed), changes)

    def has_top_level_field(self, parsed: ParsedSchema, name: str) -> bool:
        """Return whether a top-level message has a field of that name."""
        return schema_outline.has_top_level_field(_model(parsed), name)

    def readable(self, canonical: str, submitted: str) -> str:
        """Return the submitted text, because the stored one has no comments; for a descriptor, the stored text."""
        return canonical if is_encoded(submitted) else submitted

    def is_encoded(self, text: str) -> bool:
        """Return whether a text is a descriptor in base64."""
        return is_encoded(text)

    def recognizes(self, text: str) -> bool:
        """Return whether a text has a Protobuf declaration and isn't JSON."""
        return text.lstrip()[:1] not in ("{", "[") and bool(_DECLARATION.search(text))

    def descriptor_set(self, parsed: ParsedSchema) -> str:
        """Return the descriptors of the file and of everything it imports, in base64."""
        return descriptor_set(_model(parsed).protos)

    def record_name(self, parsed: ParsedSchema) -> str:
        """Return the full name of the first message."""
        messages = _model(parsed).main.messages.values() if parsed.model is not None else ()
        return next((message.full_name for message in messages), "")

    def decode_body(self, schema: ParsedSchema, body: bytes, indexes: tuple[int, ...] | None = None) -> DecodedBody:
        """Decode the message that the indexes select."""
        check_size(body)
        if indexes is None:
            indexes, body = decoding.split_indexes(body)
        name, value = decoding.decode_body(_model(schema), body, indexes)
        return DecodedBody(value, name, indexes)

    def replay_of(self, reader: ParsedSchema, writer: ParsedSchema) -> BodyReplay:
        """Return a function that reads the writer's bodies with the reader."""
        bodies = resolution.BodyReader(_model(reader), _model(writer))

        def replay(body: bytes, indexes: tuple[int, ...] | None) -> Resolution:
            check_size(body)
            if indexes is None:
                indexes, body = decoding.split_indexes(body)
            return bodies.resolve(body, decoding.message_at(_model(writer), indexes))

        return replay


def _truth(reader: Schema, writer: Schema) -> Truth:
    """Return the truth of a pair; each writer caches its last one, because a report needs a proof for each finding."""
    cached = writer.cache.get("truth")
    if cached is None or cached[0]() is not reader:
        result = empirical_check.truth(reader, writer)
        cached = writer.cache["truth"] = (
            weakref.ref(reader),
            replace(result, warnings=warnings(reader, writer, result)),
        )
    truth: Truth = cached[1]
    return truth


def _model(parsed: ParsedSchema) -> Schema:
    if not isinstance(parsed.model, Schema):
        raise TypeError(f"a Protobuf schema is expected, not one of type {parsed.schema_type}")
    return parsed.model


PROTOBUF = ProtobufFormat()
