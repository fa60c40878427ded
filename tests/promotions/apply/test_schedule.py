"""Applying at a time: whose rights and which plan count is found when the time has come."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from registry.access.models import RoleGrant, User
from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.errors import InvalidInput, NotAllowed, WrongState
from registry.notifications.models import InboxEntry
from registry.promotions import services, tasks
from registry.promotions.apply.execution import apply_due, claim_due
from registry.promotions.models import FreezeWindow, PromotionRequest, Release
from registry.subjects.selectors import list_versions
from registry.subjects.services import register_version, set_config
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.promotions.factories import approve_shown

Cast = Callable[[str], Actor]
ORDERS = SubjectName(".", "orders-value")
pytestmark = pytest.mark.requirement("CARD-4")


@pytest.fixture
def cast(person: Cast) -> dict[str, Actor]:
    return {name: person(name) for name in ("reader", "steward", "approver", "approver2", "admin")}


@pytest.fixture
def approved(cast: dict[str, Actor]) -> int:
    register_version(registry="dev", subject=ORDERS, text='"string"', by=cast["steward"])
    number = services.request_promotion(source="dev", target="prod", subject=ORDERS, by=cast["steward"])
    approve_shown(request_id=number, by=cast["approver"])
    return number


def in_an_hour() -> datetime:
    return timezone.now() + timedelta(hours=1)


def let_its_time_come(number: int) -> None:
    PromotionRequest.objects.filter(pk=number).update(apply_at=timezone.now() - timedelta(seconds=1))


def row(number: int) -> PromotionRequest:
    return PromotionRequest.objects.get(pk=number)


def told(who: str) -> list[str]:
    return list(InboxEntry.objects.filter(user__username=who).order_by("pk").values_list("notice__event", flat=True))


def test_it_is_applied_when_its_time_has_come_in_the_name_of_who_scheduled_it(
    cast: dict[str, Actor], approved: int
) -> None:
    at = in_an_hour()
    assert services.schedule(request_id=approved, by=cast["approver2"], at=at) == "scheduled"
    assert "promotion.scheduled" in told("steward")
    assert claim_due() == []
    assert apply_due(request_id=approved) == "scheduled", "a message that comes too early does nothing"
    let_its_time_come(approved)
    assert claim_due() == [approved]
    assert claim_due() == [], "it is given to one caller"
    assert apply_due(request_id=approved) == "applied"
    assert apply_due(request_id=approved) == "applied", "a message that is delivered twice does it once"
    assert list_versions(get_registry("prod"), ORDERS) == [1]
    released = Release.objects.get()
    assert released.released_by_id == cast["approver2"].user_id
    event = AuditEvent.objects.get(table="promotions_release")
    assert (event.actor, event.channel) == ("approver2", "task")


def test_the_tasks_do_it(cast: dict[str, Actor], approved: int, monkeypatch: pytest.MonkeyPatch) -> None:
    services.schedule(request_id=approved, by=cast["approver"], at=in_an_hour())
    let_its_time_come(approved)
    sent: list[int] = []
    monkeypatch.setattr(tasks.apply_one, "delay", sent.append)
    tasks.apply_due()
    assert sent == [approved]
    tasks.apply_one(approved)
    assert row(approved).state == "applied"


WRONG_TIMES: dict[str, Callable[[], datetime]] = {
    "naive": lambda: datetime(2100, 1, 1),
    "over": lambda: timezone.now() - timedelta(seconds=1),
    "now": timezone.now,
    "too far": lambda: timezone.now() + timedelta(days=90, minutes=1),
    "never": lambda: datetime.max.replace(tzinfo=timezone.get_default_timezone()),
}


@pytest.mark.parametrize("case", WRONG_TIMES)
def test_times_that_are_none(cast: dict[str, Actor], approved: int, case: str) -> None:
    with pytest.raises(InvalidInput):
        services.schedule(request_id=approved, by=cast["approver"], at=WRONG_TIMES[case]())
    assert row(approved).state == "approved"


def test_another_time_and_none(cast: dict[str, Actor], approved: int) -> None:
    with pytest.raises(WrongState, match="is not scheduled"):
        services.unschedule(request_id=approved, by=cast["approver"])
    services.schedule(request_id=approved, by=cast["approver"], at=in_an_hour())
    later = in_an_hour() + timedelta(hours=1)
    assert services.schedule(request_id=approved, by=cast["approver2"], at=later) == "scheduled"
    assert (row(approved).apply_at, row(approved).applied_by_id) == (later, cast["approver2"].user_id)
    with pytest.raises(WrongState, match="is scheduled"):
        services.apply(request_id=approved, by=cast["approver"])
    with pytest.raises(NotAllowed):
        services.unschedule(request_id=approved, by=cast["reader"])
    assert services.unschedule(request_id=approved, by=cast["steward"]) == "approved", "its requester may"
    assert (row(approved).apply_at, row(approved).applied_by_id) == (None, None)
    assert services.apply(request_id=approved, by=cast["approver"]) == "applied"


@pytest.mark.parametrize("who", ["reader", "steward"])
def test_it_takes_the_right_to_apply(cast: dict[str, Actor], approved: int, who: str) -> None:
    with pytest.raises(NotAllowed):
        services.schedule(request_id=approved, by=cast[who], at=in_an_hour())


def test_one_in_review_is_not_scheduled(cast: dict[str, Actor]) -> None:
    register_version(registry="dev", subject=ORDERS, text='"string"', by=cast["steward"])
    number = services.request_promotion(source="dev", target="prod", subject=ORDERS, by=cast["steward"])
    with pytest.raises(WrongState, match="Only an approved request"):
        services.schedule(request_id=number, by=cast["approver"], at=in_an_hour())


def without_role(cast: dict[str, Actor]) -> None:
    RoleGrant.objects.filter(user_id=cast["approver2"].user_id).delete()


def without_account(cast: dict[str, Actor]) -> None:
    User.objects.filter(pk=cast["approver2"].user_id).update(is_active=False)


def frozen(cast: dict[str, Actor]) -> None:
    target, now = PromotionRequest.objects.get().target, timezone.now()
    FreezeWindow.objects.create(
        environment=target, starts_at=now, ends_at=in_an_hour(), reason="year-end", made_by_id=cast["admin"].user_id
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_role, "because approver2 can no longer apply it: this needs the admin or approver role in prod."),
        (without_account, "because approver2 can no longer apply it: the account is deactivated."),
        (frozen, "year-end"),
    ],
    ids=["without_role", "without_account", "frozen"],
)
def test_what_stops_it_then_is_kept_and_reported(
    cast: dict[str, Actor], approved: int, change: Callable[[dict[str, Actor]], None], said: str
) -> None:
    services.schedule(request_id=approved, by=cast["approver2"], at=in_an_hour())
    change(cast)
    let_its_time_come(approved)
    assert apply_due(request_id=approved) == "approved"
    found = row(approved)
    assert (found.state, found.apply_at) == ("approved", None)
    assert "The scheduled request was not applied" in found.failure
    assert said in found.failure
    assert told("steward").count("promotion.failed") == 1
    assert Release.objects.count() == 0
    assert claim_due() == []


def test_a_plan_that_moved_meanwhile_is_voided_visibly(cast: dict[str, Actor], approved: int, system: Any) -> None:
    services.schedule(request_id=approved, by=cast["approver2"], at=in_an_hour())
    set_config(registry="prod", subject=ORDERS, level="FULL", by=cast["approver"], release=True)
    let_its_time_come(approved)
    assert apply_due(request_id=approved) == "in review"
    found = row(approved)
    assert (found.state, found.apply_at) == ("in review", None)
    assert found.moved
    assert "promotion.voided" in told("steward")
    assert Release.objects.count() == 0


@pytest.mark.requirement("ORA-1")
def test_a_rejected_or_withdrawn_one_is_not_applied(cast: dict[str, Actor], approved: int) -> None:
    services.schedule(request_id=approved, by=cast["approver2"], at=in_an_hour())
    services.withdraw(request_id=approved, by=cast["steward"])
    PromotionRequest.objects.filter(pk=approved).update(apply_at=timezone.now())
    assert claim_due() == []
    assert apply_due(request_id=approved) == "withdrawn"
    assert Release.objects.count() == 0
