"""The pages of findings and mutes over the real database: filters, decisions one by one and in bulk, evidence, rights."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.findings.evidence import evidence_tables
from registry.access.roles import Actor, Grant
from registry.drift.evidence import read_evidence
from registry.drift.findings.promotion_check import open_drift
from registry.drift.models import Cluster, Finding, FindingRange, Mute, Scan, Source, Topic
from registry.drift.selectors import get_finding
from registry.drift.services import acknowledge, remove_source
from registry.errors import WrongState
from registry.promotions.models import Environment
from registry.promotions.plan.types import PlanStep
from registry.promotions.services import open_break_glass
from registry.streams.models import QueryInput, StreamQuery
from registry.subjects.models import Client as StoredClient
from registry.subjects.models import Registry
from registry.subjects.services import register_version, set_note
from registry.subjects.usage.clients import LAPSES, declare_client
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import RawClient
from tests.markup import compact

pytestmark = pytest.mark.requirement("CARD-3", "CARD-4")

QUERIES = json.loads((Path(__file__).parents[1] / "query_counts.json").read_text())
NASTY = '<img src=x onerror="alert(1)">\u202e'
CLIENTS: dict[str, dict[str, Any]] = {
    "sender": {"reads": False, "writes": True},
    "quiet": {},
    "billing": {"contact": "#billing", "version": 1},
}
DECIDERS = ("steward", "approver", "admin")


def seen(response: Any) -> str:
    """What a person reads of a page: without markup, white space folded."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", response.content.decode())).split())


@pytest.fixture
def source(person: Callable[[str], Actor]) -> Source:
    """Topics of a cluster with sign-in, read once."""
    person("steward")
    cluster = Cluster.objects.create(
        name="c", bootstrap="broker-1:9093", security_protocol="SASL_SSL", sasl_mechanism="PLAIN", username="it's me",
        secret="kafka", ca_pem="x", created_by="steward",
    )  # fmt: skip
    made = Source.objects.create(
        registry=Registry.objects.get(name="dev"), kind="kafka", name="orders", cluster=cluster, created_by="steward"
    )
    now = timezone.now()
    Scan.objects.create(
        source=made, state="done", queued_by="s", finished_at=now, read={"nothing": False, "messages": 1, "seconds": 1}
    )
    return made


@pytest.fixture
def find(source: Source) -> Callable[..., Finding]:
    """A finding in that source; what is given replaces its fields."""
    now = timezone.now()

    def make(**fields: Any) -> Finding:
        number = Finding.objects.count()
        values = {
            "rule": "UNKNOWN_SCHEMA_ID", "severity": "break", "sentence": f"Sentence {number} {NASTY}", "remedy": "Find the producer.",
            "location": f"orders:0@{number}", "subject_name": "orders-value", "evidence": {}, "first_seen": now - timedelta(days=2),
            "last_seen": now, "count": 3, "fingerprint": f"{number:064}",
        }  # fmt: skip
        return Finding.objects.create(source=source, **(values | fields))

    return make


EVIDENCE = {
    "topic": "or'ders; rm", "side": "value", "of_messages_read": 900001, "messages": 3, "version": 2, "newer": 3,
    "ids_over_time": {"2026-11-21 09:00": 41, NASTY: 4959},
    "partitions": [
        {"partition": 0, "messages": 2, "first_offset": 17, "last_offset": 19, "first_time": 1780000000000, "last_time": 1780000900000},
        {"partition": 4, "messages": 1, "first_offset": 5, "last_offset": 5, "first_time": 1780001000000, "last_time": 1780001000000},
    ],
}  # fmt: skip


def test_finding_pages_show_evidence_cause_and_commands(
    look: Callable[[str], Client], find: Callable[..., Finding], django_assert_num_queries: Any
) -> None:
    row = find(rule="OLD_VERSION_WRITTEN", evidence=EVIDENCE, cause="Most likely version 3.")
    client = look("steward")
    with django_assert_num_queries(QUERIES["drift: one finding"]):
        response = client.get(f"/ui/findings/{row.pk}")
    text, raw = seen(response), response.content.decode()
    expected = ["17", "19", "900,001", "Most likely version 3.", "Find the producer.", "4,959", "Scan source again", "Mute similar findings", "Clean scans 0 of 2"]  # fmt: skip
    assert [word for word in expected if word not in text] == []
    # What a shell reads: the topic quoted, the password left to the reader.
    assert "-t 'or'\"'\"'ders; rm' -p 0 -o 17 -c 3" in text
    assert "-X 'sasl.username=it'\"'\"'s me' -X 'sasl.password=…' -X ssl.ca.location=ca.pem" in text
    assert "compare?from=2&amp;to=3" in raw
    assert raw.count('<svg class="bar') >= 4
    assert "<img" not in raw and "\u202e" not in raw and " style=" not in raw
    assert "In all scans 3 First seen" in text and "Messages in the last scan 3" in text
    assert (
        "The title, the locations, the evidence and the commands are from the last scan that saw this finding." in text
    )
    assert raw.index("Where and when seen in the last scan") < raw.index('id="todo-title"')


