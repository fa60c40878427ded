"""The pages of requests, environments and proposals over the real database: every state, every button, every refusal."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from registry.access.models import RoleGrant, User
from registry.access.roles import Actor, system_actor
from registry.access.services import issue_token
from registry.audit.hash_chain import seal_events
from registry.promotions import selectors, services
from registry.promotions.models import BreakGlass, Environment, PromotionRequest, RecurringFreeze, Review
from registry.promotions.reviews.decisions import why_alone
from registry.subjects.models import SchemaVersion, VersionStatus
from registry.subjects.services import delete_version, set_note
from registry.subjects.usage.clients import declare_client
from tests.conftest import RawClient
from tests.markup import compact
from tests.promotions.factories import (
    BROKEN,
    CUSTOMERS,
    ORDERS,
    V1,
    V2,
    Cast,
    approve_shown,
    ask,
    change,
    register,
    rule,
    state_of,
)

pytestmark = pytest.mark.requirement("ORA-1", "CARD-4")
QUERIES = json.loads((Path(__file__).parents[1] / "query_counts.json").read_text())
HOSTILE = '<img src=x onerror="alert(1)"> {{ 7*7 }} \u202eevil'
Browser = Callable[[str], Client]


@pytest.fixture
def cast(person: Callable[[str], Actor]) -> Cast:
    """Everybody who takes part, by name."""
    return {name: person(name) for name in ("reader", "steward", "approver", "admin", "stranger")}


@pytest.fixture
def versions(cast: Cast) -> None:
    """Two versions of orders and one of customers in dev; the first of orders in staging."""
    register(V1, cast["steward"])
    register(V2, cast["steward"])
    register(V1, cast["steward"], subject=CUSTOMERS)
    register(V1, cast["steward"], registry="staging")


def text_of(answer: Any) -> str:
    assert answer.status_code in (200, 422), answer.status_code
    return str(answer.content.decode())


def buttons(text: str) -> set[str]:
    """The words on buttons that can be pressed."""
    found = re.findall(r"<button(?![^>]*disabled)[^>]*>(.*?)</button>", text, flags=re.DOTALL)
    return {re.sub(r"<[^>]+>", "", label).strip() for label in found}


# --- one request -------------------------------------------------------------------------------------------------


def test_a_request_shows_all_that_its_decision_needs(
    look: Browser, cast: Cast, versions: None, django_assert_max_num_queries: Any
) -> None:
    number = ask(cast, version=2, target="staging", reason="the checkout needs it")
    client = look("approver")
    with django_assert_max_num_queries(QUERIES["request"]):
        text = text_of(client.get(f"/ui/promotions/{number}"))
    for words in ("the checkout needs it", "Can be applied", "version 2 of staging", "changes to apply", "Order.note", "mode of orders-value", "1 approval from a reviewer of staging", "Waiting for review", "last run"):  # fmt: skip
        assert words in text, words
    assert {"Approve", "Request changes", "Reject", "Run checks again", "Start discussion"} <= buttons(text)
    assert "It is not approved yet." in text
    once = ("1 approval", "assigned when the request is applied")
    assert {words: text.count(words) for words in once} == dict.fromkeys(once, 1), "each is said once"


def test_an_open_request_names_the_channels_of_its_subjects(look: Browser, cast: Cast, versions: None) -> None:
    set_note(registry="staging", subject=ORDERS, tags=[], doc="", channel="#orders", expected="*", by=cast["steward"])
    number, client = ask(cast, version=2, target="staging"), look("approver")
    assert [link.label for link in client.get(f"/ui/promotions/{number}").context["page"].channels] == ["#orders"]
    services.withdraw(request_id=number, by=cast["steward"])
    assert client.get(f"/ui/promotions/{number}").context["page"].channels == ()


def test_the_headline_is_the_worst_of_all_checks(look: Browser, cast: Cast, versions: None) -> None:
    page = look("approver")
    fine = page.get(f"/ui/promotions/{ask(cast, version=2, target='staging')}").context["page"]
    assert fine.sentence == "1 version would be written to staging without breaking changes."
    register(V2, cast["steward"], registry="staging")
    register({**V1, "doc": "no note"}, cast["steward"])
    declare_client(registry="staging", subject=ORDERS, name="notes", version=2, fields=["note"], by=cast["steward"])
    asked = page.get(f"/ui/promotions/{ask(cast, version=3, target='staging')}").context["page"]
    assert (asked.headline, asked.verdict.code) == ("Can be applied with care", "care")
    assert "without breaking changes" not in asked.sentence
    assert (
        "1 version would be written to staging. notes (reads version 2) reads note, which is removed" in asked.sentence
    )
    form = page.get("/ui/promotions/request?items=orders-value+3&source=dev&target=staging").context["page"]
    assert form.headline == "Can be promoted to staging with care"


@pytest.mark.parametrize(
    ("state", "words", "pressed"),
    [
        ("draft", "Waiting to be submitted", {"Submit for review", "Withdraw"}),
        ("in review", "Waiting for review", {"Withdraw"}),
        ("rejected", "Closed: rejected", set()),
        ("withdrawn", "Closed: withdrawn", set()),
    ],
)
def test_each_state_shows_what_its_requester_can_do(
    look: Browser, cast: Cast, versions: None, state: str, words: str, pressed: set[str]
) -> None:
    number = ask(cast, version=2, target="staging", draft=state == "draft")
    if state == "rejected":
        services.reject(request_id=number, by=cast["approver"], comment="no")
    if state == "withdrawn":
        services.withdraw(request_id=number, by=cast["steward"])
    text = text_of(look("steward").get(f"/ui/promotions/{number}"))
    assert words in text
    assert buttons(text) & {"Submit for review", "Withdraw", "Approve", "Reject"} == pressed


def test_a_draft_is_its_requesters_alone(look: Browser, cast: Cast, versions: None) -> None:
    number = ask(cast, version=2, target="staging", draft=True)
    assert look("approver").get(f"/ui/promotions/{number}").status_code == 404
    assert f"/ui/promotions/{number}" not in text_of(look("approver").get("/ui/promotions"))
    text_of(look("steward").post(f"/ui/promotions/{number}/submit", follow=True))
    assert state_of(number) == "in review"
    assert look("approver").get(f"/ui/promotions/{number}").status_code == 200


def test_what_voided_the_approval_stands_at_the_top(look: Browser, cast: Cast, versions: None) -> None:
    number = ask(cast, version=2, target="staging")
    approve_shown(request_id=number, by=cast["approver"])
    register({**V1, "doc": "other"}, cast["steward"], registry="staging")
    stale = text_of(look("approver").get(f"/ui/promotions/{number}"))
    assert "Version 2 of orders-value was added in staging. Run the checks again." in stale
    assert "approvals no longer count" not in stale
    text = text_of(look("approver").post(f"/ui/promotions/{number}/apply", follow=True))
    assert "Earlier approvals no longer count" in text
    assert "1 approval no longer counts." in text
    assert "For an earlier plan, so it no longer counts." in text
    assert state_of(number) == "in review"


def test_stale_checks_are_reported_and_run_again(look: Browser, cast: Cast, versions: None) -> None:
    number = ask(cast, version=2, target="staging")
    register({**V1, "doc": "other"}, cast["steward"], registry="staging")
    text = text_of(look("approver").get(f"/ui/promotions/{number}"))
    assert "The checks are out of date: Version 2 of orders-value was added in staging." in text
    assert "The plan is out of date" in text
    assert "Can be applied" not in text
    assert "approvals no longer count" not in text
    assert "Approve" not in buttons(text)
    text = text_of(look("approver").post(f"/ui/promotions/{number}/recheck", follow=True))
    assert "The checks were run again" in text
    assert "Approve" in buttons(text)


def test_a_request_whose_source_version_was_deleted_is_to_be_withdrawn(
    look: Browser, cast: Cast, versions: None
) -> None:
    number = ask(cast, version=2, target="staging")
    delete_version(registry="dev", subject=ORDERS, version=2, by=cast["admin"], force="a mistake")
    text = text_of(look("steward").get(f"/ui/promotions/{number}"))
    assert "The source version is gone" in text
    assert "Version 2 of orders-value no longer exists in dev. Withdraw this request" in text
    assert "Can be applied" not in text
    assert "no longer count" not in text
    assert "Run checks again" not in buttons(text)
    assert "Withdraw" in buttons(text)


def test_a_breaking_request_is_overridden_by_who_may_with_reason_and_name(
    look: Browser, cast: Cast, versions: None
) -> None:
    register(BROKEN, cast["admin"], force="tests")
    change("staging", is_closed=True)
    number = ask(cast, version=3, target="staging")
    address = f"/ui/promotions/{number}"
    refused = text_of(look("approver").get(address))
    assert (
        "A person with the admin role can override it with a reason. You need the admin role in staging to register versions that break"
        in refused
    )
    assert "Approve" not in buttons(refused)
    admin = look("admin")
    text = text_of(admin.get(address))
    assert "Breaks compatibility in staging (an admin can override it)" in text
    assert 'name="override"' in text and 'name="typed"' in text
    read = PromotionRequest.objects.get(pk=number).plan_hash
    said = {"comment": "agreed", "override": "agreed", "plan_hash": read}
    said = text_of(admin.post(f"{address}/approve", said, follow=True))
    assert "To approve it anyway, type orders-value" in said
    assert state_of(number) == "in review"
    sent = {"comment": "agreed", "override": "the consumers are gone", "typed": "orders-value", "plan_hash": read}
    assert "Approved. It can be applied now." in text_of(admin.post(f"{address}/approve", sent, follow=True))
    assert Review.objects.get(request_id=number).override.startswith("the consumers are gone")


def test_the_form_says_when_a_comment_or_reason_is_required(look: Browser, cast: Cast, versions: None) -> None:
    number = ask(cast, version=2, target="staging")
    page = text_of(look("approver").get(f"/ui/promotions/{number}"))
    assert "Required to request changes or to reject." in page
    assert not re.search(r"Comment\s*<span class=\"optional\">", page)
    approve_shown(request_id=number, by=cast["approver"])
    page = text_of(look("approver").get(f"/ui/promotions/{number}"))
    assert "run the checks again. A reviewer can then override it with a reason." in page
    freeze = {"starts_at": timezone.now() - timedelta(hours=1), "ends_at": timezone.now() + timedelta(hours=1)}
    services.add_freeze(environment="staging", by=cast["admin"], reason="the sale", **freeze)
    page = text_of(look("approver").get(f"/ui/promotions/{number}"))
    assert "Needed to approve despite these failing checks: freeze window." in page
    assert not re.search(r"override failing checks\s*<span class=\"optional\">", page)
    sent = {"override": "it is the sale", "plan_hash": PromotionRequest.objects.get(pk=number).plan_hash}
    assert look("approver").post(f"/ui/promotions/{number}/approve", sent).status_code == 302
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"


def test_home_counts_the_warnings_that_the_page_lists(look: Browser, cast: Cast, versions: None) -> None:
    """Neither counts the notes, such as schema ids that differ, which don't keep a request from bulk approval either."""
    number = ask(cast, version=2, target="staging")
    page, home = (text_of(look("approver").get(url)) for url in (f"/ui/promotions/{number}", "/ui/"))
    assert "<span>Warning</span>" not in page and page.count("<span>Note</span>") > 1
    assert "warning" not in home
    assert not why_alone(selectors.get_request(number).plan)
    services.withdraw(request_id=number, by=cast["steward"])
    register(V2, cast["steward"], registry="staging")
    register({**V1, "doc": "no note"}, cast["steward"])
    declare_client(registry="staging", subject=ORDERS, name="notes", version=2, fields=["note"], by=cast["steward"])
    number = ask(cast, version=3, target="staging")
    page, home = (text_of(look("approver").get(url)) for url in (f"/ui/promotions/{number}", "/ui/"))
    assert (warned := page.count("<span>Warning</span>")) >= 1
    assert re.search(rf"\b{warned} warnings?\b", home)
    assert why_alone(selectors.get_request(number).plan).startswith("A check warns")


