"""Discussions of requests: who may, of what, how much, and what becomes of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from registry.access.models import RoleGrant, User
from registry.access.roles import Actor, TokenLimit
from registry.access.selectors import actor_of_user
from registry.audit.models import AuditEvent
from registry.errors import InvalidInput, NotAllowed, NotSignedIn, RequestNotFound, ThreadNotFound, WrongState
from registry.notifications.models import InboxEntry
from registry.promotions import selectors, services
from registry.promotions.apply.execution import apply_due
from registry.promotions.board.readiness import can_promote
from registry.promotions.models import Comment, PromotionRequest, Thread
from registry.promotions.requests import discussions
from registry.promotions.requests.preconditions import applying
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import signed_in
from tests.promotions.factories import ORDERS, V1, V2, Cast, approve_shown, ask, change, register

pytestmark = pytest.mark.requirement("CARD-4")


@pytest.fixture
def number(cast: Cast) -> int:
    """A request in review."""
    register(V1, cast["steward"])
    return ask(cast)


def begin(cast: Cast, number: int, who: str = "reader", text: str = "why?", **more: str) -> int:
    return services.open_thread(request_id=number, by=cast[who], text=text, **more)


def test_of_a_field_of_a_subject_or_of_all_of_it(cast: Cast, number: int) -> None:
    begin(cast, number)
    begin(cast, number, subject="orders-value")
    thread = begin(cast, number, subject="orders-value", path="Order.id")
    services.reply(thread_id=thread, by=cast["steward"], text="because")
    shown = selectors.get_request(number).threads
    assert [(item.subject, item.path) for item in shown] == [
        ("", ""),
        ("orders-value", ""),
        ("orders-value", "Order.id"),
    ]
    assert [(said.author, said.text) for said in shown[2].comments] == [("reader", "why?"), ("steward", "because")]
    written = AuditEvent.objects.filter(table="promotions_comment").first()
    assert written is not None
    assert written.why == f"comment on request {number}"


def test_resolved_and_taken_up_again(cast: Cast, number: int) -> None:
    thread = begin(cast, number)
    for who in ("reader", "steward", "approver"):
        services.resolve(thread_id=thread, by=cast[who])
        assert selectors.get_request(number).threads[0].resolved_by == who
        with pytest.raises(WrongState):
            services.resolve(thread_id=thread, by=cast[who])
        services.reopen(thread_id=thread, by=cast[who])
        with pytest.raises(WrongState):
            services.reopen(thread_id=thread, by=cast[who])
    assert selectors.get_request(number).open_threads == 1
    with pytest.raises(NotAllowed):
        services.resolve(thread_id=thread, by=cast["steward2"])


def test_nobody_is_notified_of_their_own_words(cast: Cast, number: int) -> None:
    thread = begin(cast, number)
    services.reply(thread_id=thread, by=cast["approver"], text="indeed")

    def told(who: str) -> int:
        return InboxEntry.objects.filter(user_id=cast[who].user_id, notice__event="promotion.commented").count()

    assert {who: told(who) for who in ("steward", "reader", "approver", "admin")} == {
        "steward": 2,
        "reader": 1,
        "approver": 0,
        "admin": 0,
    }


def test_whoever_may_not_read_it_sees_nothing(cast: Cast, number: int) -> None:
    thread = begin(cast, number)
    RoleGrant.objects.filter(user__username="reader").update(registry="dev")
    reader = actor_of_user(User.objects.get(username="reader"), channel="ui")
    with pytest.raises(RequestNotFound):
        services.open_thread(request_id=number, by=reader, text="x")
    for act in (services.resolve, services.reopen):
        with pytest.raises(RequestNotFound):
            act(thread_id=thread, by=reader)
    said = set()
    for wanted in (thread, 999_999):
        with pytest.raises(NotAllowed) as refused:
            services.reply(thread_id=wanted, by=cast["stranger"], text="x")
        said.add(refused.value.message)
    assert len(said) == 1
    with pytest.raises(NotSignedIn):
        services.reply(thread_id=thread, by=Actor("anonymous", "ui"), text="x")
    with pytest.raises(ThreadNotFound):
        services.reply(thread_id=999_999, by=cast["admin"], text="x")


def test_a_token_that_reads_writes_nothing(cast: Cast, number: int) -> None:
    with pytest.raises(NotAllowed, match="scope is read"):
        services.open_thread(request_id=number, by=replace(cast["admin"], limit=TokenLimit("read")), text="x")
    assert services.open_thread(request_id=number, by=replace(cast["admin"], limit=TokenLimit("promote")), text="x")


@pytest.mark.parametrize("text", ["", "  \n", "a\0b", "\ud800", "x" * 10_001])
def test_what_cannot_be_kept_is_refused(cast: Cast, number: int, text: str) -> None:
    thread = begin(cast, number)
    with pytest.raises(InvalidInput):
        begin(cast, number, text=text)
    with pytest.raises(InvalidInput):
        services.reply(thread_id=thread, by=cast["reader"], text=text)
    assert Comment.objects.count() == 1


@pytest.mark.parametrize(
    "place",
    [
        {"subject": "customers-value"},
        {"subject": "orders-value' OR 1=1"},
        {"path": "Order.id"},
        {"subject": "orders-value", "path": "/fields/id"},
        {"subject": "orders-value", "path": "Order.ID"},
        {"subject": "orders-value", "path": "Order.id.more"},
        {"subject": "orders-value", "path": "x" * 1025},
        {"subject": "orders-value", "path": "a\0b"},
    ],
)
def test_a_place_that_is_none_of_the_requests_is_refused(cast: Cast, number: int, place: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        begin(cast, number, **place)
    assert not Thread.objects.exists()


def test_a_field_of_either_side_and_the_place_of_a_change(cast: Cast) -> None:
    fields = [{"name": "id", "type": "long"}, {"name": "fax", "type": "string", "default": ""}]
    register({**V1, "fields": fields}, cast["steward"])
    released = ask(cast, target="staging")
    approve_shown(request_id=released, by=cast["approver"])
    services.apply(request_id=released, by=cast["approver"])
    inner = {"type": "record", "name": "Sum", "fields": [{"name": "cents", "type": "long"}]}
    register({**V1, "fields": [fields[0], {"name": "sum", "type": inner, "default": {"cents": 0}}]}, cast["steward"])
    number = ask(cast, version=2, target="staging")
    for path in ("Order.id", "Order.fax", "Order.sum", "Order.sum.cents"):
        begin(cast, number, subject="orders-value", path=path)
    with pytest.raises(
        InvalidInput, match=r"is not a field of orders-value.*Did you mean .*Order\.sum\.cents"
    ) as refused:
        begin(cast, number, subject="orders-value", path="Order.sum.cent")
    assert refused.value.details["field"] == "path"
    assert Thread.objects.count() == 4


def test_a_field_of_a_proposed_text(cast: Cast) -> None:
    text = json.dumps({"type": "record", "name": "Paid", "fields": [{"name": "at", "type": "long"}]})
    number = services.propose_version(
        target="prod", subject=SubjectName(".", "paid-value"), text=text, by=cast["steward"]
    )
    begin(cast, number, subject="paid-value", path="Paid.at")
    with pytest.raises(InvalidInput, match="not a field"):
        begin(cast, number, subject="paid-value", path="Paid.on")


def test_how_much_is_bounded(cast: Cast, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discussions, "MAX_THREADS", 2)
    monkeypatch.setattr(discussions, "MAX_COMMENTS", 3)
    thread = begin(cast, number)
    begin(cast, number)
    with pytest.raises(WrongState, match="2 discussions"):
        begin(cast, number)
    services.reply(thread_id=thread, by=cast["reader"], text="x")
    with pytest.raises(WrongState, match="3 comments"):
        services.reply(thread_id=thread, by=cast["reader"], text="x")


def test_a_closed_request_is_discussed_no_more(cast: Cast, number: int) -> None:
    thread = begin(cast, number)
    services.withdraw(request_id=number, by=cast["steward"])
    with pytest.raises(WrongState, match="closed"):
        begin(cast, number)
    for act in (services.resolve, services.reopen):
        with pytest.raises(WrongState, match="closed"):
            act(thread_id=thread, by=cast["reader"])


def test_words_are_no_movement(cast: Cast, number: int) -> None:
    """An approval isn't voided by what is said about the request, and the checks say what is unresolved."""
    plan = selectors.get_request(number).plan_hash
    approve_shown(request_id=number, by=cast["approver"])
    begin(cast, number)
    services.recheck(request_id=number, by=cast["steward"])
    shown = selectors.get_request(number)
    assert (shown.state, shown.plan_hash) == ("approved", plan)
    assert [item["verdict"] for item in shown.checks if item["code"] == "threads"] == ["warn"]


