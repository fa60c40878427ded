"""What is kept of deletions for good: one statement a deletion, every door, restored with ids and numbers, forgotten."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.models import Ownership, User
from registry.access.roles import Actor, Grant
from registry.audit.models import AuditEvent
from registry.errors import CopyNotFound, InvalidInput, NotAllowed, PlanChanged, ReleaseRequired
from registry.formats.base import Reference
from registry.promotions.models import Environment
from registry.subjects.archive.archive import contents_of_copy, deleted_copies, forget, prune
from registry.subjects.archive.restore import apply_copy, plan_copy, write_copy
from registry.subjects.import_export.export_file import read_snapshot
from registry.subjects.import_export.import_plan import RestoreOptions
from registry.subjects.import_export.snapshot import contents_of
from registry.subjects.models import ArchivedCopy, SchemaVersion
from registry.subjects.services import (
    delete_subject,
    delete_version,
    register_version,
    remove_subject,
    set_config,
    set_mode,
    set_note,
)
from registry.subjects.tasks import prune_copies
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2")]
ORDERS, ADDRESS, LAB = (parse_subject(name) for name in ("orders", "address", ":.lab:orders"))
V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
LIVE, SOFT = RestoreOptions(live=True), RestoreOptions(live=False)


@pytest.fixture(autouse=True)
def place(registries: None) -> None:
    """The registries."""


def register(subject: SubjectName, schema: Any, by: Actor, **more: Any) -> int:
    return register_version(registry="dev", subject=subject, text=json.dumps(schema), by=by, **more).schema_id


def gone_for_good(subject: SubjectName, by: Actor) -> ArchivedCopy:
    for permanent in (False, True):
        delete_subject(registry="dev", subject=subject, by=by, permanent=permanent)
    return ArchivedCopy.objects.latest("pk")


def restore(copy: ArchivedCopy, by: Actor, ways: RestoreOptions = LIVE) -> Any:
    plan = plan_copy(registry="dev", number=copy.pk, ways=ways, by=by)
    return apply_copy(registry="dev", number=copy.pk, ways=ways, digest=plan.digest, by=by)


def test_a_whole_subject_comes_back_as_it_was(system: Actor) -> None:
    register(ADDRESS, {"type": "record", "name": "Address", "fields": []}, system)
    used = {**V2, "fields": [*V2["fields"], {"name": "to", "type": "Address"}]}
    register(ORDERS, V1, system)
    set_config(registry="dev", subject=ORDERS, level="NONE", by=system)
    register(ORDERS, used, system, references=(Reference("Address", "address", 1),))
    set_mode(registry="dev", subject=ORDERS, mode="READWRITE", by=system)
    set_note(registry="dev", subject=ORDERS, tags=["PII"], doc="Orders.", by=system, expected="*")
    before = contents_of(get_registry("dev"))
    copy = gone_for_good(ORDERS, system)
    assert (copy.name, copy.versions, copy.made_by) == ("orders", 2, system.name)
    assert copy.until - copy.made_at == timedelta(days=30)
    with pytest.raises(PlanChanged):
        apply_copy(registry="dev", number=copy.pk, ways=LIVE, digest="x", by=system)
    plan = plan_copy(registry="dev", number=copy.pk, ways=LIVE, by=system)
    assert not SchemaVersion.objects.filter(subject__name="orders").exists(), "a plan changes nothing"
    assert [(line.version, line.fate, line.why) for line in plan.lines] == [(1, "created", ""), (2, "created", "")]
    restore(copy, system)
    assert contents_of(get_registry("dev")) == before
    assert not ArchivedCopy.objects.exists()
    with pytest.raises(CopyNotFound):
        apply_copy(registry="dev", number=copy.pk, ways=LIVE, digest=plan.digest, by=system)


def test_soft_deleted_as_it_was_where_that_is_chosen(system: Actor) -> None:
    register(LAB, V1, system)
    copy = gone_for_good(LAB, system)
    assert copy.name == ":.lab:orders"
    restore(copy, system, SOFT)
    assert SchemaVersion.objects.get(subject__name="orders").deleted_at is not None


def test_obstacles_are_named_exactly(system: Actor) -> None:
    set_config(registry="dev", subject=None, level="NONE", by=system)
    ids = [register(ORDERS, schema, system) for schema in (V1, V2)]
    copy = gone_for_good(ORDERS, system)
    new = register(ORDERS, "string", system)
    assert new not in ids
    plan = plan_copy(registry="dev", number=copy.pk, ways=LIVE, by=system)
    said = {line.version: (line.fate, line.why) for line in plan.lines}
    assert said == {
        1: ("left", f"it exists with schema id {new}, but the copy has {ids[0]}."),
        2: ("created", ""),
    }
    restore(copy, system)
    rows = SchemaVersion.objects.filter(subject__name="orders", deleted_at=None).order_by("version")
    assert list(rows.values_list("version", "schema__schema_id")) == [(1, new), (2, ids[1])]


def test_the_level_holds_for_what_comes_back_live(system: Actor) -> None:
    set_config(registry="dev", subject=None, level="NONE", by=system)
    register(ORDERS, V1, system)
    register(ORDERS, "string", system)
    for permanent in (False, True):
        delete_version(registry="dev", subject=ORDERS, version=2, by=system, permanent=permanent)
    set_config(registry="dev", subject=None, level="FULL", by=system)
    done = restore(ArchivedCopy.objects.get(), system)
    assert (
        done.lines[0].fate == "created"
        and "stays soft-deleted: If restored, version 2 would not be compatible" in done.lines[0].why
    )
    assert SchemaVersion.objects.get(version=2).deleted_at is not None


def test_a_lost_reference_stops_what_needs_it(system: Actor) -> None:
    register(ADDRESS, {"type": "record", "name": "Address", "fields": []}, system)
    using = {**V1, "fields": [{"name": "to", "type": "Address"}]}
    register(ORDERS, using, system, references=(Reference("Address", "address", 1),))
    copy = gone_for_good(ORDERS, system)
    address = gone_for_good(ADDRESS, system)
    plan = plan_copy(registry="dev", number=copy.pk, ways=LIVE, by=system)
    assert plan.stops and plan.is_empty and plan.lines[0].fate == "conflict" and "address" in plan.lines[0].why
    with pytest.raises(InvalidInput):
        restore(copy, system)
    restore(address, system)
    assert restore(copy, system).count("created") == 1


def test_the_registry_that_moved_meanwhile_is_reported(system: Actor) -> None:
    register(ORDERS, V1, system)
    copy = gone_for_good(ORDERS, system)
    plan = plan_copy(registry="dev", number=copy.pk, ways=LIVE, by=system)
    register(ORDERS, "string", system)
    with pytest.raises(PlanChanged):
        apply_copy(registry="dev", number=copy.pk, ways=LIVE, digest=plan.digest, by=system)
    assert ArchivedCopy.objects.filter(pk=copy.pk).exists()


def test_it_costs_a_deletion_one_statement_and_none_where_nothing_is_kept(system: Actor, settings: Any) -> None:
    counts = []
    for days in (30, 0):
        settings.DELETED_COPY_DAYS = days
        register(ORDERS, V1, system)
        delete_subject(registry="dev", subject=ORDERS, by=system)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            delete_subject(registry="dev", subject=ORDERS, by=system, permanent=True)
        counts.append(len(queries))
    assert counts[0] - counts[1] == 1
    assert ArchivedCopy.objects.count() == 1


@pytest.mark.parametrize("channel", ["version", "subject", "spring", "import"])
def test_every_channel_keeps_a_copy(system: Actor, channel: str) -> None:
    register(ORDERS, V1, system)
    if channel == "spring":
        remove_subject(registry="dev", subject=ORDERS, by=system)
    elif channel == "subject":
        gone_for_good(ORDERS, system)
    else:
        delete_version(registry="dev", subject=ORDERS, version=1, by=system)
        if channel == "version":
            delete_version(registry="dev", subject=ORDERS, version=1, by=system, permanent=True)
        else:  # what is soft-deleted makes room
            set_mode(registry="dev", subject=None, mode="IMPORT", by=system)
    copy = ArchivedCopy.objects.get()
    assert [record.text for record in contents_of_copy(copy).snapshot.versions] == [
        json.dumps(V1, separators=(",", ":"))
    ]


def test_owners_are_notified_and_the_file_can_be_imported(system: Actor, person: Any) -> None:
    user = User.objects.get(username=person("steward").name)
    for pattern in ("ord*", "orders", "ord", "[xo]rders", "other*"):
        Ownership.objects.create(registry="dev", subject_pattern=pattern, user=user)
    register(ORDERS, V1, system)
    copy = gone_for_good(ORDERS, system)
    assert contents_of_copy(copy).owners == ("steward",)
    assert {pattern for pattern, _ in json.loads(copy.content)["owners"]} == {"ord*", "orders", "ord", "[xo]rders"}
    file = io.BytesIO()
    assert write_copy(registry="dev", number=copy.pk, file=file, by=system) == "orders"
    (record,) = read_snapshot(io.BytesIO(file.getvalue()), "x").versions
    assert (record.subject, record.version, record.deleted) == (ORDERS, 1, True)


def test_it_is_forgotten_at_once_and_pruned_in_time(system: Actor) -> None:
    register(ORDERS, {**V1, "doc": "hunter2"}, system)
    copy = gone_for_good(ORDERS, system)
    forget(registry="dev", number=copy.pk, by=system)
    assert not ArchivedCopy.objects.exists()
    events = AuditEvent.objects.filter(table="subjects_keptcopy")
    assert list(events.order_by("pk").values_list("operation", "actor")) == [("INSERT", "tests"), ("DELETE", "tests")]
    assert "hunter2" not in str(list(events.values_list("before", "after")))
    register(ORDERS, V1, system)
    old = gone_for_good(ORDERS, system)
    ArchivedCopy.objects.update(made_at=timezone.now() - timedelta(days=2), until=timezone.now() - timedelta(seconds=1))
    with pytest.raises(CopyNotFound):
        plan_copy(registry="dev", number=old.pk, ways=LIVE, by=system)
    assert deleted_copies(get_registry("dev"), by=system) == []
    prune_copies()
    assert not ArchivedCopy.objects.exists() and prune() == 0


def test_who_may_delete_for_good_sees_its_own_and_nobody_else(system: Actor) -> None:
    for name in ("orders", "other"):
        register(SubjectName(".", name), V1, system)
        gone_for_good(SubjectName(".", name), system)
    some = Actor("some", "ui", 1, (Grant("admin", "dev", "ord*"),))
    dev = get_registry("dev")
    assert [copy.name for copy in deleted_copies(dev, by=some)] == ["orders"]
    assert [copy.name for copy in deleted_copies(dev, by=system)] == ["other", "orders"]
    assert [copy.name for copy in deleted_copies(dev, by=system, before=ArchivedCopy.objects.latest("pk").pk)] == [
        "orders"
    ]
    assert plan_copy(registry="dev", number=ArchivedCopy.objects.earliest("pk").pk, ways=LIVE, by=some).lines
    for number in (ArchivedCopy.objects.latest("pk").pk, 10**9):
        with pytest.raises(NotAllowed):
            plan_copy(registry="dev", number=number, ways=LIVE, by=some)
    with pytest.raises(NotAllowed):
        deleted_copies(dev, by=Actor("s", "ui", 2, (Grant("steward"),)))


def test_a_closed_environment_takes_nothing_back(system: Actor) -> None:
    register(ORDERS, V1, system)
    copy = gone_for_good(ORDERS, system)
    Environment.objects.filter(registry__name="dev").update(is_closed=True)
    with pytest.raises(ReleaseRequired):
        plan_copy(registry="dev", number=copy.pk, ways=LIVE, by=system)
