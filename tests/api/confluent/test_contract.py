"""The contract of Confluent's API as data, a name at every address, and generated calls: no 500 whatever is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import schemathesis
import yaml
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from tests.amounts import how_many
from tests.api.confluent.openapi_description import addresses, description

CONTENT = "application/vnd.schemaregistry.v1+json"
FOLDER = Path(__file__).parents[1] / "cases" / "confluent"
SCHEMAS: dict[str, str] = yaml.safe_load((FOLDER / "schemas.yaml").read_text())
KEYS = {
    "call", "by", "send", "status", "code", "says", "gives", "has", "lacks", "list", "gives_text", "any",
    "says_schema", "says_text",
}  # fmt: skip


def cases() -> Iterator[Any]:
    """Every story, marked with the requirements that it shows."""
    for path in sorted(FOLDER.glob("*.yaml")):
        for case in () if path.stem == "schemas" else yaml.safe_load(path.read_text()):
            marks = [pytest.mark.requirement(*case["requirements"])] if "requirements" in case else []
            yield pytest.param(case, id=f"{path.stem}: {case['name']}", marks=marks)


def filled(value: Any) -> Any:
    """The value with the schemas that it names in it."""
    if isinstance(value, str) and value.startswith("$") and value[1:]:
        return SCHEMAS[value[1:]]
    if isinstance(value, dict):
        return {key: filled(item) for key, item in value.items()}
    return [filled(item) for item in value] if isinstance(value, list) else value


class Wanted:
    """Equal to a value like it, in which ANY stands for anything."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, found: object) -> bool:
        wanted = self.value
        if isinstance(wanted, dict) and isinstance(found, dict):
            return wanted.keys() == found.keys() and all(found[key] == Wanted(wanted[key]) for key in wanted)
        if isinstance(wanted, list) and isinstance(found, list):
            return len(wanted) == len(found) and all(map(lambda a, b: a == Wanted(b), found, wanted))
        return bool(wanted == "ANY" or wanted == found)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.value)


@pytest.mark.parametrize("case", list(cases()))
def test_the_story_goes_as_written(case: dict[str, Any], api: Callable[[str], Client]) -> None:
    clients: dict[str, Client] = {}
    for number, step in enumerate(case["steps"], start=1):
        who = step.get("by", "admin")
        clients[who] = clients.get(who) or api(who)
        tell(clients[who], step, f"step {number}: {step['call']}")


def tell(client: Client, step: dict[str, Any], where: str) -> None:
    """Make the call and hold its answer against what the step says of it."""
    assert not step.keys() - KEYS, f"{where}: unknown keys"
    method, _, path = step["call"].partition(" ")
    body = json.dumps(filled(step["send"])) if "send" in step else ""
    answer = client.generic(method, path, body, content_type=CONTENT)
    text = answer.content.decode()
    expected = step.get("any") or [step.get("status") or int(str(step.get("code", 200))[:3])]
    assert answer.status_code in expected, f"{where}: {answer.status_code} {text}"
    if answer.status_code == 204:
        assert not text, where
        return
    if "gives_text" in step:
        assert text == filled(step["gives_text"]), where
        return
    if "says_text" in step:
        assert step["says_text"] in text, where
        return
    assert answer["Content-Type"] in (CONTENT, "application/json"), where
    found = answer.json()
    if answer.status_code >= 400:
        assert found.keys() == {"error_code", "message"}, where
        assert found["error_code"] == step.get("code", found["error_code"]), f"{where}: {text}"
        assert step.get("says", "") in found["message"], f"{where}: {text}"
        return
    if "gives" in step:
        assert found == Wanted(filled(step["gives"])), f"{where}: {text}"
    for name, value in filled(step.get("has", {})).items():
        assert found.get(name) == Wanted(value), f"{where}: {name} of {text}"
    assert not set(step.get("lacks", ())) & found.keys() if isinstance(found, dict) else True, f"{where}: {text}"
    if "says_schema" in step:
        assert step["says_schema"] in found["schema"], where
    if "list" in step:
        assert len(found) == len(step["list"]), f"{where}: {text}"
        for item, wanted in zip(found, step["list"], strict=True):
            assert wanted.items() <= item.items(), f"{where}: {item}"


def test_every_case_is_distinguished() -> None:
    names = [case.id for case in cases()]
    assert len(names) == len(set(names))
    assert len(names) > 20


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


DESCRIPTION = schemathesis.openapi.from_dict(description())
QUIETLY = settings(
    max_examples=how_many("generated calls of an address"),
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
#: statuses that this dialect gives
STATUSES = {200, 204, 207, 304, 400, 403, 404, 405, 406, 409, 415, 422}


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
def test_bodies_that_break_are_reported_where(body: bytes, code: int, words: str, admin: Client) -> None:
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
    for accept in ("", "*/*", "application/*", f"{CONTENT}, application/json; q=0.9, */*; q=0.1"):
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
