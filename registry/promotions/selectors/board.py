"""The board: subjects × environments, with what differs and whether each could go on. Constant in queries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from registry.access.extent import extent_of
from registry.access.roles import Actor, may_somewhere, require
from registry.audit import past
from registry.errors import InvalidInput
from registry.promotions.freezes import window_of
from registry.promotions.models import Environment
from registry.promotions.selectors.board_cells import BoardCell, BoardRow, rows_of
from registry.promotions.selectors.board_keys import (
    BEHIND,
    BLOCKED,
    FILTERS,
    OTHER_CONTENT,
    OTHER_ID,
    page_of,
)
from registry.promotions.selectors.board_sight import Readable
from registry.promotions.selectors.environments import environment_rows
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.patterns import escaped

__all__ = [
    "BEHIND",
    "BLOCKED",
    "FILTERS",
    "OTHER_CONTENT",
    "OTHER_ID",
    "Board",
    "BoardCell",
    "BoardPlace",
    "BoardRow",
    "board_rows",
]
MAX_ROWS: Final = 100
MAX_WORDS: Final = 8
MAX_TEXT: Final = 200


@dataclass(frozen=True)
class BoardPlace:
    """An environment as a column; `frozen` says until when nothing is applied there, "" if something is."""

    name: str
    position: int
    is_closed: bool
    frozen: str = ""


@dataclass(frozen=True)
class Board:
    """A page of the board; `total` counts the rows of all pages, `after` begins the next one ("" on the last)."""

    places: tuple[BoardPlace, ...]
    rows: tuple[BoardRow, ...]
    total: int
    after: str


def board_rows(
    *,
    by: Actor,
    text: str = "",
    filters: Collection[str] = (),
    after: str = "",
    limit: int = 50,
    rows: Sequence[Environment] | None = None,
) -> Board:
    """A page of the subjects that somebody may read, by name, with all of the words in `text` and fitting all filters.

    `blocked` goes by what was worked out last; a cell where something moved since then says that it isn't known.
    `after` is what the page before gave; `rows` are those of `environment_rows`, where the caller has read them already.
    Raises NotSignedIn, NotAllowed, InvalidInput, InvalidName.
    """
    if not may_somewhere(by, "schema.read"):
        require(by, "schema.read")
    if past.moment() and BLOCKED in filters:
        raise InvalidInput("What could go on at that time isn't kept: ask for the blocked ones of now.")
    unknown = sorted(set(filters) - set(FILTERS))
    if unknown:
        raise InvalidInput(f"{unknown[0][:40]!r} is no filter: use one of {', '.join(FILTERS)}.")
    extent = extent_of(by, "schema.read")
    environments = [row for row in (environment_rows() if rows is None else rows) if extent.has(row.registry.name)]
    frozen = _frozen(environments)
    most = max(1, min(limit, MAX_ROWS))
    keys, total = page_of(
        Readable(environments, extent),
        filters=filters,
        words=_patterns(text),
        frozen=frozen,
        after=parse_subject(after) if after else SubjectName("", ""),
        limit=most + 1,
    )
    shown = keys[:most]
    places = tuple(
        BoardPlace(row.registry.name, row.position, row.is_closed, frozen.get(row.pk, "")) for row in environments
    )
    found = rows_of(environments, shown, by)
    return Board(places, found, total, shown[-1].qualified if len(keys) > len(shown) else "")


def _patterns(text: str) -> list[str]:
    """A pattern for each word, with nothing in it that PostgreSQL reads as one."""
    if len(text) > MAX_TEXT or "\0" in text:
        raise InvalidInput(f"Search with at most {MAX_TEXT} characters, and without NUL.")
    words = text.split()[:MAX_WORDS]
    return [f"%{escaped(word)}%" for word in words]


def _frozen(environments: Sequence[Environment]) -> dict[int, str]:
    """Environment → why nothing is applied there now."""
    windows = ((row.pk, window_of(row, past.present())) for row in environments)
    return {
        number: f"Frozen until {window.ends_at:%Y-%m-%d %H:%M} UTC: {window.reason}"
        for number, window in windows
        if window is not None
    }
