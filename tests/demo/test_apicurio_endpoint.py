"""The endpoint in front of the registry: what it passes on, and what it refuses."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from dashboard.demo.apicurio_endpoint import BASE, LARGEST, apicurio_endpoint

SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
PLACE = f"{BASE}/groups/default/artifacts?ifExists=RETURN_OR_UPDATE"

Ask = Callable[..., tuple[int, dict[str, Any]]]


def caller(endpoint: str) -> Ask:
    address = urlsplit(endpoint)

    def ask(
        body: bytes = SCHEMA.encode(), path: str = PLACE, method: str = "POST", **headers: str
    ) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            content = response.read()
            kind = response.headers.get_content_type()
            return response.status, json.loads(content) if kind == "application/json" else {}
        finally:
            connection.close()

    return ask


@pytest.fixture
def ask(live_server: Any, registries: None) -> Iterator[Ask]:
    with apicurio_endpoint(live_server.url) as endpoint:
        yield caller(endpoint)


def test_a_schema_is_registered_with_the_callers_own_rights(ask: Ask, token: Callable[[str], str]) -> None:
    steward, reader = f"Bearer {token('steward')}", f"Bearer {token('reader')}"
    status, content = ask(X_Registry_ArtifactId="orders-value", Authorization=steward)
    assert status == 200
    assert (content["id"], content["type"]) == ("orders-value", "AVRO")
    assert content["contentId"] == content["globalId"] > 0
    again = ask(X_Registry_ArtifactId="orders-value", Authorization=steward)
    assert again == (200, content)
    assert ask(b'"long"', X_Registry_ArtifactId="orders-value", Authorization=reader)[0] == 403
    assert ask(b'"long"', X_Registry_ArtifactId="orders-value")[0] == 401


def test_a_refusal_keeps_its_status_and_its_reason(ask: Ask, token: Callable[[str], str]) -> None:
    steward = f"Bearer {token('steward')}"
    ask(X_Registry_ArtifactId="orders-value", Authorization=steward)
    other = SCHEMA.replace('"int"', '"string"').encode()
    status, content = ask(other, X_Registry_ArtifactId="orders-value", Authorization=steward)
    assert status == content["error_code"] == 409
    assert content["message"].startswith("orders-value: ")
    assert "incompatible" in content["message"]
    status, content = ask(b"{", X_Registry_ArtifactId="orders-value", Authorization=steward)
    assert status == 422


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ({"path": f"{BASE}/groups/default/artifacts/orders"}, 404),
        ({"path": "/subjects/orders-value/versions"}, 404),
        ({"path": f"{BASE}/groups/a/b/artifacts"}, 404),
        ({"X_Registry_ArtifactId": ""}, 404),
        ({"body": b"\xff"}, 400),
        ({"Content_Length": str(LARGEST + 1)}, 413),
        ({"Content_Length": "-1"}, 413),
        ({"Content_Length": "x"}, 413),
        ({"method": "GET"}, 501),
        ({"method": "DELETE"}, 501),
    ],
)
def test_nothing_else_is_answered(ask: Ask, arguments: dict[str, Any], status: int) -> None:
    assert ask(**{"X_Registry_ArtifactId": "orders-value", **arguments})[0] == status


def test_a_name_cannot_leave_its_place_in_the_path(ask: Ask, token: Callable[[str], str]) -> None:
    status, content = ask(X_Registry_ArtifactId="x/../../config", Authorization=f"Bearer {token('steward')}")
    assert (status, content.get("id")) in [(200, "x/../../config")] or status >= 400


def test_a_registry_that_does_not_answer_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with apicurio_endpoint(f"http://127.0.0.1:{port}") as endpoint:
        status, content = caller(endpoint)(X_Registry_ArtifactId="orders-value")
    assert status == 502
    assert f"http://127.0.0.1:{port} can't be reached" in content["message"]
