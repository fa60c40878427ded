"""A version's status: who sets it, what is refused, what stands then, what stays as it was, and who is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.models import Ownership
from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.errors import (
    IncompatibleSchema,
    InvalidInput,
    NotAllowed,
    NotFound,
    OperationNotPermitted,
    ReleaseRequired,
    SubjectNotFound,
    VersionNotFound,
)
from registry.notifications.models import InboxEntry
from registry.subjects.models import Registry, SchemaVersion, VersionStatus
from registry.subjects.selectors import get_schema, get_version, version_infos
from registry.subjects.services import (
    RegisteredVersion,
    clear_version_status,
    delete_version,
    register_version,
    remove_version,
    set_config,
    set_mode,
    set_version_status,
)
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import list_version_statuses

ORDERS = SubjectName(".", "orders-value")
Register = Callable[..., RegisteredVersion]

pytestmark = pytest.mark.requirement("ORA-1")


def schema(*fields: str) -> dict[str, Any]:
    columns = [{"name": name, "type": "long", "default": 0} for name in fields]
    return {"type": "record", "name": "Order", "fields": columns}


@pytest.fixture
def two(register: Register) -> None:
    """Two versions of `orders-value` in `dev`."""
    register("orders-value", schema("a"))
    register("orders-value", schema("a", "b"))


def decide(by: Actor, status: str = "deprecated", version: int | str = 1, **more: Any) -> Any:
    place = {"registry": "dev", "subject": ORDERS, "message": "Use version 2."}
    return set_version_status(**{**place, **more}, version=version, status=status, by=by)


def test_what_is_decided_is_kept_is_changed_and_is_taken_back(two: None, dev: Registry, person: Any) -> None:
    steward, end = person("steward"), timezone.now() + timedelta(days=30)
    first = decide(steward, ends_at=end)
    assert get_version(dev, ORDERS, 1).status == first
    assert (first.status, first.message, first.ends_at, first.decided_by) == (
        "deprecated", "Use version 2.", end, "steward",
    )  # fmt: skip
    again = decide(person("admin"), message="Use version 2 soon.")
    assert (again.decided_at, again.decided_by, again.ends_at) == (first.decided_at, "admin", None), "since stays"
    retired = decide(steward, "retired", message="Over.")
    assert retired.decided_at > first.decided_at
    assert clear_version_status(registry="dev", subject=ORDERS, version=1, by=steward) == retired
    assert list_version_statuses(dev, subject=ORDERS) == []
    with pytest.raises(NotFound, match="Version 1 of orders-value is already active"):
        clear_version_status(registry="dev", subject=ORDERS, version=1, by=steward)


def test_it_is_written_to_the_audit_once_a_change_and_not_for_none(two: None, person: Any) -> None:
    steward = person("steward")
    for _ in range(2):
        decide(steward, message="Use {2}.")
    decide(steward, "retired")
    clear_version_status(registry="dev", subject=ORDERS, version=1, by=steward)
    told = AuditEvent.objects.filter(table="subjects_versionstanding").order_by("id")
    assert [(event.operation, event.actor, event.why) for event in told] == [
        ("INSERT", "steward", "deprecate version 1 of orders-value in dev: Use {2}."),
        ("UPDATE", "steward", "retire version 1 of orders-value in dev: Use version 2."),
        ("DELETE", "steward", "clear the status of version 1 of orders-value in dev"),
    ]


@pytest.mark.parametrize("who", ["reader", "approver", "stranger"])
def test_whoever_has_no_right_is_refused(two: None, dev: Registry, person: Any, who: str) -> None:
    with pytest.raises(NotAllowed, match="deprecate, retire and quarantine versions"):
        decide(person(who))
    decide(person("admin"))
    with pytest.raises(NotAllowed):
        clear_version_status(registry="dev", subject=ORDERS, version=1, by=person(who))
    assert [item.version for item in list_version_statuses(dev, subject=ORDERS)] == [1]


HOUR = timedelta(hours=1)
REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no such status": ({"status": "good"}, InvalidInput, "Use one of deprecated, retired, quarantined"),
    "no message": ({"message": " \n"}, InvalidInput, "Give a reason"),
    "a long message": ({"message": "é" * 2001}, InvalidInput, "2001 characters. At most 2000 are allowed"),
    "NUL": ({"message": "a\0b"}, InvalidInput, "can't be displayed"),
    "an escape": ({"message": "a\x1b[31m"}, InvalidInput, "can't be displayed"),
    "half a character": ({"message": "a\ud800"}, InvalidInput, "can't be displayed"),
    "an end of a retired one": ({"status": "retired", "ends_at": 1}, InvalidInput, "Only a deprecated version"),
    "an end without a zone": ({"ends_at": datetime(2099, 1, 1)}, InvalidInput, "time zone"),
    "an end that is over": ({"ends_at": datetime(2001, 1, 1, tzinfo=UTC)}, InvalidInput, "past"),
    "no such version": ({"version": 7}, VersionNotFound, "7"),
    "no such subject": ({"subject": SubjectName(".", "none")}, SubjectNotFound, "none"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_and_nothing_changes(two: None, person: Any, case: str) -> None:
    given, error, said = REFUSED[case]
    given = {**given, "ends_at": timezone.now() + HOUR} if given.get("ends_at") == 1 else given
    with pytest.raises(error, match=said):
        decide(person("steward"), **given)
    assert not VersionStatus.objects.exists()


def test_the_longest_message_and_lines_are_kept(two: None, person: Any) -> None:
    message = "Zeile 1\n" + "\N{BLACK HEART SUIT}" * 1992
    assert decide(person("steward"), message=f"  {message} ").message == message


def test_latest_and_a_soft_deleted_one_can_be_meant(two: None, dev: Registry, person: Any) -> None:
    steward = person("steward")
    decide(steward, version="latest")
    assert [item.version for item in list_version_statuses(dev, subject=ORDERS)] == [2]
    delete_version(registry="dev", subject=ORDERS, version=1, by=steward)
    decide(steward, "retired", version=1)
    found = list_version_statuses(dev)
    assert [(item.version, item.deleted, item.status.status) for item in found] == [
        (1, True, "retired"), (2, False, "deprecated"),
    ]  # fmt: skip
    assert [item.version for item in list_version_statuses(dev, after=found[0].id)] == [2]
    assert [item.version for item in list_version_statuses(dev, status="retired", subject=ORDERS)] == [1]
    assert list_version_statuses(dev, subject=SubjectName(":.x:", "y")) == []


def test_nothing_stops_working(two: None, dev: Registry, person: Any, register: Register) -> None:
    """Clients depend on look-ups, on `latest`, and on registering what is there: these give the version as before."""
    decide(person("steward"), "retired", version=2)
    assert get_version(dev, ORDERS, "latest").version == 2
    again = register("orders-value", schema("a", "b"))
    assert (again.created, again.version) == (False, 2)
    assert again.status is not None
    assert again.status.status == "retired"
    assert register("orders-value", schema("a", "b", "c")).status is None


MODES = {"READONLY": None, "READONLY_OVERRIDE": OperationNotPermitted, "IMPORT": None}


@pytest.mark.parametrize("mode", MODES)
def test_modes(two: None, person: Any, mode: str) -> None:
    """Registering is what READONLY ends; READONLY_OVERRIDE ends every change."""
    set_mode(registry="dev", subject=ORDERS, mode=mode, force=True, by=person("admin"))
    error = MODES[mode]
    if error is None:
        assert decide(person("steward")).status == "deprecated"
    else:
        with pytest.raises(error, match="READONLY_OVERRIDE"):
            decide(person("steward"))


@pytest.mark.requirement("GOO-7")
def test_a_closed_environment_asks_its_gate(two: None, person: Any, system: Actor) -> None:
    register_version(registry="prod", subject=ORDERS, text=json.dumps(schema("a")), by=system, release=True)
    with pytest.raises(ReleaseRequired):
        decide(person("steward"), registry="prod")
    with pytest.raises(ReleaseRequired):
        clear_version_status(registry="prod", subject=ORDERS, version=1, by=person("admin"))
    assert decide(person("approver"), registry="prod", release=True).status == "deprecated"


def test_a_definition_is_reported_where_no_live_version_is_good(dev: Registry, register: Register, person: Any) -> None:
    steward = person("steward")
    first = register("orders-value", schema("a"))
    assert register("copy", schema("a")).schema_id == first.schema_id
    copy, end = SubjectName(".", "copy"), timezone.now() + timedelta(days=9)
    decide(steward, "retired")
    assert get_schema(dev, first.schema_id).status is None, "the other one has it active"
    later = decide(steward, subject=copy, ends_at=end, message="Soon.")
    found = get_schema(dev, first.schema_id).status
    assert found is not None
    assert (found.status, found.message, found.ends_at) == ("deprecated", "Soon.", None), "the mildest, no end of both"
    assert found.decided_at == later.decided_at
    delete_version(registry="dev", subject=copy, version=1, by=steward)
    only = get_schema(dev, first.schema_id).status
    assert only is not None
    assert only.status == "retired", "a soft-deleted one doesn't count beside a live one"


def test_a_removed_version_leaves_nothing_and_its_number_starts_again(
    two: None, dev: Registry, person: Any, register: Register, system: Actor
) -> None:
    decide(person("steward"), version=2)
    remove_version(registry="dev", subject=ORDERS, version=2, by=system)
    assert not VersionStatus.objects.exists()
    assert register("orders-value", schema("a", "x")).version == 2
    assert get_version(dev, ORDERS, 2).status is None


def test_an_import_that_gives_the_number_another_text_takes_the_status_away(
    two: None, dev: Registry, person: Any, register: Register
) -> None:
    decide(person("steward"), version=2)
    set_mode(registry="dev", subject=ORDERS, mode="IMPORT", force=True, by=person("admin"))
    register("orders-value", schema("z"), schema_id=90, version=2)
    assert get_version(dev, ORDERS, 2).status is None
    assert get_version(dev, ORDERS, 2).schema.schema_id == 90


def told(event: str) -> list[tuple[str, str]]:
    rows = InboxEntry.objects.filter(notice__event=event).order_by("id")
    return list(rows.values_list("user__username", "notice__text"))


def test_owners_are_notified_but_not_of_what_they_did_themselves(two: None, person: Any) -> None:
    steward, reader = person("steward"), person("reader")
    for who in (steward, reader):
        Ownership.objects.create(registry="dev", subject_pattern="orders-*", user_id=who.user_id)
    for _ in range(2):
        decide(steward)
    clear_version_status(registry="dev", subject=ORDERS, version=1, by=steward)
    assert told("version.deprecated") == [
        ("reader", "Version 1 of orders-value in dev was set to deprecated by steward: Use version 2."),
        ("reader", "Version 1 of orders-value in dev was reactivated by steward."),
    ]


@pytest.mark.parametrize("count", [1, 6])
def test_lists_of_versions_take_no_query_for_it(
    dev: Registry, register: Register, person: Any, count: int, django_assert_max_num_queries: Any
) -> None:
    for number in range(count):
        register("orders-value", schema(*"abcdefgh"[: number + 1]))
        decide(person("steward"), version=number + 1)
    rows = list(SchemaVersion.objects.all())
    with django_assert_max_num_queries(2):
        assert all(info.status for info in version_infos(rows))
    with django_assert_max_num_queries(2):
        assert get_version(dev, ORDERS, "latest").status is not None
    with django_assert_max_num_queries(3):
        assert get_schema(dev, 1).status is not None


def test_setting_one_costs_the_same_however_many_there_are(two: None, register: Register, person: Any) -> None:
    steward = person("steward")
    with CaptureQueriesContext(connection) as few:
        decide(steward)
    for number in range(3, 9):
        register("orders-value", schema(*"abcdefghij"[:number]))
        decide(steward, version=number)
    clear_version_status(registry="dev", subject=ORDERS, version=1, by=steward)
    with CaptureQueriesContext(connection) as many:
        decide(steward)
    assert len(many) <= len(few)


def test_a_level_never_looks_at_it(two: None, person: Any, register: Register) -> None:
    """A version in quarantine is checked against all the same: data of it may be there."""
    steward = person("steward")
    set_config(registry="dev", subject=ORDERS, level="BACKWARD", by=steward)
    decide(steward, "quarantined", version=2)
    broken = {**schema(), "fields": [{"name": "b", "type": "string"}]}
    with pytest.raises(IncompatibleSchema):
        register("orders-value", broken)


def test_a_version_that_is_deleted_between_two_reads_is_not_found(dev: Registry, register: Register) -> None:
    register("orders-value", schema("a"))
    rows = list(SchemaVersion.objects.all())
    SchemaVersion.objects.all().delete()
    with pytest.raises(VersionNotFound, match="Version 1 not found"):
        version_infos(rows)
