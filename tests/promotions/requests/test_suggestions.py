"""Suggested changes of a proposed text: who may make and take them, what they change, and who is notified."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from registry.audit.models import AuditEvent
from registry.errors import InvalidInput, InvalidSchema, NotAllowed, WrongState
from registry.notifications.models import Delivery, InboxEntry
from registry.notifications.webhooks import create_webhook
from registry.promotions import selectors, services
from registry.promotions.models import PromotionRequest, Thread
from tests.notifications.endpoint import endpoint
from tests.promotions.factories import ORDERS, V1, V2, Cast, approve_shown, ask, change, register

pytestmark = pytest.mark.requirement("CARD-4")

FIELDS = [{"name": name, "type": ["null", "string"], "default": None} for name in ("note", "city", "street", "country")]
PROPOSED = json.dumps({**V1, "fields": [*V1["fields"], *FIELDS]}, indent=2)


@pytest.fixture
def number(cast: Cast) -> int:
    """A proposed text in review."""
    register(V1, cast["steward"])
    return services.propose_version(target="dev", subject=ORDERS, text=PROPOSED, by=cast["steward"])


def renamed(old: str, new: str, text: str = PROPOSED) -> str:
    """The text with another name of a field."""
    assert f'"{old}"' in text
    return text.replace(f'"{old}"', f'"{new}"')


def suggest(cast: Cast, number: int, suggestion: str, who: str = "approver", **more: str) -> int:
    """A suggestion at a field."""
    said = {"text": "As elsewhere.", "subject": "orders-value", **more}
    return services.open_thread(request_id=number, by=cast[who], suggestion=suggestion, **said)


def text_of(number: int) -> str:
    """The proposed text of a request."""
    return selectors.get_request(number).items[0].text


def told(event: str) -> list[str]:
    """Who has a notice of the event."""
    return sorted(InboxEntry.objects.filter(notice__event=event).values_list("user__username", flat=True))


def test_a_taken_suggestion_is_the_text_and_approvals_no_longer_count(cast: Cast, number: int) -> None:
    approve_shown(request_id=number, by=cast["approver2"])
    before = PromotionRequest.objects.get(pk=number)
    thread = suggest(cast, number, renamed("note", "remark"), path="Order.note")
    assert text_of(number) == PROPOSED, "a suggestion changes nothing yet"
    assert services.take_suggestion(thread_id=thread, by=cast["steward"]) == "in review"
    info = selectors.get_request(number)
    assert info.items[0].text == renamed("note", "remark")
    assert "remark" in json.dumps(info.plan["steps"]) and info.plan_hash != before.plan_hash
    assert info.items[0].fingerprint == PromotionRequest.objects.get(pk=number).fingerprint != before.fingerprint
    assert [review.counts for review in info.reviews] == [False]
    assert info.moved == "steward took a suggestion by approver."
    (shown,) = info.threads
    assert (shown.is_taken, shown.resolved_by, shown.suggestion) == (True, "steward", renamed("note", "remark"))
    assert told("promotion.suggested") == ["steward"]
    assert told("promotion.suggestion_taken") == ["approver"]
    assert told("promotion.voided") == ["approver2"]
    assert AuditEvent.objects.filter(why=f"take a suggestion in request {number}", table="promotions_thread").exists()
    approve_shown(request_id=number, by=cast["approver"])
    services.apply(request_id=number, by=cast["admin"])
    with pytest.raises(WrongState, match="closed"):
        services.take_suggestion(thread_id=thread, by=cast["steward"])


def test_suggestions_for_other_lines_still_fit(cast: Cast, number: int) -> None:
    first, second, late = (
        suggest(cast, number, renamed(old, new))
        for old, new in (("note", "remark"), ("country", "land"), ("note", "memo"))
    )
    services.take_suggestion(thread_id=first, by=cast["steward"])
    services.take_suggestion(thread_id=second, by=cast["steward"])
    assert text_of(number) == renamed("country", "land", renamed("note", "remark"))
    with pytest.raises(WrongState, match="changed in the same lines"):
        services.take_suggestion(thread_id=late, by=cast["steward"])
    with pytest.raises(WrongState, match="already taken"):
        services.take_suggestion(thread_id=first, by=cast["steward"])


def test_only_the_requester_takes_and_readers_of_the_request_suggest(cast: Cast, number: int) -> None:
    thread = suggest(cast, number, renamed("note", "remark"), who="reader")
    for who in ("reader", "approver", "admin", "steward2"):
        with pytest.raises(NotAllowed):
            services.take_suggestion(thread_id=thread, by=cast[who])
    with pytest.raises(NotAllowed):
        suggest(cast, number, renamed("note", "remark"), who="stranger")
    assert text_of(number) == PROPOSED


@pytest.mark.parametrize("text", ["{", '{"type": "nothing"}', PROPOSED + "\0"])
def test_a_suggestion_that_is_no_schema_is_refused(cast: Cast, number: int, text: str) -> None:
    with pytest.raises((InvalidSchema, InvalidInput)):
        suggest(cast, number, text)
    assert not Thread.objects.exists()


def test_an_unchanged_text_suggests_nothing(cast: Cast, number: int) -> None:
    thread = suggest(cast, number, PROPOSED.replace("\n", "\r\n") + "\r\n")
    assert Thread.objects.get(pk=thread).suggestion == ""
    assert told("promotion.commented") == ["steward"]
    with pytest.raises(WrongState, match="suggests nothing"):
        services.take_suggestion(thread_id=thread, by=cast["steward"])


def test_a_registered_version_can_not_be_changed(cast: Cast) -> None:
    register(V1, cast["steward"])
    with pytest.raises(InvalidInput, match="registered version"):
        suggest(cast, ask(cast), json.dumps(V2))


def test_a_suggestion_that_is_requested_already_is_refused(cast: Cast, number: int) -> None:
    other = renamed("note", "remark")
    services.propose_version(target="dev", subject=ORDERS, text=other, by=cast["steward2"])
    thread = suggest(cast, number, other)
    with pytest.raises(WrongState, match="already open"):
        services.take_suggestion(thread_id=thread, by=cast["steward"])
    assert text_of(number) == PROPOSED


def test_resolve_and_approve(cast: Cast, number: int) -> None:
    change("dev", threads_block=True)
    for _ in range(2):
        services.open_thread(request_id=number, by=cast["reader"], text="why?")
    assert approve_shown(request_id=number, by=cast["approver"], resolve=True) == "approved"
    info = selectors.get_request(number)
    assert {thread.resolved_by for thread in info.threads} == {"approver"}
    assert not info.failing
    notice = InboxEntry.objects.get(notice__event="promotion.reviewed", user__username="steward").notice
    assert "approver approved it and resolved 2 discussions." in notice.text


def test_a_refused_approval_resolves_nothing(cast: Cast, number: int) -> None:
    services.open_thread(request_id=number, by=cast["reader"], text="why?")
    with pytest.raises(NotAllowed):
        approve_shown(request_id=number, by=cast["steward"], resolve=True)
    assert selectors.get_request(number).open_threads == 1


def test_by_page_api_and_webhook(
    cast: Cast, number: int, look: Callable[[str], Client], api: Callable[[str], Client], settings: Any
) -> None:
    with endpoint() as server:
        settings.EGRESS_ALLOW = (f"127.0.0.1:{server.port}",)
        events = ["promotion.suggested", "promotion.suggestion_taken"]
        create_webhook(name="ci", url=server.url, events=events, by=cast["admin"])
    page = look("approver").get(reverse("ui:promotion", args=[number])).content.decode()
    assert "Suggest a change of the text" in page and "data-schema-editor" in page
    body: dict[str, Any] = {"text": "As elsewhere.", "subject": "orders-value", "suggestion": renamed("note", "remark")}
    made = api("approver").post(f"/api/v1/promotions/{number}/threads", body, content_type="application/json")
    assert made.status_code == 201, made.content
    body["suggestion"] = renamed("city", "town").replace("\n", "\r\n")  # as a form sends it
    sent = look("approver").post(reverse("ui:promotion_threads", args=[number]), body)
    assert sent.status_code == 302, sent.content
    first, second = Thread.objects.order_by("pk")
    page = look("steward").get(reverse("ui:promotion", args=[number])).content.decode()
    assert page.count("Take suggestion") == 2 and "Suggested change" in page
    assert "Take suggestion" not in look("approver").get(reverse("ui:promotion", args=[number])).content.decode()
    taken = look("steward").post(reverse("ui:promotion_thread_take", args=[number, first.pk]))
    assert taken.status_code == 302 and taken["Location"].endswith(f"#thread-{first.pk}")
    assert api("steward").post(f"/api/v1/threads/{second.pk}/take").status_code == 204
    assert text_of(number) == renamed("city", "town", renamed("note", "remark"))
    shown = api("steward").get(f"/api/v1/promotions/{number}").json()["threads"]
    assert [thread["is_taken"] for thread in shown] == [True, True]
    assert sorted(Delivery.objects.values_list("notice__event", flat=True)) == [
        *["promotion.suggested"] * 2, *["promotion.suggestion_taken"] * 2,
    ]  # fmt: skip
