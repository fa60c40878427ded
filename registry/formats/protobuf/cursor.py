"""A place in a .proto text that words, signs and strings are read from, comments and blanks skipped."""

from __future__ import annotations

import re
from typing import Final

from registry.formats.protobuf.statements import StringValue

_BLANK: Final = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z0-9_.\-]+")
_PART: Final = re.compile(r"[A-Za-z0-9_\-]+")
_QUOTED: Final = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'")
_ESCAPE: Final = re.compile(r"\\(?:[xX]([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))")
_LETTERS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
#: letters whose escape the compiler reads as a character of Unicode
_UNICODE: Final = frozenset("uU")
#: characters that have an escape of a letter of their own, so that they can be written in one way alone
_NAMED: Final = frozenset("\a\b\f\n\r\t\v")


class UnreadableText(Exception):
    """The text isn't written in the way that is read here; the compiler says what is wrong with it."""


class Cursor:
    """Reads forward through one text; raises UnreadableText where something else stands than is read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 1 if text.startswith("\ufeff") else 0

    def skip(self) -> int:
        """The place of the next character that counts."""
        match = _BLANK.match(self.text, self.place)
        if match is not None:
            self.place = match.end()
        return self.place

    def at_end(self) -> bool:
        """Whether nothing is left but blanks and comments."""
        return self.skip() >= len(self.text)

    def peek(self) -> str:
        """The next character that counts."""
        if self.at_end():
            raise UnreadableText("the text ends too early")
        return self.text[self.place]

    def take(self, sign: str) -> bool:
        """Whether that character is next, which is then read."""
        if self.peek() != sign:
            return False
        self.place += 1
        return True

    def need(self, sign: str) -> None:
        """Reads that character."""
        if not self.take(sign):
            raise UnreadableText(f"expected {sign!r} at {self.place}")

    def word(self) -> str:
        """Letters, digits, dots, underscores and hyphens."""
        return self._match(_WORD)

    def part(self) -> str:
        """A word without dots."""
        return self._match(_PART)

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.skip())
        if match is None:
            raise UnreadableText(f"expected a word at {self.place}")
        self.place = match.end()
        return match.group()

    def integer(self) -> int:
        """A whole number, decimal or hexadecimal."""
        word = self.word()
        try:
            return int(word[2:], 16) if word[:2] in ("0x", "0X") else int(word, 10)
        except ValueError:
            raise UnreadableText(f"expected a whole number before {self.place}") from None

    def type(self) -> str:
        """The name of a type, a map's with one blank."""
        return self.type_of(self.word())

    def type_of(self, word: str) -> str:
        """The name of a type whose first word was read."""
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
        """Whether a string is next."""
        return self.peek() in "\"'"

    def string(self) -> StringValue:
        """A string, its neighbours joined with it."""
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
        escapes = [found for text in texts for found in _ESCAPE.finditer(text)]
        return StringValue(
            "".join(_ESCAPE.sub(_unescaped, text) for text in texts),
            " ".join(sources),
            is_exact=all(_is_exact(found) for found in escapes),
        )


def _unescaped(match: re.Match[str]) -> str:
    hexadecimal, octal, other = match.groups()
    if hexadecimal is not None:
        return chr(int(hexadecimal, 16))
    if octal is not None:
        return chr(int(octal, 8))
    return _LETTERS.get(other, other)


def _is_exact(match: re.Match[str]) -> bool:
    """Whether the escaped character can be written again as what it stands for: bytes beyond ASCII can't."""
    character = _unescaped(match)
    if match.group(3) is not None:
        return match.group(3) not in _UNICODE
    return " " <= character <= "~" or character in _NAMED
