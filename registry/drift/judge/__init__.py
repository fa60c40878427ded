"""From what a scan observed and what is registered to findings. Pure: no database, no Spark, no clock."""

from __future__ import annotations

from collections.abc import Iterable

from registry.drift.judge.model import JudgedFinding, Registered, RegisteredVersion
from registry.drift.judge.states import judge_state
from registry.drift.judge.topics import judge_topic
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

__all__ = ["JudgedFinding", "Registered", "RegisteredVersion", "judge", "nothing_read"]


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


def judge(observations: Iterable[Observation], registered: Registered) -> list[JudgedFinding]:
    """The findings of one scan, in the order of their severity; none when nothing was read (see `nothing_read`)."""
    seen = list(observations)
    if nothing_read(seen):
        return []
    found = [*judge_topic(seen, registered), *judge_state(seen)]
    order = list(RULES)
    rank = {"break": 0, "risk": 1, "notice": 2}
    return sorted(
        found, key=lambda each: (rank[each.severity], order.index(each.rule), each.location, each.fingerprint)
    )
