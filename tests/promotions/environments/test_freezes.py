"""Freezes that come again: what they are by the clocks, and what they keep from being applied."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.errors import EnvironmentPartNotFound, InvalidInput, NotAllowed, WrongState
from registry.promotions import services
from registry.promotions.board.rows import board_rows
from registry.promotions.environments.freezes import (
    MAX_RECURRING,
    Monthly,
    Recurrence,
    Weekly,
    Window,
    first_open,
    frozen_at,
    merged,
    open_from,
    windows_of,
)
from registry.promotions.models import Environment, PromotionRequest, RecurringFreeze
from registry.promotions.selectors import environment_info, environment_infos
from tests.promotions.factories import V1, Cast, approve_shown, ask, change, register

pytestmark = pytest.mark.requirement("ORA-1")
BERLIN = "Europe/Berlin"
WEEKEND = Weekly(BERLIN, 4, time(16), 0, time(7))
#: summer time from 02:00 to 03:00 on 29 March, back from 03:00 to 02:00 on 25 October
SPRING, AUTUMN = date(2026, 3, 29), date(2026, 10, 25)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


#: rule → a moment, and the window that holds then or comes next
CASES: dict[str, tuple[Recurrence, datetime, tuple[datetime, datetime]]] = {
    "before the weekend": (WEEKEND, utc(2026, 1, 7), (utc(2026, 1, 9, 15), utc(2026, 1, 12, 6))),
    "in it": (WEEKEND, utc(2026, 1, 12, 5, 59), (utc(2026, 1, 9, 15), utc(2026, 1, 12, 6))),
    "when it ends": (WEEKEND, utc(2026, 1, 12, 6), (utc(2026, 1, 16, 15), utc(2026, 1, 19, 6))),
    "over the start of summer time": (WEEKEND, utc(2026, 3, 28), (utc(2026, 3, 27, 15), utc(2026, 3, 30, 5))),
    "over its end": (WEEKEND, utc(2026, 10, 24), (utc(2026, 10, 23, 14), utc(2026, 10, 26, 6))),
    "within a day": (Weekly("UTC", 2, time(1), 2, time(5)), utc(2026, 1, 7), (utc(2026, 1, 7, 1), utc(2026, 1, 7, 5))),
    "all of a week but an hour": (
        Weekly("UTC", 2, time(5), 2, time(4)), utc(2026, 1, 7), (utc(2025, 12, 31, 5), utc(2026, 1, 7, 4))
    ),
    "from an hour that is skipped": (
        Weekly(BERLIN, 6, time(2, 30), 6, time(12)), utc(2026, 3, 28), (utc(2026, 3, 29, 1), utc(2026, 3, 29, 10))
    ),
    "to an hour that is skipped": (
        Weekly(BERLIN, 6, time(1), 6, time(2, 30)), utc(2026, 3, 28), (utc(2026, 3, 29), utc(2026, 3, 29, 1))
    ),
    "from an hour that comes twice": (
        Weekly(BERLIN, 6, time(2, 30), 6, time(12)), utc(2026, 10, 24), (utc(2026, 10, 25, 0, 30), utc(2026, 10, 25, 11))
    ),
    "to an hour that comes twice": (
        Weekly(BERLIN, 6, time(1), 6, time(2, 30)), utc(2026, 10, 24), (utc(2026, 10, 24, 23), utc(2026, 10, 25, 1, 30))
    ),
    "the last three days of a leap year's February": (
        Monthly("UTC", 3, time(), time()), utc(2028, 2, 10), (utc(2028, 2, 27), utc(2028, 3, 1))
    ),
    "the last days, into the new year": (
        Monthly("Asia/Tokyo", 2, time(18), time(9)), utc(2027, 1, 1), (utc(2026, 12, 30, 9), utc(2027, 1, 1))
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_when_it_is(case: str) -> None:
    rule, moment, (start, end) = CASES[case]
    found = next(windows_of(rule, moment, moment + timedelta(days=60)))
    if case == "the last days, into the new year":  # it is over at midnight UTC, when the next one is asked for
        found = next(windows_of(rule, moment - timedelta(seconds=1), moment))
    assert (found.starts_at, found.ends_at) == (start, end)


ZONES = st.sampled_from(
    [BERLIN, "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu", "UTC"]
)
TIMES = st.builds(time, st.integers(0, 23), st.integers(0, 59))
DAYS = st.integers(0, 6)
WEEKLY = st.builds(Weekly, ZONES, DAYS, TIMES, DAYS, TIMES).filter(
    lambda rule: (rule.from_day, rule.from_time) != (rule.to_day, rule.to_time)
)
MONTHLY = st.builds(Monthly, ZONES, st.integers(1, 28), TIMES, TIMES)
MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2030, 12, 31), timezones=st.just(UTC))


def is_shown(rule: Weekly, moment: datetime) -> bool:
    """Whether the clocks of the zone then show a time between the start and the end."""
    shown = moment.astimezone(ZoneInfo(rule.zone))
    now = (shown.weekday(), shown.time().replace(fold=0))
    start, end = (rule.from_day, rule.from_time), (rule.to_day, rule.to_time)
    return start <= now < end if start < end else now >= start or now < end


@settings(max_examples=300, deadline=None)
@given(WEEKLY, MOMENTS)
def test_what_the_clocks_show_is_frozen(rule: Weekly, moment: datetime) -> None:
    holding = any(window.has(moment) for window in windows_of(rule, moment, moment + timedelta(seconds=1)))
    if is_shown(rule, moment):
        assert holding
    elif holding:  # in an hour that comes twice, and between its first start and its last end
        near = [moment + timedelta(hours=hours) for hours in (-2, -1, 1, 2)]
        offsets = {each.astimezone(ZoneInfo(rule.zone)).utcoffset() for each in near}
        assert len(offsets) > 1


@settings(max_examples=200, deadline=None)
@given(st.one_of(WEEKLY, MONTHLY), MOMENTS)
def test_windows_follow_each_other_and_the_first_open_moment_is_open(rule: Recurrence, moment: datetime) -> None:
    until = moment + timedelta(days=100)
    windows = list(windows_of(rule, moment, until))
    assert len(windows) >= 3
    assert all(window.ends_at > moment for window in windows)
    assert all(window.starts_at <= window.ends_at for window in windows)
    assert windows == sorted(windows)
    free = open_from(windows, moment)
    assert not any(window.has(free) for window in windows)
    assert free == moment or any(window.ends_at == free for window in windows)
    held = merged(windows, moment)
    assert (held is None) == (free == moment)
    assert held is None or (held.has(moment) and held.ends_at == free)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=8), st.integers(0, 40))
def test_windows_that_overlap_are_one(spans: list[tuple[int, int]], minute: int) -> None:
    zero = utc(2026, 1, 1)
    windows = [Window(zero + timedelta(minutes=a), zero + timedelta(minutes=a + b)) for a, b in spans]
    frozen = {m for a, b in spans for m in range(a, a + b)}
    expected = next(m for m in range(minute, 100) if m not in frozen)
    assert open_from(windows, zero + timedelta(minutes=minute)) == zero + timedelta(minutes=expected)


# -- what a service takes -----------------------------------------------------------------------------------------------


def always(cast: Cast, environment: str = "prod", **more: Any) -> int:
    """A freeze that leaves a minute of the week: the one before the minute that was a quarter of an hour ago."""
    start = timezone.now() - timedelta(minutes=15)
    end = start - timedelta(minutes=1)
    values: dict[str, Any] = {
        "kind": "weekly", "zone": "UTC", "from_day": start.weekday(), "from_time": start.time(),
        "to_day": end.weekday(), "to_time": end.time(), "reason": "nobody is there",
    }  # fmt: skip
    return services.add_recurring_freeze(environment=environment, by=cast["admin"], **values | more)


WRONG: dict[str, dict[str, Any]] = {
    "a kind": {"kind": "daily"},
    "a zone": {"zone": "Berlin"},
    "a file": {"zone": "../../etc/passwd"},
    "NUL": {"zone": "Europe/Berlin\0"},
    "no day": {"from_day": None},
    "a day": {"to_day": 7},
    "an offset": {"from_time": time(16, tzinfo=UTC)},
    "no end": {"from_day": 1, "to_day": 1, "from_time": time(7, 0, 1), "to_time": time(7)},
    "no reason": {"reason": "  "},
    "no last days": {"kind": "monthly"},
    "too many last days": {"kind": "monthly", "last_days": 29},
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_such_freeze(cast: Cast, case: str) -> None:
    with pytest.raises(InvalidInput):
        always(cast, **WRONG[case])
    assert not RecurringFreeze.objects.exists()


def test_who_may_not_manage_sets_none_and_ends_none(cast: Cast) -> None:
    for name in ("steward", "approver", "reader"):
        with pytest.raises(NotAllowed):
            always({**cast, "admin": cast[name]})
    number = always(cast)
    for name in ("steward", "approver"):
        with pytest.raises(NotAllowed):
            services.remove_recurring_freeze(freeze_id=number, by=cast[name])
    change(is_closed=False)
    services.remove_recurring_freeze(freeze_id=number, by=cast["admin"])
    with pytest.raises(EnvironmentPartNotFound):
        services.remove_recurring_freeze(freeze_id=number, by=cast["admin"])


def test_an_environment_takes_so_many(cast: Cast) -> None:
    for _ in range(MAX_RECURRING):
        always(cast)
    with pytest.raises(WrongState, match="Remove one"):
        always(cast)


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "weekly", "from_day": 1, "to_day": None},
        {"kind": "weekly", "from_day": 1, "to_day": 1},
        {"kind": "weekly", "from_day": 1, "to_day": 9},
        {"kind": "monthly", "last_days": None},
        {"kind": "monthly", "last_days": 3, "from_day": 1},
        {"kind": "yearly"},
    ],
)
def test_the_database_takes_no_other(cast: Cast, values: dict[str, Any]) -> None:
    row = {"zone": "UTC", "from_time": time(7), "to_time": time(7), "reason": "x", "made_by_id": cast["admin"].user_id}
    with pytest.raises(IntegrityError), transaction.atomic():
        RecurringFreeze.objects.create(environment=Environment.objects.get(registry__name="prod"), **row | values)


def test_it_is_shown_with_its_next_time_everywhere(cast: Cast) -> None:
    register(V1, cast["steward"])
    always(cast)
    prod = environment_info("prod")
    (rule,) = prod.recurring
    assert prod.is_frozen and rule.is_now and prod.frozen is not None
    assert prod.frozen.ends_at == rule.ends_at > timezone.now() + timedelta(days=6)
    (place,) = [place for place in board_rows(by=cast["admin"]).environments if place.name == "prod"]
    assert "nobody is there" in place.frozen
    with CaptureQueriesContext(connection) as one:
        environment_infos()
    for environment in ("dev", "staging"):
        always(cast, environment)
    with CaptureQueriesContext(connection) as three:
        environment_infos()
    assert len(three) == len(one)


# -- what it stops ------------------------------------------------------------------------------------------------------


def approved(cast: Cast) -> int:
    register(V1, cast["steward"])
    number = ask(cast)
    approve_shown(request_id=number, by=cast["approver"])
    return number


def test_nothing_is_applied_in_it(cast: Cast) -> None:
    number = approved(cast)
    always(cast)
    with pytest.raises(WrongState, match="frozen until"):
        services.apply(request_id=number, by=cast["approver"])


def test_a_time_in_it_is_refused_or_moved_to_the_first_open_one(cast: Cast) -> None:
    number = approved(cast)
    always(cast)
    at = timezone.now() + timedelta(hours=1)
    target = Environment.objects.get(registry__name="prod")
    held, free = first_open(target, at)
    assert held is not None and held.has(at) and free == held.ends_at
    with pytest.raises(WrongState, match=f"until {free:%Y-%m-%d %H:%M} UTC: nobody is there. Schedule it for then"):
        services.schedule(request_id=number, by=cast["approver"], at=at)
    row = PromotionRequest.objects.get(pk=number)
    assert (row.state, row.apply_at) == ("approved", None)
    services.schedule(request_id=number, by=cast["approver"], at=at, move_on=True)
    row.refresh_from_db()
    assert (row.state, row.apply_at) == ("scheduled", free)
    assert frozen_at([target], free) == {}
    later = free + timedelta(seconds=30)
    services.schedule(request_id=number, by=cast["approver"], at=later)
    row.refresh_from_db()
    assert row.apply_at == later


def test_a_freeze_of_once_counts_too_and_one_without_an_end_in_sight(cast: Cast) -> None:
    number = approved(cast)
    now = timezone.now()
    at = now + timedelta(days=2)
    services.add_freeze(
        environment="prod",
        by=cast["admin"],
        starts_at=at - timedelta(days=1),
        ends_at=at + timedelta(days=200),
        reason="x",
    )
    for move_on in (False, True):
        with pytest.raises(WrongState, match="No time without a freeze was found in the next 90 days"):
            services.schedule(request_id=number, by=cast["approver"], at=at, move_on=move_on)
    before = at - timedelta(days=1, minutes=1)
    assert services.schedule(request_id=number, by=cast["approver"], at=before) == "scheduled"


def test_an_approval_that_passes_over_freezes_may_be_scheduled_in_one(cast: Cast) -> None:
    register(V1, cast["steward"])
    change(reviews_needed=1)
    always(cast)
    number = ask(cast)
    approve_shown(request_id=number, by=cast["approver"], override="it can't wait")
    at = timezone.now() + timedelta(hours=1)
    assert services.schedule(request_id=number, by=cast["approver"], at=at) == "scheduled"
    assert PromotionRequest.objects.get(pk=number).apply_at == at