def test_nobody_can_approve_says_so(look: Browser, cast: Cast, versions: None) -> None:
    rule("staging", reviewers="group", name="nobody-here")
    number = ask(cast, version=2, target="staging")
    text = text_of(look("approver").get(f"/ui/promotions/{number}"))
    assert "Nobody can approve this" in text
    assert "the group nobody-here" in text
    assert "Possible reviewers" not in text, "those who could give one of the approvals can't approve it"
    listed = text_of(look("approver").get("/ui/promotions"))
    assert "0 of 1, 0 of 1" in listed, "one approval may count for both"


def test_the_changes_of_a_request_in_business_words(look: Browser, cast: Cast, versions: None) -> None:
    number = ask(cast, version=2, target="staging")
    client = look("approver")
    plain = client.get(f"/ui/promotions/{number}").context["page"]
    told = client.get(plain.words_url).context["page"]
    cards = [[card for group in page.changes.comparison.groups for card in group.cards] for page in (plain, told)]
    assert [card.path for card in cards[0]] == [card.path for card in cards[1]]
    assert not any(card.business for card in cards[0])
    assert all(card.business for card in cards[1])
    assert all(card.comment_url for card in cards[1])
    assert "words=business" in told.split_url
    assert told.words_url == f"/ui/promotions/{number}"


