"""The statements of a .proto text as they were written: names unresolved, values unread, in their order.

The compiler's descriptors say what a schema means; these say how it was spelt, which decides the text that is stored.
What stands for a place is the index of a character in the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

OptionKind = Literal["string", "boolean", "number", "enum", "map", "list", "option"]


@dataclass(slots=True)
class StringValue:
    """A string and its source; one that isn't exact holds escapes that its characters alone can't be told from."""

    text: str
    source: str
    is_exact: bool = True


@dataclass(slots=True)
class Primitive:
    """A word inside of an aggregate value: a number, a boolean, or the name of an enum's value."""

    kind: OptionKind
    text: str


@dataclass(slots=True)
class Option:
    """An option; `value` is a `StringValue`, a word, a dict, a list, or the option that the next part of the name sets."""

    name: str
    kind: OptionKind
    value: Any
    is_custom: bool = False
    start: int = -1
    end: int = -1
    name_start: int = -1

    @property
    def parts(self) -> tuple[str, ...]:
        """The name with those inside of it, custom ones in parentheses."""
        own = f"({self.name})" if self.is_custom else self.name
        return (own, *self.value.parts) if self.kind == "option" else (own,)


@dataclass(slots=True)
class Range:
    """Numbers from one to another, both inclusive."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}..{self.last}"


@dataclass(slots=True)
class ReservedNames:
    """A `reserved` or `extensions` statement: names (those of editions as words), numbers, ranges in their order."""

    values: list[Any]
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class FieldStatement:
    """A field; places are those of its statement, of its type and of its options with their brackets."""

    label: str
    type: str
    name: str
    number: int
    default: Option | None = None
    json_name: Option | None = None
    options: list[Option] = field(default_factory=list)
    in_brackets: list[Option] = field(default_factory=list)
    start: int = -1
    type_start: int = -1
    type_end: int = -1
    options_span: tuple[int, int] = (-1, -1)


@dataclass(slots=True)
class Group:
    """A group of proto2: a field and a message in one."""

    label: str
    number: int
    message: MessageStatement
    options: list[Option] = field(default_factory=list)
    options_span: tuple[int, int] = (-1, -1)
    start: int = -1

    @property
    def name(self) -> str:
        """The name of the message."""
        return self.message.name


@dataclass(slots=True)
class OneofStatement:
    """A oneof."""

    name: str
    fields: list[FieldStatement] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Extend:
    """An `extend` statement."""

    name: str
    fields: list[FieldStatement] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    name_start: int = -1


@dataclass(slots=True)
class EnumValue:
    """A value of an enum."""

    name: str
    number: int
    options: list[Option] = field(default_factory=list)
    options_span: tuple[int, int] = (-1, -1)


@dataclass(slots=True)
class EnumStatement:
    """An enum; `visibility` is `export`, `local` or nothing."""

    name: str
    visibility: str = ""
    values: list[EnumValue] = field(default_factory=list)
    reserved: list[ReservedNames] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class MessageStatement:
    """A message; `visibility` is `export`, `local` or nothing."""

    name: str
    visibility: str = ""
    fields: list[FieldStatement] = field(default_factory=list)
    oneofs: list[OneofStatement] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    types: list[MessageStatement | EnumStatement] = field(default_factory=list)
    extensions: list[ReservedNames] = field(default_factory=list)
    reserved: list[ReservedNames] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    start: int = -1
    end: int = -1

    @property
    def is_map_entry(self) -> bool:
        """Whether it says that it is the entry of a map, as texts made of descriptors do."""
        return any(item.name == "map_entry" and item.value == "true" for item in self.options)

    def all_fields(self) -> Iterator[FieldStatement]:
        """The fields, those of oneofs behind the others."""
        yield from self.fields
        for oneof in self.oneofs:
            yield from oneof.fields

    def all_groups(self) -> Iterator[Group]:
        """The groups, those of oneofs and extensions behind the others."""
        yield from self.groups
        holders: list[OneofStatement | Extend] = [*self.oneofs, *self.extends]
        for part in holders:
            yield from part.groups


@dataclass(slots=True)
class Rpc:
    """A method of a service."""

    name: str
    request: str
    response: str
    is_request_stream: bool = False
    is_response_stream: bool = False
    options: list[Option] = field(default_factory=list)
    request_start: int = -1
    response_start: int = -1


@dataclass(slots=True)
class ServiceStatement:
    """A service."""

    name: str
    rpcs: list[Rpc] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Import:
    """An import; `kind` is "", "public", "weak" or "option"."""

    name: str
    kind: str = ""
    start: int = -1
    end: int = -1


@dataclass(slots=True)
class FileStatements:
    """All statements of a text; `syntax` is None where nothing says it, and `edition` likewise."""

    syntax: str | None = None
    edition: str | None = None
    package: str | None = None
    imports: list[Import] = field(default_factory=list)
    types: list[MessageStatement | EnumStatement] = field(default_factory=list)
    services: list[ServiceStatement] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
