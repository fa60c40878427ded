"""The product's own API, its description, and what operators ask."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.core.checks import run_checks
from django.test import Client

from dashboard.components.badges import Health
from dashboard.home import panels
from dashboard.runtime.data_folder import write_missing
from registry.access.models import User
from registry.access.permission_filters import Extent, ExtentPart
from registry.access.roles import Actor
from registry.access.services import grant, issue_token
from registry.api.outage import LAST_REFUSAL
from registry.drift.models import Cluster, Finding, Scan, Source
from registry.errors import InvalidInput
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import RawClient, signed_in
from tests.drift.scans import judged, make_source, scan
from tests.services_plugin import as_owner

Api = Callable[[str], Client]
V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


def post(client: Client, path: str, body: object) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json")


@pytest.fixture
def source(registries: None) -> Source:
    return make_source(name="orders")


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
    unread = post(api("approver"), f"/api/v1/promotions/{number}/approve", {"comment": "fine"})
    assert (unread.status_code, unread.json()["error"]) == (428, "PlanHashRequired")
    assert f"GET /api/v1/promotions/{number}" in unread.json()["message"]
    assert unread.json()["details"]["field"] == "plan_hash"
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
        ({"kind": "topic", "name": "x"}, 422, "It can be: debezium, "),
        ({"kind": "kafka", "name": "orders"}, 422, "needs a cluster"),
        ({"kind": "kafka", "name": "orders", "cluster": "nowhere"}, 404, "nowhere"),
        ({"kind": "kafka", "name": "orders", "cluster": "local", "include": ["a b"]}, 422, "a b"),
        ({"kind": "kafka", "name": "orders", "cluster": "local", "include": ["orders"]}, 503, "127.0.0.1:1"),
        ({"kind": "kafka", "name": "orders", "cluster": "elsewhere"}, 422, "loopback"),
        ({"kind": "state_store", "name": "/etc"}, 422, "outside the allowed folders"),
        ({"kind": "state_store", "name": "x", "every_seconds": 1}, 422, "at least 10 seconds"),
        ({"kind": "kafka", "name": "orders", "registry": "none"}, 404, "none"),
    ],
)
def test_a_source_that_cannot_be_is_named(
    api: Api, registries: None, settings: Any, body: dict[str, Any], status: int, words: str
) -> None:
    settings.KAFKA_BOOTSTRAP = "127.0.0.1:1"
    for name, bootstrap in (("local", "127.0.0.1:1"), ("elsewhere", "127.0.0.1:2")):
        Cluster.objects.create(name=name, bootstrap=bootstrap, created_by="tests")
    answer = post(api("steward"), "/api/v1/sources", body)
    assert answer.status_code == status
    assert words in answer.json()["message"]
    assert not Source.objects.exists()


@pytest.mark.parametrize("path", ["clusters", "sources", "findings", "mutes", "promotions"])
def test_nothing_without_a_token(api: Api, registries: None, path: str) -> None:
    assert RawClient().get(f"/api/v1/{path}").status_code == 401
    assert api("stranger").get(f"/api/v1/{path}").status_code == 403
    assert api("reader").get(f"/api/v1/{path}").json() == []


def test_a_scan_is_cancelled_once(api: Api, source: Source) -> None:
    number = post(api("steward"), f"/api/v1/sources/{source.pk}/scans", {}).json()["scan"]
    assert post(api("reader"), f"/api/v1/scans/{number}/cancel", {}).status_code == 403
    assert post(api("steward"), f"/api/v1/scans/{number}/cancel", {}).json()["state"] == "cancelled"
    assert post(api("steward"), f"/api/v1/scans/{number}/cancel", {}).status_code == 409
    assert api("reader").get(f"/api/v1/scans/{number}").json()["verdict"] == "cancelled"
    assert api("reader").get("/api/v1/scans/999").status_code == 404


def test_a_source_is_shown_changed_and_removed(api: Api, source: Source, system: Actor) -> None:
    address = f"/api/v1/sources/{source.pk}"

    def patch(name: str, body: object) -> Any:
        return api(name).patch(address, json.dumps(body), content_type="application/json")

    scan(source, system, judged())
    shown = api("reader").get(address).json()
    assert (shown["cluster"], shown["topics"], shown["open_findings"]) == ("local", 1, 1)
    assert [(topic["name"], topic["positions"]) for topic in shown["topic_list"]] == [("orders", {"0": 5})]
    assert patch("reader", {"mode": "full"}).status_code == 403
    assert patch("steward", {"mode": "full", "exclude": ["test-*"]}).json()["mode"] == "full"
    assert patch("steward", {"mode": "sideways"}).status_code == 422
    assert patch("steward", {"name": "other"}).status_code == 400
    assert api("steward").delete("/api/v1/clusters/local").status_code == 409
    assert api("steward").delete(address).status_code == 204
    assert api("reader").get(address).status_code == 404
    assert api("steward").delete("/api/v1/clusters/local").status_code == 204
    assert api("reader").get("/api/v1/clusters/local").status_code == 404


def test_findings_are_filtered_and_decided_on(api: Api, source: Source, system: Actor) -> None:
    scan(source, system, judged("a"), judged("b", severity="risk", subject="customers-value"))

    def found(query: str) -> list[str]:
        return [finding["sentence"] for finding in api("reader").get(f"/api/v1/findings?{query}").json()]

    assert found("") == ["finding a", "finding b"]
    assert found("severity=risk") == found("subject=customers-value") == ["finding b"]
    assert found("registry=prod") == found("state=resolved") == found("topic=other") == []
    for wrong in ("severity=bad", "colour=red", "limit=0", "fail_on=all", "fail_on=break&state=resolved"):
        assert api("reader").get(f"/api/v1/findings?{wrong}").status_code == 422, wrong
    number = Finding.objects.get(sentence="finding a").pk
    address = f"/api/v1/findings/{number}"
    assert post(api("reader"), f"{address}/acknowledge", {"reason": "x"}).status_code == 403
    assert post(api("approver"), f"{address}/acknowledge", {}).status_code == 422
    until = "2999-01-01T00:00:00Z"
    done = post(api("approver"), f"{address}/acknowledge", {"reason": "known", "until": until}).json()
    assert (done["state"], done["acknowledged_until"]) == ("acknowledged", until)
    assert found("") == ["finding b"]
    assert post(api("approver"), f"{address}/reopen", {}).json()["reopened"] == 1
    assert post(api("approver"), f"{address}/assign", {"to": "approver"}).json()["assigned_to"] == "approver"
    mute = post(api("steward"), "/api/v1/mutes", {"registry": "dev", "rule": "UNKNOWN*", "reason": "x"})
    assert (mute.status_code, mute.json()["hides"]) == (201, 2)
    assert (found(""), len(found("muted=true"))) == ([], 2)
    assert api("steward").delete(f"/api/v1/mutes/{mute.json()['mute']}").status_code == 204
    assert len(found("")) == 2


def test_findings_with_one_cause_are_listed_and_decided_together(api: Api, source: Source, system: Actor) -> None:
    group = "Changes of table public.orders"
    scan(source, system, *(judged(name, cause_group=group) for name in "abc"), judged("d"))
    a, b, c, d = (Finding.objects.get(sentence=f"finding {name}").pk for name in "abcd")
    listed = api("reader").get(f"/api/v1/findings?group_of={b}").json()
    assert {finding["id"]: finding["cause_group"] for finding in listed} == {a: group, b: group, c: group}
    assert [finding["id"] for finding in api("reader").get(f"/api/v1/findings?group_of={d}").json()] == [d]
    together = {"reason": "one release", "group": True}
    assert post(api("reader"), f"/api/v1/findings/{a}/acknowledge", together).status_code == 403
    assert not Finding.objects.exclude(state="open").exists()
    assert post(api("approver"), f"/api/v1/findings/{a}/acknowledge", together).status_code == 200
    assert set(Finding.objects.filter(state="acknowledged").values_list("pk", flat=True)) == {a, b, c}
    assert post(api("approver"), f"/api/v1/findings/{c}/reopen", {"group": True}).status_code == 200
    assert set(Finding.objects.filter(state="open").values_list("pk", flat=True)) == {a, b, c, d}
    assert post(api("approver"), f"/api/v1/findings/{c}/reopen", {"group": True}).status_code == 409
    Finding.objects.filter(pk=b).update(subject_name="payments-value")
    User.objects.create(username="narrow")
    grant(username="narrow", role="reader", by=system)
    grant(username="narrow", role="approver", subject_pattern="orders-*", by=system)
    narrow = RawClient(headers={"authorization": f"Bearer {issue_token(username='narrow', name='tests', by=system)}"})
    assert post(narrow, f"/api/v1/findings/{a}/acknowledge", together).status_code == 200
    assert set(Finding.objects.filter(state="open").values_list("pk", flat=True)) == {b, d}, "what may not be decided"


def test_a_rollout_asks_whether_drift_is_open(api: Api, source: Source, system: Actor) -> None:
    gate = api("reader").get("/api/v1/findings?fail_on=break&registry=dev")
    assert (gate.status_code, gate.json()["passed"], gate.json()["unscanned"]) == (
        409,
        False,
        ["orders (never scanned)"],
    )
    scan(source, system, judged(severity="risk"))
    assert api("reader").get("/api/v1/findings?fail_on=break&registry=dev").status_code == 200
    held = api("reader").get("/api/v1/findings?fail_on=risk&registry=dev")
    assert (held.status_code, [finding["sentence"] for finding in held.json()["findings"]]) == (409, ["finding a"])
    assert api("stranger").get("/api/v1/findings?fail_on=risk&registry=dev").status_code == 403
    for missing in ("registry=none", "registry=dev&subject=orders-valu", "source_id=999"):
        assert api("reader").get(f"/api/v1/findings?fail_on=risk&{missing}").status_code == 404, missing
    bare = api("reader").get("/api/v1/findings?fail_on=break&registry=prod")
    assert (bare.status_code, bare.json()["passed"], bare.json()["unscanned"]) == (409, False, ["prod (no source)"])


def test_a_session_cookie_opens_no_api(registries: None, person: Callable[[str], Actor]) -> None:

    person("admin")
    browser = signed_in("admin")
    assert browser.get("/api/v1/sources").status_code == 401
    assert browser.get("/subjects").status_code == 401


def test_every_call_of_the_description_says_how_to_sign_in(db: None) -> None:
    document = RawClient().get("/api/v1/schema", headers={"accept": "application/json"}).json()
    schemes = document["components"]["securitySchemes"]
    assert {name: (item["type"], item["scheme"]) for name, item in schemes.items()} == {
        "bearerToken": ("http", "bearer"),
        "basicToken": ("http", "basic"),
    }
    operations = {
        f"{method.upper()} {path}": operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in ("get", "post", "put", "patch", "delete")
    }
    assert len(operations) > 100
    either = [{"bearerToken": []}, {"basicToken": []}]
    assert {name: operation.get("security") for name, operation in operations.items()} == dict.fromkeys(
        operations, either
    )


@pytest.mark.parametrize("path", ["/api/v1/compatibility-reports", "/api/v1/drafts", "/api/v1/proposals"])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("[" * 300_000, 422),
        ('{"a":' + "[" * 50_000 + "]" * 50_000 + "}", 400),
        ("[" + "{}," * 2_000_000 + "{}]", 422),
        ('"' + "x" * (8 * 1024 * 1024) + '"', 413),
        ("{", 400),
    ],
    ids=["open", "deep", "many", "long", "broken"],
)
def test_bodies_out_of_bounds_are_refused_in_the_form_of_this_api(
    api: Callable[[str], Client], path: str, body: str, status: int
) -> None:
    began = time.process_time()
    answer = api("admin").post(path, body, content_type="application/json")
    assert answer.status_code == status, answer.content[:200]
    assert set(answer.json()) == {"error", "message", "details"}
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        ("drafts", {"txet": "{}"}, "There is no property 'txet'; the known ones are registry, subject, schema,"),
        (
            "sources",
            {"kind": "topic", "connector": {"connect_url": "x", "nmae": 1}},
            "There is no property 'connector.nmae';",
        ),
        (
            "promotions",
            {"items": [{"subject": "a"}, {"subjct": "b"}]},
            "There is no property 'items[1].subjct'; the known ones are",
        ),
        ("same-person", {"\ud800": 1}, "There is no property"),
    ],
)
def test_an_unknown_property_is_refused_with_the_known_ones(api: Api, path: str, body: Any, sentence: str) -> None:
    response = api("admin").post(f"/api/v1/{path}", json.dumps(body), content_type="application/json")
    assert (response.status_code, response.json()["error"]) == (400, "BadRequest")
    assert response.json()["message"].startswith(sentence)


def test_every_body_of_the_description_has_no_other_properties(db: None) -> None:
    document = RawClient().get("/api/v1/schema", headers={"accept": "application/json"}).json()
    schemas = document["components"]["schemas"]
    for path, item in document["paths"].items():
        for method, operation in item.items():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                schema = content["schema"]
                named = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
                assert named.get("additionalProperties") is False or schema.get("format") == "binary", (method, path)
    assert schemas["ReferenceRequest"]["additionalProperties"] is False, "a body inside a body"


def test_the_description_names_every_call(db: None) -> None:
    described = RawClient().get("/api/v1/schema", headers={"accept": "application/json"})
    assert described.status_code == 200
    assert {"/api/v1/clusters", "/api/v1/sources", "/api/v1/findings", "/api/v1/promotions"} <= set(
        described.json()["paths"]
    )


@pytest.fixture
def nothing_failed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process remembers a refused write for a while, and Valkey a demo that failed: other tests leave both."""
    monkeypatch.setattr(LAST_REFUSAL, "reason", "")
    cache.clear()


