"""The calls as HTTP: what comes in wrong, what goes out, and what a page costs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from django.db import IntegrityError, OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.access.models import RoleGrant
from registry.access.roles import Actor
from registry.access.services import issue_token
from registry.api.google.base import handle, refusal
from registry.errors import BrokerUnavailable
from registry.subjects.services import ensure_registry
from registry.subjects.versions.lookup import RegistryResource, get_registry
from tests.conftest import RawClient

PLACE = "/v1/projects/local/locations/local"
DEV = f"{PLACE}/schemaRegistries/dev"
SCHEMA = json.dumps("string")
Api = Callable[[str], Client]


@pytest.fixture
def admin(api: Api) -> Client:
    return api("admin")


def send(client: Client, path: str, body: object, method: str = "post", content_type: str = "application/json") -> Any:
    data = body if isinstance(body, str | bytes) else json.dumps(body)
    return getattr(client, method)(path, data, content_type=content_type)


def register(client: Client, subject: str, schema: object = "string", *, base: str = DEV, **fields: Any) -> Any:
    text = schema if isinstance(schema, str) and schema.startswith("{") else json.dumps(schema)
    return send(client, f"{base}/subjects/{quote(subject, safe='')}/versions", {"schema": text, **fields})


def error_of(answer: Any) -> dict[str, Any]:
    """The error, of the service's shape, whose code is the answer's."""
    error = answer.json()["error"]
    assert error.keys() == {"code", "message", "status", "details"}
    assert error["code"] == answer.status_code
    assert answer["Content-Type"] == "application/json"
    return error


@pytest.mark.requirement("GOO-4")
@pytest.mark.parametrize(
    ("body", "words", "field"),
    [
        ("{", "line 1, column 2", None),
        ("", "no body", None),
        ("[]", "an array", None),
        ('"x"', "a string", None),
        (b"\xff\xfe{}", "UTF-8", None),
        ("[" * 100_000, "nested", None),
        ('{"schema": ' + "9" * 5000 + "}", "digits", None),
        ("{}", "schema is missing", "schema"),
        ({"schema": 7}, "schema is a number", "schema"),
        ({"schema": None}, "schema is missing", "schema"),
        ({"schema": " "}, "schema is missing or empty", "schema"),
        ({"schema": "\0"}, "U+0000 at position 1", "schema"),
        ('{"schema": "\\ud800"}', "U+D800 at position 1", "schema"),
        ({"schema": SCHEMA, "colour": "red"}, "Unknown name 'colour'", "colour"),
        ({"schema": SCHEMA, "schemaType": "XML"}, "'XML'", "schemaType"),
        ({"schema": SCHEMA, "schemaType": 9}, "a number", "schemaType"),
        ({"schema": SCHEMA, "schemaType": True}, "true", "schemaType"),
        ({"schema": SCHEMA, "normalize": "yes"}, "true or false", "normalize"),
        ({"schema": SCHEMA, "version": 1.5}, "whole number", "version"),
        ({"schema": SCHEMA, "version": 2**31}, "32 bits", "version"),
        ({"schema": SCHEMA, "references": {}}, "an object", "references"),
        ({"schema": SCHEMA, "references": [7]}, "references[0]", "references[0]"),
        (
            {"schema": SCHEMA, "references": [{"name": "a"}]},
            "references[0].subject is missing",
            "references[0].subject",
        ),
        (
            {"schema": SCHEMA, "references": [{"name": "a", "subject": "b", "version": "one"}]},
            "references[0].version",
            "references[0].version",
        ),
        (
            {"schema": SCHEMA, "references": [{"name": "a", "subject": "b", "version": 1, "x": 1}]},
            "references[0].x",
            "references[0].x",
        ),
        (
            {"schema": SCHEMA, "references": [{"name": "a", "subject": "b\0", "version": 1}]},
            "U+0000",
            "references[0].subject",
        ),
        ({"schema": SCHEMA, "references": [{"name": "a", "subject": "b", "version": 1}]}, 'subject "b"', None),
        ({"schema": '{\n  "type": "recor"}'}, "line 2", None),
        ({"schema": SCHEMA, "\ud800": 1}, "cannot find field", "\N{REPLACEMENT CHARACTER}"),
    ],
    ids=lambda value: (value if isinstance(value, str) else "")[:30],
)
def test_a_bad_body_is_named_with_its_place(admin: Client, body: object, words: str, field: str | None) -> None:
    error = error_of(send(admin, f"{DEV}/subjects/s/versions", body))
    assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT")
    assert words in error["message"]
    violations = [item["fieldViolations"][0]["field"] for item in error["details"] if "fieldViolations" in item]
    assert violations == ([field] if field else [])
    assert admin.get(f"{DEV}/subjects").json() == []


@pytest.mark.requirement("GOO-4")
@pytest.mark.parametrize(
    ("method", "path", "body", "code", "words"),
    [
        ("get", f"{PLACE}/schemaRegistries/none", None, 404, "schemaRegistries/none"),
        ("get", f"{DEV}/subjects/none/versions", None, 404, "'none'"),
        ("get", f"{DEV}/subjects/none/versions/1", None, 404, "'none'"),
        ("get", f"{DEV}/subjects/there/versions/7", None, 404, "Version 7"),
        ("get", f"{DEV}/subjects/there/versions/0", None, 400, "'0'"),
        ("get", f"{DEV}/subjects/there/versions/first", None, 400, "'first'"),
        ("get", f"{DEV}/subjects/there/versions/7/schema", None, 404, "Version 7"),
        ("get", f"{DEV}/subjects/there/versions/7/referencedby", None, 404, "Version 7"),
        ("get", f"{DEV}/subjects/there/versions?deleted=perhaps", None, 400, "deleted"),
        ("delete", f"{DEV}/subjects/none", None, 404, "'none'"),
        ("delete", f"{DEV}/subjects/there?permanent=1", None, 400, "permanent"),
        ("delete", f"{DEV}/subjects/there/versions/7", None, 404, "Version 7"),
        ("get", f"{DEV}/schemas/ids/0", None, 400, "'0'"),
        ("get", f"{DEV}/schemas/ids/x", None, 400, "'x'"),
        ("get", f"{DEV}/schemas/ids/99999999999999999999", None, 400, "99999"),
        ("get", f"{DEV}/schemas/ids/{'9' * 5000}", None, 400, "99999"),
        ("get", f"{DEV}/schemas/ids/٣", None, 400, "schema id"),
        ("get", f"{DEV}/schemas/ids/99", None, 404, "99"),
        ("get", f"{DEV}/schemas/ids/99/versions", None, 404, "Schema not found"),
        ("get", f"{DEV}/schemas/ids/1?subject=%00", None, 400, "control character"),
        ("get", f"{DEV}/subjects/%00/versions", None, 400, "control character"),
        ("get", "/v1/projects/%00/locations", None, 400, "control character in its project"),
        ("get", "/v1/projects/p/locations/%00/schemaRegistries", None, 400, "control character in its location"),
        ("get", f"{PLACE}/schemaRegistries/%00/subjects", None, 400, "control character in its registry"),
        ("get", f"{DEV}/subjects?subjectPrefix=%00", None, 400, "control character"),
        ("get", f"{DEV}/contexts/%00", None, 400, "control character"),
        ("get", f"{DEV}/contexts/a%2Fb/subjects", None, 400, "'a/b'"),
        ("get", f"{DEV}/contexts/{'x' * 256}/subjects", None, 400, "256 were given"),
        ("get", f"{DEV}/subjects?subjectPrefix=:.a%20b:", None, 400, "'.a b'"),
        ("get", f"{DEV}/config/there", None, 404, "there"),
        ("get", f"{DEV}/mode/there", None, 404, "there"),
        ("delete", f"{DEV}/config/there", None, 404, "there"),
        ("delete", f"{DEV}/mode/there", None, 404, "there"),
        ("put", f"{DEV}/config/there", {"compatibility": "SIDEWAYS"}, 400, "FULL_TRANSITIVE"),
        ("put", f"{DEV}/config/there", {"compatibility": 7}, 400, "compatibility is a number"),
        ("put", f"{DEV}/config/there", {"level": "FULL"}, 400, "Unknown name 'level'"),
        ("put", f"{DEV}/mode/there", {"mode": "SHUT"}, 400, "READWRITE"),
        ("put", f"{DEV}/mode/there", {}, 400, "delete the mode"),
        ("put", f"{DEV}/mode/a%20b", {"mode": "READONLY"}, 400, "'a b'"),
        ("put", f"{DEV}/config/{'x' * 256}", {"compatibility": "FULL"}, 400, "256 were given"),
        ("post", f"{PLACE}/schemaRegistries", {"schemaRegistryId": "1st"}, 400, "'1st'"),
        ("post", f"{PLACE}/schemaRegistries", {"schemaRegistryId": "a/b"}, 400, "'a/b'"),
        ("post", f"{PLACE}/schemaRegistries", {"schemaRegistryId": "x" * 64}, 400, "1 to 63"),
        ("post", f"{PLACE}/schemaRegistries", {"schemaRegistry": {}}, 400, "schemaRegistryId is missing"),
        ("post", f"{PLACE}/schemaRegistries", {"schemaRegistryId": "a", "schemaRegistry": 1}, 400, "a number"),
        ("post", f"{PLACE}/operations/o", {}, 404, "not found"),
        ("get", f"{DEV}/nowhere", None, 404, "not found on this server"),
        ("get", "/v1/projects/", None, 404, "not found on this server"),
        ("put", f"{DEV}/subjects", {}, 405, "PUT"),
        ("patch", DEV, {}, 405, "PATCH"),
        ("get", f"{DEV}/compatibility/subjects/there/versions", None, 405, "GET"),
    ],
)
def test_what_can_t_be_done_is_named(
    admin: Client, method: str, path: str, body: object, code: int, words: str
) -> None:
    register(admin, "there")
    answer = getattr(admin, method)(path) if body is None else send(admin, path, body, method)
    error = error_of(answer)
    assert error["code"] == code
    assert words in error["message"]


@pytest.mark.requirement("GOO-4")
@pytest.mark.parametrize("name", ["a b", "a/b", "{}", "日本", "é", "x" * 256, "a\tb", "__GLOBAL", "a:b", "\u202e"])
def test_names_that_this_dialect_does_not_make(admin: Client, name: str) -> None:
    error = error_of(register(admin, name))
    assert (error["code"], error["details"][0]["reason"]) == (400, "INVALID_NAME")
    assert admin.get(f"{DEV}/subjects").json() == []


def test_bodies_and_types_that_are_not_taken(admin: Client) -> None:
    path = f"{DEV}/subjects/s/versions"
    error = error_of(send(admin, path, "<xml/>", content_type="text/xml"))
    assert (error["code"], error["status"]) == (415, "INVALID_ARGUMENT")
    error = error_of(send(admin, path, '{"schema": "' + " " * (8 * 1024 * 1024) + '"}'))
    assert error["code"] == 413
    assert "8388608 bytes" in error["message"]
    vendor = send(admin, path, {"schema": SCHEMA}, content_type="application/vnd.schemaregistry.v1+json")
    assert vendor.json() == {"id": 1}
    assert admin.get(path, headers={"accept": "text/html"}).json() == [1], "Accept is not asked"


@pytest.mark.requirement("GOO-1")
def test_an_incompatible_schema_is_refused_with_its_reason(admin: Client) -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    register(admin, "s", record)
    more = {**record, "fields": [*record["fields"], {"name": "b", "type": "int"}]}
    error = error_of(register(admin, "s", more))
    assert (error["code"], error["status"]) == (400, "FAILED_PRECONDITION")
    assert error["details"][0] == {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "INCOMPATIBLE_SCHEMA",
        "domain": "schemadesk",
        "metadata": {"subject": "s"},
    }


@pytest.mark.requirement("GOO-4")
def test_answers_as_the_service_documents_them(admin: Client) -> None:
    """Without the Python client: enums by name, HttpBody as the body itself, the documents' names of properties."""
    register(admin, "s", schemaType="AVRO")
    version = admin.get(f"{DEV}/subjects/s/versions/1").json()
    assert {name: version[name] for name in ("subject", "version", "id", "schemaType", "schema")} == {
        "subject": "s",
        "version": 1,
        "id": 1,
        "schemaType": "AVRO",
        "schema": '"string"',
    }
    assert (version["versionId"], version["schemaId"], version["schemaPayload"]) == (1, 1, '"string"')
    assert admin.get(f"{DEV}/schemas/ids/1?$alt=json%3Benum-encoding%3Dint").json()["schemaType"] == 1
    assert admin.get(f"{DEV}/schemas/ids/1/schema").content == b'"string"'
    assert admin.get(f"{DEV}/subjects").json() == ["s"]
    assert admin.delete(f"{DEV}/subjects/s/versions/1").json() == 1
    assert admin.delete(f"{DEV}/subjects/s?permanent=true").json() == [1]


