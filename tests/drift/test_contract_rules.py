"""Which rules of a data contract a scan evaluates, and what it finds of them on a real topic."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest
from django.test import Client

from registry.access.roles import Actor
from registry.drift import services
from registry.drift.models import Finding, Source
from registry.drift.replay.rule_trial import UNREAD, _trial, try_rule
from registry.drift.scan_context.contract_rules import conditions_of
from registry.drift.scan_context.versions import writers_for
from registry.drift.selectors.finding_offsets import finding_offsets
from registry.errors import NotAllowed
from registry.formats.personal_data import MASK
from registry.observations import PartitionRange, PartitionRead, TopicRead
from registry.subjects.policy.data_contracts import read_rule_set
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.drift.scans import make_source
from tests.drift.test_faults import scan
from tests.pipeline.topics import fill, framed, make_topic, string, zigzag

USER = {
    "type": "record",
    "name": "User",
    "fields": [
        {"name": "mail", "type": "string", "confluent:tags": ["PII"]},
        {"name": "age", "type": "int"},
        {"name": "plan", "type": "string"},
    ],
}


def rule(name: str, expr: str, kind: str = "CONDITION", **values: Any) -> dict[str, Any]:
    return {"name": name, "kind": kind, "type": "CEL", "mode": "WRITEREAD", "expr": expr, **values}


def conditions(*rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What a scan evaluates: name → the rule."""
    return {item.name: item for item in conditions_of(read_rule_set({"domainRules": list(rules), **more}) or {})}


def test_enabled_conditions_are_evaluated() -> None:
    made = conditions(
        rule("a", "message.age > 0"),
        rule("off", "false", disabled=True),
        rule("b", "value != ''", type="CEL_FIELD", tags=["PII"], mode="READ", onFailure="DLQ"),
        rule("c", "true", mode="WRITE", onFailure="NONE"),
        rule("d", "true", onFailure="DLQ,NONE"),
    )
    assert list(made) == ["a", "b", "c", "d"]
    assert (made["b"].type, made["b"].tags, made["b"].mode) == ("CEL_FIELD", ("PII",), "READ")
    assert [item.on_failure for item in made.values()] == ["ERROR", "DLQ", "NONE", "NONE"]
    assert not any(item.not_checked for item in made.values())
    assert conditions(rule("a", "true"), enableAt="NONE") == {}


def test_conditions_on_messages_that_are_stored_in_another_form_are_not_evaluated() -> None:
    encrypt = rule("encrypt", "", kind="TRANSFORM", type="ENCRYPT", tags=["PII"])
    assert "rule encrypt transforms messages" in conditions(rule("a", "true"), encrypt)["a"].not_checked
    assert "rule encrypt" in conditions(rule("a", "true"), encodingRules=[encrypt])["a"].not_checked
    assert not conditions(rule("a", "true"), encrypt | {"disabled": True})["a"].not_checked
    assert "type SQL aren't evaluated" in conditions(rule("a", "true", type="SQL"))["a"].not_checked
    many = conditions(*(rule(f"r{number}", "true") for number in range(60)))
    assert [name for name, item in many.items() if not item.not_checked] == [f"r{number}" for number in range(50)]
    assert "this one and 9 after it are left out" in many["r50"].not_checked
    assert "r51" not in many
    assert "no expression" in conditions({"name": "a", "kind": "CONDITION", "type": "CEL"})["a"].not_checked


def test_messages_that_a_trial_had_no_time_for_are_not_checked() -> None:
    asked = TopicRead("orders", (PartitionRange(0, 10, 30, 0, 30), PartitionRange(1, 0, 4, 0, 4)))
    read = [PartitionRead("orders", 0, 10, 11, 0, 30, 1), PartitionRead("orders", 1, 0, 4, 0, 4, 2)]
    assert _trial(asked, "value", set(), read, is_shown=False).not_checked == {UNREAD: 19}
    whole = [replace(read[0], end=30), read[1]]
    assert _trial(asked, "value", set(), whole, is_shown=False).not_checked == {}


