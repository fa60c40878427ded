"""What every format speaks: the values that cross the border of an engine, and the protocol of an engine.

All values are frozen and plain, so they can be cached, compared and turned into JSON by any caller.
A pointer is an RFC 6901 JSON Pointer into the schema text as submitted; a path is written for people
(`Order.items[].price`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Severity = Literal["break", "value loss", "warning"]
DifferenceKind = Literal["added", "removed", "changed", "renamed", "moved"]


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
    references. `model` is the format's own representation.
    """

    schema_type: str
    text: str = field(compare=False)
    canonical: str
    fingerprint: str
    references: tuple[Reference, ...] = ()
    model: Any = field(default=None, compare=False, repr=False)

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

    `score` (0 to 1) and `reasons` are given where a change is suspected rather than known.
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
        }


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why data of the writer can't be read, or changes its value, under the reader.

    `rule` is the finest name of the case, `kind` the reference implementation's name for it, `location` the place
    as that implementation writes it, `detail` its message. `before` is the writer's side, `after` the reader's.
    `causes` says why each candidate was refused, where the reader offered several. `example` is a value that a hazard
    changes, as a sentence.
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
class Witness:
    """Proof of a break: a datum, its bytes as the writer encodes it, and what the reader makes of it.

    `error` is the decoder's own message. Where no datum was found, `datum` is None and `reason` says why.
    """

    found: bool
    datum: Any = None
    encoded: str = ""
    error: str = ""
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The witness as JSON values; `encoded` is hexadecimal."""
        return {
            "found": self.found,
            "datum": self.datum,
            "encoded": self.encoded,
            "error": self.error,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class OutlineField:
    """A field as a row for people: `depth` counts from 0, `default` is JSON text, None where there is none."""

    name: str
    path: str
    type: str
    depth: int
    required: bool
    default: str | None
    doc: str
    aliases: tuple[str, ...] = ()


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

    def witness(self, reader: ParsedSchema, writer: ParsedSchema) -> Witness | None:
        """Data of the writer that the reader can't read; None where all covering data decode."""


def sha256(text: str) -> str:
    """The SHA-256 of a text in UTF-8, hexadecimal."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def content_fingerprint(canonical: str, references: Sequence[tuple[str, str]]) -> str:
    """The fingerprint of a canonical text with the (name, fingerprint) pairs of what it refers to."""
    if not references:
        return sha256(canonical)
    return sha256(json.dumps([canonical, sorted(references)]))
