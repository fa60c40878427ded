"""A finding of every rule as its own judge makes it, from the case files that the judges' tests read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from registry.drift.debezium.judging import judge_debezium
from registry.drift.judge import JudgedFinding, judge
from registry.drift.judge.queries import judge_query
from registry.drift.judge.registries import judge_registry
from tests.drift import test_judge, test_judge_queries, test_judge_registry
from tests.drift.debezium import test_judging
from tests.drift.debezium.worlds import world
from tests.drift.judging import memory, observations, registered


def _all() -> Iterator[JudgedFinding]:
    for case in test_judge.CASES:
        yield from judge(observations(case), registered(case), memory(case))
    for case in test_judge_queries.CASES:
        yield from judge_query(test_judge_queries.facts(case["query"]))
    for case in test_judge_registry.CASES:
        yield from judge_registry(test_judge_registry.facts_of(case["facts"]))
    for case in test_judging.CASES:
        yield from judge_debezium(world(case))


@cache
def findings_by_rule() -> dict[str, JudgedFinding]:
    """Of each rule the finding with the most evidence."""
    best: dict[str, JudgedFinding] = {}
    for finding in _all():
        known = best.get(finding.rule)
        if known is None or len(finding.evidence) > len(known.evidence):
            best[finding.rule] = finding
    return best
