"""Avro 1.12: the SchemaFormat that delegates to the modules of this package."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from registry.errors import InvalidSchema
from registry.formats import cost
from registry.formats.avro import canonical, decoding, findings, rules, schema_outline
from registry.formats.avro.datum import plain
from registry.formats.avro.diff import diff_types
from registry.formats.avro.model import AvroSchema, Named, Record
from registry.formats.avro.parser import parse_schema
from registry.formats.avro.repair import accept_rename, repair
from registry.formats.avro.schema_outline import lint_violations, outline
from registry.formats.avro.witness import any_witness, truth_of, witness_of
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
    graph_fingerprint,
)
from registry.formats.json_pointer import position as position_of
from registry.formats.lint import LintFinding, findings_at
from registry.formats.schema_format import SchemaFormat, json_documentation
from registry.formats.tags import EntityTags, TagChange


class AvroFormat(SchemaFormat):
    """Avro as a stateless SchemaFormat."""

    name = "AVRO"
    title = "Avro"
    file_extensions = (".avsc", ".avro", ".json")
    is_json = has_references = has_named_branches = has_spark_rows = True
    field_edits = ("remove", "rename", "rename with alias", "change type")
    name_pattern = re.compile(r'"name"\s*:\s*"([^"\\]{1,80})"')
    confluent_sentences = rules.DESCRIPTIONS
    confluent_shape = "{{errorType:'{kind}', description:'{said}', additionalInfo:'{detail}'}}"
    cost_limits = cost.AVRO_LIMITS
    measures = staticmethod(cost.avro_measures)

    def parse(self, text: str, references: Sequence[ResolvedReference] = (), *, is_new: bool = True) -> ParsedSchema:
        """Parse `text`; raises InvalidSchema with line and column.

        A text that isn't new may have defaults that don't match their type, because other registries accepted them.
        """
        try:
            model = parse_schema(text, references, validate_defaults=is_new)
            canonical_text = canonical.canonical_text(model)
            canonical_text.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidSchema("the schema contains half of a surrogate pair, which is not a character") from None
        except RecursionError:
            raise InvalidSchema("the schema is nested too deeply for this process") from None
        return ParsedSchema(
            schema_type=self.name,
            text=text,
            canonical=canonical_text,
            fingerprint=graph_fingerprint(
                canonical_text,
                references,
                ((document.reference, canonical.document_text(model, document)) for document in model.documents),
            ),
            references=tuple(item.reference for item in references),
            model=model,
        )

    def normalize(self, parsed: ParsedSchema) -> str:
        """Return the text that `normalize=true` registers."""
        return canonical.normalized_text(_model(parsed))

    def diff(self, old: ParsedSchema, new: ParsedSchema) -> tuple[Difference, ...]:
        """Return all changes, for people, in the order of the text."""
        return diff_types(_model(old).root, _model(new).root)

    def outline(self, parsed: ParsedSchema) -> tuple[OutlineField, ...]:
        """Return the fields as a flat list, nested ones after their parent."""
        return outline(_model(parsed).root)

    def self_contained(self, parsed: ParsedSchema) -> str:
        """Return the text with the definitions of its references included."""
        model = _model(parsed)
        try:
            return canonical.canonical_text(AvroSchema(model.root, model.named, frozenset(), ()))
        except RecursionError:
            raise InvalidSchema("with its references included, the schema is nested too deeply for one text") from None

    def judge(self, reader: ParsedSchema, writer: ParsedSchema) -> Judgement:
        """Return all breaks, equal to those of Java's SchemaCompatibility, and all hazards."""
        return findings.judge(_model(reader).root, _model(writer).root)

    def truth(self, reader: ParsedSchema, writer: ParsedSchema) -> Truth:
        """Check the writer's covering data with the reader, decoded by fastavro and by Java's rules."""
        return truth_of(_model(reader), _model(writer))

    def witness(self, reader: ParsedSchema, writer: ParsedSchema, finding: Incompatibility | None = None) -> Witness:
        """Return data that shows one finding, or (None) any data of the writer that the reader can't decode."""
        if finding is not None:
            return witness_of(_model(reader), _model(writer), finding)
        witness = any_witness(_model(reader), _model(writer))
        breaks = () if witness.found else self.incompatibilities(reader, writer)
        if breaks:
            rules = ", ".join(sorted({item.rule for item in breaks}))
            return Witness(False, reason=f"{witness.reason} despite {rules}")
        return witness

    def example(self, parsed: ParsedSchema) -> Any:
        """Return a datum in Avro's JSON encoding; raises InvalidDatum if none can be made."""
        return decoding.example(_model(parsed))

    def resolve(self, reader: ParsedSchema, writer: ParsedSchema, datum: Any) -> Resolution:
        """Read a datum in Avro's JSON encoding with the reader; raises InvalidDatum if it is invalid for the writer."""
        return decoding.resolve(_model(reader), _model(writer), datum)

    def repair(
        self, schema: ParsedSchema, other: ParsedSchema, finding: Incompatibility, *, is_reader: bool
    ) -> Edit | None:
        """Return the smallest edit of `schema` that removes the finding against `other`; None if there is no edit."""
        return repair(schema, other, finding, is_reader=is_reader)

    def accept_rename(self, old: ParsedSchema, new: ParsedSchema, suspected: Difference) -> Edit | None:
        """Return the edit of `new` that adds the old name as an alias; None if the difference isn't a rename."""
        return accept_rename(old, new, suspected)

    def edit_field(self, schema: ParsedSchema, path: str, edit: FieldEdit) -> Edit:
        """Return the canonical text with the field changed in its record. Raises InvalidSchema."""
        return schema_outline.edit_field(_model(schema), path, edit)

    def lint(self, parsed: ParsedSchema) -> tuple[LintFinding, ...]:
        """Return advice on the schema alone, warnings first; it affects no verdict."""
        return findings_at(lint_violations(_model(parsed)), lambda pointer: self.position(parsed, pointer))

    def position(self, parsed: ParsedSchema, pointer: str) -> tuple[int, int] | None:
        """Return line and column (from 1) of a pointer's target in the text; None if there is no such place."""
        return position_of(parsed.text, pointer)

    def tags(self, parsed: ParsedSchema) -> tuple[EntityTags, ...]:
        """Return the tagged records and fields with their tags, in the order of the text."""
        return schema_outline.tags(_model(parsed))

    def with_tags(self, parsed: ParsedSchema, changes: Sequence[TagChange]) -> str:
        """Return the text with changed tags; raises InvalidSchema for an entity that it doesn't define."""
        return schema_outline.with_tags(parsed.text, _model(parsed), changes)

    def has_top_level_field(self, parsed: ParsedSchema, name: str) -> bool:
        """Return whether the schema is a record with a field of that name."""
        return schema_outline.has_top_level_field(_model(parsed), name)

    def recognizes(self, text: str) -> bool:
        """Return whether the text is a JSON object or array; JSON Schema checks more closely."""
        return text.lstrip()[:1] in ("{", "[")

    def documentation(self, canonical: str) -> str:
        """Return the `doc` of the type at the root."""
        return json_documentation(canonical, "doc")

    def record_name(self, parsed: ParsedSchema) -> str:
        """Return the full name of the root type, if it has one."""
        root = parsed.model and parsed.model.root
        return root.full_name if isinstance(root, Named) else ""

    def decode_body(self, schema: ParsedSchema, body: bytes, indexes: tuple[int, ...] | None = None) -> DecodedBody:
        """Decode a body in Avro's binary encoding."""
        check_size(body)
        root = _model(schema).root
        datum = decoding.decode_body(_model(schema), body)
        meanings = islice(decoding.logical_values(root, datum, findings.root_path(root)), MAX_MEANINGS)
        name = root.full_name if isinstance(root, Record) else root.kind
        return DecodedBody(plain(datum), name, logical=dict(meanings))

    def replay_of(self, reader: ParsedSchema, writer: ParsedSchema) -> BodyReplay:
        """Return a function that reads the writer's bodies with the reader."""

        def replay(body: bytes, indexes: tuple[int, ...] | None) -> Resolution:
            check_size(body)
            return decoding.resolve_body(_model(reader), _model(writer), body)

        return replay


#: the most values with a logical type whose meaning is shown for one message
MAX_MEANINGS: Final = 1_000


def _model(parsed: ParsedSchema) -> AvroSchema:
    if not isinstance(parsed.model, AvroSchema):
        raise TypeError(f"an Avro schema is expected, not one of type {parsed.schema_type}")
    return parsed.model


AVRO = AvroFormat()
