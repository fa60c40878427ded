"""Which messages carry a version's mark, from what the scans have kept; the doors that ask for it; what a delete says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.models import RoleGrant
from registry.access.roles import Actor, Grant, system_actor
from registry.drift.gaps import keep_read_from
from registry.drift.models import Cluster, SchemaUse, Source, Topic
from registry.drift.retiring import data_evidence, retirement_of
from registry.drift.usage import SubjectUse, usage_of
from registry.errors import NotAllowed, SubjectNotFound, Unavailable, VersionInUse
from registry.formats.base import Reference
from registry.observations import PartitionRead
from registry.subjects import evidence
from registry.subjects.evidence import HEADER, Evidence, evidence_of, in_use_header, refuse_in_use
from registry.subjects.models import Registry, Schema
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.places import get_registry
from registry.subjects.services import delete_version, register_version

pytestmark = pytest.mark.requirement("CARD-3")
SUBJECT = parse_subject("orders-value")
EVERYTHING = system_actor("tests")
#: reads orders-value alone
NARROW = Actor("narrow", "product", user_id=1, grants=(Grant("reader", "dev", "orders-*"),))


def text(*fields: str) -> str:
    listed = [{"name": name, "type": ["null", "string"], "default": None} for name in fields]
    return json.dumps({"type": "record", "name": "Order", "fields": listed})


@pytest.fixture
def place(registries: None) -> Registry:
    return get_registry("dev")


@pytest.fixture
def source(place: Registry) -> Source:
    cluster = Cluster.objects.create(name="main", bootstrap="127.0.0.1:1", created_by="tests")
    return Source.objects.create(registry=place, kind="kafka", name="shop", cluster=cluster, created_by="tests")


@pytest.fixture
def ids(place: Registry, system: Actor) -> list[int]:
    """The schema ids of three versions of the subject."""
    return [
        register_version(registry="dev", subject=SUBJECT, text=text(*"abc"[:count]), by=system).schema_id
        for count in (1, 2, 3)
    ]


def topic(source: Source, name: str = "orders", **values: Any) -> Topic:
    now = timezone.now()
    given = {
        "partitions": 2,
        "messages": 1_000,
        "read_from": {"0": 0, "1": 0},
        "positions": {"0": 600, "1": 400},
        "retention_ms": 7 * 86_400_000,
        "checked_at": now,
        "read_at": now,
    }
    return Topic.objects.create(source=source, name=name, **(given | values))


def use(
    topic: Topic, mark: object, *, partition: int = 0, days: int = 3, messages: int = 100, first: int = 0, **values: Any
) -> SchemaUse:
    when = timezone.now() - timedelta(days=days)
    given = {"side": "value", "framing": "id", "schema_id": mark if isinstance(mark, int) else None}
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
        **(given | values),
    )


def used(place: Registry, subject: SubjectName = SUBJECT) -> SubjectUse:
    return usage_of(place, subject, by=EVERYTHING)


def test_a_version_s_messages_by_topic_and_partition(place: Registry, source: Source, ids: list[int]) -> None:
    orders = topic(source)
    use(orders, ids[0], messages=100)
    use(orders, ids[0], partition=1, messages=50, first=10, days=1)
    use(orders, ids[1], first=100, messages=200)
    found = used(place)
    first, second, third = found.versions
    assert [(item.version, item.schema_id, item.messages) for item in found.versions] == [
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


def test_marks_of_all_framings_count_and_foreign_ones_do_not(place: Registry, source: Source, ids: list[int]) -> None:
    orders = topic(source)
    guid = str(Schema.objects.get(context__registry=place, schema_id=ids[0]).guid)
    use(orders, guid, framing="guid", messages=7)
    use(orders, "vnd.orders-value.v2", framing="content_type", messages=8)
    use(orders, "vnd.orders-value.v22", framing="content_type", messages=9)
    use(orders, "vnd.my-orders-value.v1", framing="content_type", messages=9)
    elsewhere = Source.objects.create(
        registry=place, kind="kafka", name="eu", cluster=source.cluster, context=".eu", created_by="tests"
    )
    use(topic(elsewhere, "orders"), ids[0], messages=1_000)
    other = Source.objects.create(
        registry=get_registry("staging"), kind="kafka", name="shop", cluster=source.cluster, created_by="tests"
    )
    use(topic(other, "orders"), ids[0], messages=1_000)
    assert [item.messages for item in used(place).versions] == [7, 8, 0]


def test_the_same_id_in_topics_of_other_subjects_is_told_apart(
    place: Registry, source: Source, ids: list[int], system: Actor
) -> None:
    use(topic(source), ids[0], messages=5)
    use(topic(source, "copies", subjects={"value": ["copies-value"]}), ids[0], messages=90)
    use(topic(source, "unclear"), ids[0], messages=3)
    register_version(registry="dev", subject=parse_subject("copies-value"), text=text("a"), by=system)
    found = used(place).version(1)
    assert {item.topic: item.owner for item in found.topics} == {
        "copies": "other",
        "orders": "this",
        "unclear": "unknown",
    }
    assert found.messages == 8
    assert found.shared_with == ("copies-value version 1",)
    assert {item.topic: item.is_own for item in used(place).coverage} == {
        "copies": False,
        "orders": True,
        "unclear": True,
    }


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"checked_at": None, "read_at": None, "read_from": {}}, "orders was never scanned."),
        ({"read_from": {"0": 500, "1": 0}}, "Partly: partition 0 from 500."),
        ({"read_from": {"0": 0}}, "Of 1 of 2 partitions it isn't known"),
        ({"problem": "it may not be read"}, "couldn't be read by the last scan: it may not be read"),
        ({"read_at": None}, "held no messages to read"),
        ({}, "1,000 messages in all."),
    ],
)
def test_what_is_not_known_is_said(
    place: Registry, source: Source, ids: list[int], values: dict[str, Any], says: str
) -> None:
    topic(source, **values)
    assert says in used(place).coverage[0].sentence


def test_the_number_of_queries_does_not_grow(place: Registry, source: Source, ids: list[int], system: Actor) -> None:
    with CaptureQueriesContext(connection) as few:
        used(place)
    for number in range(12):
        row = topic(source, f"orders-{number}", subjects={"value": ["orders-value"]})
        for mark in ids:
            use(row, mark)
            use(row, mark, partition=1)
    for number in range(6):
        register_version(registry="dev", subject=SUBJECT, text=text("a", f"x{number}"), by=system)
    with CaptureQueriesContext(connection) as many:
        found = used(place)
    assert len(found.coverage) == 12
    assert len(many) == len(few) == 5


def test_a_subject_that_is_not_there(place: Registry) -> None:
    with pytest.raises(SubjectNotFound):
        used(place, parse_subject("nothing-value"))


def test_where_reading_began_is_kept_and_a_gap_begins_anew(source: Source) -> None:
    rows = {"orders": topic(source, read_from={}, positions={})}

    def read(start: int, end: int, *, low: int = 0, before: int = 0, restarted: bool = False) -> dict[str, int]:
        seen = PartitionRead(topic="orders", partition=0, start=start, end=end, low=low, high=9_999, messages=1)
        positions = {"orders": {"0": before}}
        keep_read_from(rows, [seen], positions, {"orders"} if restarted else ())
        return dict(Topic.objects.get(name="orders").read_from)

    assert read(40, 100) == {"0": 40}
    assert read(100, 200, before=100) == {"0": 40}, "it goes on where it was"
    assert read(250, 300, before=200, low=250) == {"0": 40}, "what expired is no gap"
    assert read(900, 950, before=300) == {"0": 900}, "messages were left out"
    assert read(0, 950, before=950) == {"0": 0}, "a full scan closes it"
    assert read(10, 20, before=950, restarted=True) == {"0": 10}


# -- retirement -----------------------------------------------------------------------------------------------------


def test_retirement_of_versions_and_of_the_subject(place: Registry, source: Source, ids: list[int]) -> None:
    use(topic(source), ids[1], days=3)
    found = retirement_of(place, SUBJECT, by=EVERYTHING, ask=False)
    assert {number: item.answer for number, item in found.versions.items()} == {1: "yes", 2: "not_before", 3: "no"}
    assert found.versions[2].date is not None
    assert (found.versions[2].date - timezone.now()).days == 3
    assert found.subject.answer == "not_before"
    assert found.subject.reasons[0].sentence.startswith("Version 2: ")
    assert found.asked_at is None


def test_a_cluster_that_does_not_answer_is_said_and_stored_facts_stay(
    place: Registry, source: Source, ids: list[int]
) -> None:
    use(topic(source), ids[1], days=3)
    found = retirement_of(place, SUBJECT, by=EVERYTHING)
    assert found.versions[2].answer == "not_before"
    assert "main: 127.0.0.1 is a loopback address" in found.problems[0]
    assert found.asked_at is not None


def test_subjects_out_of_sight_are_counted_and_never_named(
    place: Registry, source: Source, ids: list[int], system: Actor
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
    named = retirement_of(place, SUBJECT, by=EVERYTHING, ask=False)
    assert named.use.version(1).shared_with == ("copies-value version 1",)
    assert named.use.version(1).referrers == ("bills-value version 1",)
    hidden = retirement_of(place, SUBJECT, by=NARROW, ask=False)
    found = hidden.use.version(1)
    assert (found.shared_with, found.shared_hidden, found.referrers, found.referrers_hidden) == ((), 1, (), 1)
    assert (found.topics_hidden, found.messages) == (1, named.use.version(1).messages)
    assert hidden.versions[1].answer == named.versions[1].answer == "no"
    assert hidden.subject.answer == named.subject.answer
    said = str(hidden.to_dict())
    assert "copies" not in said and "bills" not in said
    told = str(data_evidence(place, SUBJECT, [1]))
    assert "1 version of another subject has the same schema id" in told and "copies" not in told


def test_state_of_other_apps_counts(
    place: Registry, source: Source, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic(source)
    held = Evidence("state", "yes", "The state of query orders-agg holds this shape.")
    monkeypatch.setitem(evidence.PROVIDERS, "state", ("state", lambda *_: {1: [held]}))
    found = retirement_of(place, SUBJECT, by=EVERYTHING, ask=False)
    assert [found.versions[number].answer for number in (1, 2)] == ["no", "yes"]
    assert "orders-agg" in found.versions[1].sentence


# -- evidence and deletes -------------------------------------------------------------------------------------------


def test_what_the_scans_know_is_the_evidence_of_a_delete(place: Registry, source: Source, ids: list[int]) -> None:
    orders = topic(source)
    use(orders, ids[1], days=3)
    told = {number: items[0].in_use for number, items in data_evidence(place, SUBJECT, [1, 2, 3]).items()}
    assert told == {1: "no", 2: "yes", 3: "no"}
    Topic.objects.update(read_from={"0": 0, "1": 300})
    told = {number: items[0].in_use for number, items in data_evidence(place, SUBJECT, [1, 2]).items()}
    assert told == {1: "unknown", 2: "yes"}, "a version that has messages is in use, whatever else isn't known"
    assert in_use_header(place, SUBJECT, 1) == in_use_header(place, SUBJECT, "x") == {}
    assert in_use_header(place, parse_subject("nothing-value"), 1) == {}
    until = (SchemaUse.objects.get().last_time + timedelta(days=7)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert in_use_header(place, SUBJECT) == in_use_header(place, SUBJECT, "2") == {HEADER: f"2;kind=data;until={until}"}


def test_a_version_in_use_is_kept_unless_it_is_forced(
    place: Registry, source: Source, ids: list[int], person: Callable[[str], Actor]
) -> None:
    use(topic(source), ids[1], days=3)
    admin, steward = person("admin"), person("steward")
    refuse_in_use(place, SUBJECT, [1], by=admin)
    with pytest.raises(VersionInUse, match="Version 2 of orders-value is in use: 100 messages of orders need it"):
        refuse_in_use(place, SUBJECT, [1, 2], by=admin)
    with pytest.raises(NotAllowed):
        refuse_in_use(place, SUBJECT, [2], by=steward, force="I want to")
    refuse_in_use(place, SUBJECT, [2], by=admin, force="the topic goes tomorrow")
    refuse_in_use(place, SUBJECT, [2], by=replace(admin, door="confluent"))


def test_a_provider_that_is_away_knows_nothing(
    place: Registry, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> Any:
        raise Unavailable("the checkpoints' disk is away")

    monkeypatch.setitem(evidence.PROVIDERS, "state", ("state", away))
    (found,) = evidence_of(place, SUBJECT, [1], kinds=("state",))[1]
    assert found.in_use == "unknown"
    assert "disk is away" in found.sentence


# -- doors ----------------------------------------------------------------------------------------------------------


def test_the_api_tells_usage(
    place: Registry, source: Source, ids: list[int], api: Callable[[str], Client], system: Actor
) -> None:
    use(topic(source), ids[1], days=3)
    delete_version(registry="dev", subject=SUBJECT, version=1, by=system)
    client = api("reader")
    answer = client.get("/api/v1/registries/dev/subjects/orders-value/usage?ask=false").json()
    assert answer["retirement"]["answer"] == "not_before"
    first, second, _ = answer["versions"]
    assert (first["deleted"], second["topics"][0]["partitions"][0]["last_offset"]) == (True, 99)
    assert second["retirement"]["reasons"][0]["topic"] == "orders"
    assert answer["coverage"][0]["sentence"].startswith("orders was last scanned")
    assert client.get("/api/v1/registries/dev/subjects/nothing/usage").status_code == 404
    encoded = client.get("/api/v1/registries/dev/subjects/%6Frders-value/usage?ask=false").json()
    assert encoded["retirement"] == answer["retirement"]
    assert client.get("/api/v1/registries/nowhere/subjects/orders-value/usage").status_code == 404
    assert Client().get("/api/v1/registries/dev/subjects/orders-value/usage").status_code == 401


def test_the_api_decodes_messages(place: Registry, ids: list[int], api: Callable[[str], Client]) -> None:
    client = api("reader")
    body = {"registry": "dev", "message": f"00{ids[0]:08x}020468 69"}
    answer = client.post("/api/v1/messages/decode", body, content_type="application/json").json()
    assert (answer["value"], answer["versions"][0]["subject"]) == ({"a": "hi"}, "orders-value")
    wrong = client.post("/api/v1/messages/decode", {**body, "message": "0"}, content_type="application/json")
    assert (wrong.status_code, wrong.json()["error"]) == (422, "InvalidInput")


def test_a_replay_takes_a_schema_or_a_version_and_a_right(
    place: Registry, ids: list[int], api: Callable[[str], Client]
) -> None:
    body = {"registry": "dev", "subject": "orders-value", "version": "1"}
    send: dict[str, Any] = {"content_type": "application/json"}
    assert api("reader").post("/api/v1/replays", body, **send).status_code == 403
    both = api("steward").post("/api/v1/replays", {**body, "schema": text("a")}, **send)
    assert "one of the two" in both.json()["message"]
    none = api("steward").post("/api/v1/replays", body, **send)
    assert (none.status_code, none.json()["error"]) == (422, "InvalidSource")
    assert "is known to carry orders-value" in none.json()["message"]


def test_the_commands(place: Registry, source: Source, ids: list[int]) -> None:
    use(topic(source), ids[1], days=3)
    out = StringIO()
    call_command("usage", "orders-value", registry="dev", stored=True, stdout=out)
    assert "orders value: 100 messages, 10.0% of the topic" in out.getvalue()
    assert "can be retired? Yes: It was never seen in the 1,000 messages" in out.getvalue()
    with pytest.raises(SystemExit) as end:
        call_command("usage", "orders-value", registry="dev", stored=True, number=2, stdout=StringIO())
    assert end.value.code == 1
    out = StringIO()
    call_command("usage", "orders-value", registry="dev", stored=True, json=True, stdout=out)
    assert json.loads(out.getvalue())["versions"][1]["messages"] == 100
    out = StringIO()
    call_command("decode_message", f"00{ids[0]:08x}02046869", registry="dev", stdout=out)
    assert json.loads(out.getvalue())["value"] == {"a": "hi"}
    with pytest.raises(SystemExit):
        call_command("decode_message", "ff", registry="dev", stdout=StringIO())


def test_who_may_read_the_subject_alone_learns_of_no_source_and_no_query(
    place: Registry,
    source: Source,
    ids: list[int],
    api: Callable[[str], Client],
    person: Callable[[str], Actor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where = "The state variable totals of the query at /checkpoints/secret"
    held = Evidence("state", "yes", f"{where} holds its fields (a).", names=where)
    monkeypatch.setitem(evidence.PROVIDERS, "state", ("state", lambda *_: {2: [held]}))
    use(topic(source), ids[1], days=3)
    person("reader")
    client, address = api("reader"), "/api/v1/registries/dev/subjects/orders-value/usage"
    whole = client.get(f"{address}?ask=false").content.decode()
    assert "/checkpoints/secret" in whole and f'"source":"{source.name}"' in whole
    RoleGrant.objects.filter(user__username="reader").update(registry="dev", subject_pattern="orders-*")
    for query in ("?ask=false", ""):  # asked, the cluster doesn't answer
        answer = client.get(address + query)
        said = answer.json()
        assert "/checkpoints/secret" not in answer.content.decode()
        assert "The state of a streaming query holds its fields (a)." in answer.content.decode()
        named = {(item["source"], item["cluster"]) for item in said["coverage"]}
        named |= {(item["source"], item["cluster"]) for version in said["versions"] for item in version["topics"]}
        assert named == {("", "")}
        assert "127.0.0.1" not in str(said["problems"]) and source.cluster.name not in str(said["problems"])  # type: ignore[union-attr]
