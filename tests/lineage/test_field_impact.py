"""What breaks if a field is removed, renamed or changed in type, for every format and everything that may use it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from registry.access.roles import Actor, Grant
from registry.drift.models import Topic
from registry.errors import NotAllowed, NotFound
from registry.formats import FORMATS
from registry.formats.base import FieldEdit, Reference
from registry.lineage.field_edits import ImpactRow
from registry.lineage.field_impact import FieldImpact, field_impact
from registry.streams.models import CarriedVersion, StateSchema, StateVariable, StreamQuery
from registry.subjects.models import Registry
from registry.subjects.services import register_version, set_config
from registry.subjects.usage.clients import declare_client
from registry.subjects.versions.qualified_names import SubjectName
from tests.lineage.rows import make_flow

EVERYTHING = Actor("reader", "product", user_id=1, grants=(Grant("reader"),))
#: reads orders-value alone
NARROW = Actor("narrow", "product", user_id=1, grants=(Grant("reader", "dev", "orders-*"),))
ORDERS = SubjectName(".", "orders-value")


@pytest.fixture
def flow(registries: None, system: Actor) -> dict[str, Any]:
    return make_flow(system)


@pytest.fixture
def state(flow: dict[str, Any]) -> None:
    """The state of the query has the fields a and b of the subject's second version."""
    StreamQuery.objects.update(operators=[{"number": 0, "name": "transformWithStateExec"}])
    fields = [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in "ab"]
    schema = StateSchema.objects.create(
        variable=StateVariable.objects.get(), version=1, schema_id=0, file="f", content_hash="h", key_schema="{}",
        value_schema=json.dumps({"type": "struct", "fields": fields}),
    )  # fmt: skip
    CarriedVersion.objects.create(schema=schema, context=".", subject="orders-value", version=2, fields=["a", "b"])


def impact_of(path: str, subject: SubjectName = ORDERS, by: Actor = EVERYTHING) -> FieldImpact:
    return field_impact(Registry.objects.get(name="dev"), subject, path, by=by)


def named(impact: FieldImpact, kind: str, name: str = "") -> ImpactRow:
    return next(row for row in impact.rows if row.kind == kind and name in row.name)


def answers(row: ImpactRow) -> dict[str, str]:
    return {effect.edit: effect.answer for effect in row.effects}


def test_the_verdict_is_the_engines_for_each_edit_level_and_direction(flow: dict[str, Any]) -> None:
    impact = impact_of("Order.a")
    assert impact.edits == {
        "remove": 'remove "a"',
        "rename": 'rename "a" to "a_renamed"',
        "rename with alias": 'rename "a" to "a_renamed", with the old name as an alias',
        "change type": 'make "a" a boolean',
    }
    assert answers(named(impact, "level", "BACKWARD")) == {
        "remove": "fine", "rename": "fine", "rename with alias": "fine", "change type": "breaks",
    }  # fmt: skip
    readers, writers = named(impact, "readers"), named(impact, "writers")
    assert answers(readers) == dict.fromkeys(("remove", "rename", "rename with alias"), "care") | {
        "change type": "breaks"
    }
    assert readers.effects[0].sentence == "They read the default null instead of data."
    assert answers(writers) == {
        "remove": "fine", "rename": "care", "rename with alias": "fine", "change type": "breaks",
    }  # fmt: skip
    assert "old name" in writers.effects[1].sentence
    assert not any(row.name == "NONE" for row in impact.rows)


def test_what_feeds_and_uses_the_field_is_on_its_path(flow: dict[str, Any], state: None) -> None:
    impact = impact_of("Order.a")
    assert impact.nodes == {
        f"table:{flow['shop']}:shop.public.orders",
        f"connector:{flow['shop']}",
        "topic:dev:orders",
        "subject:dev:orders-value",
        f"query:{flow['query']}",
        f"sink:{flow['query']}",
        f"state:{flow['state']}",
        *(f"{side}:dev:{name}" for side in ("producer", "consumer") for name in ("billing", "checkout")),
    }
    assert "not known" in named(impact, "table").evidence
    assert set(answers(named(impact, "query")).values()) == {"unknown"}
    billing = answers(named(impact, "consumer", "billing"))
    assert billing == dict.fromkeys(("remove", "rename", "rename with alias"), "unknown") | {"change type": "breaks"}
    assert not any(row.kind == "state" for row in impact_of("Order.c").rows)


