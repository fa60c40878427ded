"""When a review is due: a request has waited long enough, or nothing can be applied soon. Pure but for the freezes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, date, datetime, timedelta
from typing import Final

from registry.promotions.freezes import windows_from
from registry.promotions.models import Environment
from registry.promotions.recurring import Window

#: a review is due after so much time on working days
WAITS: Final = timedelta(days=2)
#: and when a freeze of its target begins within
SOON: Final = timedelta(days=2)
_SATURDAY: Final = 5
_DAY: Final = timedelta(days=1)


def worked(since: datetime, until: datetime) -> timedelta:
    """How much time passed between two moments, Saturdays and Sundays (in UTC) left out."""
    start, end = since.astimezone(UTC), until.astimezone(UTC)
    if end <= start:
        return timedelta()
    weeks = (end - start) // timedelta(weeks=1)
    found = weeks * timedelta(days=5)
    moment = start + weeks * timedelta(weeks=1)
    while moment < end:
        midnight = datetime.combine(moment.date() + _DAY, datetime.min.time(), tzinfo=UTC)
        if _is_working(moment.date()):
            found += min(midnight, end) - moment
        moment = midnight
    return found


def waits_long(since: datetime, now: datetime) -> bool:
    """Whether a review that was asked for then is due."""
    return worked(since, now) > WAITS


def freezes_soon(targets: Collection[str], now: datetime) -> dict[str, Window]:
    """Environment → the freeze that begins there soon, the first of them; three queries, none for no environment."""
    if not targets:
        return {}
    rows = Environment.objects.filter(registry__name__in=targets).select_related("registry")
    found = {}
    for row in rows.prefetch_related("freeze_windows", "recurring_freezes"):
        windows = windows_from(row.freeze_windows.all(), row.recurring_freezes.all(), now)
        coming = [window for window in windows if now < window.starts_at <= now + SOON]
        if coming:
            found[row.registry.name] = min(coming, key=lambda window: window.starts_at)
    return found


def _is_working(day: date) -> bool:
    return day.weekday() < _SATURDAY
