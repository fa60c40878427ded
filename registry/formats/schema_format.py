"""What a format can do: one class for each format, with a default for all that a format may leave out.

Code outside the formats asks the format instead of looking at its name. A format has `parse`, `diff` and `judge`. What
it doesn't have says so: `unavailable` is the sentence for people, and `truth` answers "unknown", never "yes".
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
#: the group of entry points under which installed packages offer formats
ENTRY_POINTS: Final = "schemadesk.formats"
#: what the name of no field may begin with where `validateFields` is set
RESTRICTED: Final = "$$"
_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{0,15}")


class SchemaFormat(ABC):
    """A format. All methods are pure; `parse` raises InvalidSchema or InvalidReference.

    Of the others, those that make or read data raise InvalidDatum, and `with_tags` InvalidSchema.
    """

    #: the registry's name of the format: up to 16 capitals, digits and underscores, the first a capital
    name: str
    #: the name for people; without one, `name`
    title: str = ""
    #: suffixes of its files with the dot, the usual one first
    file_extensions: tuple[str, ...] = (".txt",)
    #: whether its texts are JSON, which is laid out for people and answered as application/json
    is_json: bool = False
    #: whether a schema may refer to others
    has_references: bool = False
    #: whether the bytes of a message begin with a path of indexes to its type
    has_message_indexes: bool = False
    #: whether Spark decodes data by `descriptor_set`, not by the self-contained text
    has_descriptors: bool = False
    #: whether Spark's `from_avro` reads data of it into rows, whose types a streaming state keeps
    has_spark_rows: bool = False
    #: why no schema is proposed from the data that a scan saw
    why_not_proposed: str = "the format can't be written from data"
    #: whether data can be read that the schema forbids, so that drift compares it with the declared fields
    has_value_rules: bool = False
    #: whether a union in the JSON form of data names the branch that was taken
    has_named_branches: bool = False
    #: whether its fields are called properties
    has_properties: bool = False
    #: whether any type of a schema may be the one that data is written with, not only the first
    has_many_roots: bool = False
    #: other forms of the text that clients may ask for: the form → the method that writes it
    forms: Mapping[str, str] = {}
    #: the name of a schema, found in its text without reading it
    name_pattern: re.Pattern[str] | None = None
    #: Confluent's sentences by `kind` of a finding, and how its registry writes one
    confluent_sentences: Mapping[str, str] = {}
    confluent_shape: str = ""
    #: what of a text is read here, in a process of its own, or never
    cost_limits: tuple[cost.CostLimit, ...] = cost.PLAIN_LIMITS

    def __str__(self) -> str:
        return self.title or self.name

    @property
    def file_name(self) -> str:
        """What a text that came without a file is called."""
        return f"schema{self.file_extensions[0]}"

    @property
    def unavailable(self) -> str:
        """What is said for people where the format can't do something."""
        return f"Not available for {self}."

    def offers(self, method: str) -> bool:
        """Whether the format has a method of its own, in place of the default that says `unavailable`."""
        return getattr(type(self), method) is not getattr(SchemaFormat, method)

    @property
    def lenient(self) -> SchemaFormat:
        """The format under the compatibility policy LENIENT."""
        return self

    # -- what every format has ------------------------------------------------------------------------------------------

    @abstractmethod
    def parse(self, text: str, references: Sequence[ResolvedReference] = (), *, is_new: bool = True) -> ParsedSchema:
        """The schema in `text`; raises InvalidSchema, with line and column where known.

        What isn't new (`is_new` False) was accepted once, here or by another registry, maybe by milder rules.
        """

    @abstractmethod
    def diff(self, old: ParsedSchema, new: ParsedSchema) -> tuple[Difference, ...]:
        """All changes, for people, in the order of the text."""

    @abstractmethod
    def judge(self, reader: ParsedSchema, writer: ParsedSchema) -> Judgement:
        """All breaks and hazards of reading the writer's data with the reader."""

    def parsed(
        self, text: str, canonical: str, model: object, references: Sequence[ResolvedReference] = ()
    ) -> ParsedSchema:
        """What `parse` returns: `canonical` is equal for texts that mean the same, `model` what the other methods read.

        A referenced text counts as it is.
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
        """The breaks alone: empty means that the reader can read all data of the writer."""
        return self.judge(reader, writer).breaks

    # -- texts ------------------------------------------------------------------------------------------------------------

    def canonical(self, parsed: ParsedSchema) -> str:
        """The text whose equality means "the same schema"."""
        return parsed.canonical

    def normalize(self, parsed: ParsedSchema) -> str:
        """The text that `normalize=true` registers, equal for schemas that differ in irrelevant order alone."""
        return parsed.canonical

    def self_contained(self, parsed: ParsedSchema) -> str:
        """The text with everything that it refers to inside, for readers that resolve no references."""
        return parsed.canonical

    def readable(self, canonical: str, submitted: str) -> str:
        """The text that people read and change: of JSON what is stored, of other texts what was sent."""
        return canonical if self.is_json else submitted

    def is_encoded(self, text: str) -> bool:
        """Whether a client sent the schema as bytes, which the form `serialized` returns."""
        return False

    def recognizes(self, text: str) -> bool:
        """Whether a text that comes without its format looks like this one; several formats may say so."""
        return False

    def documentation(self, canonical: str) -> str:
        """What a schema says of itself as a whole."""
        return ""

    def measures(self, text: str) -> Mapping[str, int]:
        """The counts of a text that `cost_limits` name beside characters and references."""
        return {}

    def restricted_name(self, parsed: ParsedSchema) -> str:
        """A field of the schema itself that begins as RESTRICTED, which Confluent's `validateFields` refuses; or empty."""
        return ""

    # -- fields -----------------------------------------------------------------------------------------------------------

    def outline(self, parsed: ParsedSchema) -> tuple[OutlineField, ...]:
        """The fields as a flat list, nested ones after their parent."""
        return ()

    def has_top_level_field(self, parsed: ParsedSchema, name: str) -> bool:
        """Whether the schema itself, not one inside of it, has a field of that name."""
        return any(field.depth == 0 and field.name == name for field in self.outline(parsed))

    def descriptor_set(self, parsed: ParsedSchema) -> str:
        """What Spark decodes data with where `has_descriptors`."""
        raise InvalidSchema(self.unavailable)

    def record_name(self, parsed: ParsedSchema) -> str:
        """The full name that the strategies RecordName and TopicRecordName take; empty where the schema has none."""
        return ""

    def tags(self, parsed: ParsedSchema) -> tuple[EntityTags, ...]:
        """The tagged records and fields with their tags, in the order of the text."""
        return ()

    def with_tags(self, parsed: ParsedSchema, changes: Sequence[TagChange]) -> str:
        """The text with changed tags; raises InvalidSchema for an entity that it doesn't define."""
        raise InvalidSchema(f"Tags in the text: {self.unavailable}")

    def lint(self, parsed: ParsedSchema) -> tuple[LintFinding, ...]:
        """Advice on the schema alone, warnings first; none of it decides anything."""
        return ()

    def position(self, parsed: ParsedSchema, pointer: str) -> tuple[int, int] | None:
        """Line and column (from 1) in the text of what a pointer leads to, None where the text has no such place."""
        return None

    # -- edits ------------------------------------------------------------------------------------------------------------

    def repair(
        self, schema: ParsedSchema, other: ParsedSchema, finding: Incompatibility, *, is_reader: bool
    ) -> Edit | None:
        """The smallest edit of `schema` that removes the finding against `other`; None where there is none.

        `is_reader` says on which side of the finding `schema` is. The edited text parses.
        """
        return None

    def accept_rename(self, old: ParsedSchema, new: ParsedSchema, suspected: Difference) -> Edit | None:
        """The edit of `new` that makes a suspected rename a known one (an alias, a reserved number); None if none."""
        return None

    # -- data -------------------------------------------------------------------------------------------------------------

    def truth(self, reader: ParsedSchema, writer: ParsedSchema) -> Truth:
        """What really happens to the writer's data, by encoding and decoding or by proof; costlier than `judge`."""
        return Truth("unknown", how=f"data checks aren't available for {self}")

    def witness(self, reader: ParsedSchema, writer: ParsedSchema, finding: Incompatibility | None = None) -> Witness:
        """Proof of one finding, or (None) of any break of the pair; one that isn't found says why."""
        return Witness(False, reason=self.unavailable)

    def example(self, parsed: ParsedSchema) -> Any:
        """A datum of the schema in the format's JSON form; raises InvalidDatum where none can be made."""
        raise InvalidDatum(self.unavailable)

    def resolve(self, reader: ParsedSchema, writer: ParsedSchema, datum: Any) -> Resolution:
        """What the reader makes of a datum (the format's JSON form); raises InvalidDatum if it isn't the writer's."""
        raise InvalidDatum(self.unavailable)

    def decode_body(self, schema: ParsedSchema, body: bytes, indexes: tuple[int, ...] | None = None) -> DecodedBody:
        """The body of a message. Raises InvalidDatum, which names the byte or the place. `indexes`: see BodyReplay."""
        raise InvalidDatum(self.unavailable)

    def replay_of(self, reader: ParsedSchema, writer: ParsedSchema) -> BodyReplay:
        """Reads bodies of the writer with the reader. Raises InvalidDatum where the format can't."""
        raise InvalidDatum(self.unavailable)


