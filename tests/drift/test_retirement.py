"""Whether a version can be retired, case by case."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.drift.retirement import WORST_FIRST, GroupPosition, Groups, Retention, Retirement, can_retire
from registry.drift.usage import Coverage, PartitionUse, TopicUse, VersionUse
from registry.subjects.evidence import Evidence

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "retirement_cases.yaml").read_text())
NOW = datetime(2026, 12, 1, tzinfo=UTC)
DAY_MS = 86_400_000


def milliseconds(days: int | None) -> int | None:
    return days if days is None or days < 0 else days * DAY_MS


def coverage_of(number: int, name: str, given: dict[str, Any]) -> Coverage:
    scanned = NOW - timedelta(days=given.get("checked", 0)) if given.get("scanned", True) else None
    return Coverage(
        topic_id=number,
        topic=name,
        source="shop",
        cluster="main",
        is_own=given.get("owner", "this") != "other",
        partitions=given.get("partitions", 1),
        messages=5_000 if scanned else 0,
        read_from=given.get("read_from", {}),
        positions={},
        compacted=given.get("cleanup", "delete") != "delete",
        retention_ms=milliseconds(given.get("days", 7)),
        checked_at=scanned,
        read_at=scanned,
        gone_at=NOW if given.get("gone") else None,
        problem=given.get("problem", ""),
    )


def retention_of(coverage: Coverage, given: dict[str, Any]) -> Retention:
    if "lows" not in given:
        return Retention.stored(coverage)
    policies = given.get("cleanup", "delete").split(",")
    return Retention("compact" in policies, "delete" in policies, coverage.retention_ms, given["lows"], given["highs"])


def use_of(number: int, name: str, given: dict[str, Any]) -> TopicUse:
    parts = tuple(
        PartitionUse(
            partition, last - first + 1, 0, 10, first, last, NOW - timedelta(days=99), NOW - timedelta(days=days)
        )
        for partition, first, last, days in given["use"]
    )
    messages = sum(part.messages for part in parts)
    last = max(part.last_time for part in parts)
    owner = given.get("owner", "this")
    return TopicUse(
        number, name, "shop", "main", "value", "id", "7", owner, messages, 0.5, parts[0].first_time, last, parts
    )


def judged(case: dict[str, Any]) -> Retirement:
    topics = list(enumerate(case["topics"].items()))
    numbers = {name: number for number, (name, _) in topics}
    coverage = [coverage_of(number, name, given) for number, (name, given) in topics]
    use = VersionUse(
        version=3,
        schema_id=7,
        guid="",
        deleted=False,
        is_latest=case.get("latest", False),
        shared_with=tuple(case.get("shared_with", ())),
        referrers=tuple(case.get("referrers", ())),
        topics=tuple(use_of(number, name, given) for number, (name, given) in topics if "use" in given),
    )
    retention = {
        item.topic_id: retention_of(item, given) for item, (_, (_, given)) in zip(coverage, topics, strict=True)
    }
    positions = tuple(
        GroupPosition(group, numbers[topic], partition, committed)
        for group, topic, partition, committed in case.get("groups", ())
    )
    groups = Groups(positions, case.get("groups_problem", ""))
    state = [Evidence("state", in_use, sentence) for in_use, sentence in case.get("state", ())]
    whole = case.get("whole_subject", False)
    return can_retire(use, coverage, retention, groups, state, NOW, whole_subject=whole)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    found = judged(case)
    assert found.answer == case["answer"], found
    for part in case.get("says", []):
        assert part in found.reasons[0].sentence
    for part in case.get("any_says", []):
        assert any(part in reason.sentence for reason in found.reasons)
    if "date" in case:
        assert found.date is not None
        assert found.date.date() == case["date"]
    assert (found.date is not None) == (found.answer == "not_before")
    assert found.reasons[0].sentence in found.sentence
    ranks = [WORST_FIRST.index(reason.answer) for reason in found.reasons]
    assert ranks == sorted(ranks), "the weightiest reason comes first"


def test_every_answer_has_a_case() -> None:
    assert {case["answer"] for case in CASES} == set(WORST_FIRST)
