"""What people are told of a source: its name is for those alone who may read all of its registry."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.test import Client

from registry.access.models import RoleGrant, User
from registry.access.roles import Actor, Grant, TokenLimit
from registry.access.services import add_owner
from registry.errors import NotAllowed
from registry.notifications.models import Delivery, InboxEntry
from registry.notifications.selectors import get_webhook, list_deliveries, list_webhooks
from registry.notifications.webhook_delivery import body_of
from registry.notifications.webhooks import create_webhook
from registry.promotions.requests.drafts import delete_draft, require_author
from tests.conftest import RawClient
from tests.notifications.conftest import server  # noqa: F401  a fixture
from tests.notifications.endpoint import Endpoint
from tests.notifications.test_owner_subscriptions import seen

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]
#: whom it is told → their rights, and whether they may read the source, which is one of dev
PEOPLE: dict[str, tuple[dict[str, str], bool]] = {
    "reader": ({"role": "reader", "registry": "dev", "subject_pattern": "orders-*"}, False),
    "reader2": ({"role": "reader", "registry": "dev"}, True),
    "approver": ({"role": "approver", "subject_pattern": "orders-*"}, False),
    "steward": ({"role": "steward"}, True),
}


@pytest.fixture
def people(person: Callable[[str], Actor], system: Actor) -> dict[str, Actor]:
    """Owners of orders-* with these rights."""
    found = {name: person(name) for name in PEOPLE}
    for name, (rights, _) in PEOPLE.items():
        user = User.objects.get(username=name)
        RoleGrant.objects.filter(user=user).delete()
        RoleGrant.objects.create(user=user, **rights)
        add_owner(username=name, registry="dev", subject_pattern="orders-*", by=system)
    return found


@pytest.mark.parametrize("name", PEOPLE)
def test_an_inbox_names_no_source_that_is_out_of_sight(people: dict[str, Actor], name: str) -> None:
    seen(many=25, severity="risk")
    entries = InboxEntry.objects.filter(user__username=name).select_related("notice")
    named = [entry.notice.text for entry in entries if "findings of" in entry.notice.text]
    source = "orders" if PEOPLE[name][1] else "a source of the registry"
    assert len(entries) == 21 and named == [f"5 more findings of {source} on orders-value."]
    assert {entry.notice.data.get("source") for entry in entries} == ({"orders"} if PEOPLE[name][1] else {None})
    client: Client = RawClient()
    client.force_login(User.objects.get(username=name))
    assert f"5 more findings of {source} on" in client.get("/ui/inbox").content.decode()


def test_neither_does_a_webhook(people: dict[str, Actor], server: Endpoint) -> None:  # noqa: F811
    RoleGrant.objects.create(
        user=User.objects.get(username="reader"), role="steward", registry="dev", subject_pattern="orders-*"
    )
    for name in ("steward", "reader"):
        by = Actor(name, "ui", people[name].user_id, grants=_grants(name))
        pattern = "orders-*" if name == "reader" else "*"
        create_webhook(name=name, url=server.url, registry_pattern="dev", subject_pattern=pattern, by=by)
    seen(many=2)
    told = [
        (row.webhook.owner.username, json.loads(body_of(row.notice))["data"]["details"].get("source"))
        for row in Delivery.objects.select_related("webhook__owner", "notice").order_by("pk")
    ]
    assert sorted(told, key=str) == [("reader", None)] * 2 + [("steward", "orders")] * 2


def _grants(name: str) -> tuple[Grant, ...]:
    rows = RoleGrant.objects.filter(user__username=name).values_list("role", "registry", "subject_pattern")
    return tuple(Grant(*row) for row in rows)


def test_a_token_that_is_limited_sees_no_webhook_and_no_draft(people: dict[str, Actor], server: Endpoint) -> None:  # noqa: F811
    by = replace(people["steward"], grants=(Grant("admin"),))
    hook = create_webhook(name="all", url=server.url, by=by).webhook
    calls: tuple[Callable[[Actor], object], ...] = (
        list_webhooks,
        lambda actor: get_webhook(actor, hook),
        lambda actor: list_deliveries(actor, hook),
        require_author,
        lambda actor: delete_draft(draft_id=1, by=actor),
    )
    for limit in (TokenLimit("all", registry="dev"), TokenLimit("all", subject_pattern="orders-*")):
        for call in calls:
            with pytest.raises(NotAllowed, match="This token is limited to"):
                call(replace(by, limit=limit))
    assert list_webhooks(replace(by, limit=TokenLimit("all")))
