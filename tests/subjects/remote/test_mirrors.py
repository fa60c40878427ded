"""Remote registries: mirrored read-only, with their age and their error; and the remote registry's own verdict."""

from __future__ import annotations

import datetime
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.errors import (
    AddressRefused,
    InvalidInput,
    InvalidSecret,
    NotAllowed,
    NotSignedIn,
    OperationNotPermitted,
    RegistryNotFound,
    RemoteUnavailable,
    WrongState,
)
from registry.subjects.lifecycle.notes import notes_of
from registry.subjects.models import Mode, Registry, SchemaVersion
from registry.subjects.policy.registries import list_mirrors, mirror_of
from registry.subjects.remote.mirrors import (
    SyncResult,
    add_remote_registry,
    queue_due_syncs,
    remove_remote_registry,
    sync_registry,
)
from registry.subjects.remote.remote_client import RemoteRegistry
from registry.subjects.remote.remote_writer import RemoteVerdict, ask_remote
from registry.subjects.selectors import effective_config, effective_mode, get_version, list_subjects
from registry.subjects.services import delete_subject, register_version, set_config, set_note
from registry.subjects.tasks import queue_due_syncs as queue_due_syncs_task
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.access.fake_server import Call, FakeServer, Told, serving
from tests.conftest import signed_in
from tests.subjects.import_export.import_fixtures import record
from tests.subjects.remote.test_remote_client import answering, entry

__all__ = ["mirror", "remote"]


pytestmark = pytest.mark.django_db


