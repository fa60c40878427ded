"""Values that all formats exchange with their callers.

All values are frozen and plain, so that any caller can cache them, compare them and convert them to JSON. A pointer is
an RFC 6901 JSON Pointer into the schema text as submitted. A path is for people (`Order.items[].price`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from registry.errors import InvalidDatum

Severity = Literal["break", "value loss", "warning"]
DifferenceKind = Literal["added", "removed", "changed", "renamed", "moved"]
Answer = Literal["yes", "no", "unknown", "differs"]
Outcome = Literal["kept", "filled", "dropped", "converted"]
#: a change of one field; a new type is one that no reader converts to or from the old one
FieldEdit = Literal["remove", "rename", "rename with alias", "change type"]
#: a character that PostgreSQL can't store in text: NUL, or half of a surrogate pair
UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
#: the most bytes of a message body that are read, because bodies are untrusted
MAX_BODY: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema's dependency: the name that the schema uses, and the subject and version that it points to."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class ResolvedReference:
    """A reference with the text of its target, and the references of that text."""

    name: str
    subject: str
    version: int
    text: str = field(repr=False)
    references: tuple[ResolvedReference, ...] = field(default=(), repr=False)

    @property
    def reference(self) -> Reference:
        """The reference without the target's text."""
        return Reference(self.name, self.subject, self.version)


@dataclass(frozen=True, slots=True)
class ParsedSchema:
    """A schema that its format has parsed; two are equal if they have the same content and the same references.

    `text` is as submitted. `canonical` is equal for texts that differ only in whitespace and comments. `fingerprint` is
    the SHA-256 (hexadecimal) of the canonical text and of the content of its references, by name: equal content has an
    equal fingerprint in every environment, whichever subject or version holds the references. `earlier_canonical` is
    the canonical text of an earlier release, if it differs; it finds schemas stored by that release. `missing_types`
    are names that nothing declares, so nothing about them is checked. `model` is the format's own representation.
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
        """Return whether this release, or an earlier one, stores this schema as that text."""
        return text in (self.canonical, self.earlier_canonical)

    @property
    def identity(self) -> str:
        """SHA-256 (hexadecimal) of the canonical text and the references with subject and version.

        It decides whether a registration is of a known schema. The same text with a reference to another version of a
        subject is another schema, even if the content of both is equal.
        """
        references = sorted([reference.name, reference.subject, reference.version] for reference in self.references)
        return sha256(json.dumps([self.schema_type, self.canonical, references]))


@dataclass(frozen=True, slots=True)
class Difference:
    """One change between two versions, for people; `before` and `after` are JSON values, None if absent.

    `score` (0 to 1) and `reasons` are set if the change is only suspected. `effect` then says what happens to the data
    if the suspicion is right, and `cure` what to do about it.
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
        """Return the difference as JSON values."""
        first = {"rule": self.rule, "kind": self.kind, "path": self.path}
        return first | values_of(self) | {"reasons": list(self.reasons)}