def test_offsets_and_decisions_are_said_once(look: Callable[[str], Client], find: Callable[..., Finding]) -> None:
    """What would repeat where the last scan saw the messages isn't listed again; its files are offered there."""
    row = find(rule="OLD_VERSION_WRITTEN", evidence=EVIDENCE, count=4)
    ranges = [(0, 17, 19), (4, 5, 5)]
    FindingRange.objects.bulk_create(
        FindingRange(finding=row, partition=partition, first_offset=first, last_offset=last)
        for partition, first, last in ranges
    )
    raw = look("steward").get(f"/ui/findings/{row.pk}").content.decode()
    assert "Messages by offset" not in raw and raw.count(f"/ui/findings/{row.pk}/offsets?as=csv") == 1
    assert re.findall(r"<h2>(Acknowledge|Decide)</h2>", raw) == ["Decide"] and raw.count('id="decide"') == 1
    FindingRange.objects.filter(partition=4).delete()
    Finding.objects.filter(pk=row.pk).update(count=3)
    raw = look("steward").get(f"/ui/findings/{row.pk}").content.decode()
    assert "Messages by offset" in raw, "the last scan saw others too"


@pytest.mark.parametrize(
    ("rule", "label", "days", "now"),
    [
        ("UNIT_CHANGED", "Least and greatest value by day", {"minimum": "1e0", "maximum": "1e4"}, {"minimum": "1e3", "maximum": "1e7"}),
        ("VALUES_OUT_OF_RANGE", "Least and greatest value by day", {"minimum": "0", "maximum": "1e2"}, {"minimum": "-1e1", "maximum": "1e2"}),
        ("DISTINCT_VALUES_CHANGED", "Different values by day", {"distinct": 700}, {"distinct": 1}),
        ("TOPIC_SILENT", "Messages by time", {}, {"messages": 0}),
    ],
)  # fmt: skip
def test_the_days_before_a_change_are_drawn_and_listed(
    look: Callable[[str], Client], find: Callable[..., Finding], rule: str, label: str, days: Any, now: Any
) -> None:
    rows = [{"when": f"2026-11-{day:02}", "messages": 900, **days} for day in range(1, 15)]
    by_day = [*rows, {"when": "now", "messages": 800, **now}]
    row = find(rule=rule, evidence={"topic": "orders", "change": "it changed", "confidence": 0.97, "by_day": by_day})
    response = look("steward").get(f"/ui/findings/{row.pk}")
    raw, text = response.content.decode(), seen(response)
    assert f'aria-label="{label}"' in raw
    assert raw.count('fill="currentColor"') == 15
    assert raw.count('opacity="1"') == 1, "only the scan itself is drawn in full"
    assert "Confidence, at least (0 to 1) 0.97" in text
    assert (
        "Without an end date, the reported level becomes the new baseline, counted from the day the change began."
        in text
    )
    assert [value for value in ("2026-11-01", "now", *map(str, now.values())) if value not in text] == []


def test_the_list_says_of_which_scans_the_sentence_and_the_count_are(
    look: Callable[[str], Client], find: Callable[..., Finding]
) -> None:
    find(sentence="3 messages lack a schema id.", evidence={"messages": 3}, rule="UNFRAMED_DATA", count=7)
    find(sentence="5 messages have no key.", evidence={"messages": 5}, rule="TABLE_WITHOUT_KEY", count=5)
    find(sentence="The level was relaxed.", rule="LEVEL_RELAXED")
    text = seen(look("reader").get("/ui/findings"))
    assert "In all scans" in text
    assert "In the last scan that saw it: 3 messages lack a schema id." in text
    for plain in ("5 messages have no key.", "The level was relaxed."):
        assert f"that saw it: {plain}" not in text and plain in text


