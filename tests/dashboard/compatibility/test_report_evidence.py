"""The compatibility report says what real data say, beside the rules."""

from __future__ import annotations

import html
import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from registry.access.models import User
from registry.access.roles import Actor
from registry.drift.models import Cluster, FieldStatistic, Source, Topic
from registry.subjects.services import register_version, set_config
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.markup import compact

SUBJECT = SubjectName(".", "orders-value")
ADDRESS = "/ui/registries/dev/subjects/orders-value/report"
ID = {"name": "id", "type": "string"}
FAX = {"name": "fax", "type": ["null", "string"], "default": None}
NUMBER = {"name": "fax", "type": ["null", "int"], "default": None}


def record(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": list(fields)})


@pytest.fixture
def scanned(registries: None, system: Actor) -> Topic:
    """A subject whose topic was scanned: `fax` was null in all of 2,100 messages."""
    register_version(registry="dev", subject=SUBJECT, text=record(ID, FAX), by=system)
    cluster = Cluster.objects.create(name="main", bootstrap="127.0.0.1:1", created_by="tests")
    source = Source.objects.create(
        registry=get_registry("dev"), kind="kafka", name="all", cluster=cluster, created_by="tests"
    )
    now = timezone.now()
    topic = Topic.objects.create(
        source=source, name="orders", partitions=1, messages=2100, subjects={"value": ["orders-value"]}, read_at=now,
        checked_at=now, read_from={"0": 0},
    )  # fmt: skip
    FieldStatistic.objects.create(
        topic=topic, side="value", framing="id", mark="1", path="fax", day=now.date(), messages=2100, present=2100,
        nulls=2100,
    )  # fmt: skip
    return topic


def page_for(client: Client, person: Any, name: str, **form: str) -> str:
    person(name)
    client.force_login(User.objects.get(username=name))
    sent = {"text": record(ID, NUMBER), "schema_type": "AVRO", **form}
    return html.unescape(client.post(ADDRESS, sent).content.decode())


@pytest.mark.requirement("CARD-2", "CARD-3")
def test_what_breaks_on_paper_alone_says_so(client: Client, scanned: Topic, person: Any) -> None:
    page = page_for(client, person, "steward")
    assert "Evidence from real data" in page
    assert "In theory only" in page
    assert "2,100 messages" in page
    assert 'name="replay" value="1"' in compact(page)


def test_without_scans_it_says_that_nothing_is_known(
    client: Client, registries: None, system: Actor, person: Any
) -> None:
    register_version(registry="dev", subject=SUBJECT, text=record(ID, FAX), by=system)
    assert "No scan in recent weeks has read the fields" in page_for(client, person, "steward")


def test_a_reader_sees_why_a_replay_is_not_for_them(client: Client, scanned: Topic, person: Any) -> None:
    page = page_for(client, person, "reader")
    assert 'name="replay"' not in page
    assert "You need the" in page
    refused = page_for(client, person, "reader", replay="1")
    assert "to start scans" in refused


def test_a_broker_that_is_away_spoils_nothing_else(client: Client, scanned: Topic, person: Any, settings: Any) -> None:
    settings.KAFKA_BOOTSTRAP = "127.0.0.1:1"
    page = page_for(client, person, "steward", replay="1")
    assert "127.0.0.1:1" in page
    assert "In theory only" in page
    assert "Against every version" in page


@pytest.mark.requirement("CARD-2", "CARD-3")
def test_a_comparison_says_of_each_change_what_data_say_of_it(
    client: Client, scanned: Topic, person: Any, system: Actor
) -> None:
    set_config(registry="dev", subject=SUBJECT, level="NONE", by=system)
    register_version(registry="dev", subject=SUBJECT, text=record(ID, NUMBER), by=system)
    person("reader")
    client.force_login(User.objects.get(username="reader"))
    address = ADDRESS.replace("/report", "/compare?from=1&to=2")
    response = client.get(address)
    cards = [card for group in response.context["page"].comparison.groups for card in group.cards]
    assert {(card.path, *(note.weight for note in card.evidence)) for card in cards} == {("Order.fax", "on_paper")}
    page = html.unescape(response.content.decode())
    assert "In the data:</b> Breaking in theory: Order.fax is null in all 2,100 messages" in page
    assert "In the data: Breaking in theory: Order.fax is null" in client.get(f"{address}&as=markdown").content.decode()
    FieldStatistic.objects.update(nulls=1050)
    assert "Order.fax is filled in 50 % of 2,100 messages" in html.unescape(client.get(address).content.decode())


def test_what_data_of_elsewhere_say_is_not_reported(client: Client, scanned: Topic, person: Any, system: Actor) -> None:
    set_config(registry="staging", subject=SUBJECT, level="NONE", by=system)
    register_version(registry="staging", subject=SUBJECT, text=record(ID, FAX), by=system)
    register_version(registry="dev", subject=SubjectName(".", "other"), text=record(ID, NUMBER), by=system)
    person("reader")
    client.force_login(User.objects.get(username="reader"))
    page = client.get("/ui/registries/dev/subjects/other/compare?with=orders-value&from=1&to=1").content.decode()
    assert "2,100 messages" in page  # the old side is the subject whose topic was scanned
    turned = client.get(ADDRESS.replace("/report", "/compare?with=other&from=1&to=1")).content.decode()
    assert "2,100 messages" not in turned


def test_the_changes_beside_a_report_say_what_data_say(client: Client, scanned: Topic, person: Any) -> None:
    page = page_for(client, person, "steward")
    changes = page.split('id="changes"')[1]
    assert "In the data:</b> Breaking in theory: Order.fax is null in all 2,100 messages" in changes
