"""What every format speaks: the values that cross the border of an engine, and the protocol of an engine.

All values are frozen and plain, so they can be cached, compared and turned into JSON by any caller.
A pointer is an RFC 6901 JSON Pointer into the schema text as submitted; a path is written for people
(`Order.items[].price`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from registry.formats.lint import LintFinding
from registry.formats.tags import EntityTags, TagChange

Severity = Literal["break", "value loss", "warning"]
DifferenceKind = Literal["added", "removed", "changed", "renamed", "moved"]
Answer = Literal["yes", "no", "unknown", "differs"]
Outcome = Literal["kept", "filled", "dropped", "converted"]
#: a character that no text of PostgreSQL can have: NUL, or half of a surrogate pair
UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema's dependency: the name it is used by, and the subject and version that hold it."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class ResolvedReference:
    """A reference with the text it leads to, and that text's own references."""

    name: str
    subject: str
    version: int
    text: str = field(repr=False)
    references: tuple[ResolvedReference, ...] = field(default=(), repr=False)

    @property
    def reference(self) -> Reference:
        """The reference without what it leads to."""
        return Reference(self.name, self.subject, self.version)


@dataclass(frozen=True, slots=True)
class ParsedSchema:
    """A schema that its format has read; two are equal if they say the same and refer to the same.

    `text` is as submitted; `canonical` is equal for texts that differ in white space and comments alone;
    `fingerprint` is the SHA-256 (hexadecimal) of the canonical text and of the content of what it refers to, by
    name: equal content gives an equal fingerprint in every environment, whatever subject or version holds the
    references. `earlier_canonical` is what an earlier release stored, where that was another text: it finds what was
    stored then. `missing_types` are names that nothing declares, of which therefore nothing is checked. `model` is the
    format's own representation.
    """

    schema_type: str
    text: str = field(compare=False)
    canonical: str
    fingerprint: str
    references: tuple[Reference, ...] = ()
    earlier_canonical: str | None = field(default=None, compare=False, repr=False)
    missing_types: tuple[str, ...] = field(default=(), compare=False)
    model: Any = field(default=None, compare=False, repr=False)

    def is_stored_as(self, text: str) -> bool:
        """Whether a registration of this schema stores that text, or one by an earlier release stored it."""
        return text in (self.canonical, self.earlier_canonical)

    @property
    def identity(self) -> str:
        """SHA-256 (hexadecimal) of the canonical text and the references with subject and version.

        This is what decides whether a registration is a schema already known: the same text that refers to
        another version of a subject is another schema, although their content may be equal.
        """
        references = sorted([reference.name, reference.subject, reference.version] for reference in self.references)
        return sha256(json.dumps([self.schema_type, self.canonical, references]))


