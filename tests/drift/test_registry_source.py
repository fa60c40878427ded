"""The source kind `registry`: facts from the real tables, through a real scan."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.roles import Actor
from registry.access.services import issue_token
from registry.drift import services
from registry.drift.models import Connector, Finding, SchemaUse, Source, Topic
from registry.drift.scan.runner import perform_scan
from registry.drift.sources.base import SourceDraft
from registry.drift.sources.registry import RegistryRules, facts_of, setting_changes
from registry.errors import InvalidSource
from registry.promotions.models import Environment
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.services import set_config, set_mode
from registry.subjects.versions.qualified_names import SubjectName
from tests.drift.scans import make_source
from tests.drift.test_scan_context import put, record

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("GOO-7")]


def registry(name: str) -> Registry:
    return Registry.objects.get(name=name)


def scan(name: str) -> tuple[set[str], dict[str, str]]:
    """The rules that speak of a registry, and its checklist."""
    row = Source(registry=registry(name), kind="registry", name=name)
    result = RegistryRules().scan(row, tag="t", on_progress=lambda *_: None)
    assert result.complete
    return {finding.rule for finding in result.findings}, {
        line["advice"]: line["followed"] for line in result.read["advice"]
    }


def test_the_registries_of_a_first_start_follow_the_advice(registries: None) -> None:
    for name in ("dev", "staging", "prod"):
        rules, advice = scan(name)
        assert rules == set()
        assert "no" not in advice.values()
    assert scan("prod")[1]["production_read_only"] == "yes"
    assert scan("dev")[1]["production_read_only"] == "does not apply"


def test_what_was_opened_in_production_is_found_until_it_is_set_back(
    registries: None, system: Actor, person: Callable[[str], Actor]
) -> None:
    person("steward")
    person("reader")
    for name in ("steward", "reader"):
        issue_token(username=name, name="t", by=system)
    Environment.objects.filter(registry=registry("prod")).update(is_closed=False)
    set_mode(registry="prod", subject=None, by=system, mode="READWRITE")
    set_config(registry="prod", subject=None, by=system, level="NONE")
    put("unapproved-value", record(), registry="prod")
    rules, advice = scan("prod")
    assert rules == {
        "PRODUCTION_WRITABLE", "MODE_RELAXED", "LEVEL_NONE", "LEVEL_RELAXED", "CLIENTS_MAY_REGISTER",
        "REGISTERED_WITHOUT_PROMOTION",
    }  # fmt: skip
    assert advice["no_level_none"] == advice["production_read_only"] == "no"
    assert facts_of(registry("prod")).may_register == ("steward",)
    (relaxed,) = facts_of(registry("prod")).relaxed_levels
    assert (relaxed.scope, relaxed.before, relaxed.after, relaxed.by) == ("the registry", "BACKWARD", "NONE", "tests")
    set_config(registry="prod", subject=None, by=system, level="FULL")
    set_mode(registry="prod", subject=None, by=system, mode="READONLY")
    assert scan("prod")[0] == {"CLIENTS_MAY_REGISTER", "REGISTERED_WITHOUT_PROMOTION"}


def test_a_subject_s_own_setting_is_held_against_what_it_would_inherit(registries: None, system: Actor) -> None:
    orders = SubjectName(".", "orders-value")
    set_config(registry="dev", subject=None, by=system, level="FULL")
    set_config(registry="dev", subject=orders, by=system, level="FORWARD")
    (relaxed,) = facts_of(registry("dev")).relaxed_levels
    assert (relaxed.scope, relaxed.before, relaxed.after, relaxed.now) == (
        "subject orders-value", "FULL", "FORWARD", "FORWARD",
    )  # fmt: skip
    assert scan("dev")[0] == {"LEVEL_RELAXED"}
    set_config(registry="dev", subject=orders, by=system, unset=["level"])
    assert scan("dev")[0] == set()


def test_one_version_number_with_two_schemas(registries: None) -> None:
    put("orders-value", record("Order"))
    put("orders-value", record("Order", "a"), registry="staging")
    put("same-value", record("Same"))
    put("same-value", record("Same"), registry="staging")
    ((version, other),) = facts_of(registry("staging")).differing
    assert (version.subject, version.version, other) == ("orders-value", 1, "dev")
    assert scan("dev")[0] == set()


def seen_in_a_topic(name: str, schema_id: int, after: timedelta, **values: Any) -> None:
    source = Source.objects.filter(kind="kafka").first() or make_source(registry=registry("dev"))
    topic, _ = Topic.objects.get_or_create(source=source, name=name, defaults={"read_at": timezone.now(), **values})
    at = SchemaVersion.objects.filter(schema__schema_id=schema_id).latest("pk").created_at + after
    SchemaUse.objects.create(
        topic=topic, side="value", framing="id", mark=str(schema_id), schema_id=schema_id, partition=0, messages=5,
        bytes=5, first_offset=0, last_offset=4, first_time=at, last_time=at,
    )  # fmt: skip


def test_a_version_whose_first_message_follows_at_once_was_registered_by_its_producer(registries: None) -> None:
    seen_in_a_topic("orders", put("orders-value", record("Order")), timedelta(seconds=3))
    seen_in_a_topic("carts", put("carts-value", record("Cart")), timedelta(hours=3))
    result = RegistryRules().scan(
        Source(registry=registry("dev"), kind="registry", name="dev"), tag="t", on_progress=lambda *_: None
    )
    (finding,) = result.findings
    assert (finding.rule, finding.severity, finding.count) == ("AUTO_REGISTRATION", "notice", 1)
    assert finding.evidence["versions"][0]["subject"] == "orders-value"


def test_versions_live_in_data_ask_for_a_transitive_level(registries: None, system: Actor) -> None:
    hour = timedelta(hours=1)
    for name, retention in (("orders", -1), ("carts", 1000)):
        for fields in ((), ("a",)):
            schema_id = put(f"{name}-value", record(name, *fields))
            seen_in_a_topic(name, schema_id, hour - timedelta(days=2), retention_ms=retention)
    assert [(item.subject, item.level, item.versions) for item in facts_of(registry("dev")).live] == [
        ("orders-value", "BACKWARD", (1, 2))
    ]
    assert scan("dev")[0] == {"LEVEL_NOT_TRANSITIVE"}
    set_config(registry="dev", subject=None, by=system, level="BACKWARD_TRANSITIVE")
    rules, advice = scan("dev")
    assert rules == set()
    assert advice["transitive_levels"] == "yes"


def test_a_connector_that_does_not_answer_is_not_known_and_not_clean(registries: None) -> None:
    row = make_source(kind="debezium", name="shop")
    Connector.objects.create(source=row, connect_url="http://127.0.0.1:1", name="shop")
    assert scan("dev")[1]["connectors_do_not_auto_register"] == "not known"


def test_a_connector_that_was_not_read_keeps_its_findings(
    registries: None, system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"value.converter": "io.confluent.connect.avro.AvroConverter"}
    monkeypatch.setattr("registry.drift.sources.registry._config", lambda row: config)
    row = make_source(kind="debezium", name="shop", registry=registry("staging"))
    Connector.objects.create(source=row, connect_url="http://127.0.0.1:1", name="shop")
    number = services.add_source(registry="staging", kind="registry", name="staging", by=system)
    for most in (50, 0, 0):
        monkeypatch.setattr("registry.drift.sources.registry.MAX_CONNECTORS", most)
        assert perform_scan(services.queue_scan(source_id=number, by=system)) == "done"
    assert Finding.objects.get(rule="CONNECTOR_AUTO_REGISTERS").state == "open"
    read = Source.objects.get(pk=number).scans.first().read
    assert read["looked_at"]["connectors_not_read"] == ["shop"]


def test_changes_of_another_registry_hide_none(registries: None, system: Actor) -> None:
    set_config(registry="staging", subject=None, by=system, level="NONE")
    for level in ("FULL", "NONE"):
        set_config(registry="dev", subject=None, by=system, level=level)
    changes = setting_changes(registry("staging"), timezone.now() - timedelta(days=1))
    assert [(change.setting, change.after) for change in changes] == [("level", "NONE")]


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow(registries: None) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            facts_of(registry("staging"))
        return len(captured)

    put("first-value", record("First"), registry="staging")
    before = queries()
    for number in range(10):
        put(f"s{number}-value", record("R", f"f{number}"), registry="staging")
        put(f"s{number}-value", record("S", f"g{number}"))
    assert queries() == before
    assert before <= 26


def test_a_registry_is_scanned_like_any_source(registries: None, system: Actor) -> None:
    number = services.add_source(registry="staging", kind="registry", name="staging", by=system)
    set_config(registry="staging", subject=None, by=system, level="NONE")

    def once() -> dict[str, str]:
        assert perform_scan(services.queue_scan(source_id=number, by=system)) == "done"
        return dict(Finding.objects.values_list("rule", "state"))

    assert once() == once() == {"LEVEL_NONE": "open", "LEVEL_RELAXED": "open"}
    assert Finding.objects.filter(source_id=number).count() == 2
    set_config(registry="staging", subject=None, by=system, level="BACKWARD")
    once()
    assert once() == {"LEVEL_NONE": "resolved", "LEVEL_RELAXED": "resolved"}
    read = Source.objects.get(pk=number).scans.first().read
    assert {line["advice"]: line["followed"] for line in read["advice"]}["no_level_none"] == "yes"


def test_a_source_of_this_kind_has_no_patterns(registries: None) -> None:
    row = registry("dev")
    assert RegistryRules().check(SourceDraft(row, "")) == "dev"
    with pytest.raises(InvalidSource):
        RegistryRules().check(SourceDraft(row, "x", include=("a*",)))