def test_the_rules_of_spark_judge_the_state_that_holds_it(flow: dict[str, Any], state: None) -> None:
    row = named(impact_of("Order.a"), "state")
    assert answers(row)["change type"] == "breaks"
    assert "Spark refuses the restart" in row.effects[3].sentence
    assert answers(row)["remove"] == "care"
    StreamQuery.objects.update(operators=[{"number": 0, "name": "stateStoreSave"}])
    unknown = named(impact_of("Order.a"), "state")
    assert set(answers(unknown).values()) == {"unknown"}
    assert "only transformWithState state is checked" in unknown.effects[0].sentence


def test_a_column_is_known_from_the_last_scan(flow: dict[str, Any]) -> None:
    columns = {"table": "public.orders", "oid": 1, "names": {"1": "a"}, "is_reported": False}
    Topic.objects.filter(source=flow["shop"]).update(last_rows={"columns": columns})
    assert named(impact_of("Order.a"), "table").evidence == "Column a, as of the last scan."
    assert named(impact_of("Order.b"), "table").evidence.startswith("No column b")


def test_a_client_that_lists_other_fields_is_left_out_and_one_that_uses_it_breaks(
    flow: dict[str, Any], system: Actor
) -> None:
    for name, fields in {"uses": ["Order.a"], "other": ["b"]}.items():
        declare_client(
            registry="dev", subject=ORDERS, name=name, by=system, reads=True, writes=False, version=3, fields=fields
        )
    impact = impact_of("Order.a")
    assert answers(named(impact, "consumer", "uses"))["remove"] == "breaks"
    other = named(impact, "consumer", "other")  # another type breaks even those that don't use it
    assert answers(other) == {"remove": "fine", "rename": "fine", "rename with alias": "fine", "change type": "breaks"}


def test_subjects_that_refer_to_the_type_are_checked_as_far_as_the_reader_may(registries: None, system: Actor) -> None:
    set_config(registry="dev", subject=None, level="FULL", by=system)
    address = {"type": "record", "name": "Address", "fields": [{"name": "zip", "type": "string"}]}
    name = SubjectName(".", "orders-address")
    register_version(registry="dev", subject=name, text=json.dumps(address), by=system)
    text = {"type": "record", "name": "Customer", "fields": [{"name": "home", "type": "Address"}]}
    register_version(
        registry="dev", subject=SubjectName(".", "customers-value"), text=json.dumps(text), by=system,
        references=[Reference("Address", "orders-address", 1)],
    )  # fmt: skip
    impact = impact_of("Address.zip", name)
    row = named(impact, "subject", "customers-value")
    assert answers(row)["remove"] == "breaks"
    assert "nothing changes until" in row.evidence
    hidden = impact_of("Address.zip", name, NARROW)
    assert not any("customers" in json.dumps(row.name) for row in hidden.rows)
    assert hidden.hidden == 1
    elsewhere = impact_of("Customer.home.zip", SubjectName(".", "customers-value"))
    assert set(answers(named(elsewhere, "level", "FULL")).values()) == {"unknown"}
    assert "declared in the referenced schema Address" in named(elsewhere, "level", "FULL").effects[0].sentence


def test_a_reader_of_some_subjects_gets_a_number_instead_of_queries_and_connectors(flow: dict[str, Any]) -> None:
    impact = impact_of("Order.a", by=NARROW)
    assert {row.kind for row in impact.rows} == {
        "readers",
        "writers",
        "level",
        "topic",
        "producer",
        "subject",
        "consumer",
    }
    assert impact.hidden == 2
    with pytest.raises(NotAllowed):
        impact_of("Order.a", by=replace(NARROW, grants=(Grant("reader", "dev", "payments-*"),)))


def test_a_path_that_is_not_there_is_not_found(flow: dict[str, Any]) -> None:
    with pytest.raises(NotFound):
        impact_of("Order.z")


