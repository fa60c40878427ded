"""What stands beside the changes of a decision: what data say, a replay, what is beside the schema, what is skipped."""

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

from dashboard.compare import change_cards
from dashboard.components.badges import Verdict
from registry import hooks
from registry.access.roles import Actor
from registry.drift.models import Cluster, FieldStatistic, Finding, Source, Topic
from registry.drift.replay import evidence as data_evidence
from registry.drift.replay import schema_replay
from registry.drift.replay.schema_replay import Failure, ReplayReport, WriterReplay, topics_of
from registry.formats.base import Reference
from registry.promotions import services
from registry.subjects.services import set_config
from registry.subjects.usage.evidence import Evidence, EvidenceProvider
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.markup import compact
from tests.promotions.factories import CUSTOMERS, ORDERS, V1, V2, Cast, ask, register

pytestmark = pytest.mark.requirement("CARD-2", "CARD-3")
QUERIES = json.loads((Path(__file__).parents[1] / "query_counts.json").read_text())
HOSTILE = '<img src=x onerror="alert(1)">'
COMPARE = "/ui/registries/dev/subjects/orders-value/compare"
#: note is a string there, so that it can't be read where it was null
FILLED = {**V1, "fields": [*V1["fields"], {"name": "note", "type": "string"}]}
Browser = Callable[[str], Client]


@pytest.fixture
def cast(person: Callable[[str], Actor]) -> Cast:
    """Everybody who takes part, by name."""
    return {name: person(name) for name in ("reader", "steward", "approver", "admin", "stranger")}


def cards_of(response: Any) -> list[Any]:
    """The cards of the comparison of a page."""
    page = response.context["page"]
    comparison = page.changes.comparison if hasattr(page, "changes") else page.comparison
    return [card for group in comparison.groups for card in group.cards]


def said(response: Any) -> str:
    """A page as text with its markup."""
    return html.unescape(response.content.decode())


def topic_of(registry: str) -> Topic:
    """A topic of orders whose last scan read 3,000 messages: `note` was null in 96 of them."""
    cluster = Cluster.objects.create(name="main", bootstrap="127.0.0.1:1", created_by="tests")
    source = Source.objects.create(
        registry=get_registry(registry), kind="kafka", name="all", cluster=cluster, created_by="tests"
    )
    now = timezone.now()
    topic = Topic.objects.create(
        source=source, name="orders", partitions=1, messages=3_000, subjects={"value": ["orders-value"]}, read_at=now,
        checked_at=now, read_from={"0": 0},
    )  # fmt: skip
    seen(topic, "note", present=3_000, nulls=96)
    return topic


def seen(topic: Topic, path: str, *, present: int, nulls: int = 0, **more: Any) -> None:
    FieldStatistic.objects.create(
        topic=topic, side="value", framing="id", mark="1", path=path, day=timezone.now().date(), messages=3_000,
        present=present, nulls=nulls, **more,
    )  # fmt: skip


# --- a request -----------------------------------------------------------------------------------------------------


@pytest.fixture
def risky(cast: Cast) -> int:
    """A request that brings to staging a `note` that may not be null any more."""
    for registry in ("dev", "staging"):
        set_config(registry=registry, subject=ORDERS, level="NONE", by=cast["steward"])
        register(V2, cast["steward"], registry=registry)
    register(FILLED, cast["steward"])
    return ask(cast, version=2, target="staging")


def test_the_cards_of_a_request_say_what_the_targets_data_say(look: Browser, cast: Cast, risky: int) -> None:
    topic = topic_of("staging")
    response = look("approver").get(f"/ui/promotions/{risky}")
    notes = {note.sentence for card in cards_of(response) for note in card.evidence}
    assert any("Order.note is null in 3.2 % of 3,000 messages" in note for note in notes)
    assert "In the data:" in said(response)
    topic.source.delete()
    topic.delete()
    assert not any(card.evidence for card in cards_of(look("approver").get(f"/ui/promotions/{risky}")))


