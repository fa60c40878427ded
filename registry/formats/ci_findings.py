"""Findings for CI: all findings of a report in one list, written as SARIF 2.1.0 or JUnit XML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import quote
from xml.etree import ElementTree

from registry.errors import InvalidSchema
from registry.formats.assessment import Assessment
from registry.formats.compatibility import level_named
from registry.formats.lint import LintFinding
from registry.formats.rendering import READING, item_text, lint_text, rename_text
from registry.formats.report import CHECKER_VERSION, DECISIVE, Direction, Report, ReportItem
from registry.formats.schema_format import format_of

Level = Literal["error", "warning", "note"]

SYNTAX_RULE: Final = "SYNTAX"
DEPENDANT_RULE: Final = "DEPENDANT_BREAKS"
_SYNTAX_WHY: Final = "A text that doesn't parse is no schema: it can be neither compared nor registered."
_SYNTAX_CURE: Final = "mend the text at the place that is named"
CLIENT_RULE: Final = "CLIENT_BREAKS"
_CLIENT_WHY: Final = "A declared client goes on with the version that it has until its people bring it to another one."
_CLIENT_CURE: Final = "talk to its people, and bring it to a version that goes with the new schema first"
RENAME_RULE: Final = "FIELD_RENAME_SUSPECTED"
_RENAME_WHY: Final = "Readers take a renamed field for one dropped and one added: they lose its data in silence."
_DEPENDANT_WHY: Final = "A subject that refers to this one is read with its newest version before long."
_DEPENDANT_CURE: Final = "let the other subject go on referring to an earlier version, or change both"


@dataclass(frozen=True, slots=True)
class CiFinding:
    """One finding: its rule and message, its level, and its place. `version` is the version it was compared with."""

    rule: str
    level: Level
    message: str
    path: str = ""
    line: int | None = None
    column: int | None = None
    why: str = ""
    cure: str = ""
    version: int | None = None


def assessment_findings(assessment: Assessment) -> tuple[CiFinding, ...]:
    """Return all findings: the level's, suspected renames, broken clients, broken referring subjects, and lint."""
    report = assessment.report
    broken = [item for item in assessment.dependants if item.answer == "no"]
    return (
        *(_item(report, item) for item in report.items),
        *(
            CiFinding(
                RENAME_RULE,
                "warning",
                f"{rename.message}. {rename.effect}" if rename.effect else rename.message,
                path=rename.path,
                why=_RENAME_WHY,
                cure=rename.edit.title if rename.edit else rename.cure,
            )
            for rename in assessment.renames
        ),
        *(
            CiFinding(
                CLIENT_RULE, "warning", client.sentence, why=_CLIENT_WHY, cure=_CLIENT_CURE, version=client.version
            )
            for client in assessment.clients
            if client.answer == "no"
        ),
        *(
            CiFinding(
                DEPENDANT_RULE,
                "warning",
                f"{item.subject} version {item.version} refers to it: {item.message}",
                why=_DEPENDANT_WHY,
                cure=_DEPENDANT_CURE,
            )
            for item in broken
        ),
        *(_advice(item) for item in assessment.lint),
    )


def syntax_finding(error: InvalidSchema) -> CiFinding:
    """Return the finding for a text that doesn't parse."""
    return CiFinding(
        SYNTAX_RULE,
        "error",
        error.message,
        line=error.line,
        column=error.column,
        why=_SYNTAX_WHY,
        cure=_SYNTAX_CURE,
    )


def _item(report: Report, item: ReportItem) -> CiFinding:
    """Make decisive items errors, losses that the level allows warnings, and all others notes."""
    level: Level = (
        "error" if item.severity in DECISIVE[report.profile] else "warning" if item.severity != "warning" else "note"
    )
    reading = READING[item.direction].format(item.against_version)
    return CiFinding(
        item.rule,
        level,
        f"{item.message} ({reading})",
        path=item.named_path,
        line=item.line,
        column=item.column,
        why=item.why,
        cure=item.remedy,
        version=item.against_version,
    )


