"""Findings from scan to scan, decisions on them, and what scans add to earlier ones, by hour too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from dashboard.findings.evidence_tables import bar_tables
from dashboard.sources.labels import notes_on
from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.drift import selectors, services
from registry.drift.judge import JudgedFinding
from registry.drift.judge.topic_observations import milliseconds, part_of, positions
from registry.drift.models import FieldStatistic, Finding, Mute, SchemaUse, Source, Topic
from registry.drift.scan.aggregation import MOST_HOURS, ByHour, by_hour
from registry.drift.scan_context.topics import memory_of
from registry.drift.selectors.deployments import MAX_NAMED
from registry.errors import (
    FindingNotFound,
    InvalidInput,
    MuteNotFound,
    NotAllowed,
    SourceNotFound,
    SubjectNotFound,
    WrongState,
)
from registry.observations import FieldProfile, Observation, Span, UndecodableMessages
from registry.subjects.models import SchemaVersion
from registry.subjects.policy.registries import ensure_registry
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.drift.scans import READ, framed, judged, make_source, scan, states, topic

pytestmark = pytest.mark.requirement("CARD-3")
Person = Callable[[str], Actor]


@pytest.fixture
def source(registries: None) -> Source:
    return make_source()


def only() -> Finding:
    return Finding.objects.get()


def test_a_finding_is_one_row_however_often_it_is_seen(source: Source, system: Actor) -> None:
    scan(source, system, judged(count=1, cause="a deployment"))
    scan(source, system, judged(count=7, severity="risk"))
    assert (only().count, only().severity, only().subject_name, only().topic.name) == (
        8,
        "risk",
        "orders-value",
        "orders",
    )
    assert only().last_seen > only().first_seen
    assert only().first_scan_id != only().last_scan_id


def test_what_was_read_again_is_not_counted_again(source: Source, system: Actor) -> None:
    scan(source, system, judged(count=3))
    scan(source, system, judged(count=4), topics=(topic(again=True),))
    assert only().count == 4
    scan(source, system, judged("s", count=1, topic=""), judged("s", count=1, topic=""))
    scan(source, system, judged("s", count=1, topic=""))
    assert Finding.objects.get(sentence="finding s").count == 1


def test_only_clean_scans_in_a_row_resolve(source: Source, system: Actor) -> None:
    scan(source, system, judged("a"), judged("b"))
    scan(source, system, judged("b"))
    assert states() == {"finding a": "open", "finding b": "open"}
    scan(source, system, judged("a"), judged("b"))
    scan(source, system, judged("b"))
    assert states()["finding a"] == "open", "the count of clean scans begins anew"
    scan(source, system, judged("b"))
    assert states() == {"finding a": "resolved", "finding b": "open"}
    row = Finding.objects.get(sentence="finding a")
    assert row.resolved_at
    scan(source, system, judged("a"))
    row.refresh_from_db()
    assert (row.state, row.resolved_at, row.reopened, row.clean_scans) == ("open", None, 1, 0)
    assert row.opened_at is not None and row.opened_at > row.first_seen
    since = memory_of(source, []).findings[row.fingerprint].since
    assert since == milliseconds(row.opened_at), "the days before are its baseline, also those of its first time"


def test_a_scan_that_lists_not_all_findings_of_a_rule_resolves_none_of_it(source: Source, system: Actor) -> None:
    rest = {"topic": "orders", "limit": "findings", "most": 50, "left_out": 2, "rule": "UNKNOWN_SCHEMA_ID"}
    limited = judged("c", rule="CHECK_LIMITED", evidence=rest)
    scan(source, system, judged("a"), judged("b", rule="UNDECODABLE"))
    for _ in range(3):
        scan(source, system, limited)
    assert states() == {"finding a": "open", "finding b": "resolved", "finding c": "open"}


def test_a_scan_keeps_what_it_did_not_check(source: Source, system: Actor) -> None:
    span = Span(3, 9, 1, 4, 1_000, 2_000)
    bodies = UndecodableMessages("orders", "value", 0, "id", "7", span, (1,), ("it is too large",), "not_read")
    limits = [judged(letter, rule="CHECK_LIMITED", evidence={"limit": "fields"}) for letter in "abcdefg"]
    read = scan(source, system, *limits, observations=(framed(), bodies)).read
    assert (read["not_decoded"], len(read["limits"])) == (3, 7)
    decoding, *notes = notes_on(read)
    assert decoding.startswith("3 keys or values were not decoded: their content was not checked.")
    assert notes[:2] == ["finding a", "finding b"]
    assert notes[-1].startswith("2 more limits kept something from being checked.")
    assert not {"not_decoded", "limits", "limits_left_out"} & scan(source, system).read.keys()


@pytest.mark.parametrize(
    ("values", "complete", "nothing"),
    [
        ({"clean": False}, True, False),
        ({"clean": False, "problem": "no leader", "positions": {}}, True, False),
        ({"name": "customers"}, True, False),
        ({"clean": False, "gone": True, "positions": {}}, True, False),
        ({}, True, True),
    ],
)
def test_a_topic_that_was_not_read_resolves_nothing(
    source: Source, system: Actor, values: dict[str, Any], complete: bool, nothing: bool
) -> None:
    scan(source, system, judged())
    unread_topic = replace(topic(), **values)
    for _ in range(3):
        scan(source, system, topics=(unread_topic,), complete=complete, read=READ | {"nothing": nothing})
    assert states() == {"finding a": "open"}
    assert only().clean_scans == 0


def test_what_concerns_no_topic_takes_scans_that_were_not_cut_short(source: Source, system: Actor) -> None:
    scan(source, system, judged(topic=""))
    for _ in range(3):
        scan(source, system, complete=False)
    assert states() == {"finding a": "open"}
    for _ in range(2):
        scan(source, system)
    assert states() == {"finding a": "resolved"}


def test_an_acknowledged_finding_stays_so_until_it_is_over_or_gets_worse(source: Source, system: Actor) -> None:
    scan(source, system, judged(severity="risk"))
    until = timezone.now() + timedelta(days=3)
    services.acknowledge(finding_id=only().pk, reason="known", until=until, by=system)
    scan(source, system, judged(severity="notice"))
    assert states() == {"finding a": "acknowledged"}
    with pytest.raises(WrongState):
        services.acknowledge(finding_id=only().pk, reason="again", by=system)
    assert services.expire_decisions(by=system) == 0
    Finding.objects.update(acknowledged_until=timezone.now() - timedelta(seconds=1))
    assert services.expire_decisions(by=system) == 1
    assert (only().state, only().reopened, only().acknowledged_until) == ("open", 1, None)
    services.acknowledge(finding_id=only().pk, reason="still known", by=system)
    scan(source, system, judged(severity="break"))
    assert (only().state, only().reopened, only().acknowledged_reason) == ("open", 2, "")


def test_a_person_opens_again_and_assigns(source: Source, system: Actor, person: Person) -> None:
    scan(source, system, judged())
    number = only().pk
    with pytest.raises(WrongState):
        services.reopen(finding_id=number, by=person("approver"))
    services.acknowledge(finding_id=number, reason="known", by=person("steward"))
    services.reopen(finding_id=number, by=person("approver"))
    assert (only().state, only().reopened) == ("open", 1)
    services.assign(finding_id=number, to="steward", by=person("approver"))
    assert [info.id for info in selectors.list_findings(assigned_to="steward")] == [number]
    with pytest.raises(InvalidInput):
        services.assign(finding_id=number, to="nobody-at-all", by=person("approver"))
    services.assign(finding_id=number, to="", by=person("approver"))
    assert only().assigned_to == ""


def test_who_may(source: Source, system: Actor, person: Person) -> None:
    scan(source, system, judged())
    number = only().pk
    mute = services.mute(registry="dev", rule="UNKNOWN_SCHEMA_ID", reason="x", by=person("approver"))
    for name in ("reader", "stranger"):
        by = person(name)
        for forbidden in (
            lambda by=by: services.queue_scan(source_id=source.pk, by=by),
            lambda by=by: services.acknowledge(finding_id=number, reason="x", by=by),
            lambda by=by: services.reopen(finding_id=number, by=by),
            lambda by=by: services.assign(finding_id=number, to="", by=by),
            lambda by=by: services.mute(registry="dev", rule="UNKNOWN_SCHEMA_ID", reason="x", by=by),
            lambda by=by: services.unmute(mute_id=mute, by=by),
        ):
            with pytest.raises(NotAllowed):
                forbidden()
    for values in ({"reason": " "}, {"reason": "x", "until": timezone.now()}, {"reason": "x" * 5000}):
        with pytest.raises(InvalidInput):
            services.acknowledge(finding_id=number, by=person("approver"), **values)
    with pytest.raises(FindingNotFound):
        services.reopen(finding_id=10**9, by=system)


def test_a_mute_covers_what_is_there_and_what_comes(source: Source, system: Actor) -> None:
    scan(source, system, judged("a"), judged("b", subject="customers-value"))
    number = services.mute(registry="dev", subject="orders-*", rule="UNKNOWN_*", reason="a migration", by=system)
    assert [info.sentence for info in selectors.list_findings()] == ["finding b"]
    assert selectors.count_findings() == {"open": 1, "muted": 1}
    assert selectors.open_findings_by_subject("dev") == {"customers-value": 1}
    scan(source, system, judged("a"), judged("b", subject="customers-value"), judged("c"))
    assert {info.sentence for info in selectors.list_findings(muted=True)} == {"finding a", "finding c"}
    assert Finding.objects.get(sentence="finding a").count == 2, "muted ones are counted"
    services.unmute(mute_id=number, by=system)
    assert len(selectors.list_findings()) == 3
    with pytest.raises(MuteNotFound):
        services.unmute(mute_id=number, by=system)


def test_a_mute_ends_by_itself(source: Source, system: Actor) -> None:
    scan(source, system, judged())
    services.mute(registry="dev", location="orders:*", reason="x", until=timezone.now() + timedelta(hours=1), by=system)
    assert selectors.list_findings() == []
    Mute.objects.update(until=timezone.now() - timedelta(seconds=1))
    services.expire_decisions(by=system)
    assert len(selectors.list_findings()) == 1


@pytest.mark.parametrize(
    "mute_values",
    [
        {"rule": "UNKNOWN_SCHEMA_ID", "reason": " "},
        {"reason": "everything"},
        {"rule": "*" * 11, "reason": "x"},
        {"rule": "x" * 65, "reason": "x"},
        {"rule": "UNKNOWN_SCHEMA_ID", "reason": "x", "until": timezone.now() - timedelta(days=1)},
    ],
)
def test_a_mute_that_cannot_be(registries: None, system: Actor, mute_values: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        services.mute(registry="dev", by=system, **mute_values)


def test_a_mute_of_an_unknown_rule_is_refused_with_the_nearest(source: Source, system: Actor) -> None:
    with pytest.raises(InvalidInput, match=r"No rule of findings is called 'UNFRAMED'\. Did you mean UNFRAMED_DATA\?"):
        services.mute(registry="dev", rule="UNFRAMED", reason="x", by=system)
    assert not Mute.objects.exists()
    scan(source, system, judged("a"), judged("b"), judged("c", subject="customers-value"))
    mute = services.mute(registry="dev", rule="UNKNOWN_*", subject="orders-*", reason="x", by=system)
    assert services.hidden_by(mute) == 2


def test_the_audit_has_decisions_and_not_what_scans_count(source: Source, system: Actor) -> None:
    def events() -> list[str]:
        rows = AuditEvent.objects.filter(table="drift_finding").order_by("pk")
        return [event.operation for event in rows]

    scan(source, system, judged())
    assert events() == ["INSERT"]
    scan(source, system, judged(count=9))
    scan(source, system)
    assert events() == ["INSERT"]
    services.acknowledge(finding_id=only().pk, reason="known", by=system)
    scan(source, system)
    scan(source, system)
    assert states() == {"finding a": "resolved"}
    assert events() == ["INSERT", "UPDATE", "UPDATE"]
    scan(source, system, judged())
    assert events() == ["INSERT", "UPDATE", "UPDATE", "UPDATE"]


# ---- what scans add ---------------------------------------------------------------------------------------------


def profile(**values: Any) -> FieldProfile:
    base = {
        "topic": "orders", "side": "value", "framing": "id", "mark": "7", "path": "amount", "messages": 5, "present": 5,
        "nulls": 1, "kinds": {"long": 4}, "distinct": 3, "minimum": "9", "maximum": "10", "values": {},
    }  # fmt: skip
    return FieldProfile(**(base | values))


def test_uses_add_up_over_scans_and_partitions(source: Source, system: Actor) -> None:
    span = framed().span
    bad = UndecodableMessages("orders", "value", 0, "id", "7", replace(span, messages=2), (1, 2), ("no", "no"))
    scan(source, system, observations=(framed(), framed(partition=1), bad))
    more = topic(positions={0: 9})
    scan(source, system, topics=(more,), observations=(framed(first=5, last=8),))
    uses = {use.partition: use for use in SchemaUse.objects.all()}
    assert (uses[0].messages, uses[0].undecodable, uses[0].schema_id) == (9, 2, 7)
    assert (uses[0].first_offset, uses[0].last_offset) == (0, 8)
    assert round(uses[0].last_time.timestamp() * 1000) == 1_008
    assert uses[1].messages == 5
    assert Topic.objects.get().messages == 10


def test_why_messages_of_earlier_scans_could_not_be_read_is_kept(source: Source, system: Actor) -> None:
    def finding_of(by_reason: dict[str, int], count: int, **more: int) -> JudgedFinding:
        evidence = {"topic": "orders", "messages": count, "by_reason": by_reason, **more}
        return judged("a", rule="SCHEMA_VIOLATED", count=count, evidence=evidence)

    def stored() -> tuple[Any, ...]:
        names = ("by_reason", "by_reason_before", "other_reasons_before")
        return (only().count, *(only().evidence.get(name) for name in names))

    scan(source, system, finding_of({"at a": 4}, 5, other_reasons=1))
    assert stored() == (5, {"at a": 4}, None, None)
    scan(source, system, finding_of({"at b": 2}, 2))
    assert stored() == (7, {"at b": 2}, {"at a": 4}, 1)
    scan(source, system, finding_of({"at a": 1}, 1))
    assert stored() == (8, {"at a": 1}, {"at a": 4, "at b": 2}, 1)
    scan(source, system, finding_of({"at a": 5, "at b": 3}, 8), topics=(topic(again=True),))
    assert stored() == (8, {"at a": 5, "at b": 3}, None, None), "what is read again stands for all"
    Finding.objects.update(evidence={"topic": "orders", "messages": 8, "offsets": []})
    scan(source, system, finding_of({"at b": 1}, 1))
    assert stored() == (9, {"at b": 1}, {}, 8), "an earlier release counted no reasons"
    Finding.objects.update(state="resolved", resolved_at=only().last_seen)
    scan(source, system, finding_of({"at b": 2}, 2))
    assert stored() == (11, {"at b": 2}, None, None), "what was over and came back is judged by what came"


def test_offsets_that_are_read_again_are_not_counted_twice(source: Source, system: Actor) -> None:
    scan(source, system, observations=(framed(),))
    again = topic(again=True, positions={0: 8}, messages=8, fresh=3)
    scan(source, system, topics=(again,), observations=(framed(first=0, last=7),))
    assert SchemaUse.objects.get().messages == 8
    scan(source, system, topics=(again,), observations=(framed(first=0, last=7),))
    assert SchemaUse.objects.get().messages == 8
    assert Topic.objects.get().positions == {"0": 8}


def test_a_topic_that_was_recreated_forgets_its_offsets(source: Source, system: Actor) -> None:
    scan(source, system, judged(), observations=(framed(), framed(mark="9")))
    anew = topic(positions={0: 2}, restarted=True, messages=2, fresh=2)
    scan(source, system, judged(), topics=(anew,), observations=(framed(first=0, last=1),))
    use = SchemaUse.objects.get()
    assert (use.mark, use.messages, use.last_offset) == ("7", 2, 1)
    assert (Topic.objects.get().messages, Topic.objects.get().positions) == (2, {"0": 2})
    assert states() == {"finding a": "open"}


def test_a_topic_that_was_lost_moves_and_counts_nothing(source: Source, system: Actor) -> None:
    scan(source, system, observations=(framed(),))
    lost = topic(positions={}, messages=0, fresh=0, clean=False, problem="it was deleted")
    scan(source, system, topics=(lost,), observations=(framed(first=5, last=9),))
    row = Topic.objects.get()
    assert (row.positions, row.problem, SchemaUse.objects.get().messages) == ({"0": 5}, "it was deleted", 5)
    scan(source, system, topics=(topic(positions={0: 10}),), observations=(framed(first=5, last=9),))
    assert (Topic.objects.get().problem, SchemaUse.objects.get().messages) == ("", 10)


def test_a_day_of_a_field_adds_up(source: Source, system: Actor) -> None:
    scan(source, system, observations=(profile(),))
    scan(source, system, observations=(profile(minimum="10", maximum="9.5", kinds={"long": 1, "null": 2}, distinct=9),))
    day = FieldStatistic.objects.get()
    assert (day.messages, day.nulls, day.kinds, day.distinct) == (10, 2, {"long": 5, "null": 2}, 9)
    assert (day.minimum, day.maximum) == ("9", "10"), "numbers are compared as numbers"
    scan(source, system, topics=(topic(again=True),), observations=(profile(messages=3),))
    assert FieldStatistic.objects.get().messages == 3
    FieldStatistic.objects.update(day=timezone.now().date() - timedelta(days=1))
    scan(source, system, observations=(profile(framing=None, mark="", distinct=None),))
    assert FieldStatistic.objects.count() == 2


def _many(number: int) -> tuple[Observation, ...]:
    uses = [framed(name=f"t{n % 10}", mark=str(n)) for n in range(number)]
    fields = [profile(topic=f"t{n % 10}", path=f"f{n}") for n in range(number)]
    return (*uses, *fields)


@pytest.mark.slow
def test_keeping_takes_as_many_queries_for_a_thousand_rows_as_for_ten(source: Source, system: Actor) -> None:
    def queries(number: int) -> int:
        topics = tuple(topic(name=f"t{n}") for n in range(10))
        findings = [judged(topic=f"t{n % 10}", fingerprint=f"{n:064d}") for n in range(number)]
        with CaptureQueriesContext(
            connection,
        ) as captured:
            scan(source, system, *findings, topics=topics, observations=_many(number))
        return len(captured)

    queries(10)
    few = queries(10)
    first = queries(1000)
    assert first <= few + 1 + 7, "inserting takes one statement more than updating alone, telling of what is new seven"
    assert queries(1000) == few
    assert (SchemaUse.objects.count(), FieldStatistic.objects.count(), Finding.objects.count()) == (1000, 1000, 1000)
    assert few < 40


def test_findings_come_worst_first(source: Source, system: Actor) -> None:
    scan(source, system, *(judged(name[0], severity=name) for name in ("notice", "break", "risk")))
    assert [info.severity for info in selectors.list_findings()] == ["break", "risk", "notice"]
    assert [info.severity for info in selectors.list_findings(severity="risk")] == ["risk"]
    assert selectors.list_findings(registry="prod") == []
    assert len(selectors.list_findings(topic="orders", subject="orders-value", rule="UNKNOWN_SCHEMA_ID")) == 3


def test_a_rollout_is_held_by_drift_and_by_what_was_not_looked_at(source: Source, system: Actor) -> None:
    gate = selectors.check_rollout_gate(fail_on="break", registry="dev")
    assert (gate.passed, gate.unscanned) == (False, ("topics (never scanned)",))
    scan(source, system, judged(severity="risk"))
    assert selectors.check_rollout_gate(fail_on="break", registry="dev").passed
    risk_gate = selectors.check_rollout_gate(fail_on="risk")
    assert (risk_gate.passed, [info.severity for info in risk_gate.findings]) == (False, ["risk"])
    services.queue_scan(source_id=source.pk, by=system)
    services.acknowledge(finding_id=only().pk, reason="known", by=system)
    assert selectors.check_rollout_gate(fail_on="notice").passed, (
        "what is decided holds nothing, nor does a scan that waits"
    )
    with pytest.raises(InvalidInput):
        selectors.check_rollout_gate(fail_on="everything")


def test_a_gate_counts_the_findings_that_it_does_not_list(source: Source, system: Actor) -> None:
    scan(source, system, *(judged(name) for name in "abc"))
    counts = [(len(gate.findings), gate.more_findings) for gate in map(gate_of, (1, 3, 200))]
    assert counts == [(1, 2), (3, 0), (3, 0)]


def gate_of(limit: int) -> selectors.Gate:
    return selectors.check_rollout_gate(fail_on="break", registry="dev", limit=limit)


def registered(registry: str, name: str, by: Actor) -> None:
    register_version(registry=registry, subject=SubjectName(".", name), text='"string"', by=by)


def held_by(**scope: Any) -> tuple[str, ...]:
    gate = selectors.check_rollout_gate(fail_on="break", **scope)
    assert gate.passed is (not gate.findings and not gate.unscanned)
    return gate.unscanned


def test_a_rollout_is_held_where_no_source_reads(source: Source, system: Actor) -> None:
    scan(source, system)
    assert held_by(registry="prod") == ("prod (no source)",)
    assert held_by() == (), "a registry without subjects has nothing to scan"
    ensure_registry(name="other", by=system)
    registered("other", "orders-value", system)
    assert held_by() == ("other (no source)",)
    assert held_by(source_id=source.pk) == (), "only this source was asked about"
    source.delete()
    SchemaVersion.objects.update(deleted_at=timezone.now())
    assert held_by() == ("all registries (no source)",)


def test_a_rollout_is_held_by_a_subject_that_no_scan_read(source: Source, system: Actor) -> None:
    for name in ("orders-value", "orders-key", "payments-value"):
        registered("dev", name, system)
    scan(source, system)
    assert held_by(registry="dev", subject="orders-value") == ()
    assert held_by(registry="dev", subject=":.:orders-value") == ()
    unread = ("payments-value in dev (no scan reads a topic of it)",)
    assert held_by(registry="dev") == unread, "what isn't named isn't left out"
    assert held_by(registry="dev", subject="payments-value") == held_by(subject="payments-value") == unread
    Topic.objects.create(source=source, name="payments")
    assert held_by(registry="dev", subject="payments-value") == unread, "its topic is known, and was never read"
    Topic.objects.filter(name="orders").update(problem="no right to read it")
    refused = ("orders (not read: no right to read it)",)
    assert held_by(registry="dev") == (*refused, *unread)
    assert held_by(subject="orders-value", registry="dev") == refused
    assert held_by(registry="dev", subject="payments-value") == unread


def test_a_rollout_of_a_registry_counts_what_nothing_reads(source: Source, system: Actor) -> None:
    names = [f"topic{number:02}-value" for number in range(MAX_NAMED + 2)]
    for name in names:
        registered("dev", name, system)
    scan(source, system)
    unread = held_by(registry="dev")
    assert len(unread) == MAX_NAMED + 1
    assert unread[0] == "topic00-value in dev (no scan reads a topic of it)"
    assert unread[-1] == "2 more subjects in dev (no scan reads a topic of them)"
    assert held_by(source_id=source.pk) == ()
    source.topics.create(name="topic00", read_at=timezone.now(), subjects={"value": names[1:]})
    assert held_by(registry="dev") == (unread[0],), "messages say whose they are, not the topic's name"


def test_a_topic_that_its_source_leaves_out_is_not_read(source: Source, system: Actor) -> None:
    registered("dev", "orders-value", system)
    scan(source, system)
    Topic.objects.update(problem="no right to read it")
    services.update_source(source_id=source.pk, exclude=["orders"], by=system)
    unread = ("orders-value in dev (no scan reads a topic of it)",)
    assert held_by(registry="dev") == held_by(registry="dev", subject="orders-value") == unread


def test_a_rollout_asks_only_about_what_exists(source: Source, system: Actor) -> None:
    registered("dev", "orders-value", system)
    scan(source, system, judged(), judged("b", subject="gone-value"))
    for scope in ({"subject": "orders-valu"}, {"subject": "orders-value", "registry": "prod"}):
        with pytest.raises(SubjectNotFound):
            selectors.check_rollout_gate(fail_on="break", **scope)
    for scope in ({"source_id": source.pk + 1}, {"source_id": source.pk, "registry": "prod"}):
        with pytest.raises(SourceNotFound):
            selectors.check_rollout_gate(fail_on="break", **scope)
    for subject in (":.:orders-value", "gone-value"):
        assert len(selectors.check_rollout_gate(fail_on="break", subject=subject).findings) == 1


NINE = 1_795_251_600_000  # 2026-11-21 09:00 UTC
HOUR = 3_600_000


def part(messages: int, first: int, last: int | None = None) -> dict[str, Any]:
    return {"partition": 0, "messages": messages, "first_time": first, "last_time": first if last is None else last}


#: parts → counts, spread, earlier
CASES = {
    "within an hour": ([part(5, NINE, NINE + HOUR - 1)], {"2026-11-21 09:00": 5}, 0, 0),
    "over three": (
        [part(10, NINE, NINE + 2 * HOUR)],
        {"2026-11-21 09:00": 3, "2026-11-21 10:00": 3, "2026-11-21 11:00": 4}, 10, 0,
    ),
    "one message over two hours": ([part(1, NINE, NINE + HOUR)], {"2026-11-21 10:00": 1}, 1, 0),
    "two partitions": ([part(2, NINE), part(3, NINE + 5)], {"2026-11-21 09:00": 5}, 0, 0),
    "times turned round": ([part(2, NINE + HOUR, NINE)], {"2026-11-21 09:00": 1, "2026-11-21 10:00": 1}, 2, 0),
    "counted by the scan": (
        [part(70, NINE, NINE + 2 * HOUR) | {"hours": {str(NINE // HOUR): 1, str(NINE // HOUR + 2): 60}}],
        {"2026-11-21 09:00": 1, "2026-11-21 11:00": 60}, 0, 9,
    ),
    "counted in one partition, spread in another": (
        [part(6, NINE, NINE + HOUR) | {"hours": {str(NINE // HOUR): 6}}, part(2, NINE, NINE + HOUR)],
        {"2026-11-21 09:00": 7, "2026-11-21 10:00": 1}, 2, 0,
    ),
    "no time at all": ([part(2, -1)], {"1970-01-01 00:00": 2}, 0, 0),
    "beyond all calendars": ([part(2, 2**62)], {"9999-12-31 23:00": 2}, 0, 0),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_spans_become_hours(case: str) -> None:
    parts, counts, spread, earlier = CASES[case]
    assert by_hour(ByHour({}), parts) == ByHour(counts, spread, earlier)


@given(
    st.lists(
        st.builds(part, st.integers(1, 10_000), st.integers(-1, 2**60), st.integers(-1, 2**60)), min_size=1, max_size=6
    )
)
def test_no_message_is_lost_and_the_counts_are_bounded(parts: list[dict[str, Any]]) -> None:
    hours = by_hour(ByHour({}), parts)
    assert sum(hours.counts.values()) + hours.earlier == sum(item["messages"] for item in parts)
    assert len(hours.counts) <= MOST_HOURS
    assert ByHour.of_evidence(hours.to_evidence()) == hours


@pytest.mark.django_db
def test_scans_add_up_and_what_is_read_again_is_not_counted_again(registries: None, system: Actor) -> None:
    source = make_source()
    for number, first in ((3, NINE), (4, NINE + HOUR)):
        scan(source, system, judged("a", evidence={"topic": "orders", "partitions": [part(number, first)]}))
    assert Finding.objects.get().evidence["ids_by_hour"] == {"2026-11-21 09:00": 3, "2026-11-21 10:00": 4}
    whole = judged("a", evidence={"topic": "orders", "partitions": [part(7, NINE)]})
    scan(source, system, whole, topics=(topic(again=True),))
    assert Finding.objects.get().evidence["ids_by_hour"] == {"2026-11-21 09:00": 7}


@pytest.mark.django_db
def test_what_a_scan_counted_is_kept_once_for_all_partitions(registries: None, system: Actor) -> None:
    source, hour = make_source(), NINE // HOUR
    counted = [
        part(10, NINE, NINE + HOUR) | {"partition": number, "hours": {str(hour): 9, str(hour + 1): 1}}
        for number in range(3)
    ]
    scan(source, system, judged("a", evidence={"topic": "orders", "partitions": counted}))
    evidence = Finding.objects.get().evidence
    assert evidence["ids_by_hour"] == {"2026-11-21 09:00": 27, "2026-11-21 10:00": 3}
    assert evidence["ids_by_hour_spread"] == 0
    assert not any("hours" in row for row in evidence["partitions"])
    scan(source, system, judged("b", rule="UNFRAMED_DATA", evidence={"topic": "orders", "partitions": counted}))
    assert not any("hours" in row for row in Finding.objects.get(rule="UNFRAMED_DATA").evidence["partitions"])


def test_the_judgement_hands_on_what_the_scan_counted() -> None:
    span = Span(3, 30, 0, 2, NINE, NINE + HOUR)
    one = part_of(0, span, {str(NINE // HOUR): 2, str(NINE // HOUR + 1): 1})
    (whole,) = positions([one, part_of(0, span, {str(NINE // HOUR): 3})])["partitions"]
    assert whole["hours"] == {str(NINE // HOUR): 5, str(NINE // HOUR + 1): 1}
    (unsure,) = positions([one, part_of(0, span)])["partitions"]
    assert "hours" not in unsure, "a part that wasn't counted leaves the whole to be spread"


def test_the_table_says_what_it_rests_on() -> None:
    hours = by_hour(ByHour({}), [part(2, NINE, NINE + HOUR), part(5, NINE - 90 * HOUR)])
    (table,) = bar_tables(hours.to_evidence())
    assert [(bar.label, bar.count) for bar in table.bars][-1] == ("2026-11-21 10:00", 1)
    assert table.note == (
        "Based on scanned messages. 2 messages are from spans of several hours and are distributed evenly over them."
    )
    cut = by_hour(ByHour({}), [part(100, NINE, NINE + 49 * HOUR)])
    assert bar_tables(cut.to_evidence())[0].note.endswith("52 earlier messages not shown.")
    assert bar_tables({"topic": "orders"}) == ()


@pytest.mark.django_db
def test_a_truncate_of_before_is_read_as_any_other(registries: None, system: Actor) -> None:
    source, partitions = make_source(), [part(3, NINE)]
    old = {"topic": "orders", "partitions": 3, "truncates": partitions}
    for fingerprint, evidence in (("a", old), ("b", {"topic": "orders", "partitions": partitions})):
        scan(source, system, judged(fingerprint, rule="UNFRAMED_DATA", evidence={"topic": "orders"}))
        Finding.objects.filter(fingerprint=fingerprint * 64).update(rule="TRUNCATE_OUT_OF_ORDER", evidence=evidence)
    with connection.cursor() as cursor:
        cursor.execute(import_module("registry.drift.migrations.0005_places_of_truncates").MOVE)
    assert [finding.evidence for finding in Finding.objects.order_by("pk")] == [
        {"topic": "orders", "topic_partitions": 3, "partitions": partitions},
        {"topic": "orders", "partitions": partitions},
    ]
