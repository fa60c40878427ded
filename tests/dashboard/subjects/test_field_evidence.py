"""The structure of a version: what data say of each field, the findings beside them, and business words."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.subjects import structure
from registry.access.roles import Actor
from registry.drift.models import Cluster, FieldStatistic, Finding, Source, Topic
from registry.drift.replay.evidence import fields_seen
from registry.drift.replay.field_evidence import field_on_days, fields_in_data
from registry.drift.rules.topics import FIELD_RULES
from registry.subjects.models import Registry
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2"), pytest.mark.requirement("CARD-4")]

ORDERS = SubjectName(".", "orders-value")
PAGE = "/ui/registries/dev/subjects/orders-value/"
ITEM = {"type": "record", "name": "Item", "fields": [{"name": "price", "type": "long"}]}
MARK = {"type": "record", "name": "Mark", "fields": [{"name": "weight", "type": "long"}]}
FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "customerMail", "type": ["null", "string"], "default": None, "doc": "Where <b>bills</b> go."},
    {"name": "fax", "type": ["null", "string"], "default": None},
    {"name": "items", "type": {"type": "array", "items": ITEM}},
    {"name": "marks", "type": {"type": "map", "values": MARK}},
    {"name": "unseen", "type": "long", "default": 0},
]


@pytest.fixture
def topic(registries: None, system: Actor) -> Topic:
    """The topic of a subject with one version, which nobody scanned yet."""
    text = json.dumps({"type": "record", "name": "Order", "fields": FIELDS})
    register_version(registry="dev", subject=ORDERS, text=text, by=system)
    dev = Registry.objects.get(name="dev")
    cluster = Cluster.objects.create(name="c", bootstrap="localhost:9092", created_by="x")
    source = Source.objects.create(registry=dev, kind="kafka", name="orders", created_by="x", cluster=cluster)
    return Topic.objects.create(source=source, name="orders")


def count(topic: Topic, path: str, messages: int, present: int, nulls: int, *, age: int = 0, mark: str = "1") -> None:
    """Counts of a scan; an empty mark is JSON without a frame."""
    day = timezone.now().date() - timedelta(days=age)
    FieldStatistic.objects.create(
        topic=topic, side="value", framing="id" if mark else "", mark=mark, path=path, day=day,
        messages=messages, present=present, nulls=nulls,
    )  # fmt: skip


def find(topic: Topic, rule: str, path: str, *, subject: str = "orders-value", **more: Any) -> Finding:
    now = timezone.now()
    return Finding.objects.create(
        source=topic.source, topic=topic, fingerprint=f"{rule}{path}{len(more)}"[:64], rule=rule, severity="risk",
        sentence=f"Field {path} & more.", remedy="Ask.", location="orders", subject_name=subject,
        evidence={"field": path}, first_seen=now, last_seen=now, **more,
    )  # fmt: skip


def rows_of(client: Client, query: str = "") -> dict[str, str]:
    """Each row of the structure as text, by the field's name."""
    page = client.get(PAGE + query).content.decode()
    rows = re.findall(r'<tr id="field-\d+"[^>]*>(.*?)</tr>', page, flags=re.DOTALL)
    texts = [html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", row))).strip() for row in rows]
    return {text.split(" ")[0]: text for text in texts}


def test_each_field_says_in_how_many_messages_it_is_filled(topic: Topic, look: Callable[[str], Client]) -> None:
    count(topic, "id", 1_000, 1_000, 0)
    count(topic, "id", 500, 500, 0, mark="2")
    count(topic, "customerMail", 1_000, 1_000, 968)
    count(topic, "customerMail", 9_000, 0, 0, age=60)
    count(topic, "fax", 1_000, 1_000, 1_000)
    count(topic, "items", 900, 900, 0, age=2)
    count(topic, "items", 99, 99, 0, age=3)
    count(topic, "items", 1, 0, 0)
    count(topic, "items[].price", 1_000, 1_000, 1)
    count(topic, "marks[].weight", 7, 0, 0)
    rows = rows_of(look("reader"))
    assert "all of 1,500 messages" in rows["id"]
    assert "3.2 % of 1,000 messages" in rows["customerMail"]
    assert "none of 1,000 messages" in rows["fax"]
    assert "99.9 % of 1,000 messages" in rows["items"]
    assert "99.9 % of 1,000 messages" in rows["price"]
    assert "none of 7 messages" in rows["weight"]
    assert "not seen" in rows["unseen"]
    today, before = (f"{timezone.now().date() - timedelta(days=age):%Y-%m-%d}" for age in (0, 2))
    assert f"present 100 %, null 96.8 % · last seen {today}" in rows["customerMail"]
    assert f"present 99.9 %, null 0 % · last seen {before}" in rows["items"]
    assert "present 0 %, null 0 % · never seen" in rows["weight"]
    counts = fields_in_data(
        topic.source.registry, ORDERS, ["Order.items[].price", "Order.marks{}.weight"], [topic]
    ).fields
    assert [(row.filled, row.messages) for row in counts.values()] == [(999, 1_000), (0, 7)]


def test_json_without_a_frame_counts_for_json_schemas_alone(topic: Topic, system: Actor) -> None:
    registry = topic.source.registry
    count(topic, "id", 40, 40, 0)
    count(topic, "id", 7, 7, 0, mark="")
    (avro,) = fields_in_data(registry, ORDERS, ["Order.id"], [topic]).fields.values()
    assert (avro.filled, avro.messages) == (40, 40)
    assert [each.messages for each in fields_seen(registry, ORDERS)] == [40]
    assert [each.messages for each in field_on_days(registry, ORDERS, "Order.id")] == [40]
    text = '{"type": "object", "properties": {"id": {"type": "integer"}}}'
    clicks = SubjectName(".", "clicks-value")
    register_version(registry="dev", subject=clicks, text=text, schema_type="JSON", by=system)
    count(Topic.objects.create(source=topic.source, name="clicks"), "id", 7, 7, 0, mark="")
    assert [each.messages for each in fields_seen(registry, clicks)] == [7]


def test_without_a_scan_the_page_says_that_nothing_is_known(
    topic: Topic, look: Callable[[str], Client], system: Actor
) -> None:
    text = json.dumps({"type": "record", "name": "Other", "fields": FIELDS[:1]})
    register_version(registry="dev", subject=SubjectName(".", "spare"), text=text, by=system)
    client = look("reader")
    for address in ("/ui/registries/dev/subjects/spare/", PAGE):
        page = client.get(address).content.decode()
        assert "No scan has read data of this subject yet" in page
        assert "not seen" not in page
    count(topic, "other", 5, 5, 0)
    page = client.get(PAGE).content.decode()
    assert "No scan has read data of this subject yet" not in page
    assert page.count("not seen") == len(FIELDS) + 2


def test_open_findings_are_beside_their_field(topic: Topic, look: Callable[[str], Client]) -> None:
    beside = find(topic, "NULL_SHARE_INCREASED", "customerMail")
    find(topic, "FIELD_MISSING", "items[].price")
    undeclared = find(topic, "FIELD_UNDECLARED", "loyalty.<i>tier")
    find(topic, "FIELD_TYPE_WRONG", "id", state="resolved")
    find(topic, "FIELD_TYPE_NEW", "id", muted=True)
    find(topic, "FIELD_TYPE_NEW", "fax", subject="other-value")
    client = look("reader")
    rows, page = rows_of(client), client.get(PAGE).content.decode()
    assert "filled less often" in rows["customerMail"]
    assert f'href="/ui/findings/{beside.pk}"' in page
    assert "required but missing" in rows["price"]
    assert "kind" not in rows["id"] + rows["fax"]
    below = page.partition("Seen in data but not in this version")[2]
    assert "loyalty.&lt;i&gt;tier" in below
    assert f'href="/ui/findings/{undeclared.pk}"' in below
    assert below.count("not declared") == 1


def test_a_finding_of_another_part_of_a_large_schema_is_not_undeclared(
    topic: Topic, look: Callable[[str], Client], system: Actor
) -> None:
    fields = [{"name": f"f{number}", "type": "long", "default": 0} for number in range(250)]
    text = json.dumps({"type": "record", "name": "Order", "fields": fields})
    register_version(registry="dev", subject=ORDERS, text=text, by=system, force=True)
    find(topic, "NULL_SHARE_INCREASED", "f240")
    client = look("reader")
    assert "Seen in data but not in this version" not in client.get(PAGE).content.decode()
    assert "filled less often" in rows_of(client, "?fields=200")["f240"]


def test_as_many_queries_for_many_fields_as_for_few(topic: Topic, look: Callable[[str], Client], system: Actor) -> None:
    client = look("reader")

    def queries() -> int:
        client.get(PAGE)
        with CaptureQueriesContext(connection) as executed:
            assert client.get(PAGE).status_code == 200
        return len(executed)

    count(topic, "id", 10, 10, 0)
    few = queries()
    fields = [{"name": f"f{number}", "type": "long", "default": 0} for number in range(300)]
    text = json.dumps({"type": "record", "name": "Order", "fields": fields})
    register_version(registry="dev", subject=ORDERS, text=text, by=system, force=True)
    for number in range(60):
        count(topic, f"f{number}", 10, 10, number % 3)
        find(topic, "NULL_SHARE_INCREASED", f"f{number}")
    assert queries() == few


def test_the_structure_in_business_words(topic: Topic, look: Callable[[str], Client]) -> None:
    client = look("reader")
    page = client.get(PAGE)
    url = page.context["page"].selected.structure.words_url
    assert "words=business" in url
    response = client.get(url)
    texts = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", response.content.decode())))
    assert "Order customer mail Order.customerMail Where <b>bills</b> go." in texts
    assert response.context["page"].selected.structure.words_url == url.replace("&words=business", "")
    assert "no description" in texts


def test_every_word_is_of_a_rule_about_fields() -> None:
    assert set(structure.WORDS) == {rule.id for rule in FIELD_RULES}
