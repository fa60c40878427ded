"""What runs in the background, for who operates the product."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.presenters.frame import Action, Frame, Problem
from dashboard.presenters.looks import JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job: when it ended last and how long it took, when it comes next, what went wrong, and how to run it again.

    `log_url` leads to the end of what its last run logged.
    """

    name: str
    state: JobState
    url: str = ""
    about: str = ""
    last_at: datetime | None = None
    took: str = ""
    next_at: datetime | None = None
    error: str = ""
    retry: Action | None = None
    log_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobGroup:
    """Jobs of one kind. `problem` stands in their place where they couldn't be read; `more` counts those left out."""

    key: str
    title: str
    about: str
    rows: tuple[JobRow, ...] = ()
    nothing: str = ""
    more: int = 0
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsPage:
    """All kinds."""

    frame: Frame
    groups: tuple[JobGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """The last run of a job, with the end of its log; `left_out` lines came before."""

    frame: Frame
    state: JobState
    started_at: datetime
    took: str
    lines: tuple[str, ...] = ()
    left_out: str = ""
    error: str = ""
