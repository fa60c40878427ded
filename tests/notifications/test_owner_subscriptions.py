"""The owners of a subject are told of drift on it without a subscription, once, and can switch that off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from registry.access.roles import Actor
from registry.access.services import add_owner
from registry.drift.events import notify_opened
from registry.drift.models import Finding, Source
from registry.errors import InvalidInput
from registry.notifications import services
from registry.notifications.models import Delivery, InboxEntry
from registry.notifications.webhooks import create_webhook
from registry.subjects.models import Registry
from tests.notifications.endpoint import Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]


@pytest.fixture
def cast(person: Callable[[str], Actor], system: Actor) -> dict[str, Actor]:
    """A reader and a steward who own orders-*, and others who own nothing."""
    found = {name: person(name) for name in ("reader", "reader2", "steward", "approver", "stranger")}
    for name in ("reader", "steward", "stranger"):
        add_owner(username=name, registry="dev", subject_pattern="orders-*", by=system)
    return found


def seen(subject: str = "orders-value", *, many: int = 1, **fields: Any) -> None:
    """A scan opened findings."""
    source = Source(pk=1, name="orders", registry=Registry.objects.get(name="dev"))
    shape = {"severity": "break", "sentence": "amt is text", "rule": "R", "evidence": {}, **fields}
    rows = [Finding(pk=number + 1, subject_name=subject, **shape) for number in range(many)]
    with transaction.atomic():
        notify_opened(source, opened=rows, reopened=[])


def told() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, event in InboxEntry.objects.order_by("pk").values_list("user__username", "notice__event"):
        found.setdefault(name, []).append(event)
    return found


def test_owners_are_notified_once_and_others_by_their_role(cast: dict[str, Actor]) -> None:
    seen()
    assert told() == {"reader": ["finding.owned"], "steward": ["finding.owned"], "approver": ["finding.opened"]}


@pytest.mark.parametrize(
    ("fields", "tells"),
    [
        ({"severity": "risk"}, {"reader": ["finding.owned"], "steward": ["finding.owned"]}),
        ({"severity": "notice"}, {}),
        ({"muted": True}, {}),
        ({"subject": "customers"}, {"steward": ["finding.opened"], "approver": ["finding.opened"]}),
    ],
)
def test_by_severity_and_subject(cast: dict[str, Actor], fields: dict[str, Any], tells: dict[str, list[str]]) -> None:
    seen(**fields)
    assert told() == tells


def test_it_can_be_switched_off(cast: dict[str, Actor]) -> None:
    services.subscribe(event="finding.owned", wanted=False, by=cast["reader"])
    services.subscribe(event="finding.owned", wanted=True, by=cast["reader2"])
    seen(severity="risk")
    assert told() == {"steward": ["finding.owned"]}


def test_many_are_said_in_one_sentence(cast: dict[str, Actor]) -> None:
    seen(many=25, severity="risk")
    texts = InboxEntry.objects.filter(user=cast["reader"].user_id).values_list("notice__text", flat=True)
    assert len(texts) == 21 and "5 more findings of orders on orders-value." in texts


def test_no_webhook_is_notified_twice(cast: dict[str, Actor], server: Endpoint) -> None:
    create_webhook(name="ci", url=server.url, by=cast["steward"])
    seen()
    assert [row.notice.event for row in Delivery.objects.select_related("notice")] == ["finding.opened"]
    with pytest.raises(InvalidInput):
        create_webhook(name="own", url=server.url, events=["finding.owned"], by=cast["steward"])
