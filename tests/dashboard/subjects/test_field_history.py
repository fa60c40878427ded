"""The biography of a field: what each version did to it, what data say, and the same name elsewhere."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from playwright.sync_api import Page, expect

from registry.access.models import RoleGrant, User
from registry.access.roles import Actor
from registry.drift.models import Cluster, FieldStatistic, Source, Topic
from registry.errors import SubjectNotFound
from registry.search.services import index_stale
from registry.subjects.history import field_history as module
from registry.subjects.history.field_history import FieldHistory, field_history
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.services import delete_version, register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import RawClient

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2"), pytest.mark.requirement("CARD-4")]

QUERIES = json.loads((Path(__file__).parents[1] / "query_counts.json").read_text())
ORDERS = SubjectName(".", "orders-value")
Field = dict[str, Any]
ID: Field = {"name": "id", "type": "long"}


@pytest.fixture
def dev(registries: None) -> Registry:
    return Registry.objects.get(name="dev")


@pytest.fixture
def add(registries: None, system: Actor) -> Callable[..., None]:
    """Registers versions of a subject, each as its fields."""

    def make(*versions: list[Field], subject: SubjectName = ORDERS) -> None:
        for fields in versions:
            text = json.dumps({"type": "record", "name": "Order", "fields": fields})
            register_version(registry="dev", subject=subject, text=text, by=system, force=True)

    return make


LIFE: list[list[Field]] = [
    [ID],
    [ID, {"name": "mail", "type": "string"}],
    [ID, {"name": "mail", "type": ["null", "string"], "default": None}],
    [ID, {"name": "mail", "type": ["null", "string"], "default": None, "doc": "Where <b>bills</b> go."}],
    [ID, {"name": "mail", "type": ["null", "string"], "default": None, "doc": "Where bills go.", "confluent:tags": ["PII"]}],
    [ID, {"name": "other", "type": "long"}],
    [ID, {"name": "mail", "type": "string", "aliases": ["post"]}],
]  # fmt: skip


def told(history: FieldHistory) -> list[tuple[int, str, str]]:
    """(version, kind, sentence) of every change."""
    return [(item.version, change.kind, change.sentence) for item in history.chapters for change in item.changes]


def page_of(path: str, subject: str = "orders-value", registry: str = "dev") -> tuple[str, dict[str, str]]:
    return "/ui/fields", {"registry": registry, "subject": subject, "path": path}


def text_of(response: Any) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", response.content.decode())))


def test_every_version_that_did_something_is_reported_in_order(add: Callable[..., None], dev: Registry) -> None:
    add(*LIFE)
    history = field_history(dev, ORDERS, "Order.mail")
    assert told(history) == [
        (2, "introduced", "It was added: type string, required."),
        (3, "changed", "Its type changed from string to string?."),
        (3, "changed", "It changed from required to the default null."),
        (4, "changed", "Its description was added: “Where <b>bills</b> go.”"),
        (5, "changed", "Its description changed from “Where <b>bills</b> go.” to “Where bills go.”"),
        (5, "changed", "The tag PII was added."),
        (6, "removed", "It was removed."),
        (7, "returned", "It was added again: type string, required, also known as post."),
    ]
    assert (history.newest, history.looked_at, history.versions) == (7, 7, 7)
    assert history.field is not None
    assert history.field.type == "string"
    assert [item.by for item in history.chapters] == ["tests"] * 6


def test_a_field_that_never_changed_has_one_chapter(add: Callable[..., None], dev: Registry) -> None:
    add(*LIFE)
    assert told(field_history(dev, ORDERS, "Order.id")) == [(1, "introduced", "It was added: type long, required.")]


def test_a_rename_with_an_alias_leads_to_the_old_name(
    add: Callable[..., None], dev: Registry, look: Callable[[str], Client]
) -> None:
    add([ID, {"name": "post", "type": "string"}], [ID, {"name": "mail", "type": "string", "aliases": ["post"]}])
    history = field_history(dev, ORDERS, "Order.mail")
    (change,) = history.chapters[0].changes
    assert (change.kind, change.renamed_from) == ("introduced", "Order.post")
    assert change.sentence.startswith("It was renamed from Order.post")
    page = look("reader").get(*page_of("Order.mail")).content.decode()
    assert "path=Order.post" in page


@pytest.mark.parametrize(
    ("schema_type", "old", "new", "path", "sentence"),
    [
        ("JSON", '{"type":"object","properties":{"a":{"type":"string"}}}', '{"type":"object","properties":{"a":{"type":"integer"}}}', "$.a", "Its type changed from string to integer."),
        ("PROTOBUF", 'syntax = "proto3"; message Order { int32 a = 1; }', 'syntax = "proto3"; message Order { int64 a = 1; }', "Order.a", "Its type changed from int32 = 1 to int64 = 1."),
    ],
)  # fmt: skip
def test_other_formats_have_lives_too(
    registries: None, dev: Registry, system: Actor, schema_type: str, old: str, new: str, path: str, sentence: str
) -> None:
    for text in (old, new):
        register_version(registry="dev", subject=ORDERS, text=text, schema_type=schema_type, by=system, force=True)
    history = field_history(dev, ORDERS, path)
    assert sentence in [text for _, _, text in told(history)], (told(history), history.nearest)


def test_soft_deleted_versions_are_marked(
    add: Callable[..., None], dev: Registry, system: Actor, look: Callable[[str], Client]
) -> None:
    add(*LIFE[:3])
    delete_version(registry="dev", subject=ORDERS, version=2, by=system)
    history = field_history(dev, ORDERS, "Order.mail")
    assert [item.deleted for item in history.chapters] == [True, False]
    assert "soft-deleted" in text_of(look("reader").get(*page_of("Order.mail")))


def test_old_versions_are_left_out_and_nothing_is_made_up_about_them(
    add: Callable[..., None], dev: Registry, look: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    add(*LIFE)
    monkeypatch.setattr(module, "MAX_VERSIONS", 4)
    history = field_history(dev, ORDERS, "Order.mail")
    assert told(history)[0][:2] == (4, "there")
    assert (history.looked_at, history.versions) == (4, 7)
    text = text_of(look("reader").get(*page_of("Order.mail")))
    assert "Already in version 4" in text
    assert "3 older versions were not checked." in text
    assert field_history(dev, ORDERS, "Order.mail", seconds=0).looked_at == 1


def test_a_version_that_cannot_be_read_says_so_and_the_rest_is_reported(
    add: Callable[..., None], dev: Registry, look: Callable[[str], Client]
) -> None:
    add(*LIFE[:4])
    row = SchemaVersion.objects.get(version=3, subject__name="orders-value").schema
    type(row).objects.filter(pk=row.pk).update(canonical="{", identity="x" * 64)
    history = field_history(dev, ORDERS, "Order.mail")
    assert [version for version, _ in history.unread] == [3]
    assert [item.version for item in history.chapters] == [2, 4]
    assert "Version 3 can’t be read" in text_of(look("reader").get(*page_of("Order.mail")))


def test_a_field_that_never_was_is_said_with_what_is_near(
    add: Callable[..., None], look: Callable[[str], Client]
) -> None:
    add(*LIFE[:2])
    response = look("reader").get(*page_of("Order.mial"))
    assert response.status_code == 404
    assert "has a field Order.mial" in text_of(response)
    assert "path=Order.mail" in response.content.decode()
    assert look("reader").get(*page_of("x\0" * 5000)).status_code == 404


@pytest.mark.parametrize("missing", ["path", "registry"])
def test_all_three_have_to_be_named(add: Callable[..., None], look: Callable[[str], Client], missing: str) -> None:
    add(LIFE[0])
    address, query = page_of("Order.id")
    response = look("reader").get(address, {**query, missing: ""})
    assert response.status_code == 422
    assert "/ui/fields?registry=" in text_of(response)


def test_a_subject_that_is_not_there(dev: Registry, look: Callable[[str], Client]) -> None:
    assert look("reader").get(*page_of("a", "absent")).status_code == 404
    with pytest.raises(SubjectNotFound):
        field_history(dev, SubjectName(".", "absent"), "a")


def test_each_field_of_the_structure_leads_to_its_life(add: Callable[..., None], look: Callable[[str], Client]) -> None:
    add(*LIFE[:2])
    client = look("reader")
    page = client.get("/ui/registries/dev/subjects/orders-value/").content.decode()
    links = [html.unescape(link) for link in re.findall(r'href="(/ui/fields[^"]*)"', page)]
    assert len(links) == 2
    for link in links:
        assert client.get(link).status_code == 200


def test_what_data_say_of_it_is_reported_by_day(
    add: Callable[..., None], dev: Registry, look: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    add(*LIFE[:3])
    assert "No scan in the last 30 days" in text_of(look("reader").get(*page_of("Order.mail")))
    cluster = Cluster.objects.create(name="c", bootstrap="localhost:9092", created_by="x")
    source = Source.objects.create(registry=dev, kind="kafka", name="orders", created_by="x", cluster=cluster)
    topic = Topic.objects.create(source=source, name="orders")
    monkeypatch.setattr(
        "registry.drift.replay.field_evidence.topics_of", lambda *_: [type("Coverage", (), {"topic_id": topic.pk})]
    )
    today = timezone.now().date()
    for path, day, messages, present, nulls in (
        ("mail", today, 100, 90, 30),
        ("mail", today - timedelta(days=1), 100, 100, 0),
        ("email", today, 7, 7, 7),
        ("mail", today - timedelta(days=90), 1000, 0, 0),
    ):
        FieldStatistic.objects.create(
            topic=topic,
            side="value",
            framing="confluent",
            path=path,
            day=day,
            messages=messages,
            present=present,
            nulls=nulls,
        )
    text = text_of(look("reader").get(*page_of("Order.mail")))
    assert "Scans in the last 30 days read 200 messages: this field is null in 15.0 % and missing in 5.0 %." in text
    assert f"{today:%Y-%m-%d} 100 30.0 % 10.0 %" in text
    line = look("reader").get(*page_of("Order.mail")).context["page"].sparkline
    assert line.drawn == "1.0,22.0 99.0,14.0"
    assert line.text.endswith("0 % on the first day, 40.0 % on the last day, minimum 0 %, maximum 40.0 %.")
    assert line.text in text
    FieldStatistic.objects.filter(day=today).delete()
    assert look("reader").get(*page_of("Order.mail")).context["page"].sparkline is None, "one day is no line"


def test_the_same_name_with_another_type_elsewhere(
    add: Callable[..., None], look: Callable[[str], Client], person: Callable[[str], Actor]
) -> None:
    add([ID])
    add([{"name": "id", "type": "string"}], subject=SubjectName(".", "users-value"))
    add([{"name": "id", "type": "long"}], subject=SubjectName(".", "same-value"))
    add([{"name": "id", "type": "int"}], subject=SubjectName(".", "<b>secret"))
    index_stale()
    text = text_of(look("reader").get(*page_of("Order.id")))
    assert "Type here: long. 2 fields with the same name elsewhere have another type." in text
    assert "users-value (dev), in Order" in text
    assert "same-value" not in text
    client = look("stranger")
    RoleGrant.objects.create(user=User.objects.get(username="stranger"), role="reader", subject_pattern="*s-value")
    text = text_of(client.get(*page_of("Order.id")))
    assert "1 field with the same name elsewhere has another type." in text
    assert "secret" not in text


@pytest.mark.requirement("CARD-4")
def test_a_stranger_sees_nothing(add: Callable[..., None], look: Callable[[str], Client]) -> None:
    add(*LIFE)
    address, query = page_of("Order.mail")
    assert look("stranger").get(address, query).status_code == 403
    assert look("stranger").get(*page_of("Order.mail", "absent")).status_code == 403
    assert RawClient().get(address, query).status_code == 302


def test_hostile_names_and_texts_are_shown_harmlessly(
    registries: None, system: Actor, look: Callable[[str], Client]
) -> None:
    nasty, subject = "<script>alert(1)</script>\u202e", SubjectName(".", "a/b%2F<i>")
    for kind in ("string", "integer"):
        schema = {
            "type": "object",
            "properties": {
                nasty: {"type": kind, "description": nasty + kind, "default": nasty if kind == "string" else 1}
            },
        }
        register_version(registry="dev", subject=subject, text=json.dumps(schema), schema_type="JSON", by=system, force=True)  # fmt: skip
    client = look("reader")
    listed = client.get("/ui/registries/dev/subjects/a%2Fb%252F%3Ci%3E/").content.decode()
    (link,) = set(re.findall(r'href="(/ui/fields[^"]*)"', listed))
    response = client.get(html.unescape(link))
    assert response.status_code == 200
    assert "<script>alert" not in response.content.decode()
    assert "Its type changed from string to integer." in text_of(response)


def test_as_many_queries_for_many_versions_as_for_few(add: Callable[..., None], look: Callable[[str], Client]) -> None:
    client = look("reader")

    def count() -> int:
        client.get(*page_of("Order.mail"))
        with CaptureQueriesContext(connection) as queries:
            assert client.get(*page_of("Order.mail")).status_code == 200
        return len(queries)

    add(*LIFE[:3])
    few = count()
    for number in range(27):
        add([ID, {"name": "mail", "type": "string", "doc": str(number)}])
    assert count() == few <= QUERIES["field"]


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_from_the_structure_to_a_life_by_keyboard(
    add: Callable[..., None], window: Callable[..., Page], width: int
) -> None:
    add(*LIFE)
    page = window(viewport={"width": width, "height": 900})
    page.goto("/ui/registries/dev/subjects/orders-value/")
    page.get_by_role("link", name="mail", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    expect(page.get_by_text("Its type changed from string to string?.")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
