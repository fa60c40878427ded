"""The board: subjects × environments, with what differs and whether each could go on. Constant in queries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from registry.access.roles import Actor, may, may_somewhere, require
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
    Readable,
    page_of,
)
from registry.promotions.selectors.environments import environment_rows
from registry.subjects.models import SchemaVersion
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
    environments = [
        row
        for row in (environment_rows() if rows is None else rows)
        if any(_sees(by, row, subject) for subject in (None, ""))
    ]
    frozen = _frozen(environments)
    most = max(1, min(limit, MAX_ROWS))
    keys, total = page_of(
        _readable(environments, by),
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


def _sees(by: Actor, place: Environment, subject: str | None) -> bool:
    """Whether somebody may read a subject there; of None, whether there may be any."""
    registry = place.registry.name
    if subject is None:
        limits = (by.limit,) if by.limit else ()
        has_place = all(limit.registry in ("", registry) for limit in limits)
        return has_place and any(grant.registry in ("", registry) for grant in by.grants)
    return may(by, "schema.read", registry=registry, subject=subject)


def _readable(environments: Sequence[Environment], by: Actor) -> Readable:
    """What may be read there: everything, or (by patterns of rights) the subjects listed."""
    limited = {row.registry_id: row for row in environments if not _sees(by, row, "")}
    found = [
        (registry, name.context, name.subject)
        for registry, name in (_all_names(list(limited)) if limited else ())
        if _sees(by, limited[registry], name.qualified)
    ]
    return Readable(environments, frozenset(row.registry_id for row in environments) - limited.keys(), found)


def _all_names(registries: Sequence[int]) -> list[tuple[int, SubjectName]]:
    rows = SchemaVersion.objects.filter(subject__context__registry__in=registries, deleted_at=None)
    columns = ("subject__context__registry", "subject__context__name", "subject__name")
    return [(registry, SubjectName(context, name)) for registry, context, name in rows.values_list(*columns).distinct()]


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
