"""Single interleavings that a race would seldom meet, and the retry after a deadlock."""

from __future__ import annotations

import time

import pytest
from django.db import OperationalError, connection, transaction
from psycopg.errors import DeadlockDetected, SerializationFailure, UndefinedTable

from registry.access.roles import Actor
from registry.subjects.models import Registry, Schema
from registry.subjects.names import SubjectName
from registry.subjects.selectors import get_version
from registry.subjects.services import register_version, set_config
from registry.subjects.services.locks import RETRIES, lock_policy, retried, retry_deadlocks
from tests.subjects.client_process import Call
from tests.subjects.clients import Clients
from tests.waiting import until

PLAIN = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
UNSORTED = '{"type":"record","name":"Order","fields":[{"name":"key","type":"long"}],"z":1,"a":2}'
SORTED = '{"type":"record","name":"Order","fields":[{"name":"key","type":"long"}],"a":2,"z":1}'
ORDERS = SubjectName(".", "orders")


def wait_for_a_waiter() -> None:
    """Until another connection waits for a lock of ours."""

    def waits() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
            )
            return cursor.fetchone() != (0,)

    until(waits)


@pytest.mark.requirement("GOO-3")
def test_a_registration_sees_all_of_a_config_or_nothing(
    transactional_db: None, registries: None, system: Actor, clients: Clients
) -> None:
    """It began before the change and waits for it: not taken under the new level in the old form."""
    register_version(registry="dev", subject=ORDERS, text=PLAIN, by=system)
    with transaction.atomic():
        set_config(registry="dev", subject=ORDERS, level="NONE", normalize=True, by=system)
        clients.begin([[Call("register_version", {"registry": "dev", "subject": ORDERS, "text": UNSORTED})]])
        wait_for_a_waiter()
    (outcome,) = clients.outcomes()
    assert (outcome.error, outcome.value.version) == ("", 2)
    assert get_version(Registry.objects.get(name="dev"), ORDERS, 2).schema.text == SORTED


@pytest.mark.requirement("GOO-1")
def test_a_registration_that_is_undone_leaves_the_id_to_the_one_that_waits(
    transactional_db: None, registries: None, system: Actor, clients: Clients
) -> None:
    class Undo(Exception):
        pass

    with pytest.raises(Undo), transaction.atomic():
        register_version(registry="dev", subject=ORDERS, text=PLAIN, by=system)
        other = SubjectName(".", "other")
        clients.begin([[Call("register_version", {"registry": "dev", "subject": other, "text": PLAIN})]])
        wait_for_a_waiter()
        raise Undo
    (outcome,) = clients.outcomes()
    assert (outcome.value.version, outcome.value.schema_id) == (1, 1)
    assert Schema.objects.count() == 1


@pytest.mark.requirement("GOO-6")
def test_a_permanent_deletion_waits_for_registrations_and_soft_ones_do_not(
    transactional_db: None, registries: None, system: Actor, clients: Clients
) -> None:
    """It changes settings and takes schemas away, so nobody may be half-way through using them."""
    for name in ("orders", "other"):
        register_version(registry="dev", subject=SubjectName(".", name), text=PLAIN, by=system)
    other = {"registry": "dev", "subject": SubjectName(".", "other")}
    with transaction.atomic():
        lock_policy(Registry.objects.get(name="dev"))
        clients.begin([[Call("delete_subject", other), Call("delete_subject", {**other, "permanent": True})]])
        wait_for_a_waiter()
        began = time.monotonic()
    soft, permanent = clients.outcomes()
    assert soft.value == permanent.value == [1]
    assert soft.ended < began < permanent.ended


def broken_by(cause: type[Exception], times: int) -> tuple[list[int], object]:
    """A service that the database refuses a few times, and the list of its calls."""
    calls: list[int] = []

    def service() -> str:
        calls.append(len(calls))
        if len(calls) <= times:
            raise OperationalError from cause("broken")
        return "done"

    return calls, service


@pytest.mark.parametrize("cause", [DeadlockDetected, SerializationFailure])
@pytest.mark.parametrize("wrap", [retried, retry_deadlocks])
def test_a_service_is_tried_again_after_a_deadlock(transactional_db: None, cause: type[Exception], wrap) -> None:
    calls, service = broken_by(cause, RETRIES)
    assert wrap(service)() == "done"
    assert len(calls) == RETRIES + 1
    calls, service = broken_by(cause, RETRIES + 1)
    with pytest.raises(OperationalError):
        wrap(service)()
    assert len(calls) == RETRIES + 1


def test_other_failures_are_told_at_once(transactional_db: None) -> None:
    calls, service = broken_by(UndefinedTable, 1)
    with pytest.raises(OperationalError):
        retried(service)()
    assert len(calls) == 1


def test_inside_a_transaction_it_is_for_the_outermost_to_try_again(transactional_db: None) -> None:
    """The whole transaction is lost with a deadlock, not only the service's part."""
    calls, service = broken_by(DeadlockDetected, 1)
    with pytest.raises(OperationalError), transaction.atomic():
        retried(service)()
    assert len(calls) == 1

    @retried
    def outermost() -> str:
        return retried(service)()

    calls.clear()
    assert outermost() == "done"
    assert len(calls) == 2
