"""Parses Spark's DDL of a schema (`a INT, b STRUCT<c: STRING NOT NULL>`) to StructType JSON, like Spark.

The grammar is Spark 4.2's for table schemas, compared with Spark's own parser on a recorded table of texts. It omits
geometries, which state can't contain. At most MAX_DEPTH levels and MAX_FIELDS fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from registry.errors import InvalidSchema
from registry.formats.policies.spark_state.struct_types import MAX_DEPTH, MAX_FIELDS

MAX_TEXT: Final = 1_000_000  # characters per schema
TokenKind = Literal["word", "quoted", "text", "number", "sign", "end"]

_SPACE: Final = re.compile(r"(?:\s|--[^\n]*(?:\n|\Z)|/\*(?:[^*]|\*(?!/))*\*/)+")
_QUOTED: Final = re.compile(r"`((?:[^`]|``)*)`")
_TEXT: Final = re.compile(
    r"""(?P<raw>[rR]?)(?:'(?P<single>(?:[^'\\]|\\.|'')*)'|"(?P<double>(?:[^"\\]|\\.|"")*)")""", re.DOTALL
)
_WORD: Final = re.compile(r"\w+", re.ASCII)
# Numbers for Spark's lexer that match \w: 12, 12L, 1e5, 3BD.
_NUMBER: Final = re.compile(r"\d+(?:e\d+)?(?:l|s|y|f|d|bd)?", re.IGNORECASE | re.ASCII)
_SIGNS: Final = "<>(),:"
_ESCAPES: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-1][0-7]{2})|(.))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a sign or a text; `value` is without quotes, `at` is its offset in the schema."""

    kind: TokenKind
    value: str
    at: int

    def is_word(self, *keywords: str) -> bool:
        """Return whether it is one of these keywords, ignoring case."""
        return self.kind == "word" and self.value.upper() in keywords

    def is_sign(self, sign: str) -> bool:
        """Return whether it is this sign."""
        return self.kind == "sign" and self.value == sign

    @property
    def shown(self) -> str:
        """Return the token for messages."""
        return "the end" if self.kind == "end" else f'"{self.value[:40]}"'


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a schema and its end; raises InvalidSchema with the position of an invalid token."""
    if len(text) > MAX_TEXT:
        raise InvalidSchema(f"the schema has more than {MAX_TEXT:,} characters")
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        space = _SPACE.match(text, at)
        if space:
            at = space.end()
            continue
        token, at = _token(text, at)
        tokens.append(token)
    tokens.append(Token("end", "", len(text)))
    return tokens


def problem(text: str, at: int, message: str) -> InvalidSchema:
    """Return an error at an offset of the schema, with line and column."""
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return InvalidSchema(message, line=line, column=column)


def _token(text: str, at: int) -> tuple[Token, int]:
    if text[at] in _SIGNS:
        return Token("sign", text[at], at), at + 1
    quoted = _QUOTED.match(text, at)
    if quoted:
        return Token("quoted", quoted[1].replace("``", "`"), at), quoted.end()
    literal = _TEXT.match(text, at)
    if literal:
        return Token("text", _unescaped(literal), at), literal.end()
    word = _WORD.match(text, at)
    if word:
        is_number = _NUMBER.fullmatch(word[0]) is not None
        return Token("number" if is_number else "word", word[0], at), word.end()
    if text[at] in "`'\"":
        raise problem(text, at, f"the {text[at]} that starts here is never closed")
    if text.startswith("/*", at):
        raise problem(text, at, "the comment that starts here is never closed")
    raise problem(text, at, f"{text[at]!r} is not allowed in a schema outside backticks")


def _unescaped(literal: re.Match[str]) -> str:
    is_single = literal["single"] is not None
    body = literal["single"] if is_single else literal["double"]
    if literal["raw"]:
        return body
    quote = "'" if is_single else '"'
    return _ESCAPE.sub(_escaped, body.replace(quote * 2, quote))


def _escaped(match: re.Match[str]) -> str:
    short, long, octal, char = match.groups()
    if short or long:
        number = int(short or long, 16)
        return chr(number) if number <= 0x10FFFF else "\ufffd"
    if octal:
        return chr(int(octal, 8))
    return _ESCAPES.get(char, char)


