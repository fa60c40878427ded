"""The query language of the search box: words, "quoted words" and operators such as `field:email`. Pure.

There are no wildcards: `%`, `_` and `*` match themselves.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from registry.errors import InvalidInput
from registry.formats.base import UNSTORABLE
from registry.formats.compatibility import LEVELS

MAX_CHARACTERS: Final = 2_000
MAX_TERMS: Final = 12
MAX_ID: Final = 2**31 - 1


@dataclass(frozen=True)
class Operator:
    """An operator: what it finds, in words, and an example."""

    name: str
    finds: str
    example: str


OPERATORS: Final[Mapping[str, Operator]] = {
    operator.name: operator
    for operator in (
        Operator("field", "fields by name, or by path if it contains dots", "field:address.email"),
        Operator("id", "a schema id, a GUID or a fingerprint", "id:1234"),
        Operator("type", "fields by type", "type:decimal"),
        Operator("doc", "fields and subjects by description", 'doc:"gdpr relevant"'),
        Operator("tag", "fields and subjects by tag", "tag:pii"),
        Operator("compat", "subjects by effective compatibility level", "compat:NONE"),
        Operator("drift", "subjects with open findings (yes) or without (no)", "drift:yes"),
        Operator("ref", "subjects that refer to another schema", "ref:Address"),
    )
}
#: operators on fields; the others are on subjects
OF_FIELDS: Final = ("field", "type", "doc", "tag")

_OPERATOR: Final = re.compile(r"([A-Za-z][A-Za-z_-]*):")
_SPACE: Final = re.compile(r"\s+")
_FINGERPRINT: Final = re.compile(r"[0-9a-f]{64}")
_PLAIN: Final = re.compile(r'[^\s"]+')
_KNOWN: Final = ", ".join(f"{name}:" for name in OPERATORS)


@dataclass(frozen=True)
class Term:
    """A part of a query; `operator` is empty for a word."""

    operator: str
    value: str

    @property
    def text(self) -> str:
        """The term as it is written in a query, quoted if necessary."""
        head = f"{self.operator}:" if self.operator else ""
        bare = _PLAIN.fullmatch(self.value) and (head or not _OPERATOR.match(self.value))
        if bare:
            return head + self.value
        escaped = self.value.replace("\\", "\\\\").replace('"', '\\"')
        return f'{head}"{escaped}"'


@dataclass(frozen=True)
class Query:
    """A query: all its terms must match."""

    terms: tuple[Term, ...]

    @property
    def text(self) -> str:
        """The query as text; parsing it gives the same query."""
        return " ".join(term.text for term in self.terms)

    @property
    def plain_words(self) -> tuple[str, ...]:
        """The words without an operator."""
        return self.of("")

    @property
    def has_operators(self) -> bool:
        """Whether it has any operator."""
        return any(term.operator for term in self.terms)

    def of(self, operator: str) -> tuple[str, ...]:
        """Return the values of an operator."""
        return tuple(term.value for term in self.terms if term.operator == operator)

    def without(self, number: int) -> Query:
        """Return the query without the term at an index."""
        return Query(self.terms[:number] + self.terms[number + 1 :])


def parse_query(text: str) -> Query:
    """Parse a query. Raises InvalidInput, which says what is wrong and where, and lists the operators."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(
            f"The query has {len(text):,} characters. At most {MAX_CHARACTERS:,} are allowed. Paste schemas and "
            "messages into the box below the search."
        )
    if bad := UNSTORABLE.search(text):
        raise InvalidInput(
            f"Character {bad.start() + 1} of the query is U+{ord(bad[0]):04X}, which no name can contain."
        )
    terms = tuple(dict.fromkeys(_terms(text)))
    if len(terms) > MAX_TERMS:
        raise InvalidInput(f"The query has {len(terms)} terms. At most {MAX_TERMS} can be combined.")
    return Query(terms)


def _terms(text: str) -> Iterator[Term]:
    position = 0
    while position < len(text):
        if space := _SPACE.match(text, position):
            position = space.end()
            continue
        head = _OPERATOR.match(text, position)
        operator = head[1].lower() if head else ""
        if head and operator not in OPERATORS:
            raise InvalidInput(
                f"{head[0][:40]!r} is not an operator. The operators are {_KNOWN}. To search for the text itself, put it "
                "in quotes.",
                operators=list(OPERATORS),
            )
        value, position = _value(text, head.end() if head else position)
        if operator:
            yield Term(operator, _checked(operator, value))
        elif value:
            yield Term("", value)


def _value(text: str, position: int) -> tuple[str, int]:
    """Return the word or quoted text at a position, and where it ends."""
    if text[position : position + 1] != '"':
        match = _PLAIN.match(text, position)
        return (match[0], match.end()) if match else ("", position)
    value: list[str] = []
    at = position + 1
    while at < len(text):
        if text[at] == '"':
            return "".join(value).strip(), at + 1
        if text[at] == "\\" and text[at + 1 : at + 2] in ("\\", '"'):
            at += 1
        value.append(text[at])
        at += 1
    raise InvalidInput(
        f'The quote at character {position + 1} isn\'t closed. Write field:"a b"; a quote itself is written \\".'
        f" The operators are {_KNOWN}.",
        operators=list(OPERATORS),
    )


def _checked(operator: str, value: str) -> str:
    if not value:
        raise InvalidInput(
            f"{operator}: needs a value, for example {OPERATORS[operator].example}. The operators are {_KNOWN}.",
            operators=list(OPERATORS),
        )
    return _CHECKS[operator](value) if operator in _CHECKS else value


def _id(value: str) -> str:
    if is_id(value):
        return value.lower()
    raise InvalidInput(
        f"id: needs a schema id (a number from 1 to {MAX_ID:,}), a GUID or a fingerprint of 64 hexadecimal "
        f"digits, not {value[:80]!r}.",
        operators=list(OPERATORS),
    )


def is_id(value: str) -> bool:
    """Return whether a text is a schema id, a GUID or a fingerprint."""
    return as_number(value) is not None or as_guid(value) is not None or bool(_FINGERPRINT.fullmatch(value.lower()))


def as_number(value: str) -> int | None:
    """Return the text as a schema id; None if it isn't one."""
    return int(value) if re.fullmatch(r"[0-9]{1,10}", value) and 1 <= int(value) <= MAX_ID else None


def as_guid(value: str) -> uuid.UUID | None:
    """Return the text as a GUID; None unless it is written with hyphens, as usual."""
    return uuid.UUID(value) if re.fullmatch(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", value) else None


def _level(value: str) -> str:
    if value.upper() in LEVELS:
        return value.upper()
    raise InvalidInput(f"compat: needs one of {', '.join(LEVELS)}, not {value[:40]!r}.", operators=list(OPERATORS))


def _yes_or_no(value: str) -> str:
    if value.lower() in ("yes", "no"):
        return value.lower()
    raise InvalidInput(f"drift: needs yes or no, not {value[:40]!r}.", operators=list(OPERATORS))


_CHECKS: Final[Mapping[str, Callable[[str], str]]] = {"id": _id, "compat": _level, "drift": _yes_or_no}