@dataclass(frozen=True, slots=True)
class Witness:
    """Proof that data breaks or changes: a datum, the writer's encoding of it, and the reader's result.

    `error` is the decoder's own message. If the reader decodes the bytes to another value, `error` is empty and `read`
    is that value. If no datum was found, `found` is False and `reason` says why. `path` is empty for a datum of the
    whole schema; otherwise datum and bytes are of the type at that path alone.
    """

    found: bool
    datum: Any = None
    encoded: str = ""
    error: str = ""
    reason: str = ""
    read: Any = None
    path: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the witness as JSON values; `encoded` is hexadecimal."""
        first = {name: getattr(self, name) for name in ("found", "datum", "encoded", "error", "read")}
        return first | values_of(self)


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why the reader can't read the writer's data, or reads it with a changed value.

    `rule` is the most specific name of the case. `kind`, `location` and `detail` are the reference implementation's
    name, place and message. `before` is the writer's side, `after` the reader's. `causes` says why each of the reader's
    candidates was rejected, if there were several. `example` is a sentence with a value that a hazard changes.
    `witness` is set if one was looked for. `decoders` names the affected decoders if others read the same data
    unchanged; it is empty if all are affected.
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
class Rule:
    """A rule for a reading problem: its sentence, why it matters, and the cure on the side that can still be edited.

    `kind` is the reference implementation's name of the case, empty if it has none. `sentence` and the cures are
    templates over the values of a finding. `no_proof` says why data may survive although the established check rejects
    it. `is_lenient` says whether JSON Schema's LENIENT policy accepts it.
    """

    id: str
    kind: str
    severity: Severity
    sentence: str
    why: str
    in_reader: str
    in_writer: str
    no_proof: str = ""
    is_lenient: bool = False


@dataclass(frozen=True, slots=True)
class DifferenceRule:
    """A rule for a change that is shown to people; `sentence` is a template over `name`, `before` and `after`."""

    id: str
    kind: DifferenceKind
    sentence: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """All findings for one pair: `breaks` decide the verdict; `hazards` pass but change values."""

    breaks: tuple[Incompatibility, ...] = ()
    hazards: tuple[Incompatibility, ...] = ()

    @property
    def is_compatible(self) -> bool:
        """Whether the reader can read all data of the writer, according to the reference implementation."""
        return not self.breaks


@dataclass(frozen=True, slots=True)
class Truth:
    """The data check's result for a pair, independent of any rule table: does the reader get every datum unchanged?

    `no` has at least one finding of severity "break" (can't be read) or "value loss" (read as another value), each with
    a witness that was found. `yes` means that no counterexample exists among data that covers the writer's schema, or
    that it was proved that none exists; `how` says which. For `unknown`, `how` gives the obstacle. `differs` means that
    it depends on the decoder: one reads all data unchanged, and another has a finding. `warnings` decide nothing but
    deserve a look: what no value shows, for example presence and names.
    """

    answer: Answer
    findings: tuple[Incompatibility, ...] = ()
    how: str = ""
    warnings: tuple[Incompatibility, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldOutcome:
    """The outcome for one field: `written` and `read` are JSON values, None if that side lacks the field."""

    path: str
    outcome: Outcome
    written: Any
    read: Any
    note: str = ""


@dataclass(frozen=True, slots=True)
class Resolution:
    """The reader's result for a datum of the writer, from a real encoding and decoding.

    `datum` and `value` are in the format's JSON form; `encoded` is the writer's bytes in hexadecimal. If the reader
    fails, `error` is the decoder's message, `value` is None and `fields` is empty.
    """

    datum: Any
    encoded: str
    value: Any = None
    fields: tuple[FieldOutcome, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """A concrete change of a schema that people can accept: a title, and the complete text after the change.

    `is_invented` says that readers then get a made-up value in place of data; the title says which. `effect` says what
    the edit does to old data and old readers.
    """

    title: str
    text: str = field(repr=False)
    is_invented: bool = False
    effect: str = ""


@dataclass(frozen=True, slots=True)
class OutlineField:
    """A field as a row for people: `depth` counts from 0; `default` is JSON text, None without a default.

    `tags` are those in the text that apply here: the field's own and those of all enclosing records and fields.
    `entity` is the full name of the record or message plus the field's name; empty in JSON Schema, whose records have
    no names. `number` is the field number in Protobuf, None in formats that identify fields by name.
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
    number: int | None = None


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """A body as JSON for people; `type_name` is its root type, `indexes` is Protobuf's path to that type.

    `problems` are the JSON Schema validation errors of the value: JSON can be decoded without being valid.
    `logical` maps paths of the first values of a logical type to their meaning: `0.50` for a decimal's bytes.
    """

    value: Any
    type_name: str
    indexes: tuple[int, ...] = ()
    problems: tuple[str, ...] = ()
    logical: Mapping[str, str] = field(default_factory=dict)


class BodyReplay(Protocol):
    """A reader of message bodies for one writer schema and one reader schema."""

    def __call__(self, body: bytes, indexes: tuple[int, ...] | None) -> Resolution:
        """Return the reader's result for a body. Raises InvalidDatum if the body isn't the writer's.

        `indexes` is Protobuf's path to the message type if it came in a header; None if the body starts with it.
        """


def values_of(item: Any, *without: str) -> dict[str, Any]:
    """Return the fields of a dataclass with slots, in order, except `without`, which the caller adds itself."""
    return {name: getattr(item, name) for name in item.__slots__ if name not in without}


def check_size(body: bytes) -> None:
    """Raise InvalidDatum if the body is too long to be read."""
    if len(body) > MAX_BODY:
        raise InvalidDatum(f"the body has {len(body):,} bytes; at most {MAX_BODY:,} are read")


def sha256(text: str) -> str:
    """Return the SHA-256 of the text in UTF-8, hexadecimal."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def content_fingerprint(canonical: str, references: Sequence[tuple[str, str]]) -> str:
    """Return the fingerprint of a canonical text and the (name, fingerprint) pairs of its references."""
    if not references:
        return sha256(canonical)
    return sha256(json.dumps([canonical, sorted(references)]))


def graph_fingerprint(
    canonical: str, references: Sequence[ResolvedReference], referenced: Iterable[tuple[ResolvedReference, str]]
) -> str:
    """Return the fingerprint of a canonical text and everything it refers to.

    `referenced` gives each referenced text once, in canonical form, after its own references. The cost is therefore
    that of the graph, not of the tree that it unfolds to.
    """
    fingerprints: dict[tuple[str, int, str], str] = {}

    def named(items: Sequence[ResolvedReference]) -> list[tuple[str, str]]:
        return [(item.name, fingerprints[item.subject, item.version, item.text]) for item in items]

    for item, text in referenced:
        fingerprints[item.subject, item.version, item.text] = content_fingerprint(text, named(item.references))
    return content_fingerprint(canonical, named(references))
