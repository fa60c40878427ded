"""A finding of every rule as its own judge makes it, from the case files that the judges' tests read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from registry.drift.debezium.judge import judge_debezium, removed_connector
from registry.drift.judge import JudgedFinding, judge
from registry.drift.judge.registries import judge_registry
from registry.drift.judge.streaming_queries import judge_query
from tests.drift.debezium import test_connector
from tests.drift.debezium.worlds import world
from tests.drift.judge import test_judge, test_registries
from tests.drift.judge.cases import memory, observations, registered


def _all() -> Iterator[JudgedFinding]:
    for case in test_judge.CASES:
        yield from judge(observations(case), registered(case), memory(case))
    for case in test_judge.QUERY_CASES:
        yield from judge_query(test_judge.facts(case["query"]))
    for case in test_registries.CASES:
        yield from judge_registry(test_registries.facts_of(case["facts"]))
    for case in test_connector.CASES:
        yield from judge_debezium(world(case))
    yield removed_connector("shop", "connect:8083", "shop", "Its slot shop is still there.")


@cache
def findings_by_rule() -> dict[str, JudgedFinding]:
    """Of each rule the finding with the most evidence."""
    best: dict[str, JudgedFinding] = {}
    for finding in _all():
        richest = best.get(finding.rule)
        if richest is None or len(finding.evidence) > len(richest.evidence):
            best[finding.rule] = finding
    return best