def approved(cast: Cast, number: int, *, blocks: bool) -> int:
    """An approved request for prod, with a discussion of a field that isn't resolved; the discussion's number."""
    change(threads_block=blocks)
    thread = begin(cast, number, subject="orders-value", path="Order.id")
    plan_hash = selectors.get_request(number).plan_hash
    assert services.approve(request_id=number, by=cast["approver"], plan_hash=plan_hash) == "approved"
    return thread


@pytest.mark.requirement("CARD-4")
@pytest.mark.parametrize("channel", ["apply", "schedule", "api"])
def test_an_open_discussion_stops_the_release_at_every_channel_where_the_rule_says_so(
    cast: Cast, number: int, channel: str, api: Callable[[str], Client]
) -> None:
    thread = approved(cast, number, blocks=True)
    if channel == "apply":
        with pytest.raises(WrongState, match="1 unresolved discussion"):
            services.apply(request_id=number, by=cast["approver"])
    elif channel == "api":
        client = api("approver")
        answer = client.post(f"/api/v1/promotions/{number}/apply", content_type="application/json")
        assert answer.status_code == 409, answer.content
        shown = client.get(f"/api/v1/promotions/{number}").json()
        against = [item for item in shown["reasons"]["apply"] if item["code"] == "threads"]
        assert [item["url"] for item in against] == [f"/ui/promotions/{number}#thread-{thread}"]
        assert "Order.id of orders-value, started by reader" in against[0]["sentence"]
        assert not shown["can_run"]
        browser = signed_in("approver")
        page = browser.get(f"/ui/promotions/{number}").content.decode()
        assert re.search(rf'href="/ui/promotions/{number}#thread-{thread}"[^>]*>\s*Discussion', page)
        assert f'id="thread-{thread}"' in page
    else:
        at = timezone.now() + timedelta(seconds=60)
        services.schedule(request_id=number, by=cast["approver"], at=at)
        PromotionRequest.objects.filter(pk=number).update(apply_at=timezone.now() - timedelta(seconds=1))
        assert apply_due(request_id=number) == "approved"
        assert "1 unresolved discussion" in selectors.get_request(number).failure
    assert not selectors.get_request(number).releases
    services.resolve(thread_id=thread, by=cast["steward"])
    assert not applying(selectors.get_request(number), cast["approver"])
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"


