"""Under `up` a program on this machine needs no token; a request that a proxy forwards has no role without one."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client, RequestFactory

from registry.access.request_origin import is_local
from registry.access.roles import system_actor
from registry.api.authentication import authenticate
from registry.subjects.services import ensure_registry

#: a change that a browser on this machine sends
BROWSER = {"REMOTE_ADDR": "127.0.0.1", "REQUEST_METHOD": "POST", "HTTP_HOST": "127.0.0.1:8081"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"REMOTE_ADDR": "127.0.0.1"}, True),
        ({"REMOTE_ADDR": "127.8.0.1"}, True),
        ({"REMOTE_ADDR": "::1"}, True),
        ({"REMOTE_ADDR": "::ffff:127.0.0.1"}, True),
        ({"REMOTE_ADDR": "10.0.0.1"}, False),
        ({"REMOTE_ADDR": ""}, False),
        ({"REMOTE_ADDR": "unix"}, False),
        ({}, False),
        ({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "127.0.0.1"}, False),
        ({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": ""}, False),
        ({"REMOTE_ADDR": "127.0.0.1", "HTTP_FORWARDED": "for=127.0.0.1"}, False),
        ({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_REAL_IP": "127.0.0.1"}, False),
        ({"REMOTE_ADDR": "127.0.0.1", "HTTP_VIA": "1.1 proxy"}, False),
        ({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_HOST": "desk.example"}, False),
        (BROWSER | {"HTTP_SEC_FETCH_SITE": "cross-site"}, False),
        (BROWSER | {"HTTP_SEC_FETCH_SITE": "same-site"}, False),
        (BROWSER | {"HTTP_SEC_FETCH_SITE": "same-origin", "HTTP_ORIGIN": "http://127.0.0.1:8081"}, True),
        (BROWSER | {"HTTP_ORIGIN": "http://127.0.0.1:8081"}, True),
        (BROWSER | {"HTTP_ORIGIN": "http://127.0.0.1:3000"}, False),
        (BROWSER | {"HTTP_ORIGIN": "null"}, False),
        (BROWSER | {"HTTP_ORIGIN": "http://evil.example", "REQUEST_METHOD": "GET"}, True),
        (BROWSER, True),
    ],
)
def test_only_a_direct_call_from_this_machine_is_local(environment: dict[str, str], expected: bool) -> None:
    assert is_local(environment) is expected


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP"])
def test_a_forwarded_request_has_no_role_without_a_token(header: str, settings: Any) -> None:
    settings.ANONYMOUS_ROLE = "steward"
    direct, forwarded = (RequestFactory().get("/subjects", headers=headers) for headers in ({}, {header: "127.0.0.1"}))
    assert [grant.role for grant in authenticate(direct.META, channel="confluent").grants] == ["steward"]
    assert authenticate(forwarded.META, channel="confluent").grants == ()


@pytest.mark.django_db
def test_everything_refuses_a_forwarded_request_without_a_token(settings: Any) -> None:
    settings.ANONYMOUS_ROLE = "steward"
    ensure_registry(name="dev", by=system_actor("tests", "command"))
    client, forwarded = Client(), {"X-Forwarded-For": "203.0.113.9"}
    schema = {"schema": '"string"'}
    for path in ("/metrics", "/subjects", "/api/v1/findings"):
        assert client.get(path).status_code == 200, path
        assert client.get(path, headers=forwarded).status_code in (401, 403), path
    answer = client.post("/subjects/a/versions", schema, content_type="application/json", headers=forwarded)
    assert answer.status_code in (401, 403)
    assert client.get("/ui/subjects", headers=forwarded).status_code != 200


@pytest.mark.django_db
def test_another_sites_page_changes_nothing_without_a_token(settings: Any) -> None:
    """What `fetch(…, {mode: "no-cors"})` of any page sends: no preflight, no media type."""
    settings.ANONYMOUS_ROLE = "steward"
    ensure_registry(name="dev", by=system_actor("tests", "command"))
    schema, client = b'{"schema": "\\"string\\""}', Client()
    headers = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
    google = "/v1/projects/local/locations/local/schemaRegistries/dev/subjects/a/versions"
    for path in ("/subjects/a/versions", google):
        response = client.generic("POST", path, schema, content_type="", headers=headers)
        assert response.status_code in (401, 403), (path, response.content)
    assert client.get("/subjects").json() == []
