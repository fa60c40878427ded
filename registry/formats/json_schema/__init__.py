"""JSON Schema, drafts 4 to 2020-12: the SchemaFormat that delegates to the modules of this package."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cached_property

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
)
from registry.formats.json_pointer import position
from registry.formats.json_schema import data, empirical_check, findings, repair, rules, schema_outline
from registry.formats.json_schema.diff import diff_models
from registry.formats.json_schema.model import Model
from registry.formats.json_schema.parser import fingerprint, parse_schema, self_contained_text
from registry.formats.json_schema.repair_edits import edit_property
from registry.formats.json_schema.schema_outline import lint_violations
from registry.formats.json_schema.text import compact, normalized
from registry.formats.json_schema.value_facts import DEFAULT_COST_LIMIT
from registry.formats.lint import LintFinding, findings_at
from registry.formats.schema_format import RESTRICTED, SchemaFormat, json_documentation
from registry.formats.tags import EntityTags, TagChange

_MARKS = frozenset({"$schema", "$id", "$ref", "$defs", "definitions", "properties", "anyOf", "oneOf", "allOf", "const"})


class JsonSchemaFormat(SchemaFormat):
    """JSON Schema as a SchemaFormat; `policy` is "strict" or "lenient", as in Confluent's registry."""

    name = "JSON"
    title = "JSON Schema"
    file_extensions = (".json",)
    is_json = has_references = has_value_rules = has_properties = True
    field_edits = ("remove", "rename", "change type")
    name_pattern = re.compile(r'"(?:title|\$id)"\s*:\s*"([^"\\]{1,80})"')
    confluent_sentences = rules.DESCRIPTIONS
    confluent_shape = '{{errorType:"{kind}", description:"{said}\'}}'
    cost_limits = cost.JSON_SCHEMA_LIMITS
    measures = staticmethod(cost.json_schema_measures)

    def __init__(self, policy: str = "strict") -> None:
        if policy not in ("strict", "lenient"):
            raise ValueError(f'the policy is "strict" or "lenient", not "{policy}"')
        self.policy = policy

    @cached_property
    def lenient(self) -> SchemaFormat:
        """The format under the policy "lenient"."""
        return JsonSchemaFormat("lenient")

    def parse(self, text: str, references: Sequence[ResolvedReference] = (), *, is_new: bool = True) -> ParsedSchema:
        """Parse `text`; raises InvalidSchema with line and column."""
        try:
            model = parse_schema(text, references)
            canonical = compact(model.root)
        except RecursionError:
            raise InvalidSchema("the schema is nested too deeply for this process") from None
        return ParsedSchema(
            schema_type=self.name,
            text=text,
            canonical=canonical,
            fingerprint=fingerprint(model, canonical, references),
            references=tuple(item.reference for item in references),
            model=model,
        )

    def normalize(self, parsed: ParsedSchema) -> str:
        """Return the JSON with sorted keys in every object, as `normalize=true` registers it."""
        return normalized(model_of(parsed).root)

    def self_contained(self, parsed: ParsedSchema) -> str:
        """Return the text with its references among its definitions."""
        return self_contained_text(model_of(parsed))

    def judge(self, reader: ParsedSchema, writer: ParsedSchema) -> Judgement:
        """Return all breaks, equal to those of Confluent's registry, and all hazards; raises SchemaTooCostly."""
        return findings.judge(model_of(reader), model_of(writer), self.policy)

    def diff(self, old: ParsedSchema, new: ParsedSchema) -> tuple[Difference, ...]:
        """Return all changes, for people, in the order of the text."""
        return diff_models(model_of(old), model_of(new))

    def outline(self, parsed: ParsedSchema) -> tuple[OutlineField, ...]:
        """Return the properties as a flat list, nested ones after their parent."""
        return schema_outline.outline(model_of(parsed))

    def cost(self, parsed: ParsedSchema) -> int:
        """Return a static upper estimate of the cost of containment checking, in microseconds."""
        return empirical_check.cost(model_of(parsed))

    def truth(self, reader: ParsedSchema, writer: ParsedSchema, *, cost_limit: int = DEFAULT_COST_LIMIT) -> Truth:
        """Decide whether every instance of the writer is valid under the reader: by proof, by witness, or unknown.

        jsonschema_rs checks containment only if the costs of both schemas together are within `cost_limit`.
        """
        return empirical_check.truth_of(model_of(reader), model_of(writer), cost_limit)

    def witness(self, reader: ParsedSchema, writer: ParsedSchema, finding: Incompatibility | None = None) -> Witness:
        """Return an instance of the writer that the reader rejects, at the place of the finding if given."""
        return empirical_check.find_witness(model_of(reader), model_of(writer), finding)

    def example(self, parsed: ParsedSchema) -> object:
        """Return a valid instance; raises InvalidDatum if none is found."""
        return data.example_of(model_of(parsed))

    def resolve(self, reader: ParsedSchema, writer: ParsedSchema, datum: object) -> Resolution:
        """Validate a writer's instance under the reader: unchanged, or an error; raises InvalidDatum."""
        return data.resolve_datum(model_of(reader), model_of(writer), datum)

    def repair(
        self, schema: ParsedSchema, other: ParsedSchema, finding: Incompatibility, *, is_reader: bool
    ) -> Edit | None:
        """Return the smallest edit of `schema` that removes the finding against `other`; None if there is none."""
        own, theirs = model_of(schema), model_of(other)
        return repair.repair(schema, own, theirs, finding, is_reader=is_reader, policy=self.policy)

    def accept_rename(self, old: ParsedSchema, new: ParsedSchema, suspected: Difference) -> Edit | None:
        """Return the new schema that keeps the old property as deprecated, because JSON Schema has no aliases."""
        return repair.deprecated_beside(new, model_of(new), model_of(old), suspected)

    def edit_field(self, schema: ParsedSchema, path: str, edit: FieldEdit) -> Edit:
        """Return the text with the property changed in its object. Raises InvalidSchema."""
        return edit_property(schema.text, model_of(schema), path, edit)

    def lint(self, parsed: ParsedSchema) -> tuple[LintFinding, ...]:
        """Return advice on the schema alone, warnings first; it affects no verdict."""
        return findings_at(lint_violations(model_of(parsed)), lambda pointer: self.position(parsed, pointer))

    def position(self, parsed: ParsedSchema, pointer: str) -> tuple[int, int] | None:
        """Return line and column (from 1) of a pointer's target in the text."""
        return position(parsed.text, pointer)

    def tags(self, parsed: ParsedSchema) -> tuple[EntityTags, ...]:
        """Return the tagged objects and properties with their tags, outer ones first."""
        return schema_outline.tags(model_of(parsed))

    def with_tags(self, parsed: ParsedSchema, changes: Sequence[TagChange]) -> str:
        """Return the text with changed tags; raises InvalidSchema for an entity that it doesn't define."""
        return schema_outline.with_tags(parsed.text, model_of(parsed), changes)

    def has_top_level_field(self, parsed: ParsedSchema, name: str) -> bool:
        """Return whether the schema declares a top-level property with that name."""
        return schema_outline.has_top_level_field(model_of(parsed), name)

    def recognizes(self, text: str) -> bool:
        """Return whether the text is an object with a keyword or a type that Avro doesn't have."""
        try:
            root = json.loads(text) if text.lstrip().startswith("{") else None
        except (ValueError, RecursionError):
            return False
        return isinstance(root, dict) and (
            not _MARKS.isdisjoint(root) or root.get("type") in ("object", "number", "integer")
        )

    def documentation(self, canonical: str) -> str:
        """Return the title and description."""
        return json_documentation(canonical, "title", "description")

    def record_name(self, parsed: ParsedSchema) -> str:
        """Return the title."""
        return json_documentation(parsed.canonical, "title")

    def restricted_name(self, parsed: ParsedSchema) -> str:
        """Return the first top-level property whose name starts with `$$`."""
        if f'"{RESTRICTED}' not in parsed.canonical:
            return ""
        value = json.loads(parsed.canonical)
        properties = value.get("properties") if isinstance(value, dict) else None
        names = properties if isinstance(properties, dict) else ()
        return next((name for name in names if name.startswith(RESTRICTED)), "")

    def decode_body(self, schema: ParsedSchema, body: bytes, indexes: tuple[int, ...] | None = None) -> DecodedBody:
        """Return the JSON value of the body, and its validation errors."""
        return data.decode_body(model_of(schema), body)

    def replay_of(self, reader: ParsedSchema, writer: ParsedSchema) -> BodyReplay:
        """Return a function that validates the writer's values under the reader: unchanged, or an error."""
        return data.replay_of(model_of(reader), model_of(writer))


def model_of(parsed: ParsedSchema) -> Model:
    """Return the model of a parsed JSON Schema; raises TypeError for a schema of another type."""
    if not isinstance(parsed.model, Model):
        raise TypeError(f"a JSON Schema is expected, not one of type {parsed.schema_type}")
    return parsed.model


JSON_SCHEMA = JsonSchemaFormat()
