"""The minimum version that producers may write: set with a reason, told by scans, shown among a subject's settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import Q
from django.test import Client
from django.test.utils import CaptureQueriesContext

from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.drift.judge.versions import BELOW
from registry.drift.models import MinimumVersion
from registry.drift.scan_context.versions import version_rows
from registry.drift.services.minimum_version import clear_minimum_version, set_minimum_version
from registry.errors import InvalidInput, NotAllowed, NotFound, SubjectNotFound
from registry.search.audit_filter import events_about
from registry.subjects.lifecycle.retirement import set_version_status
from registry.subjects.models import Registry, SchemaVersion, Subject, VersionStatus
from registry.subjects.services import delete_subject, delete_version, register_version, set_config
from registry.subjects.versions.qualified_names import SubjectName

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-3")]
ORDERS = SubjectName(".", "orders-value")
PAGE = "/ui/registries/dev/subjects/orders-value/?tab=settings"
API = "/api/v1/registries/dev/subjects/orders-value/minimum-version"


@pytest.fixture
def orders(registries: None, system: Actor) -> None:
    """A subject with three versions."""
    for number in range(3):
        fields = [{"name": f"f{index}", "type": "long", "default": 0} for index in range(number)]
        text = json.dumps({"type": "record", "name": "R", "fields": fields})
        register_version(registry="dev", subject=ORDERS, text=text, by=system)


def set_minimum(by: Actor, version: int = 3, reason: str = "Amounts were floats.") -> None:
    set_minimum_version(registry="dev", subject=ORDERS, version=version, reason=reason, by=by)


def judged() -> list[tuple[int, str, int, str]]:
    """What the judgement is told of each version."""
    rows = version_rows(Registry.objects.get(name="dev"), Q(), unapproved=None)
    return [
        (row.version.version, row.version.status, row.version.minimum_version, row.version.status_message)
        for row in rows
    ]


def test_the_judgement_knows_older_versions(orders: None, system: Actor) -> None:
    with CaptureQueriesContext(connection) as before:
        assert {status for _, status, _, _ in judged()} == {""}
    set_minimum(system)
    with CaptureQueriesContext(connection) as after:
        assert judged() == [
            (1, BELOW, 3, "Amounts were floats."), (2, BELOW, 3, "Amounts were floats."), (3, "", 0, ""),
        ]  # fmt: skip
    assert len(before) == len(after)
    clear_minimum_version(registry="dev", subject=ORDERS, by=system)
    assert {status for _, status, _, _ in judged()} == {""}


def test_it_holds_for_none_while_no_version_is_as_new(
    orders: None, system: Actor, look: Callable[[str], Client]
) -> None:
    set_minimum(system)
    over = "No live version is that new"
    assert over not in look("reader").get(PAGE).content.decode()
    delete_version(registry="dev", subject=ORDERS, version=3, by=system)
    assert {status for _, status, _, _ in judged()} == {""}, "nobody can write a version that isn't there"
    assert over in look("reader").get(PAGE).content.decode()
    set_config(registry="dev", subject=ORDERS, level="NONE", by=system)
    register_version(registry="dev", subject=ORDERS, text='"long"', by=system)
    assert [status for _, status, _, _ in judged()] == [BELOW, BELOW, "", ""]


def test_what_weighs_more_than_a_deprecation_and_less_than_a_retirement(orders: None, system: Actor) -> None:
    set_minimum(system)
    for version, status in ((1, "retired"), (2, "deprecated")):
        set_version_status(registry="dev", subject=ORDERS, version=version, status=status, message="Over.", by=system)
    assert [status for _, status, _, _ in judged()] == ["retired", BELOW, ""]


def test_the_same_version_again_changes_the_reason_and_not_since_when(orders: None, system: Actor) -> None:
    set_minimum(system, 2)
    first = MinimumVersion.objects.get()
    count = AuditEvent.objects.count()
    set_minimum(system, 2)
    assert AuditEvent.objects.count() == count
    set_minimum(system, 2, "Another reason.")
    second = MinimumVersion.objects.get()
    assert (second.set_at, second.reason) == (first.set_at, "Another reason.")
    set_minimum(system, 3)
    assert MinimumVersion.objects.get().set_at > first.set_at
    about = events_about(registry="dev", subject="orders-value")
    events = AuditEvent.objects.filter(about, table="drift_leastversion")
    assert [event.operation for event in events] == ["UPDATE", "UPDATE", "INSERT"]
    assert events[0].why == "set the minimum version of orders-value in dev to 3: Amounts were floats."
    clear_minimum_version(registry="dev", subject=ORDERS, by=system)
    assert AuditEvent.objects.filter(about, operation="DELETE", table="drift_leastversion").count() == 1
    with pytest.raises(NotFound):
        clear_minimum_version(registry="dev", subject=ORDERS, by=system)


@pytest.mark.parametrize(
    ("version", "reason", "field"),
    [
        (1, "x", "version"),
        (0, "x", "version"),
        (4, "x", "version"),
        (2, " ", "reason"),
        (2, "x" * 2001, "reason"),
        (2, "a\u202eb", "reason"),
    ],
)
def test_what_cannot_be_used_is_refused(orders: None, system: Actor, version: int, reason: str, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        set_minimum(system, version, reason)
    assert refused.value.details["field"] == field
    assert not MinimumVersion.objects.exists()


def test_stewards_set_it(orders: None, person: Callable[[str], Actor]) -> None:
    for name in ("reader", "approver"):
        with pytest.raises(NotAllowed):
            set_minimum(person(name))
    set_minimum(person("steward"))
    with pytest.raises(SubjectNotFound):
        set_minimum_version(registry="dev", subject=SubjectName(".", "x"), version=2, reason="x", by=person("steward"))


def test_the_database_keeps_what_holds(orders: None) -> None:
    subject = Subject.objects.get(name="orders-value")
    for values in ({"version": 1, "reason": "x"}, {"version": 2, "reason": ""}):
        with pytest.raises(IntegrityError), transaction.atomic():
            MinimumVersion.objects.create(subject=subject, set_by="x", set_at=subject.created_at, **values)


def test_it_goes_with_its_subject(orders: None, system: Actor) -> None:
    set_minimum(system)
    delete_subject(registry="dev", subject=ORDERS, by=system)
    assert MinimumVersion.objects.exists(), "a soft-deleted subject comes back with it"
    delete_subject(registry="dev", subject=ORDERS, permanent=True, by=system)
    assert not MinimumVersion.objects.exists()


def test_programs_set_and_read_it(orders: None, api: Callable[[str], Client]) -> None:
    def put(name: str, body: Any) -> int:
        status: int = api(name).put(API, json.dumps(body), content_type="application/json").status_code
        return status

    assert api("reader").get(API).json() == {"version": None}
    assert put("steward", {"version": 9, "reason": "x"}) == put("steward", {"version": 2}) == 422
    assert put("steward", {"version": 2, "reason": "Amounts were floats."}) == 200
    shown = api("reader").get(API).json()
    assert (shown["version"], shown["reason"], shown["set_by"]) == (2, "Amounts were floats.", "steward")
    assert [api("steward").delete(API).status_code for _ in range(2)] == [204, 404]


def test_the_settings_show_and_change_it(orders: None, look: Callable[[str], Client]) -> None:
    steward, reader = look("steward"), look("reader")
    part = reader.get(PAGE).context["page"].selected.minimum
    assert part.info is None and part.refused
    address = "/ui/registries/dev/subjects/orders-value/minimum-version"
    assert f'action="{address}"' in steward.get(PAGE).content.decode()
    nasty = '<img src=x onerror="alert(1)">'
    assert steward.post(address, {"version": "3", "reason": nasty}, follow=True).status_code == 200
    text = reader.get(PAGE).content.decode()
    assert "&lt;img src=x" in text
    assert nasty not in text
    assert f'action="{address}/clear"' in steward.get(PAGE).content.decode()
    refused = steward.post(address, {"version": "x", "reason": "y"}, follow=True)
    assert "Enter a whole number" in refused.content.decode()
    assert reader.post(f"{address}/clear").status_code == 403
    steward.post(f"{address}/clear")
    assert not MinimumVersion.objects.exists()


def test_nothing_of_it_is_said_of_the_past(orders: None, system: Actor, look: Callable[[str], Client]) -> None:
    set_minimum(system)
    page = look("reader").get(f"{PAGE}&at={MinimumVersion.objects.get().set_at.isoformat().replace('+00:00', 'Z')}")
    assert page.status_code == 200
    assert page.context["page"].selected.minimum is None


def test_producers_are_not_sent_to_a_quarantined_version(orders: None, system: Actor) -> None:
    newest = SchemaVersion.objects.get(version=3)
    VersionStatus.objects.create(version=newest, status="quarantined", message="?", decided_by="tests")
    with pytest.raises(InvalidInput, match="Version 3 is quarantined"):
        set_minimum(system)
    set_minimum(system, version=2)
