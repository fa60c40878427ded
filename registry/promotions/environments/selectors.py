"""Environments with their rules, freezes, break-glass and pending changes, for pages and the API.

The number of queries is constant, except for open changes of rights: each compares what it depends on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any, Final

from django.db.models import OuterRef, Prefetch, Q, QuerySet, Subquery
from django.utils import timezone

from registry.audit import time_travel
from registry.errors import RegistryNotFound
from registry.frozen_rows import row_info
from registry.promotions.environments.change_guard import outdated_reason
from registry.promotions.environments.freezes import Window, next_window, recurrence_of, window_of
from registry.promotions.models import (
    BreakGlass,
    Environment,
    EnvironmentChange,
    FreezeWindow,
    RecurringFreeze,
    ReviewRule,
)
from registry.subjects.models import Config, Mode, Registry
from registry.subjects.policy.effective_policy import DEFAULT_LEVEL, DEFAULT_MODE

#: how long after its opening a second person can confirm break-glass
CONFIRM_WITHIN: Final = timedelta(days=1)
#: break-glass of an environment that is open or was never confirmed, newest first; the history shows all
SHOWN: Final = 50


@dataclass(frozen=True)
class ReviewRuleInfo:
    """The approvals that an environment requires in addition to its number of reviews."""

    id: int
    subject_pattern: str
    verdict: str
    reviewers: str
    name: str
    count: int

    @property
    def sentence(self) -> str:
        """The rule in words."""
        people = {"owners": "the subject's owners", "role": f"the {self.name} role", "group": f"the group {self.name}"}
        which = "breaking requests" if self.verdict == ReviewRule.BREAKING else "requests"
        where = "" if self.subject_pattern == "*" else f" that match {self.subject_pattern}"
        approvals = "1 approval" if self.count == 1 else f"{self.count} approvals"
        return f"{approvals} from {people[self.reviewers]} for {which}{where}"


@dataclass(frozen=True)
class FreezeInfo:
    """A freeze; `is_now` says that it is in force."""

    id: int
    starts_at: datetime
    ends_at: datetime
    reason: str
    made_by: str
    is_now: bool


@dataclass(frozen=True)
class RecurringFreezeInfo:
    """A recurring freeze; `starts_at` and `ends_at` are those of the current or next window."""

    id: int
    kind: str
    zone: str
    from_day: int | None
    from_time: time
    to_day: int | None
    to_time: time
    last_days: int | None
    reason: str
    made_by: str
    sentence: str
    starts_at: datetime
    ends_at: datetime
    is_now: bool


@dataclass(frozen=True)
class BreakGlassInfo:
    """A use of break-glass. `is_red`: nobody confirmed it within a day, so nobody can any more."""

    id: int
    environment: str
    reason: str
    opened_by: str
    opened_by_id: int
    opened_at: datetime
    ends_at: datetime
    uses: int
    confirmed_by: str
    confirmed_at: datetime | None
    comment: str
    confirm_until: datetime
    is_open: bool
    is_red: bool

    @property
    def is_confirmed(self) -> bool:
        """Whether a second person confirmed it."""
        return self.confirmed_at is not None

    @property
    def state(self) -> str:
        """`open`, `waiting` for a second person, `confirmed`, or `red`."""
        if self.is_open:
            return "open"
        return "confirmed" if self.is_confirmed else "red" if self.is_red else "waiting"

    @property
    def can_be_confirmed(self) -> bool:
        """Whether a second person can confirm it now: it is closed, and the day isn't over."""
        return not (self.is_open or self.is_confirmed or self.is_red)


@dataclass(frozen=True)
class EnvironmentInfo:
    """An environment with its rules for promotions.

    `settings` are the values of the fields in `models.environments.SETTINGS`. `freezes` are those that aren't over,
    `frozen` is the current freeze, recurring ones included; `break_glass` is what is open or unconfirmed; `mode` and
    `level` are the registry's own.
    """

    name: str
    position: int
    mode: str
    level: str
    is_closed: bool
    is_remote: bool
    settings: Mapping[str, int]
    rules: tuple[ReviewRuleInfo, ...]
    freezes: tuple[FreezeInfo, ...]
    recurring: tuple[RecurringFreezeInfo, ...]
    frozen: Window | None
    break_glass: tuple[BreakGlassInfo, ...]

    @property
    def is_frozen(self) -> bool:
        """Whether the environment is frozen now."""
        return self.frozen is not None

    @property
    def has_red(self) -> bool:
        """Whether some break-glass of this environment was never confirmed."""
        return any(glass.is_red for glass in self.break_glass)


def environment_rows() -> list[Environment]:
    """Return all environments in promotion order, with what their infos and the board need; five queries."""
    return _rows(Environment.objects.all())


def environment_infos(rows: Sequence[Environment] | None = None) -> list[EnvironmentInfo]:
    """Return all environments in promotion order; `rows` are those of `environment_rows`, if read already."""
    now = time_travel.present()
    return [_info(row, now) for row in (environment_rows() if rows is None else rows)]


def environment_info(name: str) -> EnvironmentInfo:
    """Return one environment. Raises RegistryNotFound."""
    rows = _rows(Environment.objects.filter(registry__name=name))
    if not rows:
        raise RegistryNotFound(f"'{name[:80]}' is not an environment.", registry=name[:255])
    return environment_infos(rows)[0]


