"""What every format speaks: the values that cross the border of an engine.

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

from registry.errors import InvalidDatum

Severity = Literal["break", "value loss", "warning"]
DifferenceKind = Literal["added", "removed", "changed", "renamed", "moved"]
Answer = Literal["yes", "no", "unknown", "differs"]
Outcome = Literal["kept", "filled", "dropped", "converted"]
#: a character that no text of PostgreSQL can have: NUL, or half of a surrogate pair
UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
#: bytes of a message's body that are read at most: they are hostile
MAX_BODY: Final = 1024 * 1024


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
        first = {"rule": self.rule, "kind": self.kind, "path": self.path}
        return first | values_of(self) | {"reasons": list(self.reasons)}


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
        first = {name: getattr(self, name) for name in ("found", "datum", "encoded", "error", "read")}
        return first | values_of(self)


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
class Rule:
    """A problem of reading: what is said, why it matters, and the cure in the side that can still be edited.

    `kind` is the reference implementation's name of the case, empty where it has none. `sentence` and the cures are
    templates over the values of a finding. `no_proof` says why data may survive what the established check refuses;
    `is_lenient` that JSON Schema's LENIENT policy accepts it.
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
    """A change that is told to people; the sentence is a template over `name`, `before` and `after`."""

    id: str
    kind: DifferenceKind
    sentence: str


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
    is the full name of its record or message with its own name, empty in JSON Schema, whose records have none. `number`
    is what data names the field by in Protobuf; None where that is its name.
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
    """A body as JSON for people; `type_name` is the type at its root, `indexes` Protobuf's path to it.

    `problems` is what a JSON Schema says against the value: JSON can be read without being valid.
    """

    value: Any
    type_name: str
    indexes: tuple[int, ...] = ()
    problems: tuple[str, ...] = ()


class BodyReplay(Protocol):
    """Reads bodies of one writer with one reader."""

    def __call__(self, body: bytes, indexes: tuple[int, ...] | None) -> Resolution:
        """What the reader makes of a body. Raises InvalidDatum where it isn't one of the writer's.

        `indexes` is Protobuf's path to the message where a header has it; None: it stands before the message.
        """


def values_of(item: Any, *without: str) -> dict[str, Any]:
    """The fields of a dataclass with slots in their order, but for those that the caller writes itself."""
    return {name: getattr(item, name) for name in item.__slots__ if name not in without}


def check_size(body: bytes) -> None:
    """Raise InvalidDatum for a body that is too long to be read."""
    if len(body) > MAX_BODY:
        raise InvalidDatum(f"the body has {len(body):,} bytes; at most {MAX_BODY:,} are read")


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
