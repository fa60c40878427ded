"""Times that come again in which nothing is applied, by the clocks of a time zone: pure.

A window begins when the clocks there first show its start, and ends when they show its end for the last time. So an hour
that the clocks show twice is frozen whole where an edge lies in it, and an edge that they skip is the moment of the skip.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WEEK: Final = timedelta(days=7)
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, order=True)
class Window:
    """From a moment up to another one, which isn't part of it; in UTC."""

    starts_at: datetime
    ends_at: datetime
    reason: str = ""

    def has(self, moment: datetime) -> bool:
        """Whether it is frozen then."""
        return self.starts_at <= moment < self.ends_at


@dataclass(frozen=True)
class Weekly:
    """From a day (0 is Monday) and time to the next such day and time; the two are never the same."""

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
        """What the clocks show at the start and the end, from the week before that day's on; at most until year 9999."""
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
    """From a time of the so many last days of a month to a time of the first day of the next month."""

    zone: str
    last_days: int
    from_time: time
    to_time: time

    @property
    def sentence(self) -> str:
        """When it is, in words."""
        days = "the last day" if self.last_days == 1 else f"the last {self.last_days} days"
        start = "" if self.from_time == time() else f", from {self.from_time:%H:%M}"
        end = "" if self.to_time == time() else f" to {self.to_time:%H:%M} of the first of the next"
        return f"Every month on {days}{start}{end}, {self.zone}"

    def edges(self, around: date) -> Iterator[tuple[datetime, datetime]]:
        """What the clocks show at the start and the end, from the month before that day's on."""
        first = (around.replace(day=1) - _DAY).replace(day=1)
        while True:
            following = (first + timedelta(days=31)).replace(day=1)
            start = following - timedelta(days=self.last_days)
            yield datetime.combine(start, self.from_time), datetime.combine(following, self.to_time)
            first = following


Recurrence = Weekly | Monthly


def windows_of(recurrence: Recurrence, since: datetime, until: datetime) -> Iterator[Window]:
    """Its windows that aren't over at `since` and begin before `until`, in order."""
    zone = ZoneInfo(recurrence.zone)
    for start, end in recurrence.edges(since.astimezone(zone).date()):
        window = Window(_first(start, zone), _last(end, zone))
        if window.starts_at >= until:
            return
        if window.ends_at > since:
            yield window


def open_from(windows: Iterable[Window], moment: datetime) -> datetime:
    """The first moment from that one on at which none of the windows holds."""
    for window in sorted(windows):
        if window.has(moment):
            moment = window.ends_at
    return moment


def merged(windows: Sequence[Window], moment: datetime) -> Window | None:
    """The window that holds at that moment, up to the end of those that go on where it ends; None for an open moment.

    Its reason is that of the one which holds the longest.
    """
    holding = [window for window in windows if window.has(moment)]
    if not holding:
        return None
    longest = max(holding, key=lambda window: window.ends_at)
    start = min(window.starts_at for window in holding)
    return Window(start, open_from(windows, moment), longest.reason)


@cache
def zones() -> frozenset[str]:
    """The names of the time zones that are known here."""
    return frozenset(available_timezones())


def _first(shown: datetime, zone: ZoneInfo) -> datetime:
    """When the clocks of a zone first show that much."""
    early, late = _readings(shown, zone)
    return early if early <= late else _skip(late, early, zone)


def _last(shown: datetime, zone: ZoneInfo) -> datetime:
    """When the clocks of a zone show it for the last time."""
    early, late = _readings(shown, zone)
    return late if early <= late else _skip(late, early, zone)


def _readings(shown: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """The first and the second moment at which clocks show it; the wrong way round for what they skip."""
    first, second = (shown.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return first, second


def _skip(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The moment between the two at which the clocks jump, to the second."""
    offset = before.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) // 2
        if middle.astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after.replace(microsecond=0)