@dataclass(frozen=True, slots=True)
class Difference:
    """One change between two versions, for people; `before` and `after` are JSON values, None where absent.

    `score` (0 to 1) and `reasons` are given where a change is suspected rather than known; `effect` then says what
    becomes of the data if it is so, and `cure` what to do about it.
    """

    rule: str
    kind: DifferenceKind
    pointer_old: str | None
    pointer_new: str | None
    path: str
    before: Any
    after: Any
    message: str
    score: float | None = None
    reasons: tuple[str, ...] = ()
    effect: str = ""
    cure: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The difference as JSON values."""
        return {
            "rule": self.rule,
            "kind": self.kind,
            "path": self.path,
            "pointer_old": self.pointer_old,
            "pointer_new": self.pointer_new,
            "before": self.before,
            "after": self.after,
            "message": self.message,
            "score": self.score,
            "reasons": list(self.reasons),
            "effect": self.effect,
            "cure": self.cure,
        }


@dataclass(frozen=True, slots=True)
class Witness:
    """Proof that data break or change: a datum, its bytes as the writer encodes it, and what the reader makes of it.

    `error` is the decoder's own message; where the reader decodes the bytes and gets something else, `error` is empty
    and `read` is what it gets. Where no datum was found, `found` is False and `reason` says why. `path` is empty for a
    datum of the whole schema; else datum and bytes are of the type at that path alone.
    """

    found: bool
    datum: Any = None
    encoded: str = ""
    error: str = ""
    reason: str = ""
    read: Any = None
    path: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The witness as JSON values; `encoded` is hexadecimal."""
        return {
            "found": self.found,
            "datum": self.datum,
            "encoded": self.encoded,
            "error": self.error,
            "read": self.read,
            "reason": self.reason,
            "path": self.path,
        }


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why data of the writer can't be read, or changes its value, under the reader.

    `rule` is the finest name of the case, `kind` the reference implementation's name for it, `location` the place
    as that implementation writes it, `detail` its message. `before` is the writer's side, `after` the reader's.
    `causes` says why each candidate was refused, where the reader offered several. `example` is a value that a hazard
    changes, as a sentence. `witness` is given where it was looked for. `decoders` names the decoders that it is about,
    where others read the same data unchanged; empty if it is about all of them.
    """

    rule: str
    kind: str
    reader_pointer: str | None
    writer_pointer: str | None
    path: str
    before: Any
    after: Any
    message: str
    severity: Severity = "break"
    location: str = ""
    detail: str = ""
    why: str = ""
    remedy_in_reader: str = ""
    remedy_in_writer: str = ""
    reader_source: str | None = None
    writer_source: str | None = None
    causes: tuple[Incompatibility, ...] = ()
    example: str = ""
    witness: Witness | None = None
    decoders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """All that is to say of one pair: `breaks` decide the verdict, `hazards` pass it and yet change values."""

    breaks: tuple[Incompatibility, ...] = ()
    hazards: tuple[Incompatibility, ...] = ()

    @property
    def is_compatible(self) -> bool:
        """Whether the reader can read all data of the writer, as the reference implementation sees it."""
        return not self.breaks


@dataclass(frozen=True, slots=True)
class Truth:
    """What the data say of a pair, whatever a rule table says: does the reader get every datum of the writer, unchanged?

    `no` has at least one finding of severity "break" (it can't be read) or "value loss" (it is read as another
    value), each with a witness that was found. `yes` means that no counterexample exists among the data that cover
    the writer's schema, or that one was proved not to exist; `how` says which. `unknown` says in `how` what hindered.
    `differs` means that it depends on the decoder: one reads all of it unchanged, and for another there is a finding.
    `warnings` deserve a look and decide nothing: what no value shows, such as presence and names.
    """

    answer: Answer
    findings: tuple[Incompatibility, ...] = ()
    how: str = ""
    warnings: tuple[Incompatibility, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldOutcome:
    """What became of one field: `written` and `read` are JSON values, None where the side doesn't have the field."""

    path: str
    outcome: Outcome
    written: Any
    read: Any
    note: str = ""


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a reader makes of a datum of the writer, by really encoding and decoding.

    `datum` and `value` are in the format's JSON form; `encoded` is the writer's bytes in hexadecimal. Where the reader
    stops, `error` is the decoder's message, `value` is None and `fields` is empty.
    """

    datum: Any
    encoded: str
    value: Any = None
    fields: tuple[FieldOutcome, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """A concrete change of a schema, for people to take over: what it does, and the whole text after it.

    `is_invented` says that readers then get a value that nobody wrote in place of data; its title says which.
    """

    title: str
    text: str = field(repr=False)
    is_invented: bool = False


@dataclass(frozen=True, slots=True)
class OutlineField:
    """A field as a row for people: `depth` counts from 0, `default` is JSON text, None where there is none.

    `tags` are those in the text that hold here: the field's own and those of all records and fields around it. `entity`
    is the full name of its record or message with its own name, empty in JSON Schema, whose records have none.
    """

    name: str
    path: str
    type: str
    depth: int
    required: bool
    default: str | None
    doc: str
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    entity: str = ""


class SchemaFormat(Protocol):
    """What a format can do. All methods are pure; `parse` raises InvalidSchema or InvalidReference, no other does."""

    @property
    def name(self) -> str:
        """The registry's name of the format: AVRO, PROTOBUF or JSON."""

    def parse(self, text: str, references: Sequence[ResolvedReference] = ()) -> ParsedSchema:
        """The schema in `text`; raises InvalidSchema, with line and column where known."""

    def canonical(self, parsed: ParsedSchema) -> str:
        """The text whose equality means "the same schema"."""

    def normalize(self, parsed: ParsedSchema) -> str:
        """The text that `normalize=true` registers, equal for schemas that differ in irrelevant order alone."""

    def diff(self, old: ParsedSchema, new: ParsedSchema) -> tuple[Difference, ...]:
        """All changes, for people, in the order of the text."""

    def outline(self, parsed: ParsedSchema) -> tuple[OutlineField, ...]:
        """The fields as a flat list, nested ones after their parent."""

    def self_contained(self, parsed: ParsedSchema) -> str:
        """The text with everything that it refers to inside, for readers that resolve no references."""

    def judge(self, reader: ParsedSchema, writer: ParsedSchema) -> Judgement:
        """All breaks and hazards of reading the writer's data with the reader."""

    def incompatibilities(self, reader: ParsedSchema, writer: ParsedSchema) -> tuple[Incompatibility, ...]:
        """The breaks alone: empty means that the reader can read all data of the writer."""

    def truth(self, reader: ParsedSchema, writer: ParsedSchema) -> Truth:
        """What really happens to the writer's data, by encoding and decoding or by proof; costlier than `judge`."""

    def witness(self, reader: ParsedSchema, writer: ParsedSchema, finding: Incompatibility | None = None) -> Witness:
        """Proof of one finding, or (None) of any break of the pair; one that isn't found says why."""

    def example(self, parsed: ParsedSchema) -> Any:
        """A datum of the schema in the format's JSON form; raises InvalidDatum where none can be made."""

    def resolve(self, reader: ParsedSchema, writer: ParsedSchema, datum: Any) -> Resolution:
        """What the reader makes of a datum (the format's JSON form); raises InvalidDatum if it isn't the writer's."""

    def repair(
        self, schema: ParsedSchema, other: ParsedSchema, finding: Incompatibility, *, is_reader: bool
    ) -> Edit | None:
        """The smallest edit of `schema` that removes the finding against `other`; None where there is none.

        `is_reader` says on which side of the finding `schema` is. The edited text parses.
        """

    def accept_rename(self, old: ParsedSchema, new: ParsedSchema, suspected: Difference) -> Edit | None:
        """The edit of `new` that makes a suspected rename a known one (an alias, a reserved number); None if none."""

    def tags(self, parsed: ParsedSchema) -> tuple[EntityTags, ...]:
        """The tagged records and fields with their tags, in the order of the text."""

    def with_tags(self, parsed: ParsedSchema, changes: Sequence[TagChange]) -> str:
        """The text with changed tags; raises InvalidSchema for an entity that it doesn't define."""

    def has_top_level_field(self, parsed: ParsedSchema, name: str) -> bool:
        """Whether the schema itself, not one inside of it, has a field of that name."""

    def lint(self, parsed: ParsedSchema) -> tuple[LintFinding, ...]:
        """Advice on the schema alone, warnings first; none of it decides anything."""

    def position(self, parsed: ParsedSchema, pointer: str) -> tuple[int, int] | None:
        """Line and column (from 1) in the text of what a pointer leads to, None where the text has no such place."""


def sha256(text: str) -> str:
    """The SHA-256 of a text in UTF-8, hexadecimal."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def content_fingerprint(canonical: str, references: Sequence[tuple[str, str]]) -> str:
    """The fingerprint of a canonical text with the (name, fingerprint) pairs of what it refers to."""
    if not references:
        return sha256(canonical)
    return sha256(json.dumps([canonical, sorted(references)]))


def graph_fingerprint(
    canonical: str, references: Sequence[ResolvedReference], referenced: Iterable[tuple[ResolvedReference, str]]
) -> str:
    """The fingerprint of a canonical text with all that it refers to.

    `referenced` gives each referenced text once, canonical, after those that it refers to itself: the cost is that of
    the graph, not of the tree that it unfolds to.
    """
    fingerprints: dict[tuple[str, int, str], str] = {}

    def named(items: Sequence[ResolvedReference]) -> list[tuple[str, str]]:
        return [(item.name, fingerprints[item.subject, item.version, item.text]) for item in items]

    for item, text in referenced:
        fingerprints[item.subject, item.version, item.text] = content_fingerprint(text, named(item.references))
    return content_fingerprint(canonical, named(references))