class Remote:
    """A registry elsewhere, whose answers a test changes between syncs."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.more: dict[str, Any] = {}
        self.broken: Any = None
        self.instead: Callable[[Call], Any] | None = None
        self.server: FakeServer | None = None

    def __call__(self, call: Call) -> Any:
        special = self.instead(call) if self.instead else None
        return self.broken or special or answering(self.entries, **self.more)(call)

    @property
    def url(self) -> str:
        assert self.server is not None
        return f"http://127.0.0.1:{self.server.port}"


@pytest.fixture
def remote(settings: Any) -> Iterator[Remote]:
    settings.EGRESS_ALLOW = ("127.0.0.1",)
    found = Remote()
    with serving(found) as found.server:
        yield found


@pytest.fixture
def mirror(remote: Remote, registries: None, system: Actor) -> int:
    """The number of a mirror of the remote, called `theirs`, not synced yet."""
    return add_remote_registry(name="theirs", url=remote.url, by=system)


def synced(mirror: int) -> SyncResult:
    result = sync_registry(registry_id=mirror)
    assert result is not None
    return result


def versions() -> dict[tuple[str, int], tuple[int, bool]]:
    rows = SchemaVersion.objects.filter(subject__context__registry__name="theirs")
    return {
        (name, number): (schema_id, gone is None)
        for name, number, schema_id, gone in rows.values_list(
            "subject__name", "version", "schema__schema_id", "deleted_at"
        )
    }


def test_a_mirror_follows_the_remote(mirror: int, remote: Remote) -> None:
    remote.entries = [entry("a"), entry("a", 2, 2), entry("b", 1, 3)]
    remote.more = {"/config/a": {"compatibilityLevel": "FULL"}, "/mode/b": {"mode": "READONLY"}}
    assert synced(mirror) == SyncResult(3, 0, 0, "")
    assert synced(mirror) == SyncResult(0, 0, 0, "")
    theirs = get_registry("theirs")
    assert effective_config(theirs, SubjectName(".", "a")).level == "FULL"
    remote.entries = [entry("a", deleted=True), entry("a", 2, 2), entry("a", 3, 4)]
    remote.more = {}
    assert synced(mirror) == SyncResult(1, 1, 1, "")
    assert versions() == {("a", 1): (1, False), ("a", 2): (2, True), ("a", 3): (4, True), ("b", 1): (3, False)}
    assert list_subjects(theirs) == ["a"]
    assert effective_config(theirs, SubjectName(".", "a")).level == "BACKWARD"
    remote.entries.append(entry("b", 1, 3))
    assert synced(mirror) == SyncResult(0, 1, 0, "")
    assert list_subjects(theirs) == ["a", "b"]


def test_the_age_and_the_error_are_kept(mirror: int, remote: Remote) -> None:
    theirs = get_registry("theirs")
    state = mirror_of(theirs)
    assert state is not None
    assert (state.kind, state.url, state.age, state.error, state.is_stale) == ("remote", remote.url, None, "", True)
    remote.entries = [entry("a")]
    synced(mirror)
    good = list_mirrors()[0]
    assert (good.error, good.failing_since, good.is_stale, good.is_running) == ("", None, False, False)
    remote.broken = Told(500, b"")
    assert "status 500" in synced(mirror).error
    first = list_mirrors()[0]
    assert (first.synced_at, versions()) == (good.synced_at, {("a", 1): (1, True)})
    assert first.failing_since is not None
    synced(mirror)
    second = list_mirrors()[0]
    assert (second.failing_since, second.synced_at) == (first.failing_since, good.synced_at)
    remote.broken = None
    synced(mirror)
    third = list_mirrors()[0]
    assert (third.error, third.failing_since) == ("", None)
    assert third.synced_at is not None
    assert good.synced_at is not None
    assert third.synced_at > good.synced_at


def test_what_cannot_be_mirrored_is_said_beside_the_rest(mirror: int, remote: Remote) -> None:
    remote.entries = [entry("a"), entry("b", 1, 2, schema="{"), entry("c", 1, 1, schema=record("Other", "z"))]
    error = synced(mirror).error
    assert error.startswith("2 parts can't be mirrored: b version 1: ")
    assert "c version 1: schema id 1 is used by another schema (a version 1) here" in error
    state = list_mirrors()[0]
    assert (state.error, versions()) == (error, {("a", 1): (1, True)})
    assert state.synced_at is not None


@pytest.mark.parametrize("moved", ["the place", "the id"])
def test_a_remote_that_was_recreated_is_mirrored_again(mirror: int, remote: Remote, moved: str) -> None:
    refers = {"references": [{"name": "R1", "subject": "a", "version": 1}]}
    uses = '{"type": "record", "name": "U", "fields": [{"name": "r", "type": "R1"}]}'
    remote.entries = [entry("a"), entry("u", 1, 2, schema=uses, **refers)]
    assert synced(mirror).error == ""
    text = record("Anew", "x")
    remote.entries = [entry("a", 1, 7, text)] if moved == "the place" else [entry("b", 1, 1, text)]
    assert synced(mirror).error == ""
    name, schema_id = ("a", 7) if moved == "the place" else ("b", 1)
    assert versions() == {(name, 1): (schema_id, True)}
    assert get_version(get_registry("theirs"), SubjectName(".", name), 1).submitted == text


def test_what_is_written_about_a_mirror_stays_when_it_is_recreated(mirror: int, remote: Remote, system: Actor) -> None:
    remote.entries = [entry("a"), entry("b", 1, 2, schema=record("Other", "z"))]
    assert synced(mirror).error == ""
    for name in ("a", "b"):
        subject = SubjectName(".", name)
        set_note(registry="theirs", subject=subject, tags=["PII"], doc=name, by=system, expected="none")
    assert synced(mirror).error == ""
    remote.entries = [entry("a", 1, 7, record("Anew", "x"))]
    assert synced(mirror).error == ""
    assert {name.subject: note.doc for name, note in notes_of(get_registry("theirs")).items()} == {"a": "a"}


def test_a_mirror_is_read_only(mirror: int, remote: Remote, system: Actor) -> None:
    remote.entries = [entry("a")]
    remote.more = {"/mode/a": {"mode": "READWRITE"}}
    synced(mirror)
    name = SubjectName(".", "a")
    with pytest.raises(OperationNotPermitted, match="is a mirror of"):
        register_version(registry="theirs", subject=name, text=record("R", "new"), by=system)
    with pytest.raises(OperationNotPermitted):
        delete_subject(registry="theirs", subject=name, by=system)
    with pytest.raises(OperationNotPermitted):
        set_config(registry="theirs", subject=name, by=system, level="NONE")
    assert versions() == {("a", 1): (1, True)}


def test_one_worker_at_a_time(mirror: int, remote: Remote) -> None:
    Registry.objects.filter(pk=mirror).update(
        sync_tag="another", sync_lease_until=timezone.now() + datetime.timedelta(minutes=1)
    )
    assert sync_registry(registry_id=mirror) is None
    assert remote.server is not None
    assert remote.server.calls == []
    Registry.objects.filter(pk=mirror).update(sync_lease_until=timezone.now() - datetime.timedelta(seconds=1))
    assert synced(mirror).error == ""


def test_a_worker_that_lost_its_claim_writes_nothing_more(
    mirror: int, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.entries = [entry("a")]
    read = RemoteRegistry.read

    def read_slowly(self: RemoteRegistry) -> Any:
        found = read(self)
        Registry.objects.filter(pk=mirror).update(sync_tag="another")
        return found

    monkeypatch.setattr(RemoteRegistry, "read", read_slowly)
    assert "moved to another worker" in synced(mirror).error
    assert (versions(), list_mirrors()[0].error) == ({}, "")


def test_due_mirrors_are_queued_once(mirror: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert queue_due_syncs() == [mirror]
    assert queue_due_syncs() == []
    Registry.objects.filter(pk=mirror).update(next_sync_at=timezone.now())
    sent: list[int] = []
    monkeypatch.setattr("registry.subjects.tasks.sync_remote.delay", sent.append)
    queue_due_syncs_task()
    assert sent == [mirror]


def test_a_sync_leaves_no_trace_in_the_audit_where_nothing_changed(mirror: int, remote: Remote) -> None:
    remote.entries = [entry("a")]
    synced(mirror)
    before = AuditEvent.objects.count()
    assert AuditEvent.objects.filter(actor="mirror", table="subjects_schemaversion").count() == 1
    synced(mirror)
    remote.broken = Told(500, b"")
    synced(mirror)
    assert AuditEvent.objects.count() == before


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"url": "http://169.254.169.254"}, AddressRefused),
        ({"url": "http://[::1]:1"}, AddressRefused),
        ({"url": "http://anna:hunter2@a.example"}, InvalidInput),
        ({"url": "http://127.0.0.1", "secret": "none-such"}, InvalidSecret),
        ({"url": "http://127.0.0.1", "every_seconds": 1}, InvalidInput),
        ({"url": "http://no-such-host.invalid"}, RemoteUnavailable),
        ({"url": "http://127.0.0.1", "name": "dev"}, WrongState),
    ],
)
def test_what_cannot_be_mirrored_is_refused_at_once(
    registries: None, system: Actor, settings: Any, arguments: dict[str, Any], error: type[Exception]
) -> None:
    settings.EGRESS_ALLOW = ("127.0.0.1",)
    with pytest.raises(error):
        add_remote_registry(**{"name": "theirs", **arguments}, by=system)
    assert not Registry.objects.filter(kind="remote").exists()


def test_only_an_admin_adds_and_removes_mirrors(mirror: int, remote: Remote, person: Callable[[str], Actor]) -> None:
    with pytest.raises(NotAllowed):
        add_remote_registry(name="other", url=remote.url, by=person("steward"))
    with pytest.raises(NotAllowed):
        remove_remote_registry(name="theirs", by=person("steward"))
    with pytest.raises(WrongState):
        remove_remote_registry(name="dev", by=person("admin"))
    remote.entries = [entry("a")]
    synced(mirror)
    remove_remote_registry(name="theirs", by=person("admin"))
    with pytest.raises(RegistryNotFound):
        get_registry("theirs")
    with pytest.raises(RegistryNotFound):
        sync_registry(registry_id=mirror)


def test_the_command_adds_lists_and_removes(remote: Remote, registries: None) -> None:
    def said(*arguments: str) -> str:
        out = io.StringIO()
        call_command("mirror_registry", *arguments, stdout=out)
        return out.getvalue()

    remote.entries = [entry("a"), entry("b", 1, 2)]
    assert said("theirs", "--from", remote.url) == "theirs: 2 versions\n"
    assert said() == f"theirs: {remote.url}, 0 s old\n"
    remote.broken = Told(500, b"")
    synced(Registry.objects.get(name="theirs").pk)
    assert "UTC: 127.0.0.1" in said()
    assert said("theirs", "--remove") == "theirs removed\n"
    assert said() == ""
    with pytest.raises(CommandError, match="list 127"):
        said("other", "--from", "http://127.0.0.2")


def test_what_a_list_of_pages_left_out_is_asked_for_again(mirror: int, remote: Remote) -> None:
    remote.entries = [entry("a"), entry("b", 1, 2)]
    synced(mirror)
    every, remote.entries = remote.entries, remote.entries[:1]
    remote.instead = lambda call: answering(every)(call) if call.query.get("subjectPrefix") == "b" else None
    assert synced(mirror) == SyncResult(0, 0, 0, "")
    assert versions() == {("a", 1): (1, True), ("b", 1): (2, True)}
    remote.instead = None
    assert synced(mirror) == SyncResult(0, 0, 1, "")


def test_an_address_without_a_registry_empties_no_mirror(mirror: int, remote: Remote) -> None:
    remote.entries = [entry("a")]
    synced(mirror)
    remote.broken = Told(404, b"{}")
    assert "is not a schema registry" in synced(mirror).error
    assert versions() == {("a", 1): (1, True)}


def test_what_beat_sends_is_known_to_the_workers() -> None:
    from dashboard.celery import app

    app.loader.import_default_modules()
    sent = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert "registry.subjects.tasks.queue_due_syncs" in sent
    assert {*sent, "registry.subjects.tasks.sync_remote"} <= app.tasks.keys()


def test_a_schema_that_lives_under_another_number_now(mirror: int, remote: Remote) -> None:
    """Whichever of the two is deleted: a subject has one live version of a schema, so one has to go first."""
    text = record("R", "a")
    for first in (True, False, True):
        remote.entries = [entry("a", 1, 1, text, deleted=not first), entry("a", 2, 1, text, deleted=first)]
        assert synced(mirror).error == ""
        assert versions() == {("a", 1): (1, first), ("a", 2): (1, not first)}


@pytest.mark.django_db
def test_a_mirror_is_closed_by_rule_whatever_modes_are_stored(registries: None) -> None:
    row = Registry.objects.create(
        project="p", location="l", name="theirs", kind=Registry.REMOTE, url="https://r.example"
    )
    name = SubjectName(".", "orders")
    assert effective_mode(row, name).mode == "READONLY_OVERRIDE"
    Mode.objects.create(registry=row, mode="READWRITE")
    assert effective_mode(row, name).mode == effective_mode(row).mode == "READONLY_OVERRIDE"


ORDERS = SubjectName(".", "orders")
TEXT = json.dumps({"type": "record", "name": "Order", "fields": []})
CHECK = "/compatibility/subjects/orders/versions"


def told(status: int, value: object) -> Told:
    return Told(status, body=json.dumps(value).encode())


def asked(by: Actor) -> RemoteVerdict:
    found = ask_remote(get_registry("theirs"), ORDERS, text=TEXT, schema_type="AVRO", by=by)
    assert found is not None
    return found


@pytest.mark.requirement("CARD-2")
@pytest.mark.parametrize(
    ("answers", "verdict", "reason"),
    [
        ({CHECK: told(200, {"is_compatible": True})}, True, ""),
        ({CHECK: told(200, {"is_compatible": False, "messages": ["why"]})}, False, ""),
        ({f"{CHECK}/latest": told(200, {"is_compatible": False})}, False, ""),
        ({CHECK: told(200, {"is_compatible": "yes"})}, None, "no is_compatible"),
        ({CHECK: told(200, [])}, None, "no is_compatible"),
        ({CHECK: told(422, {"message": "Invalid schema"})}, None, "status 422: Invalid schema"),
        ({CHECK: told(401, "no")}, None, "status 401."),
        ({}, None, "status 404"),
    ],
)
def test_what_the_server_says(
    mirror: int, remote: Remote, system: Actor, answers: dict[str, Told], verdict: bool | None, reason: str
) -> None:
    calls: list[Call] = []

    def answer(call: Call) -> Told:
        calls.append(call)
        return answers.get(call.path.partition("?")[0], told(404, {"error_code": 404, "message": "HTTP 404 Not Found"}))

    remote.instead = answer
    found = asked(system)
    assert (found.is_compatible, found.where) == (verdict, remote.url.removeprefix("http://"))
    assert reason in found.reason
    assert calls[0].method == "POST"
    assert json.loads(calls[0].body) == {"schema": TEXT}
    assert found.to_dict(ours=True)["agrees"] is verdict


def test_a_server_that_may_not_or_can_not_be_asked_is_an_answer(
    mirror: int, remote: Remote, system: Actor, settings: Any
) -> None:
    settings.EGRESS_ALLOW = ()
    refused = asked(system)
    assert refused.is_compatible is None
    assert refused.reason
    assert ask_remote(get_registry("dev"), ORDERS, text=TEXT, schema_type="AVRO", by=system) is None
    with pytest.raises(NotSignedIn):
        ask_remote(get_registry("theirs"), ORDERS, text=TEXT, schema_type="AVRO", by=Actor("nobody", "ui"))


def test_the_page_asks_where_somebody_wants_it_and_the_api_too(
    mirror: int, remote: Remote, person: Callable[[str], Actor], api: Callable[[str], Client]
) -> None:
    calls: list[Call] = []

    def answer(call: Call) -> Told:
        calls.append(call)
        return told(200, {"is_compatible": False, "messages": ["<script>"]})

    remote.instead = answer
    person("reader")
    browser = signed_in("reader")
    page = "/ui/registries/theirs/subjects/orders/report"
    sent = {"text": TEXT, "schema_type": "AVRO"}
    before = browser.post(page, sent).content.decode()
    assert "This check sends the text to" in before
    assert not calls
    after = browser.post(page, {**sent, "ask": "registry"}).content.decode()
    assert "The registry disagrees" in after
    assert "&lt;script&gt;" in after
    body = {"registry": "theirs", "subject": "orders", "schema": TEXT}
    path = "/api/v1/compatibility-reports"
    assert "registry_answer" not in api("reader").post(path, body, content_type="application/json").json()
    found = api("reader").post(path, {**body, "askRegistry": True}, content_type="application/json").json()
    assert found["registry_answer"] == {
        "where": remote.url.removeprefix("http://"),
        "is_compatible": False,
        "agrees": False,
        "messages": ["<script>"],
        "reason": "",
    }
    local = api("reader").post(path, {**body, "registry": "dev", "askRegistry": True}, content_type="application/json")
    assert local.json()["registry_answer"] is None
    assert len(calls) == 2