def test_a_set_shows_one_schema_at_a_time(look: Browser, cast: Cast, versions: None) -> None:
    register(V1, cast["steward"], registry="staging", subject=CUSTOMERS)
    register(V2, cast["steward"], subject=CUSTOMERS)
    number = services.request_promotion(
        source="dev", target="staging", items=[(ORDERS, 2), (CUSTOMERS, 2)], by=cast["steward"]
    )
    client = look("approver")
    text = text_of(client.get(f"/ui/promotions/{number}?item=customers-value"))
    assert "2 schemas would be written" in text and "Ids are assigned when the request is applied." in text
    assert re.search(r"Changes of .*customers-value", text)
    assert re.search(r"Changes of .*orders-value", text_of(client.get(f"/ui/promotions/{number}?item=orders-value")))
    part = client.get(f"/ui/promotions/{number}?view=split", headers={"HX-Request": "true", "HX-Target": "text"})
    assert part.content.decode().lstrip().startswith('<section class="panel" id="text"')


@pytest.mark.parametrize("place", ["field", "whole"])
def test_a_discussion_hangs_at_a_field(look: Browser, cast: Cast, versions: None, place: str) -> None:
    number = ask(cast, version=2, target="staging")
    address, client = f"/ui/promotions/{number}", look("approver")
    text = text_of(client.get(address))
    link = re.search(r'class="comment-link[^"]*" href="([^"#]+)#comment"', compact(text))
    assert link is not None
    form = text_of(client.get(link[1].replace("&amp;", "&")))
    assert 'name="path" value="Order.note"' in compact(form)
    sent = {"text": HOSTILE, **({"subject": "orders-value", "path": "Order.note"} if place == "field" else {})}
    answer = client.post(f"{address}/threads", sent)
    shown = "?item=orders-value" if place == "field" else ""
    assert answer["Location"] == f"{address}{shown}#discussion"
    thread = selectors.get_request(number).threads[0]
    assert thread.path == ("Order.note" if place == "field" else "")
    text = text_of(look("steward").get(address))
    assert HOSTILE not in text and "&lt;img src=x" in text and "U+202E" in text
    steward = look("steward")
    for name, body in (("answer", {"text": "because"}), ("resolve", {}), ("reopen", {})):
        found = steward.post(f"{address}/threads/{thread.id}/{name}", body)
        assert found["Location"] == f"{address}#thread-{thread.id}"
    kept = selectors.get_request(number).threads[0]
    assert [said.text for said in kept.comments] == [HOSTILE, "because"]
    assert kept.is_open


def test_changes_are_requested_and_the_reader_of_the_page_knows(look: Browser, cast: Cast, versions: None) -> None:
    number = ask(cast, version=2, target="staging")
    client, address = look("approver"), f"/ui/promotions/{number}"
    assert "Enter what should be changed" in text_of(client.post(f"{address}/changes", {}, follow=True))
    assert "Changes requested" in text_of(client.post(f"{address}/changes", {"comment": "a default"}, follow=True))
    assert "Changes requested" in text_of(look("steward").get(address))


def test_schedule_and_unschedule(look: Browser, cast: Cast, versions: None) -> None:
    number = ask(cast, version=2, target="staging")
    approve_shown(request_id=number, by=cast["approver"])
    client, address = look("approver"), f"/ui/promotions/{number}"
    for wrong in ("", "soon", "2020-01-01T00:00", "2026-99-99T99:99"):
        text_of(client.post(f"{address}/schedule", {"at": wrong}, follow=True))
        assert state_of(number) == "approved"
    at = timezone.now() + timedelta(hours=5)
    text = text_of(client.post(f"{address}/schedule", {"at": f"{at:%Y-%m-%dT%H:%M}"}, follow=True))
    assert state_of(number) == "scheduled"
    assert f"{at:%Y-%m-%d %H:%M} UTC" in text
    assert "Cancel schedule" in buttons(text)
    text_of(client.post(f"{address}/unschedule", follow=True))
    assert state_of(number) == "approved"


def test_a_failed_request_shows_its_steps_and_two_ways_on(look: Browser, cast: Cast, versions: None) -> None:
    number = ask(cast, version=2, target="staging")
    row = PromotionRequest.objects.get(pk=number)
    step = row.plan["steps"][-1]
    row.steps.create(position=0, state="done", step=step, version_number=2, schema_id=7, done_at=timezone.now())
    row.steps.create(position=1, state="failed", step=step, said=f"503: {HOSTILE}")
    PromotionRequest.objects.filter(pk=number).update(state="failed", failure="the remote answered 503")
    text = text_of(look("approver").get(f"/ui/promotions/{number}"))
    assert "1 of 2 steps done" in text
    assert "version 2 with schema id 7" in text
    assert HOSTILE not in text
    assert {"Resume", "Give up"} <= buttons(text)


