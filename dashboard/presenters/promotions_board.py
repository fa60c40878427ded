"""The board of environments: subjects by environment, and what could go on to the next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.utils.text import Truncator
from django.utils.translation import gettext

from dashboard.presenters.frame import Action, Choice, Environment, Frame, Link, Paging, Search
from dashboard.presenters.looks import Outlook
from dashboard.presenters.subject_life import LifeMark

LONGEST_LABEL: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardCell:
    """A subject in an environment: its newest version there, or None; `behind` is what it lacks, in words.

    That version came `since`, and `marks` are its standing. Messages with it were last `seen_at` (None: scans saw none);
    `seen_older` says in words that messages carry an earlier one.
    `outlook` is whether it could come here from the environment before (None where it has nothing to bring), `reasons`
    why not, each with its cure.
    """

    environment: Environment
    version: int | None = None
    schema_id: int | None = None
    url: str = ""
    since: datetime | None = None
    marks: tuple[LifeMark, ...] = ()
    notes: tuple[str, ...] = ()
    behind: str = ""
    seen_at: datetime | None = None
    seen_older: str = ""
    outlook: Outlook | None = None
    reasons: tuple[str, ...] = ()
    request: Link | None = None
    promote: Action | None = None

    @property
    def label(self) -> str:
        """The environment's name above the cell, where a narrow page has no columns."""
        name = self.environment.name
        return name if len(name) <= LONGEST_LABEL else Truncator(name).chars(LONGEST_LABEL)

    @property
    def version_words(self) -> str:
        """Here rather than in the template, which has hundreds of them: there each takes five times as long."""
        return gettext("version %(version)s") % {"version": self.version}

    @property
    def id_words(self) -> str:
        """The schema's id."""
        return gettext("id %(schema_id)s") % {"schema_id": self.schema_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """A subject across the environments, cells in their order; `markable` says that it can be chosen for a plan."""

    subject: str
    url: str
    cells: tuple[BoardCell, ...]
    markable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRule:
    """An environment's place and rule in words; `alarm` where somebody has opened it or a break-glass isn't confirmed.

    `subjects` is None for whoever may not read them all.
    """

    environment: Environment
    rule: str
    url: str
    subjects: int | None = 0
    level: str = ""
    mode: str = ""
    alarm: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentBoard:
    """Subjects by environment. `ways` are the pairs of environments that a chosen set can go, `preview` the button.

    With fewer than two environments there is nothing to promote: `alone` says so.
    """

    frame: Frame
    rules: tuple[EnvironmentRule, ...]
    search: Search
    rows: tuple[BoardRow, ...]
    paging: Paging
    ways: tuple[Choice, ...] = ()
    preview: Action | None = None
    export_url: str = ""
    alone: bool = False