def _advice(item: LintFinding) -> CiFinding:
    return CiFinding(
        item.rule,
        "warning" if item.weight == "warning" else "note",
        f"{item.message} ({item.more} more places)" if item.more else item.message,
        path=item.path,
        line=item.line,
        column=item.column,
        why=item.why,
        cure=item.cure,
    )


SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def assessment_sarif(assessment: Assessment, *, subject: str = "", file: str = "") -> str:
    """Return the complete report as one SARIF run; `file` is the path of the schema text."""
    report = assessment.report
    about = {
        "subject": subject,
        "level": report.level,
        "profile": report.profile,
        "isCompatible": report.is_compatible,
        "verdict": report.verdict,
        "versions": list(report.versions),
        "levels": {name: level_report.is_compatible for name, level_report in assessment.strip.reports.items()},
    }
    return _sarif_document(assessment_findings(assessment), file or format_of(assessment.schema_type).file_name, about)


def syntax_sarif(error: InvalidSchema, *, subject: str = "", file: str = "") -> str:
    """Return SARIF for a text that doesn't parse: one error with its line and column."""
    return _sarif_document((syntax_finding(error),), file or "schema", {"subject": subject, "isCompatible": None})


def _sarif_document(findings: Sequence[CiFinding], file: str, about: dict[str, Any]) -> str:
    rules = {item.rule: item for item in reversed(findings)}  # the first finding of a rule describes the rule
    order = {name: number for number, name in enumerate(sorted(rules))}
    driver = {"name": "Schemadesk", "version": CHECKER_VERSION, "rules": [_rule(rules[name]) for name in order]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(item, order[item.rule], file) for item in findings],
        "properties": about,
    }
    whole = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(whole, indent=2)  # ASCII, so half of a surrogate pair in a name stays escaped


def _rule(item: CiFinding) -> dict[str, Any]:
    text = item.rule.replace("_", " ").lower()
    return {
        "id": item.rule,
        "shortDescription": {"text": text[:1].upper() + text[1:]},
        "fullDescription": {"text": item.why or text},
        "help": {"text": " ".join(filter(None, (item.why, f"Fix: {item.cure}." if item.cure else ""))) or text},
        "defaultConfiguration": {"level": item.level},
    }


def _result(item: CiFinding, index: int, file: str) -> dict[str, Any]:
    return {
        "ruleId": item.rule,
        "ruleIndex": index,
        "level": item.level,
        "message": {"text": f"{item.path}: {item.message}" if item.path else item.message or item.rule},
        "locations": [_location(item, file)],
        "properties": {"againstVersion": item.version, "cure": item.cure},
    }


def _location(item: CiFinding, file: str) -> dict[str, Any]:
    # quote() rejects half of a surrogate pair
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(file.encode("utf-8", "replace"))}}
    if item.line is not None:
        physical["region"] = {"startLine": item.line} | ({"startColumn": item.column} if item.column else {})
    location: dict[str, Any] = {"physicalLocation": physical}
    if item.path:
        name = item.path.rpartition(".")[2]
        location["logicalLocations"] = [{"fullyQualifiedName": item.path, "name": name, "kind": "member"}]
    return location


#: characters that XML 1.0 can't represent, even as references
_XML_INVALID: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_MAX_ATTRIBUTE: Final = 1000


