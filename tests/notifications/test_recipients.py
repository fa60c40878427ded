"""Who is told: by role, by subscription, by name; never what they may not read; with the change or not at all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.transaction import TransactionManagementError

from registry.access.models import RoleGrant
from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.errors import InvalidInput, NotFound, NotSignedIn
from registry.notifications import services
from registry.notifications.events import EVENTS, Event
from registry.notifications.models import Delivery, InboxEntry, Notice, Subscription, Webhook
from registry.notifications.selectors import list_entries, list_subscriptions, unread_entries
from registry.notifications.services import notify_many
from registry.notifications.webhooks import create_webhook
from tests.notifications.conftest import tell
from tests.notifications.endpoint import Endpoint


def told() -> list[str]:
    """Names of those with an entry."""
    return sorted(InboxEntry.objects.values_list("user__username", flat=True))


def grant(who: Actor, role: str, registry: str, pattern: str) -> None:
    """In place of all roles: one, somewhere."""
    RoleGrant.objects.filter(user=who.user_id).delete()
    RoleGrant.objects.create(user_id=who.user_id, role=role, registry=registry, subject_pattern=pattern)


@pytest.fixture
def cast(person: Callable[[str], Actor]) -> dict[str, Actor]:
    """All of them, and a stranger."""
    return {name: person(name) for name in ("reader", "steward", "approver", "admin", "stranger")}


@pytest.mark.requirement("CARD-4")
def test_a_request_concerns_those_who_may_review_it_but_not_who_made_it(cast: dict[str, Actor]) -> None:
    tell(event="promotion.requested", registry="prod", by=cast["admin"].user_id)
    assert told() == ["approver"]


def test_without_a_subscription_a_registration_concerns_nobody(cast: dict[str, Actor]) -> None:
    assert tell() == 0
    assert Notice.objects.count() == 0


@pytest.mark.parametrize(
    ("event", "registry", "subject", "hits"),
    [
        ("version.registered", "dev", "orders-*", True),
        ("*", "*", "*", True),
        ("*", "d?v", "*-value", True),
        ("version.deleted", "*", "*", False),
        ("version.registered", "prod", "*", False),
        ("version.registered", "dev", "Orders-*", False),
        ("version.registered", "dev", "orders", False),
    ],
)
def test_a_subscription_goes_by_event_registry_and_subject(
    cast: dict[str, Actor], event: str, registry: str, subject: str, hits: bool
) -> None:
    services.subscribe(event=event, registry_pattern=registry, subject_pattern=subject, by=cast["reader"])
    tell()
    assert told() == (["reader"] if hits else [])


def test_what_is_left_out_is_left_out_but_not_what_names_one(cast: dict[str, Actor]) -> None:
    services.subscribe(event="*", by=cast["approver"])
    services.subscribe(event="*", subject_pattern="orders-*", wanted=False, by=cast["approver"])
    tell(event="promotion.requested")
    assert told() == ["admin"]
    tell(event="promotion.applied", to=[cast["approver"].user_id])
    assert told() == ["admin", "approver"]


def test_nobody_is_notified_of_what_they_may_not_read(cast: dict[str, Actor], server: Endpoint) -> None:
    services.subscribe(event="*", by=cast["reader"])
    create_webhook(name="all", url=server.url, by=cast["steward"])
    grant(cast["reader"], "reader", "prod", "*")
    grant(cast["steward"], "steward", "", "payments-*")
    assert tell(to=[cast["reader"].user_id, cast["stranger"].user_id]) == 0
    assert tell(registry="prod", subject="payments-value") == 2
    assert told() == ["reader"]


def test_a_right_that_was_taken_away_hides_what_was_notified_before(cast: dict[str, Actor]) -> None:
    services.subscribe(event="*", by=cast["reader"])
    tell(text="secret words")
    (entry,) = list_entries(Actor("reader", "ui", cast["reader"].user_id))
    assert "secret" not in entry.text
    assert (entry.registry, entry.subject, entry.url) == ("", "", "")


def test_a_group_s_roles_count(cast: dict[str, Actor]) -> None:
    from django.contrib.auth.models import Group

    from registry.access.models import GroupGrant, User

    group = Group.objects.create(name="platform")
    GroupGrant.objects.create(group=group, role="approver", registry="prod", subject_pattern="orders-*")
    User.objects.get(username="stranger").groups.add(group)
    tell(event="promotion.requested", registry="prod")
    assert told() == ["admin", "approver", "stranger"]


def test_it_is_notified_with_the_change_or_not_at_all(cast: dict[str, Actor]) -> None:
    services.subscribe(event="*", by=cast["reader"])

    def change_that_fails() -> None:
        with transaction.atomic():
            tell()
            raise RuntimeError("the change failed")

    with pytest.raises(RuntimeError):
        change_that_fails()
    assert Notice.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_outside_a_transaction_it_is_a_mistake() -> None:
    with pytest.raises(TransactionManagementError):
        services.notify(event="version.registered", registry="dev", subject="", text="", url="")


def test_a_change_does_not_fail_because_nobody_could_be_notified(
    cast: dict[str, Actor], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_given: Any) -> Any:
        list(Notice.objects.raw("SELECT no_such_column FROM notifications_notice"))

    monkeypatch.setattr(services, "_write", broken)
    assert tell() == 0
    assert Notice.objects.count() == 0  # and the transaction goes on
    with pytest.raises(DatabaseError), transaction.atomic():
        broken()


@pytest.mark.django_db(transaction=True)
def test_a_webhook_that_goes_meanwhile_fails_no_change(cast: dict[str, Actor], server: Endpoint) -> None:
    """Its deletion waits until the change is committed."""
    create_webhook(name="ci", url=server.url, by=cast["steward"])
    refused: list[Exception] = []

    def remove() -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '300ms'")
                Webhook.objects.all().delete()
        except OperationalError as error:
            refused.append(error)
        finally:
            connection.close()

    with transaction.atomic():
        assert tell() == 1
        other = threading.Thread(target=remove)
        other.start()
        other.join(60)
    assert "lock timeout" in str(refused)
    assert Delivery.objects.count() == 1


def test_an_unknown_event_is_a_mistake(db: None) -> None:
    with pytest.raises(KeyError):
        tell(event="no.such")


def test_more_of_everything_takes_no_more_queries(
    cast: dict[str, Actor], server: Endpoint, django_assert_num_queries: Any
) -> None:
    for name in ("reader", "steward", "approver"):
        services.subscribe(event="*", by=cast[name])
    create_webhook(name="all", url=server.url, by=cast["steward"])
    many = [Event("version.registered", "dev", f"s{number}-value") for number in range(300)]
    # whether anybody is there, six to read, three to write, four of savepoints
    with django_assert_num_queries(14), transaction.atomic():
        assert notify_many(many[:1]) == 4
    with django_assert_num_queries(14), transaction.atomic():
        assert notify_many(many) == 1200


HOSTILE = ("\0", "\ud800", "x" * 100_000, "<script>alert(1)</script>", "\u202egnp", "%s{0}{subject}", "'; DROP TABLE x")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_any_text_can_be_sent(cast: dict[str, Actor], text: str) -> None:
    services.subscribe(event="*", by=cast["admin"])
    assert tell(subject=text, text=text, data={text[:50]: [text, {"x": text}]}) == 1
    assert tell(subject=text, text="") == 1
    assert tell(registry=text, data={"x": float("nan")}) == 1
    assert all(len(notice.text) <= services.MAX_TEXT for notice in Notice.objects.all())


@pytest.mark.parametrize("url", ["//evil.example/", "/\\evil.example", "javascript:alert(1)", "https://evil.example/"])
def test_a_link_leads_to_a_page_of_ours_or_nowhere(cast: dict[str, Actor], url: str) -> None:
    services.subscribe(event="*", by=cast["admin"])
    tell(url=url)
    assert Notice.objects.get().url == ""


def test_every_event_has_a_sentence(cast: dict[str, Actor]) -> None:
    services.subscribe(event="*", by=cast["admin"])
    assert notify_many([Event(event, "dev", "orders-value") for event in EVENTS]) >= len(EVENTS)
    assert Notice.objects.filter(text="").count() == 0
    assert not [text for text in Notice.objects.values_list("text", flat=True) if "{" in text]


def test_only_one_s_own_is_read_and_removed(cast: dict[str, Actor]) -> None:
    for name in ("reader", "admin"):
        services.subscribe(event="*", by=cast[name])
    tell()
    tell()
    mine = InboxEntry.objects.filter(user=cast["reader"].user_id).order_by("id")
    assert services.mark_read(by=cast["admin"], entries=[row.pk for row in mine]) == 0
    assert services.mark_read(by=cast["reader"], up_to=mine[0].pk) == 1
    assert unread_entries(cast["reader"].user_id or 0).count() == 1
    (subscription,) = list_subscriptions(cast["reader"])
    with pytest.raises(NotFound):
        services.unsubscribe(subscription_id=subscription.id, by=cast["admin"])
    services.unsubscribe(subscription_id=subscription.id, by=cast["reader"])
    assert list_subscriptions(cast["reader"]) == []
    actors = AuditEvent.objects.filter(table="notifications_subscription").values_list("actor", flat=True)
    assert set(actors) == {"reader", "admin"}


@pytest.mark.parametrize(
    "wish",
    [{"event": "no.such"}, {"event": "*", "subject_pattern": "x" * 256}, {"event": "*", "registry_pattern": "\0"}],
)
def test_a_subscription_that_cannot_be(cast: dict[str, Actor], wish: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        services.subscribe(**wish, by=cast["reader"])


def test_subscriptions_are_bounded_and_belong_to_people(cast: dict[str, Actor], system: Actor) -> None:
    for number in range(services.MAX_SUBSCRIPTIONS):
        services.subscribe(event="*", subject_pattern=f"s{number}", by=cast["reader"])
    with pytest.raises(InvalidInput, match="100 subscriptions"):
        services.subscribe(event="*", subject_pattern="one-more", by=cast["reader"])
    services.subscribe(event="*", subject_pattern="s1", wanted=False, by=cast["reader"])
    assert Subscription.objects.count() == services.MAX_SUBSCRIPTIONS
    with pytest.raises(NotSignedIn):
        services.subscribe(event="*", by=system)
