"""What the database knows: of marks, subjects, releases and earlier scans; in the same number of queries at any size."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from hypothesis import given
from hypothesis import strategies as st

from registry.access.roles import Actor, system_actor
from registry.drift.judge import TopicVolume, judge, subjects_by_side
from registry.drift.judge.model import HOUR_MS
from registry.drift.judge.topic_observations import milliseconds
from registry.drift.models import FieldStatistic, Finding, SchemaUse, Source, Topic
from registry.drift.scan.persistence import keep_result
from registry.drift.scan_context.topics import deleted_in_use, memory_of, registered_for, writers_for
from registry.drift.scan_context.versions import condition_of, subjects_of_content_type
from registry.drift.sources.base import ScanResult, keep_topics, volume_of
from registry.formats.protobuf.file_descriptors import descriptor_set
from registry.observations import FieldProfile, FramedMessages, MessageIndexes, Observation, Span, TopicTotals
from registry.promotions import services as promotions
from registry.subjects.models import Schema, SchemaVersion
from registry.subjects.services import delete_version, register_version, set_mode
from registry.subjects.versions.qualified_names import SubjectName
from tests.drift.scans import READ, claim, make_source, topic
from tests.promotions.factories import approve_shown

pytestmark = pytest.mark.django_db
CI = system_actor("ci", channel="confluent")
PROTO = 'syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto"; message Paid { google.protobuf.Timestamp at = 1; }'


def record(name: str = "Order", *fields: str) -> str:
    listed = [{"name": field, "type": ["null", "string"], "default": None} for field in ("id", *fields)]
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": listed})


def put(subject: str, text: str, *, registry: str = "dev", context: str = ".", kind: str = "AVRO") -> int:
    """Register a version; gives its schema id."""
    register_version(registry=registry, subject=SubjectName(context, subject), text=text, by=CI, schema_type=kind)
    row = SchemaVersion.objects.filter(subject__name=subject, subject__context__registry__name=registry).latest("pk")
    return row.schema.schema_id


def framed(topic: str, mark: Any, side: Any = "value", framing: Any = "id") -> list[Observation]:
    where = Span(5, 50, 0, 4, 1_000, 2_000)
    return [FramedMessages(topic, side, 0, framing, str(mark), where), TopicTotals(topic, 5, 50, None)]


def plain(topic: str) -> FieldProfile:
    return FieldProfile(topic, "value", None, "", "id", 5, 5, 0, {"string": 5}, None, None, None, {})


@pytest.fixture
def source(registries: None) -> Source:
    return make_source()


def test_versions_are_found_by_id_guid_and_content_type(source: Source) -> None:
    number = put("orders-value", record())
    guid = str(Schema.objects.get(schema_id=number).guid)
    observations = [
        *framed("orders", number),
        *framed("orders", guid, framing="guid"),
        *framed("orders", "vnd.orders-value.v1", framing="content_type"),
        *framed("orders", 2**40),
        *framed("orders", "no guid", framing="guid"),
        *framed("orders", "vnd.orders\0.v1", framing="content_type"),
    ]
    registered = registered_for(source, observations)
    assert {mark[0] for mark in registered.versions} == {"id", "guid", "content_type"}
    assert {versions[0].subject for versions in registered.versions.values()} == {"orders-value"}
    (version,) = registered.versions["id", str(number)]
    assert (version.version, version.registered_by, version.channel, version.released) == (1, "ci", "confluent", None)
    assert abs(version.registered_at - milliseconds(timezone.now())) < 60_000


def test_another_context_s_ids_are_distinguished(source: Source) -> None:
    for number in range(3):
        put(f"more-{number}", record("R", f"f{number}"), context=".eu")
    number = put("orders-value", record("Order", "eu"), context=".eu")
    put("orders-value", record())
    registered = registered_for(source, framed("orders", number))
    assert ("id", str(number)) not in registered.versions
    assert [item.subject for item in registered.elsewhere["id", str(number)]] == [":.eu:orders-value"]
    assert [item.rule for item in judge(framed("orders", number), registered)] == ["ID_OF_OTHER_CONTEXT"]
    source.context = ".eu"
    other = registered_for(source, framed("orders", number))
    assert [item.subject for item in other.versions["id", str(number)]] == [":.eu:orders-value"]
    assert judge(framed("orders", number), other) == []


def test_a_record_s_own_subject_is_found_from_the_data(source: Source) -> None:
    by_record, by_both = put("shop.Order", record()), put("carts-shop.Cart", record("Cart"))
    observations = [*framed("orders", by_record), *framed("carts", by_both)]
    subjects = subjects_by_side(observations, registered_for(source, observations))
    assert subjects["orders", "value"].strategies == ("RecordName",)
    assert subjects["carts", "value"].strategies == ("TopicRecordName",)
    assert judge(observations, registered_for(source, observations)) == []


def test_fields_are_declared_for_plain_data_and_for_json_schema(source: Source) -> None:
    put("orders-value", record())
    put("orders-value", record("Order", "note"))
    number = put("carts-value", '{"type":"object","properties":{"id":{"type":"string"}}}', kind="JSON")
    observations: list[Observation] = [TopicTotals("orders", 5, 50, None), plain("orders"), *framed("carts", number)]
    observations.append(FieldProfile("carts", "value", "id", str(number), "id", 5, 5, 0, {}, None, None, None, {}))
    registered = registered_for(source, observations)
    assert sorted(registered.declared) == [("carts-value", 1), ("orders-value", 1), ("orders-value", 2)]
    assert set(registered.declared["orders-value", 2].fields) == {"id", "note"}


@pytest.mark.requirement("GOO-7")
def test_a_version_is_released_by_a_promotion_alone(source: Source, person: Callable[[str], Actor]) -> None:
    number = put("orders-value", record())
    request = promotions.request_promotion(
        source="dev", target="staging", subject=SubjectName(".", "orders-value"), version=1, by=person("steward")
    )
    approve_shown(request_id=request, by=person("approver"))
    promotions.apply(request_id=request, by=person("approver"))
    unapproved = put("unapproved-value", record("Unapproved"), registry="staging")
    there = make_source(registry=source.registry.__class__.objects.get(name="staging"), name="there")
    observations = [*framed("orders", 1), *framed("unapproved", unapproved)]
    registered = registered_for(there, observations)
    assert {item.subject: item.released for versions in registered.versions.values() for item in versions} == {
        "orders-value": True,
        "unapproved-value": False,
    }
    assert [item.rule for item in judge(observations, registered)] == ["ID_NOT_RELEASED"]
    # Where versions are born nothing needs a release.
    assert registered_for(source, framed("orders", number)).versions["id", str(number)][0].released is None


def test_what_was_done_lately_is_reported_as_events(source: Source, system: Actor) -> None:
    number = put("orders-value", record())
    put("cats-value", record("Cat"))
    set_mode(registry="dev", subject=None, by=system, mode="READONLY")
    events = [event.sentence for event in registered_for(source, framed("orders", number)).events]
    assert events == ["version 1 of orders-value was registered by ci"], "a setting changes nothing that is written"


def topic_row(source: Source, name: str, **values: Any) -> Topic:
    return Topic.objects.create(source=source, name=name, checked_at=timezone.now(), **values)


def use(topic: Topic, mark: str, partition: int = 0, **values: Any) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    base = {"side": "value", "framing": "id", "messages": 5, "bytes": 50, "first_offset": 0, "last_offset": 4}
    times = {"first_time": at, "last_time": at + timedelta(hours=partition)}
    SchemaUse.objects.create(topic=topic, mark=mark, partition=partition, **(base | times | values))


def statistic(topic: Topic, days_ago: int, path: str = "id") -> None:
    day = (timezone.now() - timedelta(days=days_ago)).date()
    FieldStatistic.objects.create(
        topic=topic, side="value", framing="id", mark="7", path=path, day=day, messages=9, present=9, nulls=1
    )


def test_memory_has_uses_baselines_topics_and_findings(source: Source) -> None:
    orders = topic_row(source, "orders", compacted=True, strategies={"value": ["TopicName"]})
    topic_row(source, "gone", gone_at=timezone.now())
    elsewhere = make_source(name="other")
    topic_row(elsewhere, "carts")
    topic_row(make_source(name="another context", context=".eu"), "hidden")
    for partition in range(3):
        use(orders, "7", partition)
    for days_ago in (0, 1, 27, 40):
        statistic(orders, days_ago)
    values = {"sentence": "x", "remedy": "x", "location": "x", "evidence": {}, "severity": "risk", "rule": "R"}
    now = timezone.now()
    for name, state in (("a", "open"), ("b", "resolved")):
        Finding.objects.create(
            source=source, fingerprint=name, state=state, cause="because", first_seen=now, last_seen=now, **values
        )
    memory = memory_of(source, ["orders"])
    assert memory.topics["orders"].compacted
    assert memory.topics["gone"].gone
    assert memory.all_topics == {"orders", "carts"}
    assert memory.discovered
    (mark_use,) = memory.uses
    assert (mark_use.messages, mark_use.last_time - mark_use.first_time) == (15, 2 * 3_600_000)
    (days,) = memory.baselines.values()
    assert len(days) == 3
    assert {name: finding.cause.sentence for name, finding in memory.findings.items()} == {"a": "because"}
    assert memory_of(source, []).uses == ()


def test_an_acknowledgement_without_an_end_restarts_the_baseline(source: Source) -> None:
    values = {"sentence": "x", "remedy": "x", "location": "x", "evidence": {}, "severity": "risk", "rule": "R"}
    now = timezone.now()
    first = {"first_seen": now - timedelta(days=3), "last_seen": now, "source": source, **values}
    for name, more in {
        "accepted": {"state": "acknowledged"},
        "resolved later": {"state": "resolved"},
        "accepted again": {"state": "acknowledged", "reopened": 1},
        "until": {"state": "acknowledged", "acknowledged_until": now},
    }.items():
        Finding.objects.create(fingerprint=name, acknowledged_by="ada", acknowledged_reason="right", **(first | more))
    since = milliseconds(now - timedelta(days=3))
    assert memory_of(source, []).accepted == {
        "accepted": since, "resolved later": since, "accepted again": milliseconds(now)
    }  # fmt: skip


def test_the_messages_of_a_topic_are_counted_by_hour_from_its_offsets(source: Source) -> None:
    """Two hours and a half after 100 messages were known, 400 are: most came in the hours that are over."""
    now = timezone.now().replace(minute=30, second=0, microsecond=0)
    row = topic_row(source, "orders")
    first = TopicVolume(0, (), 0).with_scan(100, milliseconds(now), milliseconds(now))
    keep_topics(source, [topic(volume=first)])
    row.refresh_from_db()
    row.checked_at = timezone.now() - timedelta(hours=2, minutes=30)
    row.volume["start"] -= 3
    row.volume["hours"] = [0]
    later = volume_of(row, 400)
    assert sum(later.hours) == 300
    assert later.end == 400
    assert later.since == milliseconds(row.checked_at) // HOUR_MS
    assert 100 <= later.hours[-2] <= 140
    assert memory_of(source, [], {"orders": topic(volume=later)}).topics["orders"].volume == later
    assert volume_of(row, 50).hours == (0,), "a topic that was recreated begins anew"


def test_writers_are_the_topic_s_subjects_and_what_was_seen(source: Source) -> None:
    own, other = put("orders-value", record()), put("orders-shop.Refund", record("Refund"))
    elsewhere, paid = put("elsewhere", record("E")), put("orders-paid", PROTO, kind="PROTOBUF")
    put("carts-value", record("Cart"))
    guid = str(Schema.objects.get(schema_id=elsewhere).guid)
    use(topic_row(source, "orders"), guid, framing="guid")
    writers = writers_for(source, ["orders"], {("id", "999"), ("id", str(elsewhere))})
    assert {(writer.framing, writer.mark) for writer in writers} == {
        ("id", str(own)), ("id", str(other)), ("id", str(elsewhere)), ("id", str(paid)), ("guid", guid),
    }  # fmt: skip
    (proto,) = [writer for writer in writers if writer.kind == "PROTOBUF"]
    files = FileDescriptorSet.FromString(base64.b64decode(proto.text)).file
    assert [file.name for file in files[:-1]] == ["google/protobuf/timestamp.proto"]
    assert files[-1].message_type[0].name == "Paid"
    assert not files[-1].HasField("source_code_info")


def test_a_descriptor_set_of_nothing_is_empty() -> None:
    assert descriptor_set(()) == ""


@pytest.mark.parametrize(
    ("text", "splits"),
    [
        ("vnd.orders.v3", [("orders", 3)]),
        ("vnd.shop.orders.v12", [("shop.orders", 12), ("orders", 12)]),
        ("orders.v1", []),
        ("vnd.orders.v0", []),
        ("vnd.orders.v9999999999", []),
        ("vnd..v1", [("", 1)]),
        ("", []),
    ],
)
@pytest.mark.requirement("SCS-3")
def test_a_content_type_may_be_split_in_several_places(text: str, splits: list[tuple[str, int]]) -> None:
    assert list(subjects_of_content_type(text)) == splits


@given(st.sets(st.tuples(st.sampled_from(["id", "guid", "content_type"]), st.text(max_size=60)), max_size=20))
def test_any_marks_make_a_condition(marks: set[Any]) -> None:
    condition_of(marks)


def queries(call: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as captured:
        call()
    return len(captured)


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow(source: Source) -> None:
    def grow(first: int, last: int) -> tuple[list[Observation], list[str]]:
        observations: list[Observation] = []
        for number in range(first, last):
            name = f"t{number}"
            schema_id = put(f"{name}-value", record("T", f"f{number}"))
            row = topic_row(source, name)
            use(row, str(schema_id))
            statistic(row, 1)
            observations += [*framed(name, schema_id), plain(name)]
        return observations, [f"t{number}" for number in range(last)]

    def fresh() -> Source:
        return Source.objects.select_related("registry").get(pk=source.pk)

    few, names = grow(0, 2)
    before = [
        queries(lambda: registered_for(fresh(), few)),
        queries(lambda: memory_of(fresh(), names)),
        queries(lambda: writers_for(fresh(), names)),
    ]
    more, all_names = grow(2, 12)
    after = [
        queries(lambda: registered_for(fresh(), [*few, *more])),
        queries(lambda: memory_of(fresh(), all_names)),
        queries(lambda: writers_for(fresh(), all_names)),
    ]
    assert after == before
    assert max(after) <= 14


# ---- what one scan leaves to the next -------------------------------------------------------------------------------

TWO_TYPES = 'syntax = "proto3"; package shop; message Paid { string id = 1; } message Refund { string id = 1; }'


def kept(source: Source, by: Actor, observations: list[Observation]) -> list[str]:
    """The rules that one scan of those observations finds, and leaves to the next."""
    registered, memory = registered_for(source, observations), memory_of(source, ["orders"])
    findings = judge(observations, registered, memory)
    result = ScanResult(tuple(findings), READ, True, (topic(),), tuple(observations), registered=registered)
    assert keep_result(claim(source, by), result)
    return [finding.rule for finding in findings]


def lately(mark: Any, framing: Any = "id", side: Any = "value", **more: Any) -> list[Observation]:
    """Five messages of this hour."""
    now = milliseconds(timezone.now())
    where = Span(5, 50, more.get("first", 0), more.get("first", 0) + 4, now - 1_000, now)
    observations: list[Observation] = [FramedMessages("orders", side, 0, framing, str(mark), where)]
    if "indexes" in more:
        observations.append(MessageIndexes("orders", side, 0, framing, str(mark), more["indexes"], where))
    return [*observations, TopicTotals("orders", 5, 50, None)]


@pytest.mark.requirement("CARD-3")
def test_a_framing_that_changes_from_one_scan_to_the_next_is_found(source: Source, system: Actor) -> None:
    number = put("orders-value", record())
    guid = str(Schema.objects.get(schema_id=number).guid)
    assert kept(source, system, lately(number)) == []
    assert kept(source, system, lately(number, first=5)) == []
    assert kept(source, system, lately(guid, "guid", first=10)) == ["FRAMING_MIXED"]
    SchemaUse.objects.filter(framing="id").update(last_time=timezone.now() - timedelta(days=8))
    assert kept(source, system, lately(guid, "guid", first=15)) == []


def test_a_version_that_is_deleted_after_its_messages_were_read_is_found(source: Source, system: Actor) -> None:
    number = put("orders-value", record())
    put("orders-value", record("Order", "more"))
    assert kept(source, system, lately(number)) == []
    assert unread(source, system) == []
    delete_version(registry="dev", subject=SubjectName(".", "orders-value"), version=1, by=system)
    for _ in range(2):  # seen once, however often a scan comes
        assert unread(source, system) == ["ID_DELETED"]
        finding = Finding.objects.get()
        assert f"Schema id {number} appears in 5 earlier messages of orders (value)" in finding.sentence
        assert (finding.count, finding.evidence["seen_before"], finding.location) == (5, 5, "orders:0@0–4 (value)")
    assert kept(source, system, lately(number, first=5)) == ["ID_DELETED"]
    assert unread(source, system) == ["ID_DELETED"]
    assert (Finding.objects.get().count, Finding.objects.get().evidence["seen_before"]) == (10, 10)
    Topic.objects.update(retention_ms=0)
    assert unread(source, system) == []


def unread(source: Source, by: Actor) -> list[str]:
    """The rules of what a scan without new messages finds."""
    registered, memory = registered_for(source, []), memory_of(source, [])
    idle = replace(topic(), positions={}, messages=0, fresh=0, clean=False)
    findings = deleted_in_use(source, [idle], [], registered, memory)
    assert deleted_in_use(source, [replace(idle, restarted=True)], [], registered, memory) == []
    assert keep_result(claim(source, by), ScanResult(tuple(findings), READ | {"nothing": True}, True, (idle,), ()))
    return [finding.rule for finding in findings]


@pytest.mark.requirement("CARD-3")
def test_a_message_type_that_changes_from_one_scan_to_the_next_is_found(source: Source, system: Actor) -> None:
    number = put("orders-value", TWO_TYPES, kind="PROTOBUF")
    assert kept(source, system, lately(number, indexes="0")) == []
    assert kept(source, system, lately(number, indexes="0", first=5)) == []
    (row,) = Topic.objects.all()
    assert set(row.message_types["value"]["orders-value"]) == {"shop.Paid"}
    assert kept(source, system, lately(number, indexes="1", first=10)) == ["MESSAGE_TYPE_CHANGED"]
    assert kept(source, system, lately(number, indexes="0", first=15)) == ["MESSAGE_TYPE_CHANGED"]
    row.refresh_from_db()
    assert set(row.message_types["value"]["orders-value"]) == {"shop.Paid", "shop.Refund"}


def test_keys_of_a_second_schema_are_found_though_no_scan_saw_both(source: Source, system: Actor) -> None:
    first, second = put("orders-key", record("Key")), put("orders-key", record("Key", "more"))
    assert kept(source, system, lately(first, side="key")) == []
    Topic.objects.update(compacted=True)
    assert kept(source, system, lately(second, side="key", first=5)) == ["KEY_SCHEMA_CHANGED"]


def test_a_finding_about_ids_says_how_much_each_scan_saw(source: Source, system: Actor) -> None:
    put("orders-value", record())
    for first in (0, 5):
        assert kept(source, system, lately(77_000, first=first)) == ["UNKNOWN_SCHEMA_ID"]
    counts = Finding.objects.get().evidence["ids_over_time"]
    assert sum(counts.values()) == 10
    assert all(datetime.strptime(label, "%Y-%m-%d %H:%M") for label in counts)
    Finding.objects.update(evidence={"ids_over_time": {f"2026-01-{day:02} 00:00": 1 for day in range(1, 31)}})
    kept(source, system, lately(77_000, first=10))
    counts = Finding.objects.get().evidence["ids_over_time"]
    assert len(counts) == 24
    assert max(counts) > "2026-01-30 00:00"
