"""The model of a Protobuf schema: small objects made once from descriptors, scalar types, and lookup by pointer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from registry.formats.base import ResolvedReference
from registry.formats.json_pointer import unescape
from registry.formats.protobuf.text.statements import FileStatements

Kind = Literal[
    "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group", "message", "bytes",
    "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64",
]  # fmt: skip
Label = Literal["", "optional", "required", "repeated"]

KINDS: Final[Mapping[int, Kind]] = {
    1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32", 8: "bool", 9: "string",
    10: "group", 11: "message", 12: "bytes", 13: "uint32", 14: "enum", 15: "sfixed32", 16: "sfixed64", 17: "sint32",
    18: "sint64",
}  # fmt: skip
MAX_FIELD_NUMBER: Final = 2**29 - 1


@dataclass(slots=True, eq=False)
class Enum:
    """An enum; `by_number` maps each number to its first name, `numbers` each name to its number."""

    full_name: str
    local_name: str
    pointer: str
    source: str | None
    by_number: dict[int, str]
    numbers: dict[str, int]
    is_closed: bool
    reserved: tuple[tuple[int, int], ...]
    reserved_names: frozenset[str]
    options: Mapping[str, str]
    value_options: Mapping[str, Mapping[str, str]]
    doc: str
    value_docs: Mapping[str, str]

    @property
    def name(self) -> str:
        """The simple name."""
        return self.full_name.rpartition(".")[2]


@dataclass(slots=True, eq=False)
class Field:
    """A field of a message, or an extension of it.

    `label` is as in the text: empty for members of a oneof, maps, and singular fields of proto3 and editions. `default`
    is the value that a reader gets for missing data, None for repeated fields and messages. `declared_default` is the
    text after `default =`, None if there is none.
    """

    name: str
    number: int
    kind: Kind
    label: Label
    is_repeated: bool
    is_required: bool
    has_presence: bool
    is_packed: bool
    json_name: str
    oneof: str | None
    type_name: str
    default: Any
    declared_default: str | None
    pointer: str
    source: str | None
    options: Mapping[str, str]
    doc: str
    is_extension: bool = False
    message: Message | None = field(default=None, repr=False)
    enum: Enum | None = field(default=None, repr=False)

    @property
    def is_map(self) -> bool:
        """Whether the field is declared as `map<…>`."""
        return self.is_repeated and self.message is not None and self.message.is_map_entry

    @property
    def shown_name(self) -> str:
        """The name for people: an extension is in brackets, as in the text format."""
        return f"[{self.name}]" if self.is_extension else self.name

    def accepts_json_of(self, writer: Field) -> bool:
        """Return whether a reader with this field accepts the JSON value of a writer with the other one.

        Parsers accept the JSON name and the field name; an extension has its own name in JSON.
        """
        if self.is_extension or writer.is_extension:
            return self.name == writer.name
        return writer.json_name in (self.json_name, self.name)


@dataclass(frozen=True, slots=True)
class Oneof:
    """A oneof that the text declares, not the one that an `optional` of proto3 generates."""

    name: str
    pointer: str
    numbers: tuple[int, ...]
    options: Mapping[str, str]
    doc: str


@dataclass(slots=True, eq=False)
class Message:
    """A message; `local_name` is the full name without the package, `extended` its known extensions."""

    full_name: str
    local_name: str
    pointer: str
    source: str | None
    fields: tuple[Field, ...]
    by_number: dict[int, Field]
    oneofs: dict[str, Oneof]
    messages: dict[str, Message]
    enums: dict[str, Enum]
    extensions: tuple[Field, ...]
    reserved: tuple[tuple[int, int], ...]
    reserved_names: frozenset[str]
    extension_ranges: tuple[tuple[int, int], ...]
    options: Mapping[str, str]
    doc: str
    is_map_entry: bool
    is_group: bool = False
    extended: dict[int, Field] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The simple name."""
        return self.full_name.rpartition(".")[2]

    def numbered(self, number: int) -> Field | None:
        """Return the field or known extension with that number."""
        return self.by_number.get(number) or self.extended.get(number)

    def is_reserved(self, number: int) -> bool:
        """Return whether the number is reserved; ends of ranges are inclusive."""
        return any(first <= number <= last for first, last in self.reserved)


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a service: the full names of request and response, and which of them are streams."""

    name: str
    pointer: str
    request: str
    response: str
    is_client_streaming: bool
    is_server_streaming: bool
    options: Mapping[str, str]
    doc: str


@dataclass(frozen=True, slots=True)
class Service:
    """A service with its methods by name."""

    name: str
    pointer: str
    methods: Mapping[str, Method]
    options: Mapping[str, str]
    doc: str


@dataclass(slots=True, eq=False)
class File:
    """One .proto file; `source` is None for the schema itself, the import path for an imported file.

    `imports` maps a path to "", "public", "weak" or "option".
    """

    name: str
    source: str | None
    package: str
    syntax: str
    imports: dict[str, str]
    messages: dict[str, Message]
    enums: dict[str, Enum]
    extensions: tuple[Field, ...]
    services: dict[str, Service]
    options: Mapping[str, str]


@dataclass(slots=True, eq=False, weakref_slot=True)
class Schema:
    """A compiled schema: its file, all reachable messages and enums by full name, and the descriptors.

    `text` is the compiled .proto text, even if base64 was submitted; `column_shift` is the length of the prefix in its
    first line. `statements` are those of the text. `missing_types` are names that nothing declares; they count as empty
    messages. `earlier` is the descriptor that earlier releases read, None if they rejected it. `cache` has computed
    values. `protos` are the descriptors in the order of their imports, the schema's own last. `references` are those
    submitted with the text.
    """

    text: str
    is_encoded: bool
    column_shift: int
    main: File
    files: dict[str, File]
    messages: dict[str, Message]
    enums: dict[str, Enum]
    protos: tuple[FileDescriptorProto, ...] = field(repr=False)
    references: tuple[ResolvedReference, ...] = field(repr=False)
    pool: DescriptorPool = field(repr=False)
    statements: FileStatements = field(default_factory=FileStatements, repr=False)
    missing_types: tuple[str, ...] = ()
    earlier: FileDescriptorProto | None = field(default=None, repr=False)
    cache: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def proto(self) -> FileDescriptorProto:
        """The descriptor of the schema itself, with source information."""
        return self.protos[-1]


def type_label(field: Field) -> str:
    """Return a field's type as in the text, without the label."""
    if field.is_map and field.message is not None:
        key, value = field.message.by_number[1], field.message.by_number[2]
        return f"map<{key.kind}, {type_label(value)}>"
    if field.kind == "group":
        return f"group {field.type_name.rpartition('.')[2]}"
    return field.type_name or field.kind


