"""Webhooks against a real server: what is sent, what each kind of answer leads to, and that two workers send once."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from registry.access.http_client import HttpLimits
from registry.access.roles import Actor
from registry.notifications import webhook_delivery
from registry.notifications.models import Attempt, Delivery, InboxEntry, Notice, Webhook
from registry.notifications.selectors import list_deliveries
from registry.notifications.webhook_delivery import deliver, due_deliveries, excerpt_of, finish, send, take
from registry.notifications.webhooks import (
    create_webhook,
    key_of,
    replay,
    rotate_key,
    send_test,
    signature,
    update_webhook,
)
from tests.notifications.conftest import tell
from tests.notifications.endpoint import Endpoint

QUICK = HttpLimits(connect_seconds=1, read_seconds=0.5, total_seconds=1, max_bytes=4096)
PATIENT = HttpLimits(connect_seconds=60, read_seconds=60, total_seconds=60, max_bytes=4096)


def only() -> Delivery:
    """The one delivery that there is."""
    return Delivery.objects.get()


def due_now() -> None:
    """As if all delays were over."""
    Delivery.objects.update(next_attempt_at=timezone.now(), enqueued_at=None)


@pytest.mark.requirement("CARD-4")
def test_a_message_is_signed_and_says_what_happened(hook: str, server: Endpoint) -> None:
    tell(data={"version": 2})
    assert deliver(only().pk) == "delivered"
    (message,) = server.got
    assert message.path == "/hook"
    assert json.loads(message.body)["type"] == "version.registered"
    assert json.loads(message.body)["data"] == {
        "registry": "dev",
        "subject": "orders-value",
        "text": "Version 2 of orders-value was registered in dev.",
        "url": "/ui/registries/dev/subjects/orders-value/",
        "details": {"version": 2},
    }
    sent_at = int(message.headers["webhook-timestamp"])
    assert abs(sent_at - time.time()) < 300
    assert message.headers["webhook-signature"] == signature(
        keys=[key_of(hook, 1)], message_id=only().message_id, timestamp=sent_at, body=message.body
    )
    assert message.headers["content-type"] == "application/json"


def test_the_secret_that_is_shown_is_the_key_and_is_in_no_table(
    person: Callable[[str], Actor], server: Endpoint
) -> None:
    made = create_webhook(name="ci", url=server.url, by=person("steward"))
    key = base64.b64decode(made.secret.removeprefix("whsec_"))
    assert key == key_of(made.webhook, 1)
    with connection.cursor() as cursor:
        cursor.execute("SELECT row_to_json(w)::text FROM notifications_webhook w")
        webhooks = cursor.fetchall()
        cursor.execute("SELECT coalesce(before::text, '') || coalesce(after::text, '') FROM audit_auditevent")
        audited = cursor.fetchall()
    written = str(webhooks + audited)
    assert made.secret.removeprefix("whsec_") not in written
    assert key.hex() not in written
    assert server.url not in str(audited)  # an address may hold a secret
    assert f"127.0.0.1:{server.port}" in str(audited)


def test_after_a_rotation_both_keys_sign(hook: str, server: Endpoint, person: Callable[[str], Actor]) -> None:
    rotate_key(webhook=hook, by=person("steward"))
    tell()
    deliver(only().pk)
    headers = server.got[0].headers
    assert headers["webhook-signature"] == signature(
        keys=[key_of(hook, 2), key_of(hook, 1)],
        message_id=headers["webhook-id"],
        timestamp=int(headers["webhook-timestamp"]),
        body=server.got[0].body,
    )


def test_while_the_secret_key_is_rotated_its_fallbacks_sign_too(
    hook: str, server: Endpoint, person: Callable[[str], Actor], settings: Any
) -> None:
    former = [key_of(hook, 2), key_of(hook, 1)]
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" * 50, [settings.SECRET_KEY]
    rotate_key(webhook=hook, by=person("steward"))
    tell()
    deliver(only().pk)
    headers = server.got[0].headers
    assert headers["webhook-signature"] == signature(
        keys=[key_of(hook, 2), key_of(hook, 1), *former],
        message_id=headers["webhook-id"],
        timestamp=int(headers["webhook-timestamp"]),
        body=server.got[0].body,
    )


#: how the server answers → (status kept, words of the error)
FAILURES: dict[str, tuple[dict[str, Any], int | None, str]] = {
    "error": ({"status": 500}, 500, "answered 500"),
    "not found": ({"status": 404}, 404, "answered 404"),
    "redirect": ({"status": 302, "location": "http://169.254.169.254/"}, 302, "redirect"),
    "redirect that keeps the method": ({"status": 307, "location": "http://127.0.0.1/"}, 307, "redirect"),
    "hanging": ({"wait": 30}, None, "in time"),
    "dripping": ({"drip": True, "announced": 4000}, None, "within 1 s"),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_what_is_not_taken_is_tried_again_later(hook: str, server: Endpoint, kind: str) -> None:
    answers, status, words = FAILURES[kind]
    for name, value in answers.items():
        setattr(server, name, value)
    tell()
    before = timezone.now()
    assert deliver(only().pk, limits=PATIENT if status else QUICK) == "queued"
    row, attempt = only(), Attempt.objects.get()
    assert (attempt.status, row.attempts) == (status, 1)
    assert words in attempt.error
    assert timedelta(seconds=3.9) < row.next_attempt_at - before < timedelta(seconds=20)  # the second delay is longer
    assert deliver(row.pk, limits=QUICK) == ""  # it isn't due yet
    assert len(server.got) == 1
    assert Webhook.objects.get().failing_since is not None
    server.status, server.location, server.wait, server.drip, server.announced = 200, "", 0, False, None
    due_now()
    assert deliver(row.pk) == "delivered"
    assert server.got[0].headers["webhook-id"] == server.got[1].headers["webhook-id"]
    assert server.got[0].body == server.got[1].body
    assert Webhook.objects.get().failing_since is None


@pytest.mark.parametrize("announced", [True, False])
def test_a_huge_answer_is_cut_and_the_message_counts_as_taken(hook: str, server: Endpoint, announced: bool) -> None:
    server.answer = b"x" * 5_000_000
    tell()
    assert deliver(only().pk, limits=PATIENT) == "delivered"
    assert "more than 4096 bytes" in Attempt.objects.get().error
    assert Attempt.objects.get().excerpt == ""


def test_nobody_listens(hook: str, server: Endpoint, settings: Any) -> None:
    Webhook.objects.update(url="http://127.0.0.1:9/hook")
    settings.EGRESS_ALLOW = ("127.0.0.1:9",)
    tell()
    assert deliver(only().pk, limits=QUICK) == "queued"
    assert "can't be reached" in Attempt.objects.get().error


def test_the_address_is_judged_again_at_each_delivery(hook: str, server: Endpoint, settings: Any) -> None:
    tell()
    settings.EGRESS_ALLOW = ()
    assert deliver(only().pk) == "queued"
    assert server.got == []
    assert "loopback" in Attempt.objects.get().error


def test_it_is_given_up_in_the_end(hook: str, server: Endpoint) -> None:
    server.status = 503
    tell()
    states = []
    for _ in range(10):
        due_now()
        states.append(deliver(only().pk))
    assert states == ["queued"] * 9 + ["failed"]
    due_now()
    assert deliver(only().pk) == ""
    assert len(server.got) == 10


@pytest.mark.parametrize(("status", "days"), [(410, 0), (500, 6)])
def test_a_webhook_that_is_gone_or_fails_for_days_is_switched_off_and_its_owner_notified(
    hook: str, server: Endpoint, person: Callable[[str], Actor], status: int, days: int
) -> None:
    tell()
    server.status = status
    Webhook.objects.update(failing_since=timezone.now() - timedelta(days=days))
    deliver(only().pk)
    row = Webhook.objects.get()
    assert not row.active
    assert row.disabled_reason
    entry = InboxEntry.objects.get(user=person("steward").user_id)
    assert entry.notice.event == "webhook.disabled"
    assert tell() == 0  # nothing more is queued for it
    server.status = 200
    update_webhook(webhook=hook, changes={"active": True}, by=person("steward"))
    assert Webhook.objects.get().failing_since is None


def test_a_webhook_that_is_off_is_sent_nothing_and_gets_it_when_it_is_on(
    hook: str, server: Endpoint, person: Callable[[str], Actor]
) -> None:
    tell()
    update_webhook(webhook=hook, changes={"active": False}, by=person("steward"))
    assert due_deliveries() == []
    assert deliver(only().pk) == ""
    update_webhook(webhook=hook, changes={"active": True}, by=person("steward"))
    assert [deliver(number) for number in due_deliveries()] == ["delivered"]


def test_a_replay_has_the_same_id_and_the_log_keeps_both(
    hook: str, server: Endpoint, person: Callable[[str], Actor]
) -> None:
    steward = person("steward")
    tell()
    deliver(only().pk)
    replay(webhook=hook, delivery_id=only().pk, by=steward)
    deliver(only().pk)
    assert len({message.headers["webhook-id"] for message in server.got}) == 1
    (shown,) = list_deliveries(steward, hook)
    assert [item.status for item in shown.tries] == [200, 200]
    assert shown.tries[0].excerpt == "thanks"


def test_a_lost_worker_s_delivery_is_handed_out_again_and_its_late_result_counts_for_nothing(
    hook: str, server: Endpoint
) -> None:
    tell()
    lost = take(only().pk)
    assert lost is not None
    assert due_deliveries() == []
    Delivery.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    (number,) = due_deliveries()
    assert due_deliveries() == []  # it was handed out just now
    server.status = 500
    late = send(lost)
    server.status = 200
    assert deliver(number) == "delivered"
    assert finish(lost, late) == ""
    assert only().state == "delivered"
    assert Attempt.objects.count() == 1


def test_a_failing_webhook_holds_up_nobody(hook: str, server: Endpoint) -> None:
    for _ in range(30):
        tell()
    assert len(due_deliveries()) == webhook_delivery.AT_A_TIME
    Delivery.objects.update(enqueued_at=None)
    Webhook.objects.update(failing_since=timezone.now())
    assert len(due_deliveries()) == webhook_delivery.AT_A_TIME_FAILING


def test_an_excerpt_is_one_bounded_line_without_what_looks_like_a_secret() -> None:
    shown = excerpt_of(b"ok\n\x00\x1b[31m token=abcdefghijklmnop0123456789 \xff" + b"word " * 1000)
    assert "abcdefghijklmnop" not in shown
    assert shown.isprintable()
    assert len(shown) <= 300


def test_old_notices_go_and_what_is_under_way_stays(hook: str, server: Endpoint) -> None:
    tell()
    deliver(only().pk)
    tell()
    Notice.objects.update(at=timezone.now() - timedelta(days=91))
    assert webhook_delivery.prune() == 1
    assert only().state == "queued"


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_two_workers_deliver_once(hook: str, server: Endpoint) -> None:
    """Sixteen threads, each with a connection of its own, at the same twenty messages: each arrives once."""
    for _ in range(20):
        tell()
    numbers = list(Delivery.objects.values_list("pk", flat=True))
    start, states = threading.Barrier(16), []

    def work() -> None:
        try:
            start.wait(60)
            states.extend(deliver(number) for number in numbers)
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(server.got) == 20
    assert len({message.headers["webhook-id"] for message in server.got}) == 20
    assert states.count("delivered") == 20
    assert Attempt.objects.count() == 20


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_two_sweeps_hand_out_once(hook: str) -> None:
    for _ in range(8):
        tell()
    start, handed = threading.Barrier(4), []

    def work() -> None:
        try:
            start.wait(60)
            handed.extend(due_deliveries())
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(handed) == sorted(Delivery.objects.values_list("pk", flat=True))


def test_a_test_message_goes_to_its_webhook_alone(hook: str, server: Endpoint, person: Callable[[str], Actor]) -> None:
    create_webhook(name="other", url=server.url, by=person("admin"))
    number = send_test(webhook=hook, by=person("steward"))
    assert Delivery.objects.count() == 1
    assert deliver(number) == "delivered"
    assert json.loads(server.got[0].body)["type"] == "webhook.test"
