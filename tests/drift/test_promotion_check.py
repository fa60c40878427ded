"""A request that answers a finding isn't held up by the break that the same messages are, where its schema cures it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.utils import timezone

from registry import hooks
from registry.access.roles import Actor
from registry.drift.judge.declared_fields import MAX_DEPTH
from registry.drift.models import Cluster, FieldStatistic, Finding, Source, Topic
from registry.drift.replay.evidence import filled_fields
from registry.promotions import selectors, services
from registry.promotions.board.readiness import can_promote
from registry.promotions.reviews.decisions import why_alone
from registry.subjects.services import register_version, set_config
from registry.subjects.usage.evidence import Evidence
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName

pytestmark = pytest.mark.requirement("CARD-4", "CARD-5")
CASES = yaml.safe_load((Path(__file__).parent / "curing_cases.yaml").read_text())
BILLS = SubjectName(".", "bills-value")
BESIDE = "the value isn't valid by its schema, at additionalProperties"
MARK = {"side": "value", "framing": "id", "mark": "1"}
OWN = {**MARK, "owners": "bills-value version 1"}


def schema(properties: dict[str, Any], *, closed: bool = True, required: tuple[str, ...] = ("id",)) -> str:
    return json.dumps(
        {
            "type": "object",
            "required": list(required),
            "properties": {"id": {"type": "integer"}, "amt": {"type": "number"}, **properties},
            **({"additionalProperties": False} if closed else {}),
        }
    )


@pytest.fixture
def cast(person: Callable[[str], Actor]) -> dict[str, Actor]:
    return {name: person(name) for name in ("steward", "approver", "admin")}


@pytest.fixture
def topic(cast: dict[str, Actor]) -> Topic:
    """A topic of bills in dev, whose subject has a closed schema."""
    text = schema({})
    set_config(registry="dev", subject=BILLS, level="NONE", by=cast["admin"])
    register_version(registry="dev", subject=BILLS, text=text, schema_type="JSON", by=cast["steward"])
    cluster = Cluster.objects.create(name="main", bootstrap="127.0.0.1:1", created_by="tests")
    source = Source.objects.create(
        registry=get_registry("dev"), kind="kafka", name="all", cluster=cluster, created_by="tests"
    )
    return Topic.objects.create(source=source, name="bills", partitions=1, subjects={"value": [BILLS.subject]})


def finding(topic: Topic, rule: str, severity: str, evidence: dict[str, Any]) -> Finding:
    now = timezone.now()
    return Finding.objects.create(
        source=topic.source, topic=topic, fingerprint=f"{rule}{evidence}"[:64], rule=rule, severity=severity,
        remedy="Repair.", sentence=f"{rule} was seen.", location="bills", subject_name=BILLS.qualified,
        evidence=evidence, first_seen=now, last_seen=now,
    )  # fmt: skip


def seen(topic: Topic, path: str, present: int, kinds: dict[str, int]) -> None:
    FieldStatistic.objects.create(
        topic=topic, side="value", framing="id", mark="1", path=path, day=timezone.now().date(), messages=40,
        present=present, nulls=0, kinds=kinds,
    )  # fmt: skip


def arranged(topic: Topic, case: dict[str, Any]) -> Finding:
    """What was found and seen, as the case has it; gives the undeclared field."""
    fields = {"id": [40, {"integer": 40}], "amt": [40, {"number": 40}], "discount": [10, {"string": 10}]}
    for path, (present, kinds) in {**fields, **case.get("seen", {})}.items():
        seen(topic, path, present, kinds)
    reasons = case.get("refused", {BESIDE: 10})
    offsets = [{"partition": 0, "offset": 30 + number, "reason": reason} for number, reason in enumerate(reasons)]
    mark = {**MARK, "mark": "2"} if case.get("elsewhere") else MARK
    counts = {"messages": 10, "by_reason": reasons} if reasons else {}
    finding(topic, "SCHEMA_VIOLATED", "break", {**mark, **counts, "offsets": offsets, **case.get("kept", {})})
    for rule in case.get("also", []):
        finding(topic, rule, "risk", {**OWN, "field": "amt"})
    return finding(topic, "FIELD_UNDECLARED", "risk", {**OWN, "field": "discount"})


def drift_of(number: int) -> dict[str, Any]:
    return next(check for check in selectors.get_request(number).checks if check["code"] == "drift")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(cast: dict[str, Actor], topic: Topic, case: dict[str, Any]) -> None:
    origin = arranged(topic, case)
    text = schema(case["proposed"], closed=case.get("closed", True), required=tuple(case.get("required", ["id"])))
    number = services.propose_version(
        target="dev", subject=BILLS, text=text, schema_type="JSON", by=cast["steward"],
        finding=origin.pk if case.get("answers", True) else None,
    )  # fmt: skip
    check = drift_of(number)
    assert check["verdict"] == case["verdict"]
    _, _, resolved = check["sentence"].partition("Will be resolved by this request:")
    rules = {"FIELD_UNDECLARED", "SCHEMA_VIOLATED", *case.get("also", [])}
    assert {rule for rule in rules if f"{rule} was seen." in resolved} == set(case["resolves"])
    assert ("Open in the target:" in check["sentence"]) is (set(case["resolves"]) != rules)


def test_what_it_cures_is_released_and_the_rest_is_not(cast: dict[str, Actor], topic: Topic) -> None:
    origin = arranged(topic, CASES[0])
    text = schema({"discount": {"type": "string"}})
    plan = services.preview_proposal(
        target="dev", subject=BILLS, text=text, schema_type="JSON", by=cast["steward"], finding=origin.pk
    )
    assert plan.can_run
    number = services.propose_version(
        target="dev", subject=BILLS, text=text, schema_type="JSON", by=cast["steward"], finding=origin.pk
    )
    assert selectors.get_request(number).plan_hash == plan.hash
    services.approve(request_id=number, by=cast["approver"], plan_hash=plan.hash)
    finding(topic, "ID_DELETED", "break", MARK)
    assert services.recheck(request_id=number, by=cast["steward"]) == "in review"
    assert "Open in the target: ID_DELETED was seen. Will be resolved" in drift_of(number)["sentence"]
    Finding.objects.filter(rule="ID_DELETED").delete()
    assert services.recheck(request_id=number, by=cast["steward"]) == "approved"
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"
    assert can_promote(subject=BILLS, source="dev", target="staging", by=cast["steward"]).verdict == "needs approval"


def test_a_schema_that_is_read_in_part_cures_nothing(cast: dict[str, Actor], topic: Topic) -> None:
    origin = arranged(topic, CASES[0])
    deep: dict[str, Any] = {"type": "integer"}
    for _ in range(MAX_DEPTH + 1):
        deep = {"type": "object", "properties": {"inner": deep}}
    text = schema({"discount": {"type": "string"}, "deep": deep})
    number = services.propose_version(
        target="dev", subject=BILLS, text=text, schema_type="JSON", by=cast["steward"], finding=origin.pk
    )
    assert drift_of(number)["verdict"] == "fail"


def test_a_finding_that_is_gone_cures_nothing(cast: dict[str, Actor], topic: Topic) -> None:
    origin = arranged(topic, CASES[0])
    text = schema({"discount": {"type": "string"}})
    number = services.propose_version(
        target="dev", subject=BILLS, text=text, schema_type="JSON", by=cast["steward"], finding=origin.pk
    )
    origin.delete()
    services.recheck(request_id=number, by=cast["steward"])
    assert drift_of(number)["verdict"] == "fail"


MILLIS, MICROS = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
STATES = [{"type": "enum", "name": "State", "symbols": names, "default": "OPEN"} for names in (["OPEN"], ["OPEN", "X"])]


def avro(**types: Any) -> str:
    return json.dumps({"type": "record", "name": "Bill", "fields": [{"name": n, "type": t} for n, t in types.items()]})


def proto(number: int) -> str:
    return f'syntax = "proto3"; message Bill {{ int64 id = 1; string at = {number}; }}'


@pytest.mark.parametrize(
    ("kind", "old", "new", "said", "on_paper"),
    [
        ("AVRO", avro(at=MILLIS), avro(at=MICROS), "values change in 1 place. First: Bill.at: long (", True),
        ("AVRO", avro(at=STATES[1]), avro(at=STATES[0]), "values change in 1 place. First: Bill.at: the enum", True),
        ("AVRO", avro(id="long", at="string"), avro(id="long"), "It drops the values of Bill.at.", False),
        ("PROTOBUF", proto(2), proto(12), 'values change in 1 place. First: the field "at" has the number 2', True),
    ],
)
def test_what_changes_values_is_never_called_safe(
    cast: dict[str, Actor], topic: Topic, monkeypatch: pytest.MonkeyPatch, kind: str, old: str, new: str, said: str,
    on_paper: bool,
) -> None:  # fmt: skip
    used = replace(hooks.version_evidence.hooks["topic scans"], evidence=lambda *_: {1: [Evidence("data", "yes", "")]})
    monkeypatch.setitem(hooks.version_evidence.hooks, "topic scans", used)
    orders = SubjectName(".", "bills-of-2-value")
    Topic.objects.filter(pk=topic.pk).update(subjects={"value": [orders.subject]})
    register_version(registry="dev", subject=orders, text=old, schema_type=kind, by=cast["admin"])
    number = services.propose_version(target="dev", subject=orders, text=new, schema_type=kind, by=cast["steward"])
    checks = {check["code"]: check for check in selectors.get_request(number).checks}
    assert checks["evidence.data"]["verdict"] == "warn"
    assert said in checks["evidence.data"]["sentence"]
    assert (checks["compatibility"]["verdict"] == "warn") is on_paper
    assert why_alone(selectors.get_request(number).plan).startswith("A check warns, so it must be reviewed separately")
    seen(topic, "at", 40, {})
    services.recheck(request_id=number, by=cast["steward"])
    (data,) = (check for check in selectors.get_request(number).checks if check["code"] == "evidence.data")
    assert "Bill.at is filled in 100 % of 40 messages since" in data["sentence"]


def test_a_field_that_no_message_fills_can_go(cast: dict[str, Actor], topic: Topic) -> None:
    seen(topic, "id", 40, {})
    assert filled_fields(topic.source.registry, BILLS, ["Bill.at", "Bill.id"])["Bill.at"] == ""
    assert filled_fields(topic.source.registry, SubjectName(".", "other-value"), ["Bill.at"]) == {}
