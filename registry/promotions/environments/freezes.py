"""Freezes: times when nothing is applied to an environment, once or recurring in a time zone.

A recurring window begins when the clocks first show its start, and ends when they last show its end. So if an edge is
in an hour that the clocks show twice, the whole hour is frozen; an edge in a skipped hour is the moment of the skip.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Any, Final
from zoneinfo import ZoneInfo, available_timezones

from django.db import transaction
from django.db.models import Model, Value
from django.utils import timezone

from registry.access.roles import Actor, require
from registry.audit.context import record
from registry.errors import InvalidInput, WrongState
from registry.promotions.environments import locking
from registry.promotions.environments.change_guard import require_second_person
from registry.promotions.models import Environment, FreezeWindow, RecurringFreeze

DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WEEK: Final = timedelta(days=7)
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, order=True)
class Window:
    """A half-open interval in UTC, with the reason of the freeze."""

    starts_at: datetime
    ends_at: datetime
    reason: str = ""

    def has(self, moment: datetime) -> bool:
        """Return whether the moment is in the window."""
        return self.starts_at <= moment < self.ends_at


@dataclass(frozen=True)
class Weekly:
    """A weekly window from a day (0 is Monday) and time to another; the two differ."""

    zone: str
    from_day: int
    from_time: time
    to_day: int
    to_time: time

    @property
    def sentence(self) -> str:
        """When it is, in words."""
        start, end = f"{DAYS[self.from_day]} {self.from_time:%H:%M}", f"{DAYS[self.to_day]} {self.to_time:%H:%M}"
        return f"Every week from {start} to {end}, {self.zone}"

    def edges(self, around: date) -> Iterator[tuple[datetime, datetime]]:
        """Yield local start and end of each window, from the week before that day; at most until the year 9999."""
        monday = around - timedelta(days=around.weekday() + 7)
        start = datetime.combine(monday + timedelta(days=self.from_day), self.from_time)
        end = datetime.combine(monday + timedelta(days=self.to_day), self.to_time)
        if end <= start:
            end += _WEEK
        while True:
            yield start, end
            start, end = start + _WEEK, end + _WEEK


@dataclass(frozen=True)
class Monthly:
    """A monthly window from a time on one of a month's last days to a time on the first day of the next month."""

    zone: str
    last_days: int
    from_time: time
    to_time: time

    @property
    def sentence(self) -> str:
        """When it is, in words."""
        days = "the last day" if self.last_days == 1 else f"the last {self.last_days} days"
        start = "" if self.from_time == time() else f", from {self.from_time:%H:%M}"
        end = "" if self.to_time == time() else f" to {self.to_time:%H:%M} on the first day of the next month"
        return f"Every month on {days}{start}{end}, {self.zone}"

    def edges(self, around: date) -> Iterator[tuple[datetime, datetime]]:
        """Yield local start and end of each window, from the month before that day."""
        first = (around.replace(day=1) - _DAY).replace(day=1)
        while True:
            following = (first + timedelta(days=31)).replace(day=1)
            start = following - timedelta(days=self.last_days)
            yield datetime.combine(start, self.from_time), datetime.combine(following, self.to_time)
            first = following


Recurrence = Weekly | Monthly


def windows_of(recurrence: Recurrence, since: datetime, until: datetime) -> Iterator[Window]:
    """Return the windows that end after `since` and begin before `until`, in order."""
    zone = ZoneInfo(recurrence.zone)
    for start, end in recurrence.edges(since.astimezone(zone).date()):
        window = Window(_first(start, zone), _last(end, zone))
        if window.starts_at >= until:
            return
        if window.ends_at > since:
            yield window


def open_from(windows: Iterable[Window], moment: datetime) -> datetime:
    """Return the first moment, from the given one on, that is in none of the windows."""
    for window in sorted(windows):
        if window.has(moment):
            moment = window.ends_at
    return moment


def merged(windows: Sequence[Window], moment: datetime) -> Window | None:
    """Return the union of the windows around that moment, with adjoining ones; None if it is in none.

    Its reason is that of the window that ends last.
    """
    holding = [window for window in windows if window.has(moment)]
    if not holding:
        return None
    longest = max(holding, key=lambda window: window.ends_at)
    start = min(window.starts_at for window in holding)
    return Window(start, open_from(windows, moment), longest.reason)


@cache
def zones() -> frozenset[str]:
    """Return the names of the known time zones."""
    return frozenset(available_timezones())


def _first(shown: datetime, zone: ZoneInfo) -> datetime:
    """Return when the clocks of a zone first show this local time."""
    early, late = _readings(shown, zone)
    return early if early <= late else _skip(late, early, zone)


def _last(shown: datetime, zone: ZoneInfo) -> datetime:
    """Return when the clocks of a zone last show this local time."""
    early, late = _readings(shown, zone)
    return late if early <= late else _skip(late, early, zone)


def _readings(shown: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Return the first and second moment of this local time; in reverse order for a skipped one."""
    first, second = (shown.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return first, second


def _skip(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment between the two at which the clocks jump, to the second."""
    offset = before.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) // 2
        if middle.astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after.replace(microsecond=0)


