"""When nothing is applied to an environment: its freeze windows and those that come again, put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from registry.promotions.models import Environment, FreezeWindow, RecurringFreeze
from registry.promotions.recurring import Monthly, Recurrence, Weekly, Window, merged, open_from, windows_of

#: how far ahead is looked for an end, or an open time
AHEAD: Final = timedelta(days=400)


def recurrence_of(row: RecurringFreeze) -> Recurrence:
    """The rule of a stored one."""
    if row.kind == RecurringFreeze.MONTHLY:
        return Monthly(row.zone, row.last_days or 1, row.from_time, row.to_time)
    return Weekly(row.zone, row.from_day or 0, row.from_time, row.to_day or 0, row.to_time)


def next_window(row: RecurringFreeze, now: datetime) -> Window:
    """The one that holds now, or the next."""
    found = next(windows_of(recurrence_of(row), now, now + AHEAD))
    return Window(found.starts_at, found.ends_at, row.reason)


def window_of(environment: Environment, moment: datetime) -> Window | None:
    """What holds it then, up to its end; no query where its freezes were read along with it."""
    freezes, rules = environment.freeze_windows.all(), environment.recurring_freezes.all()
    return merged(list(windows_from(freezes, rules, moment)), moment)


def frozen_at(environments: Sequence[Environment], moment: datetime) -> dict[int, Window]:
    """Environment → what holds it then, up to its end; two queries."""
    found = {number: merged(windows, moment) for number, windows in _windows(environments, moment).items()}
    return {number: window for number, window in found.items() if window is not None}


def first_open(environment: Environment, moment: datetime) -> tuple[Window | None, datetime]:
    """What holds the environment at that moment, and the first moment from then on at which nothing does."""
    windows = _windows([environment], moment)[environment.pk]
    return merged(windows, moment), open_from(windows, moment)


def windows_from(
    freezes: Iterable[FreezeWindow], rules: Iterable[RecurringFreeze], since: datetime
) -> Iterator[Window]:
    """All windows that aren't over at that moment."""
    for row in freezes:
        if row.ends_at > since:
            yield Window(row.starts_at, row.ends_at, row.reason)
    for rule in rules:
        for window in windows_of(recurrence_of(rule), since, since + AHEAD):
            yield Window(window.starts_at, window.ends_at, rule.reason)


def _windows(environments: Sequence[Environment], since: datetime) -> dict[int, list[Window]]:
    freezes: dict[int, list[FreezeWindow]] = {row.pk: [] for row in environments}
    rules: dict[int, list[RecurringFreeze]] = {row.pk: [] for row in environments}
    for row in FreezeWindow.objects.filter(environment__in=environments, ends_at__gt=since):
        freezes[row.environment_id].append(row)
    for rule in RecurringFreeze.objects.filter(environment__in=environments):
        rules[rule.environment_id].append(rule)
    return {number: list(windows_from(freezes[number], rules[number], since)) for number in freezes}
