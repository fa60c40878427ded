"""What was done shortly before a finding began, from the audit: told as suspicions, and nothing where there is nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.roles import Actor
from registry.drift import suspicions
from registry.drift.models import Finding, Source
from registry.drift.suspicions import MAX_TOLD, began_at, suspicions_of
from registry.errors import FindingNotFound
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName
from registry.subjects.services import delete_version, register_version, set_config
from registry.subjects.services.clients import declare_client
from tests.drift.scans import judged, make_source, scan

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-3")]
ORDERS = SubjectName(".", "orders-value")


@pytest.fixture
def source(registries: None) -> Source:
    return make_source()


def found(source: Source, system: Actor, **values: Any) -> Finding:
    """A finding that begins now."""
    scan(source, system, judged("a", **values))
    return Finding.objects.get()


def register(system: Actor, subject: SubjectName = ORDERS, *fields: str) -> None:
    text = {"type": "record", "name": "R", "fields": [{"name": name, "type": "long", "default": 0} for name in fields]}
    register_version(registry="dev", subject=subject, text=json.dumps(text), by=system)


def kinds(finding: Finding) -> list[tuple[str, str]]:
    return [(item.kind, item.name or str(item.version or "")) for item in suspicions_of(finding.pk).found]


def test_what_was_done_to_the_subject_is_told_the_nearest_first(source: Source, system: Actor) -> None:
    register(system)
    register(system, ORDERS, "a")
    register(system, SubjectName(".", "other-value"))
    set_config(registry="dev", subject=ORDERS, by=system, level="NONE")
    set_config(registry="dev", subject=SubjectName(".", "other-value"), by=system, level="FULL")
    declare_client(registry="dev", subject=ORDERS, name="billing", by=system)
    delete_version(registry="dev", subject=ORDERS, version=1, by=system)
    assert kinds(found(source, system)) == [
        ("deleted", "1"), ("client", "billing"), ("level", "NONE"), ("registered", "2"), ("registered", "1"),
    ]  # fmt: skip


def test_what_holds_for_the_whole_registry_is_told_too(source: Source, system: Actor) -> None:
    register(system)
    set_config(registry="dev", subject=None, by=system, level="FORWARD")
    set_config(registry="staging", subject=None, by=system, level="FULL")
    item = suspicions_of(found(source, system).pk).found[0]
    assert (item.kind, item.name, item.subject) == ("level", "FORWARD", "")


def test_how_the_source_is_scanned_may_be_it(source: Source, system: Actor) -> None:
    Source.objects.filter(pk=source.pk).update(mode="full")
    Source.objects.filter(pk=make_source(name="another").pk).update(mode="full")
    assert kinds(found(source, system, subject="")) == [("source", "")]


def test_nothing_is_told_where_nothing_was_done(source: Source, system: Actor, look: Callable[[str], Client]) -> None:
    finding = found(source, system)
    assert suspicions_of(finding.pk).found == ()
    page = look("reader").get(f"/ui/findings/{finding.pk}")
    assert page.context["page"].suspected is None
    assert "Suspected causes" not in page.content.decode()
    with pytest.raises(FindingNotFound):
        suspicions_of(finding.pk + 1)


def test_what_was_done_after_it_began_or_long_before_is_none(source: Source, system: Actor) -> None:
    register(system)
    finding = found(source, system)
    for moved in (timedelta(hours=2), -timedelta(hours=2)):
        Finding.objects.filter(pk=finding.pk).update(first_seen=timezone.now() + moved)
        assert suspicions_of(finding.pk).found == ()


SEEN = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("evidence", "minutes"),
    [
        ({}, 0),
        ({"partitions": [{"first_time": 1_795_262_040_000}, {"first_time": 1_795_262_400_000}]}, -6),
        ({"partitions": [{"first_time": 0}]}, 0),
        ({"partitions": [{"first_time": 10**18}]}, 0),
        ({"partitions": [{"first_time": "x"}, "y", {}]}, 0),
        ({"partitions": [{"first_time": 1_795_300_000_000}]}, 0),
    ],
)
def test_it_began_with_its_first_message_where_that_has_a_time(evidence: dict[str, Any], minutes: int) -> None:
    assert began_at(SEEN, evidence) == SEEN + timedelta(minutes=minutes)


def test_a_release_stands_for_its_registration(source: Source, system: Actor) -> None:
    place = suspicions._Place(Registry.objects.get(name="dev"), source.pk, "orders-value", 7, 1, 3)
    at = SEEN - timedelta(minutes=3)
    release = {"environment_id": 3, "context_name": ".", "subject_name": "orders-value", "version_number": 4, "request_id": 9}  # fmt: skip
    events: list[dict[str, Any]] = [
        {"at": at, "table": "promotions_release", "operation": "INSERT", "row_id": "1", "before": None, "after": release},
        {
            "at": at, "table": "subjects_schemaversion", "operation": "INSERT", "row_id": "5", "before": None,
            "after": {"subject_id": 7, "version": 4},
        },
    ]  # fmt: skip
    told = suspicions._told([(event, suspicions._kind(event, place) or "source") for event in events], place, SEEN)
    assert [(item.kind, item.version, item.request, item.seconds_before) for item in told] == [("released", 4, 9, 180)]
    events[0]["after"] = release | {"environment_id": 4}
    assert suspicions._kind(events[0], place) is None, "a release elsewhere is none here"


def test_a_version_without_the_request_that_it_needed_is_said_to_be_that(
    source: Source, system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(system)
    from django.db.models import Q

    monkeypatch.setattr(suspicions, "unrequested", lambda _registry: Q(version=1))
    assert kinds(found(source, system)) == [("ghost", "1")]


def test_many_changes_take_as_many_queries_and_some_are_told(source: Source, system: Actor) -> None:
    register(system)
    finding = found(source, system)
    Finding.objects.update(first_seen=timezone.now() + timedelta(seconds=30))
    with CaptureQueriesContext(connection) as few:
        suspicions_of(finding.pk)
    for number in range(12):
        register(system, ORDERS, f"f{number}")
    with CaptureQueriesContext(connection) as many:
        told = suspicions_of(finding.pk).found
    assert len(many) == len(few) <= 6
    assert len(told) == MAX_TOLD


def test_the_page_tells_them_with_links(source: Source, system: Actor, look: Callable[[str], Client]) -> None:
    register(system)
    set_config(registry="dev", subject=None, by=system, level="FORWARD")
    finding = found(source, system)
    answer = look("reader").get(f"/ui/findings/{finding.pk}")
    rows = answer.context["page"].suspected.rows
    assert [row.sentence for row in rows] == [
        "the compatibility level was set to FORWARD", "version 1 was registered",
    ]  # fmt: skip
    assert rows[1].url == "/ui/registries/dev/subjects/orders-value/?version=1"
    for row in rows:
        assert look("reader").get(row.url).status_code == 200
    assert "a suspicion, no proof" in answer.content.decode()