#: how far ahead the end of a freeze, or an open time, is searched for
AHEAD: Final = timedelta(days=400)


def recurrence_of(row: RecurringFreeze) -> Recurrence:
    """Return the recurrence of a stored freeze."""
    if row.kind == RecurringFreeze.MONTHLY:
        return Monthly(row.zone, row.last_days or 1, row.from_time, row.to_time)
    return Weekly(row.zone, row.from_day or 0, row.from_time, row.to_day or 0, row.to_time)


def next_window(row: RecurringFreeze, now: datetime) -> Window:
    """Return the current window of a recurring freeze, or the next one."""
    window = next(windows_of(recurrence_of(row), now, now + AHEAD))
    return Window(window.starts_at, window.ends_at, row.reason)


def window_of(environment: Environment, moment: datetime) -> Window | None:
    """Return the freeze of an environment at that moment; no query if its freezes are prefetched."""
    freezes, rules = environment.freeze_windows.all(), environment.recurring_freezes.all()
    return merged(list(windows_from(freezes, rules, moment)), moment)


def frozen_at(environments: Sequence[Environment], moment: datetime, *, are_read: bool = False) -> dict[int, Window]:
    """Return environment → its freeze at that moment; one query, none if their freezes are prefetched (`are_read`)."""
    if are_read:
        windows_by_number = {row.pk: window_of(row, moment) for row in environments}
    else:
        numbers = [row.pk for row in environments]
        windows = windows_by("environment_id", numbers, moment)
        windows_by_number = {number: merged(windows[number], moment) for number in numbers}
    return {number: window for number, window in windows_by_number.items() if window is not None}


def first_open(environment: Environment, moment: datetime) -> tuple[Window | None, datetime]:
    """Return the environment's freeze at that moment, and the first open moment from then on."""
    windows = windows_by("environment_id", [environment.pk], moment)[environment.pk]
    return merged(windows, moment), open_from(windows, moment)


def windows_from(
    freezes: Iterable[FreezeWindow], rules: Iterable[RecurringFreeze], since: datetime
) -> Iterator[Window]:
    """Return all windows that end after that moment."""
    for row in freezes:
        if row.ends_at > since:
            yield Window(row.starts_at, row.ends_at, row.reason)
    for rule in rules:
        for window in windows_of(recurrence_of(rule), since, since + AHEAD):
            yield Window(window.starts_at, window.ends_at, rule.reason)


#: the columns of a one-time freeze, and of a recurring one
_DATES: Final = ("starts_at", "ends_at")
_RULE: Final = ("kind", "zone", "from_day", "from_time", "to_day", "to_time", "last_days")


def _nothing(model: type[Model], columns: Iterable[str]) -> list[Value]:
    """Return NULL in place of each of a model's columns, for rows that don't have them."""
    fields = {field.name: field for field in model._meta.concrete_fields}
    return [Value(None, fields[name]) for name in columns]


def windows_by(place: str, values: Collection[Any], since: datetime) -> dict[Any, list[Window]]:
    """Return the windows that end after that moment, by the environments' `place` (a column of a freeze); one query."""
    freezes: dict[Any, list[FreezeWindow]] = {value: [] for value in values}
    rules: dict[Any, list[RecurringFreeze]] = {value: [] for value in values}
    there, shared = {f"{place}__in": values}, (place, "reason")
    once = FreezeWindow.objects.filter(**there, ends_at__gt=since).order_by()
    again = RecurringFreeze.objects.filter(**there).order_by()
    once_rows = once.values_list(*shared, *_DATES, *_nothing(RecurringFreeze, _RULE))
    again_rows = again.values_list(*shared, *_nothing(FreezeWindow, _DATES), *_RULE)
    for value, reason, starts_at, ends_at, *rule in once_rows.union(again_rows, all=True):
        if ends_at is not None:
            freezes[value].append(FreezeWindow(starts_at=starts_at, ends_at=ends_at, reason=reason))
        else:
            rules[value].append(RecurringFreeze(reason=reason, **dict(zip(_RULE, rule, strict=True))))
    return {value: list(windows_from(freezes[value], rules[value], since)) for value in freezes}


#: the most recurring freezes of an environment
MAX_RECURRING: Final = 20
MAX_LAST_DAYS: Final = 28
MIDNIGHT: Final = time()


@transaction.atomic
def add_freeze(*, environment: str, by: Actor, starts_at: datetime, ends_at: datetime, reason: str) -> int:
    """Freeze an environment between two moments; returns the freeze's number.

    Raises RegistryNotFound, NotAllowed, NotSignedIn, InvalidInput.
    """
    require(by, locking.MANAGE, registry=environment)
    row = locking.locked_environment(environment)
    why = locking.readable(reason, "reason")
    for field, moment in (("starts_at", starts_at), ("ends_at", ends_at)):
        if timezone.is_naive(moment):
            raise InvalidInput(f"{field} needs a time zone.", field=field)
    if ends_at <= starts_at:
        raise InvalidInput("A freeze must end after it starts.", field="ends_at")
    if ends_at <= timezone.now():
        raise InvalidInput("This freeze has already ended.", field="ends_at")
    record(by=by, why=f"freeze {environment}: {why}")
    return FreezeWindow.objects.create(
        environment=row, starts_at=starts_at, ends_at=ends_at, reason=why, made_by_id=locking.person(by)
    ).pk


