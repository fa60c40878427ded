"""One environment: its rules, freeze windows, whether it is closed, and who has broken the glass."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.presenters.frame import Action, Choice, Environment, Fact, Field, Frame, Link, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleView:
    """A rule of who has to approve, in words."""

    sentence: str
    remove: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeView:
    """A time in which nothing is applied; `now` says that it is in force."""

    starts_at: datetime
    ends_at: datetime
    reason: str
    made_by: str
    remove: Action
    now: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurringView:
    """Times that come again in which nothing is applied, in words; the two moments are of the present or the next one."""

    sentence: str
    starts_at: datetime
    ends_at: datetime
    reason: str
    made_by: str
    remove: Action
    now: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakGlassView:
    """A passage through a closed environment. `mark` is how it stands: open, waiting, confirmed or red.

    It waits for a second person from when it was closed; red is for good, whoever confirms it after the day.
    """

    number: int
    opened_by: str
    opened_at: datetime
    ends_at: datetime
    reason: str
    uses: int
    mark: str
    sentence: str
    confirmed_by: str = ""
    confirmed_at: datetime | None = None
    comment: str = ""
    close: Action | None = None
    confirm: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeView:
    """A change that loosens the environment: who asked for it and why, who decided, and what can be done with it."""

    number: int
    sentence: str
    reason: str
    state: str
    state_words: str
    requested_by: str
    requested_at: datetime
    decided_by: str = ""
    decided_at: datetime | None = None
    comment: str = ""
    approve: Action | None = None
    reject: Action | None = None
    withdraw: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LooseningForm:
    """What was refused because it takes a second person, and the form that asks for one."""

    sentence: str
    url: str
    action: str
    values: str
    fields: tuple[Field, ...]
    is_here: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentPage:
    """An environment; forms that the reader may not send carry the reason in their action."""

    frame: Frame
    environment: Environment
    closed: bool
    headline: str
    sentence: str
    facts: tuple[Fact, ...]
    links: tuple[Link, ...]
    settings: tuple[Field, ...]
    switches: tuple[Choice, ...]
    change: Action
    rules: tuple[RuleView, ...]
    rule_fields: tuple[Field, ...]
    add_rule: Action
    freezes: tuple[FreezeView, ...]
    freeze_fields: tuple[Field, ...]
    add_freeze: Action
    recurring: tuple[RecurringView, ...]
    recurring_fields: tuple[Field, ...]
    add_recurring: Action
    break_glass: tuple[BreakGlassView, ...]
    break_glass_fields: tuple[Field, ...]
    open_break_glass: Action | None = None
    problem: Problem | None = None
    changes: tuple[ChangeView, ...] = ()
    loosening: LooseningForm | None = None
