"""Whether a version can be retired, case by case."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.drift.usage.retirement_rules import WORST_FIRST, GroupPosition, Groups, Retention, Retirement, can_retire
from registry.drift.usage.subject_topics import Unidentified
from registry.drift.usage.version_usage import Coverage, PartitionUse, TopicUse, VersionUse
from registry.subjects.usage.evidence import Evidence

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "retirement_cases.yaml").read_text())
NOW = datetime(2026, 12, 1, tzinfo=UTC)
DAY_MS = 86_400_000


def milliseconds(days: int | None) -> int | None:
    return days if days is None or days < 0 else days * DAY_MS


def coverage_of(number: int, name: str, values: dict[str, Any]) -> Coverage:
    scanned = NOW - timedelta(days=values.get("checked", 0)) if values.get("scanned", True) else None
    return Coverage(
        topic_id=number,
        topic=name,
        source="shop",
        cluster="main",
        is_own=values.get("owner", "this") != "other",
        partitions=values.get("partitions", 1),
        messages=5_000 if scanned and values.get("read", True) else 0,
        read_from=values.get("read_from", {}),
        positions={},
        compacted=values.get("cleanup", "delete") != "delete",
        retention_ms=milliseconds(values.get("days", 7)),
        checked_at=scanned,
        read_at=scanned if values.get("read", True) else None,
        gone_at=NOW if values.get("gone") else None,
        problem=values.get("problem", ""),
        unidentified=tuple(
            Unidentified(messages, last, NOW - timedelta(days=days))
            for messages, last, days in values.get("unidentified", ())
        ),
    )


def retention_of(coverage: Coverage, values: dict[str, Any]) -> Retention:
    if "lows" not in values:
        return Retention.stored(coverage)
    policies = values.get("cleanup", "delete").split(",")
    return Retention(
        "compact" in policies, "delete" in policies, coverage.retention_ms, values["lows"], values["highs"]
    )


def use_of(number: int, name: str, values: dict[str, Any]) -> TopicUse:
    parts = tuple(
        PartitionUse(
            partition, last - first + 1, 0, 10, first, last, NOW - timedelta(days=99), NOW - timedelta(days=days)
        )
        for partition, first, last, days in values["use"]
    )
    messages = sum(part.messages for part in parts)
    last = max(part.last_time for part in parts)
    owner = values.get("owner", "this")
    return TopicUse(
        number, name, "shop", "main", "value", "id", "7", owner, messages, 0.5, parts[0].first_time, last, parts
    )


def judged(case: dict[str, Any]) -> Retirement:
    topics = list(enumerate(case["topics"].items()))
    numbers = {name: number for number, (name, _) in topics}
    coverage = [coverage_of(number, name, values) for number, (name, values) in topics]
    use = VersionUse(
        version=3,
        schema_id=7,
        guid="",
        deleted=False,
        is_latest=case.get("latest", False),
        shared_with=tuple(case.get("shared_with", ())),
        referrers=tuple(case.get("referrers", ())),
        topics=tuple(use_of(number, name, values) for number, (name, values) in topics if "use" in values),
    )
    retention = {
        item.topic_id: retention_of(item, values) for item, (_, (_, values)) in zip(coverage, topics, strict=True)
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
    retirement = judged(case)
    assert retirement.answer == case["answer"], retirement
    for part in case.get("says", []):
        assert part in retirement.reasons[0].sentence
    for part in case.get("never_says", []):
        assert not any(part in reason.sentence for reason in retirement.reasons)
    for part in case.get("any_says", []):
        assert any(part in reason.sentence for reason in retirement.reasons)
    if "date" in case:
        assert retirement.date is not None
        assert retirement.date.date() == case["date"]
    assert (retirement.date is not None) == (retirement.answer == "not_before")
    assert retirement.reasons[0].sentence in retirement.sentence
    ranks = [WORST_FIRST.index(reason.answer) for reason in retirement.reasons]
    assert ranks == sorted(ranks), "the weightiest reason comes first"


def test_every_answer_has_a_case() -> None:
    assert {case["answer"] for case in CASES} == set(WORST_FIRST)
