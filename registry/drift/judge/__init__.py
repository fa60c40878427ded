"""From what a scan observed and what is registered to findings. Pure: no database, no Spark, no clock.

Four things are kept apart: what a schema *declares*, what the registry has *registered*, which version topics are
*currently* written with, and what was *observed*. What is registered and not seen yet is pending, no drift; what
wasn't scanned isn't clean.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from registry.drift.judge.declared import Declared, DeclaredField, declared_fields, record_name
from registry.drift.judge.fields import judge_fields
from registry.drift.judge.model import (
    Event,
    FieldDay,
    FieldKey,
    JudgedFinding,
    KnownFinding,
    Mark,
    Memory,
    Registered,
    RegisteredVersion,
    SubjectSummary,
    TopicMemory,
    TopicSide,
    Use,
)
from registry.drift.judge.pairs import Pending, pending_versions, subjects_without_topic
from registry.drift.judge.reading import SIDES, marks_seen, readings
from registry.drift.judge.states import judge_state
from registry.drift.judge.strategies import Belonging, belonging
from registry.drift.judge.telling import SideOfTopic
from registry.drift.judge.topics import judge_expired, judge_remade, judge_topic
from registry.drift.judge.versions import UNNAMED, message_types
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
    "NO_MEMORY",
    "Belonging",
    "Declared",
    "DeclaredField",
    "Event",
    "FieldDay",
    "FieldKey",
    "JudgedFinding",
    "KnownFinding",
    "Mark",
    "Memory",
    "Pending",
    "Registered",
    "RegisteredVersion",
    "SubjectSummary",
    "TopicMemory",
    "TopicSide",
    "Use",
    "belonging",
    "belongings",
    "declared_fields",
    "in_order",
    "judge",
    "marks_seen",
    "nothing_read",
    "pending",
    "record_name",
    "types_seen",
]

#: of a first scan
NO_MEMORY: Final = Memory()
_RANK = {"break": 0, "risk": 1, "notice": 2}


def nothing_read(observations: Iterable[Observation]) -> bool:
    """Whether a scan saw neither a message nor a state schema nor a row: such a source is not scanned, never clean."""
    for seen in observations:
        if isinstance(seen, TopicTotals) and seen.messages:
            return False
        if isinstance(seen, FramedMessages | UnframedMessages | OtherGroups | StateSchemaVersion):
            return False
        if isinstance(seen, StateRows) and seen.rows:
            return False
    return True


def judge(
    observations: Iterable[Observation], registered: Registered, memory: Memory = NO_MEMORY
) -> list[JudgedFinding]:
    """The findings of one scan, in the order of their severity.

    When nothing was read (see `nothing_read`) there are those of expired offsets and of topics that were made anew alone.
    The order of the observations doesn't matter.
    """
    seen = list(observations)
    found = [*judge_expired(seen, registered), *judge_remade(seen, registered, memory)]
    if nothing_read(seen):
        return in_order(found)
    found += judge_state(seen)
    topics = readings(seen)
    for reading in topics:
        found += judge_topic(reading, registered, memory)
        found += judge_fields(reading, registered, memory)
    if topics:
        found += subjects_without_topic(registered, memory)
    return in_order(found)


def in_order(found: Iterable[JudgedFinding]) -> list[JudgedFinding]:
    """The worst first, then in the order of the rules and of the places."""
    order = {rule: number for number, rule in enumerate(RULES)}
    return sorted(found, key=lambda each: (_RANK[each.severity], order[each.rule], each.location, each.fingerprint))


def pending(observations: Iterable[Observation], registered: Registered, memory: Memory = NO_MEMORY) -> list[Pending]:
    """Versions that are registered and not yet seen in their topic: for the scan's record, never drift."""
    return pending_versions(readings(observations), registered, memory)


def belongings(observations: Iterable[Observation], registered: Registered) -> dict[TopicSide, Belonging]:
    """The subject name strategies and subjects of every topic and side that was read."""
    return {
        (reading.topic, side): belonging((reading.topic, side), reading.marks(side), registered)
        for reading in readings(observations)
        for side in SIDES
    }


def types_seen(
    observations: Iterable[Observation], registered: Registered
) -> dict[TopicSide, dict[str, dict[str, tuple[int, int]]]]:
    """The Protobuf message types of every topic and side, by subject and full name, with their first and last time."""
    found: dict[TopicSide, dict[str, dict[str, tuple[int, int]]]] = {}
    for reading in readings(observations):
        for side in SIDES:
            subjects = belonging((reading.topic, side), reading.marks(side), registered).subjects
            where = SideOfTopic(reading, side, registered, NO_MEMORY, subjects)
            for subject, types in message_types(where).items():
                named = {
                    name: (min(part.first_time for part in parts), max(part.last_time for part in parts))
                    for name, parts in types.items()
                    if not name.startswith(f"{UNNAMED} ")
                }
                if named:
                    found.setdefault((reading.topic, side), {})[subject] = named
    return found
