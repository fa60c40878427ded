"""The biography of one field: what each version did to it, what data say, and fields of the same name elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from dashboard.presenters.frame import Fact, Frame, Link


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLine:
    """One thing that happened; `url` leads to the biography of the name that the field had before."""

    icon: str
    sentence: str
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChapterRow:
    """A version that did something to the field."""

    version: int
    url: str
    at: datetime
    by: str
    via: str
    changes: tuple[ChangeLine, ...]
    compare_url: str = ""
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRow:
    """A day's messages, and the share of those in which the field had no value, in words."""

    day: date
    messages: int
    missing: str
    nulls: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparkline:
    """A share over days as a line: `points` in a box of 100 by 24, oldest first; `said` is the same in words."""

    points: tuple[tuple[float, float], ...]
    said: str

    @property
    def drawn(self) -> str:
        """The points as SVG takes them, whatever the reader's language writes numbers like."""
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherTypeRow:
    """A type that fields of the name have elsewhere, and where; `more` counts those that aren't listed."""

    type: str
    fields: tuple[Link, ...]
    more: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPage:
    """The page; `now` are facts of the field in the newest version, none where it is gone.

    `needed` says which declared clients need it; their page is at `usage_url`.
    `problem` says that no version has it, with `nearest` to try instead. `bounds` say what wasn't looked at.
    """

    frame: Frame
    path: str
    subject: str
    subject_url: str
    summary: str
    now: tuple[Fact, ...]
    tags: tuple[str, ...]
    chapters: tuple[ChapterRow, ...]
    seen: str
    days: tuple[DayRow, ...]
    others: tuple[OtherTypeRow, ...]
    others_said: str
    needed: str
    usage_url: str
    bounds: tuple[str, ...] = ()
    sparkline: Sparkline | None = None
    problem: str = ""
    nearest: tuple[Link, ...] = ()
