"""Labels of requests: what they may be, who sets them, and where they are looked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client

from registry.access.roles import TokenLimit
from registry.audit.models import AuditEvent
from registry.errors import InvalidInput, NotAllowed, RequestNotFound
from registry.promotions import selectors, services
from registry.promotions.models import PromotionRequest
from registry.promotions.models.requests import clean_labels
from tests.promotions.factories import V1, V2, Cast, approve_shown, ask, owned_by, register, rule

pytestmark = pytest.mark.requirement("CARD-4")
HOSTILE = "<b>bold</b>"


@pytest.fixture
def number(cast: Cast) -> int:
    """A request in review for prod, of the steward."""
    register(V1, cast["steward"])
    return ask(cast)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([], []),
        (["Q4", "q4 ", "  breaking   change "], ["breaking change", "q4"]),
        (["größe", "<b>"], ["<b>", "größe"]),
        (["x" * 40], ["x" * 40]),
        (["x" * 41], None),
        (["a,b"], None),
        ([" "], None),
        (["a\u200fb"], None),
        (["a\0b"], None),
        ([str(n) for n in range(11)], None),
    ],
)
def test_what_a_label_may_be(given: list[str], kept: list[str] | None) -> None:
    if kept is None:
        with pytest.raises(InvalidInput) as refused:
            clean_labels(given)
        assert refused.value.details["field"] == "labels"
    else:
        assert clean_labels(given) == kept


@pytest.mark.parametrize("who", ["steward", "approver", "admin"])
def test_whoever_asked_and_whoever_reviews_sets_them_open_or_closed(cast: Cast, number: int, who: str) -> None:
    assert services.set_labels(request_id=number, labels=["Q4", "checkout"], by=cast[who]) == ["checkout", "q4"]
    event = AuditEvent.objects.filter(table="promotions_promotionrequest").latest("pk")
    assert event.why == f"label request {number}: checkout, q4"
    events = AuditEvent.objects.count()
    services.set_labels(request_id=number, labels=["q4", "CHECKOUT"], by=cast[who])
    assert AuditEvent.objects.count() == events, "the same again changes nothing"
    services.withdraw(request_id=number, by=cast["steward"])
    assert services.set_labels(request_id=number, labels=[], by=cast[who]) == []
    assert selectors.get_request(number).labels == ()


def test_others_do_not(cast: Cast, number: int) -> None:
    for who in ("reader", "steward2"):
        with pytest.raises(NotAllowed, match="Only the requester"):
            services.set_labels(request_id=number, labels=["x"], by=cast[who])
    with pytest.raises(NotAllowed, match="scope is read"):
        services.set_labels(request_id=number, labels=["x"], by=replace(cast["steward"], limit=TokenLimit("read")))
    owned_by("reader")
    rule(reviewers="owners")
    assert services.set_labels(request_id=number, labels=["x"], by=cast["reader"]), "a rule names them as a reviewer"
    draft = services.request_promotion(
        source="dev",
        target="staging",
        items=[(selectors.get_request(number).subject, 1)],
        draft=True,
        by=cast["steward"],
    )
    with pytest.raises(RequestNotFound):
        services.set_labels(request_id=draft, labels=["x"], by=cast["admin"])


def test_a_label_voids_no_approval(cast: Cast, number: int) -> None:
    approve_shown(request_id=number, by=cast["approver"])
    services.set_labels(request_id=number, labels=["late"], by=cast["approver"])
    services.recheck(request_id=number, by=cast["steward"])
    assert selectors.get_request(number).state == "approved"


def test_they_are_on_the_page_in_the_list_and_in_the_search(
    cast: Cast, number: int, look: Callable[[str], Client], api: Callable[[str], Client]
) -> None:
    register(V2, cast["steward"])
    other = ask(cast, version=2, target="staging")
    browser = look("steward")
    answer = browser.post(f"/ui/promotions/{number}/labels", {"labels": f" {HOSTILE} , Checkout ,, "})
    assert answer.headers["Location"] == f"/ui/promotions/{number}#labels"
    assert selectors.get_request(number).labels == (HOSTILE, "checkout")
    page = browser.get(f"/ui/promotions/{number}").content.decode()
    assert "/ui/promotions?label=checkout" in page and HOSTILE not in page and "Edit labels" in page
    rows = browser.get("/ui/promotions", {"label": " CHECKOUT"}).context["page"].rows
    assert [(row.info.id, row.info.labels) for row in rows] == [(number, (HOSTILE, "checkout"))]
    waiting = look("approver").get("/ui/promotions", {"label": "checkout", "who": "waiting"}).context["page"].rows
    assert [row.info.id for row in waiting] == [number]
    for none in ("check", "a,b", "x" * 50):
        assert not browser.get("/ui/promotions", {"label": none}).context["page"].rows
    reader = look("reader").get(f"/ui/promotions/{number}").content.decode()
    assert "/ui/promotions?label=checkout" in reader and "Edit labels" not in reader
    client = api("reader")
    assert [item["id"] for item in client.get("/api/v1/promotions?label=Checkout").json()] == [number]
    assert {item["id"]: item["labels"] for item in client.get("/api/v1/promotions").json()} == {
        number: [HOSTILE, "checkout"],
        other: [],
    }
    found = client.get("/api/v1/search?q=checkout").json()
    (group,) = [each for each in found["groups"] if each["group"] == "requests"]
    assert [hit["id"] for hit in group["hits"]] == [number]


def test_programs_set_them(cast: Cast, number: int, api: Callable[[str], Client]) -> None:
    url = f"/api/v1/promotions/{number}/labels"

    def put(who: str, labels: list[str]) -> tuple[int, object]:
        answer = api(who).put(url, json.dumps({"labels": labels}), content_type="application/json")
        return answer.status_code, answer.json()

    assert put("steward", ["Q4"]) == (200, {"labels": ["q4"]})
    assert put("steward2", ["x"])[0] == 403
    assert put("steward", ["a,b"])[0] in (400, 422)


def test_the_database_bounds_them(cast: Cast, number: int) -> None:
    many = "UPDATE promotions_promotionrequest SET labels = (SELECT array_agg(n::text) FROM generate_series(1, 11) n)"
    with (
        pytest.raises(IntegrityError, match="request_has_few_labels"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(many)


@pytest.mark.parametrize("draft", [False, True])
def test_a_request_has_them_from_the_beginning(cast: Cast, number: int, draft: bool) -> None:
    register(V2, cast["steward"])
    asked = ask(cast, version=2, target="staging", labels=["Q4", "q4 ", "checkout"], draft=draft)
    assert selectors.get_request(asked).labels == ("checkout", "q4")
    events = AuditEvent.objects.filter(table="promotions_promotionrequest", row_id=str(asked))
    assert [event.operation for event in events] == ["INSERT"], "one change, with the request"
    if not draft:
        services.withdraw(request_id=asked, by=cast["steward"])
        again = services.ask_again(request_id=asked, by=cast["steward"])
        assert selectors.get_request(again).labels == ("checkout", "q4")


@pytest.mark.parametrize("labels", [["a,b"], ["x" * 41], [str(n) for n in range(11)]])
def test_what_no_label_is_asks_for_nothing(
    cast: Cast, number: int, labels: list[str], api: Callable[[str], Client]
) -> None:
    register(V2, cast["steward"])
    with pytest.raises(InvalidInput):
        ask(cast, version=2, target="staging", labels=labels)
    sent = {"source": "dev", "target": "staging", "subject": "orders-value", "version": "2", "labels": labels}
    answer = api("steward").post("/api/v1/promotions", json.dumps(sent), content_type="application/json")
    assert answer.status_code == 422 and PromotionRequest.objects.count() == 1


def test_the_form_and_the_api_take_them(
    cast: Cast, number: int, look: Callable[[str], Client], api: Callable[[str], Client]
) -> None:
    register(V2, cast["steward"])
    sent = {"items": "orders-value 2", "source": "dev", "target": "staging", "labels": f"{HOSTILE}, a\u200fb"}
    refused = look("steward").post("/ui/promotions/request", sent)
    page = refused.content.decode()
    assert refused.status_code == 422 and PromotionRequest.objects.count() == 1
    assert "Remove it" in page and HOSTILE not in page and 'aria-invalid="true"' in page
    look("steward").post("/ui/promotions/request", {**sent, "labels": f"{HOSTILE}, Q4 ,,"})
    assert PromotionRequest.objects.latest("pk").labels == [HOSTILE, "q4"]
    number = PromotionRequest.objects.latest("pk").pk
    services.withdraw(request_id=number, by=cast["steward"])
    again = look("steward").get("/ui/promotions/request", {"again_of": number}).context["page"]
    assert again.form["labels"].value() == f"{HOSTILE}, q4"
    body = {"source": "dev", "target": "staging", "subject": "orders-value", "version": "2", "labels": ["Soon"]}
    answer = api("steward").post("/api/v1/promotions", json.dumps(body), content_type="application/json")
    assert (answer.status_code, answer.json()["labels"]) == (201, ["soon"])
    body = {"target": "prod", "subject": "orders-value", "schema": json.dumps(V2), "labels": ["New"]}
    answer = api("steward").post("/api/v1/proposals", json.dumps(body), content_type="application/json")
    assert (answer.status_code, answer.json()["labels"]) == (201, ["new"])


def test_the_audit_names_the_action_before_its_reason(cast: Cast) -> None:
    register(V1, cast["steward"])
    ask(cast, reason="Because the auditors said so")
    event = AuditEvent.objects.filter(table="promotions_promotionrequest").latest("pk")
    assert event.why == "request orders-value v1 in prod: Because the auditors said so"
