"""What the registry behind a mirror says itself of a schema: as an answer beside ours, or why there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from registry.access.models import User
from registry.access.roles import Actor
from registry.errors import NotSignedIn
from registry.subjects.names import SubjectName
from registry.subjects.remote_verdict import RemoteVerdict, ask_remote
from registry.subjects.selectors.places import get_registry
from tests.access.fake_server import Call, Told
from tests.conftest import RawClient
from tests.subjects.test_mirrors import Remote, mirror, remote

__all__ = ["mirror", "remote"]
pytestmark = pytest.mark.django_db
ORDERS = SubjectName(".", "orders")
TEXT = json.dumps({"type": "record", "name": "Order", "fields": []})
CHECK = "/compatibility/subjects/orders/versions"


def told(status: int, value: object) -> Told:
    return Told(status, body=json.dumps(value).encode())


def asked(by: Actor) -> RemoteVerdict:
    found = ask_remote(get_registry("theirs"), ORDERS, text=TEXT, schema_type="AVRO", by=by)
    assert found is not None
    return found


@pytest.mark.requirement("CARD-2")
@pytest.mark.parametrize(
    ("answers", "verdict", "reason"),
    [
        ({CHECK: told(200, {"is_compatible": True})}, True, ""),
        ({CHECK: told(200, {"is_compatible": False, "messages": ["why"]})}, False, ""),
        ({f"{CHECK}/latest": told(200, {"is_compatible": False})}, False, ""),
        ({CHECK: told(200, {"is_compatible": "yes"})}, None, "no is_compatible"),
        ({CHECK: told(200, [])}, None, "no is_compatible"),
        ({CHECK: told(422, {"message": "Invalid schema"})}, None, "status 422: Invalid schema"),
        ({CHECK: told(401, "no")}, None, "status 401."),
        ({}, None, "status 404"),
    ],
)
def test_what_the_server_says(
    mirror: int, remote: Remote, system: Actor, answers: dict[str, Told], verdict: bool | None, reason: str
) -> None:
    calls: list[Call] = []

    def answer(call: Call) -> Told:
        calls.append(call)
        return answers.get(call.path.partition("?")[0], told(404, {"error_code": 404, "message": "HTTP 404 Not Found"}))

    remote.instead = answer
    found = asked(system)
    assert (found.is_compatible, found.where) == (verdict, remote.url.removeprefix("http://"))
    assert reason in found.reason
    assert calls[0].method == "POST"
    assert json.loads(calls[0].body) == {"schema": TEXT}
    assert found.to_dict(ours=True)["agrees"] is verdict


def test_a_server_that_may_not_or_can_not_be_asked_is_an_answer(
    mirror: int, remote: Remote, system: Actor, settings: Any
) -> None:
    settings.EGRESS_ALLOW = ()
    refused = asked(system)
    assert refused.is_compatible is None
    assert refused.reason
    assert ask_remote(get_registry("dev"), ORDERS, text=TEXT, schema_type="AVRO", by=system) is None
    with pytest.raises(NotSignedIn):
        ask_remote(get_registry("theirs"), ORDERS, text=TEXT, schema_type="AVRO", by=Actor("nobody", "ui"))


def test_the_page_asks_where_somebody_wants_it_and_the_api_too(
    mirror: int, remote: Remote, person: Callable[[str], Actor], api: Callable[[str], Client]
) -> None:
    calls: list[Call] = []

    def answer(call: Call) -> Told:
        calls.append(call)
        return told(200, {"is_compatible": False, "messages": ["<script>"]})

    remote.instead = answer
    person("reader")
    browser = RawClient()
    browser.force_login(User.objects.get(username="reader"))
    page = "/ui/registries/theirs/subjects/orders/report"
    sent = {"schema": TEXT, "format": "AVRO"}
    before = browser.post(page, sent).content.decode()
    assert "Asking sends the text to" in before
    assert not calls
    after = browser.post(page, {**sent, "ask": "registry"}).content.decode()
    assert "The registry disagrees" in after
    assert "&lt;script&gt;" in after
    body = {"registry": "theirs", "subject": "orders", "schema": TEXT}
    path = "/api/v1/compatibility-reports"
    assert "registry_answer" not in api("reader").post(path, body, content_type="application/json").json()
    found = api("reader").post(path, {**body, "askRegistry": True}, content_type="application/json").json()
    assert found["registry_answer"] == {
        "where": remote.url.removeprefix("http://"),
        "is_compatible": False,
        "agrees": False,
        "messages": ["<script>"],
        "reason": "",
    }
    local = api("reader").post(path, {**body, "registry": "dev", "askRegistry": True}, content_type="application/json")
    assert local.json()["registry_answer"] is None
    assert len(calls) == 2