@pytest.mark.requirement("GOO-4")
def test_what_one_dialect_registers_is_there_in_the_other(admin: Client) -> None:
    register(admin, "s")
    register(admin, "s", {"type": "fixed", "name": "F", "size": 2}, base=f"{DEV}/contexts/lab")
    assert admin.get("/subjects").json() == [":.lab:s", "s"]
    assert admin.get("/subjects/s/versions/1").json()["id"] == 1
    assert admin.get("/contexts").json() == [".", ".lab"]
    confluent = {"schema": SCHEMA}
    send(admin, "/subjects/a%2Fb.proto/versions", confluent)
    assert admin.get(f"{DEV}/subjects/a%2Fb.proto/versions/1").json()["subject"] == "a/b.proto"
    assert admin.delete(f"{DEV}/subjects/a%2Fb.proto").json() == [1]
    send(admin, f"{PLACE}/schemaRegistries", {"schemaRegistryId": "mine"})
    send(admin, "/registries/mine/subjects/s/versions", confluent)
    assert admin.get(f"{PLACE}/schemaRegistries/mine/subjects").json() == ["s"]
    assert admin.delete(f"{PLACE}/schemaRegistries/mine").json() == {}
    assert admin.get("/registries/mine/subjects").status_code == 404


@pytest.mark.requirement("GOO-6")
def test_a_new_subject_of_its_own_mode_is_refused_here_and_only_here(admin: Client) -> None:
    send(admin, f"{DEV}/mode", {"mode": "READONLY"}, "put")
    for subject in ("a", "b"):
        send(admin, f"{DEV}/mode/{subject}", {"mode": "READWRITE"}, "put")
    assert error_of(register(admin, "a"))["details"][0]["reason"] == "OPERATION_NOT_PERMITTED"
    assert send(admin, "/subjects/b/versions", {"schema": SCHEMA}).status_code == 200
    assert admin.get(f"{DEV}/subjects?deleted=true").json() == ["b"]


