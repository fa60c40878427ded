"""Spring's dialect and hostile or random requests: each works or is refused in words."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from tests.api.spring.spring_calls import V1, register

HOSTILE_BODIES = (
    b"{",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"subject": "a", "format": "avro", "definition": NaN}',
    b'{"subject": 1' + b"0" * 6000 + b', "format": "avro", "definition": "\\"long\\""}',
    b'{"subject": "a\\ud800", "format": "avro", "definition": "\\"long\\""}',
    b'{"subject": "a", "format": "avro", "definition": "\\"lo\\ud800ng\\""}',
    b'{"subject": "a", "format": "avro", "definition": "\\u0000"}',
    b'{"subject": ["a"], "format": "avro", "definition": "\\"long\\""}',
    b'{"subject": "a", "format": {"a": 1}, "definition": "\\"long\\""}',
    b'{"subject": "a", "format": "avro", "definition": ["\\"long\\""]}',
    json.dumps({"subject": "a", "format": "avro", "definition": '{"type":"array","items":' * 5000}).encode(),
    json.dumps({"subject": "a", "format": "avro", "definition": "x" * 9_000_000}).encode(),
)


@pytest.mark.parametrize(
    "name", ["{}", "100%", "ünï code", "a b", "日本", "a/b", "q?x#y", "..", "a\\b", "schemas", "v1"]
)
def test_names_that_work_everywhere(steward: Client, name: str) -> None:
    where = quote(name, safe="") if name != ".." else "%2E%2E"
    made = register(steward, name, V1)
    assert made.status_code == 201
    assert steward.get(f"/spring/{where}/avro/v1").json() == made.json()
    assert steward.get(f"/spring/schemas/{made.json()['id']}").json()["subject"] == name
    assert steward.get("/subjects").json() == [name]


@pytest.mark.parametrize("name", ["a\x00b", "tab\there", "__GLOBAL", "x" * 1025, "x" * 10_000, "", ":.ctx"])
def test_names_that_are_refused_everywhere(steward: Client, name: str) -> None:
    refused = register(steward, name, V1)
    assert refused.status_code == 400
    assert refused.json()["message"]
    if name:
        assert steward.get(f"/spring/{quote(name, safe='')}/avro/v1").status_code == 400


@pytest.mark.parametrize("body", HOSTILE_BODIES, ids=lambda body: repr(body[:24]))
def test_hostile_bodies_are_refused_in_words(steward: Client, body: bytes) -> None:
    refused = steward.post("/spring/", body, content_type="application/json")
    assert refused.status_code in (400, 413)
    assert refused.json()["message"]
    assert steward.get("/subjects").json() == []


def test_a_refused_schema_says_where(steward: Client) -> None:
    broken = json.dumps({**V1, "fields": [{"name": "id", "type": "lon"}]})
    refused = register(steward, "orders-value", broken).json()
    assert refused["message"] == "Invalid schema"
    assert "lon" in refused["details"]
    assert "avro" in register(steward, "orders-value", V1, schema_format="xml").json()["details"]


@pytest.mark.parametrize("path", ["v" + "9" * 5000, "٣", "v٣", "1_0", "v1_0", "0x1", "v1e3", "%20", "v%20", "-0"])
def test_hostile_versions(steward: Client, path: str) -> None:
    register(steward, "a", V1)
    assert steward.get(f"/spring/a/avro/{quote(path, safe='%')}").status_code in (400, 404)
    assert steward.get(f"/spring/schemas/{quote(path, safe='%')}").status_code in (400, 404)


@pytest.mark.parametrize("name", ["%00", "a%00b", "x" * 5000, "%F0%9F%98%80", ".."])
def test_hostile_registries(steward: Client, name: str) -> None:
    for path in ("user/avro", "user/avro/v1", "schemas/1"):
        missing = steward.get(f"/registries/{name}/spring/{path}")
        assert missing.status_code in (400, 404)
        assert missing.json()["message"]


@pytest.mark.parametrize("word", ["%00", "x" * 5000, "AVRO", "avro;v=1"])
def test_hostile_formats(steward: Client, word: str) -> None:
    register(steward, "user", V1)
    assert steward.get(f"/spring/user/{word}").status_code == 404
    assert steward.get(f"/spring/user/{word}/v1").status_code == 404


def test_what_is_not_there_is_said_in_this_dialects_words(steward: Client) -> None:
    missing = steward.get("/spring/a/b/c/d?x=1")
    assert missing.status_code == 404
    assert missing.json().keys() == {"timestamp", "status", "error", "message", "path"}
    assert steward.get("/springs").json()["error_code"] == 404, "another address was taken for Spring's"


SEGMENTS = (
    *("user", "avro", "v1", "1", "schemas", "", "%00", "..", ".", "%2F", "v", "v-1", "v999999999999", "{}", "%7B%7D"),
    *("%F0%9F%98%80", "spring", ";a=b", "a" * 300, "%C3%A9", "latest", "protobuf", ":.x:y", "%3A.x%3A", "__GLOBAL"),
)
VALUES: tuple[Any, ...] = (
    *("user", None, 1, 1.5, True, [], {}, "", "\x00", "\ud800", "x" * 2000, "9" * 5000, ":.c:s", "avro", "thrift"),
    *('"long"', '"string"', '["null","int"]', '{"type":"record"}', '{"type":"fixed","name":"F","size":-1}'),
    '{"type":"record","name":"X","fields":[{"name":"a","type":"int"}]}',
    '{"type":"enum","name":"E","symbols":["A"]}',
)
METHODS = ("GET", "GET", "GET", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH", "TRACE", "LOCK")
KINDS = ("application/json",) * 9 + ("", "x", "text/plain")
ACCEPTS = ("*/*", "application/json", "", "text/html", "\xff", ",;,")
MEMBERS = ("subject", "format", "definition", "id", "version")


def send_one(client: Client, rng: random.Random) -> tuple[Any, Any]:
    """A random request: what was sent, and the answer."""
    if rng.random() < 0.6:
        body = {name: rng.choice(VALUES) for name in MEMBERS if rng.random() < 0.9}
        body |= {"format": "avro"} if rng.random() < 0.7 else {}
        path = rng.choice(("/spring", "/spring/", "/registries/staging/spring"))
        return body, client.post(path, json.dumps(body), content_type=rng.choice(KINDS))
    path = "/spring/" + "/".join(rng.choice(SEGMENTS) for _ in range(rng.randint(0, 4)))
    method = rng.choice(METHODS)
    return (method, path), client.generic(method, path, headers={"accept": rng.choice(ACCEPTS)})


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "deletion"), [(1, False), (2, True)])
def test_no_request_is_an_error_of_ours(seed: int, deletion: bool, api: Callable[[str], Client], settings: Any) -> None:
    settings.SPRING_ALLOW_DELETION = deletion
    client, rng = api("admin"), random.Random(seed)
    statuses = set()
    for _ in range(300):
        sent, answer = send_one(client, rng)
        assert answer.status_code < 500, (sent, answer.content)
        if answer.status_code >= 400 and answer.content:
            assert answer.json()["message"], sent
        statuses.add(answer.status_code)
    assert {200, 201, 400, 404, 405, 415} <= statuses
