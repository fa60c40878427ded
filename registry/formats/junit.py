"""Compatibility reports as JUnit's XML, for the list of tests that GitLab and Jenkins show of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final
from xml.etree import ElementTree

from registry.errors import InvalidSchema
from registry.formats.assessment import Assessment
from registry.formats.compatibility import level_named
from registry.formats.findings_told import SYNTAX_RULE, told_of_error
from registry.formats.rendering import READING, item_text, lint_text
from registry.formats.report import CHECKER_VERSION, DECISIVE, Direction, ReportItem

#: what XML 1.0 can't hold, not even as a reference
_UNHELD: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_MAX_ATTRIBUTE: Final = 1000


def assessment_junit(assessment: Assessment, *, subject: str = "", file: str = "") -> str:
    """The whole report: a test for the text, one for each version in each direction of the level, one for its
    declared clients, one for the subjects that refer to it, one for advice. What doesn't decide is told in a test's output and fails nothing.
    """
    report = assessment.report
    cases = [_case("it parses", subject, file)]
    of_pair: dict[tuple[int, Direction], list[ReportItem]] = {}
    for item in report.items:
        of_pair.setdefault((item.against_version, item.direction), []).append(item)
    for number in report.versions:
        for direction in level_named(report.level).directions:
            found = of_pair.get((number, direction), [])
            decisive = [item for item in found if item.severity in DECISIVE[report.profile]]
            cases.append(_compared(number, direction, decisive, [i for i in found if i not in decisive], subject, file))
    if assessment.clients:
        lines = [client.sentence for client in assessment.clients]
        cases.append(_case("declared clients", subject, file, said="\n".join(lines)))
    if assessment.dependants:
        lines = [f"{item.subject} version {item.version}: {item.message}" for item in assessment.dependants]
        cases.append(_case("subjects that refer to it", subject, file, said="\n".join(lines)))
    cases.append(_case("lint", subject, file, said="\n".join(map(lint_text, assessment.lint))))
    return _document(cases, subject, {"level": report.level, "profile": report.profile, "checker": CHECKER_VERSION})


def syntax_junit(error: InvalidSchema, *, subject: str = "", file: str = "") -> str:
    """A text that doesn't parse: one test, which ends with an error."""
    told = told_of_error(error)
    case = _case("it parses", subject, file)
    _fault(case, "error", told.message, SYNTAX_RULE, f"{error.placed}\n{told.why}")
    return _document([case], subject, {"checker": CHECKER_VERSION})


def _document(cases: Sequence[ElementTree.Element], subject: str, about: dict[str, str]) -> str:
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
    }
    whole = ElementTree.Element("testsuites", {"name": "Schemadesk", **counts})
    suite = ElementTree.SubElement(whole, "testsuite", {"name": _held(subject, "schema"), **counts, "skipped": "0"})
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in about.items():
        ElementTree.SubElement(properties, "property", {"name": name, "value": _held(value)})
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
    case = _case(name, subject, file, said="\n\n".join(map(item_text, others)))
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


def _case(name: str, subject: str, file: str, *, said: str = "") -> ElementTree.Element:
    held = {"name": _held(name), "classname": _held(subject, "schema"), "time": "0"}
    case = ElementTree.Element("testcase", held | ({"file": _held(file)} if file else {}))
    if said:
        ElementTree.SubElement(case, "system-out").text = _held(said, longest=None)
    return case


def _fault(case: ElementTree.Element, tag: str, message: str, kind: str, text: str) -> None:
    """A failure or an error, before any output: the order that strict readers ask for."""
    fault = ElementTree.Element(tag, {"message": _held(message), "type": kind})
    fault.text = _held(text, longest=None)
    case.insert(0, fault)


def _held(text: str, otherwise: str = "", *, longest: int | None = _MAX_ATTRIBUTE) -> str:
    """The text as XML can hold it, at most so long."""
    whole = _UNHELD.sub("\ufffd", text or otherwise)
    return whole if longest is None or len(whole) <= longest else whole[:longest] + "…"
