"""What a client process runs: calls of services, each process with a database connection of its own.

Importing this module sets Django up, so that a fork server does that once for all clients.
"""

from __future__ import annotations

import os
import random
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any

import django
from django.conf import settings

if not settings.configured:  # in the fork server, not in pytest
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    os.environ.setdefault("SECRET_KEY", "for clients that sign nothing")
    django.setup()

from django.db import OperationalError, connection

from registry.access.roles import system_actor
from registry.errors import SchemadeskError
from registry.subjects import services

PATIENCE = 180  # seconds for all clients to come to the barrier
#: the longest pause before a statement, by lot for each client: the slow ones give the others time in between
PACES = (0, 0.002, 0.02)


@dataclass(frozen=True)
class Call:
    """A service of `registry.subjects.services` by its name, and its arguments but `by`."""

    service: str
    arguments: Mapping[str, Any] = field(hash=False)

    def __str__(self) -> str:
        return f"{self.service}({', '.join(f'{name}={value}' for name, value in self.arguments.items())})"


@dataclass(frozen=True)
class Outcome:
    """What a call gave, and when it began and ended on the clock that all processes share.

    `error` is the name of the product's error that refused it; `crash` the traceback of any other.
    """

    call: Call
    value: Any
    error: str
    crash: str
    began: float
    ended: float

    def __str__(self) -> str:
        return f"{self.began:.4f}–{self.ended:.4f} {self.call} → {self.crash or self.error or self.value}"


def run(pipe: Connection, barrier: Barrier, database: dict[str, Any]) -> None:
    """Take (seed, calls) from the pipe until None comes; run the calls together with the other clients.

    The answer is the outcomes and the deadlocks that PostgreSQL had to break, also where the service tried again.
    """
    connection.settings_dict.update(database)
    # So many processes connect at once that some wait longer than a pool lets a request wait.
    connection.settings_dict["OPTIONS"].pop("pool", None)
    while (task := pipe.recv()) is not None:
        seed, calls = task
        connection.ensure_connection()
        barrier.wait(PATIENCE)
        deadlocks: list[str] = []
        with connection.execute_wrapper(_watch(random.Random(seed), deadlocks)):
            outcomes = [perform(call) for call in calls]
        pipe.send((outcomes, deadlocks))
    connection.close()


def perform(call: Call) -> Outcome:
    """Call the service as the product itself."""
    value, error, crash = None, "", ""
    began = time.monotonic()
    try:
        value = getattr(services, call.service)(**call.arguments, by=system_actor("tests", channel="command"))
    except SchemadeskError as refusal:
        error = type(refusal).__name__
    except Exception:  # noqa: BLE001 - told to the test
        crash = traceback.format_exc()
    return Outcome(call, value, error, crash, began, time.monotonic())


def _watch(dice: random.Random, deadlocks: list[str]) -> Callable[..., Any]:
    """Pauses before some statements, so that other seeds give other interleavings; notes deadlocks."""
    longest_pause = dice.choice(PACES)

    def execute(run_statement: Callable[..., Any], *statement: Any) -> Any:
        if dice.random() < 0.3:
            time.sleep(dice.uniform(0, longest_pause))
        try:
            return run_statement(*statement)
        except OperationalError as error:
            deadlocks.append(f"{statement[0]}: {error}")
            raise

    return execute
