"""The demo: real programs write real input, which becomes sources and is scanned."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings

from registry.access.models import User
from registry.access.roles import Actor, system_actor
from registry.access.selectors import actor_of_user
from registry.access.services import issue_token
from registry.drift.services import add_source, queue_scan
from registry.drift.tasks import run_scan
from registry.errors import SchemadeskError, Unavailable, WrongState
from registry.promotions.services import request_promotion
from registry.subjects.names import SubjectName

TOPICS = ("orders", "customers")
SCAN_EVERY_SECONDS = 60
OnLine = Callable[[str], None]


def load_demo(*, registry_url: str, on_line: OnLine) -> None:
    """Write the topics and run the query twice, add both as sources, scan them, and ask for a promotion.

    A second run adds messages and a scan, and nothing twice. Raises Unavailable where broker or Spark is off.
    """
    from dashboard.demo.producers import produce  # late: the web process needs no PySpark to enqueue this
    from dashboard.demo.streaming_query import run_queries

    for name, value in (("KAFKA_BOOTSTRAP", settings.KAFKA_BOOTSTRAP), ("SPARK_REMOTE", settings.SPARK_REMOTE)):
        if not value:
            raise Unavailable(f"The demo needs {name}; start `up` without --without, or set it.")
    by = system_actor("demo", "command")
    produce(settings.KAFKA_BOOTSTRAP, registry_url, auth=_token(by), on_line=on_line)
    for topic in TOPICS:
        _scan("kafka_topic", topic, by, on_line, bootstrap=settings.KAFKA_BOOTSTRAP)
    checkpoint = settings.CHECKPOINT_ROOTS[0] / "demo"
    checkpoint.mkdir(parents=True, exist_ok=True)
    query = run_queries(settings.SPARK_REMOTE, settings.KAFKA_BOOTSTRAP, checkpoint, on_line=on_line)
    _scan("state_store", str(query), by, on_line)
    _ask_for_promotion(on_line)


def _token(by: Actor) -> tuple[str, str] | None:
    """Credentials of the steward for the producers, where one is there."""
    if not User.objects.filter(username="steward").exists():
        return None
    return "steward", issue_token(username="steward", name="demo producers", by=by)


def _scan(kind: str, name: str, by: Actor, on_line: OnLine, *, bootstrap: str = "") -> None:
    try:
        source = add_source(
            registry="", kind=kind, name=name, bootstrap=bootstrap, every_seconds=SCAN_EVERY_SECONDS, by=by
        )
    except WrongState as error:
        on_line(error.message)
        return
    run_scan.delay_on_commit(queue_scan(source_id=source, by=by))
    on_line(f"{name} is a source now, scanned every {SCAN_EVERY_SECONDS} s")


def _ask_for_promotion(on_line: OnLine) -> None:
    steward = User.objects.filter(username="steward").first()
    if steward is None:
        return
    try:
        number = request_promotion(
            source="dev",
            target="prod",
            subject=SubjectName(".", "orders-value"),
            version=1,
            reason="First release of orders.",
            by=actor_of_user(steward, door="command"),
        )
    except SchemadeskError as error:
        on_line(error.message)
        return
    on_line(f"steward asks to promote orders-value 1 to prod: request {number} waits for approver")
