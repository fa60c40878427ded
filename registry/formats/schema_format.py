"""The interface of a format: one class for each, with a default for everything that a format may leave out.

Code outside the formats asks the format instead of testing its name. A format must have `parse`, `diff` and `judge`.
Missing features say so: `unavailable` is the sentence for people, and `truth` answers "unknown", never "yes".
"""

from __future__ import annotations

import json
import pkgutil
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Final

from registry.errors import InvalidDatum, InvalidSchema
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
    graph_fingerprint,
)
from registry.formats.lint import LintFinding
from registry.formats.tags import EntityTags, TagChange

#: the format of a schema that names none, as in Confluent's API
DEFAULT_FORMAT: Final = "AVRO"
#: the group of entry points through which installed packages add formats
ENTRY_POINTS: Final = "schemadesk.formats"
#: prefix that no field name may have if `validateFields` is set
RESTRICTED: Final = "$$"
_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{0,15}")


class SchemaFormat(ABC):
    """A schema format. All methods are pure; `parse` raises InvalidSchema or InvalidReference.

    Methods that make or read data raise InvalidDatum, and `with_tags` raises InvalidSchema.
    """

    #: the registry's name of the format: a capital, then up to 15 capitals, digits and underscores
    name: str
    #: the name for people; `name` if empty
    title: str = ""
    #: file suffixes with the dot, the usual one first
    file_extensions: tuple[str, ...] = (".txt",)
    #: whether texts are JSON, which is indented for people and served as application/json
    is_json: bool = False
    #: whether a schema may refer to others
    has_references: bool = False
    #: whether a message starts with a path of indexes to its type
    has_message_indexes: bool = False
    #: whether Spark decodes data with `descriptor_set`, not with the self-contained text
    has_descriptors: bool = False
    #: whether Spark's `from_avro` reads its data into rows, whose types a streaming state keeps
    has_spark_rows: bool = False
    #: why no schema is proposed from the data that a scan saw
    why_not_proposed: str = "the format can't be written from data"
    #: whether decoding accepts data that the schema forbids, so that drift compares it with the declared fields
    has_value_rules: bool = False
    #: whether the JSON form of a union value names its branch
    has_named_branches: bool = False
    #: whether fields are called properties
    has_properties: bool = False
    #: whether any type of a schema may be the root type of data, not only the first
    has_many_roots: bool = False
    #: other forms of the text that clients may ask for, mapped to the methods that write them
    forms: Mapping[str, str] = {}
    #: finds the name of a schema in its text without parsing
    name_pattern: re.Pattern[str] | None = None
    #: Confluent's sentences by `kind` of a finding, and the shape of its registry's messages
    confluent_sentences: Mapping[str, str] = {}
    confluent_shape: str = ""
    #: the changes that `edit_field` makes
    field_edits: tuple[FieldEdit, ...] = ()
    #: limits for processing a text in this process, in a child process, or not at all
    cost_limits: tuple[cost.CostLimit, ...] = cost.PLAIN_LIMITS

    def __str__(self) -> str:
        return self.title or self.name

    @property
    def file_name(self) -> str:
        """The file name for a text that came without a file."""
        return f"schema{self.file_extensions[0]}"

    @property
    def unavailable(self) -> str:
        """The sentence for people if the format lacks a feature."""
        return f"Not available for {self}."

    def offers(self, method: str) -> bool:
        """Return whether the format overrides a method whose default reports `unavailable`."""
        return getattr(type(self), method) is not getattr(SchemaFormat, method)

    @property
    def lenient(self) -> SchemaFormat:
        """The format under the compatibility policy LENIENT."""
        return self

    # -- what every format has ------------------------------------------------------------------------------------------

    @abstractmethod
    def parse(self, text: str, references: Sequence[ResolvedReference] = (), *, is_new: bool = True) -> ParsedSchema:
        """Parse `text`; raises InvalidSchema, with line and column if known.

        A text that isn't new was accepted before, here or by another registry, perhaps under laxer rules.
        """

    @abstractmethod
    def diff(self, old: ParsedSchema, new: ParsedSchema) -> tuple[Difference, ...]:
        """Return all changes, for people, in the order of the text."""

    @abstractmethod
    def judge(self, reader: ParsedSchema, writer: ParsedSchema) -> Judgement:
        """Return all breaks and hazards of reading the writer's data with the reader."""

    def parsed(
        self, text: str, canonical: str, model: object, references: Sequence[ResolvedReference] = ()
    ) -> ParsedSchema:
        """Build the result of `parse`: `canonical` is equal for equivalent texts, `model` is for the other methods.

        A referenced text counts without canonicalization.
        """
        return ParsedSchema(
            schema_type=self.name,
            text=text,
            canonical=canonical,
            fingerprint=graph_fingerprint(canonical, references, _referenced(references)),
            references=tuple(item.reference for item in references),
            model=model,
        )

    def incompatibilities(self, reader: ParsedSchema, writer: ParsedSchema) -> tuple[Incompatibility, ...]:
        """Return the breaks alone; none means that the reader can read all data of the writer."""
        return self.judge(reader, writer).breaks

    # -- texts ------------------------------------------------------------------------------------------------------------

    def canonical(self, parsed: ParsedSchema) -> str:
        """Return the text whose equality means "the same schema"."""
        return parsed.canonical

    def normalize(self, parsed: ParsedSchema) -> str:
        """Return the text that `normalize=true` registers, equal for schemas that differ only in irrelevant order."""
        return parsed.canonical

    def self_contained(self, parsed: ParsedSchema) -> str:
        """Return the text with everything it refers to included, for readers that resolve no references."""
        return parsed.canonical

    def readable(self, canonical: str, submitted: str) -> str:
        """Return the text that people read and change: the stored text for JSON, otherwise the submitted text."""
        return canonical if self.is_json else submitted

    def is_encoded(self, text: str) -> bool:
        """Return whether a client sent the schema as bytes, which the form `serialized` returns."""
        return False

    def recognizes(self, text: str) -> bool:
        """Return whether a text without a declared format looks like this one; several formats may match."""
        return False

    def documentation(self, canonical: str) -> str:
        """Return the documentation of the schema as a whole."""
        return ""

    def measures(self, text: str) -> Mapping[str, int]:
        """Return the counts of a text that `cost_limits` names besides characters and references."""
        return {}

    def restricted_name(self, parsed: ParsedSchema) -> str:
        """Return a top-level field name with the prefix RESTRICTED, which `validateFields` rejects; empty if none."""
        return ""

    # -- fields -----------------------------------------------------------------------------------------------------------

    def outline(self, parsed: ParsedSchema) -> tuple[OutlineField, ...]:
        """Return the fields as a flat list, nested ones after their parent."""
        return ()

    def has_top_level_field(self, parsed: ParsedSchema, name: str) -> bool:
        """Return whether the schema has a top-level field with that name."""
        return any(field.depth == 0 and field.name == name for field in self.outline(parsed))

    def descriptor_set(self, parsed: ParsedSchema) -> str:
        """Return what Spark decodes data with if `has_descriptors`."""
        raise InvalidSchema(self.unavailable)

    def record_name(self, parsed: ParsedSchema) -> str:
        """Return the full name that RecordName and TopicRecordName strategies use; empty if the schema has none."""
        return ""

    def tags(self, parsed: ParsedSchema) -> tuple[EntityTags, ...]:
        """Return the tagged records and fields with their tags, in the order of the text."""
        return ()

    def with_tags(self, parsed: ParsedSchema, changes: Sequence[TagChange]) -> str:
        """Return the text with changed tags; raises InvalidSchema for an entity that it doesn't define."""
        raise InvalidSchema(f"Tags in the text: {self.unavailable}")

    def lint(self, parsed: ParsedSchema) -> tuple[LintFinding, ...]:
        """Return advice on the schema alone, warnings first; it affects no verdict."""
        return ()

    def position(self, parsed: ParsedSchema, pointer: str) -> tuple[int, int] | None:
        """Return line and column (from 1) of a pointer's target in the text; None if there is no such place."""
        return None

    # -- edits ------------------------------------------------------------------------------------------------------------

    def repair(
        self, schema: ParsedSchema, other: ParsedSchema, finding: Incompatibility, *, is_reader: bool
    ) -> Edit | None:
        """Return the smallest edit of `schema` that removes the finding against `other`; None if there is no edit.

        `is_reader` says on which side of the finding `schema` is. The edited text parses.
        """
        return None

    def accept_rename(self, old: ParsedSchema, new: ParsedSchema, suspected: Difference) -> Edit | None:
        """Return the edit of `new` that declares a suspected rename (alias, reserved number); None if not possible."""
        return None

    def edit_field(self, schema: ParsedSchema, path: str, edit: FieldEdit) -> Edit:
        """Return the schema with a change of the field at a path of its outline, wherever that declaration is used.

        Raises InvalidSchema, with the reason why the field can't be changed so. The text may not parse.
        """
        raise InvalidSchema(self.unavailable)

    # -- data -------------------------------------------------------------------------------------------------------------

    def truth(self, reader: ParsedSchema, writer: ParsedSchema) -> Truth:
        """Check the real effect on the writer's data by encoding and decoding or by proof; costlier than `judge`."""
        return Truth("unknown", how=f"data checks aren't available for {self}")

    def witness(self, reader: ParsedSchema, writer: ParsedSchema, finding: Incompatibility | None = None) -> Witness:
        """Prove one finding, or (None) any break of the pair; a witness that isn't found says why."""
        return Witness(False, reason=self.unavailable)

    def example(self, parsed: ParsedSchema) -> Any:
        """Return a datum of the schema in the format's JSON form; raises InvalidDatum if none can be made."""
        raise InvalidDatum(self.unavailable)

    def resolve(self, reader: ParsedSchema, writer: ParsedSchema, datum: Any) -> Resolution:
        """Read a writer's datum (in the format's JSON form) with the reader; raises InvalidDatum if it is invalid."""
        raise InvalidDatum(self.unavailable)

    def decode_body(self, schema: ParsedSchema, body: bytes, indexes: tuple[int, ...] | None = None) -> DecodedBody:
        """Decode a message body. Raises InvalidDatum with the byte or the place. `indexes`: see BodyReplay."""
        raise InvalidDatum(self.unavailable)

    def replay_of(self, reader: ParsedSchema, writer: ParsedSchema) -> BodyReplay:
        """Return a function that reads the writer's bodies with the reader. Raises InvalidDatum if unavailable."""
        raise InvalidDatum(self.unavailable)


