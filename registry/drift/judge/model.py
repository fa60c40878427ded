"""What the judgement takes and gives."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from registry.drift.rules import RULES, Severity
from registry.observations import Side


@dataclass(frozen=True)
class RegisteredVersion:
    """A version that a schema id stands for."""

    subject: str
    version: int
    deleted: bool = False


@dataclass(frozen=True)
class Registered:
    """What the registry holds for a source.

    `versions` maps every schema id (at least those seen in the scan) to its versions; `expected` names the subjects
    of a topic's key and value. A side without subjects isn't governed: plain keys are normal there.
    """

    registry: str
    versions: Mapping[int, tuple[RegisteredVersion, ...]] = field(default_factory=dict)
    expected: Mapping[Side, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class JudgedFinding:
    """A judgement: `fingerprint` stays the same from scan to scan, `count` is messages (or 1), `evidence` is JSON."""

    rule: str
    severity: Severity
    fingerprint: str
    sentence: str
    remedy: str
    location: str
    count: int
    evidence: dict[str, Any]


def make_finding(
    rule: str,
    names: Mapping[str, Any],
    identity: Sequence[str],
    *,
    location: str,
    count: int,
    evidence: dict[str, Any],
    severity: Severity | None = None,
) -> JudgedFinding:
    """A finding of a rule: `names` fill its templates, `identity` is what stays the same from scan to scan."""
    row = RULES[rule]
    return JudgedFinding(
        rule=rule,
        severity=severity or row.severity,
        fingerprint=hashlib.sha256("\x1f".join((rule, *identity)).encode("utf-8", "surrogatepass")).hexdigest(),
        sentence=row.sentence.format_map(names),
        remedy=row.remedy.format_map(names),
        location=location,
        count=count,
        evidence=evidence,
    )
