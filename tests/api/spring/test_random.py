"""Random requests to Spring's dialect: whatever is sent, it is refused in words or done, never an error of ours."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

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
