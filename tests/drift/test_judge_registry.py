"""The judgement of a registry's own tables, and the advice for production as a checklist."""

from __future__ import annotations

import json
from typing import Any

import pytest

from registry.drift.connector_settings import settings_of
from registry.drift.judge import in_order
from registry.drift.judge.advice import ADVICE, checklist
from registry.drift.judge.registries import MAX_FINDINGS, judge_registry
from registry.drift.judge.registry_facts import (
    GUARANTEES,
    ConnectorSettings,
    LiveVersions,
    RegistryFacts,
    Relaxation,
    ScopedSetting,
    is_more_open,
    is_weaker,
)
from registry.drift.rules import RULES, TABLES
from registry.formats.compatibility import LEVELS
from registry.subjects.models import MODES
from tests.drift.judging import DAY, load_cases, version_of
from tests.drift.test_judge import check

CASES = load_cases("judge_cases_registry.yaml")
pytestmark = pytest.mark.requirement("GOO-7")


def facts_of(given: dict[str, Any]) -> RegistryFacts:
    def version(subject: str, number: int, more: dict[str, Any]) -> Any:
        return version_of(subject, number, dict(more))

    def first(found: Any, seconds: float | None) -> int | None:
        return None if seconds is None else int(found.registered_at + seconds * 1000)

    def relaxations(name: str) -> tuple[Relaxation, ...]:
        return tuple(Relaxation(*each, by="eve", at=20 * DAY) for each in given.get(name, ()))

    registered = [(version(*each[:3]), each[3]) for each in given.get("registered", ())]
    return RegistryFacts(
        registry="prod",
        is_target=given.get("is_target", False),
        is_last=given.get("is_last", False),
        unreleased=tuple(version(*each) for each in given.get("unreleased", ())),
        differing=tuple((version(name, number, {}), other) for name, number, other in given.get("differing", ())),
        registered=tuple((found, first(found, seconds)) for found, seconds in registered),
        relaxed_levels=relaxations("relaxed_levels"),
        relaxed_modes=relaxations("relaxed_modes"),
        levels=tuple(ScopedSetting(*each) for each in given.get("levels", ())),
        modes=tuple(ScopedSetting(*each) for each in given.get("modes", ())),
        may_register=tuple(given.get("may_register", ())),
        live=tuple(LiveVersions(name, level, tuple(found)) for name, level, found in given.get("live", ())),
        connectors=tuple(ConnectorSettings(*each) for each in given.get("connectors", {}).items()),
        connectors_unknown=tuple(given.get("connectors_unknown", ())),
        scanned=given.get("scanned", False),
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    facts = facts_of(case["facts"])
    found = in_order(judge_registry(facts))
    assert [each.rule for each in found] == [expected["rule"] for expected in case["findings"]]
    for finding, expected in zip(found, case["findings"], strict=True):
        check(finding, expected)
        assert "{" not in finding.sentence + finding.remedy
        json.dumps(finding.evidence, allow_nan=False)
    assert not {each.rule for each in found} & set(case.get("not", ()))
    assert len({each.fingerprint for each in found}) == len(found)
    lines = {line["advice"]: line["followed"] for line in checklist(facts, found)}
    assert lines.keys() == {line.id for line in ADVICE}
    assert {name: lines[name] for name in case.get("advice", {})} == case.get("advice", {})


def test_every_rule_has_a_case_where_it_speaks_and_one_where_it_is_silent() -> None:
    rules = {rule.id for rule in TABLES["The registry itself"]}
    assert {expected["rule"] for case in CASES for expected in case["findings"]} == rules
    assert {rule for case in CASES for rule in case.get("not", ())} == rules
    assert {rule for line in ADVICE for rule in line.rules} <= rules <= set(RULES)


def test_all_levels_and_modes_are_known() -> None:
    assert set(GUARANTEES) == set(LEVELS)
    for name, level in LEVELS.items():
        asked = {"none": 0, "latest": 1, "all": 2}[level.scope]
        assert GUARANTEES[name] == tuple(asked * (way in level.directions) for way in ("BACKWARD", "FORWARD"))
        assert not is_weaker(name, name)
        assert is_weaker(name, "NONE") is (name != "NONE")
    assert is_weaker("BACKWARD", "FORWARD")
    assert not is_weaker("BACKWARD", "FULL_TRANSITIVE")
    assert [mode for mode in MODES if is_more_open("READONLY", mode)] == ["READWRITE", "IMPORT", "FORWARD"]


def test_a_flood_is_cut_off() -> None:
    many = tuple(version_of(f"s{number}", 1, {}) for number in range(5_000))
    assert len(judge_registry(RegistryFacts("prod", is_target=True, unreleased=many))) == MAX_FINDINGS


@pytest.mark.parametrize(
    ("config", "register", "latest"),
    [
        ({"value.converter": "io.confluent.connect.avro.AvroConverter"}, "true", "false"),
        (
            {
                "value.converter": "io.confluent.connect.avro.AvroConverter",
                "value.converter.auto.register.schemas": False,
                "value.converter.use.latest.version": "TRUE",
                "database.password": "s3cret",
            },
            "False",
            "TRUE",
        ),
        ({"value.converter": "org.apache.kafka.connect.json.JsonConverter"}, None, None),
        ({}, None, None),
    ],
)
def test_only_the_settings_of_schemas_are_kept_of_a_connector(
    config: dict[str, Any], register: str | None, latest: str | None
) -> None:
    found = settings_of(config)
    assert found["value.converter.auto.register.schemas"] == register
    assert found["value.converter.use.latest.version"] == latest
    assert found["key.converter.auto.register.schemas"] is None
    assert "s3cret" not in str(found)