def assessment_junit(assessment: Assessment, *, subject: str = "", file: str = "") -> str:
    """Return the complete report as JUnit XML.

    It has a test each for: the syntax, every version in each direction of the level, suspected renames, declared
    clients, referring subjects, and lint. Findings that don't decide go to the test's output and fail nothing.
    """
    report = assessment.report
    cases = [_case("it parses", subject, file)]
    of_pair: dict[tuple[int, Direction], list[ReportItem]] = {}
    for item in report.items:
        of_pair.setdefault((item.against_version, item.direction), []).append(item)
    for number in report.versions:
        for direction in level_named(report.level).directions:
            items = of_pair.get((number, direction), [])
            decisive = [item for item in items if item.severity in DECISIVE[report.profile]]
            cases.append(_compared(number, direction, decisive, [i for i in items if i not in decisive], subject, file))
    if assessment.renames:
        lines = [rename_text(rename) for rename in assessment.renames]
        cases.append(_case("renamed fields", subject, file, output="\n\n".join(lines)))
    if assessment.clients:
        lines = [client.sentence for client in assessment.clients]
        cases.append(_case("declared clients", subject, file, output="\n".join(lines)))
    if assessment.dependants:
        lines = [f"{item.subject} version {item.version}: {item.message}" for item in assessment.dependants]
        cases.append(_case("subjects that refer to it", subject, file, output="\n".join(lines)))
    cases.append(_case("lint", subject, file, output="\n".join(map(lint_text, assessment.lint))))
    return _junit_document(
        cases, subject, {"level": report.level, "profile": report.profile, "checker": CHECKER_VERSION}
    )


def syntax_junit(error: InvalidSchema, *, subject: str = "", file: str = "") -> str:
    """Return JUnit XML for a text that doesn't parse: one test with an error."""
    finding = syntax_finding(error)
    case = _case("it parses", subject, file)
    _fault(case, "error", finding.message, SYNTAX_RULE, f"{error.placed}\n{finding.why}")
    return _junit_document([case], subject, {"checker": CHECKER_VERSION})


def _junit_document(cases: Sequence[ElementTree.Element], subject: str, about: dict[str, str]) -> str:
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
    }
    whole = ElementTree.Element("testsuites", {"name": "Schemadesk", **counts})
    suite = ElementTree.SubElement(whole, "testsuite", {"name": _xml_safe(subject, "schema"), **counts, "skipped": "0"})
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in about.items():
        ElementTree.SubElement(properties, "property", {"name": name, "value": _xml_safe(value)})
    suite.extend(cases)
    ElementTree.indent(whole)
    return _HEAD + ElementTree.tostring(whole, encoding="unicode") + "\n"


def _compared(
    number: int,
    direction: Direction,
    decisive: Sequence[ReportItem],
    others: Sequence[ReportItem],
    subject: str,
    file: str,
) -> ElementTree.Element:
    name = READING[direction].format(number)
    case = _case(name, subject, file, output="\n\n".join(map(item_text, others)))
    if decisive:
        first = decisive[0]
        more = f" (and {len(decisive) - 1} more)" if len(decisive) > 1 else ""
        where = f"{first.named_path}: " if first.named_path else ""
        _fault(
            case, "failure", f"{where}{first.message}{more}", _rules(decisive), "\n\n".join(map(item_text, decisive))
        )
    return case


def _rules(items: Iterable[ReportItem]) -> str:
    return " ".join(dict.fromkeys(item.rule for item in items))


def _case(name: str, subject: str, file: str, *, output: str = "") -> ElementTree.Element:
    attributes = {"name": _xml_safe(name), "classname": _xml_safe(subject, "schema"), "time": "0"}
    case = ElementTree.Element("testcase", attributes | ({"file": _xml_safe(file)} if file else {}))
    if output:
        ElementTree.SubElement(case, "system-out").text = _xml_safe(output, longest=None)
    return case


def _fault(case: ElementTree.Element, tag: str, message: str, kind: str, text: str) -> None:
    """Insert a failure or an error before any output, as strict readers require."""
    fault = ElementTree.Element(tag, {"message": _xml_safe(message), "type": kind})
    fault.text = _xml_safe(text, longest=None)
    case.insert(0, fault)


def _xml_safe(text: str, otherwise: str = "", *, longest: int | None = _MAX_ATTRIBUTE) -> str:
    """Return the text with characters that XML can't represent replaced, cut to `longest`."""
    whole = _XML_INVALID.sub("\ufffd", text or otherwise)
    return whole if longest is None or len(whole) <= longest else whole[:longest] + "…"
