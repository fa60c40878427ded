"""A worker that dies while it writes to a registry elsewhere: what it left is seen, and resumed; nothing is done twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from registry.access.http_client import OutgoingClient
from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.promotions import services
from registry.promotions.apply.execution import apply_due, claim_due
from registry.subjects.versions.qualified_names import SubjectName
from tests.promotions.factories import approve_shown
from tests.promotions.remote_registry import (
    AFTER,
    BEFORE,
    NAME,
    Instance,
    Proxy,
    ask_for_customers,
    failure_of,
    kill,
    let_leases_end,
    make_environment,
    proxy_to,
    releases_of,
    second_instance,
    secret_environment,
    states_of,
    worker,
)
from tests.waiting import PATIENCE

Cast = Callable[[str], Actor]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.requirement("CARD-4", "ORA-1"),
]


@pytest.fixture(scope="module")
def instance(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Instance]:
    with django_db_blocker.unblock(), second_instance(tmp_path_factory.mktemp("elsewhere")) as found:
        yield found


@pytest.fixture
def proxy(instance: Instance, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    settings.EGRESS_ALLOW = ("127.0.0.1",)
    for name, value in secret_environment(instance.token).items():
        monkeypatch.setenv(name, value)
    with proxy_to(instance.port) as found:
        yield found


@pytest.fixture
def cast(person: Cast) -> dict[str, Actor]:
    return {name: person(name) for name in ("steward", "approver", "approver2", "admin")}


@pytest.fixture(autouse=True)
def no_call_in_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for another server holds no lock of ours meanwhile."""
    call = OutgoingClient.call

    def checked(self: OutgoingClient, *arguments: Any, **options: Any) -> Any:
        assert not connection.in_atomic_block
        return call(self, *arguments, **options)

    monkeypatch.setattr(OutgoingClient, "call", checked)


def test_killed_at_every_request_it_is_resumed_and_nothing_is_done_twice(
    proxy: Proxy, instance: Instance, cast: dict[str, Actor], system: Actor
) -> None:
    make_environment(proxy.url, system)
    whole = applied_undisturbed(proxy, instance, cast)
    writes = [number for number, (method, path) in enumerate(whole, 1) if is_write(method, path)]
    assert len(writes) == 3
    mirroring = next(number for number, (_, path) in enumerate(whole, 1) if path == "/contexts")
    asked = [*range(1, mirroring + 1), len(whole)]  # all of the steps, and the ends of reading it back as a mirror
    places = [*((number, BEFORE) for number in asked), *((number, AFTER) for number in writes)]
    seen = set()
    for number, where in places:
        prefix = f"at-{number}-{where}"
        request_id = ask_for_customers(prefix, cast)
        assert services.apply(request_id=request_id, by=cast["approver"]) == "applying"
        proxy.begin(number, where)
        with worker(request_id, instance.token) as (process, _):
            assert proxy.stalled.wait(PATIENCE), (number, where)
            kill(process)
        proxy.release()
        state, steps = states_of(request_id)
        assert state == "applying", "what is half done is shown as such"
        seen.add(tuple(steps))
        assert request_id not in claim_due(), "its lease isn't over yet"
        let_leases_end(request_id)
        assert request_id in claim_due()
        assert apply_due(request_id=request_id) == "applied", (number, where, failure_of(request_id))
        assert states_of(request_id) == ("applied", ["done", "done", "done"])
        check_remote(instance, prefix)
        assert releases_of(request_id) == [(f"{prefix}-address", 1, True), (f"{prefix}-customer", 1, True)]
        clear(instance, prefix)
    assert {("running", "waiting", "waiting"), ("done", "running", "waiting"), ("done", "done", "running")} <= seen
    assert ("done", "done", "done") in seen, "between the last step and the release"


def is_write(method: str, path: str) -> bool:
    return method == "PUT" or (method == "POST" and path.endswith("/versions"))


def applied_undisturbed(proxy: Proxy, instance: Instance, cast: dict[str, Actor]) -> list[tuple[str, str]]:
    """What a worker asks the remote for when nothing comes in between."""
    request_id = ask_for_customers("whole", cast)
    assert services.apply(request_id=request_id, by=cast["approver"]) == "applying"
    proxy.begin()
    with worker(request_id, instance.token) as (_, pipe):
        assert pipe.poll(PATIENCE)
        assert pipe.recv() == "applied"
    found = list(proxy.asked)
    check_remote(instance, "whole")
    clear(instance, "whole")
    return found


def clear(instance: Instance, prefix: str) -> None:
    """Away with it: a mirror asks for the settings of every subject that is there."""
    for subject in (f"{prefix}-customer", f"{prefix}-address"):
        for permanent in ("false", "true"):
            instance.call("DELETE", f"/subjects/{subject}?permanent={permanent}")


def check_remote(instance: Instance, prefix: str) -> None:
    """Each was written once, as it was approved."""
    assert instance.versions(f"{prefix}-address") == [1]
    assert instance.versions(f"{prefix}-customer") == [1]
    found = instance.call("GET", f"/subjects/{prefix}-customer/versions/1")
    assert found["references"] == [{"name": "shop.Address", "subject": f"{prefix}-address", "version": 1}]
    assert instance.call("GET", f"/config/{prefix}-customer")["compatibilityLevel"] == "FULL"