def break_glass_history(name: str, *, limit: int = 100) -> list[BreakGlassInfo]:
    """Return all break-glass of an environment, newest first."""
    rows = BreakGlass.objects.filter(environment__registry__name=name).select_related("opened_by", "confirmed_by")
    now = time_travel.present()
    return [_glass(row, name, now) for row in rows.order_by("-id")[:limit]]


def open_break_glass_of(name: str, user_id: int | None) -> BreakGlassInfo | None:
    """Return this person's open break-glass in the environment, if there is one."""
    now = timezone.now()
    rows = BreakGlass.objects.filter(environment__registry__name=name, opened_by_id=user_id, ends_at__gt=now)
    row = rows.select_related("opened_by", "confirmed_by").first() if user_id is not None else None
    return None if row is None else _glass(row, name, now)


def _rows(environments: QuerySet[Environment]) -> list[Environment]:
    now = time_travel.present()
    glass = BreakGlass.objects.filter(Q(ends_at__gt=now) | Q(confirmed_at=None)).order_by("-id")
    freezes = FreezeWindow.objects.filter(ends_at__gt=now).order_by("starts_at", "pk")
    modes = Mode.objects.filter(registry=OuterRef("registry"), context=None).values("mode")
    levels = Config.objects.filter(registry=OuterRef("registry"), context=None).values("compatibility_level")
    return list(
        environments.order_by("position")
        .select_related("registry")
        .annotate(own_mode=Subquery(modes[:1]), own_level=Subquery(levels[:1]))
        .prefetch_related(
            Prefetch("review_rules", ReviewRule.objects.order_by("pk")),
            Prefetch("freeze_windows", freezes.select_related("made_by")),
            Prefetch("recurring_freezes", RecurringFreeze.objects.order_by("pk").select_related("made_by")),
            Prefetch("break_glass", glass.select_related("opened_by", "confirmed_by")[:SHOWN], to_attr="shown"),
        )
    )


def _info(row: Any, now: datetime) -> EnvironmentInfo:
    name = row.registry.name
    return row_info(
        EnvironmentInfo,
        row,
        name=name,
        mode=row.own_mode or DEFAULT_MODE,
        level=row.own_level or DEFAULT_LEVEL,
        is_remote=row.registry.kind == Registry.REMOTE,
        rules=tuple(_rule(rule) for rule in row.review_rules.all()),
        freezes=tuple(_freeze(freeze, now) for freeze in row.freeze_windows.all()),
        recurring=tuple(_recurring(rule, now) for rule in row.recurring_freezes.all()),
        frozen=window_of(row, now),
        break_glass=tuple(_glass(glass, name, now) for glass in row.shown),
    )


def _rule(row: ReviewRule) -> ReviewRuleInfo:
    return ReviewRuleInfo(row.pk, row.subject_pattern, row.verdict, row.reviewers, row.name, row.count)


def _freeze(row: FreezeWindow, now: datetime) -> FreezeInfo:
    is_now = row.starts_at <= now < row.ends_at
    return FreezeInfo(row.pk, row.starts_at, row.ends_at, row.reason, row.made_by.get_username(), is_now)


def _recurring(row: RecurringFreeze, now: datetime) -> RecurringFreezeInfo:
    window = next_window(row, now)
    return row_info(
        RecurringFreezeInfo,
        row,
        made_by=row.made_by.get_username(),
        sentence=recurrence_of(row).sentence,
        starts_at=window.starts_at,
        ends_at=window.ends_at,
        is_now=window.has(now),
    )


def _glass(row: BreakGlass, name: str, now: datetime) -> BreakGlassInfo:
    confirm_until = row.opened_at + CONFIRM_WITHIN
    return row_info(
        BreakGlassInfo,
        row,
        environment=name,
        opened_by=row.opened_by.get_username(),
        confirmed_by=row.confirmed_by.get_username() if row.confirmed_by else "",
        confirm_until=confirm_until,
        is_open=now < row.ends_at,
        is_red=row.confirmed_at is None and now >= confirm_until,
    )


@dataclass(frozen=True)
class EnvironmentChangeInfo:
    """A change with its requester and decider; `values` are the arguments of its `action`.

    An open change that `is_outdated` can't be approved, because what it depends on has changed; `outdated` says what.
    """

    id: int
    environment: str
    action: str
    values: Mapping[str, Any]
    before: Mapping[str, Any]
    sentence: str
    reason: str
    state: str
    requested_by: str
    requested_by_id: int
    requested_at: datetime
    decided_by: str
    decided_at: datetime | None
    comment: str
    is_outdated: bool = False
    outdated: str = ""


def environment_changes(name: str, *, limit: int = 100) -> list[EnvironmentChangeInfo]:
    """Return the last changes of an environment: pending ones first, then the newest."""
    rows = EnvironmentChange.objects.filter(environment__registry__name=name).select_related(
        "environment__registry", "requested_by", "decided_by"
    )
    newest = sorted(rows.order_by("-pk")[:limit], key=lambda row: row.state != EnvironmentChange.OPEN)
    return [info_of(row) for row in newest]


def info_of(row: EnvironmentChange) -> EnvironmentChangeInfo:
    """Return the info of a change whose relations are joined."""
    outdated = outdated_reason(row)
    return row_info(
        EnvironmentChangeInfo,
        row,
        environment=row.environment.registry.name,
        is_outdated=bool(outdated),
        outdated=outdated,
        requested_by=row.requested_by.get_username(),
        decided_by=row.decided_by.get_username() if row.decided_by else "",
    )
