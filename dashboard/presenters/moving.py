"""What a registry holds as a file, what comes out of one, and what is kept of deletions for good."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.presenters.frame import Action, Fact, Frame, Paging, Problem
from dashboard.presenters.looks import Shown
from dashboard.texts import later


class Coming(Shown):
    """What becomes of a version when a copy is brought in."""

    CONFLICT = ("conflict", "breaks", "octagon-x", later("Can’t come"))
    LEFT = ("left", "care", "triangle-alert", later("Stays as it is here"))
    CHANGED = ("changed", "care", "pencil", later("Changes"))
    CREATED = ("created", "ok", "plus", later("Comes"))
    SAME = ("same", "unknown", "circle-check", later("Is there already"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRow:
    """A copy in a list; `open` leads to its plan."""

    name: str
    versions: int
    made_at: datetime
    made_by: str
    until: datetime
    open: Action
    file_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingPage:
    """The ways out of a registry and into it; `holds` says how much there is now, `waiting` which files aren't confirmed.

    `upload` is the form's button, `limits` what it takes.
    """

    frame: Frame
    registry: str
    holds: str
    export: Action
    upload: Action
    limits: str
    waiting: tuple[CopyRow, ...] = ()
    deleted_url: str = ""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedPage:
    """What was deleted for good and is kept still; `days` for how long, 0: nothing is kept."""

    frame: Frame
    registry: str
    days: int
    rows: tuple[CopyRow, ...]
    paging: Paging | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way of bringing a copy in, as a link."""

    label: str
    url: str
    current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ComingRow:
    """A version of the copy, and what becomes of it."""

    subject: str
    url: str
    version: int
    schema_id: int
    coming: Coming
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPage:
    """A copy with the plan of bringing it in; `hidden` names the plan that the button confirms.

    `verdict` is what the plan comes to, None where none could be made: then `problem` says why.
    """

    frame: Frame
    is_deleted: bool
    about: str
    facts: tuple[Fact, ...]
    until: datetime
    file_url: str
    forget: Action
    ways: tuple[Way, ...] = ()
    verdict: Coming | None = None
    sentence: str = ""
    way_sentence: str = ""
    rows: tuple[ComingRow, ...] = ()
    more: int = 0
    settings: tuple[str, ...] = ()
    more_settings: int = 0
    confirm: Action | None = None
    hidden: tuple[tuple[str, str], ...] = ()
    problem: Problem | None = None
    problems: tuple[str, ...] = ()