def _referenced(references: Sequence[ResolvedReference]) -> Iterable[tuple[ResolvedReference, str]]:
    """Each referenced text once, after those that it refers to itself."""
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
    """Those texts at the root of a JSON schema; empty where the text is no JSON object."""
    try:
        root = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return " ".join(root[name] for name in names if isinstance(root.get(name), str)) if isinstance(root, dict) else ""


class UnregisteredFormat(SchemaFormat):
    """Stands for the format of stored schemas that this server doesn't know (any more): nothing of it can be read."""

    def __init__(self, name: str) -> None:
        self.name = name

    def parse(self, text: str, references: Sequence[ResolvedReference] = (), *, is_new: bool = True) -> ParsedSchema:
        """Raises InvalidSchema."""
        known = ", ".join(sorted(FORMATS))
        raise InvalidSchema(f"Invalid schema type {self.name[:40]!r}: this server knows {known}.")

    def diff(self, old: ParsedSchema, new: ParsedSchema) -> tuple[Difference, ...]:
        """Raises InvalidSchema, as `judge` does."""
        raise InvalidSchema(self.unavailable)

    def judge(self, reader: ParsedSchema, writer: ParsedSchema) -> Judgement:
        """Raises InvalidSchema."""
        raise InvalidSchema(self.unavailable)