# --- asking, lists -----------------------------------------------------------------------------------------------


def test_the_preview_writes_nothing_and_is_exported(
    look: Browser, cast: Cast, versions: None, django_assert_max_num_queries: Any
) -> None:
    client = look("steward")
    query = "items=orders-value+2%0D%0Acustomers-value&source=dev&target=staging"
    with django_assert_max_num_queries(QUERIES["ask"]):
        text = text_of(client.get(f"/ui/promotions/request?{query}"))
    assert "Can be promoted to staging" in text
    assert "Register orders-value version 2 of dev as version 2 of staging" in text
    assert not PromotionRequest.objects.exists()
    with django_assert_max_num_queries(QUERIES["plan file"]):
        answer = client.get(f"/ui/promotions/plan.json?{query}")
    found = json.loads(answer.content)
    assert answer["Content-Disposition"] == 'attachment; filename="plan.json"'
    client.post(
        "/ui/promotions/request", {"items": "orders-value 2\r\ncustomers-value", "source": "dev", "target": "staging"}
    )
    assert PromotionRequest.objects.get().plan_hash == found["plan_hash"]


def test_the_checkbox_includes_the_subjects_own_settings(look: Browser, cast: Cast, versions: None) -> None:
    form = compact(text_of(look("steward").get("/ui/promotions/request")))
    (box,) = re.findall(r'<input type="checkbox" name="with_config"[^>]*>', form)
    sent = {"items": "orders-value 2", "source": "dev", "target": "staging", "with_config": "on"}
    assert "value=" not in box, "so a browser sends “on”"
    assert look("steward").post("/ui/promotions/request", sent).status_code == 302
    assert selectors.get_request(PromotionRequest.objects.get().pk).with_config


def test_the_boards_marks_become_one_plan(look: Browser, cast: Cast, versions: None) -> None:
    text = text_of(
        look("steward").get("/ui/promotions/request?way=dev%3Estaging&item=orders-value&item=customers-value")
    )
    assert "2 versions would be written to staging." in text


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"items": "none-value", "source": "dev", "target": "staging"}, "none-value"),
        ({"items": "orders-value 99", "source": "dev", "target": "staging"}, "99"),
        ({"items": "orders-value 2", "source": "staging", "target": "dev"}, "doesn&#x27;t come after"),
        ({"items": "orders-value 2", "source": "dev", "target": "nowhere"}, "is not an environment"),
        ({"items": "", "source": "dev", "target": "staging"}, "“Subjects”: This field is required."),
        ({"items": "orders-value\norders-value 1", "source": "dev", "target": "staging"}, "is listed twice"),
        ({"items": "\n".join(f"s{n}" for n in range(501)), "source": "dev", "target": "staging"}, "501 lines"),
        ({"items": f"{HOSTILE}", "source": "dev", "target": "staging"}, "&lt;img"),
    ],
)
def test_what_cannot_be_asked_for_is_said_on_the_form(
    look: Browser, cast: Cast, versions: None, sent: dict[str, str], words: str
) -> None:
    answer = look("steward").post("/ui/promotions/request", sent)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not PromotionRequest.objects.exists()


