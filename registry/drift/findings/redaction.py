"""Removes other subjects from a finding, for people who may read its own subject but not the registry. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from registry.drift.evidence.scan_forms import Messages
from registry.drift.judge.field_history import ALL_VERSIONS
from registry.drift.rules import RULES

#: evidence fields that name versions of any subject: `orders-value version 3, archive-value version 1`
NAMING_FIELDS: Final = ("owners", "same_number_elsewhere")
#: rules whose sentence names versions of any subject, or fields that may be in another subject's schema
NAMING_RULES: Final = tuple(
    sorted(rule.id for rule in RULES.values() if "{owners}" in rule.sentence or "{path}" in rule.sentence)
)
_OF_ANY_SCHEMA: Final = Messages.__required_keys__ | Messages.__optional_keys__
#: evidence fields that only rules about messages of the finding's own subject have
_OF_OWN_SUBJECT: Final = ("types", "newer")
#: evidence field that names the subjects of a topic's side: `orders-value or payments-value`
EXPECTED: Final = "expected"
HIDDEN: Final = "This text names subjects that you can’t read."
_VERSION: Final = re.compile(r"(?:^|(?<=, ))(?P<subject>.+?) version \d+(?=, |$)")
_MORE: Final = re.compile(r"(?:^|, )[\d,]+ more$")


def redacted_text(text: str, evidence: Mapping[str, Any], subject: str) -> str:
    """Return a sentence of the finding without anything about other subjects."""
    if "field" in evidence and not _is_of_own_schema(evidence, subject):
        return "This text describes a schema that you can’t read."
    for field in (*NAMING_FIELDS, EXPECTED):
        names = evidence.get(field)
        if isinstance(names, str) and names:
            text = text.replace(names, _own(field, names, subject))
    others = {name for name in _subjects(evidence) if name != subject}
    if any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", text) for name in others):
        return HIDDEN
    return text


def redacted_cause(text: str, cause_subject: str, evidence: Mapping[str, Any], subject: str) -> str:
    """Return a text about the finding's cause, hidden if that is a version of another subject."""
    return HIDDEN if text and cause_subject not in ("", subject) else redacted_text(text, evidence, subject)


def redacted_evidence(evidence: Mapping[str, Any], subject: str) -> dict[str, Any]:
    """Return the evidence without other subjects' names or data that their schemas decode."""
    is_own = _is_of_own_schema(evidence, subject)
    return {
        name: _own(name, value, subject) if isinstance(value, str) else value
        for name, value in evidence.items()
        if is_own or (name != "samples" and ("field" not in evidence or name in _OF_ANY_SCHEMA))
    }


def _is_of_own_schema(evidence: Mapping[str, Any], subject: str) -> bool:
    """Return whether the finding's messages are decoded with its own subject's schema, or without one."""
    if evidence.get("framing") in ("", ALL_VERSIONS):
        return evidence.get("mark") in ("", subject)
    return subject in _subjects({"owners": evidence.get("owners")}) or any(name in evidence for name in _OF_OWN_SUBJECT)


def _subjects(evidence: Mapping[str, Any]) -> set[str]:
    texts = (evidence.get(field) for field in NAMING_FIELDS)
    return {match["subject"] for text in texts if isinstance(text, str) for match in _VERSION.finditer(text)}


def _own(name: str, value: str, subject: str) -> str:
    if name == EXPECTED:
        return _own_subject(value, subject)
    return _own_versions(value, subject) if name in NAMING_FIELDS else value


def _own_subject(names: str, subject: str) -> str:
    return names if names == subject else f"{subject} or another subject" if subject in names else "another subject"


def _own_versions(versions: str, subject: str) -> str:
    """Return the versions of the subject itself, and that there are others."""
    matches = list(_VERSION.finditer(versions))
    own = [match[0] for match in matches if match["subject"] == subject]
    if own and len(own) == len(matches) and not _MORE.search(versions):
        return versions
    return ", ".join([*own, "another subject"])