@pytest.mark.requirement("GOO-6")
def test_another_dialect_s_mode_is_shown_by_its_effect(admin: Client) -> None:
    send(admin, "/mode", {"mode": "READONLY_OVERRIDE"}, "put")
    assert admin.get(f"{DEV}/mode").json() == {"mode": "READONLY"}


@pytest.mark.requirement("GOO-3")
def test_replacing_a_config_leaves_what_this_dialect_does_not_know(
    admin: Client, person: Callable[[str], Actor]
) -> None:
    from registry.subjects import selectors
    from registry.subjects.services import set_config
    from registry.subjects.versions.qualified_names import SubjectName

    subject = SubjectName(".", "s")
    set_config(registry="dev", subject=subject, by=person("admin"), level="FULL", normalize=True, alias="t")
    assert send(admin, f"{DEV}/config/s", {"compatibility": "BACKWARD"}, "put").json() == {
        "compatibility": "BACKWARD",
        "alias": "t",
    }
    own = selectors.own_config(get_registry("dev"), subject)
    assert (own.level, own.normalize, own.alias) == ("BACKWARD", None, "t")
    assert send(admin, f"{DEV}/config/s", {}, "put").json() == {"alias": "t"}
    assert admin.delete(f"{DEV}/config/s").json() == {"alias": "t"}


