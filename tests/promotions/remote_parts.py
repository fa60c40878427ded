"""What tests of remote environments share: the request, its worker, and what is to be seen of both sides."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any

from django.db import connection

from registry.access.roles import Actor
from registry.promotions import services
from registry.promotions.models import ApplyStep, Environment, PromotionRequest, Release
from registry.promotions.services.mirrored import fresh
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName
from registry.subjects.services import register_version, set_config
from registry.subjects.services.remotes import add_remote_registry
from tests.promotions.parts import approve_shown
from tests.promotions.worker_process import work
from tests.waiting import PATIENCE

NAME = "theirs"
SECRET = "elsewhere"
ADDRESS = {"type": "record", "name": "Address", "namespace": "shop", "fields": [{"name": "city", "type": "string"}]}
CUSTOMER = {
    "type": "record",
    "name": "Customer",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "home", "type": "shop.Address"}],
}


def secret_environment(token: str) -> dict[str, str]:
    """The variable that holds the remote's token."""
    return {"SCHEMADESK_SECRET_ELSEWHERE": f"127.0.0.1 {token}"}


def make_environment(url: str, by: Actor, *, secret: str = SECRET) -> Environment:
    """The remote registry as the last environment."""
    number = add_remote_registry(name=NAME, url=url, by=by, secret=secret)
    services.ensure_environment(registry_id=number, position=9, by=by)
    made = Environment.objects.select_related("registry").get(registry_id=number)
    fresh(made)
    return made


def register(subject: str, schema: object, by: Actor, **more: Any) -> None:
    """A version in `dev`."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    register_version(registry="dev", subject=SubjectName(".", subject), text=text, by=by, **more)


def ask_for_customers(prefix: str, cast: dict[str, Actor]) -> int:
    """A request with three steps: an address, a customer that refers to it, and the customer's config; approved."""
    from registry.formats.base import Reference

    address, customer = f"{prefix}-address", f"{prefix}-customer"
    register(address, ADDRESS, cast["steward"])
    register(customer, CUSTOMER, cast["steward"], references=(Reference("shop.Address", address, 1),))
    set_config(registry="dev", subject=SubjectName(".", customer), level="FULL", by=cast["steward"])
    number = services.request_promotion(
        source="dev", target=NAME, subject=SubjectName(".", customer), by=cast["steward"], with_config=True
    )
    assert approve_shown(request_id=number, by=cast["approver"]) == "approved"
    return number


@contextmanager
def worker(request_id: int, token: str) -> Iterator[tuple[BaseProcess, Any]]:
    """A worker's process for a request, and the pipe on which it says the state that it came to."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.promotions.worker_process"])
    database = {name: connection.settings_dict[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, request_id, database, secret_environment(token)), daemon=True)
    process.start()
    theirs.close()
    try:
        yield process, ours
    finally:
        if process.is_alive():
            process.kill()
        process.join(PATIENCE)


def kill(process: BaseProcess) -> None:
    """`kill -9`, and it is gone."""
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL


def let_leases_end(request_id: int) -> None:
    """As if the time of the dead worker's leases were over."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE promotions_promotionrequest SET claim_until = now() - interval '1 second' WHERE id = %s",
            [request_id],
        )
    Registry.objects.filter(name=NAME).update(sync_lease_until=None)


def states_of(request_id: int) -> tuple[str, list[str]]:
    """The state of a request and those of its steps."""
    steps = ApplyStep.objects.filter(request_id=request_id).order_by("position")
    return PromotionRequest.objects.get(pk=request_id).state, [step.state for step in steps]


def failure_of(request_id: int) -> str:
    """Why a request wasn't applied."""
    return PromotionRequest.objects.get(pk=request_id).failure


def releases_of(request_id: int) -> list[tuple[str, int, bool]]:
    """Subject and number of each release of a request, and whether the mirror's version stands with it."""
    rows = Release.objects.filter(request_id=request_id).order_by("subject_name")
    return [(row.subject_name, row.version_number, row.version_id is not None) for row in rows]
