"""Compatibility reports as SARIF 2.1.0: what GitHub, GitLab and editors show beside the lines of a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from registry.errors import InvalidSchema
from registry.formats.assessment import Assessment
from registry.formats.findings_told import Told, told_of, told_of_error
from registry.formats.report import CHECKER_VERSION

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
#: what a text that came without a file is called
_FILES: Final = {"AVRO": "schema.avsc", "PROTOBUF": "schema.proto", "JSON": "schema.json"}


def assessment_sarif(assessment: Assessment, *, subject: str = "", file: str = "") -> str:
    """The whole report as one run; `file` is where the text came from."""
    report = assessment.report
    about = {
        "subject": subject,
        "level": report.level,
        "profile": report.profile,
        "isCompatible": report.is_compatible,
        "verdict": report.verdict,
        "versions": list(report.versions),
        "levels": {name: found.is_compatible for name, found in assessment.strip.reports.items()},
    }
    return _document(told_of(assessment), file or _FILES[assessment.schema_type], about)


def syntax_sarif(error: InvalidSchema, *, subject: str = "", file: str = "") -> str:
    """A text that doesn't parse: the one error, with its line and column."""
    return _document((told_of_error(error),), file or "schema", {"subject": subject, "isCompatible": None})


def _document(told: Sequence[Told], file: str, about: dict[str, Any]) -> str:
    rules = {item.rule: item for item in reversed(told)}  # the first one of a rule speaks for it
    order = {name: number for number, name in enumerate(sorted(rules))}
    driver = {"name": "Schemadesk", "version": CHECKER_VERSION, "rules": [_rule(rules[name]) for name in order]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(item, order[item.rule], file) for item in told],
        "properties": about,
    }
    whole = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(whole, indent=2)  # ASCII: half a surrogate pair in a name stays an escape


def _rule(item: Told) -> dict[str, Any]:
    words = item.rule.replace("_", " ").lower()
    return {
        "id": item.rule,
        "shortDescription": {"text": words[:1].upper() + words[1:]},
        "fullDescription": {"text": item.why or words},
        "help": {"text": " ".join(filter(None, (item.why, f"Cure: {item.cure}." if item.cure else ""))) or words},
        "defaultConfiguration": {"level": item.level},
    }


def _result(item: Told, index: int, file: str) -> dict[str, Any]:
    return {
        "ruleId": item.rule,
        "ruleIndex": index,
        "level": item.level,
        "message": {"text": f"{item.path}: {item.message}" if item.path else item.message or item.rule},
        "locations": [_location(item, file)],
        "properties": {"againstVersion": item.version, "cure": item.cure},
    }


def _location(item: Told, file: str) -> dict[str, Any]:
    # quote() takes no half of a surrogate pair
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(file.encode("utf-8", "replace"))}}
    if item.line is not None:
        physical["region"] = {"startLine": item.line} | ({"startColumn": item.column} if item.column else {})
    found: dict[str, Any] = {"physicalLocation": physical}
    if item.path:
        name = item.path.rpartition(".")[2]
        found["logicalLocations"] = [{"fullyQualifiedName": item.path, "name": name, "kind": "member"}]
    return found