def test_the_list_is_filtered_and_paged_by_number(
    look: Browser, cast: Cast, versions: None, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    monkeypatch.setattr("dashboard.promotions.request_list.PAGE_ROWS", 1)
    first = ask(cast, version=1, target="prod")
    second = ask(cast, version=2, target="staging")
    client = look("approver")
    with django_assert_max_num_queries(QUERIES["promotions"]):
        text = text_of(client.get("/ui/promotions"))
    assert f'href="/ui/promotions/{second}"' in text and f'href="/ui/promotions/{first}"' not in text
    assert f'href="/ui/promotions/{first}"' in text_of(client.get(f"/ui/promotions?before={second}"))
    for query, shown in (("target=prod", first), ("who=waiting", second), ("q=orders-value&state=open", second)):
        assert f'href="/ui/promotions/{shown}"' in text_of(client.get(f"/ui/promotions?{query}")), query
    for nothing in ("who=mine", "state=applied", "q=%3A.x", "target=nowhere"):
        assert "No matching requests" in text_of(client.get(f"/ui/promotions?{nothing}")), nothing


# --- environments ------------------------------------------------------------------------------------------------


def test_the_board_says_what_is_behind_and_why(look: Browser, cast: Cast, versions: None) -> None:
    client = look("steward")
    text = text_of(client.get("/ui/environments?show=behind"))
    assert "missing version 2 from dev" in text
    assert 'name="item" value="orders-value"' in compact(text)
    assert "Preview plan" in buttons(text)
    row = SchemaVersion.objects.get(subject__context__registry__name="dev", version=2)
    assert f'<time datetime="{row.created_at:%Y-%m-%dT%H:%M:%SZ}"' in text
    assert "Deprecated" not in text
    VersionStatus.objects.create(version=row, status="deprecated", message=HOSTILE, decided_by="tests")
    text = text_of(client.get("/ui/environments"))
    assert "Deprecated" in text and HOSTILE not in text
    register({**V1, "doc": "x"}, cast["steward"], registry="staging")
    assert "content differs from dev" in text_of(client.get("/ui/environments?show=different+content"))
    assert "No matching subjects" in text_of(client.get("/ui/environments?q=nothing-like-it"))
    assert "Preview plan" not in buttons(text_of(look("reader").get("/ui/environments")))


def test_an_environment_is_changed_on_its_page(
    look: Browser, cast: Cast, versions: None, django_assert_max_num_queries: Any
) -> None:
    admin, address = look("admin"), "/ui/environments/staging"
    with django_assert_max_num_queries(QUERIES["environment"]):
        assert "Open" in text_of(admin.get(address))
    admin.post(f"{address}/change", {"reviews_needed": "2", "owners_only": "1", "is_closed": "1"})
    row = Environment.objects.get(registry__name="staging")
    assert (row.reviews_needed, row.owners_only, row.is_closed, row.drift_blocks) == (2, True, True, False)
    text = text_of(look("reader").get(address))
    assert text.count("You need the admin role in staging to manage registries.") == 1
    assert not {"Save rules", "Add rule", "Add freeze window", "Add recurring freeze"} & buttons(text)
    Environment.objects.filter(pk=row.pk).update(is_closed=False)  # what loosens a closed one takes a second person
    sent = {"subject_pattern": "pay-*", "verdict": "breaking", "reviewers": "role", "name": "approver", "count": "2"}
    text = text_of(admin.post(f"{address}/rules", sent, follow=True))
    assert "2 approvals from the approver role for breaking requests that match pay-*" in text
    text_of(admin.post(f"{address}/rules/{row.review_rules.get().pk}/remove", follow=True))
    assert not row.review_rules.exists()
    start = timezone.now()
    sent = {
        "starts_at": f"{start:%Y-%m-%dT%H:%M}",
        "ends_at": f"{start + timedelta(days=2):%Y-%m-%dT%H:%M}",
        "reason": HOSTILE,
    }
    text = text_of(admin.post(f"{address}/freezes", sent, follow=True))
    assert "In force" in text and HOSTILE not in text
    text_of(admin.post(f"{address}/freezes/{row.freeze_windows.get().pk}/remove", follow=True))
    assert not row.freeze_windows.exists()


WEEKLY = {
    "kind": "weekly", "zone": "Europe/Berlin", "from_day": "4", "from_time": "16:00", "to_day": "0",
    "to_time": "07:00", "last_days": "", "reason": HOSTILE,
}  # fmt: skip


def test_a_freeze_comes_again_by_the_clocks_of_a_zone(look: Browser, cast: Cast, versions: None) -> None:
    admin, address = look("admin"), "/ui/environments/staging"
    text = text_of(admin.post(f"{address}/recurring-freezes", WEEKLY, follow=True))
    assert "Every week from Friday 16:00 to Monday 07:00, Europe/Berlin" in text and HOSTILE not in text
    assert ("In force" in text) != ("Next:" in text)
    monthly = {**WEEKLY, "kind": "monthly", "last_days": "3", "from_time": "00:00", "to_time": "00:00"}
    assert "Every month on the last 3 days, Europe/Berlin" in text_of(
        admin.post(f"{address}/recurring-freezes", monthly, follow=True)
    )
    for number in RecurringFreeze.objects.values_list("pk", flat=True):
        text_of(admin.post(f"{address}/recurring-freezes/{number}/remove", follow=True))
    assert not RecurringFreeze.objects.exists()


@pytest.mark.parametrize(
    ("part", "sent", "words"),
    [
        ("change", {"reviews_needed": "many"}, "“Approvals required”: Enter a whole number"),
        (
            "change",
            {"reviews_needed": "99", "is_closed": "1"},
            "“Approvals required” must be a number from 0 to 20",
        ),
        (
            "rules",
            {"subject_pattern": "*", "verdict": "any", "reviewers": "role", "name": "king", "count": "1"},
            "“Role or group” must be one of",
        ),
        ("freezes", {"starts_at": "x", "ends_at": "y", "reason": "z"}, "Enter a time in UTC"),
        (
            "recurring-freezes",
            {**WEEKLY, "kind": "monthly", "last_days": "x"},
            "“Number of last days (monthly)”: Enter a whole number",
        ),
        (
            "recurring-freezes",
            {**WEEKLY, "from_time": "7 o’clock"},
            "“Start time”: Enter a valid time",
        ),
        ("break-glass", {"reason": "", "minutes": "10"}, "“Why it can’t wait for a release”: This field is required"),
        ("break-glass", {"reason": "x", "minutes": "9999"}, "240"),
    ],
)
def test_what_an_environment_does_not_take_is_said(look: Browser, part: str, sent: dict[str, str], words: str) -> None:
    answer = look("admin").post(f"/ui/environments/prod/{part}", sent)
    assert answer.status_code == 422
    assert words in answer.content.decode()


def test_a_refused_rule_is_shown_as_it_was_sent_and_marked_at_its_field(look: Browser) -> None:
    sent = {"reviews_needed": "99", "is_closed": "1", "drift_blocks": "1"}
    page = look("admin").post("/ui/environments/prod/change", sent).content.decode()
    field = re.search(r'<input[^>]*name="reviews_needed"[^>]*>', page)
    assert field is not None
    assert 'value="99"' in field[0]
    assert 'aria-invalid="true"' in field[0]
    chosen = re.findall(r'<input type="checkbox" name="(\w+)"[^>]* checked', compact(page))
    assert chosen == ["is_closed", "drift_blocks"]


def test_a_field_that_some_choices_require_is_not_called_optional(look: Browser) -> None:
    page = compact(look("admin").get("/ui/environments/prod").content.decode())
    optional = re.findall(r'<label class="label" for="[^"]*">([^<]*?) ?<span class="optional">', page)
    assert optional == ["Maximum age of evidence (hours)"]
    assert "Role or group</label>" in page and "Number of last days (monthly)</label>" in page


def test_a_form_that_was_refused_is_unfolded(look: Browser) -> None:
    sent = {"subject_pattern": "*", "verdict": "any", "reviewers": "role", "name": "king", "count": "1"}
    page = look("admin").post("/ui/environments/prod/rules", sent).content.decode()
    unfolded = re.findall(r'<details class="more" open>.*?</details>', compact(page), re.DOTALL)
    assert len(unfolded) == 1
    assert 'value="king"' in unfolded[0]


def test_break_glass_is_opened_closed_and_confirmed_by_another(look: Browser, cast: Cast) -> None:
    admin, address = look("admin"), "/ui/environments/prod"
    text = text_of(admin.post(f"{address}/break-glass", {"reason": "it burns", "minutes": "30"}, follow=True))
    assert "Open now" in text and "it burns" in text
    assert "Break-glass is open until" in text_of(admin.get("/ui/environments"))
    number = BreakGlass.objects.get().pk
    text_of(admin.post(f"{address}/break-glass/{number}/close", follow=True))
    text = text_of(admin.get(address))
    assert "Waiting for confirmation" in text
    assert "You opened it, so another person must confirm it." in text
    text = text_of(look("approver").post(f"{address}/break-glass/{number}/confirm", {"comment": "it did"}, follow=True))
    assert "Confirmed by" in text and "it did" in text


def test_break_glass_that_nobody_confirmed_is_red_for_good(look: Browser, cast: Cast) -> None:
    row = BreakGlass.objects.create(
        environment=Environment.objects.get(registry__name="prod"), reason="x", ends_at=timezone.now(),
        opened_by=User.objects.get(username="admin"),
    )  # fmt: skip
    BreakGlass.objects.filter(pk=row.pk).update(opened_at=timezone.now() - timedelta(days=2))
    text = text_of(look("approver").get("/ui/environments/prod"))
    assert "Not confirmed in time" in text and "glass-red" in text
    assert "Confirm break-glass" not in buttons(text)
    assert "not confirmed by a second person" in text_of(look("reader").get("/ui/environments"))


# --- proposals ---------------------------------------------------------------------------------------------------


def test_the_editor_takes_the_suggested_fix(look: Browser, cast: Cast, versions: None) -> None:
    client, address = look("steward"), "/ui/proposals/new"
    refused = json.loads(json.dumps(V2))
    refused["fields"].append({"name": "city", "type": "string"})
    form = {
        "registry": "dev",
        "subject": "orders-value",
        "schema_type": "AVRO",
        "text": json.dumps(refused),
        "do": "check",
    }
    page = client.post(address, form).content.decode()
    fixes = [html.unescape(text) for text in re.findall(r'<button[^>]* name="fixed" value="([^"]+)"', compact(page))]
    assert fixes, "a refused text has a fix that the editor takes"
    file = SimpleUploadedFile("other.avsc", b"not this")
    answer = client.post(address, {**form, "fixed": fixes[-1], "file": file})
    text = text_of(answer)
    assert answer.status_code == 200
    assert "Can be registered in dev" in text
    (city,) = [field for field in json.loads(fixes[-1])["fields"] if field["name"] == "city"]
    assert "default" in city
    held = re.search(r'<textarea[^>]* name="text"[^>]*>(.*?)</textarea>', answer.content.decode(), re.DOTALL)
    assert held is not None
    assert json.loads(html.unescape(held[1])) == json.loads(fixes[-1])


def test_a_proposal_from_a_version_to_a_request(
    look: Browser, cast: Cast, versions: None, django_assert_max_num_queries: Any
) -> None:
    client = look("steward")
    with django_assert_max_num_queries(QUERIES["propose"]):
        text = text_of(client.get("/ui/proposals/new?registry=staging&subject=orders-value&from=dev:2"))
    assert "from version 2 of dev" in text and "&quot;note&quot;" in text
    form = {"registry": "staging", "subject": "orders-value", "schema_type": "AVRO", "text": json.dumps(V2)}
    text = text_of(client.post("/ui/proposals/new", {**form, "do": "check"}))
    assert "Can be registered in staging" in text
    split = text_of(client.post("/ui/proposals/new", {**form, "view": "split"}))
    assert re.search(r'value="split" aria-pressed="true"', compact(split))
    assert re.search(r'value="split" aria-pressed="false"', compact(text))
    assert split != text
    answer = client.post("/ui/proposals/new", {**form, "do": "save", "text": '{"half'})
    draft = answer["Location"]
    assert "{&quot;half" in text_of(client.get(draft))
    assert look("admin").get(draft).status_code == 404
    with django_assert_max_num_queries(QUERIES["proposals"]):
        assert draft in text_of(client.get("/ui/proposals"))
    number = int(draft.rpartition("/")[2])
    answer = client.post("/ui/proposals/new", {**form, "do": "submit", "draft_id": str(number), "reason": "new field"})
    request = PromotionRequest.objects.get()
    assert answer["Location"] == f"/ui/promotions/{request.pk}"
    assert draft not in text_of(client.get("/ui/proposals"))
    text = text_of(look("approver").get(answer["Location"]))
    assert "Register a proposed text of orders-value in staging" in text
    assert "Order.note" in text


def test_what_is_written_is_kept_and_another_tab_is_not_written_over(look: Browser, cast: Cast, versions: None) -> None:
    client = look("steward")
    form = {"registry": "staging", "subject": "orders-value", "schema_type": "AVRO", "text": '{"ha', "state_read": ""}

    def keep(**sent: str) -> Any:
        return client.post("/ui/proposals/new", {**form, "do": "autosave", **sent})

    first = keep()
    told = first.json()
    assert first.status_code == 200
    assert re.fullmatch(r"Saved \d\d:\d\d", told["said"])
    page = text_of(client.get(told["url"]))
    assert f'name="state_read" value="{told["state_read"]}"' in page
    assert "data-autosave" in page
    second = keep(text='{"half', state_read=told["state_read"]).json()
    assert second["draft_id"] == told["draft_id"]
    assert keep(text='{"half', state_read="whatever").json() == second, "the same text again is nothing to write"
    stale = keep(text='{"other tab', state_read=told["state_read"])
    assert (stale.status_code, stale.json()["stop"]) == (409, True)
    assert stale.json()["said"].startswith("Not saved: Your draft of orders-value was changed at")
    button = client.post(
        "/ui/proposals/new", {**form, "do": "save", "text": '{"mine', "state_read": told["state_read"]}
    )
    assert button.status_code == 422
    assert f'name="state_read" value="{second["state_read"]}"' in text_of(button), (
        "pressed again it replaces what was told"
    )
    assert client.post(
        "/ui/proposals/new", {**form, "do": "save", "text": '{"mine', "state_read": second["state_read"]}
    )["Location"]
    assert "{&quot;mine" in text_of(client.get(told["url"]))
    large = keep(text="x" * 2_000_000, state_read="")
    assert (large.status_code, large.json()["stop"]) == (422, False)
    assert look("reader").post("/ui/proposals/new", {**form, "do": "autosave"}).status_code == 422


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"text": json.dumps(V1)}, "Nothing would be registered"),
        ({"text": '{\n "type": "recor"\n}'}, "can’t be parsed: line 2"),
        ({"text": json.dumps(BROKEN)}, "Breaks compatibility in staging"),
        ({"text": json.dumps(V1), "registry": "nowhere"}, "is not an environment"),
        ({"text": "x" * 10, "schema_type": "XML"}, "XML"),
        ({"text": json.dumps(V1), "ref_name": "a", "ref_subject": "b", "ref_version": "c"}, "is not a valid version"),
        ({"text": json.dumps(V1), "ref_name": "a", "ref_subject": "b", "ref_version": "1"}, "b"),
    ],
)
def test_a_check_of_a_text_says_what_it_comes_to(
    look: Browser, cast: Cast, versions: None, sent: dict[str, str], words: str
) -> None:
    form = {"registry": "staging", "subject": "orders-value", "schema_type": "AVRO", "do": "check"}
    assert words in text_of(look("steward").post("/ui/proposals/new", {**form, **sent}))
    assert not PromotionRequest.objects.exists()