@transaction.atomic
def remove_freeze(*, freeze_id: int, by: Actor) -> None:
    """End a freeze, or cancel a future one. Raises EnvironmentPartNotFound, NotAllowed, SecondPersonRequired."""
    row = locking.environment_part(FreezeWindow, freeze_id, "freeze", by)
    require(by, locking.MANAGE, registry=row.environment.registry.name)
    record(by=by, why=f"end the freeze {row.pk} of {row.environment}")
    if row.environment.is_closed and row.ends_at > timezone.now():
        sentence = f"end the freeze of {row.environment} from {row.starts_at:%Y-%m-%d %H:%M} to {row.ends_at:%Y-%m-%d %H:%M} UTC"
        require_second_person(row.environment, by, sentence, "remove_freeze", {"freeze_id": freeze_id})
    row.delete()


@transaction.atomic
def add_recurring_freeze(
    *,
    environment: str,
    by: Actor,
    kind: str,
    zone: str,
    reason: str,
    from_time: time = MIDNIGHT,
    to_time: time = MIDNIGHT,
    from_day: int | None = None,
    to_day: int | None = None,
    last_days: int | None = None,
) -> int:
    """Freeze an environment at recurring times of a zone such as Europe/Berlin; returns the freeze's number.

    `weekly` takes two days (0 is Monday), `monthly` the number of a month's last days.
    Raises RegistryNotFound, NotAllowed, NotSignedIn, InvalidInput, and WrongState for too many of them.
    """
    require(by, locking.MANAGE, registry=environment)
    row = locking.locked_environment(environment)
    values = {
        "kind": locking.one_of(kind, "kind", RecurringFreeze.KINDS),
        "zone": _zone(zone),
        "from_time": _clock(from_time, "from_time"),
        "to_time": _clock(to_time, "to_time"),
        "reason": locking.readable(reason, "reason"),
        **(_monthly(last_days) if kind == RecurringFreeze.MONTHLY else _weekly(from_day, to_day)),
    }
    if kind == RecurringFreeze.WEEKLY and (from_day, values["from_time"]) == (to_day, values["to_time"]):
        raise InvalidInput(
            "The freeze starts again when it ends, so requests could never be applied. Choose another end.",
            field="to_time",
        )
    if row.recurring_freezes.count() >= MAX_RECURRING:
        raise WrongState(
            f"{environment} has {MAX_RECURRING} recurring freezes, which is the maximum. Remove one first."
        )
    record(by=by, why=f"freeze {environment} {kind}: {values['reason']}")
    return RecurringFreeze.objects.create(environment=row, made_by_id=locking.person(by), **values).pk


@transaction.atomic
def remove_recurring_freeze(*, freeze_id: int, by: Actor) -> None:
    """Remove a recurring freeze. Raises EnvironmentPartNotFound, NotAllowed, SecondPersonRequired."""
    row = locking.environment_part(RecurringFreeze, freeze_id, "recurring freeze", by)
    require(by, locking.MANAGE, registry=row.environment.registry.name)
    record(by=by, why=f"end the recurring freeze {row.pk} of {row.environment}")
    if row.environment.is_closed:
        sentence = f"end the recurring freeze of {row.environment} ({row.kind}, {row.zone}: {row.reason})"
        require_second_person(row.environment, by, sentence, "remove_recurring_freeze", {"freeze_id": freeze_id})
    row.delete()


def _zone(name: str) -> str:
    if name not in zones():
        raise InvalidInput(f"Unknown time zone {name[:64]!r}. Use a name such as Europe/Berlin or UTC.", field="zone")
    return name


def _clock(moment: time, field: str) -> time:
    """Return a local time of the zone, to the minute. Raises InvalidInput."""
    if moment.tzinfo is not None:
        raise InvalidInput(
            f"{field} must be a time without an offset. It uses the time zone of the freeze.", field=field
        )
    return moment.replace(second=0, microsecond=0)


def _weekly(from_day: int | None, to_day: int | None) -> dict[str, int]:
    days = {"from_day": from_day, "to_day": to_day}
    for field, day in days.items():
        if day is None or not 0 <= day < len(DAYS):
            raise InvalidInput(f"{field} must be a day of the week, from 0 (Monday) to 6 (Sunday).", field=field)
    return {field: day for field, day in days.items() if day is not None}


def _monthly(last_days: int | None) -> dict[str, int]:
    if last_days is None or not 1 <= last_days <= MAX_LAST_DAYS:
        raise InvalidInput(f"last_days must be a number from 1 to {MAX_LAST_DAYS}.", field="last_days")
    return {"last_days": last_days}