LEFT_OUT = "Not checked any more: the patterns of the source leave out topic orders."
AGES_AGO = datetime(2026, 3, 1, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("source_values", "topic_values", "scan_values", "said"),
    [
        ({"include": ["orders", "bills"]}, {}, {}, ""),
        ({"include": ["bills"]}, {}, {}, LEFT_OUT),
        ({"include": ["*"], "exclude": ["ord*"]}, {"problem": "no right"}, {}, LEFT_OUT),
        ({}, {"gone_at": AGES_AGO}, {}, "Not checked any more: the cluster no longer has topic orders."),
        (
            {"kind": "debezium"},
            {"checked_at": AGES_AGO},
            {"started_at": AGES_AGO + timedelta(hours=1)},
            "Not checked any more: the last scan of the source no longer chose topic orders.",
        ),
        ({}, {"problem": "no right to it"}, {}, "Not checked by the last scan: no right to it"),
        (
            {"kind": "debezium"},
            {},
            {"state": "failed", "error": "Kafka Connect has no connector 'shop'."},
            "Not checked by the last scan, which failed: Kafka Connect has no connector 'shop'.",
        ),
        ({"kind": "nobody's"}, {}, {}, "Not checked any more: no class is registered for sources of kind nobody's."),
        (
            {},
            {},
            {"finished_at": AGES_AGO},
            "Not checked any more: the source has no schedule, and its last scan ended on 2026-03-01 08:00 UTC.",
        ),
        ({"every_seconds": 60}, {}, {"finished_at": AGES_AGO}, ""),
    ],
)
def test_a_finding_that_no_scan_checks_says_so(
    look: Callable[[str], Client],
    find: Callable[..., Finding],
    token: Callable[[str], str],
    source: Source,
    source_values: dict[str, Any],
    topic_values: dict[str, Any],
    scan_values: dict[str, Any],
    said: str,
) -> None:
    row = find(topic=Topic.objects.create(source=source, name="orders", **topic_values))
    Source.objects.filter(pk=source.pk).update(**source_values)
    Scan.objects.filter(source=source).update(**scan_values)
    reader = look("reader")
    answer = reader.get(f"/api/v1/findings/{row.pk}", headers={"authorization": f"Bearer {token('reader')}"})
    assert answer.json()["not_checked"] == said
    for address in ("/ui/findings", f"/ui/findings/{row.pk}"):
        text = seen(reader.get(address))
        assert said in text and ("Not checked" in text) is bool(said)
    (check,) = open_drift(source.registry, [PlanStep("register", "orders-value")])
    assert check.verdict == "fail", "what isn't checked any more isn't proved to be gone"
    assert (f"(Not checked any more. See finding {row.pk}.)" in check.sentence) is ("any more" in said)
    Finding.objects.update(state="resolved", resolved_at=timezone.now())
    assert get_finding(row.pk).not_checked == ""


def test_readers_of_its_subject_alone_get_no_reason(find: Callable[..., Finding], source: Source) -> None:
    row = find(topic=Topic.objects.create(source=source, name="orders"))
    Scan.objects.filter(source=source).update(state="failed", error="broker-1:9093 is away")
    actor = Actor("narrow", "rest", grants=(Grant("reader", "dev", "orders-*"),))
    assert get_finding(row.pk, by=actor).not_checked == "Not checked by the last scan."


def test_an_undeclared_protobuf_field_is_shown_with_its_number_and_a_message_that_has_it(
    look: Callable[[str], Client], find: Callable[..., Finding]
) -> None:
    evidence = EVIDENCE | {
        "field": "#7", "framing": "id", "mark": "1", "field_number": 7, "encodings": ["varint"], "example": [{"partition": 4, "offset": 1234}],
    }  # fmt: skip
    text = seen(look("steward").get(f"/ui/findings/{find(rule='FIELD_UNDECLARED', evidence=evidence).pk}"))
    assert "Field number 7" in text and "Encodings varint" in text and "Example Partition Offset 4 1234" in text
    assert text.index("-p 4 -o 1234 -c 1") < text.index("-p 0 -o 17 -c 3")
    assert "Propose" not in text, "Protobuf says neither its name nor its type"


