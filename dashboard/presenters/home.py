"""The home page: what waits for me, what is on its way, what drifts, whether the house is well."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from dashboard.presenters.drift import FindingRow
from dashboard.presenters.frame import Action, Frame, Link, Problem
from dashboard.presenters.looks import Health, ScanState
from dashboard.presenters.notifications import NoticeRow
from dashboard.presenters.promotions import RequestRow


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthLine:
    """One of a part that isn't known to be well: its state (in another word, where `word` has one), and as of when."""

    name: str
    url: str
    state: ScanState
    word: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthItem:
    """A part of the house: its state, what is to say of it, and since when or as of when.

    `lines` are those of it that aren't known to be well, the worst first, and `more` how many others there are.
    """

    label: str
    health: Health
    sentence: str = ""
    at: datetime | None = None
    url: str = ""
    lines: tuple[HealthLine, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityItem:
    """Something that was done; `door` is through what ("page", "REST API", "task")."""

    sentence: str
    who: str
    at: datetime
    url: str = ""
    door: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What was found when a step was tried: how that is, in a word and a sentence, when it was, and where it is cured."""

    health: Health
    word: str
    said: str = ""
    at: datetime | None = None
    cure: Link | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStep:
    """A step of the first run."""

    title: str
    sentence: str
    command: str = ""
    action: Action | None = None
    tried: Tried | None = None

    @property
    def done(self) -> bool:
        """Whether it was tried and is well."""
        return self.tried is not None and self.tried.health == Health.UP


@dataclass(frozen=True, slots=True, kw_only=True)
class HomePage:
    """The inbox. `first_steps` are shown instead of it while there is no subject and no source.

    `demo` is the button "Load the demo" (a POST), None where it isn't offered; `demo_progress` says how far the demo
    is while it loads; then the page asks `watch_url` again and again whether there is more to show. `affected` are requests that don't go on with
    clients for which the reader speaks. `notices` are unread ones, up to the number `newest_notice`. `last_decision` is one sentence for the
    empty inbox. `together_url` leads to where several of what waits are approved at once; `snooze_until` is the day that a
    finding is put off to where no other is chosen, `snooze_from` the first that can be. `signed_in` False shows how to sign in.
    """

    frame: Frame
    signed_in: bool = True
    waiting: tuple[RequestRow, ...] = ()
    affected: tuple[RequestRow, ...] = ()
    notices: tuple[NoticeRow, ...] = ()
    newest_notice: int = 0
    mine: tuple[RequestRow, ...] = ()
    findings: tuple[FindingRow, ...] = ()
    findings_total: int = 0
    health: tuple[HealthItem, ...] = ()
    activity: tuple[ActivityItem, ...] = ()
    last_decision: str = ""
    first_steps: tuple[FirstStep, ...] = ()
    demo: Action | None = None
    demo_progress: str = ""
    watch_url: str = ""
    problems: tuple[Problem, ...] = ()
    together_url: str = ""
    snooze_until: date | None = None
    snooze_from: date | None = None