# Spark's names of types without parameters → the name in JSON
PLAIN: Final[Mapping[str, str]] = {
    "BOOLEAN": "boolean",
    "TINYINT": "byte",
    "BYTE": "byte",
    "SMALLINT": "short",
    "SHORT": "short",
    "INT": "integer",
    "INTEGER": "integer",
    "BIGINT": "long",
    "LONG": "long",
    "FLOAT": "float",
    "REAL": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
    "TIMESTAMP_NTZ": "timestamp_ntz",
    "BINARY": "binary",
    "VOID": "void",
    "VARIANT": "variant",
}
_DECIMALS: Final = ("DECIMAL", "DEC", "NUMERIC")
_MAX_DIGITS: Final = 38
_TIME_DIGITS: Final = 6
_YEAR_UNITS: Final = ("YEAR", "MONTH")
_DAY_UNITS: Final = ("DAY", "HOUR", "MINUTE", "SECOND")
_BYTE_ORDER: Final = "UTF8_BINARY"  # the default collation of strings


def parse_ddl(text: str) -> dict[str, Any]:
    """Return the StructType, as JSON values, that Spark parses from a DDL text.

    Accepts a list of columns or `STRUCT<…>`. Raises InvalidSchema with line and column.
    """
    reader = _DdlParser(text)
    first = reader.next
    if first.kind == "end" and text.strip():
        raise problem(text, 0, "expected a field's name, found only comments")
    second = reader.tokens[min(1, len(reader.tokens) - 1)]
    if first.is_word("STRUCT") and second.is_sign("<"):
        made, _ = reader.type("", 0)
        struct: dict[str, Any] = made
    else:
        struct = {"type": "struct", "fields": reader.columns(0, ends=lambda token: token.kind == "end")}
    reader.expect_end()
    return struct