def test_a_finding_names_the_clients_and_the_queries_that_it_concerns(
    look: Callable[[str], Client], find: Callable[..., Finding], source: Source, system: Actor
) -> None:
    """Of its subject, or where none is known of its topic; of other subjects and registries nobody."""
    orders, other = SubjectName(".", "orders-value"), SubjectName(".", "other-value")
    for subject in (orders, other):
        register_version(registry="dev", subject=subject, text='"string"', by=system)
        for name, more in CLIENTS.items():
            declare_client(registry="dev", subject=subject, name=f"{subject.subject[:2]} {name}", by=system, **more)
    StoredClient.objects.filter(name="or quiet").update(seen_at=timezone.now() - LAPSES - timedelta(days=1))
    for path, topic, subject_name in (("/q/hourly", "orders", "orders-value"), ("/q/else", "bills", "other-value")):
        query = StreamQuery.objects.create(
            source=source, registry=source.registry, path=path, query_id=path, encoding="avro", allowed_value_schemas=1,
            allowed_schema_files=1, scanned_at=timezone.now(),
        )  # fmt: skip
        QueryInput.objects.create(query=query, topic=topic, side="value", context=".", subject=subject_name)
    client = look("reader")

    def told(**fields: Any) -> tuple[list[tuple[str, str]], list[str], str]:
        response = client.get(f"/ui/findings/{find(**fields).pk}")
        shown = response.context["page"].affected
        return (
            [(row.name, row.sentence) for row in shown.clients], [row.sentence for row in shown.queries], seen(response)
        )  # fmt: skip

    clients, queries, text = told(rule="OLD_VERSION_WRITTEN", evidence={"version": 1})
    assert clients == [
        ("or billing", "reads version 1, the version that was seen"), ("or sender", "writes version 1, the version that was seen"),
        ("or quiet", "reads version 1, the version that was seen"),
    ]  # fmt: skip
    assert queries == ["reads orders"]
    assert "#billing" in text and "not reported since" in text and "hourly" in text
    orders_topic = Topic.objects.create(source=source, name="orders")
    assert told(subject_name="", topic=orders_topic)[:2] == ([], ["reads orders"])
    assert told(subject_name="missing-value")[:2] == ([], [])
    assert "No client is declared, and no scanned query reads it." in told(subject_name="missing-value")[2]
    assert client.get(f"/ui/findings/{find(subject_name='').pk}").context["page"].affected is None


def test_a_finding_names_the_channel_of_its_subject(
    look: Callable[[str], Client], find: Callable[..., Finding], system: Actor
) -> None:
    orders = SubjectName(".", "orders-value")
    register_version(registry="dev", subject=orders, text='"string"', by=system)
    set_note(
        registry="dev", subject=orders, tags=[], doc="", channel="https://chat.example/orders", expected="*", by=system
    )
    page = compact(look("reader").get(f"/ui/findings/{find().pk}").content.decode())
    assert 'Tell the owners in</span><span><a href="https://chat.example/orders" rel="noopener noreferrer">' in page
    assert "Tell the owners in" not in seen(look("reader").get(f"/ui/findings/{find(subject_name='other').pk}"))


def test_a_finding_without_evidence_says_so(look: Callable[[str], Client], find: Callable[..., Finding]) -> None:
    assert "No evidence was saved" in seen(look("reader").get(f"/ui/findings/{find().pk}"))


def test_evidence_beyond_the_calendar_is_shown(look: Callable[[str], Client], find: Callable[..., Finding]) -> None:
    part = {
        "partition": 0,
        "messages": 1,
        "first_offset": 1,
        "last_offset": 1,
        "first_time": -(2**62),
        "last_time": 2**62,
    }
    response = look("reader").get(f"/ui/findings/{find(evidence={'partitions': [part]}).pk}")
    assert response.status_code == 200 and f"{2**62} ms" in seen(response)


def test_the_list_counts_filters_and_hides_muted_ones(
    look: Callable[[str], Client], find: Callable[..., Finding], django_assert_num_queries: Any
) -> None:
    find(sentence="first break")
    find(sentence="second risk", severity="risk", rule="UNFRAMED_DATA", subject_name="other", assigned_to="approver")
    find(sentence="third muted", muted=True)
    find(sentence="fourth done", state="resolved")
    client = look("reader")
    with django_assert_num_queries(QUERIES["drift: findings"]):
        text = seen(client.get("/ui/findings"))
    assert "first break" in text and "second risk" in text and "1 muted" in text
    assert "third muted" not in text and "fourth done" not in text
    cases = {
        "severity=risk": "second risk", "rule=UNFRAMED_DATA": "second risk", "subject=other": "second risk", "assignee=approver": "second risk",
        "muted=only": "third muted", "state=resolved": "fourth done", "q=first": "first break", "registry=dev&severity=break": "first break",
    }  # fmt: skip
    for query, only in cases.items():
        page_text = seen(client.get(f"/ui/findings?{query}"))
        shown = [
            sentence
            for sentence in ("first break", "second risk", "third muted", "fourth done")
            if sentence in page_text
        ]
        assert shown == [only], query
    assert "No matching findings" in seen(client.get("/ui/findings?registry=staging"))
    everything = seen(client.get("/ui/findings?state=all&muted=all"))
    assert "third muted" in everything and "fourth done" in everything


