"""What people are told of a source: its name is for those alone who may read all of its registry."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from registry.access.models import RoleGrant, User
from registry.access.roles import Actor, Grant, TokenLimit
from registry.access.services import add_owner, set_active
from registry.errors import NotAllowed
from registry.notifications.digests import choose_digest
from registry.notifications.models import Delivery, InboxEntry, Webhook
from registry.notifications.selectors import get_webhook, list_deliveries, list_subscriptions, list_webhooks
from registry.notifications.services import mark_read, subscribe, unsubscribe
from registry.notifications.webhook_delivery import body_of, deliver
from registry.notifications.webhooks import create_webhook, send_test
from registry.promotions.requests.drafts import delete_draft, require_author
from tests.conftest import signed_in
from tests.notifications.conftest import server, tell  # noqa: F401  a fixture
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
    client = signed_in(name)
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


@pytest.mark.parametrize("lost", ["rights", "account"])
def test_a_queued_message_stays_here_once_its_owner_may_not_read_it(
    people: dict[str, Actor],
    server: Endpoint,  # noqa: F811
    lost: str,
) -> None:
    hook = create_webhook(name="ci", url=server.url, by=people["steward"]).webhook
    tell()
    delivery = Delivery.objects.get(webhook__public_id=hook)
    user = User.objects.get(username="steward")
    if lost == "rights":
        RoleGrant.objects.filter(user=user).update(subject_pattern="bills-*")
    else:
        User.objects.filter(pk=user.pk).update(is_active=False)
    assert deliver(delivery.pk) == ""
    delivery.refresh_from_db()
    assert (delivery.state, delivery.finished_at is not None, server.got) == ("failed", True, [])
    assert delivery.tries.get().error.startswith("Not sent: ")
    assert Webhook.objects.get(public_id=hook).failing_since is None, "that says nothing of the receiver"


def test_a_test_message_goes_to_the_webhook_of_who_has_any_role(people: dict[str, Actor], server: Endpoint) -> None:  # noqa: F811
    hook = create_webhook(name="ci", url=server.url, by=people["steward"]).webhook
    number = send_test(webhook=hook, by=people["steward"])
    RoleGrant.objects.filter(user__username="steward").update(registry="dev", subject_pattern="orders-*")
    assert deliver(number) == "delivered"


def test_deactivating_an_account_turns_its_webhooks_off(
    people: dict[str, Actor],
    server: Endpoint,  # noqa: F811
    system: Actor,
) -> None:
    hook = create_webhook(name="ci", url=server.url, by=people["steward"]).webhook
    for active in (False, True):
        set_active(username="steward", active=active, by=system)
        row = Webhook.objects.get(public_id=hook)
        assert (row.active, row.disabled_reason) == (False, "The account of its owner was deactivated.")


def test_a_log_of_deliveries_hides_what_its_owner_may_no_longer_read(
    people: dict[str, Actor],
    server: Endpoint,  # noqa: F811
) -> None:
    hook = create_webhook(name="ci", url=server.url, by=people["steward"]).webhook
    tell()
    deliver(Delivery.objects.get().pk)
    client = signed_in("steward")
    stranger = replace(people["steward"], grants=())
    assert "orders-value" in client.get(f"/ui/webhooks/{hook}").content.decode()
    assert "orders-value" in str(list_deliveries(people["steward"], hook))
    RoleGrant.objects.filter(user__username="steward").delete()
    assert "orders-value" not in client.get(f"/ui/webhooks/{hook}").content.decode()
    assert "orders-value" not in str(list_deliveries(stranger, hook))


#: what a token may change of its owner's inbox and subscriptions: its limit → whether one entry, and whether all
TOKENS = {
    "read": (TokenLimit("read"), False, False),
    "limited": (TokenLimit(subject_pattern="bills-*"), False, False),
    "for the subject": (TokenLimit(subject_pattern="orders-*"), True, False),
    "whole": (TokenLimit(), True, True),
}


@pytest.mark.parametrize("name", TOKENS)
def test_a_limited_token_silences_nobody(people: dict[str, Actor], name: str) -> None:
    limit, one, everything = TOKENS[name]
    owner = people["steward"]
    token = replace(owner, limit=limit)
    subscription = subscribe(event="version.registered", by=owner)
    tell()
    tell(subject="orders-key")
    entry = InboxEntry.objects.filter(user=owner.user_id).order_by("pk").first()
    assert entry is not None

    def marks(**chosen: Any) -> bool:
        try:
            return mark_read(by=token, **chosen) == 1
        except NotAllowed:
            return False

    assert marks(entries=[entry.pk]) is one
    assert marks(up_to=entry.pk + 1) is everything
    assert InboxEntry.objects.filter(user=owner.user_id, read_at=None).count() == 2 - one - everything
    acts: dict[str, Callable[[], object]] = {
        "list": lambda: list_subscriptions(token),
        "digest": lambda: choose_digest(every="off", hour=7, by=token),
        "unsubscribe": lambda: unsubscribe(subscription_id=subscription, by=token),
    }
    for act in ("digest", "unsubscribe") if name == "read" else acts:
        if everything:
            acts[act]()
        else:
            with pytest.raises(NotAllowed):
                acts[act]()
