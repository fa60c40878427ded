"""Who subscribes is told of what changes versions, levels, modes and mirrors: once a change, and of none that isn't."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from registry.access.roles import Actor
from registry.errors import IncompatibleSchema
from registry.notifications.models import Notice, Subscription
from registry.notifications.services import subscribe
from registry.subjects.import_export.registry_import import import_snapshot
from registry.subjects.import_export.snapshot import contents_of
from registry.subjects.models import Registry
from registry.subjects.policy.registries import ensure_registry
from registry.subjects.services import (
    RegisteredVersion,
    delete_config,
    delete_mode,
    delete_subject,
    delete_version,
    register_version,
    remove_subject,
    set_config,
    set_mode,
)
from registry.subjects.versions.lookup import RegistryResource
from registry.subjects.versions.qualified_names import SubjectName
from tests.access.fake_server import Told, serving
from tests.subjects.import_export.import_fixtures import furnish
from tests.subjects.remote.test_mirrors import Remote, mirror, synced
from tests.subjects.remote.test_remote_client import entry

__all__ = ["mirror"]
ORDERS = SubjectName(".", "orders-value")
V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
Register = Callable[..., RegisteredVersion]

pytestmark = pytest.mark.requirement("SCS-3")


@pytest.fixture
def listening(person: Any) -> None:
    """Somebody who wants to know of everything."""
    subscribe(event="*", by=person("reader"))


@pytest.fixture
def remote(settings: Any) -> Iterator[Remote]:
    settings.EGRESS_ALLOW = ("127.0.0.1",)
    found = Remote()
    with serving(found) as found.server:
        yield found


def told() -> list[tuple[str, str, str]]:
    """What was told since the last look."""
    rows = Notice.objects.order_by("id")
    found = list(rows.values_list("event", "subject", "text"))
    rows.delete()
    return found


def test_a_version_is_reported_and_one_that_is_there_isn_t(listening: None, register: Register) -> None:
    register("orders-value", V1)
    notice = Notice.objects.get()
    assert (notice.registry, notice.url) == ("dev", "/ui/registries/dev/subjects/orders-value/")
    assert notice.data == {"version": 1, "schema_id": 1, "forced": False, "by": "tests"}
    assert told() == [
        ("version.registered", "orders-value", "Version 1 of orders-value was registered in dev by tests.")
    ]
    register("orders-value", V1)
    with pytest.raises(IncompatibleSchema):
        register("orders-value", {**V1, "fields": [{"name": "id", "type": "string"}]})
    assert told() == []
    register("orders-value", {**V1, "fields": [{"name": "id", "type": "string"}]}, force="agreed with all")
    assert told()[0][2].endswith("by tests, forced: agreed with all.")


def test_what_is_undone_is_not_reported(listening: None, register: Register) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        register("orders-value", V1)
        raise RuntimeError
    assert told() == []


@pytest.mark.parametrize("name", ["a/b", ".", "..", "ä ö", 'q"<x>'])
def test_the_link_leads_to_the_subject_whatever_it_is_called(listening: None, register: Register, name: str) -> None:
    from dashboard.components.links import subject_url

    register(name, V1)
    assert Notice.objects.get().url == subject_url("dev", name)


def test_deletions_are_reported_once_a_call(listening: None, register: Register, system: Actor) -> None:
    for fields in ("a", "ab", "abc"):
        columns = [{"name": field, "type": "int", "default": 0} for field in fields]
        register("orders-value", {**V1, "fields": columns})
    told()
    delete_version(registry="dev", subject=ORDERS, version=2, by=system)
    assert told() == [("version.deleted", "orders-value", "Version 2 of orders-value was deleted in dev by tests.")]
    assert delete_subject(registry="dev", subject=ORDERS, by=system) == [1, 3]
    delete_subject(registry="dev", subject=ORDERS, by=system, permanent=True)
    assert [text for _, _, text in told()] == [
        "Versions 1, 3 of orders-value were deleted in dev by tests.",
        "Versions 1, 2, 3 of orders-value were permanently removed from dev by tests.",
    ]
    register("orders-value", V1)
    told()
    remove_subject(registry="dev", subject=ORDERS, by=system)
    assert len(told()) == 1, "soft and permanent at once are one deletion"


def test_settings_are_reported_where_they_change(listening: None, registries: None, system: Actor) -> None:
    team = SubjectName(".team", "")
    for _ in range(2):
        set_config(registry="dev", subject=ORDERS, level="FULL", by=system)
        set_config(registry="dev", subject=team, normalize=True, by=system)
    set_config(registry="dev", subject=ORDERS, level="none", default_metadata={"properties": {"k": "v"}}, by=system)
    delete_config(registry="dev", subject=ORDERS, by=system)
    delete_config(registry="dev", subject=None, by=system)
    assert told() == [
        ("config.changed", "orders-value", "The compatibility settings of orders-value changed in dev by tests: level"
         " from the inherited value to FULL."),
        ("config.changed", ":.team:", "The compatibility settings of context .team changed in dev by tests: normalize"
         " from the inherited value to True."),
        ("config.changed", "orders-value", "The compatibility settings of orders-value changed in dev by tests: level"
         " from FULL to NONE, default_metadata from the inherited value to another value."),
        ("config.changed", "orders-value", "The compatibility settings of orders-value changed in dev by tests: level"
         " from NONE to the inherited value, default_metadata from another value to the inherited value."),
    ]  # fmt: skip


def test_modes_are_reported_where_they_change_to_who_manages_too(registries: None, person: Any, system: Actor) -> None:
    person("admin")
    for _ in range(2):
        set_mode(registry="dev", subject=None, mode="READONLY", by=system)
    set_mode(registry="dev", subject=None, mode="READWRITE", by=person("admin"))
    delete_mode(registry="dev", subject=None, by=system)
    delete_mode(registry="dev", subject=None, by=system)
    assert [text for _, _, text in told()] == [
        "The mode of dev changed by tests: mode from the inherited value to READONLY.",
        "The mode of dev changed by tests: mode from READWRITE to the inherited value.",
    ]


def test_an_import_is_reported_once(listening: None, registries: None, system: Actor, tmp_path: Path) -> None:
    furnish("staging", system)
    snapshot = contents_of(Registry.objects.get(name="staging"))
    told()
    done = import_snapshot(registry="dev", snapshot=snapshot, by=system)
    assert done.added == len(snapshot.versions) > 10
    everything = told()
    events = [(event, text) for event, _, text in everything if event.startswith("version.")]
    assert events == [("version.registered", f"{done.added} versions added to dev: an import by tests.")]
    assert [text for event, _, text in everything if event == "mode.changed"] == [
        "The mode of dev changed by tests: mode from the inherited value to IMPORT.",
        "The mode of dev changed by tests: mode from IMPORT to the inherited value.",
    ]
    import_snapshot(registry="dev", snapshot=snapshot, by=system)
    assert told() == []


def test_a_mirror_is_reported_once_a_sync_and_its_failure_once(listening: None, mirror: int, remote: Remote) -> None:
    remote.entries = [entry("a"), entry("a", 2, 2), entry("b", 1, 3)]
    remote.more = {"/config/a": {"compatibilityLevel": "FULL"}}
    told()
    synced(mirror)
    synced(mirror)
    why = f"as in {remote.url}"
    assert [text for _, _, text in told()] == [
        f"3 versions added to theirs: {why}.",
        f"2 scopes changed compatibility settings in theirs: {why}.",
    ]
    remote.entries = [entry("a", deleted=True), entry("a", 2, 2)]
    synced(mirror)
    assert [text for _, _, text in told()] == [f"2 versions removed from theirs: {why}."]
    remote.broken = Told(500, b"")
    for _ in range(3):
        synced(mirror)
    [(event, _, text)] = told()
    assert event == "mirror.failed"
    assert "status 500" in text
    remote.broken = None
    synced(mirror)
    remote.broken = Told(500, b"")
    synced(mirror)
    assert [event for event, _, _ in told()] == ["mirror.failed"]


def test_a_registry_of_another_project_is_called_by_its_whole_name(
    registries: None, person: Any, system: Actor
) -> None:
    """Else whoever may read `dev` would be told of another project's `dev`."""
    reader = person("reader")
    subscribe(event="*", registry_pattern="dev", by=reader)
    there = RegistryResource("other", "eu", "dev")
    ensure_registry(name="dev", project="other", location="eu", by=system)
    register_version(registry=there.key, subject=ORDERS, text=json.dumps(V1), by=system)
    assert told() == []
    subscribe(event="*", registry_pattern="projects/*", by=reader)
    register_version(registry=there.key, subject=SubjectName(".", "b"), text=json.dumps(V1), by=system)
    assert [(event, subject) for event, subject, _ in told()] == [("version.registered", "b")]


def test_nobody_subscribes_then_one_question_is_all(
    register: Register, person: Any, django_assert_max_num_queries: Any
) -> None:
    reader = person("reader")
    register("warm", V1)
    Subscription.objects.create(user_id=reader.user_id, event="*", wanted=False)
    with django_assert_max_num_queries(24):
        register("orders-value", V1)
    assert not Notice.objects.exists()