class _DdlParser:
    """A recursive-descent parser for one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self._at = 0
        self._fields = 0

    @property
    def next(self) -> Token:
        """Return the next token without taking it; at the end, always the end token."""
        return self.tokens[self._at]

    def take(self) -> Token:
        token = self.next
        self._at = min(self._at + 1, len(self.tokens) - 1)
        return token

    def wrong(self, expected: str, token: Token | None = None) -> InvalidSchema:
        token = token or self.next
        return problem(self.text, token.at, f"expected {expected}, found {token.shown}")

    def sign(self, sign: str) -> None:
        if not self.next.is_sign(sign):
            raise self.wrong(f'"{sign}"')
        self.take()

    def expect_end(self) -> None:
        if self.next.kind != "end":
            raise self.wrong('"," or the end')

    def columns(self, depth: int, ends: Callable[[Token], bool]) -> list[dict[str, Any]]:
        """Parse columns up to the token that ends them, which isn't taken; there may be none."""
        parsed: list[dict[str, Any]] = []
        if ends(self.next):
            return parsed
        while True:
            parsed.append(self._column(depth))
            if not self.next.is_sign(","):
                return parsed
            self.take()

    def _column(self, depth: int) -> dict[str, Any]:
        named = self.take()
        if named.kind not in ("word", "quoted"):
            raise self.wrong("a field's name", named)
        self._fields += 1
        if self._fields > MAX_FIELDS:
            raise problem(self.text, named.at, f"the schema has more than {MAX_FIELDS:,} fields")
        if self.next.is_sign(":"):
            self.take()
        kind, collations = self.type(named.value, depth + 1)
        nullable = True
        if self.next.is_word("NOT"):
            self.take()
            after = self.take()
            if not after.is_word("NULL"):
                raise self.wrong("NULL after NOT", after)
            nullable = False
        metadata: dict[str, Any] = {}
        if self.next.is_word("COMMENT"):
            metadata["comment"] = self._comment()
        if self.next.is_word("DEFAULT", "GENERATED"):
            raise self.wrong('"," or the end: Spark allows no defaults and no generated columns here')
        if collations:
            metadata["__COLLATIONS"] = collations
        return {"name": named.value, "type": kind, "nullable": nullable, "metadata": metadata}

    def _comment(self) -> str:
        self.take()
        parts = []
        while self.next.kind == "text":
            parts.append(self.take().value)
        if not parts:
            raise self.wrong("a quoted text after COMMENT")
        return "".join(parts)

    def type(self, path: str, depth: int) -> tuple[Any, dict[str, str]]:
        """Parse a type to JSON; also return its collations: path of the string → collation."""
        named = self.take()
        if depth > MAX_DEPTH:
            raise problem(self.text, named.at, f"the schema is nested more than {MAX_DEPTH} levels deep")
        if named.kind != "word":
            raise self.wrong("a type", named)
        word = named.value.upper()
        if word in PLAIN:
            self._refuse_parameters(word)
            return self._zoned(word), {}
        match word:
            case "STRING":
                return self._string(path)
            case "ARRAY":
                return self._array(path, depth)
            case "MAP":
                return self._map(path, depth)
            case "STRUCT":
                return self._struct(depth)
            case "INTERVAL":
                return self._interval(), {}
            case "TIME":
                return self._time(), {}
            case "VARCHAR" | "CHAR" | "CHARACTER":
                (length,) = self._numbers(named, 1, 1)
                return f"{'varchar' if word == 'VARCHAR' else 'char'}({length})", {}
        if word in _DECIMALS:
            return self._decimal(named), {}
        raise self.wrong("a type that Spark state supports", named)

    def _zoned(self, word: str) -> str:
        """Parse a plain type; a timestamp may have a zone in words."""
        if word != "TIMESTAMP" or not self.next.is_word("WITH", "WITHOUT"):
            return PLAIN[word]
        without = self.take().is_word("WITHOUT")
        self._words(*(("TIME", "ZONE") if without else ("LOCAL", "TIME", "ZONE")))
        return "timestamp_ntz" if without else "timestamp"

    def _words(self, *keywords: str) -> None:
        for word in keywords:
            if not self.next.is_word(word):
                raise self.wrong(word)
            self.take()

    def _refuse_parameters(self, word: str) -> None:
        if self.next.is_sign("("):
            raise self.wrong(f"no parameters, because {word} has none")

    def _string(self, path: str) -> tuple[Any, dict[str, str]]:
        self._refuse_parameters("STRING")
        if not self.next.is_word("COLLATE"):
            return "string", {}
        self.take()
        named = self.take()
        if named.kind not in ("word", "quoted"):
            raise self.wrong("a collation's name", named)
        collation = named.value.upper()
        if collation == _BYTE_ORDER:
            return "string", {}
        return "string", {path: f"{'spark' if collation.startswith('UTF8_') else 'icu'}.{collation}"}

    def _array(self, path: str, depth: int) -> tuple[Any, dict[str, str]]:
        self.sign("<")
        element, collations = self.type(f"{path}.element", depth + 1)
        self.sign(">")
        return {"type": "array", "elementType": element, "containsNull": True}, collations

    def _map(self, path: str, depth: int) -> tuple[Any, dict[str, str]]:
        self.sign("<")
        key, of_key = self.type(f"{path}.key", depth + 1)
        self.sign(",")
        value, of_value = self.type(f"{path}.value", depth + 1)
        self.sign(">")
        made = {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
        return made, of_key | of_value

    def _struct(self, depth: int) -> tuple[Any, dict[str, str]]:
        self.sign("<")
        fields = self.columns(depth, ends=lambda token: token.is_sign(">"))
        self.sign(">")
        return {"type": "struct", "fields": fields}, {}

    def _numbers(self, of: Token, least: int, most: int) -> list[int]:
        """Parse the numbers in parentheses after a type."""
        numbers: list[int] = []
        if self.next.is_sign("("):
            self.take()
            while True:
                number = self.take()
                if not (number.kind == "number" and number.value.isdecimal() and len(number.value) <= 9):
                    raise self.wrong("a number", number)
                numbers.append(int(number.value))
                if not self.next.is_sign(","):
                    break
                self.take()
            self.sign(")")
        if not least <= len(numbers) <= most:
            raise problem(self.text, of.at, f"{of.value.upper()} takes {least} to {most} numbers, found {len(numbers)}")
        return numbers

    def _decimal(self, named: Token) -> str:
        numbers = self._numbers(named, 0, 2)
        precision = numbers[0] if numbers else 10
        scale = numbers[1] if len(numbers) > 1 else 0
        if precision > _MAX_DIGITS or scale > precision:
            limits = f"at most {_MAX_DIGITS} digits, and a scale up to them"
            raise problem(self.text, named.at, f"DECIMAL({precision},{scale}) isn't possible: {limits}")
        return f"decimal({precision},{scale})"

    def _time(self) -> str:
        numbers = self._numbers(self.tokens[self._at - 1], 0, 1) or [_TIME_DIGITS]
        if numbers[0] > _TIME_DIGITS:
            raise problem(self.text, self.tokens[self._at - 1].at, f"TIME has 0 to {_TIME_DIGITS} digits of a second")
        if self.next.is_word("WITHOUT"):
            self._words("WITHOUT", "TIME", "ZONE")
        return f"time({numbers[0]})"

    def _interval(self) -> str:
        units = next((candidate for candidate in (_YEAR_UNITS, _DAY_UNITS) if self.next.is_word(*candidate)), None)
        if units is None:
            return "interval"
        first = self.take().value.upper()
        if not self.next.is_word("TO"):
            return f"interval {first.lower()}"
        self.take()
        later = units[units.index(first) + 1 :]
        last = self.take()
        if not last.is_word(*later):
            raise self.wrong(f"{' or '.join(later) or 'no TO'} after {first} TO", last)
        return f"interval {first.lower()} to {last.value.lower()}"