def full_label(field: Field) -> str:
    """Return a field's type with its label."""
    label = "repeated" if field.is_repeated and not field.is_map else field.label
    return f"{label} {type_label(field)}".strip()


# Types of one group are compatible in Confluent's registry, even if their values change.
GROUPS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool", "enum"), "number"),
    **dict.fromkeys(("sint32", "sint64"), "signed"),
    **dict.fromkeys(("string", "bytes"), "text"),
    **dict.fromkeys(("fixed32", "sfixed32"), "fixed32"),
    **dict.fromkeys(("fixed64", "sfixed64"), "fixed64"),
    "float": "float",
    "double": "double",
}

RANGES: Final[Mapping[str, tuple[int, int]]] = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), (-(2**31), 2**31 - 1)),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), (-(2**63), 2**63 - 1)),
    **dict.fromkeys(("uint32", "fixed32"), (0, 2**32 - 1)),
    **dict.fromkeys(("uint64", "fixed64"), (0, 2**64 - 1)),
    "bool": (0, 1),
}


def is_narrowing(writer: Field, reader: Field) -> bool:
    """Return whether a value of one type changes in another type of its group; bytes and enum values excepted."""
    if writer.kind == reader.kind:
        return False
    if GROUPS.get(writer.kind) != GROUPS.get(reader.kind):
        return False
    written = _written(writer)
    if written is None:
        return False
    low, high = written
    if reader.enum is not None and reader.enum.is_closed:
        return high - low > 1 or not {low, high} <= reader.enum.by_number.keys()
    reader_low, reader_high = RANGES["int32"] if reader.enum is not None else RANGES[reader.kind]
    return low < reader_low or high > reader_high


def _written(field: Field) -> tuple[int, int] | None:
    """Return the smallest and the largest number that a field can be written with."""
    if field.enum is not None and not field.enum.is_closed:
        return RANGES["int32"]
    if field.enum is not None:
        return min(field.enum.by_number), max(field.enum.by_number)
    return RANGES.get(field.kind)


def message_at(schema: Schema, pointer: str) -> Message | None:
    """Return the message of the schema's own file at or around a pointer's target."""
    parts = [unescape(part) for part in pointer.split("/")[1:]]
    message: Message | None = None
    inside = schema.main.messages
    while len(parts) >= 2 and parts[0] == "messages":
        message = inside.get(parts[1])
        if message is None:
            return None
        inside, parts = message.messages, parts[2:]
    return message


def holder_at(schema: Schema, pointer: str) -> Message | None:
    """Return the message that contains the field, oneof or value at a pointer."""
    return message_at(schema, pointer)


def field_at(schema: Schema, pointer: str) -> Field | None:
    """Return the field of the schema's own file at a pointer."""
    holder, kind, rest = pointer.rpartition("/fields/")
    message = message_at(schema, holder) if kind else None
    number = rest.split("/")[0]
    return message.by_number.get(int(number)) if message is not None and number.isdigit() else None


def message_of(schema: Schema, like: Message | None) -> Message | None:
    """Return the schema's own message with the same name as another's."""
    return None if like is None else message_of_name(schema, like.local_name)


def message_of_name(schema: Schema, local_name: str) -> Message | None:
    """Return the schema's own message with that name without the package."""
    return next((m for m in schema.messages.values() if m.source is None and m.local_name == local_name), None)


_PACKAGES: Final = ("google.protobuf.", "google.type.", "confluent.type.")
# A wrapper means only its value, whose changes the data shows.
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


def is_reinterpreted(theirs: Message, ours: Message) -> bool:
    """Return whether both are well-known types with different meanings."""
    names = theirs.full_name, ours.full_name
    return (
        names[0] != names[1] and all(name.startswith(_PACKAGES) for name in names) and not _WRAPPERS.issuperset(names)
    )
