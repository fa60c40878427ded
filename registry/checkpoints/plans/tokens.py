"""The words of Spark's DDL with their places, for the reader of schemas in `ddl`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from registry.errors import InvalidSchema

MAX_TEXT: Final = 1_000_000  # characters of one schema
TokenKind = Literal["word", "quoted", "text", "number", "sign", "end"]

_SPACE: Final = re.compile(r"(?:\s|--[^\n]*(?:\n|\Z)|/\*(?:[^*]|\*(?!/))*\*/)+")
_QUOTED: Final = re.compile(r"`((?:[^`]|``)*)`")
_TEXT: Final = re.compile(
    r"""(?P<raw>[rR]?)(?:'(?P<single>(?:[^'\\]|\\.|'')*)'|"(?P<double>(?:[^"\\]|\\.|"")*)")""", re.DOTALL
)
_WORD: Final = re.compile(r"\w+", re.ASCII)
# What Spark's lexer takes for a number, although it begins like a name: 12, 12L, 1e5, 3BD.
_NUMBER: Final = re.compile(r"\d+(?:e\d+)?(?:l|s|y|f|d|bd)?", re.IGNORECASE | re.ASCII)
_SIGNS: Final = "<>(),:"
_ESCAPES: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-1][0-7]{2})|(.))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a sign or a text; `value` is without quotes, `at` its offset in the schema."""

    kind: TokenKind
    value: str
    at: int

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords, in any case of letters."""
        return self.kind == "word" and self.value.upper() in words

    def is_sign(self, sign: str) -> bool:
        """Whether it is this sign."""
        return self.kind == "sign" and self.value == sign

    @property
    def shown(self) -> str:
        """The token as a message names it."""
        return "the end" if self.kind == "end" else f'"{self.value[:40]}"'


def tokens_of(text: str) -> list[Token]:
    """The tokens of a schema, the last of them its end; raises InvalidSchema with the place of what is no token."""
    if len(text) > MAX_TEXT:
        raise InvalidSchema(f"the schema has more than {MAX_TEXT:,} characters")
    found: list[Token] = []
    at = 0
    while at < len(text):
        space = _SPACE.match(text, at)
        if space:
            at = space.end()
            continue
        token, at = _token(text, at)
        found.append(token)
    found.append(Token("end", "", len(text)))
    return found


def problem(text: str, at: int, message: str) -> InvalidSchema:
    """An error at an offset of the schema, with line and column."""
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return InvalidSchema(message, line=line, column=column)


def _token(text: str, at: int) -> tuple[Token, int]:
    if text[at] in _SIGNS:
        return Token("sign", text[at], at), at + 1
    quoted = _QUOTED.match(text, at)
    if quoted:
        return Token("quoted", quoted[1].replace("``", "`"), at), quoted.end()
    given = _TEXT.match(text, at)
    if given:
        return Token("text", _unescaped(given), at), given.end()
    word = _WORD.match(text, at)
    if word:
        is_number = _NUMBER.fullmatch(word[0]) is not None
        return Token("number" if is_number else "word", word[0], at), word.end()
    if text[at] in "`'\"":
        raise problem(text, at, f"the {text[at]} that begins here is never closed")
    if text.startswith("/*", at):
        raise problem(text, at, "the comment that begins here is never closed")
    raise problem(text, at, f"{text[at]!r} can't stand in a schema outside of backticks")


def _unescaped(given: re.Match[str]) -> str:
    is_single = given["single"] is not None
    body = given["single"] if is_single else given["double"]
    if given["raw"]:
        return body
    quote = "'" if is_single else '"'
    return _ESCAPE.sub(_escaped, body.replace(quote * 2, quote))


def _escaped(found: re.Match[str]) -> str:
    short, long, octal, char = found.groups()
    if short or long:
        number = int(short or long, 16)
        return chr(number) if number <= 0x10FFFF else "\ufffd"
    if octal:
        return chr(int(octal, 8))
    return _ESCAPES.get(char, char)