def file_of(text: str | bytes, name: str = "order.avsc") -> SimpleUploadedFile:
    """A file that a form sends."""
    return SimpleUploadedFile(name, text if isinstance(text, bytes) else text.encode(), "application/octet-stream")


def test_a_checked_text_shows_its_changes_and_all_levels_before_it_is_submitted(
    look: Browser, cast: Cast, versions: None, django_assert_max_num_queries: Any
) -> None:
    form = {"registry": "staging", "subject": "orders-value", "schema_type": "AVRO", "do": "check"}
    client = look("steward")
    with django_assert_max_num_queries(QUERIES["propose: checked"]):
        answer = client.post("/ui/proposals/new", {**form, "text": json.dumps(BROKEN)})
    page, text = answer.context["page"], text_of(answer)
    told = page.report
    assert [card.path for group in told.comparison.groups for card in group.cards] == ["Order.id"]
    assert [row.level for row in told.levels if row.verdict.code == "ok"] == ["NONE"]
    assert [row.level for row in told.levels if row.configured] == ["BACKWARD"]
    for words in ("Against the newest version", "All levels", "New reader, old data"):
        assert words in text, words
    assert told.comparison.text is not None and not told.comparison.text.identical
    new = client.post("/ui/proposals/new", {**form, "subject": "new-value", "text": json.dumps(V1)})
    assert new.context["page"].report.comparison is None
    assert all(row.verdict.code == "ok" for row in new.context["page"].report.levels)
    assert not PromotionRequest.objects.exists()


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"text": json.dumps(BROKEN)}, ["Breaks compatibility in staging", "Breaking"]),
        ({"text": json.dumps(V1)}, ["staging already has it", "identical in meaning to"]),
        ({"text": '{\n "type": "recor"\n}'}, ["can’t be parsed: line 2", "Where in the schema"]),
        ({"text": json.dumps(V1), "registry": "nowhere"}, ["is not an environment"]),
        ({"text": "x" * 1_000_001}, ["The schema is too large", "at most 1000000 bytes"]),
    ],
)
def test_a_check_says_what_is_wrong_and_saves_nothing(
    look: Browser, cast: Cast, versions: None, sent: dict[str, str], words: list[str]
) -> None:
    form = {"registry": "staging", "subject": "orders-value", "schema_type": "AVRO", "do": "check", **sent}
    text = text_of(look("reader" if "recor" in sent["text"] else "steward").post("/ui/proposals/new", form))
    assert [word for word in words if word not in text] == []
    assert not PromotionRequest.objects.exists() and not selectors.list_drafts(cast["steward"].user_id or 0)


