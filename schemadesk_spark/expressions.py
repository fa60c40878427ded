"""Catalyst expressions as text that is the same in every session: columns by name instead of by id, without aliases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

#: the id of a column in Catalyst's texts, and the delay of its watermark
_ID: Final = re.compile(r"#(\d+)L?(?:-T\d+ms)?")
#: the last moment of a window, by which windows of windows are made
_LAST: Final = re.compile(
    r"precisetimestampconversion\(\(precisetimestampconversion\((?P<window>window\([^()]*\))\.end, "
    r"Timestamp(?:NTZ)?Type, LongType\) - 1\), LongType, Timestamp(?:NTZ)?Type\)"
)
_WINDOW: Final = re.compile(
    r"named_struct\(start, .*?precisetimestampconversion\((?P<time>[^(),]+|window\([^()]*\)\.last), Timestamp(?:NTZ)?Type, LongType\)"
    r".*?- (?P<start>-?\d+)\) % (?P<slide>\d+)\).*\+ (?P<length>\d+)\), LongType, Timestamp(?:NTZ)?Type\)\)*"
)
_SESSION: Final = re.compile(
    r"named_struct\(start, precisetimestampconversion\(precisetimestampconversion\((?P<time>[^(),]+), .*"
    r"\((?:cast\()?(?P=time) \+ (?:cast\()?(?P<gap>[^(),]+?)(?: as interval\))?(?: as timestamp\))?, Timestamp.*"
)


def items(sequence: Any) -> Iterator[Any]:
    """Yield the elements of a Scala sequence."""
    for position in range(sequence.length()):
        yield sequence.apply(position)


#: a column in Catalyst's text of a list; an alias has its expression before it
_COLUMN: Final = re.compile(r"(?P<name>.*)#(?P<id>\d+)L?(?:-T\d+ms)?", re.DOTALL)
_BETWEEN: Final = "\u0001"


def columns_of(sequence: Any) -> list[tuple[int, str]]:
    """Return the ids and the names of columns, in one call: an aggregate's buffer can have thousands."""
    texts = sequence.mkString(_BETWEEN).split(_BETWEEN) if sequence.nonEmpty() else []
    matches = [_COLUMN.fullmatch(text) for text in texts]
    if None in matches or len(matches) != sequence.length():  # a name that has the separator, or no column
        return [(each.exprId().id(), each.name()) for each in items(sequence)]
    return [(int(match["id"]), match["name"]) for match in matches if match]


def aliases_of(sequence: Any) -> Iterator[Any]:
    """Yield those of a list of named expressions that compute something; few calls, as above."""
    texts = sequence.mkString(_BETWEEN).split(_BETWEEN)
    is_whole = len(texts) == sequence.length()
    for position in range(sequence.length()):
        if not is_whole or " AS " in texts[position]:
            expression = sequence.apply(position)
            if expression.getClass().getSimpleName() == "Alias":
                yield expression


class Columns:
    """The columns of a plan by id: their names, and what they are computed from."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._meanings: dict[int, str] = {}
        self._results: list[tuple[str, str]] = []

    def __contains__(self, number: int) -> bool:
        return number in self._meanings

    def define(self, attribute: Any, meaning: str) -> None:
        """Set what a column (an attribute or an alias) is computed from."""
        self.define_named(attribute.exprId().id(), attribute.name(), meaning)

    def define_named(self, number: int, name: str, meaning: str) -> None:
        """Do the same for a column by its id and name."""
        self._names[number] = name
        self._meanings[number] = shorten(meaning)

    def column(self, number: int) -> str:
        """Return what a column is computed from."""
        return self._meanings[number]

    def define_result(self, attribute: Any, meaning: str) -> None:
        """Set the same for the result of an aggregate, whose name is an expression itself."""
        self.define(attribute, meaning)
        self._results.append((attribute.toString(), meaning))

    def meaning(self, expression: Any) -> str:
        """Return an expression's text with its columns replaced by what they are computed from."""
        if expression.getClass().getSimpleName() == "Alias":
            expression = expression.child()
        return self.expand(expression.toString())

    def expand(self, text: str) -> str:
        """Do the same for a text of Catalyst."""
        for result, meaning in self._results:
            text = text.replace(result, meaning)
        parts, at = [], 0
        for match in _ID.finditer(text):
            number = int(match[1])
            name = self._names.get(number, "")
            before = text[at : match.start()]
            if name and before.endswith(name):
                before = before.removesuffix(name) + self._meanings[number]
            parts.append(before)
            at = match.end()
        return shorten("".join(parts) + text[at:])


def shorten(text: str) -> str:
    """Return the text with Spark's arithmetic for windows replaced by the window's definition, in microseconds."""
    text = _LAST.sub(r"\g<window>.last", text)
    text = _WINDOW.sub(r"window(\g<time>, length \g<length>, slide \g<slide>, start \g<start>)", text)
    return _SESSION.sub(r"session_window(\g<time>, \g<gap>)", text)
