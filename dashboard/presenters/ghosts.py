"""Versions that came into an environment without a request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.presenters.frame import Action, Environment, Field, Frame, Link, Paging, Search
from dashboard.presenters.subject_life import LifeMark


@dataclass(frozen=True, slots=True, kw_only=True)
class GhostRow:
    """A ghost: where, what, who and when, whether messages carry it, what was decided of it.

    `adopt` asks for its review and `quarantine` keeps it from being used, each None where it was done already.
    """

    number: int
    environment: Environment
    subject: str
    url: str
    version: int
    format: str
    schema_id: int
    at: datetime
    who: str
    door: str
    seen_at: datetime | None = None
    mark: LifeMark | None = None
    request: Link | None = None
    adopt: Action | None = None
    adopt_field: Field | None = None
    quarantine: Action | None = None
    quarantine_field: Field | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GhostsPage:
    """The ghosts that the reader may see, newest first; `back` is where a decision leads back to."""

    frame: Frame
    search: Search
    rows: tuple[GhostRow, ...]
    paging: Paging
    back: str
    alone: bool = False