def test_an_alias_stands_for_its_subject(admin: Client) -> None:
    register(admin, "orders")
    send(admin, "/config/old-name", {"alias": "orders"}, "put", content_type="application/vnd.schemaregistry.v1+json")
    assert admin.get(f"{DEV}/subjects/old-name/versions/1").json()["subject"] == "orders"
    assert register(admin, "old-name", {"type": "fixed", "name": "F", "size": 1}).status_code == 400
    assert admin.get(f"{DEV}/config/old-name").json() == {"alias": "orders"}


@pytest.mark.parametrize(
    ("method", "path", "body", "roles"),
    [
        ("get", f"{DEV}/subjects", None, {"reader", "steward", "approver", "admin"}),
        ("post", f"{DEV}/subjects/s/versions", {"schema": SCHEMA}, {"steward", "admin"}),
        ("put", f"{DEV}/config/s", {"compatibility": "FULL"}, {"steward", "admin"}),
        ("put", f"{DEV}/mode/s", {"mode": "READONLY"}, {"admin"}),
        ("post", f"{PLACE}/schemaRegistries", {"schemaRegistryId": "mine"}, {"admin"}),
        ("delete", f"{PLACE}/schemaRegistries/extra", None, {"admin"}),
    ],
)
def test_who_may(api: Api, system: Actor, method: str, path: str, body: object, roles: set[str]) -> None:
    for name in ("reader", "steward", "approver", "admin", "stranger"):
        client = api(name)
        ensure_registry(name="extra", by=system)
        answer = getattr(client, method)(path) if body is None else send(client, path, body, method)
        assert answer.status_code == (200 if name in roles else 403), name
    assert error_of(getattr(Client(), method)(path))["status"] == "UNAUTHENTICATED"
    wrong = Client(headers={"authorization": "Bearer wrong"})
    assert error_of(getattr(wrong, method)(path))["status"] == "UNAUTHENTICATED"


