"""Digests by mail: when they are due, what they say, that there is one however many workers, and how they end."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from registry.access.models import RoleGrant
from registry.access.roles import Actor
from registry.access.services import issue_token, set_email
from registry.audit.models import AuditEvent
from registry.errors import InvalidInput, NotAllowed, NotFound
from registry.notifications import digests, services
from registry.notifications.digests import (
    choose_digest,
    digest_of,
    due_digests,
    next_after,
    send_digest,
    stop_digest,
    stop_token,
)
from registry.notifications.models import Digest, DigestPreference, InboxEntry
from tests.conftest import RawClient, signed_in
from tests.notifications.conftest import tell

pytestmark = pytest.mark.requirement("CARD-4")
HOSTILE = "<b>x</b> \u202eevil\nBcc: all@example.com"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "every", "hour", "zone", "due"),
    [
        ("2026-11-23T06:00", "daily", 7, "UTC", "2026-11-23T07:00"),
        ("2026-11-23T07:00", "daily", 7, "UTC", "2026-11-24T07:00"),
        ("2026-11-23T06:30", "daily", 7, "Europe/Berlin", "2026-11-24T06:00"),
        ("2026-11-23T05:30", "daily", 7, "Europe/Berlin", "2026-11-23T06:00"),
        ("2026-11-23T20:00", "daily", 7, "Asia/Tokyo", "2026-11-23T22:00"),
        ("2026-11-23T06:00", "weekly", 7, "UTC", "2026-11-23T07:00"),
        ("2026-11-23T07:00", "weekly", 7, "UTC", "2026-11-30T07:00"),
        # the night in which clocks go forward has no 2 o'clock, the one in which they go back has two
        ("2026-03-28T23:30", "daily", 2, "Europe/Berlin", "2026-03-29T01:00"),
        ("2026-10-24T23:30", "daily", 2, "Europe/Berlin", "2026-10-25T00:00"),
        ("2026-10-25T00:00", "daily", 2, "Europe/Berlin", "2026-10-26T01:00"),
        ("2026-11-23T06:00", "daily", 7, "Nowhere/../x", "2026-11-23T07:00"),
    ],
)
def test_when_it_is_due(now: str, every: str, hour: int, zone: str, due: str) -> None:
    assert next_after(at(now), every=every, hour=hour, zone=zone) == at(due)


def test_off_is_never_due() -> None:
    assert next_after(at("2026-11-23T06:00"), every="off", hour=7, zone="UTC") is None


@pytest.fixture
def reader(person: Callable[[str], Actor], system: Actor, settings: Any) -> Actor:
    """A reader with an address who is told of what is registered, and a mail server that is set up."""
    settings.EMAIL_HOST, settings.SITE_URL = "mail.example", "https://desk.example"
    found = person("reader")
    set_email(username="reader", email="reader@example.com", by=system)
    services.subscribe(event="*", by=found)
    choose_digest(every="daily", hour=7, zone="Europe/Berlin", by=found)
    return found


def due() -> list[int]:
    """As if the hour had come."""
    DigestPreference.objects.update(next_at=timezone.now() - timedelta(seconds=1))
    return due_digests()


def another_day() -> None:
    for row in Digest.objects.order_by("day"):
        Digest.objects.filter(pk=row.pk).update(day=row.day - timedelta(days=1))


@pytest.mark.django_db
class TestDigests:
    """What needs the database."""

    def test_it_says_what_is_new_and_is_sent_once(self, reader: Actor) -> None:
        tell(text=HOSTILE, subject="orders-value")
        (number,) = due()
        assert [send_digest(number), send_digest(number)] == ["delivered", ""]
        assert due() == []
        (sent,) = mail.outbox
        assert (sent.to, sent.subject) == (["reader@example.com"], "1 new notice in Schemadesk")
        html = sent.alternatives[0][0]
        assert "<b>x</b>  evil Bcc: all@example.com" in sent.body and "&lt;b&gt;x&lt;/b&gt;" in html
        assert "https://desk.example/ui/registries/dev/subjects/orders-value/" in sent.body
        stop = sent.extra_headers["List-Unsubscribe"].strip("<>")
        assert stop.startswith("https://desk.example/ui/digest/stop/") and stop in html and stop in sent.body
        assert digest_of(reader).last_state == "delivered"

    def test_the_next_one_says_only_what_came_since_and_counts_the_rest(self, reader: Actor) -> None:
        tell(text="first")
        send_digest(due()[0])
        another_day()
        assert send_digest(due()[0]) == "empty"
        another_day()
        tell(text="second")
        assert send_digest(due()[0]) == "delivered"
        assert "first" not in mail.outbox[1].body and "second" in mail.outbox[1].body
        assert "1 older notice is unread." in mail.outbox[1].body

    def test_what_is_read_or_may_no_longer_be_read_is_not_told(self, reader: Actor) -> None:
        tell(text="a secret")
        RoleGrant.objects.filter(user=reader.user_id).delete()
        assert send_digest(due()[0]) == "empty"
        another_day()
        InboxEntry.objects.update(read_at=timezone.now())
        assert send_digest(due()[0]) == "empty"
        assert mail.outbox == []

    def test_there_is_one_a_day(self, reader: Actor) -> None:
        (number,) = due()
        row = Digest.objects.get(pk=number)
        with pytest.raises(IntegrityError), transaction.atomic():
            Digest.objects.create(user=row.user, day=row.day, next_attempt_at=timezone.now())

    def test_one_whose_message_was_lost_is_handed_out_again_and_one_half_sent_is_not(self, reader: Actor) -> None:
        tell()
        (number,) = due()
        rows, past = Digest.objects.filter(pk=number), timezone.now() - timedelta(seconds=1)
        rows.update(next_attempt_at=past)
        assert due_digests() == [number]
        rows.update(state="sending", next_attempt_at=past)
        assert due_digests() == []
        assert rows.get().state == "failed" and "may have been sent" in rows.get().error

    def test_a_server_that_refuses_is_tried_again_and_then_given_up(self, reader: Actor, monkeypatch: Any) -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise ConnectionRefusedError

        tell()
        monkeypatch.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", refuse)
        (number,) = due()
        states = [send_digest(number) for _ in range(digests.TRIES)]
        assert states == ["queued"] * (digests.TRIES - 1) + ["failed"]
        assert "ConnectionRefusedError" in digest_of(reader).last_error

    def test_without_a_mail_server_nothing_is_made(self, reader: Actor, settings: Any) -> None:
        settings.EMAIL_HOST = ""
        tell()
        assert due() == [] and not Digest.objects.exists()
        assert not digest_of(reader).is_sent
        assert DigestPreference.objects.get().next_at > timezone.now()

    def test_a_wrong_choice_is_refused(self, reader: Actor, person: Callable[[str], Actor]) -> None:
        for wrong in ({"every": "hourly"}, {"hour": 24}, {"zone": "Nowhere"}):
            with pytest.raises(InvalidInput):
                choose_digest(**{"every": "daily", "hour": 7, **wrong}, by=reader)  # type: ignore[arg-type]
        with pytest.raises(NotAllowed):
            choose_digest(every="daily", hour=7, by=person("stranger"))
        with pytest.raises(NotAllowed):
            set_email(username="reader", email="a@example.com", by=reader)

    def test_the_link_ends_them_for_that_person_alone(self, reader: Actor, person: Callable[[str], Actor]) -> None:
        choose_digest(every="weekly", hour=9, by=person("steward"))
        anybody = Client(enforce_csrf_checks=True)
        path = f"/ui/digest/stop/{stop_token(reader.user_id or 0)}"
        assert "Turn off digest" in anybody.get(path).content.decode()
        assert DigestPreference.objects.get(user=reader.user_id).every == "daily"
        assert anybody.post(path, {"List-Unsubscribe": "One-Click"}).status_code == 200
        assert DigestPreference.objects.get(user=reader.user_id).every == "off"
        assert DigestPreference.objects.get(user__username="steward").every == "weekly"
        assert anybody.post(path[:-1] + "!").status_code == 404 and anybody.get(f"{path}x").status_code == 404
        with pytest.raises(NotFound):
            stop_digest(token="1")
        event = AuditEvent.objects.filter(table="notifications_digestwish").latest("id")
        assert event.actor == "the link in a digest"

    def test_the_page_and_the_api(self, reader: Actor, system: Actor, settings: Any) -> None:
        client = signed_in("reader")
        client.cookies["zone"] = "Asia/Tokyo"
        shown = client.get("/ui/inbox/subscriptions").content.decode()
        assert "reader@example.com" in shown and "Time (Asia/Tokyo)" in shown
        assert client.post("/ui/inbox/digest", {"every": "weekly", "hour": "8"}).status_code == 302
        wish = DigestPreference.objects.get()
        assert (wish.every, wish.hour, wish.zone) == ("weekly", 8, "Asia/Tokyo")
        assert client.post("/ui/inbox/digest", {"every": "never"}).status_code == 422
        settings.EMAIL_HOST = ""
        assert "No mail server is configured" in client.get("/ui/inbox/subscriptions").content.decode()
        token = issue_token(username="reader", name="t", by=system)
        api = RawClient(headers={"authorization": f"Bearer {token}"})
        path = "/api/v1/notifications/digest"
        assert api.put(path, '{"every": "off"}', "application/json").json()["next_at"] is None
        assert api.get(path).json()["address"] == "reader@example.com"


@contextmanager
def mail_server() -> Iterator[tuple[int, list[str]]]:
    """A server that takes every mail, as far as SMTP needs it."""
    got: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            while line := self.rfile.readline():
                word = line.split()[0].upper() if line.split() else b""
                if word == b"DATA":
                    self.wfile.write(b"354 go on\r\n")
                    lines = iter(self.rfile.readline, b".\r\n")
                    got.append(b"".join(lines).decode())
                self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 fine\r\n")
                if word == b"QUIT":
                    return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1], got
        finally:
            server.shutdown()


@pytest.mark.django_db
def test_it_goes_through_a_mail_server(reader: Actor, settings: Any) -> None:
    tell(text="Version 2 of orders-value")
    with mail_server() as (port, got):
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_USE_TLS = "127.0.0.1", port, False
        assert send_digest(due()[0]) == "delivered"
    (message,) = got
    assert "To: reader@example.com" in message and "Version 2 of orders-value" in message
    assert "Content-Type: text/html" in message and "Auto-Submitted: auto-generated" in message
