"""Whatever is sent to whichever address: no 500, and an answer in the shape of this dialect."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from tests.api.confluent_description import addresses, description

CONTENT = "application/vnd.schemaregistry.v1+json"
DESCRIPTION = schemathesis.openapi.from_dict(description())
ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
#: `API_EXAMPLES=500` looks longer
QUIETLY = settings(
    max_examples=int(os.environ.get("API_EXAMPLES", "12")),
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
#: statuses that this dialect gives
STATUSES = {200, 204, 304, 400, 403, 404, 405, 406, 409, 415, 422}


@pytest.fixture
def admin(api: Callable[[str], Client]) -> Client:
    """A client that may do everything, in a registry with something in it."""
    client = api("admin")
    for subject in ("orders", "customer", "a%2Fb", ":.lab:orders"):
        for text in (ORDER, ORDER.replace("}]", '},{"name":"n","type":"int","default":0}]')):
            send(client, "POST", f"/subjects/{subject}/versions", json.dumps({"schema": text}))
    return client


def send(client: Client, method: str, path: str, body: str | bytes = b"", **more: Any) -> Any:
    """Make a call, and hold its answer against what every answer has to be."""
    answer = client.generic(method, path, body, **{"content_type": CONTENT, **more})
    assert answer.status_code in STATUSES, f"{method} {path} {body[:2000]!r}: {answer.status_code} {answer.content!r}"
    if answer.status_code >= 400:
        said = json.loads(answer.content)
        assert said.keys() == {"error_code", "message"}
        assert str(said["error_code"])[:3] == str(answer.status_code)
        assert said["message"]
    return answer


@pytest.mark.slow
@pytest.mark.parametrize(("path", "method"), addresses())
def test_generated_calls(path: str, method: str, admin: Client) -> None:
    operation = DESCRIPTION[path][method]

    @QUIETLY
    @given(st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode)))
    def call(case: Any) -> None:
        prepared = case.as_transport_kwargs(base_url="http://testserver")
        body = case.body if isinstance(case.body, bytes) else json.dumps(case.body, default=str).encode()
        query = {name: str(value) for name, value in (prepared.get("params") or {}).items()}
        send(admin, method.upper(), case.formatted_path, body if method in ("post", "put") else b"", query_params=query)

    call()


@pytest.mark.slow
@QUIETLY
@given(body=st.binary(max_size=200), kind=st.sampled_from([CONTENT, "application/json", "application/octet-stream"]))
@pytest.mark.parametrize("path", ["/subjects/orders/versions", "/subjects/orders", "/config", "/mode/orders"])
def test_bodies_of_any_bytes(path: str, body: bytes, kind: str, admin: Client) -> None:
    for method in ("POST", "PUT"):
        send(admin, method, path, body, content_type=kind)


@pytest.mark.slow
@QUIETLY
@given(text=st.text(max_size=60), schema_type=st.sampled_from(["AVRO", "JSON", "PROTOBUF"]))
def test_schemas_of_any_text(text: str, schema_type: str, admin: Client) -> None:
    body = json.dumps({"schema": text, "schemaType": schema_type})
    for path in ("/subjects/fresh/versions", "/subjects/orders", "/compatibility/subjects/orders/versions/latest"):
        send(admin, "POST", path, body)


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (b"\xff", 400, "not UTF-8"),
        (b"[" * 100_000, 400, "nested too deeply"),
        (b'{"version": ' + b"9" * 5000 + b"}", 400, "number"),
        (b'{"version": NaN}', 400, "NaN"),
        (b'{"schema": "\\u0000"}', 422, "/schema"),
        (b'{"schema": "\\ud800"}', 422, "U+D800"),
        (b'{"references": [{"name": "\\udfff"}]}', 422, "/references/0/name"),
        (b'{"\\u0000": 1}', 422, "name of a property"),
        (b'{"schema": "\\ud83d\\ude00"}', 42201, ""),
        (b'"text"', 422, "a string"),
        (b"null", 422, "null"),
        (b'{"schema": {"type": "string"}}', 422, "/schema is an object"),
        (b'{"schema": "x", "schemaType": 1}', 422, "/schemaType"),
        (b'{"schema": "x", "references": {}}', 422, "/references"),
        (b'{"schema": "x", "references": [{"name": "a", "subject": "b", "version": 0}]}', 42202, "/references/0/version"),
        (b'{"schema": "x", "references": [{"name": "a", "subject": "b\\t", "version": 1}]}', 42208, "control"),
        (b'{"schema": "x", "version": true}', 422, "/version"),
    ],
)  # fmt: skip
def test_bodies_that_break_are_told_where(body: bytes, code: int, words: str, admin: Client) -> None:
    answer = send(admin, "POST", "/subjects/fresh/versions", body)
    assert answer.json()["error_code"] == code, answer.json()
    assert words in answer.json()["message"]


def test_huge_bodies_and_schemas(admin: Client, settings: Any) -> None:
    huge = json.dumps({"schema": "x" * 1_100_000})
    assert send(admin, "POST", "/subjects/fresh/versions", huge).json()["error_code"] == 42209
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    for method, path in (("POST", "/subjects/fresh/versions"), ("PUT", "/config"), ("POST", "/subjects/fresh")):
        assert send(admin, method, path, huge).json()["error_code"] == 42209
    assert admin.get("/subjects/fresh/versions").status_code == 404


def test_media_types(admin: Client) -> None:
    body = json.dumps({"schema": ORDER})
    path = "/subjects/fresh/versions"
    assert send(admin, "POST", path, body, content_type="text/xml").status_code == 415
    assert send(admin, "POST", path, body, content_type="application/x-www-form-urlencoded").status_code == 415
    for kind in (
        "",
        "application/json; charset=utf-8",
        "application/octet-stream",
        "application/vnd.schemaregistry+json",
    ):
        assert send(admin, "POST", path, body, content_type=kind).status_code == 200, kind
    refused = send(admin, "GET", "/subjects", headers={"accept": "text/html"})
    assert (refused.status_code, refused.json()["message"]) == (406, "HTTP 406 Not Acceptable")
    for accept in ("application/json", "application/vnd.schemaregistry+json", CONTENT):
        assert send(admin, "GET", "/subjects", headers={"accept": accept})["Content-Type"] == accept
    for accept in ("*/*", "application/*", f"{CONTENT}, application/json; q=0.9, */*; q=0.1"):
        assert send(admin, "GET", "/subjects", headers={"accept": accept})["Content-Type"] == CONTENT
    many = "&".join(f"x{number}=1" for number in range(2000))
    assert send(admin, "GET", f"/subjects?{many}").status_code == 400


def test_headers_and_etags(admin: Client) -> None:
    for path in ("/subjects", "/nowhere/at/all/x", "/schemas/ids/99"):
        answer = send(admin, "GET", path)
        if path != "/nowhere/at/all/x":
            assert answer["Cache-Control"] == "no-cache, no-store, must-revalidate"
            assert answer["X-XSS-Protection"] == "1; mode=block"
    guid = send(admin, "GET", "/schemas/ids/1").json()["guid"]
    reads = ["/schemas/ids/1", "/schemas/ids/1/schema", f"/schemas/guids/{guid}", "/subjects/orders/versions/1"]
    for path in [*reads, "/subjects/orders/versions/latest", "/subjects/orders/versions/1/schema"]:
        tag = send(admin, "GET", path)["ETag"]
        for known in (tag, f'"other", W/{tag}', "*"):
            again = send(admin, "GET", path, headers={"if-none-match": known})
            assert (again.status_code, again.content, again["ETag"]) == (304, b"", tag)
        assert send(admin, "GET", path, headers={"if-none-match": '"other"'}).status_code == 200
    before = send(admin, "GET", "/subjects/orders/versions/latest")["ETag"]
    body = json.dumps({"schema": ORDER.replace("}]", '},{"name":"m","type":"int","default":0}]')})
    send(admin, "POST", "/subjects/orders/versions", body)
    assert send(admin, "GET", "/subjects/orders/versions/latest", headers={"if-none-match": before}).status_code == 200
    assert "ETag" not in send(admin, "GET", "/schemas/ids/99")


def test_the_code_of_an_incompatible_schema_is_a_setting(admin: Client, settings: Any) -> None:
    body = json.dumps({"schema": '"string"'})
    answer = send(admin, "POST", "/subjects/orders/versions", body)
    assert (answer.status_code, answer.json()["error_code"]) == (409, 409)
    settings.INCOMPATIBLE_ERROR_CODE = 40901
    answer = send(admin, "POST", "/subjects/orders/versions", body)
    assert (answer.status_code, answer.json()["error_code"]) == (409, 40901)


def test_modes_may_be_made_immutable(admin: Client, settings: Any) -> None:
    settings.MODE_MUTABILITY = False
    for method in ("PUT", "DELETE"):
        answer = send(admin, method, "/mode", '{"mode": "READONLY"}')
        assert (answer.json()["error_code"], answer.json()["message"]) == (42205, "Mode changes are not allowed")