def test_elsewhere_an_open_discussion_is_said_and_stops_nothing(cast: Cast, number: int) -> None:
    approved(cast, number, blocks=False)
    info = selectors.get_request(number)
    assert [check["verdict"] for check in info.checks if check["code"] == "threads"] == ["warn"]
    assert not applying(info, cast["approver"])
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"


def test_whether_it_could_be_promoted_counts_discussions_of_its_request(cast: Cast, number: int) -> None:
    thread = approved(cast, number, blocks=True)

    def answer() -> tuple[str, list[str]]:
        found = can_promote(subject=ORDERS, source="dev", target="prod", by=cast["steward"])
        return found.verdict, [reason.code for reason in found.reasons]

    assert answer() == ("no", ["threads"])
    services.resolve(thread_id=thread, by=cast["approver"])
    assert answer() == ("yes", ["approved"])


def test_a_discussion_stays_with_its_field_when_the_fields_are_in_another_order(cast: Cast) -> None:
    register(V2, cast["steward"])
    first = ask(cast)
    thread = begin(cast, first, subject="orders-value", path="Order.note")
    services.withdraw(request_id=first, by=cast["steward"])
    moved = {**V2, "fields": list(reversed(V2["fields"]))}
    register(moved, cast["steward"])
    second = ask(cast, version=2)
    again = begin(cast, second, subject="orders-value", path="Order.note")
    paths = {selectors.get_request(asked).threads[0].path for asked in (first, second)}
    assert (paths, thread != again) == ({"Order.note"}, True)
