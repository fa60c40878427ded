"""The judgement of a registry's own tables, and the advice for production as a checklist."""

from __future__ import annotations

import json
from typing import Any

import pytest

from registry.drift.judge import in_order
from registry.drift.judge.registries import MAX_FINDINGS, judge_registry
from registry.drift.judge.registry_advice import (
    ADVICE,
    GUARANTEES,
    ConnectorSettings,
    LiveVersions,
    RegistryFacts,
    Relaxation,
    ScopedSetting,
    checklist,
    is_more_open,
    is_weaker,
)
from registry.drift.rules import RULES, TABLES
from registry.drift.sources.registry import settings_of
from registry.formats.compatibility import LEVELS
from registry.subjects.models import MODES
from tests.drift.judge.cases import DAY, load_cases, version_of
from tests.drift.judge.test_judge import check

CASES = load_cases("judge_cases_registry.yaml")
pytestmark = pytest.mark.requirement("GOO-7")


def facts_of(values: dict[str, Any]) -> RegistryFacts:
    def version(subject: str, number: int, more: dict[str, Any]) -> Any:
        return version_of(subject, number, dict(more))

    def first(version_found: Any, seconds: float | None) -> int | None:
        return None if seconds is None else int(version_found.registered_at + seconds * 1000)

    def relaxations(name: str) -> tuple[Relaxation, ...]:
        return tuple(Relaxation(*values, by="eve", at=20 * DAY) for values in values.get(name, ()))

    registered = [(version(*item[:3]), item[3]) for item in values.get("registered", ())]
    return RegistryFacts(
        registry="prod",
        is_target=values.get("is_target", False),
        is_last=values.get("is_last", False),
        unreleased=tuple(version(*item) for item in values.get("unreleased", ())),
        differing=tuple((version(name, number, {}), other) for name, number, other in values.get("differing", ())),
        registered=tuple((item_, first(item_, seconds)) for item_, seconds in registered),
        relaxed_levels=relaxations("relaxed_levels"),
        relaxed_modes=relaxations("relaxed_modes"),
        levels=tuple(ScopedSetting(*item) for item in values.get("levels", ())),
        modes=tuple(ScopedSetting(*item) for item in values.get("modes", ())),
        may_register=tuple(values.get("may_register", ())),
        live=tuple(LiveVersions(name, level, tuple(item_)) for name, level, item_ in values.get("live", ())),
        connectors=tuple(ConnectorSettings(*item) for item in values.get("connectors", {}).items()),
        connectors_unknown=tuple(values.get("connectors_unknown", ())),
        scanned=values.get("scanned", False),
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    facts = facts_of(case["facts"])
    findings = in_order(judge_registry(facts))
    assert [item.rule for item in findings] == [expected["rule"] for expected in case["findings"]]
    for finding, expected in zip(findings, case["findings"], strict=True):
        check(finding, expected)
        assert "{" not in finding.sentence + finding.remedy
        json.dumps(finding.evidence, allow_nan=False)
    assert not {item.rule for item in findings} & set(case.get("not", ()))
    assert len({item.fingerprint for item in findings}) == len(findings)
    lines = {line["advice"]: line["followed"] for line in checklist(facts, findings)}
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
        depth = {"none": 0, "latest": 1, "all": 2}[level.scope]
        assert GUARANTEES[name] == tuple(depth * (way in level.directions) for way in ("BACKWARD", "FORWARD"))
        assert not is_weaker(name, name)
        assert is_weaker(name, "NONE") is (name != "NONE")
    assert is_weaker("BACKWARD", "FORWARD")
    assert not is_weaker("BACKWARD", "FULL_TRANSITIVE")
    assert [mode for mode in MODES if is_more_open("READONLY", mode)] == ["READWRITE", "IMPORT", "FORWARD"]


def test_a_flood_is_cut_off_and_says_so() -> None:
    many = tuple(version_of(f"s{number}", 1, {}) for number in range(5_000))
    *listed, limited = judge_registry(RegistryFacts("prod", is_target=True, unreleased=many))
    assert len(listed) == MAX_FINDINGS
    assert (limited.rule, limited.evidence["left_out"], limited.location) == ("CHECK_LIMITED", 4_800, "registry prod")
    assert limited.sentence.startswith("Registry prod was not checked in full: a scan lists at most 200 findings of ")


def test_a_list_in_the_evidence_says_how_many_more_there_are() -> None:
    many = tuple((version_of(f"s{number}", 1, {"channel": "confluent"}), None) for number in range(120))
    (finding,) = judge_registry(RegistryFacts("prod", is_target=True, registered=many))
    assert (len(finding.evidence["versions"]), finding.evidence["not_listed"], finding.count) == (100, 20, 120)
    accounts = tuple(f"account-{number}" for number in range(101))
    (finding,) = judge_registry(RegistryFacts("prod", is_last=True, may_register=accounts))
    assert (len(finding.evidence["accounts"]), finding.evidence["not_listed"]) == (100, 1)


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
    settings = settings_of(config)
    assert settings["value.converter.auto.register.schemas"] == register
    assert settings["value.converter.use.latest.version"] == latest
    assert settings["key.converter.auto.register.schemas"] is None
    assert "s3cret" not in str(settings)