@pytest.mark.usefixtures("nothing_failed_before")
def test_health_readiness_and_figures(db: None, registries: None) -> None:
    assert RawClient().get("/healthz").json() == {"status": "alive"}
    assert RawClient().get("/readyz").json() == {"database": "ok", "valkey": "ok"}
    assert b'schemadesk_subjects{registry="dev"} 0.0' in RawClient().get("/metrics").content
    assert RawClient(REMOTE_ADDR="10.0.0.1").get("/metrics").status_code == 401
    assert RawClient(headers={"x-forwarded-for": "127.0.0.1"}).get("/metrics").status_code == 401


@pytest.mark.usefixtures("nothing_failed_before")
def test_a_part_that_up_goes_on_without_is_degraded_but_ready(db: None, settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR, settings.UNDER_UP = tmp_path, True
    write_missing(tmp_path, {"spark": "ended with status 1"})
    answer = RawClient().get("/readyz")
    assert (answer.status_code, answer.json()["spark"]) == (200, "degraded: doesn't run (ended with status 1)")
    spark = next(each for each in panels.health((), (), (), (), Extent((ExtentPart(),))) if each.label == "Spark")
    assert spark.health is Health.DEGRADED
    assert spark.sentence == "Not running: ended with status 1. No scans until it starts."
    write_missing(tmp_path, {})
    assert RawClient().get("/readyz").json() == {"database": "ok", "valkey": "ok"}


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


def test_what_neither_json_nor_the_database_can_hold_is_refused(
    api: Api, person: Callable[[str], Actor], registries: None
) -> None:
    """Half of a surrogate pair, which is quoted in the refusal, and a NUL, which is quoted in the audit."""
    register_version(registry="dev", subject=SubjectName(".", "orders-value"), text='"string"', by=person("steward"))
    admin = api("admin")
    body = '{"action": "\\ud800", "values": {}, "reason": "x"}'
    answer = admin.post("/api/v1/environments/dev/changes", body, content_type="application/json")
    assert answer.status_code == 422
    assert "\\ud800" in answer.content.decode("ascii")
    gone = admin.delete("/api/v1/registries/dev/subjects/orders-value/clients/%00")
    assert (gone.status_code, gone.json()["error"]) == (404, "ClientNotFound")


def test_a_private_error_has_the_name_of_a_public_one(api: Api, registries: None) -> None:
    answer = api("admin").post("/api/v1/state-checks", {"variables": []}, content_type="application/json")
    assert 400 <= answer.status_code < 500
    assert not answer.json()["error"].startswith("_")

    class _MisplacedError(InvalidInput):
        pass

    assert _MisplacedError("x").public_name == "InvalidInput"
