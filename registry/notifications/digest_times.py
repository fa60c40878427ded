"""When digests are due. Pure: the moment is given."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from registry.notifications.models import DAILY, OFF, WEEKLY


def zone_of(name: str) -> ZoneInfo:
    """The time zone of that name, UTC for one that isn't known."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def next_after(now: datetime, *, every: str, hour: int, zone: str) -> datetime | None:
    """The first moment after now at that hour there: every day, or on Mondays; None for never.

    An hour that the clock leaves out comes as the clocks are set; one that it has twice counts once.
    """
    if every == OFF:
        return None
    place = zone_of(zone)
    day = now.astimezone(place).date()
    step = timedelta(days=1)
    for _ in range(9):
        moment = datetime.combine(day, time(hour), tzinfo=place).astimezone(now.tzinfo)
        if moment > now and (every == DAILY or (every == WEEKLY and day.weekday() == 0)):
            return moment
        day += step
    raise AssertionError("a week has a Monday")
