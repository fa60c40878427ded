"""Spring's dialect beside the recorded cases: other dialects, rights, registries, formats, costs, equality, the root path."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.apps import spring_has_a_path_of_its_own
from registry.api.spring.serializers import equality_key, formats
from registry.api.spring.views import problem_of, spring_addresses
from registry.subjects.selectors import get_version
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import parse_subject
from tests.api.spring.spring_calls import BREAKING, V1, V2, register

CONFLUENT = "application/vnd.schemaregistry.v1+json"
#: by Spring's word for the format, a text as somebody would write it
TEXTS = {
    "avro": '{"type": "record", "name": "Order",\n "fields": []}',
    "json": '{"type": "object",\n "properties": {"id": {"type": "integer"}}}',
    "protobuf": 'syntax = "proto3";\n\nmessage Order {\n  int64 id = 1; // given once\n}\n',
}


def through_confluent(client: Client, subject: str, schema: Any, **body: Any) -> Any:
    data = json.dumps({"schema": json.dumps(schema), **body})
    return client.post(f"/subjects/{quote(subject, safe='')}/versions", data, content_type=CONFLUENT)


@pytest.mark.requirement("SCS-1", "SCS-2")
def test_one_registry_whatever_the_dialect(steward: Client) -> None:
    first = register(steward, "orders-value", V1).json()
    assert through_confluent(steward, "orders-value", V1).json()["version"] == 1, "Confluent's made a second version"
    assert through_confluent(steward, "orders-value", V2).json()["version"] == 2
    versions = steward.get("/spring/orders-value/avro").json()
    assert [(v["version"], json.loads(v["definition"])) for v in versions] == [(1, V1), (2, V2)]
    again = register(steward, "orders-value", V2).json()
    assert again == versions[1]
    assert steward.get(f"/spring/schemas/{versions[1]['id']}").json() == versions[1]
    assert json.loads(steward.get("/subjects/orders-value/versions/1").json()["schema"]) == V1
    assert first["id"] != again["id"]


@pytest.mark.requirement("SCS-1")
def test_an_incompatible_schema_is_refused_with_the_reason_and_changes_nothing(steward: Client) -> None:
    register(steward, "orders-value", V1)
    refused = register(steward, "orders-value", BREAKING)
    assert refused.status_code == 409
    assert refused.json()["error"] == "Conflict"
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in refused.json()["message"]
    assert len(steward.get("/spring/orders-value/avro").json()) == 1


@pytest.mark.requirement("SCS-1")
def test_an_id_is_the_versions_own_and_of_its_registry(steward: Client) -> None:
    here = register(steward, "orders-value", V1).json()
    there = register(steward, "orders-value", V1, root="/registries/staging/spring").json()
    other = register(steward, "orders-copy", V1).json()
    assert len({here["id"], there["id"], other["id"]}) == 3
    assert steward.get(f"/spring/schemas/{there['id']}").status_code == 404
    assert steward.get(f"/registries/staging/spring/schemas/{there['id']}").json() == there
    assert register(steward, "a", V1, root="/registries/nowhere/spring").status_code == 404


@pytest.mark.requirement("SCS-1")
@pytest.mark.parametrize("word", formats())
def test_every_format_under_its_own_word(steward: Client, word: str) -> None:
    made = register(steward, "orders-value", TEXTS[word], schema_format=word)
    assert made.status_code == 201
    assert made.json() == {
        "id": made.json()["id"],
        "version": 1,
        "subject": "orders-value",
        "format": word,
        "definition": TEXTS[word],
    }
    assert register(steward, "orders-value", TEXTS[word], schema_format=word).json() == made.json()
    assert steward.get(f"/spring/orders-value/{word}").json() == [made.json()]
    others = [other for other in ("avro", "json", "protobuf", "xml") if other != word]
    assert [steward.get(f"/spring/orders-value/{other}/v1").status_code for other in others] == [404] * 3


def test_a_subject_of_another_context(steward: Client) -> None:
    made = register(steward, ":.lab:orders-value", V1).json()
    assert made["subject"] == ":.lab:orders-value"
    assert steward.get("/spring/%3A.lab%3Aorders-value/avro/v1").json() == made
    assert steward.get("/contexts/.lab/subjects").json() == [":.lab:orders-value"]


def test_a_version_tells_by_which_channel_it_came(steward: Client) -> None:
    register(steward, "orders-value", V1)
    info = get_version(get_registry(), parse_subject("orders-value"), 1)
    assert (info.channel, info.created_by) == ("spring", "steward")


def test_the_location_leads_to_the_version(steward: Client) -> None:
    for root in ("/spring", "/registries/staging/spring"):
        made = register(steward, "a/b c", V1, root=root)
        assert made["Location"] == f"http://testserver{root}/a%2Fb%20c/avro/v1"
        assert steward.get(made["Location"].removeprefix("http://testserver")).json() == made.json()


def test_what_refers_to_others_comes_whole(steward: Client) -> None:
    address = {"type": "record", "name": "Address", "namespace": "demo", "fields": [{"name": "city", "type": "string"}]}
    customer = {"type": "record", "name": "Customer", "fields": [{"name": "home", "type": "demo.Address"}]}
    through_confluent(steward, "address", address)
    references = [{"name": "demo.Address", "subject": "address", "version": 1}]
    assert through_confluent(steward, "customer", customer, references=references).status_code == 200
    found = json.loads(steward.get("/spring/customer/avro/v1").json()["definition"])
    assert found["fields"][0]["type"]["fields"] == address["fields"]


def test_soft_deleted_versions_are_not_there(steward: Client) -> None:
    made = [register(steward, "orders-value", schema).json() for schema in (V1, V2)]
    assert steward.delete("/subjects/orders-value/versions/1").json() == 1
    assert steward.get("/spring/orders-value/avro/v1").status_code == 404
    assert steward.get(f"/spring/schemas/{made[0]['id']}").status_code == 404
    assert [v["version"] for v in steward.get("/spring/orders-value/avro").json()] == [2]


def test_read_only_keeps_what_is_registered_usable(api: Callable[[str], Client], steward: Client) -> None:
    first = register(steward, "orders-value", V1).json()
    assert api("admin").put("/mode", '{"mode": "READONLY"}', content_type=CONFLUENT).status_code == 200
    refused = register(steward, "orders-value", V2)
    assert (refused.status_code, refused.json()["message"]) == (
        409,
        "Subject orders-value in context . is in read-only mode",
    )
    assert register(steward, "orders-value", V1).json() == first


def test_who_may(api: Callable[[str], Client], registries: None) -> None:
    nobody = register(Client(), "a", V1)
    assert nobody.status_code == 401
    assert nobody["WWW-Authenticate"]
    assert nobody.json()["error"] == "Unauthorized"
    assert Client(headers={"authorization": "Bearer wrong"}).get("/spring/a/avro").status_code == 401
    assert register(api("reader"), "a", V1).status_code == 403
    made = register(api("steward"), "a", V1).json()
    for path in ("/spring/a/avro", "/spring/a/avro/v1", f"/spring/schemas/{made['id']}"):
        assert api("reader").get(path).status_code == 200
        assert api("stranger").get(path).status_code == 403


@pytest.mark.requirement("SCS-1")
def test_deletion_is_off_unless_allowed_and_then_takes_the_right(
    api: Callable[[str], Client], steward: Client, settings: Any
) -> None:
    made = [register(steward, "orders-value", schema).json() for schema in (V1, V2)]
    paths = ("/spring/orders-value/avro/v2", f"/spring/schemas/{made[0]['id']}", "/spring/orders-value")
    for path in paths:
        assert api("admin").delete(path).status_code == 405
    settings.SPRING_ALLOW_DELETION = True
    for path in paths:
        assert steward.delete(path).status_code == 403
    assert len(steward.get("/spring/orders-value/avro").json()) == 2
    for path in paths:
        gone = api("admin").delete(path)
        assert (gone.status_code, gone.content) == (200, b"")
    assert steward.get("/subjects?deleted=true").json() == []


def test_what_others_refer_to_is_not_deleted(api: Callable[[str], Client], steward: Client, settings: Any) -> None:
    settings.SPRING_ALLOW_DELETION = True
    address = {"type": "record", "name": "Address", "namespace": "demo", "fields": [{"name": "city", "type": "string"}]}
    customer = {"type": "record", "name": "Customer", "fields": [{"name": "home", "type": "demo.Address"}]}
    made = register(steward, "address", address).json()
    references = [{"name": "demo.Address", "subject": "address", "version": 1}]
    through_confluent(steward, "customer", customer, references=references)
    for path in ("/spring/address/avro/v1", f"/spring/schemas/{made['id']}", "/spring/address"):
        refused = api("admin").delete(path)
        assert refused.status_code == 409
        assert "references" in refused.json()["message"]
    assert steward.get("/spring/address/avro/v1").json() == made, "half of a refused deletion was kept"


def test_a_list_costs_the_same_for_one_and_for_many(steward: Client) -> None:
    def cost(path: str) -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert steward.get(path).status_code == 200
        return len(queries)

    register(steward, "one", V1)
    schema = dict(V1)
    for number in range(12):
        schema = {**schema, "fields": [*schema["fields"], {"name": f"f{number}", "type": "int", "default": 0}]}
        assert register(steward, "many", schema).status_code == 201
    assert cost("/spring/many/avro") == cost("/spring/one/avro")
    assert len(steward.get("/spring/many/avro").json()) == 12


@pytest.mark.requirement("SCS-1")
def test_an_alias_leads_to_its_subject_as_in_the_other_dialects(steward: Client) -> None:
    register(steward, "orders-value", V1)
    assert (
        steward.put("/config/short", json.dumps({"alias": "orders-value"}), content_type=CONFLUENT).status_code == 200
    )
    made = register(steward, "short", V2)
    assert (made.status_code, made.json()["subject"], made.json()["version"]) == (201, "orders-value", 2)
    assert made["Location"].endswith("/orders-value/avro/v2")
    assert steward.get("/spring/short/avro").json() == steward.get("/spring/orders-value/avro").json()
    assert steward.get("/spring/short/avro/v2").json() == made.json()
    assert steward.get("/subjects").json() == ["orders-value"], "a subject of the alias's own name was made"


@pytest.mark.parametrize(
    "root", ["", "/", "//", "ui/", "subjects", "/schemas/x", "a b", "../x", "<segment:x>", "v1/spring"]
)
def test_the_path_can_not_hide_other_addresses(root: str, settings: Any) -> None:
    assert problem_of(root)
    assert spring_addresses(root) == []
    settings.SPRING_PATH = root
    (error,) = spring_has_a_path_of_its_own()
    assert error.id == "schemadesk.E001"


@pytest.mark.requirement("SCS-1")
@pytest.mark.parametrize("root", ["spring/", "/scs", "java/spring-cloud"])
def test_the_path_is_a_setting(root: str, steward: Client, settings: Any) -> None:
    settings.SPRING_PATH = root
    assert spring_has_a_path_of_its_own() == []
    settings.ROOT_URLCONF = tuple(spring_addresses(root))
    place = f"/{root.strip('/')}"
    made = register(steward, "user", V1, root=place)
    assert made["Location"] == f"http://testserver{place}/user/avro/v1"
    assert steward.get(f"{place}/user/avro/v1").json() == made.json()
    assert steward.get(f"{place}/user/avro/v2").json()["path"] == f"{place}/user/avro/v2"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (
            {"type": "enum", "name": "E", "doc": "x", "symbols": ["A"]},
            {"type": "enum", "name": "E", "symbols": ["A"]},
            True,
        ),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": 1}]},
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": 1.0}]},
            False,
        ),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": "boolean", "default": True}]},
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": "boolean", "default": 1}]},
            False,
        ),
        (
            {
                "type": "record",
                "name": "R",
                "fields": [
                    {
                        "name": "a",
                        "type": {"type": "map", "values": {"type": "fixed", "name": "F", "size": 2, "aliases": ["G"]}},
                    }
                ],
            },
            {
                "type": "record",
                "name": "R",
                "fields": [{"name": "a", "type": {"type": "map", "values": {"type": "fixed", "name": "F", "size": 2}}}],
            },
            True,
        ),
        (
            {"type": "record", "name": "R", "x": {"doc": 1}, "fields": []},
            {"type": "record", "name": "R", "x": {"doc": 2}, "fields": []},
            False,
        ),
        (
            {"type": "record", "name": "R", "x": 1, "y": 2, "fields": []},
            {"type": "record", "name": "R", "y": 2, "x": 1, "fields": []},
            True,
        ),
        (["int", "null"], ["null", "int"], False),
    ],
)
def test_what_counts_as_the_same_schema(one: Any, other: Any, same: bool) -> None:
    assert (equality_key(json.dumps(one)) == equality_key(json.dumps(other))) is same