def _referenced(references: Sequence[ResolvedReference]) -> Iterable[tuple[ResolvedReference, str]]:
    """Return each referenced text once, after its own references."""
    seen: set[tuple[str, int, str]] = set()

    def visit(items: Sequence[ResolvedReference]) -> Iterable[tuple[ResolvedReference, str]]:
        for item in items:
            key = (item.subject, item.version, item.text)
            if key not in seen:
                seen.add(key)
                yield from visit(item.references)
                yield item, item.text

    return visit(references)


def json_documentation(text: str, *names: str) -> str:
    """Return the joined texts under the names at the root of a JSON schema; empty if it isn't a JSON object."""
    try:
        root = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return " ".join(root[name] for name in names if isinstance(root.get(name), str)) if isinstance(root, dict) else ""


class UnregisteredFormat(SchemaFormat):
    """A placeholder for the format of stored schemas that this server doesn't know (any more)."""

    def __init__(self, name: str) -> None:
        self.name = name

    def parse(self, text: str, references: Sequence[ResolvedReference] = (), *, is_new: bool = True) -> ParsedSchema:
        """Raise InvalidSchema."""
        known = ", ".join(sorted(FORMATS))
        raise InvalidSchema(f"Invalid schema type {self.name[:40]!r}: this server knows {known}.")

    def diff(self, old: ParsedSchema, new: ParsedSchema) -> tuple[Difference, ...]:
        """Raise InvalidSchema."""
        raise InvalidSchema(self.unavailable)

    def judge(self, reader: ParsedSchema, writer: ParsedSchema) -> Judgement:
        """Raise InvalidSchema."""
        raise InvalidSchema(self.unavailable)


