"""Confluent's API: calls in, statuses and bodies out, and what they cost in queries."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from registry.subjects.registration.registration import UNSEEN_TEXTS
from registry.subjects.versions import parsed_schemas

CONTENT = "application/vnd.schemaregistry.v1+json"
V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
BREAKING = {**V1, "fields": [*V1["fields"], {"name": "total", "type": "double"}]}


@pytest.fixture
def steward(api: Callable[[str], Client]) -> Client:
    return api("steward")


def send(client: Client, path: str, schema: object, **body: object):
    data = json.dumps({"schema": json.dumps(schema), **body})
    return client.post(path, data, content_type=CONTENT)


@pytest.mark.requirement("GOO-1")
def test_a_subject_may_be_called_anything_that_looks_like_an_address(steward: Client) -> None:
    path = f"/subjects/{quote('a/versions/1', safe='')}/versions"
    assert send(steward, path, V1).json()["id"] == 1
    assert steward.get("/subjects").json() == ["a/versions/1"]
    assert steward.get(f"{path}/1").json()["subject"] == "a/versions/1"
    assert steward.get("/subjects/a/versions/1").json()["error_code"] == 40401


@pytest.mark.requirement("GOO-1")
def test_a_compatible_schema_becomes_the_next_version_and_the_same_one_keeps_its_id(steward: Client) -> None:
    first = send(steward, "/subjects/orders-value/versions", V1)
    assert first.status_code == 200
    assert first["Content-Type"] == CONTENT
    assert first.json()["id"] == 1
    second = send(steward, "/subjects/orders-value/versions", V2).json()
    assert (second["id"], second["version"]) == (2, 2)
    again = send(steward, "/subjects/orders-value/versions", V1).json()
    assert (again["id"], again["version"]) == (1, 1)
    assert send(steward, "/subjects/other-value/versions", V1).json()["id"] == 1
    assert steward.get("/subjects/orders-value/versions").json() == [1, 2]
    assert json.loads(steward.get("/schemas/ids/2").json()["schema"]) == V2
    assert steward.get("/schemas/ids/1/versions").json() == [
        {"subject": "orders-value", "version": 1},
        {"subject": "other-value", "version": 1},
    ]


@pytest.mark.requirement("GOO-1")
def test_an_incompatible_schema_is_refused_with_all_reasons_and_changes_nothing(steward: Client) -> None:
    send(steward, "/subjects/orders-value/versions", V1)
    refused = send(steward, "/subjects/orders-value/versions", BREAKING)
    assert refused.status_code == 409
    assert refused.json()["error_code"] == 409
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in refused.json()["message"]
    assert steward.get("/subjects/orders-value/versions").json() == [1]
    assert send(steward, "/subjects/orders-value/versions", V2).json()["id"] == 2, "the refusal used up an id"


HEADER = "confluent-accept-unknown-properties"
WHOLE = {"id", "version", "guid", "schema", "ts"}
#: headers and query of a registration → the properties of its answer
TAKES = {
    "nothing said, as @kafkajs and srclient": ({}, "", {"id"}),
    "a media type": ({"accept": CONTENT}, "", WHOLE),
    "any media type, as curl": ({"accept": "*/*"}, "", WHOLE),
    "a later parameter, as Go": ({}, "?normalize=false", WHOLE),
    "the header": ({HEADER: "true"}, "", WHOLE),
    "the header says no": ({"accept": CONTENT, HEADER: "false"}, "?normalize=false", {"id"}),
}


@pytest.mark.parametrize("name", TAKES)
def test_a_registration_answers_as_much_as_the_client_takes(steward: Client, name: str) -> None:
    headers, query, properties = TAKES[name]
    del steward.defaults["HTTP_ACCEPT"]
    for _ in range(2):  # a new version, and the one that is there
        data = json.dumps({"schema": json.dumps(V1)})
        answer = steward.post(f"/subjects/s/versions{query}", data, content_type=CONTENT, headers=headers)
        assert (answer.status_code, set(answer.json()), answer.json()["id"]) == (200, properties, 1)


def test_a_wrong_header_is_named(steward: Client) -> None:
    data = json.dumps({"schema": json.dumps(V1)})
    answer = steward.post("/subjects/s/versions", data, content_type=CONTENT, headers={HEADER: "yes"})
    assert answer.status_code == 422
    assert "Confluent-Accept-Unknown-Properties is 'yes'; it must be true or false" in answer.json()["message"]
    assert steward.get("/subjects").json() == []


def test_a_descriptor_goes_back_as_a_descriptor(steward: Client) -> None:
    text = 'syntax = "proto3";\npackage demo;\n\nmessage Order {\n  int64 id = 1;\n}\n'
    data = json.dumps({"schema": text, "schemaType": "PROTOBUF"})
    written = steward.post("/subjects/p/versions", data, content_type=CONTENT).json()
    assert "message Order" in written["schema"]
    encoded = steward.get("/schemas/ids/1?format=serialized").json()["schema"]
    data = json.dumps({"schema": encoded, "schemaType": "PROTOBUF"})
    for path in ("/subjects/p/versions", "/subjects/p"):
        assert steward.post(path, data, content_type=CONTENT).json() == {
            **written,
            "schema": encoded,
            **({"subject": "p"} if path == "/subjects/p" else {}),
        }


def test_whitespace_makes_no_version(steward: Client) -> None:
    send(steward, "/subjects/orders-value/versions", V1)
    spaced = json.dumps({"schema": json.dumps(V1, indent=4)})
    answer = steward.post("/subjects/orders-value/versions", spaced, content_type=CONTENT).json()
    assert (answer["id"], answer["version"]) == (1, 1)


def test_look_up(steward: Client) -> None:
    send(steward, "/subjects/orders-value/versions", V1)
    found = send(steward, "/subjects/orders-value", V1).json()
    assert (found["subject"], found["version"], found["id"]) == ("orders-value", 1, 1)
    assert send(steward, "/subjects/orders-value", V2).json() == {"error_code": 40403, "message": "Schema not found"}
    assert send(steward, "/subjects/nothing", V2).json()["error_code"] == 40401


@pytest.mark.parametrize(
    ("path", "code", "status"),
    [
        ("/subjects/none/versions", 40401, 404),
        ("/subjects/none/versions/1", 40401, 404),
        ("/subjects/orders-value/versions/7", 40402, 404),
        ("/subjects/orders-value/versions/0", 42202, 422),
        ("/subjects/orders-value/versions/earliest", 42202, 422),
        ("/schemas/ids/99", 40403, 404),
        ("/config/orders-value", 40408, 404),
        ("/mode/orders-value", 40409, 404),
        ("/nowhere", 404, 404),
        ("/registries/none/subjects", 404, 404),
    ],
)
def test_what_is_not_there_is_named(steward: Client, path: str, code: int, status: int) -> None:
    send(steward, "/subjects/orders-value/versions", V1)
    answer = steward.get(path)
    assert (answer.status_code, answer.json()["error_code"]) == (status, code)


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("{", 400, "line 1, column 2"),
        ("", 422, "no body"),
        ("[]", 422, "an array"),
        ('{"schema": 7}', 422, "/schema is a number"),
        ('{"schema": ""}', 42201, "Empty schema"),
        ('{"schema": "{\\n  \\"type\\": \\"recor\\"}"}', 42201, "line 2"),
        ('{"schema": "\\"int\\"", "schemaType": "XML"}', 42201, "XML"),
        ('{"schema": "\\"int\\"", "references": [{"name": "a"}]}', 422, "/references/0/subject"),
        ('{"schema": "\\"int\\"", "references": [{"name":"a","subject":"b","version":1}]}', 42201, 'subject "b"'),
    ],
)
def test_a_bad_body_is_named_with_its_place(steward: Client, body: str, code: int, words: str) -> None:
    answer = steward.post("/subjects/orders-value/versions", body, content_type=CONTENT)
    assert answer.json()["error_code"] == code
    assert words in answer.json()["message"]
    assert steward.get("/subjects").json() == []


def test_methods_and_types_that_are_not_spoken(steward: Client) -> None:
    assert steward.put("/subjects").json() == {"error_code": 405, "message": "HTTP 405 Method Not Allowed"}
    answer = steward.post("/subjects/a/versions", "<xml/>", content_type="text/xml")
    assert (answer.status_code, answer.json()["message"]) == (415, "HTTP 415 Unsupported Media Type")
    answer = steward.get("/subjects", headers={"accept": "application/json"})
    assert answer["Content-Type"] == "application/json"


@pytest.mark.requirement("GOO-3")
def test_levels_are_inherited_and_overridden(steward: Client) -> None:
    assert steward.get("/config").json() == {"compatibilityLevel": "BACKWARD"}
    put = steward.put("/config/user-events", '{"compatibility": "full"}', content_type=CONTENT)
    assert put.json() == {"compatibility": "full"}
    steward.put("/config", '{"compatibility": "FORWARD"}', content_type=CONTENT)
    assert steward.get("/config/user-events").json() == {"compatibilityLevel": "FULL"}
    assert steward.get("/config/other?defaultToGlobal=true").json() == {"compatibilityLevel": "FORWARD"}
    assert steward.delete("/config/user-events").json() == {"compatibilityLevel": "FULL"}
    assert steward.get("/config/user-events").json()["error_code"] == 40408
    wrong = steward.put("/config", '{"compatibility": "SIDEWAYS"}', content_type=CONTENT).json()
    assert wrong["error_code"] == 42203


@pytest.mark.requirement("GOO-2")
@pytest.mark.parametrize(
    ("level", "accepted"),
    [
        ("NONE", True),
        ("BACKWARD", False),
        ("BACKWARD_TRANSITIVE", False),
        ("FORWARD", True),
        ("FORWARD_TRANSITIVE", True),
        ("FULL", False),
        ("FULL_TRANSITIVE", False),
    ],
)
def test_each_level_decides(steward: Client, level: str, accepted: bool) -> None:
    send(steward, "/subjects/orders-value/versions", V1)
    steward.put("/config/orders-value", json.dumps({"compatibility": level}), content_type=CONTENT)
    asked = send(steward, "/compatibility/subjects/orders-value/versions/latest?verbose=true", BREAKING).json()
    assert asked["is_compatible"] is accepted
    assert bool(asked["messages"]) is not accepted
    assert (send(steward, "/subjects/orders-value/versions", BREAKING).status_code == 200) is accepted


def test_compatibility_with_what_is_absent(steward: Client) -> None:
    send(steward, "/subjects/orders-value/versions", V1)
    assert send(steward, "/compatibility/subjects/none/versions/latest", V1).json() == {"is_compatible": True}
    assert send(steward, "/compatibility/subjects/none/versions", V1).json() == {"is_compatible": True}
    assert send(steward, "/compatibility/subjects/orders-value/versions/100", V1).json()["error_code"] == 40402
    assert send(steward, "/compatibility/subjects/orders-value/versions/earliest", V1).json()["error_code"] == 42202


@pytest.mark.requirement("GOO-6")
def test_readonly_stops_versions(api: Callable[[str], Client], steward: Client) -> None:
    admin = api("admin")
    assert steward.put("/mode", '{"mode": "READONLY"}', content_type=CONTENT).status_code == 403
    assert admin.put("/mode", '{"mode": "READONLY"}', content_type=CONTENT).json() == {"mode": "READONLY"}
    assert send(steward, "/subjects/orders-value/versions", V1).json()["error_code"] == 42205
    admin.put("/mode/orders-value", '{"mode": "READWRITE"}', content_type=CONTENT)
    assert send(steward, "/subjects/orders-value/versions", V1).status_code == 200
    admin.put("/mode", '{"mode": "READONLY_OVERRIDE"}', content_type=CONTENT)
    assert send(steward, "/subjects/orders-value/versions", V2).json()["error_code"] == 42205


def test_delete_and_register_again(steward: Client) -> None:
    for schema in (V1, V2):
        send(steward, "/subjects/orders-value/versions", schema)
    assert steward.delete("/subjects/orders-value").json() == [1, 2]
    assert steward.get("/subjects").json() == []
    assert steward.get("/subjects?deleted=true").json() == ["orders-value"]
    assert steward.delete("/subjects/orders-value").json()["error_code"] == 40404
    for schema, version, schema_id in ((V1, 3, 1), (V2, 4, 2)):
        answer = send(steward, "/subjects/orders-value/versions", schema).json()
        assert (answer["version"], answer["id"]) == (version, schema_id)
    assert steward.get("/subjects/orders-value/versions/1").json()["error_code"] == 40402


def test_permanent_deletion_needs_a_soft_one_and_the_right(api: Callable[[str], Client], steward: Client) -> None:
    admin = api("admin")
    send(steward, "/subjects/orders-value/versions", V1)
    assert steward.delete("/subjects/orders-value?permanent=true").status_code == 403
    assert admin.delete("/subjects/orders-value?permanent=true").json()["error_code"] == 40405
    assert admin.delete("/subjects/orders-value/versions/1?permanent=true").json()["error_code"] == 40407
    assert admin.delete("/subjects/orders-value/versions/1").json() == 1
    assert admin.delete("/subjects/orders-value/versions/1").json()["error_code"] == 40406
    assert admin.delete("/subjects/orders-value/versions/1?permanent=true").json() == 1
    assert admin.get("/subjects?deleted=true").json() == []
    assert admin.get("/schemas/ids/1").json()["error_code"] == 40403
    assert send(steward, "/subjects/orders-value/versions", V1).json()["id"] == 2, "an id was given twice"


@pytest.mark.requirement("GOO-5")
def test_references_resolve_and_protect(steward: Client) -> None:
    address = {"type": "record", "name": "Address", "namespace": "demo", "fields": [{"name": "city", "type": "string"}]}
    customer = {"type": "record", "name": "Customer", "fields": [{"name": "home", "type": "demo.Address"}]}
    references = [{"name": "demo.Address", "subject": "address", "version": 1}]
    assert send(steward, "/subjects/customer/versions", customer).json()["error_code"] == 42201
    send(steward, "/subjects/address/versions", address)
    assert send(steward, "/subjects/customer/versions", customer, references=references).status_code == 200
    assert steward.get("/subjects/customer/versions/1").json()["references"] == references
    assert steward.get("/subjects/address/versions/1/referencedby").json() == [2]
    assert steward.delete("/subjects/address").json()["error_code"] == 42206
    assert steward.delete("/subjects/address/versions/1").json()["error_code"] == 42206


def test_contexts_count_their_own_ids(steward: Client) -> None:
    send(steward, "/subjects/orders-value/versions", V1)
    assert send(steward, "/subjects/:.lab:orders-value/versions", V2).json()["id"] == 1
    assert steward.get("/contexts").json() == [".", ".lab"]
    assert steward.get("/contexts/.lab/subjects").json() == [":.lab:orders-value"]
    assert json.loads(steward.get("/contexts/.lab/schemas/ids/1").json()["schema"]) == V2
    assert json.loads(steward.get("/schemas/ids/1?subject=:.lab:").json()["schema"]) == V2
    assert steward.get("/subjects?subjectPrefix=ord").json() == ["orders-value"]


def test_the_registries_are_apart(steward: Client) -> None:
    send(steward, "/registries/staging/subjects/orders-value/versions", V1)
    assert steward.get("/subjects").json() == []
    assert steward.get("/registries/staging/subjects").json() == ["orders-value"]
    closed = send(steward, "/registries/prod/subjects/orders-value/versions", V1)
    assert closed.json()["error_code"] == 42205


@pytest.mark.parametrize("name", ["a\x00b", "tab\there", "__GLOBAL", "x" * 1025])
def test_names_that_are_refused_everywhere(steward: Client, name: str) -> None:
    where = quote(name, safe="")
    assert send(steward, f"/subjects/{where}/versions", V1).json()["error_code"] == 42208
    assert steward.get(f"/subjects/{where}/versions").json()["error_code"] == 42208


@pytest.mark.parametrize("name", ["{}", "100%", "ünï code", "a b", "日本", "a/b", "q?x#y", "..", "a\\b"])
def test_names_that_work_everywhere(steward: Client, name: str) -> None:
    where = quote(name, safe="") if name != ".." else "%2E%2E"
    assert send(steward, f"/subjects/{where}/versions", V1).status_code == 200
    assert steward.get("/subjects").json() == [name]
    assert steward.get(f"/subjects/{where}/versions/latest").json()["subject"] == name
    assert steward.delete(f"/subjects/{where}").json() == [1]


def test_a_path_that_is_not_utf8(steward: Client) -> None:
    assert steward.get("/subjects/%ff").status_code == 400


def test_who_may(api: Callable[[str], Client], registries: None) -> None:
    assert Client().get("/subjects").status_code == 401
    assert Client(headers={"authorization": "Bearer wrong"}).get("/subjects").json()["error_code"] == 401
    assert send(api("reader"), "/subjects/a/versions", V1).status_code == 403
    assert api("stranger").get("/subjects").status_code == 403


@pytest.mark.requirement("ORA-1")
def test_force_is_for_those_with_the_right(api: Callable[[str], Client], steward: Client) -> None:
    send(steward, "/subjects/orders-value/versions", V1)
    assert send(steward, "/subjects/orders-value/versions?force=true", BREAKING).status_code == 403
    assert send(api("admin"), "/subjects/orders-value/versions?force=true", BREAKING).json()["version"] == 2


def test_other_contexts_are_looked_into_only_where_one_may_read(api: Callable[[str], Client], steward: Client) -> None:
    from registry.access.models import RoleGrant

    send(steward, "/subjects/:.lab:orders/versions", V1)
    assert steward.get("/subjects/orders/versions/1").json()["subject"] == ":.lab:orders"
    reader = api("reader")
    assert RoleGrant.objects.filter(user__username="reader").update(subject_pattern="orders") == 1
    assert reader.get("/subjects/orders/versions/1").json()["error_code"] == 40401
    assert reader.get("/subjects/:.lab:orders/versions/1").status_code == 403
    assert send(reader, "/subjects/orders", V1).json()["error_code"] == 40401


#: asked first, in one query: who calls, and which registry and subject the address means
SIGN_IN = 1
#: call → the most queries beside those; the number of subjects and versions plays no part
READS = {
    "/subjects": 3,
    "/subjects?deletedOnly=true": 3,
    "/subjects/s0/versions": 3,
    "/subjects/s0/versions?deletedAsNegative=true": 8,
    "/schemas": 5,
    "/schemas?subjectPrefix=:*:&latestOnly=true&aliases=true&ruleType=CEL": 6,
    "/schemas/ids/1/subjects": 4,
    "/schemas/ids/1/versions": 4,
    "/subjects/s0/versions/1/referencedby": 5,
    "/contexts": 2,
}
#: what running clients ask: by id, by version, the latest, look-up, and the same schema registered again
HOT = {
    ("GET", "/schemas/ids/1"): 1,
    ("GET", "/schemas/ids/1?subject=s0"): 1,
    ("GET", "/subjects/s0/versions/1"): 1,
    ("GET", "/subjects/s0/versions/latest"): 1,
    ("GET", "/subjects/s0/versions/1/schema"): 1,
    ("POST", "/subjects/s0"): 1,
    ("POST", "/subjects/s0/versions"): 2,
    ("POST", "/compatibility/subjects/s0/versions/latest"): 2,
}


def order(fields: int) -> str:
    """A record with so many fields, each with a default."""
    columns = [{"name": f"f{number}", "type": "int", "default": 0} for number in range(fields)]
    return json.dumps({"type": "record", "name": "Order", "fields": columns}, separators=(",", ":"))


@pytest.fixture
def fill(api: Callable[[str], Client]) -> Callable[[int], Client]:
    """So many subjects, in two contexts, each with so many versions; some are soft-deleted, one is referred to."""

    def make(count: int) -> Client:
        client = api("admin")
        using = {"schema": '{"type":"record","name":"U","fields":[{"name":"o","type":"Order"}]}'}
        for context in ("", ":.lab:"):
            for number in range(count):
                for fields in range(1, count + 1):
                    post(client, f"/subjects/{context}s{number}/versions", {"schema": order(fields)})
                post(client, f"/subjects/{context}u{number}/versions", {
                    **using, "references": [{"name": "Order", "subject": "s0", "version": 1}],
                    "ruleSet": {"domainRules": [{"name": f"r{number}", "type": "CEL"}]},
                })  # fmt: skip
            client.delete(f"/subjects/{context}s0/versions/{count}")
        return client

    return make


def post(client: Client, path: str, body: dict[str, Any]) -> None:
    assert client.post(path, json.dumps(body), content_type=CONTENT).status_code == 200


def cost(client: Client, method: str, path: str, body: str = "") -> int:
    """The number of queries of a call."""
    with CaptureQueriesContext(connection) as queries:
        answer = client.generic(method, path, body, content_type=CONTENT)
    assert answer.status_code == 200, answer.content
    told = [query["sql"] for query in queries if "SAVEPOINT" not in query["sql"]]
    return len(told) - SIGN_IN


@pytest.mark.parametrize("count", [2, 5])
def test_lists_cost_the_same_whatever_their_length(fill: Callable[[int], Client], count: int) -> None:
    client = fill(count)
    found = {path: cost(client, "GET", path) for path in READS}
    assert {path: number for path, number in found.items() if number > READS[path]} == {}


def test_what_clients_ask_all_the_time_is_cheap(fill: Callable[[int], Client]) -> None:
    client = fill(3)
    body = json.dumps({"schema": order(1)})
    found = {call: cost(client, *call, body) for call in HOT}
    assert {call: number for call, number in found.items() if number > HOT[call]} == {}


@pytest.mark.parametrize(("is_likely_new", "statements"), [(False, 5), (True, 4)])
def test_a_registration_takes_five_statements_at_most(
    fill: Callable[[int], Client], monkeypatch: pytest.MonkeyPatch, is_likely_new: bool, statements: int
) -> None:
    """It looks for the schema, unless it is likely new; locks the subject and reads its situation; locks the counter
    and adds the version.
    """
    client = fill(2)
    parsed_schemas.forget()
    monkeypatch.setattr(UNSEEN_TEXTS, "are_new", is_likely_new)
    assert cost(client, "POST", "/subjects/s1/versions", json.dumps({"schema": order(9)})) == statements
