"""Resolution and the read-modify-write hazard through the product's own API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from registry.access.roles import Actor
from registry.subjects.names import SubjectName
from registry.subjects.services import register_version

Api = Callable[[str], Client]
V1 = [{"name": "name", "type": "string", "default": ""}]
V2 = [*V1, {"name": "age", "type": "int", "default": -1}]


@pytest.fixture
def people(registries: None, system: Actor) -> None:
    for fields in (V1, V2):
        text = json.dumps({"type": "record", "name": "Person", "fields": fields})
        register_version(registry="dev", subject=SubjectName(".", "people"), text=text, by=system)


def ask(api: Api, path: str, **body: Any) -> Any:
    return api("reader").post(
        f"/api/v1/{path}",
        json.dumps({"registry": "dev", "subject": "people", **body}),
        content_type="application/json",
    )


@pytest.mark.requirement("ORA-6", "ORA-7")
def test_what_a_reader_gets(api: Api, people: None) -> None:
    found = ask(api, "resolutions", reader="2", writer="1", datum={"name": "Ada"}).json()
    assert found["value"] == {"name": "Ada", "age": -1}
    assert found["encoded"] == b"\x06Ada".hex()
    assert {field["path"].rpartition(".")[2]: field["outcome"] for field in found["fields"]} == {
        "name": "kept",
        "age": "filled",
    }
    back = ask(api, "resolutions", reader="1", writer="latest").json()
    assert {field["outcome"] for field in back["fields"]} == {"kept", "dropped"}


@pytest.mark.requirement("ORA-8")
def test_a_write_by_the_older_version_resets_the_age(api: Api, people: None) -> None:
    found = ask(
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
    hazards = ask(api, "hazards", versions=["1", "2"]).json()
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
def test_what_cannot_be_used_is_named(
    api: Api, people: None, path: str, body: dict[str, Any], status: int, words: str
) -> None:
    answer = ask(api, path, **body)
    assert answer.status_code == status, answer.content
    assert words in answer.content.decode()
