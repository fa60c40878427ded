"""Turns a scan's observations and the registered versions into findings. Pure: no database, no Spark, no clock.

Four things are kept separate: what a schema *declares*, what is *registered*, the versions that topics are *currently*
written with, and what was *observed*. A registered version that wasn't seen yet is pending, not drift; what wasn't
scanned isn't clean.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from registry.drift.judge.contract_rules import judge_contracts
from registry.drift.judge.declared_fields import DeclaredField, DeclaredFields, declared_fields
from registry.drift.judge.fields import judge_fields
from registry.drift.judge.finding_builder import CHECK_LIMITED, SideOfTopic, judge_limits, unchecked, unproved
from registry.drift.judge.model import (
    Event,
    FieldDay,
    FieldKey,
    JudgedFinding,
    KnownFinding,
    Mark,
    MarkUse,
    Memory,
    Registered,
    RegisteredVersion,
    SubjectSummary,
    TopicMemory,
    TopicSide,
    TopicVolume,
)
from registry.drift.judge.silent_versions import judge_silent_versions
from registry.drift.judge.streaming_queries import judge_state
from registry.drift.judge.topic_observations import SIDES, SideSubjects, collect_marks, group_by_topic, subjects_of_side
from registry.drift.judge.topics import judge_expired, judge_recreated, judge_topic
from registry.drift.judge.versions import (
    UNNAMED,
    PendingVersion,
    message_types,
    pending_versions,
    subjects_without_topic,
)
from registry.drift.judge.volume import judge_volume
from registry.drift.rules import RULES
from registry.observations import (
    FramedMessages,
    Observation,
    OtherGroups,
    StateRows,
    StateSchemaVersion,
    TopicTotals,
    UnframedMessages,
)

__all__ = [
    "CHECK_LIMITED",
    "NO_MEMORY",
    "DeclaredField",
    "DeclaredFields",
    "Event",
    "FieldDay",
    "FieldKey",
    "JudgedFinding",
    "KnownFinding",
    "Mark",
    "MarkUse",
    "Memory",
    "PendingVersion",
    "Registered",
    "RegisteredVersion",
    "SideSubjects",
    "SubjectSummary",
    "TopicMemory",
    "TopicSide",
    "TopicVolume",
    "collect_marks",
    "declared_fields",
    "in_order",
    "judge",
    "message_types_by_side",
    "nothing_read",
    "pending",
    "subjects_by_side",
    "subjects_of_side",
    "unchecked",
    "unproved",
]

#: for a first scan
NO_MEMORY: Final = Memory()
_RANK = {"break": 0, "risk": 1, "notice": 2}


def nothing_read(observations: Iterable[Observation]) -> bool:
    """Return whether a scan saw no message, no state schema and no row: such a source isn't scanned, never clean."""
    for observation in observations:
        if isinstance(observation, TopicTotals) and observation.messages:
            return False
        if isinstance(observation, FramedMessages | UnframedMessages | OtherGroups | StateSchemaVersion):
            return False
        if isinstance(observation, StateRows) and observation.rows:
            return False
    return True


def judge(
    observations: Iterable[Observation], registered: Registered, memory: Memory = NO_MEMORY
) -> list[JudgedFinding]:
    """Return the findings of one scan, worst first.

    If nothing was read (see `nothing_read`), there are only those about expired offsets, recreated topics and volume. The order
    of the observations doesn't matter.
    """
    listed = list(observations)
    findings = [*judge_expired(listed, registered, memory), *judge_recreated(listed, registered, memory)]
    findings += judge_volume(registered, memory)
    if nothing_read(listed):
        return in_order(findings)
    findings += judge_state(listed)
    topics = group_by_topic(listed)
    for reading in topics:
        findings += judge_topic(reading, registered, memory)
        findings += judge_fields(reading, registered, memory)
        findings += judge_contracts(reading, registered, memory)
        findings += judge_silent_versions(reading, registered, memory)
        findings += judge_limits(reading)
    if topics:
        findings += subjects_without_topic(registered, memory)
    return in_order(findings)


def in_order(findings: Iterable[JudgedFinding]) -> list[JudgedFinding]:
    """Return the findings, worst first, then by the order of the rules and by location."""
    order = {rule: number for number, rule in enumerate(RULES)}
    return sorted(
        findings,
        key=lambda finding: (_RANK[finding.severity], order[finding.rule], finding.location, finding.fingerprint),
    )


def pending(
    observations: Iterable[Observation], registered: Registered, memory: Memory = NO_MEMORY
) -> list[PendingVersion]:
    """Return registered versions not yet seen in their topic: for the scan's record, never drift."""
    return pending_versions(group_by_topic(observations), registered, memory)


def subjects_by_side(observations: Iterable[Observation], registered: Registered) -> dict[TopicSide, SideSubjects]:
    """Return the subject name strategies and subjects of every topic and side that was read."""
    return {
        (reading.topic, side): subjects_of_side((reading.topic, side), reading.marks(side), registered)
        for reading in group_by_topic(observations)
        for side in SIDES
    }


def message_types_by_side(
    observations: Iterable[Observation], registered: Registered
) -> dict[TopicSide, dict[str, dict[str, tuple[int, int]]]]:
    """Return the Protobuf message types by topic and side, subject and full name, with their first and last time."""
    types_by_side: dict[TopicSide, dict[str, dict[str, tuple[int, int]]]] = {}
    for reading in group_by_topic(observations):
        for side in SIDES:
            subjects = subjects_of_side((reading.topic, side), reading.marks(side), registered).subjects
            where = SideOfTopic(reading, side, registered, NO_MEMORY, subjects)
            for subject, types in message_types(where).items():
                named = {
                    name: (min(part.first_time for part in parts), max(part.last_time for part in parts))
                    for name, parts in types.items()
                    if not name.startswith(f"{UNNAMED} ")
                }
                if named:
                    types_by_side.setdefault((reading.topic, side), {})[subject] = named
    return types_by_side
