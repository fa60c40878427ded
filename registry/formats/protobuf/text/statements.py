"""The statements of a .proto text as written, in order and with unresolved names; and the cursor that reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

OptionKind = Literal["string", "boolean", "number", "enum", "map", "list", "option"]


@dataclass(slots=True)
class StringValue:
    """A string and its source; if not `is_exact`, the source has escapes that the characters alone can't reproduce."""

    text: str
    source: str
    is_exact: bool = True


@dataclass(slots=True)
class Primitive:
    """A word inside an aggregate value: a number, a boolean, or the name of an enum value."""

    kind: OptionKind
    text: str


@dataclass(slots=True)
class Option:
    """An option; `value` is a StringValue, a word, a dict, a list, or the option for the next part of the name."""

    name: str
    kind: OptionKind
    value: Any
    is_custom: bool = False
    start: int = -1
    end: int = -1
    name_start: int = -1

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the option and of its nested options, custom ones in parentheses."""
        own = f"({self.name})" if self.is_custom else self.name
        return (own, *self.value.parts) if self.kind == "option" else (own,)


@dataclass(slots=True)
class Range:
    """A range of numbers, both ends inclusive."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}..{self.last}"


@dataclass(slots=True)
class ReservedNames:
    """A `reserved` or `extensions` statement: names (words in editions), numbers and ranges in their order."""

    values: list[Any]
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class FieldStatement:
    """A field, with the places of its statement, of its type and of its options with brackets."""

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
    """An enum; `visibility` is `export`, `local` or empty."""

    name: str
    visibility: str = ""
    values: list[EnumValue] = field(default_factory=list)
    reserved: list[ReservedNames] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class MessageStatement:
    """A message; `visibility` is `export`, `local` or empty."""

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
        """Whether it declares itself a map entry, as in texts from descriptors."""
        return any(item.name == "map_entry" and item.value == "true" for item in self.options)

    def all_fields(self) -> Iterator[FieldStatement]:
        """Yield the fields, those of oneofs last."""
        yield from self.fields
        for oneof in self.oneofs:
            yield from oneof.fields

    def all_groups(self) -> Iterator[Group]:
        """Yield the groups, those of oneofs and extensions last."""
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
    """An import statement; `kind` is "", "public", "weak" or "option"."""

    name: str
    kind: str = ""
    start: int = -1
    end: int = -1


@dataclass(slots=True)
class FileStatements:
    """All statements of a text; `syntax` and `edition` are None if not declared."""

    syntax: str | None = None
    edition: str | None = None
    package: str | None = None
    imports: list[Import] = field(default_factory=list)
    types: list[MessageStatement | EnumStatement] = field(default_factory=list)
    services: list[ServiceStatement] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


_BLANK: Final = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z0-9_.\-]+")
_PART: Final = re.compile(r"[A-Za-z0-9_\-]+")
_QUOTED: Final = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'")
_ESCAPE: Final = re.compile(r"\\(?:[xX]([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))")
_LETTERS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
#: letters whose escape the compiler reads as a Unicode character
_UNICODE: Final = frozenset("uU")
#: characters with a letter escape, which can be written in only one way
_NAMED: Final = frozenset("\a\b\f\n\r\t\v")


class UnreadableText(Exception):
    """The text isn't in the supported grammar; the compiler reports what is wrong with it."""


class Cursor:
    """A reader that moves forward through one text; raises UnreadableText for anything unexpected."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 1 if text.startswith("\ufeff") else 0

    def skip(self) -> int:
        """Skip blanks and comments, and return the place after them."""
        match = _BLANK.match(self.text, self.place)
        if match is not None:
            self.place = match.end()
        return self.place

    def at_end(self) -> bool:
        """Return whether only blanks and comments are left."""
        return self.skip() >= len(self.text)

    def peek(self) -> str:
        """Return the next character that isn't blank or in a comment."""
        if self.at_end():
            raise UnreadableText("the text ends too early")
        return self.text[self.place]

    def take(self, sign: str) -> bool:
        """Read the character if it is next, and return whether it was."""
        if self.peek() != sign:
            return False
        self.place += 1
        return True

    def need(self, sign: str) -> None:
        """Read the character."""
        if not self.take(sign):
            raise UnreadableText(f"expected {sign!r} at {self.place}")

    def word(self) -> str:
        """Read letters, digits, dots, underscores and hyphens."""
        return self._match(_WORD)

    def part(self) -> str:
        """Read a word without dots."""
        return self._match(_PART)

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.skip())
        if match is None:
            raise UnreadableText(f"expected a word at {self.place}")
        self.place = match.end()
        return match.group()

    def integer(self) -> int:
        """Read an integer, decimal or hexadecimal."""
        word = self.word()
        try:
            return int(word[2:], 16) if word[:2] in ("0x", "0X") else int(word, 10)
        except ValueError:
            raise UnreadableText(f"expected a whole number before {self.place}") from None

    def type(self) -> str:
        """Read the name of a type; a map's has one blank."""
        return self.type_of(self.word())

    def type_of(self, word: str) -> str:
        """Read the rest of a type's name after its first word."""
        if word == "map" and self.peek() == "<":
            self.need("<")
            key = self.type()
            self.need(",")
            value = self.type()
            self.need(">")
            return f"map<{key}, {value}>"
        end = self.place
        while self.peek() == ".":
            self.place += 1
            word += f".{self.word()}"
            end = self.place
        self.place = end
        return word

    def is_string(self) -> bool:
        """Return whether a string is next."""
        return self.peek() in "\"'"

    def string(self) -> StringValue:
        """Read a string, joined with adjacent ones."""
        sources, texts = [], []
        while True:
            match = _QUOTED.match(self.text, self.skip())
            if match is None:
                raise UnreadableText(f"expected a string at {self.place}")
            self.place = match.end()
            sources.append(match.group())
            texts.append(match.group(1) if match.group(1) is not None else match.group(2))
            if self.at_end() or not self.is_string():
                break
        escapes = [escape for text in texts for escape in _ESCAPE.finditer(text)]
        return StringValue(
            "".join(_ESCAPE.sub(_unescaped, text) for text in texts),
            " ".join(sources),
            is_exact=all(_is_exact(escape) for escape in escapes),
        )


def _unescaped(match: re.Match[str]) -> str:
    hexadecimal, octal, other = match.groups()
    if hexadecimal is not None:
        return chr(int(hexadecimal, 16))
    if octal is not None:
        return chr(int(octal, 8))
    return _LETTERS.get(other, other)


def _is_exact(match: re.Match[str]) -> bool:
    """Return whether the escaped character can be written back unchanged; bytes beyond ASCII can't."""
    character = _unescaped(match)
    if match.group(3) is not None:
        return match.group(3) not in _UNICODE
    return " " <= character <= "~" or character in _NAMED
