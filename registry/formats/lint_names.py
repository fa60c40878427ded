"""Names in schemas: their style, and what they say of the values behind them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_SNAKE, _CAMEL, _PASCAL, _UPPER, _KEBAB = "snake_case", "camelCase", "PascalCase", "UPPER_CASE", "kebab-case"
_STYLES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    (_SNAKE, re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+")),
    (_CAMEL, re.compile(r"[a-z][a-z0-9]*([A-Z][A-Za-z0-9]*)+")),
    (_UPPER, re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")),
    (_PASCAL, re.compile(r"([A-Z][a-z0-9]+){1,}[A-Z]?")),
    (_KEBAB, re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")),
)
_LONGEST: Final = 200
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z]+|[0-9]+")
_PERSONAL: Final = frozenset(
    {"email", "phone", "mobile", "surname", "lastname", "firstname", "birthday", "birthdate", "dob", "passport", "ssn",
     "iban", "salary", "gender", "religion", "fullname"}
)  # fmt: skip
_PERSONAL_PAIRS: Final = frozenset(
    {("first", "name"), ("last", "name"), ("family", "name"), ("given", "name"), ("full", "name"), ("e", "mail"),
     ("birth", "date"), ("date", "of", "birth"), ("home", "address"), ("street", "address"), ("postal", "address"),
     ("ip", "address"), ("social", "security"), ("tax", "id"), ("credit", "card"), ("card", "number"),
     ("bank", "account"), ("account", "holder"), ("national", "id")}
)  # fmt: skip
_MONEY: Final = frozenset({"amount", "price", "cost", "total", "balance", "fee", "salary", "tax"})
_TIMES: Final = frozenset({"at", "time", "timestamp", "date", "ts", "datetime"})


def words_of(name: str) -> tuple[str, ...]:
    """The words that a name is made of, in lower case: `firstName` and `first_name` are the same two."""
    return _words(name[:_LONGEST])


@lru_cache(maxsize=4_000)  # several rules ask for the words of each name
def _words(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORDS.findall(name))


def looks_personal(name: str) -> bool:
    """Whether a name says that a person is behind the value."""
    words = words_of(name)
    pairs = {words[at : at + size] for size in (2, 3) for at in range(len(words) - size + 1)}
    return not _PERSONAL.isdisjoint(words) or not _PERSONAL_PAIRS.isdisjoint(pairs)


def looks_like_money(name: str) -> bool:
    """Whether a name ends with a word for money."""
    return bool(words := words_of(name)) and words[-1] in _MONEY


def looks_like_time(name: str) -> bool:
    """Whether a name ends with a word for a moment."""
    return len(words := words_of(name)) > 1 and words[-1] in _TIMES


def style_of(name: str) -> str:
    """The style of a name; empty where one word leaves it open, or it is in none."""
    return next((style for style, pattern in _STYLES if pattern.fullmatch(name[:_LONGEST])), "")


def in_style(name: str, style: str) -> str:
    """The same words in a style."""
    words = words_of(name)
    if style in (_CAMEL, _PASCAL):
        return "".join(
            word if style == _CAMEL and number == 0 else word.capitalize() for number, word in enumerate(words)
        )
    joined = ("-" if style == _KEBAB else "_").join(words)
    return joined.upper() if style == _UPPER else joined


def is_pascal(name: str) -> bool:
    """Whether a name begins with a capital and has no underscore."""
    return name[:1].isupper() and "_" not in name


def is_lower_snake(name: str) -> bool:
    """Whether a name is in lower case."""
    return name == name.lower()
