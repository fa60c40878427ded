"""The product's own API, its description, and what operators ask."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import Client

from registry.access.roles import Actor
from registry.drift.models import Scan, Source
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName
from registry.subjects.services import register_version
from tests.conftest import RawClient
from tests.services_plugin import as_owner

Api = Callable[[str], Client]
V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


def post(client: Client, path: str, body: object) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json")


@pytest.fixture
def source(registries: None) -> Source:
    return Source.objects.create(
        registry=Registry.objects.get(name="dev"),
        kind="kafka_topic",
        name="orders",
        bootstrap="localhost:9",
        created_by="x",
    )


@pytest.mark.requirement("CARD-4")
def test_a_promotion_through_the_api(api: Api, person: Callable[[str], Actor]) -> None:
    register_version(
        registry="dev", subject=SubjectName(".", "orders-value"), text=json.dumps(V1), by=person("steward")
    )
    asked = post(
        api("steward"),
        "/api/v1/promotions",
        {"source": "dev", "target": "prod", "subject": "orders-value", "version": "latest"},
    )
    assert asked.status_code == 201
    number, plan = asked.json()["id"], asked.json()["plan_hash"]
    own = post(api("steward"), f"/api/v1/promotions/{number}/approve", {})
    assert (own.status_code, own.json()["error"]) == (403, "NotAllowed")
    approved = post(api("approver"), f"/api/v1/promotions/{number}/approve", {"plan_hash": plan})
    assert approved.json()["state"] == "approved"
    applied = post(api("approver"), f"/api/v1/promotions/{number}/apply", {})
    assert applied.json()["release"]["version"] == 1
    again = post(api("approver"), f"/api/v1/promotions/{number}/apply", {})
    assert (again.status_code, again.json()["error"]) == (409, "WrongState")


def test_scan_now_is_queued_once(api: Api, source: Source) -> None:
    first = post(api("steward"), f"/api/v1/sources/{source.pk}/scans", {})
    assert first.status_code == 202
    assert post(api("steward"), f"/api/v1/sources/{source.pk}/scans", {}).json() == first.json()
    assert Scan.objects.count() == 1
    listed = api("reader").get(f"/api/v1/sources/{source.pk}/scans").json()
    assert [(scan["id"], scan["verdict"]) for scan in listed] == [(first.json()["scan"], "queued")]
    assert post(api("reader"), f"/api/v1/sources/{source.pk}/scans", {}).status_code == 403
    assert post(api("steward"), "/api/v1/sources/999/scans", {}).status_code == 404


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 422, "kind"),
        ({"kind": "pigeon", "name": "x"}, 422, "pigeon"),
        ({"kind": "kafka_topic", "name": "a b", "bootstrap": "localhost:1"}, 422, "a b"),
        ({"kind": "kafka_topic", "name": "orders", "bootstrap": "127.0.0.1:1"}, 503, "127.0.0.1:1"),
        ({"kind": "state_store", "name": "/etc"}, 422, "outside the folders"),
        ({"kind": "state_store", "name": "x", "every_seconds": 1}, 422, "every 10 seconds"),
        ({"kind": "kafka_topic", "name": "orders", "registry": "none"}, 404, "none"),
    ],
)
def test_a_source_that_cannot_be_is_named(
    api: Api, registries: None, body: dict[str, Any], status: int, words: str
) -> None:
    answer = post(api("steward"), "/api/v1/sources", body)
    assert answer.status_code == status
    assert words in answer.json()["message"]
    assert not Source.objects.exists()


@pytest.mark.parametrize("path", ["sources", "findings", "promotions"])
def test_nothing_without_a_token(api: Api, registries: None, path: str) -> None:
    assert RawClient().get(f"/api/v1/{path}").status_code == 401
    assert api("stranger").get(f"/api/v1/{path}").status_code == 403
    assert api("reader").get(f"/api/v1/{path}").json() == []


def test_a_session_cookie_opens_no_api(registries: None, person: Callable[[str], Actor]) -> None:
    from registry.access.models import User

    person("admin")
    browser = RawClient()
    browser.force_login(User.objects.get(username="admin"))
    assert browser.get("/api/v1/sources").status_code == 401
    assert browser.get("/subjects").status_code == 401


def test_the_description_names_every_call(db: None) -> None:
    described = RawClient().get("/api/v1/schema", headers={"accept": "application/json"})
    assert described.status_code == 200
    assert {"/api/v1/sources", "/api/v1/findings", "/api/v1/promotions"} <= set(described.json()["paths"])


def test_health_readiness_and_figures(db: None, registries: None) -> None:
    assert RawClient().get("/healthz").json() == {"status": "alive"}
    assert RawClient().get("/readyz").json() == {"database": "ok", "valkey": "ok"}
    assert b'schemadesk_subjects{registry="dev"} 0.0' in RawClient().get("/metrics").content
    assert RawClient(REMOTE_ADDR="10.0.0.1").get("/metrics").status_code == 401
    assert RawClient(headers={"x-forwarded-for": "127.0.0.1"}).get("/metrics").status_code == 401


def test_the_root_leads_browsers_to_the_pages_and_programs_to_the_api(api: Api) -> None:
    browser = RawClient().get("/", headers={"accept": "text/html,*/*"})
    assert (browser.status_code, browser["Location"]) == (302, "/ui/")
    assert api("reader").get("/").json() == {}


def test_a_foreign_host_is_refused_everywhere(db: None) -> None:
    for path in ("/", "/subjects", "/ui/", "/api/v1/findings", "/healthz"):
        answer = RawClient(headers={"host": "evil.example"}).get(path)
        assert answer.status_code == 400
        assert b"evil" not in answer.content


def test_the_deployment_check_knows_an_owner_from_an_application(transactional_db: None) -> None:
    def found() -> list[str]:
        return [w.id for w in run_checks(include_deployment_checks=True) if "desk" in str(w.id)]

    assert found() == []
    with as_owner():
        assert found() == ["schemadesk.W001"]