def test_the_text_that_was_checked_is_what_its_report_is_of(look: Browser, cast: Cast, versions: None) -> None:
    form = {"registry": "staging", "subject": "orders-value", "schema_type": "AVRO", "text": json.dumps(BROKEN)}
    page = look("steward").post("/ui/proposals/new", {**form, "do": "check"})
    where = re.search(r'form="editor" formaction="([^"]*/report[^"]*)"', compact(page.content.decode()))
    assert where is not None
    report = look("steward").post(where[1], form).context["page"]
    assert report.form["text"].value() == form["text"]
    assert report.result.verdict.look.word != "Compatible" and report.subject == "orders-value"


@pytest.mark.parametrize(
    ("file", "format", "words"),
    [
        (file_of("\ufeff" + json.dumps(BROKEN).replace(",", ",\r\n")), "JSON", "Breaks compatibility in staging"),
        (file_of(json.dumps(V1), HOSTILE), "AVRO", "Nothing would be registered"),
        (file_of(b'{"type": "\xff"}'), "AVRO", "The file is not valid UTF-8 at byte 11"),
        (file_of(b"x" * 1_000_001), "AVRO", "It has 1000001 bytes. The maximum is 1000000"),
        (file_of(b"x" * 3_000_000), "AVRO", "It has 3000000 bytes. The maximum is 1000000"),
        (file_of("{"), "AVRO", "can’t be parsed"),
    ],
)
def test_a_text_is_uploaded_as_a_file(
    look: Browser, cast: Cast, versions: None, file: SimpleUploadedFile, format: str, words: str
) -> None:
    file.seek(0)
    form = {"registry": "staging", "subject": "orders-value", "schema_type": format, "do": "check", "text": ""}
    text = text_of(look("steward").post("/ui/proposals/new", {**form, "file": file}))
    assert words in text
    assert "<img src=x" not in text
    assert 'enctype="multipart/form-data"' in text