#: the formats that this server knows, by name
FORMATS: Final[dict[str, SchemaFormat]] = {}
#: dotted paths of formats besides the built-in ones, for child processes
loaded_paths: Final[list[str]] = []


def format_of(name: str) -> SchemaFormat:
    """Return the format with that name; an UnregisteredFormat if it is unknown."""
    return FORMATS.get(name) or UnregisteredFormat(name)


def format_of_file(file_name: str, default: str) -> str:
    """Return the name of the only format with the file's suffix; `default` if none or several have it."""
    names = [item.name for item in FORMATS.values() if file_name.lower().endswith(item.file_extensions)]
    return names[0] if len(names) == 1 else default


def format_of_suffix(suffix: str) -> str:
    """Return the name of the format whose usual suffix it is (`.json` is JSON Schema); Avro if there is none."""
    return next((item.name for item in FORMATS.values() if item.file_extensions[0] == suffix), DEFAULT_FORMAT)


def register(format: SchemaFormat) -> None:
    """Add a format. Raises TypeError if it isn't one, ValueError if its name is invalid or taken."""
    if not isinstance(format, SchemaFormat):
        raise TypeError(f"{format!r} is not a SchemaFormat. Register an instance of a subclass.")
    if not _NAME.fullmatch(format.name):
        raise ValueError(f"{format.name!r} is not a format name: use up to 16 capitals, digits and underscores.")
    if type(FORMATS.get(format.name, format)) is not type(format):
        raise ValueError(f"The format name {format.name} is taken by {FORMATS[format.name]!r}.")
    FORMATS[format.name] = format
    cost.LIMITS[format.name], cost.MEASURES[format.name] = format.cost_limits, format.measures


def load_formats(paths: Iterable[str], *, installed: bool = True) -> None:
    """Register the formats at the dotted paths (`package.module.NAME`) and, if `installed`, those of installed
    packages.

    Raises TypeError or ValueError; the ValueError for a failed import names the path.
    """
    offered = [point.value for point in entry_points(group=ENTRY_POINTS)] if installed else []
    for path in dict.fromkeys((*paths, *offered)):
        try:
            format = pkgutil.resolve_name(path)
        except (ImportError, AttributeError, ValueError) as error:
            message = f"The schema format {path} can't be loaded: {error}. Check SCHEMA_FORMATS and PYTHONPATH."
            raise ValueError(message) from error
        register(format)
        if path not in loaded_paths:
            loaded_paths.append(path)
