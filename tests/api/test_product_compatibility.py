"""Compatibility reports, settings, resolution and the read-modify-write hazard through the product's own API."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.roles import Actor
from registry.formats.base import Reference
from registry.subjects.models import Client as ClientRow
from registry.subjects.services import delete_version, register_version, set_config
from registry.subjects.usage.clients import LAPSES, declare_client
from registry.subjects.versions.qualified_names import SubjectName

Api = Callable[[str], Client]
Put = Callable[..., None]
DOCUMENTED = jsonschema_rs.validator_for(
    json.loads((Path(__file__).parents[2] / "docs/reference/compatibility-report.schema.json").read_text())
)


def record(name: str, *fields: dict[str, object]) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": list(fields)}


ID = {"name": "id", "type": "long"}
MONEY = record("Money", {"name": "amount", "type": "long"})


@pytest.fixture
def put(registries: None, system: Actor) -> Put:
    def register(subject: str, schema: object, **more: Any) -> None:
        register_version(registry="dev", subject=SubjectName(".", subject), text=json.dumps(schema), by=system, **more)

    return register


def ask(api: Api, schema: object, *, subject: str = "orders", accept: str = "application/json", **more: object) -> Any:
    body = {"registry": "dev", "subject": subject, "schema": json.dumps(schema), **more}
    return api("reader").post(
        "/api/v1/compatibility-reports", json.dumps(body), content_type="application/json", headers={"accept": accept}
    )


@pytest.mark.requirement("CARD-2", "CARD-4", "GOO-2")
def test_the_report_says_all_of_it_and_registers_nothing(api: Api, put: Put) -> None:
    put("orders", record("Order", ID))
    put("orders", record("Order", ID, {"name": "note", "type": "string", "default": ""}))
    answer = ask(api, record("Order", {"name": "id", "type": "string"}, {"name": "key", "type": "string"}))
    assert answer.status_code == 200
    report = answer.json()
    DOCUMENTED.validate(report)
    assert (report["is_compatible"], report["order"]) == (False, "needs a new topic")
    assert [row["version"] for row in report["matrix"]] == [2, 1]
    assert all(item["witness"]["found"] for item in report["items"] if item["severity"] == "break")
    assert report["patch"]["passes"]
    assert ask(api, json.loads(report["patch"]["text"])).json()["is_compatible"]
    listed = api("reader").get("/registries/dev/subjects/orders/versions")
    assert listed.json() == [1, 2]


@pytest.mark.parametrize(("accept", "begins"), [("text/markdown", "# Compatibility report"), ("text/plain", "comp")])
def test_the_report_as_a_text(api: Api, put: Put, accept: str, begins: str) -> None:
    put("orders", record("Order", ID))
    answer = ask(api, record("Order", ID), accept=accept)
    assert answer.headers["content-type"] == f"{accept}; charset=utf-8"
    assert answer.content.decode().startswith(begins)


@pytest.mark.requirement("GOO-5")
def test_subjects_that_refer_to_it_and_would_break(api: Api, put: Put) -> None:
    put("money", MONEY)
    narrowed, queries = record("Money", {"name": "amount", "type": "int"}), []
    for number in range(3):
        payment = record("Payment", {"name": "sum", "type": "Money"})
        put(f"payment-{number}", payment, references=[Reference("Money", "money", 1)])
        with CaptureQueriesContext(connection) as captured:
            found = ask(api, narrowed, subject="money").json()["dependants"]
        queries.append(len(captured))
    assert queries[1] == queries[2]
    assert [(item["subject"], item["answer"]) for item in found] == [(f"payment-{n}", "no") for n in range(3)]
    assert "incompatible under BACKWARD" in found[0]["message"]
    renamed = ask(api, record("Cash", ID), subject="money").json()["dependants"]
    assert "can't be parsed" in renamed[0]["message"]
    same = ask(api, record("Money", {"name": "amount", "type": "double"}), subject="money").json()["dependants"]
    assert {item["answer"] for item in same} == {"yes"}


@pytest.mark.requirement("CARD-4")
def test_the_declared_clients_that_would_not_go_on(api: Api, put: Put, system: Actor) -> None:
    """The worst first; by what each does with the version that it has, one that was deleted softly too."""
    text = {"name": "note", "type": "string"}
    put("orders", record("Order", ID))
    put("orders", record("Order", ID, text | {"default": ""}))
    clients: dict[str, dict[str, Any]] = {
        "archive": {"reads": False, "writes": True, "version": 1},
        "billing": {"version": 2, "contact": "#billing"},
        "newest": {},
        "quiet": {"version": 2},
        "sender": {"reads": True, "writes": True, "version": 2},
    }
    queries = []
    for name, more in clients.items():
        declare_client(registry="dev", subject=SubjectName(".", "orders"), name=name, by=system, **more)
        with CaptureQueriesContext(connection) as captured:
            ask(api, record("Order", {"name": "id", "type": "string"}))
        queries.append(len(captured))
    assert queries[1] == queries[-1]
    delete_version(registry="dev", subject=SubjectName(".", "orders"), version=1, by=system)
    ClientRow.objects.filter(name="quiet").update(seen_at=timezone.now() - LAPSES - timedelta(days=1))

    def answers(*fields: dict[str, object]) -> dict[str, str]:
        report = ask(api, record("Order", *fields)).json()
        DOCUMENTED.validate(report)
        return {item["name"]: item["answer"] for item in report["clients"]}

    assert answers({"name": "id", "type": "string"}) == {
        "archive": "no", "billing": "no", "newest": "no", "sender": "no", "quiet": "unknown"
    }  # fmt: skip
    assert answers(ID, text) == {
        "archive": "no", "quiet": "unknown", "billing": "yes", "newest": "yes", "sender": "yes"
    }  # fmt: skip
    said = ask(api, record("Order", {"name": "id", "type": "string"}), accept="text/plain").content.decode()
    assert "client: billing (reads version 2, #billing) can't read data of this version: " in said
    assert "; it writes data that this version can't read: " in said
    assert "clients" not in ask(api, record("Other", ID), subject="empty", accept="text/plain").content.decode()


@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        ({"profile": "hopeful"}, 422, "profile"),
        ({"schemaType": "XML"}, 422, "XML"),
        ({"references": [{"name": "x"}]}, 422, "references"),
        ({"subject": ""}, 422, "subject"),
        ({"schema": "{"}, 422, "line 1"),
        ({"registry": "nowhere"}, 404, "nowhere"),
    ],
)
def test_what_cannot_be_used_is_named(api: Api, put: Put, more: dict[str, Any], status: int, words: str) -> None:
    body = {"registry": "dev", "subject": "orders", "schema": json.dumps(record("Order", ID))} | more
    answer = api("reader").post("/api/v1/compatibility-reports", json.dumps(body), content_type="application/json")
    assert answer.status_code == status
    assert words in answer.content.decode()


@pytest.mark.requirement("GOO-3")
def test_the_profile_decides_whose_verdict_counts(api: Api, put: Put) -> None:
    def amount(scale: int) -> dict[str, object]:
        type_ = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": scale}
        return record("Order", {"name": "amount", "type": type_})

    put("orders", amount(2))
    assert ask(api, amount(4)).json()["is_compatible"]
    change = api("steward").put(
        "/api/v1/config",
        json.dumps({"registry": "dev", "subject": "orders", "profile": "semantic"}),
        content_type="application/json",
    )
    assert change.json()["profile"] == "semantic"
    assert api("reader").get("/api/v1/config?registry=dev&subject=orders").json() == {
        "level": "BACKWARD",
        "normalize": False,
        "origin": "server default",
        "profile": "semantic",
        "policy": "none",
    }
    report = ask(api, amount(4)).json()
    assert (report["is_compatible"], report["profile"]) == (False, "semantic")
    refused = api("steward").post(
        "/registries/dev/subjects/orders/versions",
        json.dumps({"schema": json.dumps(amount(4))}),
        content_type="application/json",
    )
    assert refused.status_code == 409
    assert api("steward").delete("/api/v1/config?registry=dev&subject=orders").json()["profile"] == "semantic"
    assert ask(api, amount(4)).json()["is_compatible"]


@pytest.mark.requirement("ORA-3")
def test_a_policy_holds_beside_the_level(api: Api, put: Put, system: Actor) -> None:
    put("orders", record("Order", {"name": "id", "type": "int", "default": 0}))
    set_config(registry="dev", subject=SubjectName(".", "orders"), by=system, policy="oracle_nosql")
    widened = {"schema": json.dumps(record("Order", {"name": "id", "type": "long", "default": 0}))}
    refused = api("steward").post(
        "/registries/dev/subjects/orders/versions", json.dumps(widened), content_type="application/json"
    )
    assert (refused.status_code, refused.json()["error_code"]) == (409, 409)
    assert "policy oracle_nosql" in refused.json()["message"]


def test_settings_that_do_not_exist(api: Api, registries: None) -> None:
    for body in ({"profile": "hopeful"}, {"policy": "mine"}, {"level": "SIDEWAYS"}):
        answer = api("steward").put(
            "/api/v1/config", json.dumps({"registry": "dev", **body}), content_type="application/json"
        )
        assert answer.status_code == 422
        assert "use one of" in answer.content.decode() or "Valid values" in answer.content.decode()
    forbidden = api("reader").put(
        "/api/v1/config", json.dumps({"registry": "dev", "profile": "semantic"}), content_type="application/json"
    )
    assert forbidden.status_code == 403


def test_what_no_value_shows_of_protobuf_is_a_warning_by_the_data_too(
    api: Api, registries: None, system: Actor
) -> None:
    old, new = (
        f'syntax = "proto3"; package shop; message M {{ {inside} }}'
        for inside in ("oneof o { string b = 2; int32 c = 3; }", "oneof o { string b = 2; }")
    )
    register_version(registry="dev", subject=SubjectName(".", "orders"), text=old, schema_type="PROTOBUF", by=system)
    body = {"registry": "dev", "subject": "orders", "schema": new, "schemaType": "PROTOBUF", "profile": "semantic"}
    answer = api("reader").post("/api/v1/compatibility-reports", json.dumps(body), content_type="application/json")
    report = answer.json()
    DOCUMENTED.validate(report)
    assert report["is_compatible"]
    assert [(item["rule"], item["severity"]) for item in report["items"]] == [("ONEOF_FIELD_REMOVED", "warning")]


V1 = [{"name": "name", "type": "string", "default": ""}]
V2 = [*V1, {"name": "age", "type": "int", "default": -1}]


@pytest.fixture
def people(registries: None, system: Actor) -> None:
    for fields in (V1, V2):
        text = json.dumps({"type": "record", "name": "Person", "fields": fields})
        register_version(registry="dev", subject=SubjectName(".", "people"), text=text, by=system)


def ask_resolution(api: Api, path: str, **body: Any) -> Any:
    return api("reader").post(
        f"/api/v1/{path}",
        json.dumps({"registry": "dev", "subject": "people", **body}),
        content_type="application/json",
    )


@pytest.mark.requirement("ORA-6", "ORA-7")
def test_what_a_reader_gets(api: Api, people: None) -> None:
    found = ask_resolution(api, "resolutions", reader="2", writer="1", datum={"name": "Ada"}).json()
    assert found["value"] == {"name": "Ada", "age": -1}
    assert found["encoded"] == b"\x06Ada".hex()
    assert {field["path"].rpartition(".")[2]: field["outcome"] for field in found["fields"]} == {
        "name": "kept",
        "age": "filled",
    }
    back = ask_resolution(api, "resolutions", reader="1", writer="latest").json()
    assert {field["outcome"] for field in back["fields"]} == {"kept", "dropped"}


@pytest.mark.requirement("ORA-8")
def test_a_write_by_the_older_version_resets_the_age(api: Api, people: None) -> None:
    found = ask_resolution(
        api,
        "simulations",
        written_by="2",
        modified_by="1",
        datum={"name": "Ada", "age": 36},
        change={"pointer": "/name", "value": "Ada L."},
    ).json()
    assert found["steps"][-1]["value"] == {"name": "Ada L.", "age": -1}
    [reset] = found["resets"]
    assert (reset["before"], reset["after"], reset["is_default"]) == (36, -1, True)
    hazards = ask_resolution(api, "hazards", versions=["1", "2"]).json()
    assert [(item["known_in"], item["lost_in"]) for item in hazards["resets"]] == [(2, 1)]
    assert {remedy["id"] for remedy in hazards["remedies"]} == {"UPGRADE_ORDER", "FREEZE_WRITERS", "FIELD_OWNERSHIP"}


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("resolutions", {"reader": "1", "writer": "1", "datum": {"name": 5}}, 422, "name"),
        ("resolutions", {"reader": "9", "writer": "1"}, 404, "9"),
        ("resolutions", {"reader": "x", "writer": "1"}, 422, "x"),
        ("resolutions", {"reader": "1"}, 422, "writer"),
        ("simulations", {"written_by": "1", "modified_by": "2", "change": {"pointer": "/x", "value": 1}}, 422, "/x"),
        ("hazards", {"versions": ["1"]}, 422, "2 to 10"),
        ("hazards", {"versions": ["1"] * 11}, 422, "2 to 10"),
    ],
)
def test_data_that_cannot_be_used_are_named(
    api: Api, people: None, path: str, body: dict[str, Any], status: int, words: str
) -> None:
    answer = ask_resolution(api, path, **body)
    assert answer.status_code == status, answer.content
    assert words in answer.content.decode()