@pytest.mark.parametrize(
    "query", ["state=zz", "muted=zz", "severity=zz", "kind=zz", "offset=x", "source=zz", "rule=%00", "q=" + "a+" * 200]
)
def test_no_filter_breaks_the_list(look: Callable[[str], Client], find: Callable[..., Finding], query: str) -> None:
    find()
    assert look("reader").get(f"/ui/findings?{query}").status_code in (200, 422)


def test_long_lists_are_paged_and_take_no_more_queries(
    look: Callable[[str], Client], find: Callable[..., Finding], django_assert_num_queries: Any
) -> None:
    for number in range(60):
        find(sentence=f"number {number:02}", last_seen=timezone.now() - timedelta(minutes=number))
    client = look("reader")
    with django_assert_num_queries(QUERIES["drift: findings"]):
        first = seen(client.get("/ui/findings"))
    assert "number 49" in first and "number 50" not in first
    second = seen(client.get("/ui/findings?offset=50"))
    assert "number 50" in second and "number 49" not in second and "51–60 of 60" in second


def test_nothing_found_is_green_only_where_something_was_scanned(look: Callable[[str], Client], source: Source) -> None:
    assert "No drift" in seen(look("reader").get("/ui/findings"))
    Scan.objects.all().delete()
    text = seen(look("reader").get("/ui/findings"))
    assert "Not scanned" in text and "No drift" not in text


@pytest.mark.parametrize("name", DECIDERS)
def test_a_finding_is_acknowledged_opened_again_and_assigned(
    look: Callable[[str], Client], find: Callable[..., Finding], name: str
) -> None:
    row, client = find(), look(name)
    address = f"/ui/findings/{row.pk}"
    until = (timezone.now() + timedelta(days=3)).date().isoformat()
    assert "This field is required." in seen(client.post(f"{address}/acknowledge", {"reason": " "}, follow=True))
    assert "Write the date as 2026-12-31." in seen(
        client.post(f"{address}/acknowledge", {"reason": "x", "until": NASTY}, follow=True)
    )
    assert "is in the past" in seen(
        client.post(f"{address}/acknowledge", {"reason": "x", "until": "2001-01-01"}, follow=True)
    )
    text = seen(client.post(f"{address}/acknowledge", {"reason": "known since May", "until": until}, follow=True))
    assert "known since May" in text and until in text and "reason: known since May" in text
    assert "is acknowledged" in seen(client.post(f"{address}/acknowledge", {"reason": "x"}, follow=True))
    assert "Finding reopened." in seen(client.post(f"{address}/reopen", follow=True))
    assert "is already open" in seen(client.post(f"{address}/reopen", follow=True))
    assert "There is no account named" in seen(client.post(f"{address}/assign", {"to": NASTY}, follow=True))
    assert f"Assigned to {name}." in seen(client.post(f"{address}/assign", {"to": name}, follow=True))
    row.refresh_from_db()
    assert (row.state, row.assigned_to, row.reopened) == ("open", name, 1)


@pytest.mark.parametrize("closed", [True, False])
def test_a_break_of_a_closed_environment_is_said_to_block_after_a_decision(
    look: Callable[[str], Client], find: Callable[..., Finding], token: Callable[[str], str], closed: bool
) -> None:
    row, risk, client = find(), find(severity="risk"), look("steward")
    Environment.objects.filter(registry__name="dev").update(is_closed=closed)
    said = "dev is a closed environment: a break still fails requests afterwards"
    assert (said in seen(client.get(f"/ui/findings/{row.pk}"))) is closed
    assert said not in seen(client.get(f"/ui/findings/{risk.pk}"))
    assert (said in seen(client.get("/ui/mutes?registry=dev"))) is closed
    finding = client.get(f"/api/v1/findings/{row.pk}", headers={"authorization": f"Bearer {token('steward')}"})
    assert finding.json()["still_blocks"] is closed


