"""Making a finding from a row of the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from registry.drift.debezium.rules import RULES
from registry.drift.evidence import make_evidence
from registry.drift.judge.model import JudgedFinding, fingerprint_of
from registry.drift.rule import Severity

MAX_NAMED = 6


def finding(
    rule: str,
    names: Mapping[str, Any],
    identity: Sequence[str],
    *,
    location: str,
    evidence: Mapping[str, Any],
    count: int = 1,
    severity: Severity | None = None,
    topic: str = "",
    subject: str = "",
) -> JudgedFinding:
    """A finding of a rule: `names` fill its templates, `identity` is what stays the same from scan to scan.

    `topic` is named where the topic's messages prove the finding: it then resolves by clean scans that read some. What
    the connector or the catalog proves has none, and resolves without a message.
    """
    row = RULES[rule]
    return JudgedFinding(
        rule=rule,
        severity=severity or row.severity,
        fingerprint=fingerprint_of(rule, identity),
        sentence=row.sentence.format_map(names).strip(),
        remedy=row.remedy.format_map(names).strip(),
        location=location,
        count=max(1, count),
        evidence=make_evidence(rule, evidence),
        topic=topic,
        subject=subject,
    )


def listed(names: Sequence[str], word: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`; of many the first few and how many more."""
    shown = list(names[:MAX_NAMED])
    if len(names) > MAX_NAMED:
        shown.append(f"{len(names) - MAX_NAMED} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {word} {shown[-1]}" if shown else ""


def counted(number: int, noun: str = "message") -> str:
    """`1 message`, `2,000 messages`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def sized(number: int) -> str:
    """Bytes as people read them: `900 B`, `1.2 GiB`."""
    size, unit = float(number), "B"
    for bigger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, bigger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
