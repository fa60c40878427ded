"""The page of unapproved versions: who sees which, what can be decided, and what messages carry."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.roles import Actor
from registry.drift.models import SchemaUse, Source, Topic
from registry.drift.usage.subject_topics import last_seen
from registry.promotions.models import PromotionRequest
from registry.subjects.models import Registry, SchemaVersion, VersionStatus
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName

Look = Callable[[str], Client]
pytestmark = pytest.mark.requirement("CARD-4")


def unapproved(system: Actor, name: str = "orders-value", text: str = '"int"', context: str = ".") -> SchemaVersion:
    found = register_version(registry="staging", subject=SubjectName(context, name), text=text, by=system)
    return SchemaVersion.objects.get(
        subject__context__registry__name="staging", subject__context__name=context, subject__name=name,
        version=found.version,
    )  # fmt: skip


def page(client: Client, **query: str) -> str:
    answer = client.get("/ui/unapproved-versions", query)
    assert answer.status_code == 200
    return answer.content.decode()


def messages(
    version: SchemaVersion, *, context: str = "", framing: str = "id", mark: str = "", **subjects: list[str]
) -> Topic:
    """A topic of staging whose messages carry the version's id, or what `mark` says."""
    place = Registry.objects.get(name="staging")
    source = Source.objects.create(registry=place, kind="registry", name=f"s{Source.objects.count()}", context=context)
    topic = Topic.objects.create(source=source, name="orders", subjects=subjects)
    seen = timezone.now() - timedelta(hours=2)
    SchemaUse.objects.create(
        topic=topic, side="value", framing=framing, mark=mark or str(version.schema.schema_id), partition=0, messages=1,
        schema_id=version.schema.schema_id if framing == "id" else None, bytes=1, first_offset=0, last_offset=0,
        first_time=seen, last_time=seen,
    )  # fmt: skip
    return topic


def test_unapproved_versions_are_listed_with_who_brought_them(look: Look, registries: None, system: Actor) -> None:
    register_version(registry="dev", subject=SubjectName(".", "free-value"), text='"int"', by=system)
    unapproved(system)
    text = page(look("reader"))
    assert "orders-value" in text
    assert "free-value" not in text  # the first environment is open: nothing there needs a request
    assert "never seen" in text
    assert "version 1, Avro, id 1" in text


def test_adoption_is_asked_for_from_the_list(look: Look, registries: None, system: Actor) -> None:
    unapproved(system)
    address = "/ui/registries/staging/subjects/orders-value/adopt"
    assert f'action="{address}"' in page(look("steward"))
    look("steward").post(address, {"version": "1", "reason": "a producer was early"})
    number = PromotionRequest.objects.get(kind="adopt").pk
    text = page(look("steward"))
    assert f"request {number}" in text
    assert f'action="{address}"' not in text
    assert "orders-value" in page(look("steward"), state="asked")
    assert "No matching versions" in page(look("steward"), state="undecided")


def test_quarantine_leads_back_to_the_list(look: Look, registries: None, system: Actor) -> None:
    unapproved(system)
    given = {
        "version": "1",
        "status": "quarantined",
        "message": "unknown producer",
        "next": "/ui/unapproved-versions?q=orders",
    }
    answer = look("steward").post("/ui/registries/staging/subjects/orders-value/status", given)
    assert answer["Location"] == "/ui/unapproved-versions?q=orders"
    assert VersionStatus.objects.get().status == "quarantined"
    assert "orders-value" in page(look("steward"), state="quarantined")
    elsewhere = {**given, "next": "https://elsewhere.example/"}
    answer = look("steward").post("/ui/registries/staging/subjects/orders-value/status", elsewhere)
    assert answer["Location"].startswith("/ui/registries/staging/")


def test_who_may_not_reads_why(look: Look, registries: None, system: Actor) -> None:
    unapproved(system)
    text = page(look("reader"))
    assert "to request promotions" in text
    assert "to deprecate, retire and quarantine versions" in text
    assert '<form method="post" action="/ui/registries' not in text


def test_a_stranger_sees_none(look: Look, registries: None) -> None:
    assert look("stranger").get("/ui/unapproved-versions").status_code == 403


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({"q": "ORD val"}, True),
        ({"q": "customers"}, False),
        ({"environment": "staging"}, True),
        ({"environment": "prod"}, False),
    ],
)
def test_filters(look: Look, registries: None, system: Actor, query: dict[str, str], shown: bool) -> None:
    unapproved(system)
    assert ("orders-value" in page(look("reader"), **query)) is shown


def test_pages_follow_each_other(look: Look, registries: None, system: Actor) -> None:
    for number in range(27):
        unapproved(system, name=f"s{number:02}")
    client = look("reader")
    first = page(client)
    assert first.count('<tr id="version-') == 25
    before = first.split("before=")[1].split('"')[0]
    second = page(client, before=before)
    assert second.count('<tr id="version-') == 2
    with CaptureQueriesContext(connection) as many:
        page(client)
    with CaptureQueriesContext(connection) as few:
        page(client, before=before)
    assert len(many) == len(few) <= 25


def test_what_messages_carry_is_seen(registries: None, system: Actor, look: Look) -> None:
    version = unapproved(system)
    assert last_seen([version.pk]) == {}
    messages(version)
    assert set(last_seen([version.pk])) == {version.pk}
    assert "last seen" in page(look("reader"))


@pytest.mark.parametrize(
    ("given", "is_seen"),
    [
        ({"value": ["orders-value"]}, True),
        ({"value": ["another-value"]}, False),  # another subject with the same schema
        ({"context": ".other"}, False),  # an id of another context
        ({"framing": "guid", "context": ".other"}, True),
        ({"framing": "guid", "mark": "00000000-0000-0000-0000-000000000000"}, False),
    ],
)
def test_whose_messages_they_are(registries: None, system: Actor, given: dict[str, object], is_seen: bool) -> None:
    version = unapproved(system)
    if given.get("framing") == "guid":
        given = {"mark": str(version.schema.guid), **given}
    messages(version, **given)  # type: ignore[arg-type]
    assert bool(last_seen([version.pk])) is is_seen


@pytest.mark.parametrize("context", [".crm", "crm", ":.crm:"])
def test_a_source_may_write_its_context_in_three_ways(registries: None, system: Actor, context: str) -> None:
    version = unapproved(system, context=".crm")
    messages(version, context=context)
    assert last_seen([version.pk])


def test_the_api_filters_and_says_what_is_seen(api: Look, registries: None, system: Actor) -> None:
    messages(unapproved(system))
    client = api("reader")
    [found] = client.get("/api/v1/unapproved-versions", {"state": "undecided", "text": "orders"}).json()
    assert found["seen_at"]
    assert client.get("/api/v1/unapproved-versions", {"state": "asked"}).json() == []
    assert client.get("/api/v1/unapproved-versions", {"state": "nonsense"}).status_code == 422


def test_the_board_says_what_is_seen_in_traffic(look: Look, registries: None, system: Actor) -> None:
    first = unapproved(system)
    client = look("reader")
    assert "last seen" not in client.get("/ui/environments").content.decode()
    messages(first)
    assert "last seen" in client.get("/ui/environments").content.decode()
    unapproved(system, text='{"type": "int", "note": "newer"}')
    board = client.get("/ui/environments").content.decode()
    assert "messages use version 1" in board
    assert "last seen" not in board
