"""The page of the search."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.presenters.frame import Action, ActiveFilter, Environment, Field, Frame, Link, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """A line of the help: what an operator finds, with an example that leads to its results."""

    name: str
    finds: str
    example: Link


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """A hit. `title` is what was found and `above` what it is in; `facts` and `tags` are short; `similar`: only like it.

    `problem` says why nothing more is known of it.
    """

    title: str
    url: str
    place: Environment | None = None
    above: str = ""
    above_url: str = ""
    facts: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    text: str = ""
    problem: str = ""
    similar: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultGroup:
    """Hits of a kind. `count` is in words ("1,000+"); `all_url` leads to all of them, `next_url` to the next page."""

    code: str
    title: str
    icon: str
    count: str
    rows: tuple[ResultRow, ...]
    all_url: str = ""
    first_url: str = ""
    next_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastedPart:
    """What a pasted text was taken for; `decode` sends a message on to the page that reads its value."""

    what: str
    facts: tuple[str, ...] = ()
    problem: Problem | None = None
    equal: tuple[ResultRow, ...] = ()
    nearest: tuple[ResultRow, ...] = ()
    decode_url: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """The search with what it found. `query` is as it was typed, `chips` are its parts, each of which can be taken away.

    `only` is the group that is shown alone, "" for all.
    """

    frame: Frame
    url: str
    query: str
    chips: tuple[ActiveFilter, ...] = ()
    groups: tuple[ResultGroup, ...] = ()
    only: str = ""
    suggestions: tuple[Link, ...] = ()
    problem: Problem | None = None
    indexing: bool = False
    operators: tuple[OperatorRow, ...] = ()
    pasted: PastedPart | None = None
    paste: Field | None = None
    submit: Action | None = None
    asked: bool = False