@pytest.mark.requirement("GOO-4")
def test_registries_of_other_projects_and_who_may_use_them(admin: Client, api: Api, person: Any, system: Actor) -> None:
    place = "/v1/projects/other/locations/europe-west1"
    made = send(admin, f"{place}/schemaRegistries", {"schemaRegistryId": "dev"}).json()
    assert made["name"] == "projects/other/locations/europe-west1/schemaRegistries/dev"
    assert admin.get("/v1/projects/other/locations").json()["locations"] == [
        {"name": "projects/other/locations/europe-west1", "locationId": "europe-west1", "displayName": "europe-west1"}
    ]
    names = [item["name"] for item in admin.get(f"{place}/schemaRegistries").json()["schemaRegistries"]]
    assert names == [made["name"]]
    # A grant for `dev` is one for the configured project's.
    person("stranger")
    user = person("stranger").user_id
    RoleGrant.objects.create(user_id=user, role="reader", registry="dev")
    limited = RawClient(headers={"authorization": f"Bearer {issue_token(username='stranger', name='t', by=system)}"})
    assert limited.get(f"{DEV}/subjects").status_code == 200
    assert limited.get(f"{place}/schemaRegistries/dev/subjects").status_code == 403
    RoleGrant.objects.create(user_id=user, role="reader", registry=made["name"])
    assert limited.get(f"{place}/schemaRegistries/dev/subjects").status_code == 200


@pytest.mark.requirement("GOO-4")
def test_registries_of_one_name_in_two_projects_are_apart(admin: Client) -> None:
    place = "/v1/projects/other/locations/europe-west1"
    send(admin, f"{place}/schemaRegistries", {"schemaRegistryId": "dev"})
    other = f"{place}/schemaRegistries/dev"
    assert get_registry(RegistryResource("other", "europe-west1", "dev").key).project == "other"
    assert register(admin, "s", base=other).json() == {"id": 1}
    assert admin.get(f"{DEV}/subjects").json() == []
    assert admin.get(f"{other}/subjects").json() == ["s"]
    by_resource_name = quote(other.removeprefix("/v1/"), safe="")
    assert admin.get(f"/registries/{by_resource_name}/subjects").status_code == 404, "no other door leads there"
    assert send(admin, f"{other}/config", {"compatibility": "FULL"}, "put").status_code == 200
    assert admin.get(f"{DEV}/config").json()["compatibility"] == "BACKWARD"
    assert send(admin, f"{other}/mode/s", {"mode": "READONLY"}, "put").status_code == 200
    assert admin.delete(f"{other}/mode/s").json() == {"mode": "READONLY"}
    assert admin.delete(f"{other}/subjects/s").json() == [1]
    assert admin.delete(other).json() == {}
    assert admin.get(DEV).status_code == 200


PAGES = (
    f"{PLACE}/schemaRegistries",
    DEV,
    f"{DEV}/contexts",
    f"{DEV}/contexts/default",
    f"{DEV}/subjects",
    f"{DEV}/subjects/s0/versions",
    f"{DEV}/schemas/ids/1/subjects",
    f"{DEV}/schemas/ids/1/versions",
    f"{DEV}/subjects/s0/versions/1/referencedby",
    "/v1/projects/local/locations",
)