def test_a_replay_of_a_request_shows_what_the_messages_read_as(
    look: Browser, cast: Cast, risky: int, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    topic_of("staging")
    arguments: dict[str, Any] = {}

    def replay(registry: Any, subject: SubjectName, **options: Any) -> ReplayReport:
        arguments.update(options, place=registry.name, subject=subject.qualified)
        failure = Failure(0, 7, f"note: {HOSTILE}")
        writer = WriterReplay("id", "1", (1,), 300, 290, 10, 0, (failure,), (), {})
        return ReplayReport("orders", "main", "value", 300, 300, 300, 290, 10, 0, 0, 0, 0, 0, 0, 1.5, (), (writer,))

    monkeypatch.setattr(data_evidence, "replay_proposal", replay)
    client = look("steward")
    page = client.get(f"/ui/promotions/{risky}")
    button = page.context["page"].replay
    assert button.allowed and button.method == "post"
    assert "Replay check" in said(page)
    with django_assert_max_num_queries(QUERIES["request: replay"]):
        response = client.post(button.url)
    assert (arguments["place"], arguments["subject"], json.loads(arguments["text"])) == (
        "staging",
        "orders-value",
        FILLED,
    )
    assert arguments["by"].name == "steward"
    assert response.status_code == 200
    assert "3.3 % of the last 300 messages of orders would fail" in said(response)
    assert "partition 0, offset 7" in said(response)
    assert HOSTILE not in response.content.decode()
    assert f"/ui/promotions/{risky}?item=orders-value" in response.content.decode()


def test_of_several_topics_one_is_chosen_and_remembered(
    look: Browser, cast: Cast, risky: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics: list[str] = []

    def replay(*_: Any, topic: str, **__: Any) -> ReplayReport:
        topics.append(topic)
        return ReplayReport(topic, "main", "value", 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1.5, (), ())

    first = topic_of("staging")
    client, address = look("steward"), f"/ui/promotions/{risky}"
    assert client.get(address).context["page"].replay_topics == ()
    other = Cluster.objects.create(name="other", bootstrap="127.0.0.1:1", created_by="tests")
    away = Source.objects.create(
        registry=get_registry("staging"), kind="kafka", name="other", cluster=other, created_by="tests"
    )
    for source, name in ((first.source, "orders-old"), (away, "orders-old")):
        Topic.objects.create(source=source, name=name, partitions=1, subjects={"value": ["orders-value"]})
    monkeypatch.setattr(data_evidence, "replay_proposal", replay)
    page = client.get(address)
    names = [choice.value for choice in page.context["page"].replay_topics]
    assert names == ["orders", "orders-old of main", "orders-old of other"]
    candidates = [schema_replay.topic_of(ORDERS, name, topics_of(get_registry("staging"), ORDERS)) for name in names]
    assert [(item.topic, item.cluster) for item in candidates] == [
        ("orders", "main"),
        ("orders-old", "main"),
        ("orders-old", "other"),
    ]
    assert re.search(r'<select[^>]*name="topic".*?<option value="orders">', compact(page.content.decode()))
    response = client.post(page.context["page"].replay.url, {"topic": "orders-old of other"})
    assert (response.status_code, topics) == (200, ["orders-old of other"])
    for again in (response, client.get(address)):
        assert '<option value="orders-old of other" selected>' in compact(again.content.decode())
    assert '<option value="orders-old of other" selected>' not in compact(look("admin").get(address).content.decode())


def test_a_replay_asks_the_right_and_says_what_is_in_its_way(look: Browser, cast: Cast, risky: int) -> None:
    address = f"/ui/promotions/{risky}/replay"
    assert look("steward").get(address).status_code == 405
    assert look("stranger").post(address).status_code in (403, 404)
    assert look("steward").post("/ui/promotions/999/replay").status_code == 404
    button = look("approver").get(f"/ui/promotions/{risky}").context["page"].replay
    assert not button.allowed and "start scans" in button.reason
    assert look("approver").post(address).status_code == 403
    response = look("steward").post(f"{address}?item={HOSTILE}")
    assert response.status_code == 422
    assert "No topic is known to carry orders-value" in said(response)
    services.withdraw(request_id=risky, by=cast["steward"])
    assert look("steward").get(f"/ui/promotions/{risky}").context["page"].replay is None


def test_the_summary_says_how_old_the_evidence_is(look: Browser, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    seen_at = timezone.now() - timedelta(hours=3, minutes=2)
    monkeypatch.setitem(
        hooks.version_evidence.hooks,
        "topic scans",
        EvidenceProvider("data", lambda *_: {1: [Evidence("data", "yes", "It is.", as_of=seen_at)]}),
    )
    register(V1, cast["steward"])
    register(V2, cast["steward"])
    register(V1, cast["steward"], registry="staging")
    number = ask(cast, version=2, target="staging")
    facts = {fact.label: fact.value for fact in look("reader").get(f"/ui/promotions/{number}").context["page"].facts}
    time = f"{seen_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    assert facts["Evidence from data"] == f"can read the data in use, seen 3\xa0hours ago ({time})"


# --- beside the schema ---------------------------------------------------------------------------------------------


def rule(name: str, **more: str) -> dict[str, Any]:
    """A rule of a rule set."""
    return {"name": name, "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "true", **more}


def test_two_versions_that_differ_beside_the_schema_alone_say_in_what(look: Browser, cast: Cast) -> None:
    before = {
        "metadata": {"properties": {"owner": "sales", "gone": "x"}, "tags": {"Order.id": ["key"]}},
        "rule_set": {"domainRules": [rule("first"), rule("second"), rule("lost")]},
    }
    after = {
        "metadata": {"properties": {"owner": HOSTILE, "new": "y"}, "tags": {"Order.id": ["key"]}},
        "rule_set": {"domainRules": [rule("second"), rule("first", expr="false")]},
    }
    register(V1, cast["steward"], **before)
    register(V1, cast["steward"], **after)
    response = look("reader").get(f"{COMPARE}?from=1&to=2")
    comparison = response.context["page"].comparison
    assert [(item.part, item.name, item.kind.code) for item in comparison.extras] == [
        ("Metadata", "properties.gone", "removed"),
        ("Metadata", "properties.owner", "changed"),
        ("Metadata", "properties.new", "added"),
        ("Rules", "domainRules.first", "changed"),
        ("Rules", "domainRules.lost", "removed"),
        ("Rules", "order of domainRules", "changed"),
    ]
    assert "6 changes outside the schema." in said(response)
    assert "Same schema, other differences" in said(response)
    assert "Outside the schema" in said(response)
    assert HOSTILE not in response.content.decode()
    markdown = look("reader").get(f"{COMPARE}?from=1&to=2&as=markdown").content.decode()
    assert "- Metadata `properties.gone`: `x` → missing" in markdown
    same = look("reader").get(f"{COMPARE}?from=1&to=1").context["page"].comparison
    assert same.extras == () and same.headline == "Same meaning"


def test_references_that_lead_elsewhere_are_reported(look: Browser, cast: Cast) -> None:
    names = {"type": "record", "name": "Customer", "fields": [{"name": "id", "type": "long"}]}
    more = {**names, "fields": [*names["fields"], {"name": "vip", "type": "boolean", "default": False}]}
    for schema in (names, more):
        register(schema, cast["steward"], subject=CUSTOMERS)
    order = {**V1, "fields": [{"name": "by", "type": "Customer"}]}
    for version in (1, 2):
        register(order, cast["steward"], references=[Reference("Customer", "customers-value", version)])
    comparison = look("reader").get(f"{COMPARE}?from=1&to=2").context["page"].comparison
    assert [(item.part, item.name, item.before, item.after) for item in comparison.extras] == [
        ("Reference", "Customer", "customers-value version 1", "customers-value version 2")
    ]


def test_a_request_tells_references_by_the_numbers_of_its_target(look: Browser, cast: Cast) -> None:
    names = {"type": "record", "name": "Customer", "fields": [{"name": "id", "type": "long"}]}
    register({**names, "doc": "an older one"}, cast["steward"], subject=CUSTOMERS)
    register(names, cast["steward"], subject=CUSTOMERS)
    register(names, cast["steward"], registry="staging", subject=CUSTOMERS)
    order = {**V1, "fields": [{"name": "by", "type": "Customer"}]}
    for registry, number in (("dev", 2), ("staging", 1)):
        reference = [Reference("Customer", "customers-value", number)]
        register(order, cast["steward"], registry=registry, references=reference)
    register({**order, "doc": "d"}, cast["steward"], references=[Reference("Customer", "customers-value", 2)])
    number = ask(cast, version=2, target="staging")
    comparison = look("reader").get(f"/ui/promotions/{number}").context["page"].changes.comparison
    assert comparison.extras == ()


# --- what is skipped -----------------------------------------------------------------------------------------------


def grown(count: int) -> dict[str, Any]:
    """A schema with so many more fields, which any version may follow."""
    added = [{"name": f"f{number}", "type": "long", "default": 0} for number in range(count)]
    return {**V1, "fields": [*V1["fields"], *added]}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("from=staging:1&to=5", "Promoting dev 5 over staging 1 skips versions 3, 4."),
        ("from=staging:1&to=4", "Promoting dev 4 over staging 1 skips version 3."),
        ("from=staging:1&to=3", ""),
        ("from=5&to=staging:1", ""),
        ("from=1&to=5", "It skips versions 2, 3, 4."),
        ("from=2&to=4", "It skips version 3."),
        ("from=4&to=2", ""),
        ("from=4&to=5", ""),
    ],
)
def test_a_comparison_names_the_versions_that_it_skips(look: Browser, cast: Cast, query: str, expected: str) -> None:
    for number in range(5):
        register(grown(number), cast["steward"])
    register(grown(1), cast["steward"], registry="staging")
    sentence = look("reader").get(f"{COMPARE}?{query}").context["page"].comparison.sentence
    assert sentence.endswith(expected) if expected else "skip" not in sentence


def test_a_request_names_the_versions_that_it_skips(look: Browser, cast: Cast) -> None:
    for number in range(3):
        register(grown(number), cast["steward"])
    register(grown(0), cast["steward"], registry="staging")
    number = ask(cast, version=3, target="staging")
    assert "Promoting dev 3 over staging 1 skips version 2." in said(look("reader").get(f"/ui/promotions/{number}"))


# --- a finding -----------------------------------------------------------------------------------------------------


def finding(topic: Topic, **more: Any) -> Finding:
    """Messages have a field that no version declares."""
    now = datetime.now(tz=UTC)
    return Finding.objects.create(
        source=topic.source, topic=topic, rule="FIELD_UNDECLARED", severity="risk", fingerprint="f" * 64,
        sentence="Field tip appears in all messages.", remedy="Declare it.", location="orders", first_seen=now,
        last_seen=now, subject_name="orders-value",
        evidence={"field": "tip", "side": "value", "framing": "id", "mark": "1"}, **more,
    )  # fmt: skip


def test_a_finding_compares_what_the_data_hold_with_what_is_declared(look: Browser, cast: Cast) -> None:
    register(V1, cast["steward"])
    topic = topic_of("dev")
    FieldStatistic.objects.all().delete()
    seen(topic, "id", present=3_000, kinds={"long": 3_000})
    seen(topic, "tip", present=3_000, kinds={"string": 3_000})
    row = finding(topic)
    response = look("reader").get(f"/ui/findings/{row.pk}")
    comparison = response.context["page"].observed
    assert [card.path for group in comparison.groups for card in group.cards] == ["Order.tip"]
    assert "Observed data compared with" in said(response)
    FieldStatistic.objects.all().delete()
    page = look("reader").get(f"/ui/findings/{row.pk}")
    assert page.context["page"].observed is None
    assert "The fields of these messages are no longer stored." in said(page)


def test_a_finding_of_something_else_compares_nothing(look: Browser, cast: Cast) -> None:
    register(V1, cast["steward"])
    row = finding(topic_of("dev"))
    Finding.objects.update(rule="NULL_SHARE_INCREASED")
    page = look("reader").get(f"/ui/findings/{row.pk}").context["page"]
    assert (page.observed, page.observed_note) == (None, "")


def test_what_is_weighed_once_counts_for_its_level_alone(
    cast: Cast, look: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The places of a comparison are kept with it; another level asks for other directions."""
    made, real = [], change_cards.places_of
    monkeypatch.setattr(change_cards, "places_of", lambda *arguments: made.append(1) or real(*arguments))
    set_config(registry="dev", subject=ORDERS, level="NONE", by=cast["steward"])
    for schema in (V1, FILLED):
        register(schema, cast["steward"])
    verdicts = []
    for level in ("BACKWARD", "FORWARD", "BACKWARD"):
        set_config(registry="dev", subject=ORDERS, level=level, by=cast["steward"])
        cards = cards_of(look("reader").get(f"{COMPARE}?from=1&to=2"))
        verdicts.append([(card.verdict, card.new_reads_old, card.old_reads_new) for card in cards])
    breaks, safe = Verdict.BREAKS, Verdict.OK
    assert verdicts[0] == verdicts[2] == [(breaks, breaks, safe)]
    assert verdicts[1] == [(Verdict.CARE, breaks, safe)]
    assert len(made) == 2, "once for each level"


def test_a_proof_says_what_the_same_number_means_on_either_side(cast: Cast, look: Browser) -> None:
    for unit in ("millis", "micros"):
        field = {"name": "at", "type": {"type": "long", "logicalType": f"timestamp-{unit}"}}
        register({**V1, "fields": [field]}, cast["steward"])
    page = html.unescape(look("reader").get(COMPARE, {"from": "1", "to": "2"}).content.decode())
    means = "2023-11-14T22:13:20+00:00 (timestamp-millis) is read as 1970-01-20T16:13:20+00:00 (timestamp-micros)"
    assert means in page
    assert "Deploy in any order, but values change" in page