#: the formats that this server knows, by name
FORMATS: Final[dict[str, SchemaFormat]] = {}
#: dotted paths of formats beside the built-in ones, for the processes that this one starts
loaded_paths: Final[list[str]] = []


def format_of(name: str) -> SchemaFormat:
    """The format of that name; one that isn't registered is an UnregisteredFormat."""
    return FORMATS.get(name) or UnregisteredFormat(name)


def format_of_file(file_name: str, default: str) -> str:
    """The name of the one format whose files end so; `default` where none or several do."""
    names = [item.name for item in FORMATS.values() if file_name.lower().endswith(item.file_extensions)]
    return names[0] if len(names) == 1 else default


def format_of_suffix(suffix: str) -> str:
    """The name of the format whose files usually end so (`.json` is a JSON Schema's); Avro's where none does."""
    return next((item.name for item in FORMATS.values() if item.file_extensions[0] == suffix), DEFAULT_FORMAT)


def register(format: SchemaFormat) -> None:
    """Add a format. Raises TypeError or ValueError for what is none, or has a name that is taken or can't be one."""
    if not isinstance(format, SchemaFormat):
        raise TypeError(f"{format!r} is not a SchemaFormat. Register an instance of a subclass.")
    if not _NAME.fullmatch(format.name):
        raise ValueError(f"{format.name!r} is not a format name: use up to 16 capitals, digits and underscores.")
    if type(FORMATS.get(format.name, format)) is not type(format):
        raise ValueError(f"The format name {format.name} is taken by {FORMATS[format.name]!r}.")
    FORMATS[format.name] = format
    cost.LIMITS[format.name], cost.MEASURES[format.name] = format.cost_limits, format.measures


def load_formats(paths: Iterable[str], *, installed: bool = True) -> None:
    """Register the formats at those dotted paths (`package.module.NAME`) and, with `installed`, of installed packages.

    Raises TypeError or ValueError, which name the path.
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
