"""From what is known of a connector to findings. Pure: no network, no database, no clock."""

from __future__ import annotations

from collections.abc import Iterator

from registry.drift.debezium.facts import World
from registry.drift.debezium.judge_columns import judge_columns
from registry.drift.debezium.judge_connector import judge_connector
from registry.drift.debezium.judge_events import judge_events
from registry.drift.debezium.judge_names import judge_names
from registry.drift.debezium.judge_tables import judge_tables
from registry.drift.debezium.rules import RULES
from registry.drift.judge.model import JudgedFinding

_RANK = {"break": 0, "risk": 1, "notice": 2}


def judge_debezium(world: World) -> list[JudgedFinding]:
    """The findings, the gravest first."""
    order = {rule: place for place, rule in enumerate(RULES)}
    return sorted(
        _all(world), key=lambda each: (_RANK[each.severity], order[each.rule], each.location, each.fingerprint)
    )


def _all(world: World) -> Iterator[JudgedFinding]:
    for judge in (judge_connector, judge_names, judge_tables, judge_events, judge_columns):
        yield from judge(world)