def test_a_source_whose_findings_block_a_closed_environment_is_kept(
    look: Callable[[str], Client], find: Callable[..., Finding], person: Callable[[str], Actor]
) -> None:
    row, admin = find(state="acknowledged", acknowledged_reason="known"), person("admin")
    Environment.objects.filter(registry__name="dev").update(is_closed=True)
    with pytest.raises(WrongState, match="dev is a closed environment whose requests they fail"):
        remove_source(source_id=row.source_id, by=person("steward"))
    assert "Resolve them first" in seen(look("steward").post(f"/ui/sources/{row.source_id}/remove", follow=True))
    open_break_glass(environment="dev", reason="the topic is gone", minutes=5, by=admin)
    remove_source(source_id=row.source_id, by=admin)
    assert not Finding.objects.exists()


def test_who_only_reads_decides_nothing_and_reads_why(
    look: Callable[[str], Client], find: Callable[..., Finding]
) -> None:
    row, reader = find(), look("reader")
    address = f"/ui/findings/{row.pk}"
    assert "to decide on findings" in seen(reader.get(address))
    assert "to decide on findings" in seen(reader.get("/ui/findings"))
    assert 'name="finding"' not in reader.get("/ui/findings").content.decode()
    for action in ("acknowledge", "reopen", "assign"):
        assert reader.post(f"{address}/{action}", {"reason": "x", "to": ""}).status_code == 403
    assert reader.post("/ui/mutes", {"registry": "dev", "rule": "X", "reason": "x"}).status_code == 403
    text = seen(
        reader.post("/ui/findings/decide", {"finding": [row.pk], "do": "acknowledge", "reason": "x"}, follow=True)
    )
    assert "to decide" in text
    row.refresh_from_db()
    assert (row.state, Mute.objects.count()) == ("open", 0)


@pytest.mark.parametrize("address", ["/ui/findings", "/ui/findings/{row}", "/ui/mutes"])
def test_a_stranger_sees_nothing(look: Callable[[str], Client], find: Callable[..., Finding], address: str) -> None:
    path = address.format(row=find().pk)
    assert RawClient().get(path).status_code == 302
    assert look("stranger").get(path).status_code == 403


def test_many_are_decided_at_once_and_what_could_not_be_is_named(
    look: Callable[[str], Client], find: Callable[..., Finding], person: Callable[[str], Actor]
) -> None:
    rows = [find() for _ in range(4)]
    steward = look("steward")
    acknowledge(finding_id=rows[3].pk, reason="before", by=person("steward"))
    chosen = {"finding": [*(row.pk for row in rows), 99_999, "x"], "next": "/ui/findings?severity=break"}
    response = steward.post("/ui/findings/decide", {**chosen, "do": "acknowledge", "reason": "known"}, follow=True)
    assert response.redirect_chain[-1][0] == "/ui/findings?severity=break"
    text = seen(response)
    assert "3 findings acknowledged." in text and "There is no finding 99999." in text and "is acknowledged" in text
    assert set(Finding.objects.values_list("state", flat=True)) == {"acknowledged"}
    assert "5 findings assigned." not in seen(
        steward.post("/ui/findings/decide", {**chosen, "do": "assign", "to": "nobody-like-it"}, follow=True)
    )
    assert "4 findings assigned." in seen(
        steward.post("/ui/findings/decide", {**chosen, "do": "assign", "to": "steward"}, follow=True)
    )
    assert set(Finding.objects.values_list("assigned_to", flat=True)) == {"steward"}


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"do": "acknowledge", "reason": "x"}, "Select findings first."),
        ({"do": "acknowledge", "reason": "x", "finding": ",".join(map(str, range(1, 1_002)))}, "at once, not"),
    ],
)
def test_a_choice_of_none_or_too_many_is_refused(
    look: Callable[[str], Client], source: Source, form: dict[str, Any], sentence: str
) -> None:
    assert sentence in seen(look("steward").post("/ui/findings/decide", form, follow=True))


@pytest.mark.parametrize(
    "back", ["https://evil.example/ui/findings", "//evil.example", "/ui/accounts/logout/", "javascript:alert(1)"]
)
def test_a_decision_leads_back_to_findings_alone(look: Callable[[str], Client], source: Source, back: str) -> None:
    assert look("steward").post("/ui/findings/decide", {"next": back})["Location"] == "/ui/findings"


