"""An earlier version made current again: as a new number, by the target's level and its reviewers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from registry.access.roles import Actor
from registry.errors import InvalidInput, InvalidVersion, NotAllowed, SubjectNotFound, VersionNotFound, WrongState
from registry.formats.base import Reference
from registry.promotions import services
from registry.promotions.models import PromotionRequest, Release
from registry.subjects.selectors import get_version, list_versions
from registry.subjects.services import register_version, set_config
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.promotions.factories import approve_shown

Cast = Callable[[str], Actor]
ORDERS = SubjectName(".", "orders-value")
V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
PROTO = 'syntax = "proto3";\nmessage Order {\n  int64 id = 1;%s\n}\n'
OBJECT = {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": False}
WIDER = {**OBJECT, "properties": {**OBJECT["properties"], "note": {"type": "string"}}}
FORMATS = {
    "AVRO": (json.dumps(V1), json.dumps(V2)),
    "PROTOBUF": (PROTO % "", PROTO % "\n  string note = 2;"),
    "JSON": (json.dumps(OBJECT), json.dumps(WIDER)),
}
pytestmark = pytest.mark.requirement("CARD-4")


@pytest.fixture
def cast(person: Cast) -> dict[str, Actor]:
    return {name: person(name) for name in ("reader", "steward", "approver", "approver2", "admin")}


def register(registry: str, text: str, by: Actor, **more: Any) -> None:
    register_version(registry=registry, subject=ORDERS, text=text, by=by, **more)


def ask(cast: dict[str, Actor], version: int | str = 1, reason: str = "version 2 loses notes") -> int:
    return services.request_roll_back(
        environment="staging", subject=ORDERS, version=version, by=cast["steward"], reason=reason
    )


@pytest.mark.parametrize("schema_type", FORMATS)
def test_round_trip(cast: dict[str, Actor], schema_type: str) -> None:
    for text in FORMATS[schema_type]:
        register("staging", text, cast["steward"], schema_type=schema_type)
    set_config(registry="staging", subject=ORDERS, level="NONE", by=cast["steward"])
    number = ask(cast)
    row = PromotionRequest.objects.get(pk=number)
    assert (row.kind, row.source, row.version_number) == ("roll back", None, 1)
    approve_shown(request_id=number, by=cast["approver"], comment="agreed")
    assert services.apply(request_id=number, by=cast["approver2"]) == "applied"
    staging = get_registry("staging")
    assert list_versions(staging, ORDERS) == [1, 2, 3]
    first, second, current = (get_version(staging, ORDERS, version) for version in (1, 2, "latest"))
    assert current.version == 3
    assert (current.schema.text, current.schema.fingerprint) == (first.schema.text, first.schema.fingerprint)
    assert len({item.schema.schema_id for item in (first, second, current)}) == 3
    assert current.schema.metadata == {"properties": {"confluent:version": "3"}}
    released = Release.objects.get()
    assert (released.version_number, released.fingerprint) == (3, first.schema.fingerprint)
    back = ask(cast, 2, "it was the consumer")
    approve_shown(request_id=back, by=cast["approver"], comment="agreed")
    assert services.apply(request_id=back, by=cast["approver"]) == "applied"
    again = get_version(staging, ORDERS, "latest")
    assert (again.version, again.schema.text) == (4, second.schema.text)


def test_its_plan_says_what_it_does_not_undo(cast: dict[str, Actor]) -> None:
    for text in FORMATS["AVRO"]:
        register("staging", text, cast["steward"])
    plan = PromotionRequest.objects.get(pk=ask(cast)).plan
    (step,) = plan["steps"]
    assert (step["kind"], step["target_version"]) == ("repeat", 3)
    said = next(check for check in plan["checks"] if check["code"] == "roll-back")
    assert said["verdict"] == "warn"
    for word in ("version 2", "messages", "state", "stay"):
        assert word in said["sentence"]


def test_the_level_of_the_target_judges_it(cast: dict[str, Actor]) -> None:
    set_config(registry="staging", subject=ORDERS, level="NONE", by=cast["steward"])
    for text in ('"string"', '"int"'):
        register("staging", text, cast["steward"])
    set_config(registry="staging", subject=ORDERS, level="FULL", by=cast["steward"])
    number = ask(cast)
    checks = PromotionRequest.objects.get(pk=number).plan["checks"]
    (broken,) = (check for check in checks if check["verdict"] == "fail")
    assert broken["cure"] == "", "the text is the earlier version's, so nobody can change it"
    with pytest.raises(WrongState, match="Breaks FULL"):
        approve_shown(request_id=number, by=cast["approver"])
    with pytest.raises(NotAllowed):
        approve_shown(request_id=number, by=cast["approver"], override="I want it")
    approve_shown(request_id=number, by=cast["admin"], override="nothing was written with it")
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"
    assert get_version(get_registry("staging"), ORDERS, "latest").schema.text == '"string"'


def test_references_and_the_contract_of_the_earlier_version_come_back(cast: dict[str, Actor]) -> None:
    address = SubjectName(".", "address")
    text = '{"type":"record","name":"Address","fields":[{"name":"city","type":"string"}]}'
    register_version(registry="staging", subject=address, text=text, by=cast["steward"])
    order = {**V1, "fields": [*V1["fields"], {"name": "to", "type": "Address"}]}
    references = (Reference("Address", "address", 1),)
    metadata = {"properties": {"owner": "shop"}}
    register("staging", json.dumps(order), cast["steward"], references=references, metadata=metadata)
    set_config(registry="staging", subject=ORDERS, level="NONE", by=cast["steward"])
    register("staging", json.dumps(V2), cast["steward"], metadata={"properties": {"owner": "else"}})
    number = ask(cast)
    approve_shown(request_id=number, by=cast["approver"], comment="agreed")
    services.apply(request_id=number, by=cast["approver"])
    current = get_version(get_registry("staging"), ORDERS, "latest")
    assert current.schema.references == references
    assert current.schema.metadata == {"properties": {"confluent:version": "3", "owner": "shop"}}


REFUSED: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "the current one": ({"version": 2}, WrongState),
    "the latest": ({"version": "latest"}, WrongState),
    "no such version": ({"version": 7}, VersionNotFound),
    "no version": ({"version": "one"}, InvalidVersion),
    "no reason": ({"reason": "  "}, InvalidInput),
    "no subject": ({"subject": SubjectName(".", "")}, InvalidInput),
    "no such subject": ({"subject": SubjectName(".", "other")}, SubjectNotFound),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_rolled_back(cast: dict[str, Actor], case: str) -> None:
    for text in FORMATS["AVRO"]:
        register("staging", text, cast["steward"])
    call = {"environment": "staging", "subject": ORDERS, "version": 1, "reason": "why", "by": cast["steward"]}
    more, error = REFUSED[case]
    with pytest.raises(error):
        services.request_roll_back(**{**call, **more})
    with pytest.raises(NotAllowed):
        services.request_roll_back(**{**call, "by": cast["reader"]})
    assert PromotionRequest.objects.count() == 0


def test_it_is_asked_for_once_at_a_time(cast: dict[str, Actor]) -> None:
    for text in FORMATS["AVRO"]:
        register("staging", text, cast["steward"])
    ask(cast)
    with pytest.raises(WrongState, match="already open"):
        ask(cast)
