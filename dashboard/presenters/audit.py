"""The audit log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.presenters.frame import Frame, Link, Paging, Search


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditChange:
    """A column before and after; None where the row wasn't there."""

    column: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One change of one row: who, when, through which door and from where, what, and why; `sealed` is its position.

    `then_url` is the page of what it is about, as this change left it.
    """

    number: int
    at: datetime
    who: str
    door: str
    what: str
    row: str
    origin: str = ""
    sealed: int | None = None
    why: str = ""
    url: str = ""
    then_url: str = ""
    changes: tuple[AuditChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditList:
    """The log, newest first; `exports` are the whole of what the filters leave, as files."""

    frame: Frame
    search: Search
    rows: tuple[AuditRow, ...]
    paging: Paging
    exports: tuple[Link, ...] = ()
