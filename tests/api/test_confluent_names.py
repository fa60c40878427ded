"""A name works at every address, or is refused at every address."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
from django.test import Client

CONTENT = "application/vnd.schemaregistry.v1+json"
ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
SCHEMA = json.dumps({"schema": ORDER})
#: every call that names a subject, in an order in which each finds what it asks for; `{}` is the name
CALLS = [
    ("POST", "/subjects/{}/versions", SCHEMA),
    ("POST", "/subjects/{}", SCHEMA),
    ("GET", "/subjects/{}/versions", ""),
    ("GET", "/subjects/{}/versions/latest", ""),
    ("GET", "/subjects/{}/versions/1", ""),
    ("GET", "/subjects/{}/versions/1/schema", ""),
    ("GET", "/subjects/{}/versions/1/referencedby", ""),
    ("GET", "/contexts/./subjects/{}/versions/1", ""),
    ("GET", "/registries/dev/subjects/{}/versions/1", ""),
    ("POST", "/subjects/{}/versions/1/tags", '{"metadata": {"properties": {"a": "b"}}}'),
    ("GET", "/subjects/{}/metadata?key=a&value=b", ""),
    ("POST", "/compatibility/subjects/{}/versions", SCHEMA),
    ("POST", "/compatibility/subjects/{}/versions/1", SCHEMA),
    ("GET", "/schemas/ids/1?subject={}", ""),
    ("GET", "/schemas/ids/1/versions?subject={}", ""),
    ("GET", "/schemas/ids/1/subjects?subject={}", ""),
    ("PUT", "/config/{}", '{"compatibility": "FULL"}'),
    ("GET", "/config/{}", ""),
    ("DELETE", "/config/{}", ""),
    ("PUT", "/mode/{}", '{"mode": "READWRITE"}'),
    ("GET", "/mode/{}", ""),
    ("DELETE", "/mode/{}", ""),
    ("DELETE", "/subjects/{}/versions/1", ""),
    ("DELETE", "/subjects/{}", ""),
    ("DELETE", "/subjects/{}?permanent=true", ""),
]
WORKING = [
    "a", "a/b", "/", "//a", "%", "%2F", "100%25", "{}", "{0}", "a b", " ", "ünï", "日本語", "😀", "a?b#c", "a\\b", ".", "..", "...",
    "a:b", ":a", "::", "*", ":*:", "x" * 1024, "a+b", "a&b=c", "'; DROP TABLE", "\u200b", "\u202e", "latest", "versions",
    "null", "<b>", "$(x)", "a\u0301", "-1",
]  # fmt: skip
REFUSED = [
    "\x00", "a\x00b", "a\tb", "a\nb", "a\r\nb", "\x1f", "\x7f", "\x85", "\x9f", "x" * 1025, "x" * 10_240, "ü" * 1025,
    "__GLOBAL", "__EMPTY", ":.", ":.a", ":.__GLOBAL:a", ":.a:__EMPTY", ":.a:\x07", ":.a\x07:b", f":.{'x' * 300}:a",
]  # fmt: skip


def calls(client: Client, name: str) -> Iterator[tuple[str, int, str]]:
    """Each call with its status and body, made with that name."""
    written = quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")
    for method, template, body in CALLS:
        path = template.replace("{}", written)
        answer = client.generic(method, path, body, content_type=CONTENT)
        yield f"{method} {template}", answer.status_code, answer.content.decode()


@pytest.mark.parametrize("name", WORKING, ids=lambda name: ascii(name[:20]))
def test_names_that_work_everywhere(api: Callable[[str], Client], name: str) -> None:
    for where, status, body in calls(api("admin"), name):
        assert status == 200, f"{where}: {status} {body}"
        if where == "GET /subjects/{}/versions/1":
            assert json.loads(body)["subject"] == name


@pytest.mark.parametrize("name", REFUSED, ids=lambda name: ascii(name[:20]))
def test_names_that_are_refused_everywhere(api: Callable[[str], Client], name: str) -> None:
    client = api("admin")
    for where, status, body in calls(client, name):
        assert status == 422, f"{where}: {status} {body}"
        assert json.loads(body)["error_code"] in (42208, 422), f"{where}: {body}"
        assert len(body) < 2000, f"{where}: the message repeats the name at length"
    assert client.get("/subjects?deleted=true").json() == []


def test_a_subject_without_a_name_is_refused(api: Callable[[str], Client]) -> None:
    """An empty segment leads nowhere, and a context alone is no subject; configs and modes are of contexts too."""
    for name, statuses in (("", {404, 405}), (":.:", {422}), (":.lab:", {422})):
        for where, status, body in calls(api("admin"), name):
            if "/config/" in where or "/mode/" in where or "subject={}" in where:
                continue
            assert status in statuses, f"{where} with {name!r}: {status} {body}"


@pytest.mark.parametrize("name", ["a\x07b", "x" * 1025, "__GLOBAL"])
def test_names_in_bodies_are_held_to_the_same(api: Callable[[str], Client], name: str) -> None:
    client = api("admin")
    references = [{"name": "r", "subject": name, "version": 1}]
    body = json.dumps({"schema": ORDER, "references": references})
    for path in ("/subjects/a/versions", "/subjects/a", "/compatibility/subjects/a/versions"):
        assert client.generic("POST", path, body, content_type=CONTENT).json()["error_code"] == 42208
    body = json.dumps({"alias": name})
    assert client.generic("PUT", "/config/a", body, content_type=CONTENT).json()["error_code"] == 42208


@pytest.mark.parametrize("name", ["a\x07", "x" * 300, "a:b"])
def test_contexts_that_are_refused(api: Callable[[str], Client], name: str) -> None:
    client, written = api("admin"), quote(name, safe="")
    for path in (
        f"/contexts/{written}/subjects",
        f"/contexts/{written}/config",
        f"/subjects?subjectPrefix=:.{written}:",
    ):
        answer = client.get(path)
        if name != "a:b" or "Prefix" not in path:
            assert answer.json()["error_code"] == 42208, path
    assert client.delete(f"/contexts/{written}").json()["error_code"] == 42208
