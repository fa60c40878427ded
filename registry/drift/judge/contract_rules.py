"""Judges the conditions of data contracts: which messages break them, and which conditions weren't evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from registry.drift.judge.finding_builder import (
    SideOfTopic,
    mark_evidence,
    mark_words,
    offending_at,
    owners,
    share_of,
)
from registry.drift.judge.model import JudgedFinding, Mark, Memory, Registered, RegisteredVersion
from registry.drift.judge.topic_observations import (
    SIDES,
    PartitionSpan,
    TopicObservations,
    count_of,
    parts_of,
    subjects_of_side,
)
from registry.drift.judge.undecodable import reason_words
from registry.drift.rules import Severity
from registry.observations import ContractRule, ContractRuleResult

MOST_EXAMPLES: Final = 20
LONGEST: Final = 1_000  # characters of an expression
REFUSED: Final = "ERROR"


def judge_contracts(reading: TopicObservations, registered: Registered, memory: Memory) -> Iterator[JudgedFinding]:
    """Yield the broken and the unchecked rules of a topic, by the schema that each message names."""
    for side in SIDES:
        marks = reading.marks(side)
        where = SideOfTopic(
            *(reading, side, registered, memory),
            subjects_of_side((reading.topic, side), marks, registered).subjects,
        )
        for result in reading.rules.get(side, ()):
            mark: Mark = (result.framing, result.mark)
            parts = reading.framed.get((side, mark), [])
            versions = registered.versions.get(mark, ())
            if versions and parts and _is_meant(where, mark, parts, versions):
                yield from _of_rule(where, result, parts, versions)


def _is_meant(
    where: SideOfTopic, mark: Mark, parts: Sequence[PartitionSpan], versions: Sequence[RegisteredVersion]
) -> bool:
    """Return whether the bytes are messages of the schema, and not binary data that looks framed."""
    bad = where.reading.undecodable.get((where.side, mark), ())
    is_own = any(version.subject in where.subjects for version in versions)
    return is_own or 2 * count_of(parts_of(bad)) < count_of(parts)


def _of_rule(
    where: SideOfTopic,
    result: ContractRuleResult,
    parts: Sequence[PartitionSpan],
    versions: Sequence[RegisteredVersion],
) -> Iterator[JudgedFinding]:
    rule, mark = result.rule, (result.framing, result.mark)
    own = [version for version in versions if version.subject in where.subjects] or versions
    names = {"rule": rule.name, "mark": mark_words(mark), "owners": owners(own)}
    evidence: dict[str, Any] = {
        **mark_evidence(mark),
        "owners": names["owners"],
        "contract_rule": rule.name,
        "rule_type": rule.type,
        "expression": rule.expression[:LONGEST],
        "rule_mode": rule.mode,
        "on_failure": rule.on_failure,
        "evaluated_messages": result.messages,
    }
    about: dict[str, Any] = {"key": (*mark, rule.name), "subject": own[0].subject}
    if result.broken:
        shown: dict[str, Any] = {"example": _examples(result)}
        if result.paths:
            shown["paths"] = [f"{path} ({number:,})" for path, number in result.paths.items()]
        finding = where.finding(
            "CONTRACT_RULE_BROKEN",
            parts,
            {**names, "share": share_of(result.broken, result.messages), "effect": _effect(rule)},
            evidence={**evidence, **shown},
            severity=_severity(rule),
            count=result.broken,
            **about,
        )
        places = [(partition, offset, offset) for partition, offset in result.first]
        yield finding if finding.offending else replace(finding, offending=offending_at(places))
    if result.not_checked:
        number = sum(result.not_checked.values())
        most = dict(sorted(result.not_checked.items(), key=lambda item: (-item[1], item[0])))
        yield where.finding(
            "CONTRACT_RULE_NOT_CHECKED",
            parts,
            {**names, "share": share_of(number, number + result.messages), "reason": reason_words(most, 0)},
            evidence={**evidence, "by_reason": most},
            count=number,
            **about,
        )


def _examples(result: ContractRuleResult) -> list[dict[str, int]]:
    return [{"partition": partition, "offset": offset} for partition, offset in result.first[:MOST_EXAMPLES]]


def _severity(rule: ContractRule) -> Severity:
    """Return what a broken rule means: readers refuse the message, a writer evaded the rule, or nothing happens."""
    if rule.on_failure == "NONE":
        return "notice"
    return "break" if rule.mode != "WRITE" and rule.on_failure == REFUSED else "risk"


def _effect(rule: ContractRule) -> str:
    if rule.on_failure == "NONE":
        return "Clients that check rules ignore this"
    if rule.mode == "WRITE":
        return "Its producer doesn't check rules, or checks another version's"
    if rule.on_failure == REFUSED:
        return "Consumers that check rules can't read these messages"
    return f"Consumers that check rules hand these messages to the action {rule.on_failure[:80]}"