def test_a_mute_is_tried_made_and_ended(look: Callable[[str], Client], find: Callable[..., Finding]) -> None:
    first, second = find(sentence="first-of-all"), find(sentence="two", location="payments:0@1")
    find(sentence="three", state="resolved")
    steward = look("steward")
    preview = seen(steward.get("/ui/mutes?registry=dev&location=orders:*"))
    assert "Matches 1 of 2 findings, and future ones." in preview and Mute.objects.count() == 0
    form = {"registry": "dev", "location": "orders:*", "reason": f"load test {NASTY}", "until": ""}
    response = steward.post("/ui/mutes", form, follow=True)
    assert (
        "Findings muted." in seen(response) and "orders:*" in seen(response) and "<img" not in response.content.decode()
    )
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.muted, second.muted) == (True, False)
    assert "first-of-all" not in seen(steward.get("/ui/findings")).split()
    mute = Mute.objects.get()
    assert "to mute" in seen(look("reader").get("/ui/mutes"))
    assert look("reader").post(f"/ui/mutes/{mute.pk}/end").status_code == 403
    assert "Mute removed" in seen(steward.post(f"/ui/mutes/{mute.pk}/end", follow=True))
    first.refresh_from_db()
    assert first.muted is False
    assert steward.post("/ui/mutes/999/end").status_code == 404


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"reason": "x"}, "Give a rule, a subject or a location"),
        ({"rule": "X"}, "This field is required."),
        ({"rule": "*" * 30, "reason": "x"}, "at most ten"),
        ({"rule": "X", "reason": "x", "until": "soon"}, "Write the date as 2026-12-31."),
        ({"rule": "X", "reason": "x", "until": "2001-01-01"}, "is in the past"),
    ],
)
def test_a_mute_that_cannot_be_is_refused_with_the_reason(
    look: Callable[[str], Client], source: Source, form: dict[str, str], sentence: str
) -> None:
    response = look("steward").post("/ui/mutes", {"registry": "dev", **form})
    assert response.status_code == 422 and sentence in seen(response)
    assert Mute.objects.count() == 0


def test_a_finding_whose_topic_is_known_leads_to_its_mute(
    look: Callable[[str], Client], find: Callable[..., Finding], source: Source
) -> None:
    row = find(topic=Topic.objects.create(source=source, name="orders"))
    page = look("steward").get(f"/ui/findings/{row.pk}").content.decode()
    link = re.search(r'href="(/ui/mutes\?[^"]+)"', page)
    assert link
    text = seen(look("steward").get(html.unescape(link[1])))
    assert "Matches 1 of 1 findings" in text


@pytest.mark.parametrize("field", ["reason", "to", "registry", "rule", "subject", "location"])
def test_a_byte_that_no_text_of_the_database_holds_breaks_no_form(
    look: Callable[[str], Client], find: Callable[..., Finding], field: str
) -> None:
    row, steward = find(), look("steward")
    form = {"registry": "dev", "rule": "X", "reason": "x", "to": "", field: "a\0b"}
    for address in (f"/ui/findings/{row.pk}/acknowledge", f"/ui/findings/{row.pk}/assign", "/ui/mutes"):
        assert steward.post(address, form).status_code in (302, 404, 422)
    assert steward.get(f"/ui/sources?{field}=a%00b").status_code == 200
    assert steward.get(f"/ui/mutes?{field}=a%00b").status_code in (200, 404)


def test_rows_whose_times_are_not_known_are_shown_without_them() -> None:
    dated = {"partition": 0, "first_offset": 1, "last_offset": 9, "messages": 9, "first_time": 0, "last_time": 60_000}
    bare = {"partition": 1, "first_offset": 1, "last_offset": 2, "messages": 2}
    (table,) = evidence_tables("UNKNOWN_SCHEMA_ID", {"partitions": [dated, bare]})
    assert [row[-2:] for row in table.rows] == [("1970-01-01 00:00:00 UTC", "1970-01-01 00:01:00 UTC"), ("–", "–")]
    assert table.spans == ()
    (table,) = evidence_tables("UNKNOWN_SCHEMA_ID", {"partitions": [bare]})
    assert [column.label for column in table.columns] == ["Partition", "First offset", "Last offset", "Messages"]
    (table,) = evidence_tables("UNKNOWN_SCHEMA_ID", {"partitions": [dated]})
    assert table.spans == ((0, 100),)


