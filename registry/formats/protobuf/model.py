"""A Protobuf schema as the engine sees it: lean objects, made once from the compiler's descriptors.

Pointers lead through names and numbers (`/messages/Order/fields/3`), not through places in the text, so that they
stay the same when declarations move. An element of an imported file carries the import path of that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from registry.formats.base import ResolvedReference
from registry.formats.protobuf.statements import FileStatements

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
    """An enum; `by_number` holds the first name of each number, `numbers` the number of each name."""

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

    `label` is what the text says: empty for members of a oneof, maps, and singular fields of proto3 and editions.
    `default` is the value that a reader gets where the data hold none, None for repeated fields and messages;
    `declared_default` is the text after `default =`, None where there is none.
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
        """Whether the text says `map<…>`."""
        return self.is_repeated and self.message is not None and self.message.is_map_entry

    @property
    def shown_name(self) -> str:
        """The name for people: an extension in brackets, as the text format writes it."""
        return f"[{self.name}]" if self.is_extension else self.name


@dataclass(frozen=True, slots=True)
class Oneof:
    """A oneof as the text declares it: the one that an `optional` of proto3 makes is none."""

    name: str
    pointer: str
    numbers: tuple[int, ...]
    options: Mapping[str, str]
    doc: str


@dataclass(slots=True, eq=False)
class Message:
    """A message; `local_name` is the full name without the package, `extended` the known extensions of it."""

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
        """The field or known extension of that number."""
        return self.by_number.get(number) or self.extended.get(number)

    def is_reserved(self, number: int) -> bool:
        """Whether the number is reserved; ends of ranges are inclusive."""
        return any(first <= number <= last for first, last in self.reserved)


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a service: full names of what goes in and out, and which of the two are streams."""

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
    """One .proto file; `source` is None for the schema itself, the import path for what it imports.

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
    """A compiled schema: its file, all messages and enums that can be reached by full name, and the descriptors.

    `text` is the .proto text that was compiled, also where base64 was submitted; `column_shift` is what was put in
    front of its first line. `statements` are those of the text; `missing_types` are names in it that nothing declares,
    which stand for empty messages; `earlier` is the descriptor that earlier releases read, None for what they refused.
    `cache` keeps what was worked out once. `protos` are the descriptors in the order of their imports, the schema's own last; `references` what was
    given with the text.
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
    """A field's type as the text writes it, without the label."""
    if field.is_map and field.message is not None:
        key, value = field.message.by_number[1], field.message.by_number[2]
        return f"map<{key.kind}, {type_label(value)}>"
    if field.kind == "group":
        return f"group {field.type_name.rpartition('.')[2]}"
    return field.type_name or field.kind


def full_label(field: Field) -> str:
    """A field's type with its label."""
    label = "repeated" if field.is_repeated and not field.is_map else field.label
    return f"{label} {type_label(field)}".strip()
