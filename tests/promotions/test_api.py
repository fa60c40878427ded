"""Requests, their reviews and discussions, and drafts, through the product's own API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from registry.subjects.versions.qualified_names import SubjectName
from tests.promotions.factories import CUSTOMERS, V1, Cast, register

pytestmark = pytest.mark.requirement("CARD-4")
Api = Callable[[str], Client]
URL = "/api/v1/promotions"


def call(client: Client, method: str, url: str, body: object = None) -> tuple[int, Any]:
    answer = client.generic(method, url, json.dumps(body) if body is not None else "", "application/json")
    return answer.status_code, json.loads(answer.content) if answer.content else None


@pytest.fixture
def number(cast: Cast, api: Api) -> int:
    """A request of the steward for two subjects."""
    register(V1, cast["steward"])
    register({**V1, "name": "Customer"}, cast["steward"], subject=CUSTOMERS)
    items = [{"subject": "orders-value", "version": "1"}, {"subject": "customers-value"}]
    status, made = call(api("steward"), "POST", URL, {"source": "dev", "target": "prod", "items": items})
    assert status == 201
    assert [item["version"] for item in made["items"]] == [1, 1]
    return int(made["id"])


def test_the_whole_way(api: Api, number: int) -> None:
    one = f"{URL}/{number}"
    status, shown = call(api("reader"), "GET", one)
    assert (status, shown["state"], shown["needed"]["is_met"]) == (200, "in review", False)
    place = {"text": "why?", "subject": "orders-value", "path": "Order.di"}
    status, refused = call(api("reader"), "POST", f"{one}/threads", place)
    assert status == 422 and "is not a field of orders-value" in str(refused) and "Order.id" in str(refused)
    place["path"] = "Order.id"
    status, thread = call(api("reader"), "POST", f"{one}/threads", place)
    assert status == 201
    assert call(api("steward"), "POST", f"/api/v1/threads/{thread['thread']}/comments", {"text": "so"})[0] == 201
    assert call(api("approver"), "POST", f"{one}/request-changes", {"comment": "a doc"})[1]["state"] == "in review"
    assert call(api("steward"), "POST", f"/api/v1/threads/{thread['thread']}/resolve")[0] == 204
    assert call(api("steward"), "POST", f"/api/v1/threads/{thread['thread']}/reopen")[0] == 204
    status, shown = call(api("steward"), "POST", f"{one}/recheck")
    assert (status, shown["open_threads"], shown["needed"]["changes_by"]) == (200, 1, ["approver"])
    body = {"plan_hash": shown["plan_hash"], "comment": "fine"}
    assert call(api("approver"), "POST", f"{one}/approve", body)[1]["state"] == "approved"
    assert call(api("approver"), "POST", f"{one}/apply", {})[1]["state"] == "applied"
    assert len(call(api("reader"), "GET", one)[1]["releases"]) == 2
    assert call(api("steward"), "POST", f"{one}/withdraw")[0] == 409


@pytest.mark.parametrize("decision", ["approve", "reject", "request-changes"])
def test_nobody_reviews_their_own_through_this_channel(cast: Cast, api: Api, decision: str) -> None:
    register(V1, cast["steward"])
    body = {"source": "dev", "target": "prod", "subject": "orders-value", "version": "1"}
    _, made = call(api("approver"), "POST", URL, body)
    status, said = call(api("approver"), "POST", f"{URL}/{made['id']}/{decision}", {"comment": "x"})
    assert (status, said["error"]) == (403, "NotAllowed")


def test_a_draft_is_nobody_elses(cast: Cast, api: Api) -> None:
    register(V1, cast["steward"])
    body = {"source": "dev", "target": "prod", "subject": "orders-value", "version": "1", "draft": True}
    _, made = call(api("steward"), "POST", URL, body)
    one = f"{URL}/{made['id']}"
    assert call(api("approver"), "GET", one)[0] == 404
    assert call(api("approver"), "GET", URL)[1] == []
    assert [item["id"] for item in call(api("steward"), "GET", f"{URL}?state=draft&mine=true")[1]] == [made["id"]]
    assert call(api("steward"), "POST", f"{one}/submit")[1]["state"] == "in review"
    assert [item["id"] for item in call(api("approver"), "GET", f"{URL}?waiting=true")[1]] == [made["id"]]


def test_lists_are_paged(cast: Cast, api: Api) -> None:
    numbers = []
    for place in range(3):
        register(V1, cast["steward"], subject=SubjectName(".", f"orders-{place}"))
        body = {"source": "dev", "target": "prod", "subject": f"orders-{place}"}
        numbers.append(call(api("steward"), "POST", URL, body)[1]["id"])
    _, first = call(api("reader"), "GET", f"{URL}?limit=2&state=open&target=prod")
    _, second = call(api("reader"), "GET", f"{URL}?limit=2&after={first[-1]['id']}")
    assert [item["id"] for item in first + second] == numbers[::-1]
    assert [item["id"] for item in call(api("reader"), "GET", f"{URL}?subject=orders-1")[1]] == [numbers[1]]


@pytest.mark.parametrize(
    "query",
    ["state=lost", "after=x", "after=-1", "after=99999999999999999999", "limit=0", "limit=201", "subject=a%00b"],
)
def test_a_filter_that_cannot_be_is_named(api: Api, query: str) -> None:
    assert call(api("reader"), "GET", f"{URL}?{query}")[0] == 422


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"source": "dev", "target": "prod"},
        {"source": "dev", "target": "prod", "items": []},
        {"source": "dev", "target": "prod", "items": "orders-value"},
        {"source": "dev", "target": "prod", "items": [{"version": "1"}]},
        {"source": "dev", "target": "prod", "items": [{"subject": "a"}] * 201},
        {"source": "dev", "target": "prod", "subject": "a", "version": "x" * 20},
        {"source": "dev", "target": "prod", "subject": "a", "reason": "x" * 10_001},
        {"source": "dev", "target": "prod", "subject": "a", "reason": "a\0b"},
        {"source": "prod", "target": "dev", "subject": "orders-value", "version": "1"},
        ["dev"],
    ],
)
def test_a_body_that_cannot_be_is_refused(cast: Cast, api: Api, body: object) -> None:
    register(V1, cast["steward"])
    assert call(api("steward"), "POST", URL, body)[0] == 422


def test_a_number_that_nothing_has(api: Api, cast: Cast) -> None:
    for path in (URL + "/999999999999999999", URL + "/0"):
        assert call(api("admin"), "GET", path)[0] == 404
        for step in ("approve", "reject", "request-changes", "apply", "submit", "recheck", "withdraw", "unschedule"):
            assert call(api("admin"), "POST", f"{path}/{step}", {"comment": "x"})[0] == 404, step
    assert call(api("admin"), "POST", URL + "/0/schedule", {})[0] == 422
    assert call(api("admin"), "POST", URL + "/0/schedule", {"at": "2027-01-31T22:00:00Z"})[0] == 404
    assert call(api("admin"), "POST", URL + "/0/schedule", {"at": "2027-01-31T22:00:00"})[0] in (400, 422)
    for verb in ("resolve", "reopen"):
        assert call(api("admin"), "POST", f"/api/v1/threads/0/{verb}")[0] == 404
    assert call(api("admin"), "GET", f"{URL}/99999999999999999999999")[0] == 404


def test_proposals_and_drafts(cast: Cast, api: Api) -> None:
    draft = {"registry": "prod", "subject": "orders-value", "schema": '{"type": "rec'}
    status, kept = call(api("steward"), "POST", "/api/v1/drafts", draft)
    assert (status, kept["text"]) == (201, '{"type": "rec')
    one = f"/api/v1/drafts/{kept['id']}"
    assert [item["id"] for item in call(api("steward"), "GET", "/api/v1/drafts")[1]] == [kept["id"]]
    assert call(api("admin"), "GET", one)[0] == call(api("admin"), "DELETE", one)[0] == 404
    body = {"target": "prod", "subject": "orders-value", "schema": "{", "draft_id": kept["id"]}
    assert call(api("steward"), "POST", "/api/v1/proposals", body)[0] == 422
    assert call(api("steward"), "GET", one)[0] == 200, "a proposal that is refused leaves the draft"
    status, made = call(api("steward"), "POST", "/api/v1/proposals", {**body, "schema": json.dumps(V1)})
    assert (status, made["kind"], made["state"]) == (201, "propose", "in review")
    assert call(api("steward"), "GET", one)[0] == 404
    _, kept = call(api("steward"), "POST", "/api/v1/drafts", draft)
    assert call(api("steward"), "DELETE", f"/api/v1/drafts/{kept['id']}")[0] == 204


def test_a_roll_back_is_a_request(cast: Cast, api: Api) -> None:
    register(V1, cast["steward"], registry="staging")
    register({**V1, "doc": "worse"}, cast["steward"], registry="staging")
    body = {"environment": "staging", "subject": "orders-value", "version": "1", "reason": "version 2 is worse"}
    status, made = call(api("steward"), "POST", "/api/v1/roll-backs", body)
    assert (status, made["kind"], made["source"]) == (201, "roll back", "")
    assert call(api("steward"), "POST", "/api/v1/roll-backs", {**body, "reason": ""})[0] == 422