def test_two_workers_at_once_do_it_once(
    proxy: Proxy, instance: Instance, cast: dict[str, Actor], system: Actor
) -> None:
    make_environment(proxy.url, system)
    request_id = ask_for_customers("two", cast)
    services.apply(request_id=request_id, by=cast["approver"])
    proxy.begin(2)
    with worker(request_id, instance.token) as (_, first):
        assert proxy.stalled.wait(PATIENCE)
        with worker(request_id, instance.token) as (_, second):
            assert second.poll(PATIENCE)
            assert second.recv() == "", "another worker has it"
        assert len(proxy.asked) == 2
        proxy.where = AFTER  # the request that was stopped is dropped: the first worker's step fails
        proxy.release()
        assert first.poll(PATIENCE)
        assert first.recv() == "failed"
    assert services.resume(request_id=request_id, by=cast["approver2"]) == "applying"
    assert apply_due(request_id=request_id) == "applied"
    check_remote(instance, "two")


def test_a_worker_whose_lease_is_over_writes_no_more(
    proxy: Proxy, instance: Instance, cast: dict[str, Actor], system: Actor
) -> None:
    make_environment(proxy.url, system)
    request_id = ask_for_customers("late", cast)
    services.apply(request_id=request_id, by=cast["approver"])
    proxy.begin(1, AFTER)
    with worker(request_id, instance.token) as (_, first):
        assert proxy.stalled.wait(PATIENCE)
        let_leases_end(request_id)
        proxy.stall_at = 0
        assert apply_due(request_id=request_id) == "applied"
        asked = len(proxy.asked)
        proxy.release()
        assert first.poll(PATIENCE)
        assert first.recv() == ""
    assert len(proxy.asked) == asked
    assert states_of(request_id) == ("applied", ["done", "done", "done"])
    check_remote(instance, "late")


@pytest.mark.parametrize("step", [0, 1, 2])
def test_resumed_after_the_remote_failed(
    proxy: Proxy, instance: Instance, cast: dict[str, Actor], system: Actor, step: int
) -> None:
    make_environment(proxy.url, system)
    prefix = f"five-{step}"
    request_id = ask_for_customers(prefix, cast)
    services.apply(request_id=request_id, by=cast["approver"])
    written: list[str] = []

    def broken(method: str, path: str) -> tuple[int, bytes] | None:
        if not is_write(method, path):
            return None
        written.append(path)
        return (500, b'{"error_code": 50001, "message": "the disk is full"}') if len(written) == step + 1 else None

    proxy.instead = broken
    assert apply_due(request_id=request_id) == "failed"
    assert states_of(request_id)[1] == [*["done"] * step, "failed", *["waiting"] * (2 - step)]
    failure = failure_of(request_id)
    assert f"Step {step + 1} of 3" in failure
    assert "the disk is full" in failure
    assert services.resume(request_id=request_id, by=cast["approver2"]) == "applying"
    assert apply_due(request_id=request_id) == "applied"
    check_remote(instance, prefix)
    assert len(written) == 4
    events = AuditEvent.objects.filter(table="promotions_applystep", after__request_id=request_id)
    assert {event.actor for event in events} == ({"approver", "approver2"})
    whys = list(events.filter(after__position=step).order_by("pk").values_list("actor", "why"))
    begun = f"apply request {request_id}, step {step + 1}: "
    assert [who for who, why in whys if why.endswith(", failed") and why.startswith(begun)] == ["approver"]
    assert [who for who, why in whys if why.endswith(", done") and why.startswith(begun)] == ["approver2"]


def test_a_roll_back_that_was_cut_off_after_it_was_written(
    proxy: Proxy, instance: Instance, cast: dict[str, Actor], system: Actor
) -> None:
    for text in ('"string"', '"bytes"'):
        instance.call("POST", "/subjects/back/versions", {"schema": text})
    make_environment(proxy.url, system)
    subject = SubjectName(".", "back")
    request_id = services.request_roll_back(
        environment=NAME, subject=subject, version=1, by=cast["steward"], reason="bytes were a mistake"
    )
    approve_shown(request_id=request_id, by=cast["approver"], comment="agreed")
    assert services.apply(request_id=request_id, by=cast["approver"]) == "applying"
    proxy.begin(3, AFTER)
    with worker(request_id, instance.token) as (process, _):
        assert proxy.stalled.wait(PATIENCE)
        kill(process)
    assert is_write(*proxy.asked[-1])
    proxy.release()
    assert instance.versions("back") == [1, 2, 3]
    let_leases_end(request_id)
    assert apply_due(request_id=request_id) == "applied", failure_of(request_id)
    assert instance.versions("back") == [1, 2, 3]
    assert instance.call("GET", "/subjects/back/versions/3")["schema"] == '"string"'
    assert releases_of(request_id) == [("back", 3, True)]
