"""Which headers responses of the APIs have, and that their requests pass nothing of what is for pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from dashboard.middleware import ApiMiddleware
from registry.access.roles import Actor
from registry.api.authentication import token_of
from registry.errors import NotSignedIn
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName

GOOGLE = "/v1/projects/local/locations/local/schemaRegistries/dev"
SECURITY = frozenset(
    {
        "content-security-policy",
        "cross-origin-opener-policy",
        "referrer-policy",
        "x-content-type-options",
        "x-frame-options",
    }
)
PLAIN = SECURITY | {"content-type"}
CONFLUENT = PLAIN | {"allow", "cache-control", "vary", "x-xss-protection"}

#: call, what it accepts → the status, and the names of the headers of its response
RESPONSES: tuple[tuple[str, str, int, frozenset[str]], ...] = (
    ("GET /subjects", "*/*", 200, CONFLUENT),
    ("GET /subjects", "image/png", 406, CONFLUENT),
    ("GET /subjects/orders-value/versions/1", "*/*", 200, CONFLUENT | {"etag"}),
    ("HEAD /subjects/orders-value/versions/1", "*/*", 200, CONFLUENT | {"etag"}),
    ("GET /subjects/orders-value/versions/1/schema", "text/plain", 200, CONFLUENT | {"etag"}),
    ("GET /subjects/orders-value/versions/7", "*/*", 404, CONFLUENT),
    ("GET /schemas/ids/1", "*/*", 200, CONFLUENT | {"etag"}),
    ("OPTIONS /subjects", "*/*", 405, CONFLUENT),
    ("PATCH /config", "*/*", 405, CONFLUENT),
    ("GET /", "application/json", 200, CONFLUENT),
    ("GET /", "text/html", 302, PLAIN | {"location"}),
    ("GET /nowhere", "*/*", 404, PLAIN),
    ("GET /%FF", "*/*", 400, frozenset({"content-type"})),
    ("GET /healthz", "*/*", 200, PLAIN),
    (f"GET {GOOGLE}/subjects", "*/*", 200, PLAIN | {"allow"}),
    ("GET /spring/orders-value/avro/v1", "*/*", 200, PLAIN),
    ("GET /api/v1/registries", "*/*", 200, PLAIN | {"allow"}),
    ("GET /api/v1/docs/", "text/html", 200, PLAIN | {"allow"}),
    ("POST /api/v1/registries/dev/subjects", "*/*", 405, PLAIN | {"allow"}),
)


def test_a_token_without_a_scheme_is_not_repeated() -> None:
    with pytest.raises(NotSignedIn) as refused:
        token_of("aSecretTokenWithoutItsScheme")
    assert "aSecret" not in refused.value.message
    with pytest.raises(NotSignedIn, match="'Digest'"):
        token_of("Digest username=x")


@pytest.fixture
def steward(api: Callable[[str], Client], system: Actor) -> Client:
    client = api("steward")
    register_version(registry="dev", subject=SubjectName(".", "orders-value"), text='"string"', by=system)
    return client


@pytest.mark.parametrize(("call", "accept", "status", "headers"), RESPONSES)
def test_the_headers_of_a_response(
    steward: Client, call: str, accept: str, status: int, headers: frozenset[str]
) -> None:
    method, path = call.split(" ")
    response = steward.generic(method, path, headers={"accept": accept})
    assert response.status_code == status
    assert {name.lower() for name in response.headers} - {"content-length"} == headers
    if "x-frame-options" in headers:
        assert response["X-Frame-Options"] == "DENY"
        assert "default-src 'none'" in response["Content-Security-Policy"]


def test_a_refused_host_is_reported_in_json(steward: Client) -> None:
    response = steward.get("/subjects", headers={"host": "elsewhere.example"})
    assert (response.status_code, response["Content-Type"]) == (400, "application/json")
    assert {name.lower() for name in response.headers} >= SECURITY


def test_only_pages_pass_the_middlewares_of_pages() -> None:
    passed: list[str] = []

    def rest(request: HttpRequest) -> HttpResponse:
        passed.append(request.path)
        return HttpResponse()

    answer = ApiMiddleware(rest)
    for path in ("/ui/", "/ui/accounts/login/", "/healthz", "/nowhere"):
        answer(RequestFactory().get(path))
    assert passed == ["/ui/", "/ui/accounts/login/"]


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/api/v1/tokens"), ("PUT", "/config"), ("GET", f"{GOOGLE}/subjects")]
)
def test_a_session_gives_no_right_at_an_api(look: Callable[[str], Any], method: str, path: str) -> None:
    """So that no page of another site can use it: API calls have no protection of forms."""
    body = "{}" if method == "PUT" else ""
    response = look("admin").generic(method, path, body, content_type="application/json", REMOTE_ADDR="192.0.2.1")
    assert response.status_code == 401


@pytest.mark.parametrize(
    "address", ["/subjects", f"{GOOGLE}/subjects", "/spring/orders-value/avro/v1", "/api/v1/registries", "/metrics"]
)
@pytest.mark.parametrize("credentials", ["\xff\xfe", "/w==", "x"])
def test_credentials_that_cannot_be_read_are_refused(registries: None, address: str, credentials: str) -> None:
    assert Client().get(address, HTTP_AUTHORIZATION=f"Basic {credentials}", REMOTE_ADDR="192.0.2.1").status_code == 401
