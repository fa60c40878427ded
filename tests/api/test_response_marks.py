"""The headers of versions that shouldn't be used any more, in every dialect; the answers stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.models import ApiToken
from registry.access.roles import Actor
from registry.api.response_marks import ENVIRON, HEADERS, Recent, Replay, status_headers
from registry.subjects.services import clear_version_status, register_version, set_version_status
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import StatusInfo

CONTENT = "application/vnd.schemaregistry.v1+json"
GOOGLE = "/v1/projects/local/locations/local/schemaRegistries/dev"
ORDERS = SubjectName(".", "orders-value")
SCHEMA = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
OTHER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"n","type":"int","default":0}]}'
AT = datetime(2026, 11, 22, 10, 0, 0, 999_999, tzinfo=UTC)

pytestmark = pytest.mark.requirement("ORA-1")

#: call → the body that it sends; each answers with version 1, or its definition
CALLS: dict[str, str] = {
    "GET /subjects/orders-value/versions/1": "",
    "GET /subjects/orders-value/versions/1/schema": "",
    "GET /schemas/ids/1": "",
    "GET /schemas/ids/1/schema": "",
    "GET /schemas/ids/1?subject=orders-value": "",
    "GET /schemas/guids/{guid}": "",
    "POST /subjects/orders-value": json.dumps({"schema": SCHEMA}),
    "POST /subjects/orders-value/versions": json.dumps({"schema": SCHEMA}),
    f"GET {GOOGLE}/subjects/orders-value/versions/1": "",
    f"GET {GOOGLE}/subjects/orders-value/versions/1/schema": "",
    f"GET {GOOGLE}/schemas/ids/1": "",
    f"GET {GOOGLE}/schemas/ids/1/schema": "",
    f"GET {GOOGLE}/schemas/ids/1?subject=orders-value": "",
    f"POST {GOOGLE}/subjects/orders-value": json.dumps({"schema": SCHEMA}),
    f"POST {GOOGLE}/subjects/orders-value/versions": json.dumps({"schema": SCHEMA}),
    "GET /spring/schemas/{version_id}": "",
    "GET /spring/orders-value/avro/v1": "",
    "POST /spring": json.dumps({"subject": "orders-value", "format": "avro", "definition": SCHEMA}),
    "GET /api/v1/registries/dev/subjects/orders-value/versions/1/status": "",
}


@pytest.fixture
def filled(registries: None, system: Actor) -> dict[str, str]:
    """One version, and what addresses call it."""
    done = register_version(registry="dev", subject=ORDERS, text=SCHEMA, by=system)
    return {"guid": done.guid, "version_id": str(done.version_id)}


def ask(client: Client, call: str, body: str, names: dict[str, str], **headers: Any) -> Any:
    method, path = call.split(" ", 1)
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", value)
    kind = "application/json" if path.startswith(("/spring", "/v1", "/api")) else CONTENT
    return client.generic(method, path, body, content_type=kind, headers=headers)


def told(answer: Any) -> dict[str, str]:
    return {name: answer.headers[name] for name in HEADERS if name in answer.headers}


@pytest.mark.parametrize("call", CALLS)
def test_each_answer_with_it_says_so_and_stays_as_it_was(
    filled: dict[str, str], api: Callable[[str], Client], system: Actor, call: str
) -> None:
    client = api("admin")
    before = ask(client, call, CALLS[call], filled)
    assert before.status_code in (200, 201), before.content
    assert told(before) == {}
    end = timezone.now() + timedelta(days=20)
    done = set_version_status(
        registry="dev", subject=ORDERS, version=1, status="deprecated", message="Bitte v2: “größer”.",
        ends_at=end, by=system,
    )  # fmt: skip
    after = ask(client, call, CALLS[call], filled)
    assert after.status_code == before.status_code
    if "/api/v1/" not in call:
        assert after.content == before.content
    assert told(after) == {
        "Deprecation": f"@{int(done.decided_at.timestamp())}",
        "Sunset": after.headers["Sunset"],
        "X-Schemadesk-Status": f"deprecated;until=@{int(end.timestamp())};"
        'message=%"Bitte v2: %e2%80%9cgr%c3%b6%c3%9fer%e2%80%9d."',
    }
    assert parsedate_to_datetime(after.headers["Sunset"]) == end.replace(microsecond=0)
    clear_version_status(registry="dev", subject=ORDERS, version=1, by=system)
    assert told(ask(client, call, CALLS[call], filled)) == {}


@pytest.mark.parametrize("path", ["/subjects/orders-value/versions/latest", "/schemas/ids/1", "/schemas/ids/1/schema"])
def test_a_kept_answer_is_fetched_again(
    filled: dict[str, str], api: Callable[[str], Client], system: Actor, path: str
) -> None:
    """Whoever kept the answer of before hears of it, and whoever kept this one is told with 304, too."""
    client = api("reader")
    tag = client.get(path).headers["ETag"]
    assert client.get(path, headers={"if-none-match": tag}).status_code == 304
    set_version_status(registry="dev", subject=ORDERS, version=1, status="retired", message="Over.", by=system)
    again = client.get(path, headers={"if-none-match": tag})
    assert again.status_code == 200
    assert again.headers["ETag"] != tag
    kept = client.get(path, headers={"if-none-match": again.headers["ETag"]})
    assert kept.status_code == 304
    assert told(kept) == told(again)
    set_version_status(registry="dev", subject=ORDERS, version=1, status="retired", message="All over.", by=system)
    assert client.get(path, headers={"if-none-match": again.headers["ETag"]}).status_code == 200


def test_a_new_version_is_active(filled: dict[str, str], api: Callable[[str], Client], system: Actor) -> None:
    set_version_status(registry="dev", subject=ORDERS, version=1, status="retired", message="Over.", by=system)
    answer = ask(api("steward"), "POST /subjects/orders-value/versions", json.dumps({"schema": OTHER}), {})
    assert answer.status_code == 200
    assert told(answer) == {}
    assert told(ask(api("reader"), "GET /subjects/orders-value/versions/latest", "", {})) == {}


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Use 2.", '"Use 2."'),
        ('a "b" \\ c', '"a \\"b\\" \\\\ c"'),
        ("one\r\nSet-Cookie: a=b", '%"one%0d%0aSet-Cookie: a=b"'),
        ('é 100 % "x"', '%"%c3%a9 100 %25 %22x%22"'),
        ("x" * 301, f'%"{"x" * 299}%e2%80%a6"'),
        ("x" * 300, f'"{"x" * 300}"'),
        ("🦆" * 2000, f'%"{"%f0%9f%a6%86" * 299}%e2%80%a6"'),
    ],
)
def test_a_message_is_a_string_of_rfc_9651(message: str, said: str) -> None:
    headers = status_headers(StatusInfo("retired", message, None, "ann", AT))
    assert headers == {"Deprecation": "@1795341600", "X-Schemadesk-Status": f"retired;message={said}"}
    assert re.fullmatch(r"[ -~]{1,4000}", headers["X-Schemadesk-Status"])


def test_the_version_that_has_some_metadata_says_so_too(
    registries: None, api: Callable[[str], Client], system: Actor
) -> None:
    register_version(registry="dev", subject=ORDERS, text=SCHEMA, metadata={"properties": {"team": "sales"}}, by=system)
    set_version_status(registry="dev", subject=ORDERS, version=1, status="retired", message="Over.", by=system)
    answer = api("reader").get("/subjects/orders-value/metadata?key=team&value=sales")
    assert answer.json()["version"] == 1
    assert told(answer)["X-Schemadesk-Status"] == 'retired;message="Over."'


def test_reading_costs_no_query_more(filled: dict[str, str], api: Callable[[str], Client], system: Actor) -> None:
    client = api("reader")
    paths = ["/subjects/orders-value/versions/1", "/schemas/ids/1"]

    def cost(path: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(path).status_code == 200
        return len(queries)

    cost(paths[0])  # notes the first use of the token
    good = {path: cost(path) for path in paths}
    set_version_status(registry="dev", subject=ORDERS, version=1, status="retired", message="Over.", by=system)
    assert cost(paths[0]) == good[paths[0]]
    assert cost(paths[1]) == good[paths[1]] + 1, "by id: what of the versions that have it"


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/subjects/orders-value/versions/1", {}),
        ("/schemas/ids/1", {}),
        ("/subjects/orders-value/versions/1", {"REMOTE_ADDR": "10.1.1.1"}),
        ("/registries/prod/subjects", {}),
    ],
)
def test_who_calls_and_where_is_read_once_by_requests_in_turn(
    filled: dict[str, str], api: Callable[[str], Client], path: str, more: dict[str, str]
) -> None:
    recent, first = Recent(lambda: True), "/subjects/orders-value/versions/1"
    reader, admin = api("reader"), api("admin")

    def reads(client: Client, path: str, **more: Any) -> bool:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(path, **{ENVIRON: Replay(recent=recent)}, **more).status_code == 200
        return any("access_apitoken" in query["sql"] for query in queries)

    assert reads(reader, first)
    assert reads(reader, path, **more) == (path != first or bool(more)), "another address or place is read"
    assert not reads(reader, path, **more)
    assert reads(admin, path, **more), "so is who has another token"


def test_a_token_that_has_expired_is_refused_although_it_was_read(
    filled: dict[str, str], api: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, recent = api("reader"), Recent(lambda: True)
    ask = lambda: client.get("/schemas/ids/1", **{ENVIRON: Replay(recent=recent)}).status_code  # noqa: E731
    assert ask() == 200
    later = timezone.now() + timedelta(days=5_000)
    monkeypatch.setattr(timezone, "now", lambda: later)
    assert ask() == 401
    monkeypatch.undo()
    ApiToken.objects.update(revoked_at=timezone.now())
    assert ask() == 200, "whether it was revoked says the layer before Django"
    recent = Recent(lambda: False)
    assert ask() == 401


def test_what_was_read_isn_t_used_once_something_is_committed(
    filled: dict[str, str], api: Callable[[str], Client]
) -> None:
    """A request that has waited for a thread begins with values from before."""
    is_current = [True]
    client, recent = api("reader"), Recent(lambda: is_current[0])
    ask = lambda: client.get("/schemas/ids/1", **{ENVIRON: Replay(recent=recent)}).status_code  # noqa: E731
    assert ask() == 200
    ApiToken.objects.update(revoked_at=timezone.now())
    is_current[0] = False
    assert ask() == 401


def test_programs_set_list_and_clear_it(filled: dict[str, str], api: Callable[[str], Client], system: Actor) -> None:
    register_version(registry="dev", subject=SubjectName(".", "a/b"), text=SCHEMA, by=system)
    client = api("steward")
    path = "/api/v1/registries/dev/subjects/a%2Fb/versions/latest/status"
    assert client.get(path).json() == {"version": 1, "status": "active"}
    body = {"status": "deprecated", "message": "Use c.", "ends_at": "2099-01-01T00:00:00Z"}
    set_ = client.put(path, body, content_type="application/json")
    assert set_.status_code == 200, set_.content
    assert (set_.json()["status"], set_.json()["decided_by"]) == ("deprecated", "steward")
    assert client.get(path).json()["ends_at"] == "2099-01-01T00:00:00Z"
    [row] = api("reader").get("/api/v1/registries/dev/version-statuses").json()
    assert (row["subject"], row["version"], row["message"]) == ("a/b", 1, "Use c.")
    assert api("reader").get(f"/api/v1/registries/dev/version-statuses?after={row['id']}").json() == []
    assert api("reader").get("/api/v1/registries/dev/version-statuses?status=retired").json() == []
    assert api("reader").get("/api/v1/registries/dev/version-statuses?status=bad").status_code == 422
    assert api("reader").put(path, body, content_type="application/json").status_code == 403
    assert client.put(path, {"status": "deprecated"}, content_type="application/json").status_code == 422
    assert client.delete(path).status_code == 204
    assert client.delete(path).status_code == 404
    assert client.put(path.replace("latest", "9"), body, content_type="application/json").status_code == 404