def test_an_uploaded_text_is_kept_as_the_draft(look: Browser, cast: Cast, versions: None) -> None:
    form = {"registry": "staging", "subject": "orders-value", "schema_type": "JSON", "do": "save", "text": "typed"}
    answer = look("steward").post("/ui/proposals/new", {**form, "file": file_of(json.dumps(V2))})
    kept = selectors.list_drafts(cast["steward"].user_id or 0)[0]
    assert answer["Location"] == f"/ui/proposals/{kept.id}"
    assert (kept.schema_type, kept.origin) == ("AVRO", "from the file order.avsc")
    assert json.loads(selectors.get_draft(kept.id, user_id=cast["steward"].user_id or 0).text) == V2


# --- the evidence pack -------------------------------------------------------------------------------------------


@pytest.fixture
def applied(cast: Cast, versions: None) -> int:
    """A request that was discussed, approved and applied."""
    number = ask(cast, version=2, target="staging", reason=HOSTILE)
    thread = services.open_thread(
        request_id=number, by=cast["approver"], text=HOSTILE, subject="orders-value", path="Order.note"
    )
    services.resolve(thread_id=thread, by=cast["approver"])
    approve_shown(request_id=number, by=cast["approver"], comment=HOSTILE)
    services.apply(request_id=number, by=cast["approver"])
    return number


def test_the_pack_proves_what_runs_and_who_agreed(
    look: Browser, applied: int, django_assert_max_num_queries: Any
) -> None:
    while seal_events():
        pass
    client = look("reader")
    with django_assert_max_num_queries(QUERIES["evidence"]):
        pack = json.loads(client.get(f"/ui/promotions/{applied}/evidence.json").content)
    token = issue_token(username="reader", name="pack", by=system_actor("tests"))
    api = RawClient(headers={"authorization": f"Bearer {token}"}).get(f"/api/v1/promotions/{applied}/evidence")
    for part in ("plan", "changes", "checks"):
        told = {**pack[part], "made_at": ""} if part == "plan" else pack[part]
        assert ({**api.json()[part], "made_at": ""} if part == "plan" else api.json()[part]) == told
    assert [(row["version"], row["is_equal"]) for row in pack["read_back"]] == [(2, True)]
    assert pack["read_back"][0]["registered_fingerprint"] == pack["request"]["items"][0]["fingerprint"]
    assert [item["path"] for item in pack["changes"][0]["differences"]] == ["Order.note"]
    assert [review["reviewer"] for review in pack["reviews"]] == ["approver"]
    events = pack["audit"]["events"]
    tables = {event["table"] for event in events}
    assert {"promotions_promotionrequest", "promotions_review", "promotions_comment", "promotions_release",
            "subjects_schemaversion"} <= tables  # fmt: skip
    for event in events:
        assert hashlib.sha256((event["seal_before"] + event["sealed_text"]).encode()).hexdigest() == event["seal"]


def test_the_html_pack_is_one_file_that_loads_nothing(look: Browser, applied: int) -> None:
    answer = look("reader").get(f"/ui/promotions/{applied}/evidence.html")
    text = answer.content.decode()
    assert answer["Content-Disposition"] == f'attachment; filename="request-{applied}.html"'
    assert re.findall(r"<(?:script|img|link|iframe|object|form|a)\b", text) == []
    assert re.findall(r"\b(?:src|href|style|on\w+)=[\"']", text.replace("onerror=&quot;", "")) == []
    assert HOSTILE not in text and "&lt;img src=x" in text and "{{ 7*7 }}" in text
    style = re.search(r"<style>(.*?)</style>", text, flags=re.DOTALL)
    policy = re.search(r"style-src &#x27;sha256-([^&]+)&#x27;", text)
    assert style is not None and policy is not None
    assert base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode() == policy[1]
    assert '<span class="good">equal</span>' in text


def test_a_version_that_is_gone_is_no_proof(look: Browser, cast: Cast, applied: int) -> None:
    delete_version(registry="staging", subject=ORDERS, version=2, by=cast["admin"])
    pack = json.loads(look("reader").get(f"/ui/promotions/{applied}/evidence.json").content)
    assert pack["read_back"][0]["is_deleted"] is True


# --- who sees what -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["/ui/promotions/{number}", "/ui/promotions/{number}/evidence.html", "/ui/promotions/{number}/evidence.json",
     "/ui/environments", "/ui/environments/prod", "/ui/promotions", "/ui/proposals"],
)  # fmt: skip
def test_a_stranger_sees_nothing(look: Browser, cast: Cast, versions: None, address: str) -> None:
    number = ask(cast, version=2, target="staging")
    answer = look("stranger").get(address.format(number=number))
    assert answer.status_code == 403
    assert "orders-value" not in answer.content.decode()
    signed_out = RawClient().get(address.format(number=number))
    assert signed_out.status_code == 302 and "/login/" in signed_out["Location"]


@pytest.mark.parametrize("address", ["/ui/promotions/999", "/ui/promotions/999/evidence.json", "/ui/environments/none",
                                     "/ui/proposals/999", f"/ui/promotions/{'9' * 30}"])  # fmt: skip
def test_what_is_not_there_is_not_found(look: Browser, address: str) -> None:
    assert look("steward").get(address).status_code == 404


def test_a_request_of_secret_subjects_looks_like_none(look: Browser, cast: Cast, versions: None) -> None:
    number = ask(cast, version=2, target="staging")
    RoleGrant.objects.filter(user__username="reader").update(subject_pattern="payments-*")
    client = look("reader")
    assert client.get(f"/ui/promotions/{number}").status_code == 404
    assert f"/ui/promotions/{number}" not in text_of(client.get("/ui/promotions"))
    assert client.get(f"/ui/promotions/{number}/evidence.json").status_code == 404