def test_versions_beyond_the_limit_leave_transitive_levels_unknown(
    flow: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("registry.lineage.field_edits.MAX_VERSIONS", 1)
    impact = impact_of("Order.a")
    assert impact.unchecked == ("Versions that were not checked: 1, 2.",)
    assert answers(named(impact, "level", "BACKWARD_TRANSITIVE"))["remove"] == "unknown"
    assert answers(named(impact, "level", "BACKWARD"))["remove"] == "fine"


def test_the_number_of_queries_does_not_grow(flow: dict[str, Any], system: Actor) -> None:
    impact_of("Order.a")
    with CaptureQueriesContext(connection) as few:
        impact_of("Order.a")
    fields = [{"name": f"f{number}", "type": ["null", "string"], "default": None} for number in range(5_000)]
    fields[0]["name"] = "a"
    text = json.dumps({"type": "record", "name": "Order", "fields": fields})
    register_version(registry="dev", subject=ORDERS, text=text, by=system, force=True)
    for number in range(20):
        declare_client(
            registry="dev", subject=ORDERS, name=f"c{number}", by=system, reads=True, writes=False, version=None
        )
    with CaptureQueriesContext(connection) as many:
        impact = impact_of("Order.a")
    assert len(many) <= len(few)
    assert answers(named(impact, "readers"))["remove"] == "unknown"  # too long for a check with data


def test_the_api_gives_the_same(flow: dict[str, Any], client: Client, token: Callable[[str], str]) -> None:
    url = f"/api/v1/registries/dev/subjects/orders-value/fields/{quote('Order.a', safe='')}/impact"
    head = {"HTTP_AUTHORIZATION": f"Bearer {token('reader')}"}
    body = client.get(url, **head).json()
    assert body["edits"] == impact_of("Order.a").edits
    assert [row["name"] for row in body["rows"]] == [row.name for row in impact_of("Order.a").rows]
    assert client.get(url.replace("Order.a", "Order.z"), **head).status_code == 404
    assert client.get(url).status_code == 401


ADDRESS = {
    "type": "record", "name": "Address",
    "fields": [{"name": "zip", "type": "string"}, {"name": "city", "type": ["null", "string"], "default": None}],
}  # fmt: skip
AVRO = json.dumps({
    "type": "record", "name": "Order", "namespace": "a.b",
    "fields": [
        {"name": "home", "type": ADDRESS}, {"name": "work", "type": ["null", "Address"], "default": None},
        {"name": "more", "type": {"type": "map", "values": {"type": "array", "items": "Address"}}},
        {"name": "n", "type": "int", "default": 3}, {"name": "is_paid", "type": "boolean", "default": True},
    ],
})  # fmt: skip
JSON = json.dumps({
    "type": "object", "required": ["a/b~", "lines"],
    "properties": {
        "a/b~": {"type": "string"}, "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
        "either": {"anyOf": [{"type": "object", "properties": {"k": {"type": "boolean"}}, "required": ["k"]}, {"type": "null"}]},
    },
    "$defs": {"Line": {"type": "object", "properties": {"sku": {"type": "string"}}}},
})  # fmt: skip
PROTO = """syntax = "proto3";
package a.b;
message Order {
  string id = 1; // the id
  repeated Line lines = 2;
  map<string, Line> by_sku = 3;
  oneof kind { string card = 4; }
  optional double price = 5;
  message Line { string sku = 1; int32 n = 2; }
}
"""


@pytest.mark.parametrize(
    ("schema_type", "text", "path"),
    [
        *(("AVRO", AVRO, f"Order.{path}") for path in ("home", "home.zip", "work.city", "more{}[].zip", "n", "is_paid", "more")),
        *(("JSON", JSON, f"$.{path}") for path in ("a/b~", "lines", "lines[].sku", "either.k")),
        *(("PROTOBUF", PROTO, f"Order.{path}") for path in ("id", "lines", "lines[].sku", "by_sku", "card", "price")),
    ],
)  # fmt: skip
def test_every_field_can_be_changed_in_its_text(schema_type: str, text: str, path: str) -> None:
    format = FORMATS[schema_type]
    schema = format.parse(text)
    before = {row.path: row.type for row in format.outline(schema)}
    after: dict[FieldEdit, dict[str, str]] = {
        edit: {row.path: row.type for row in format.outline(format.parse(format.edit_field(schema, path, edit).text))}
        for edit in format.field_edits
    }
    assert path not in after["remove"]
    assert path not in after["rename"]
    assert f"{path}_renamed" in after["rename"]
    assert after["change type"][path] != before[path]
    assert len(after["change type"]) <= len(before) == len(after["rename"])
    touched = {other for other in before if other not in after["remove"]}
    assert all(other == path or path.rpartition(".")[2] in other for other in touched)
