"""Reports for CI: SARIF as its schema asks, JUnit as GitLab and Jenkins read it, hostile names in both."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import jsonschema_rs
import pytest

from registry.errors import InvalidSchema
from registry.formats.assessment import ClientAnswer, Dependant
from registry.formats.avro import AVRO
from registry.formats.ci_findings import assessment_junit, assessment_sarif, syntax_junit, syntax_sarif
from tests.formats.test_assessment import ID, NOTE, assessed, record

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
LEVEL = {"enum": ["error", "warning", "note"]}
PLACE = {
    "type": "object",
    "required": ["physicalLocation"],
    "additionalProperties": False,
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "additionalProperties": False,
            "properties": {
                "artifactLocation": {"properties": {"uri": {"type": "string", "format": "uri-reference"}}},
                "region": {
                    "required": ["startLine"],
                    "additionalProperties": False,
                    "properties": {
                        "startLine": {"type": "integer", "minimum": 1},
                        "startColumn": {"type": "integer", "minimum": 1},
                    },
                },
            },
        },
        "logicalLocations": {"type": "array", "minItems": 1, "items": {"required": ["fullyQualifiedName", "kind"]}},
    },
}
#: what of SARIF 2.1.0 our files have, as its schema says it
SARIF = jsonschema_rs.validator_for(
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "required": ["version", "runs"],
        "additionalProperties": False,
        "properties": {
            "$schema": {"type": "string", "format": "uri"},
            "version": {"const": "2.1.0"},
            "runs": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "required": ["tool", "results"],
                    "properties": {
                        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                        "tool": {
                            "properties": {
                                "driver": {
                                    "required": ["name", "version", "rules"],
                                    "properties": {
                                        "rules": {
                                            "uniqueItems": True,
                                            "items": {
                                                "required": ["id", "shortDescription", "help"],
                                                "properties": {
                                                    "shortDescription": TEXT,
                                                    "fullDescription": TEXT,
                                                    "help": TEXT,
                                                    "defaultConfiguration": {"properties": {"level": LEVEL}},
                                                },
                                            },
                                        }
                                    },
                                }
                            }
                        },
                        "results": {
                            "items": {
                                "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
                                "properties": {
                                    "level": LEVEL,
                                    "message": TEXT,
                                    "locations": {"type": "array", "items": PLACE},
                                },
                            }
                        },
                    },
                },
            },
        },
    },
    validate_formats=True,
)
BREAKING = record({"name": "id", "type": "string"}, NOTE)
HOSTILE = 'a<b>&"]]>\x00\x0b\ud800\uffff\u202e' + "x" * 10_000


def run_of(text: str) -> dict[str, Any]:
    document = json.loads(text)
    SARIF.validate(document)
    [run] = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == sorted(set(rules))
    assert [rules[item["ruleIndex"]] for item in run["results"]] == [item["ruleId"] for item in run["results"]]
    return dict(run)


def cases_of(text: str) -> list[ElementTree.Element]:
    whole = ElementTree.fromstring(text.encode())
    suite = whole.find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    totals = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors")}
    faults = {f"{tag}s": sum(case.find(tag) is not None for case in cases) for tag in ("failure", "error")}
    assert totals == {"tests": len(cases), **faults}
    assert all(case.get("name") and case.get("classname") for case in cases)
    return cases


@pytest.mark.requirement("CARD-2", "CARD-4")
def test_sarif_has_a_rule_with_help_and_a_place_for_each_finding() -> None:
    run = run_of(assessment_sarif(assessed(BREAKING, record(ID)), subject="orders", file="schemas/my order.avsc"))
    [changed, missing, *advice] = run["results"]
    assert {item["level"] for item in advice} == {"warning", "note"}
    assert (changed["ruleId"], changed["level"]) == ("TYPE_CHANGED", "error")
    assert missing["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "Order.note"
    location = missing["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "schemas/my%20order.avsc"
    assert location["region"]["startLine"] == 1
    helps = {rule["id"]: rule["help"]["text"] for rule in run["tool"]["driver"]["rules"]}
    assert "Fix: give" in helps["FIELD_WITHOUT_DEFAULT"]
    assert run["properties"]["isCompatible"] is False


@pytest.mark.requirement("CARD-2", "CARD-4")
def test_junit_has_a_test_for_each_version_and_direction_that_the_level_asks() -> None:
    report = assessed(BREAKING, record(ID), BREAKING, level="FULL_TRANSITIVE")
    cases = cases_of(assessment_junit(report, subject="orders", file="order.avsc"))
    failed = {case.get("name"): case.find("failure") is not None for case in cases}
    assert failed == {
        "it parses": False,
        "version 2 reads the new schema": False,
        "the new schema reads version 2": False,
        "version 1 reads the new schema": True,
        "the new schema reads version 1": True,
        "lint": False,
    }
    assert "FIELD_WITHOUT_DOC at Order.id" in (cases[-1].findtext("system-out") or "")
    failure = cases[-2].find("failure")
    assert failure is not None
    assert failure.get("type") == "TYPE_CHANGED FIELD_WITHOUT_DEFAULT"
    assert failure.get("message", "").endswith("(and 1 more)")
    assert "cure: " in (failure.text or "")
    assert [case.get("name") for case in cases_of(assessment_junit(assessed(record(ID))))] == ["it parses", "lint"]


@pytest.mark.parametrize("broken", ['{"type": "record",\n "name": }', "{", ""])
def test_a_text_that_does_not_parse_is_a_finding_with_its_place(broken: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        AVRO.parse(broken)
    [result] = run_of(syntax_sarif(caught.value, file="a.avsc"))["results"]
    assert (result["ruleId"], result["level"]) == ("SYNTAX", "error")
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == caught.value.line
    [case] = cases_of(syntax_junit(caught.value, subject="orders"))
    assert case.find("error") is not None


def test_hostile_names_are_held_by_both() -> None:
    report = assessed(BREAKING, record(ID))
    dependants = (Dependant(HOSTILE, 3, "no", HOSTILE),)
    clients = tuple(ClientAnswer(HOSTILE, "reads", 1, HOSTILE, verdict, HOSTILE) for verdict in ("no", "unknown"))
    others = {"dependants": dependants, "clients": clients}
    report = type(report)(**{name: getattr(report, name) for name in report.__slots__} | others)
    run = run_of(assessment_sarif(report, subject=HOSTILE, file=HOSTILE))
    [result] = [item for item in run["results"] if item["ruleId"] == "DEPENDANT_BREAKS"]
    [hurt] = [item for item in run["results"] if item["ruleId"] == "CLIENT_BREAKS"]
    assert result["level"] == hurt["level"] == "warning"
    assert result["message"]["text"].startswith('a<b>&"]]>')
    cases = cases_of(assessment_junit(report, subject=HOSTILE, file=HOSTILE))
    assert cases[-3].get("name") == "declared clients" and len(cases[-3].findall("failure")) == 0
    output = cases[-2].findtext("system-out") or ""
    assert output.startswith('a<b>&"]]>\ufffd\ufffd\ufffd\ufffd')
    assert len(cases[-1].get("classname", "")) < 1100