@pytest.mark.django_db
def test_rules_come_with_the_writer_and_tags_only_if_a_rule_has_some(registries: None, system: Actor) -> None:
    by_mark = {}
    for tags in ([], ["PII"]):
        rules = {"domainRules": [rule("a", "true", type="CEL_FIELD", tags=tags)]}
        registered = register_version(
            registry="dev", subject=SubjectName(".", "t-value"), text=json.dumps(USER), rule_set=rules, by=system,
            metadata={"tags": {"User.plan": ["BILLING"]}},
        )  # fmt: skip
        by_mark[str(registered.schema_id)] = {"mail": ("PII",), "plan": ("BILLING",)} if tags else {}
    writers = {writer.mark: writer for writer in writers_for(make_source(), ["t"])}
    assert {mark: writer.tags for mark, writer in writers.items()} == by_mark
    assert all([item.name for item in writer.rules] == ["a"] for writer in writers.values())


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.django_db(transaction=True)
def test_a_scan_finds_broken_rules_and_those_that_cannot_be_evaluated(
    registries: None,
    settings: Any,
    kafka_bootstrap: str,
    spark_remote: str,
    system: Actor,
    person: Callable[[str], Actor],
    look: Callable[[str], Client],
    api: Callable[[str], Client],
) -> None:
    settings.KAFKA_BOOTSTRAP, settings.SPARK_REMOTE = kafka_bootstrap, spark_remote
    topic = make_topic(kafka_bootstrap, [], partitions=1)
    rules = [
        rule("adult", "message.age >= 18"),
        rule("address", "value.contains('@')", type="CEL_FIELD", tags=["PII"], onFailure="NONE"),
        rule("plans", "message.plan in ['free', 'paid']", mode="WRITE"),
        rule("typo", "message.aeg > 18"),
        rule("old", "false", disabled=True),
    ]
    number = register_version(
        registry="dev", subject=SubjectName(".", f"{topic}-value"), text=json.dumps(USER), by=system,
        rule_set={"domainRules": rules},
    ).schema_id  # fmt: skip

    def user(age: int = 40, mail: str = "ada@example.com", plan: str = "free") -> bytes:
        return framed(number, string(mail) + zigzag(age) + string(plan))

    values = [user() for _ in range(40)] + [user(age=17), user(mail="ada"), user(age=16)]
    fill(kafka_bootstrap, topic, [(0, None, value) for value in values])
    services.connect_cluster(name="real", bootstrap=kafka_bootstrap, by=system)
    source = services.add_source(
        registry="dev", kind="kafka", name=f"s-{uuid.uuid4().hex[:8]}", cluster="real", include=(topic,), by=system
    )
    Source.objects.filter(pk=source).update(keep_samples=True)
    scan(source, system)
    found = {(item.rule, item.evidence.get("contract_rule")): item for item in Finding.objects.all()}
    assert set(found) == {
        ("CONTRACT_RULE_BROKEN", "adult"),
        ("CONTRACT_RULE_BROKEN", "address"),
        ("CONTRACT_RULE_NOT_CHECKED", "typo"),
    }
    adult, address = found["CONTRACT_RULE_BROKEN", "adult"], found["CONTRACT_RULE_BROKEN", "address"]
    assert (adult.severity, adult.count, adult.subject_name) == ("break", 2, f"{topic}-value")
    assert adult.evidence["example"] == [{"partition": 0, "offset": 40}, {"partition": 0, "offset": 42}]
    assert adult.evidence["samples"][0]["offset"] == 40
    offsets = finding_offsets(adult.pk, by=system)
    assert (offsets.listed, [item.first_offset for item in offsets.ranges]) == (2, [40, 42])
    assert (address.severity, address.count, address.evidence["paths"]) == ("notice", 1, ["mail (1)"])
    assert "ada" not in json.dumps([adult.evidence, address.evidence]), "the fields are personal data"
    typo = found["CONTRACT_RULE_NOT_CHECKED", "typo"]
    assert (typo.severity, typo.count, typo.evidence["evaluated_messages"]) == ("notice", 43, 0)

    subject = SubjectName(".", f"{topic}-value")
    with pytest.raises(NotAllowed, match="personal"):  # answers to many questions would tell a value
        try_rule("dev", subject, by=person("steward"), expression="message.mail.startsWith('a')")
    tried = try_rule("dev", subject, by=person("admin"), expression="message.age != 16", messages=10)
    assert (tried.topic, tried.read, tried.evaluated, tried.broken, tried.not_checked) == (topic, 10, 10, 1, {})
    assert [(item.partition, item.offset) for item in tried.first] == [(0, 42)]
    assert json.loads(tried.first[0].value) == {"mail": MASK, "age": "1e1", "plan": "aaaa (4)"}
    url = f"/ui/registries/dev/subjects/{topic}-value/try-rule"
    sent = {"expression": "value.size() > 3", "type": "CEL_FIELD", "tags": "PII, X", "messages": "5"}
    page = look("admin").post(url, sent)
    assert page.status_code == 200
    assert page.context["page"].result.paths == {"mail": 1}
    assert look("admin").post(url, sent | {"messages": "5001"}).status_code == 422
    assert look("reader").post(url, sent).status_code == 403
    body = {"registry": "dev", "subject": f"{topic}-value", "expression": "message.age != 16", "messages": 10}
    answer = api("admin").post("/api/v1/rule-trials", body, content_type="application/json")
    assert (answer.status_code, answer.json()) == (200, json.loads(json.dumps(asdict(tried))))
    for name, changed, status in (("reader", {}, 403), ("steward", {}, 403), ("admin", {"messages": 5001}, 422)):
        refused = api(name).post("/api/v1/rule-trials", body | changed, content_type="application/json")
        assert refused.status_code == status, name
