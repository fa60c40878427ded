"""Thirty scans over changing, correct traffic find nothing; a fault in the same traffic is found by its own scan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from registry.drift.judge import JudgedFinding, KnownFinding, Registered, RegisteredVersion, judge, pending
from registry.observations import (
    FieldProfile,
    FramedMessages,
    FramedTwice,
    MessageIndexes,
    Observation,
    Span,
    UndecodableMessages,
    UnframedMessages,
)
from tests.drift.judge.traffic import DAY, FIRST, GUID, ConnectorFacts

SCANS = 30
FAULT_DAYS = (13, 26, 27)  # a weekday, and a weekend with a third of the volume
SEEDS = range(8)
#: clicks are plain JSON that nobody described: that is said of them, as a notice, and nothing else of anything
EXPECTED_NOTICE = ("TOPIC_WITHOUT_SUBJECT", "clicks")


def scan(world: ConnectorFacts, day: int) -> tuple[list[Observation], Registered, list[JudgedFinding]]:
    observed, registered = world.scan(day), world.registered(day)
    return observed, registered, judge(observed, registered, world.memory(day))


@pytest.mark.requirement("CARD-3")
@pytest.mark.parametrize("seed", SEEDS)
def test_thirty_scans_of_correct_traffic_find_nothing(seed: int) -> None:
    world = ConnectorFacts(seed)
    waited = set()
    for day in range(SCANS):
        observed, registered, findings = scan(world, day)
        assert {(item.rule, item.topic) for item in findings} == {EXPECTED_NOTICE}, f"day {day}"
        waited |= {item.version for item in pending(observed, registered, world.memory(day))}
        world.remember(day, observed)
    assert waited == {2, 3}, "a version waits for its first producer before it is seen"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_four_scans_a_day_find_nothing_in_quiet_and_busy_hours(seed: int) -> None:
    world = ConnectorFacts(seed, scans_a_day=4)
    for day in range(SCANS):
        for part in range(world.scans_a_day):
            world.part = part
            observed, _, findings = scan(world, day)
            assert {(finding.rule, finding.topic) for finding in findings} <= {EXPECTED_NOTICE}, (
                f"day {day}, part {part}"
            )
            world.remember(day, observed)


def where(day: int, messages: int = 41) -> Span:
    begin = (FIRST + day) * DAY
    return Span(messages, messages * 50, 10**7, 10**7 + messages - 1, begin, begin + DAY - 1)


def added(make: Callable[[int], list[Observation]]) -> Callable[..., Any]:
    return lambda observed, registered, day: ([*observed, *make(day)], registered)


def changed(path: str, topic: str = "orders", **values: Any) -> Callable[..., Any]:
    """The profiles of a path, with other counts; a callable gets the profile."""

    def fault(observed: list[Observation], registered: Registered, day: int) -> Any:
        def other(item: Observation) -> Observation:
            if not isinstance(item, FieldProfile) or (item.topic, item.path) != (topic, path):
                return item
            return replace(item, **{name: make(item) for name, make in values.items()})

        return [other(item) for item in observed], registered

    return fault


def registered_otherwise(number: int, **values: Any) -> Callable[..., Any]:
    def fault(observed: list[Observation], registered: Registered, day: int) -> Any:
        mark = ("id", str(number))
        versions: tuple[RegisteredVersion, ...] = tuple(replace(item, **values) for item in registered.versions[mark])
        return observed, replace(registered, versions={**registered.versions, mark: versions})

    return fault


def a_late_producer(observed: list[Observation], registered: Registered, day: int) -> Any:
    """Version 1 is written still, more than a week after versions 2 and 3 came into use; before that, it is grace."""
    return [*observed, FramedMessages("orders", "value", 0, "id", "11", where(day))], registered


FAULTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "an unknown id": (
        "UNKNOWN_SCHEMA_ID",
        added(lambda day: [FramedMessages("orders", "value", 0, "id", "900", where(day, 1))]),
    ),
    "an unknown GUID": (
        "UNKNOWN_SCHEMA_ID",
        added(lambda day: [FramedMessages("shipments", "value", 0, "guid", GUID[::-1], where(day, 1))]),
    ),
    "the id of another subject": (
        "ID_OF_OTHER_SUBJECT",
        added(lambda day: [FramedMessages("orders", "value", 0, "id", "30", where(day, 1))]),
    ),
    "a deleted version": ("ID_DELETED", registered_otherwise(30, deleted=True)),
    "a version that nobody released": ("ID_NOT_RELEASED", registered_otherwise(30, released=False)),
    "a body that is cut off": (
        "UNDECODABLE",
        added(
            lambda day: [
                UndecodableMessages("orders", "value", 0, "id", "11", where(day, 1), (10**7,), ("ends early",)),
                FramedMessages("orders", "value", 0, "id", "11", where(day, 1)),
            ]
        ),
    ),
    "plain JSON": (
        "UNFRAMED_DATA",
        added(lambda day: [UnframedMessages("orders", "value", 0, "json_object", where(day, 1))]),
    ),
    "a frame that is cut off": (
        "FRAME_TRUNCATED",
        added(lambda day: [UnframedMessages("orders", "value", 0, "cut_frame", where(day, 1))]),
    ),
    "a second framing": (
        "FRAMING_MIXED",
        added(lambda day: [FramedMessages("shipments", "value", 0, "id", "50", where(day, 1))]),
    ),
    "a frame below a header": (
        "FRAMED_TWICE",
        added(
            lambda day: [
                FramedTwice("shipments", "value", 0, GUID, 50, where(day, 1)),
                UndecodableMessages("shipments", "value", 0, "guid", GUID, where(day, 1), (10**7,), ("odd",)),
            ]
        ),
    ),
    "another message type": (
        "MESSAGE_TYPE_CHANGED",
        added(lambda day: [MessageIndexes("refunds", "value", 0, "id", "40", "1", where(day, 1))]),
    ),
    "another message type in a scan of its own": (
        "MESSAGE_TYPE_CHANGED",
        lambda observed, registered, day: (
            [
                replace(item, indexes="0" if item.indexes == "1" else "1") if isinstance(item, MessageIndexes) else item
                for item in observed
            ],
            registered,
        ),
    ),
    "another framing in a scan of its own": (
        "FRAMING_MIXED",
        lambda observed, registered, day: (
            [
                replace(item, framing="id", mark="50")
                if isinstance(item, FramedMessages) and item.topic == "shipments"
                else item
                for item in observed
            ],
            registered,
        ),
    ),
    "keys of another schema": (
        "KEY_SCHEMA_CHANGED",
        lambda observed, registered, day: (
            [*observed, FramedMessages("orders", "key", 0, "id", "21", where(day, 1))],
            replace(registered, versions={**registered.versions, ("id", "21"): (RegisteredVersion("orders-key", 2),)}),
        ),
    ),
    "a field that is empty in most messages": (
        "NULL_SHARE_INCREASED",
        changed("mail", nulls=lambda item: item.messages * 9 // 10),
    ),
    "a field that nobody fills any more": (
        "FIELD_NEVER_FILLED",
        changed("mail", nulls=lambda item: item.messages),
    ),
    "a path that is gone from plain JSON": (
        "FIELD_NEVER_FILLED",
        lambda observed, registered, day: ([e for e in observed if getattr(e, "path", "") != "page"], registered),
    ),
    "a number that became a text": (
        "FIELD_TYPE_NEW",
        changed("amt", "clicks", kinds=lambda item: {**item.kinds, "string": max(20, item.messages // 10)}),
    ),
    "a default in place of the real value": (
        "ENUM_SHARE_SHIFTED",
        changed("state", values=lambda item: {"NEW": item.messages}),
    ),
    "an undeclared field": (
        "FIELD_UNDECLARED",
        lambda observed, registered, day: (
            [
                *observed,
                FieldProfile("carts", "value", "id", "30", "extra", 300, 1, 0, {"string": 1}, None, None, None, {}),
            ],
            registered,
        ),
    ),
    "a required field that is missing": (
        "FIELD_MISSING",
        changed("lines", "carts", present=lambda item: item.messages - 1),
    ),
    "a kind that the schema doesn't allow": (
        "FIELD_TYPE_WRONG",
        changed("id", "carts", kinds=lambda item: {"string": item.messages - 1, "integer": 1}),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 5])
def test_each_fault_is_found_by_its_own_scan_and_nothing_else_is(seed: int) -> None:
    world = ConnectorFacts(seed)
    missed = []
    for day in range(SCANS):
        observed, registered, clean = scan(world, day)
        if day in FAULT_DAYS:
            clean_fingerprints = {finding.fingerprint for finding in clean}
            for name, (rule, fault) in FAULTS.items():
                bad, other = fault(observed, registered, day)
                fresh = {
                    finding.rule
                    for finding in judge(bad, other, world.memory(day))
                    if finding.fingerprint not in clean_fingerprints
                }
                # A stray message of an old version is an old version in use as well, once its grace is over.
                if rule not in fresh or fresh - {rule, "OLD_VERSION_WRITTEN"}:
                    missed.append((name, day, sorted(fresh)))
        world.remember(day, observed)
    assert not missed


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["NULL_SHARE_INCREASED", "FIELD_NEVER_FILLED", "FIELD_TYPE_NEW", "ENUM_SHARE_SHIFTED"])
def test_a_lasting_fault_opens_one_finding_and_goes_once_in_many_scans_a_day(rule: str) -> None:
    """A source of one scan every two hours; two scans in a row without the finding resolve it."""
    world = ConnectorFacts(2, scans_a_day=12)
    fault = next(fault for own, fault in FAULTS.values() if own == rule)
    fingerprint, since, unseen, opened = "", 0, 0, []
    for day in range(26):
        for part in range(world.scans_a_day):
            world.part = part
            observed, registered = world.scan(day), world.registered(day)
            if 15 <= day < 20:
                observed, registered = fault(observed, registered, day)
            memory = world.memory(day)
            known = {fingerprint: KnownFinding(since=since)} if fingerprint else {}
            own = [item for item in judge(observed, registered, replace(memory, findings=known)) if item.rule == rule]
            unseen = 0 if own else unseen + 1
            if own and not fingerprint:
                fingerprint, since = own[0].fingerprint, memory.as_of
                opened.append(day)
            elif unseen == 2:
                fingerprint = ""
            world.remember(day, observed)
    assert opened == [15]
    assert not fingerprint, "it is resolved after the fault is over"


def test_a_producer_that_stays_behind_is_found_after_its_grace() -> None:
    world = ConnectorFacts(3)
    found_on = []
    for day in range(SCANS):
        observed, registered, _ = scan(world, day)
        bad, _ = a_late_producer(observed, registered, day)
        rules = {finding.rule for finding in judge(bad, registered, world.memory(day))}
        if "OLD_VERSION_WRITTEN" in rules:
            found_on.append(day)
        world.remember(day, observed)
    first_use = 8 + min(world.delays[12, producer] for producer in range(5))
    assert found_on
    assert first_use + 7 <= found_on[0] <= first_use + 9
    assert len(found_on) >= 10, "it stays found"