@pytest.mark.slow
@pytest.mark.requirement("GOO-4")
def test_a_page_costs_the_same_however_much_is_on_it(admin: Client, system: Actor) -> None:
    def fill(numbers: range) -> None:
        for number in numbers:
            register(admin, f"s{number}")
            register(admin, "s0", {"type": "fixed", "name": f"F{number}", "size": 2})
            register(admin, "s", base=f"{DEV}/contexts/c{number}")
            ensure_registry(name=f"r{number}", by=system)
            ensure_registry(name="r", location=f"l{number}", by=system)
            users = [{"name": "x", "subject": "s0", "version": 1}]
            register(admin, f"u{number}", {"type": "fixed", "name": f"U{number}", "size": 2}, references=users)

    def cost(path: str) -> tuple[int, int]:
        with CaptureQueriesContext(connection) as queries:
            answer = admin.get(path)
        assert answer.status_code == 200
        return len(queries), len(answer.content)

    send(admin, f"{DEV}/config/s0", {"compatibility": "NONE"}, "put")
    fill(range(2))
    few = {path: cost(path) for path in PAGES}
    fill(range(2, 8))
    for path in PAGES:
        (queries, size), (queries_before, size_before) = cost(path), few[path]
        assert size > size_before, path
        assert queries == queries_before <= 10, path


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (IntegrityError("a registry that was deleted"), 409, "ABORTED"),
        (OperationalError("gone"), 503, "UNAVAILABLE"),
        (BrokerUnavailable("no broker"), 503, "UNAVAILABLE"),
        (KeyError("secret"), 500, "INTERNAL"),
    ],
)
def test_errors_that_no_call_foresees_tell_nothing_of_the_inside(error: Exception, code: int, status: str) -> None:
    answer = handle(error, {})
    assert (answer.status_code, answer.data["error"]["code"], answer.data["error"]["status"]) == (code, code, status)
    assert not any(word in answer.data["error"]["message"] for word in ("deleted", "gone", "secret"))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    *("schema", "schemaType", "references", "version", "id", "normalize", "deleted", "verbose"),
    *("compatibility", "mode", "schemaRegistryId", "schemaRegistry", "name", "subject"),
)
CALLS = st.sampled_from(
    [
        ("post", f"{PLACE}/schemaRegistries"),
        ("post", DEV + "/subjects/{}"),
        ("post", DEV + "/subjects/{}/versions"),
        ("post", DEV + "/contexts/{}/subjects/s/versions"),
        ("post", DEV + "/compatibility/subjects/{}/versions/{}"),
        ("put", DEV + "/config/{}"),
        ("put", DEV + "/contexts/{}/config"),
        ("put", DEV + "/mode/{}"),
        ("get", DEV + "/subjects/{}/versions/{}"),
        ("get", DEV + "/schemas/ids/{}/versions"),
        ("get", DEV + "/contexts/{}"),
        ("get", "/v1/projects/{}/locations/{}/schemaRegistries"),
        ("get", "/v1/projects/{}/locations/{}/schemaRegistries/{}/subjects"),
        ("post", "/v1/projects/{}/locations/{}/schemaRegistries"),
        ("delete", DEV + "/subjects/{}/versions/{}"),
        ("delete", DEV + "/mode/{}"),
    ]
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    call=CALLS,
    names=st.lists(st.text(min_size=1, max_size=12) | st.sampled_from(["s", "1", "dev"]), min_size=3, max_size=3),
    body=JSON_VALUES | st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES | st.just(SCHEMA), max_size=4),
)
def test_no_call_ends_in_an_internal_error(
    admin: Client, call: tuple[str, str], names: list[str], body: object
) -> None:
    method, path = call
    quoted = [quote(name.encode("utf-8", "replace"), safe="") for name in names]
    address = path.format(*quoted)
    answer = admin.get(address) if method == "get" else send(admin, address, body, method)
    assert answer.status_code < 500, answer.content
    if answer.status_code >= 400:
        error_of(answer)


def test_a_refusal_before_any_view_has_this_dialects_shape() -> None:
    assert refusal(413, "too long") == {
        "error": {"code": 413, "message": "too long", "status": "INVALID_ARGUMENT", "details": []}
    }
