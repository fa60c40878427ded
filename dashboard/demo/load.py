"""The demo: real programs write real input, which is then added as sources and scanned."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError

from dashboard.runtime.layout import write_private
from registry.access.models import User
from registry.access.roles import Actor, system_actor
from registry.access.selectors import actor_of_user
from registry.access.services import issue_token
from registry.drift.services import add_source, cluster_at, queue_scan
from registry.drift.tasks import run_scan
from registry.errors import SchemadeskError, Unavailable, WrongState
from registry.promotions.services import request_promotion
from registry.subjects.versions.qualified_names import SubjectName

TOPICS = ("orders", "customers")
SCAN_EVERY_SECONDS = 60
OnLine = Callable[[str], None]
_FAILURE: Final = "demo-failure"
_FAILURE_SECONDS: Final = 86_400


def demo_refusal() -> str:
    """Say why the demo can't be loaded on this server; "" if it can."""
    for name, value in (("KAFKA_BOOTSTRAP", settings.KAFKA_BOOTSTRAP), ("SPARK_REMOTE", settings.SPARK_REMOTE)):
        if not value:
            return f"The demo needs {name}. Start `up` without --without, or set {name}."
    return ""


def load_demo(*, registry_url: str, on_line: OnLine) -> None:
    """Write the topics, simulate a day in the shop, run the query twice, add and scan the sources, request a promotion.

    A second run adds messages and a scan, but duplicates nothing. A failure is stored for `demo_failure`. Raises
    Unavailable without a broker or Spark.
    """
    lines = [""]

    def tell(line: str) -> None:
        lines.append(line)
        on_line(line)

    _keep_failure("")
    try:
        _load(registry_url, tell)
    except Exception as error:
        why = error.message if isinstance(error, SchemadeskError) else f"{type(error).__name__}: {error}"
        _keep_failure(f"{why.removesuffix('.')}. Before that: {lines[-1]}." if lines[-1] else why)
        raise


def demo_failure() -> str:
    """Return why the last load of the demo failed, for a day; "" if it didn't, or without Valkey."""
    try:
        return str(cache.get(_FAILURE, ""))
    except (RedisError, OSError):
        return ""


def _keep_failure(why: str) -> None:
    with suppress(RedisError, OSError):  # Valkey may be what failed, and must not hide that error
        cache.set(_FAILURE, why, timeout=_FAILURE_SECONDS)


def _load(registry_url: str, on_line: OnLine) -> None:
    # imported here, because the web process needs no PySpark to enqueue this
    from confluent_kafka.schema_registry.error import SchemaRegistryError

    from dashboard.demo.producers import produce
    from dashboard.demo.streaming_query import run_queries

    if refusal := demo_refusal():
        raise Unavailable(refusal)
    by = system_actor("demo", "command")
    try:
        produce(settings.KAFKA_BOOTSTRAP, registry_url, auth=_token(by), on_line=on_line)
    except SchemaRegistryError as error:
        why = str(error.error_message).partition("\n")[0][:300].removesuffix(".")
        raise WrongState(
            f"The registry refused a schema of the demo: {why}. The rest of the demo was left out: sources, shop, query "
            "and promotion."
        ) from error
    cluster = cluster_at(bootstrap=settings.KAFKA_BOOTSTRAP, by=by)
    _scan("kafka", "orders and customers", by, on_line, cluster=cluster, include=TOPICS)
    for name, connector in _open_shop(by, on_line, os.environ).items():
        _scan("debezium", name, by, on_line, cluster=cluster, connector=connector)
    checkpoint = settings.CHECKPOINT_ROOTS[0] / "demo"
    checkpoint.mkdir(parents=True, exist_ok=True)
    query = run_queries(settings.SPARK_REMOTE, settings.KAFKA_BOOTSTRAP, checkpoint, on_line=on_line)
    _scan("state_store", str(query), by, on_line)
    _ask_for_promotion(on_line)


def _token(by: Actor) -> tuple[str, str] | None:
    """Return the steward's credentials for the producers, if the account exists."""
    if not User.objects.filter(username="steward").exists():
        return None
    return "steward", issue_token(username="steward", name="demo producers", by=by)


def _open_shop(by: Actor, on_line: OnLine, environment: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
    """Return the shop connectors' sources by name; none unless `up` runs Kafka Connect and PostgreSQL."""
    from dashboard.demo.shop import CONNECTORS, ShopEnvironment, write_shop

    if "DEMO_SHOP_SERVER" not in environment or settings.SECRETS_DIR is None:
        on_line("shop omitted: it needs the Kafka Connect and PostgreSQL that `up` runs")
        return {}
    around = ShopEnvironment(
        server=environment["DEMO_SHOP_SERVER"],
        connect_url=environment["CONNECT_URL"],
        secrets=Path(environment["DEMO_SHOP_SECRETS"]),
        endpoint=environment["DEMO_SHOP_ENDPOINT"],
        token=issue_token(username="steward", name="demo connector", by=by),
    )
    login = write_shop(around, on_line)
    address = urlsplit(around.connect_url)
    secrets = {
        "demo-connect": f"http://{address.hostname}:{address.port} {unquote(address.password or '')}",
        "demo-shop": f"http://{address.hostname}:{login.port} {login.password}",
    }
    for name, text in secrets.items():
        write_private(settings.SECRETS_DIR / name, text)
    shared = {
        "connect_url": f"http://{address.hostname}:{address.port}",
        "connect_user": unquote(address.username or ""),
        "connect_secret": "demo-connect",
        "database_host": str(address.hostname),
        "database_port": login.port,
        "database_name": login.database,
        "database_user": login.user,
        "database_secret": "demo-shop",
        "database_tls": False,
    }
    return {
        f"the shop's tables, as {converter}": {**shared, "name": prefix} for prefix, converter in CONNECTORS.items()
    }


def _scan(
    kind: str,
    name: str,
    by: Actor,
    on_line: OnLine,
    *,
    cluster: str = "",
    include: tuple[str, ...] = (),
    connector: Mapping[str, Any] | None = None,
) -> None:
    try:
        source = add_source(
            registry="",
            kind=kind,
            name=name,
            cluster=cluster,
            include=include,
            connector=connector,
            every_seconds=SCAN_EVERY_SECONDS,
            by=by,
        )
    except WrongState as error:
        on_line(error.message)
        return
    run_scan.delay_on_commit(queue_scan(source_id=source, by=by))
    on_line(f"added source {name}, scanned every {SCAN_EVERY_SECONDS} s")


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
            by=actor_of_user(steward, channel="command"),
        )
    except SchemadeskError as error:
        on_line(error.message)
        return
    on_line(f"steward requested promotion of orders-value version 1 to prod: request {number} is waiting for approver")
