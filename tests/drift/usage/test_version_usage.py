"""Which messages carry a version's mark, from what the scans have kept; the doors that ask for it; what a delete says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry import hooks
from registry.access.models import RoleGrant
from registry.access.roles import Actor, Grant, system_actor
from registry.drift.models import Cluster, Finding, SchemaUse, Source, Topic
from registry.drift.sources.kafka_offsets import keep_read_from
from registry.drift.usage.retirement import data_evidence, retirement_of
from registry.drift.usage.version_usage import SubjectUse, usage_of
from registry.errors import NotAllowed, SubjectNotFound, Unavailable, VersionInUse
from registry.formats.base import Reference
from registry.observations import PartitionRead
from registry.subjects.models import Registry, Schema
from registry.subjects.services import delete_version, register_version
from registry.subjects.usage.evidence import (
    HEADER,
    Evidence,
    EvidenceProvider,
    evidence_of,
    in_use_header,
    refuse_in_use,
)
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

pytestmark = pytest.mark.requirement("CARD-3")
SUBJECT = parse_subject("orders-value")
EVERYTHING = system_actor("tests")
IN_USE = {"no": "yes", "unknown": "unknown"}
#: reads orders-value alone
NARROW = Actor("narrow", "product", user_id=1, grants=(Grant("reader", "dev", "orders-*"),))


def text(*fields: str) -> str:
    listed = [{"name": name, "type": ["null", "string"], "default": None} for name in fields]
    return json.dumps({"type": "record", "name": "Order", "fields": listed})


@pytest.fixture
def dev(registries: None) -> Registry:
    return get_registry("dev")


@pytest.fixture
def source(dev: Registry) -> Source:
    cluster = Cluster.objects.create(name="main", bootstrap="127.0.0.1:1", created_by="tests")
    return Source.objects.create(registry=dev, kind="kafka", name="shop", cluster=cluster, created_by="tests")


@pytest.fixture
def ids(dev: Registry, system: Actor) -> list[int]:
    """The schema ids of three versions of the subject."""
    return [
        register_version(registry="dev", subject=SUBJECT, text=text(*"abc"[:count]), by=system).schema_id
        for count in (1, 2, 3)
    ]


def topic(source: Source, name: str = "orders", **values: Any) -> Topic:
    now = timezone.now()
    defaults = {
        "partitions": 2,
        "messages": 1_000,
        "read_from": {"0": 0, "1": 0},
        "positions": {"0": 600, "1": 400},
        "retention_ms": 7 * 86_400_000,
        "checked_at": now,
        "read_at": now,
    }
    return Topic.objects.create(source=source, name=name, **(defaults | values))


def use(
    topic: Topic, mark: object, *, partition: int = 0, days: int = 3, messages: int = 100, first: int = 0, **values: Any
) -> SchemaUse:
    when = timezone.now() - timedelta(days=days)
    defaults = {"side": "value", "framing": "id", "schema_id": mark if isinstance(mark, int) else None}
    return SchemaUse.objects.create(
        topic=topic,
        mark=str(mark),
        partition=partition,
        messages=messages,
        bytes=messages * 10,
        first_offset=first,
        last_offset=first + messages - 1,
        first_time=when - timedelta(days=1),
        last_time=when,
        **(defaults | values),
    )


def used(dev: Registry, subject: SubjectName = SUBJECT) -> SubjectUse:
    return usage_of(dev, subject, by=EVERYTHING)


def test_a_version_s_messages_by_topic_and_partition(dev: Registry, source: Source, ids: list[int]) -> None:
    orders = topic(source)
    use(orders, ids[0], messages=100)
    use(orders, ids[0], partition=1, messages=50, first=10, days=1)
    use(orders, ids[1], first=100, messages=200)
    subject_use = used(dev)
    first, second, third = subject_use.versions
    assert [(item.version, item.schema_id, item.messages) for item in subject_use.versions] == [
        (1, ids[0], 150),
        (2, ids[1], 200),
        (3, ids[2], 0),
    ]
    (there,) = first.topics
    assert (there.topic, there.cluster, there.side, there.owner, there.share) == (
        "orders",
        "main",
        "value",
        "this",
        0.15,
    )
    assert [(part.partition, part.first_offset, part.last_offset) for part in there.partitions] == [
        (0, 0, 99),
        (1, 10, 59),
    ]
    assert first.last_time == there.last_time == max(part.last_time for part in there.partitions)
    assert (second.is_latest, third.is_latest) == (False, True)


def test_marks_of_all_framings_count_and_foreign_ones_do_not(dev: Registry, source: Source, ids: list[int]) -> None:
    orders = topic(source)
    guid = str(Schema.objects.get(context__registry=dev, schema_id=ids[0]).guid)
    use(orders, guid, framing="guid", messages=7)
    use(orders, "vnd.orders-value.v2", framing="content_type", messages=8)
    use(orders, "vnd.orders-value.v22", framing="content_type", messages=9)
    use(orders, "vnd.my-orders-value.v1", framing="content_type", messages=9)
    elsewhere = Source.objects.create(
        registry=dev, kind="kafka", name="eu", cluster=source.cluster, context=".eu", created_by="tests"
    )
    use(topic(elsewhere, "orders"), ids[0], messages=1_000)
    other = Source.objects.create(
        registry=get_registry("staging"), kind="kafka", name="shop", cluster=source.cluster, created_by="tests"
    )
    use(topic(other, "orders"), ids[0], messages=1_000)
    assert [item.messages for item in used(dev).versions] == [7, 8, 0]


def test_the_same_id_in_topics_of_other_subjects_is_distinguished(
    dev: Registry, source: Source, ids: list[int], system: Actor
) -> None:
    use(topic(source), ids[0], messages=5)
    use(topic(source, "copies", subjects={"value": ["copies-value"]}), ids[0], messages=90)
    use(topic(source, "unclear"), ids[0], messages=3)
    register_version(registry="dev", subject=parse_subject("copies-value"), text=text("a"), by=system)
    version_use = used(dev).version(1)
    assert {item.topic: item.owner for item in version_use.topics} == {
        "copies": "other",
        "orders": "this",
        "unclear": "unknown",
    }
    assert version_use.messages == 8
    assert version_use.shared_with == ("copies-value version 1",)
    assert {item.topic: item.is_own for item in used(dev).coverage} == {
        "copies": False,
        "orders": True,
        "unclear": True,
    }


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"checked_at": None, "read_at": None, "read_from": {}}, "orders has not been read yet."),
        ({"read_from": {"0": 500, "1": 0}}, "Read in part: partition 0 from offset 500."),
        ({"read_from": {"0": 0}}, "unknown for 1 of 2 partitions"),
        ({"problem": "it may not be read"}, "The last scan couldn't read orders: it may not be read"),
        ({"read_at": None}, "orders has not been read yet."),
        ({}, "1,000 messages in total."),
    ],
)
def test_what_is_not_known_is_said(
    dev: Registry, source: Source, ids: list[int], values: dict[str, Any], says: str
) -> None:
    topic(source, **values)
    assert says in used(dev).coverage[0].sentence


def test_messages_without_a_known_schema_leave_the_use_unknown(dev: Registry, source: Source, ids: list[int]) -> None:
    orders = topic(source, partitions=1)
    now = timezone.now()

    def finding(rule: str, count: int, side: str | None = "value", **values: Any) -> None:
        place = [{"partition": 0, "last_offset": 9}]
        Finding.objects.create(
            source=source, topic=orders, fingerprint=f"{rule} {side}", rule=rule, severity="break", sentence="", remedy="",
            location="", evidence={"side": side, "partitions": place}, count=count, first_seen=now, last_seen=now, **values,
        )  # fmt: skip

    def answer() -> str:
        (evidence,) = data_evidence(dev, SUBJECT, [1])[1]
        assert retirement_of(dev, SUBJECT, by=EVERYTHING, ask=False).versions[1].answer == IN_USE[evidence.in_use]
        return evidence.sentence

    assert answer().startswith("Never seen")
    finding("UNDECODABLE", 5)
    finding("UNKNOWN_SCHEMA_ID", 6, state="resolved")
    Topic.objects.filter(pk=orders.pk).update(subjects={"key": ["orders-key"]})
    finding("UNFRAMED_DATA", 3, "key")
    assert answer().startswith("Never seen")
    finding("UNFRAMED_DATA", 30, state="resolved")
    assert answer().startswith("30 of the 1,000 messages read from orders could not be matched")
    finding("TOO_MANY_IDS", 4, None)
    Finding.objects.filter(rule="UNKNOWN_SCHEMA_ID").update(state="open")
    assert answer().startswith("40 of")


def test_the_number_of_queries_does_not_grow(dev: Registry, source: Source, ids: list[int], system: Actor) -> None:
    topic(source)
    with CaptureQueriesContext(connection) as few:
        used(dev)
    for number in range(11):
        row = topic(source, f"orders-{number}", subjects={"value": ["orders-value"]})
        for mark in ids:
            use(row, mark)
            use(row, mark, partition=1)
    for number in range(6):
        register_version(registry="dev", subject=SUBJECT, text=text("a", f"x{number}"), by=system)
    with CaptureQueriesContext(connection) as many:
        subject_use = used(dev)
    assert len(subject_use.coverage) == 12
    assert len(many) == len(few) == 6


def test_a_subject_that_is_not_there(dev: Registry) -> None:
    with pytest.raises(SubjectNotFound):
        used(dev, parse_subject("nothing-value"))


def test_where_reading_began_is_kept_and_a_gap_begins_again(source: Source) -> None:
    rows = {"orders": topic(source, read_from={}, positions={})}

    def read(start: int, end: int, *, low: int = 0, before: int = 0, restarted: bool = False) -> dict[str, int]:
        observation = PartitionRead(topic="orders", partition=0, start=start, end=end, low=low, high=9_999, messages=1)
        positions = {"orders": {"0": before}}
        keep_read_from(rows, [observation], positions, {"orders"} if restarted else ())
        return dict(Topic.objects.get(name="orders").read_from)

    assert read(40, 100) == {"0": 40}
    assert read(100, 200, before=100) == {"0": 40}, "it goes on where it was"
    assert read(250, 300, before=200, low=250) == {"0": 40}, "what expired is no gap"
    assert read(900, 950, before=300) == {"0": 900}, "messages were left out"
    assert read(0, 950, before=950) == {"0": 0}, "a full scan closes it"
    assert read(10, 20, before=950, restarted=True) == {"0": 10}


# -- retirement -----------------------------------------------------------------------------------------------------


def test_retirement_of_versions_and_of_the_subject(dev: Registry, source: Source, ids: list[int]) -> None:
    use(topic(source), ids[1], days=3)
    retirement = retirement_of(dev, SUBJECT, by=EVERYTHING, ask=False)
    assert {number: item.answer for number, item in retirement.versions.items()} == {1: "yes", 2: "not_before", 3: "no"}
    assert retirement.versions[2].date is not None
    assert (retirement.versions[2].date - timezone.now()).days == 3
    assert retirement.subject.answer == "not_before"
    assert retirement.subject.reasons[0].sentence.startswith("Version 2: ")
    assert retirement.asked_at is None


def test_a_cluster_that_does_not_answer_is_said_and_stored_facts_stay(
    dev: Registry, source: Source, ids: list[int]
) -> None:
    use(topic(source), ids[1], days=3)
    retirement = retirement_of(dev, SUBJECT, by=EVERYTHING)
    assert retirement.versions[2].answer == "not_before"
    assert "main: 127.0.0.1 is a loopback address" in retirement.problems[0]
    assert retirement.asked_at is None, "nothing was read"


def test_subjects_out_of_sight_are_counted_and_never_named(
    dev: Registry, source: Source, ids: list[int], system: Actor
) -> None:
    use(topic(source), ids[0], messages=5)
    use(topic(source, "copies", subjects={"value": ["copies-value"]}), ids[0], messages=90)
    register_version(registry="dev", subject=parse_subject("copies-value"), text=text("a"), by=system)
    refers = json.dumps({"type": "record", "name": "Bill", "fields": [{"name": "order", "type": "Order"}]})
    register_version(
        registry="dev",
        subject=parse_subject("bills-value"),
        text=refers,
        references=[Reference("Order", "orders-value", 1)],
        by=system,
    )
    named = retirement_of(dev, SUBJECT, by=EVERYTHING, ask=False)
    assert named.use.version(1).shared_with == ("copies-value version 1",)
    assert named.use.version(1).referrers == ("bills-value version 1",)
    hidden = retirement_of(dev, SUBJECT, by=NARROW, ask=False)
    version_use = hidden.use.version(1)
    assert (
        version_use.shared_with,
        version_use.shared_hidden,
        version_use.referrers,
        version_use.referrers_hidden,
    ) == ((), 1, (), 1)
    assert (version_use.topics_hidden, version_use.messages) == (1, named.use.version(1).messages)
    assert hidden.versions[1].answer == named.versions[1].answer == "no"
    assert hidden.subject.answer == named.subject.answer
    report = str(hidden.to_dict())
    assert "copies" not in report and "bills" not in report
    evidence_text = str(data_evidence(dev, SUBJECT, [1]))
    assert "1 version of another subject has the same schema id" in evidence_text and "copies" not in evidence_text


def test_state_of_other_apps_counts(
    dev: Registry, source: Source, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic(source)
    state_evidence = Evidence("state", "yes", "The state of query orders-agg holds this shape.")
    monkeypatch.setitem(
        hooks.version_evidence.hooks, "state", EvidenceProvider("state", lambda *_: {1: [state_evidence]})
    )
    retirement = retirement_of(dev, SUBJECT, by=EVERYTHING, ask=False)
    assert [retirement.versions[number].answer for number in (1, 2)] == ["no", "yes"]
    assert "orders-agg" in retirement.versions[1].sentence


# -- evidence and deletes -------------------------------------------------------------------------------------------


def test_what_the_scans_know_is_the_evidence_of_a_delete(dev: Registry, source: Source, ids: list[int]) -> None:
    orders = topic(source)
    use(orders, ids[1], days=3)
    in_use = {number: items[0].in_use for number, items in data_evidence(dev, SUBJECT, [1, 2, 3]).items()}
    assert in_use == {1: "no", 2: "yes", 3: "no"}
    Topic.objects.update(read_from={"0": 0, "1": 300})
    in_use = {number: items[0].in_use for number, items in data_evidence(dev, SUBJECT, [1, 2]).items()}
    assert in_use == {1: "unknown", 2: "yes"}, "a version that has messages is in use, whatever else isn't known"
    assert in_use_header(dev, SUBJECT, 1) == in_use_header(dev, SUBJECT, "x") == {}
    assert in_use_header(dev, parse_subject("nothing-value"), 1) == {}
    until = (SchemaUse.objects.get().last_time + timedelta(days=7)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert in_use_header(dev, SUBJECT) == in_use_header(dev, SUBJECT, "2") == {HEADER: f"2;kind=data;until={until}"}


def test_a_version_in_use_is_kept_unless_it_is_forced(
    dev: Registry, source: Source, ids: list[int], person: Callable[[str], Actor]
) -> None:
    use(topic(source), ids[1], days=3)
    admin, steward = person("admin"), person("steward")
    refuse_in_use(dev, SUBJECT, [1], by=admin)
    with pytest.raises(
        VersionInUse, match="Version 2 of orders-value is in use: 100 messages of orders need the version"
    ):
        refuse_in_use(dev, SUBJECT, [1, 2], by=admin)
    with pytest.raises(NotAllowed):
        refuse_in_use(dev, SUBJECT, [2], by=steward, force="I want to")
    refuse_in_use(dev, SUBJECT, [2], by=admin, force="the topic goes tomorrow")
    refuse_in_use(dev, SUBJECT, [2], by=replace(admin, channel="confluent"))


def test_a_provider_that_is_away_knows_nothing(dev: Registry, ids: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any) -> Any:
        raise Unavailable("the checkpoints' disk is away")

    monkeypatch.setitem(hooks.version_evidence.hooks, "state", EvidenceProvider("state", away))
    (item,) = evidence_of(dev, SUBJECT, [1], kinds=("state",))[1]
    assert item.in_use == "unknown"
    assert "disk is away" in item.sentence


# -- doors ----------------------------------------------------------------------------------------------------------


def test_the_api_tells_usage(
    dev: Registry, source: Source, ids: list[int], api: Callable[[str], Client], system: Actor
) -> None:
    use(topic(source), ids[1], days=3)
    delete_version(registry="dev", subject=SUBJECT, version=1, by=system)
    client = api("reader")
    document = client.get("/api/v1/registries/dev/subjects/orders-value/usage?ask=false").json()
    assert document["retirement"]["answer"] == "not_before"
    first, second, _ = document["versions"]
    assert (first["deleted"], second["topics"][0]["partitions"][0]["last_offset"]) == (True, 99)
    assert second["retirement"]["reasons"][0]["topic"] == "orders"
    assert document["coverage"][0]["sentence"].startswith("orders was last scanned")
    assert client.get("/api/v1/registries/dev/subjects/nothing/usage").status_code == 404
    encoded = client.get("/api/v1/registries/dev/subjects/%6Frders-value/usage?ask=false").json()
    assert encoded["retirement"] == document["retirement"]
    assert client.get("/api/v1/registries/nowhere/subjects/orders-value/usage").status_code == 404
    assert Client().get("/api/v1/registries/dev/subjects/orders-value/usage").status_code == 401


def test_the_api_decodes_messages(dev: Registry, ids: list[int], api: Callable[[str], Client]) -> None:
    client = api("reader")
    body = {"registry": "dev", "message": f"00{ids[0]:08x}020468 69"}
    document = client.post("/api/v1/messages/decode", body, content_type="application/json").json()
    assert (document["value"], document["versions"][0]["subject"]) == ({"a": "hi"}, "orders-value")
    with_headers = {**body, "headers": {"content-type": "application/octet-stream", "trace": "7"}}
    again = client.post("/api/v1/messages/decode", with_headers, content_type="application/json")
    assert again.json()["value"] == {"a": "hi"}
    refused = client.post("/api/v1/messages/decode", {**body, "message": "0"}, content_type="application/json")
    assert (refused.status_code, refused.json()["error"]) == (422, "InvalidInput")


def test_a_replay_takes_a_schema_or_a_version_and_a_right(
    dev: Registry, ids: list[int], api: Callable[[str], Client], system: Actor
) -> None:
    body = {"registry": "dev", "subject": "orders-value", "version": "1"}
    send: dict[str, Any] = {"content_type": "application/json"}
    assert api("reader").post("/api/v1/replays", body, **send).status_code == 403
    both = api("steward").post("/api/v1/replays", {**body, "schema": text("a")}, **send)
    assert "either a schema or an existing version" in both.json()["message"]
    none = api("steward").post("/api/v1/replays", body, **send)
    assert (none.status_code, none.json()["error"]) == (422, "InvalidSource")
    assert "is known to carry orders-value" in none.json()["message"]
    made = parse_subject("made-value")
    register_version(registry="dev", subject=made, text='{"type": "object"}', schema_type="JSON", by=system)
    sent = {"registry": "dev", "subject": "made-value", "schema": '{"type": "object", "title": "T"}'}
    answer = api("steward").post("/api/v1/replays", sent, **send)
    assert answer.json()["error"] == "InvalidSource", "its schema is read as JSON Schema, like the subject's"


def test_the_commands(dev: Registry, source: Source, ids: list[int]) -> None:
    use(topic(source), ids[1], days=3)
    out = StringIO()
    call_command("usage", "orders-value", registry="dev", stored=True, stdout=out)
    assert "orders value: 100 messages, 10.0% of the topic" in out.getvalue()
    assert "can be retired? Yes: Never seen in the 1,000 messages" in out.getvalue()
    with pytest.raises(SystemExit) as end:
        call_command("usage", "orders-value", registry="dev", stored=True, number=2, stdout=StringIO())
    assert end.value.code == 1
    for name, number in (("nosuch", None), ("orders-value", 77), ("orders-value", 0)):
        with pytest.raises(CommandError) as error:
            call_command("usage", name, registry="dev", stored=True, number=number, stdout=StringIO())
        assert error.value.returncode == 3
    out = StringIO()
    call_command("usage", "orders-value", registry="dev", stored=True, json=True, stdout=out)
    assert json.loads(out.getvalue())["versions"][1]["messages"] == 100
    out = StringIO()
    call_command("decode_message", f"00{ids[0]:08x}02046869", registry="dev", stdout=out)
    assert json.loads(out.getvalue())["value"] == {"a": "hi"}
    with pytest.raises(SystemExit):
        call_command("decode_message", "ff", registry="dev", stdout=StringIO())


def test_who_may_read_the_subject_alone_learns_of_no_source_and_no_query(
    dev: Registry,
    source: Source,
    ids: list[int],
    api: Callable[[str], Client],
    person: Callable[[str], Actor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where = "The state variable totals of the query at /checkpoints/secret"
    state_evidence = Evidence("state", "yes", f"{where} holds its fields (a).", names=where)
    monkeypatch.setitem(
        hooks.version_evidence.hooks, "state", EvidenceProvider("state", lambda *_: {2: [state_evidence]})
    )
    use(topic(source), ids[1], days=3)
    person("reader")
    client, address = api("reader"), "/api/v1/registries/dev/subjects/orders-value/usage"
    whole = client.get(f"{address}?ask=false").content.decode()
    assert "/checkpoints/secret" in whole and f'"source":"{source.name}"' in whole
    RoleGrant.objects.filter(user__username="reader").update(registry="dev", subject_pattern="orders-*")
    for query in ("?ask=false", ""):  # asked, the cluster doesn't answer
        response = client.get(address + query)
        document = response.json()
        assert "/checkpoints/secret" not in response.content.decode()
        assert "The state of a streaming query holds its fields (a)." in response.content.decode()
        named = {(item["source"], item["cluster"]) for item in document["coverage"]}
        named |= {(item["source"], item["cluster"]) for version in document["versions"] for item in version["topics"]}
        assert named == {("", "")}
        assert "127.0.0.1" not in str(document["problems"]) and source.cluster.name not in str(document["problems"])  # type: ignore[union-attr]