def test_every_offset_is_shown_with_its_own_reason_and_that_of_others_is_not_known() -> None:
    rows = [{"partition": 0, "offset": 1005, "reason": "it ends early"}, {"partition": 0, "offset": 1007}]
    older_rows = [{"partition": 0, "offsets": [1005, 1007], "reason": "it ends early"}]
    for stored_rows in (rows, older_rows):
        (table,) = evidence_tables("UNDECODABLE", read_evidence("UNDECODABLE", {"offsets": stored_rows}))
        assert [column.label for column in table.columns] == ["Partition", "Offset", "Reason"]
        assert table.rows == (("0", "1005", "it ends early"), ("0", "1007", "not known"))


def test_positions_of_more_messages_than_a_finding_is_about_say_so() -> None:
    rows = [{"partition": 0, "first_offset": 1, "last_offset": 9, "messages": 9}]
    words = "also those that the finding isn’t about"
    for rule, messages, is_said in (
        ("FIELD_MISSING", 3, True),
        ("FIELD_MISSING", 9, False),
        ("UNKNOWN_SCHEMA_ID", 9, False),
    ):
        (table,) = evidence_tables(rule, {"partitions": rows, "messages": messages})
        assert (words in table.note) is is_said


def test_findings_with_one_cause_are_one_row_and_are_decided_together(
    look: Callable[[str], Client], find: Callable[..., Finding]
) -> None:
    title = "Topics without a subject in dev"
    rows = [
        find(rule="TOPIC_WITHOUT_SUBJECT", severity="notice", subject_name="", cause_group=title) for _ in range(60)
    ]
    alone, steward = find(sentence="Alone."), look("steward")
    page = steward.get("/ui/findings")
    assert f"60 findings, probably with one cause: {title}" in seen(page)
    assert page.content.decode().count('name="finding"') == 2
    (chosen,) = re.findall(r'name="finding" value="([0-9,]{9,})"', page.content.decode())
    assert sorted(map(int, chosen.split(","))) == sorted(row.pk for row in rows)
    listed = steward.get(f"/ui/findings?group={rows[7].pk}")
    assert listed.content.decode().count('name="finding"') == 50 and "Alone." not in seen(listed)
    assert steward.get("/ui/findings?group=x").status_code == 422
    decision = {"finding": chosen, "do": "acknowledge", "reason": "known", "next": "/ui/"}
    answer = steward.post("/ui/findings/decide", decision, follow=True)
    assert answer.redirect_chain[-1][0] == "/ui/" and "60 findings acknowledged." in seen(answer)
    assert Finding.objects.filter(state="acknowledged").count() == 60
    alone.refresh_from_db()
    assert alone.state == "open"


def test_home_lists_findings_with_one_cause_once(look: Callable[[str], Client], find: Callable[..., Finding]) -> None:
    for number in range(3):
        find(sentence=f"Column {number} changed.", cause_group="Changes of table public.orders")
    steward = look("steward")
    text = seen(steward.get("/ui/"))
    assert "3 findings, probably with one cause: Changes of table public.orders" in text
    assert "Acknowledge all 3" in text and "Column 1 changed." not in text.replace("Column 2 changed.", "")


def test_the_same_title_in_another_source_is_another_group(
    look: Callable[[str], Client], find: Callable[..., Finding], source: Source
) -> None:
    other = Source.objects.create(
        registry=source.registry, kind="kafka", name="other", cluster=source.cluster, created_by="steward"
    )
    mine = [find(cause_group="Changes of table public.orders") for _ in range(2)]
    find(cause_group="Changes of table public.orders")
    Finding.objects.exclude(pk__in=[row.pk for row in mine]).update(source=other)
    assert look("steward").get(f"/ui/findings?group={mine[0].pk}").content.decode().count('name="finding"') == 2


def test_findings_over_time_count_what_began_and_what_was_resolved(
    look: Callable[[str], Client], find: Callable[..., Finding]
) -> None:
    now = timezone.now()
    find(), find()
    find(state="resolved", first_seen=now - timedelta(days=90), resolved_at=now)
    response = look("reader").get("/ui/findings")
    assert "Findings over time. Last 30 days. first seen: 2, resolved: 1." in response.content.decode()
    lines = look("reader").get("/ui/findings?as=csv").content.decode().splitlines()
    day, today = ((now - timedelta(days=ago)).astimezone(UTC).date() for ago in (2, 0))
    assert lines == ["day,first seen,resolved,marks", f"{day},2,0,", f"{today},0,1,"]
    assert "over time" not in look("reader").get("/ui/findings?severity=break").content.decode()
    assert look("stranger").get("/ui/findings?as=csv").status_code == 403
