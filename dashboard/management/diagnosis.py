"""What `manage.py doctor` checks: each part of an installation, with what is wrong and how to mend it.

Nothing is changed. A part that can't be asked is "not checked", never "ok".
"""

from __future__ import annotations

import shutil
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

import psycopg
from celery.exceptions import CeleryError
from django.conf import settings
from django.core.cache import cache
from django.core.checks import WARNING, run_checks
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from dashboard.celery import app
from dashboard.database.base import is_pooled, notifying_parameters
from dashboard.runtime.programs import QUEUES
from registry.audit.hash_chain import tail, truncation
from registry.drift.models import Cluster
from registry.drift.sources.kafka_connection import connect
from registry.errors import SchemadeskError
from registry.notifications.models import JobRun
from registry.subjects.policy.registries import list_mirrors

State = Literal["ok", "warning", "fails", "not checked"]
SECONDS: Final = 3.0  # for a server to answer
OLDEST_SERVER: Final = 150_000  # PostgreSQL's server_version_num
SKEW: Final = 2.0  # seconds between this host's clock and the database's
UNSEALED: Final = timedelta(minutes=5)
BEAT_LATE: Final = timedelta(minutes=5)
LEAST_FREE: Final = 0.05  # of a disk
#: tables that the application's role must not change
UNCHANGEABLE: Final = ("audit_auditevent",)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A part: its state, what was found, and the cure where something is wrong."""

    part: str
    state: State
    sentence: str
    cure: str = ""


def diagnose() -> Iterator[Diagnosis]:
    """Yield a diagnosis or more for each part; the database first, since most others need it."""
    yield from _settings()
    try:
        yield from _database()
    except DatabaseError as error:
        problem = str(error).strip().partition("\n")[0]
        yield Diagnosis(
            "database", "fails", f"It doesn't answer: {problem}", "Start PostgreSQL, or correct DATABASE_URL."
        )
        for part in NEED_DATABASE:
            yield Diagnosis(part, "not checked", "The database doesn't answer.")
    else:
        yield from _by_the_database()
    for check in (_notifications, _valkey, _workers, _spark, _mail, _files):
        yield from check()


def _by_the_database() -> Iterator[Diagnosis]:
    for part, check in NEED_DATABASE.items():
        try:
            yield from check()
        except DatabaseError as error:  # such as a table that `migrate` has yet to make
            yield Diagnosis(part, "not checked", str(error).strip().partition("\n")[0])


def _settings() -> Iterator[Diagnosis]:
    found = [] if settings.UNDER_UP else run_checks(include_deployment_checks=True)
    silenced = set(settings.SILENCED_SYSTEM_CHECKS)
    wrong = [item for item in found if item.level >= WARNING and item.id not in silenced]
    for item in wrong:
        yield Diagnosis(
            "settings", "warning", f"{item.msg} ({item.id})", item.hint or "See docs/reference/settings.md."
        )
    if not wrong:
        yield Diagnosis("settings", "ok", "check --deploy finds nothing.")


def _database() -> Iterator[Diagnosis]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version_num')::int, current_setting('server_version'), current_user,"
            " (SELECT rolsuper FROM pg_roles WHERE rolname = current_user), clock_timestamp(),"
            " pg_is_in_recovery(), current_setting('random_page_cost')::float"
        )
        number, version, role, is_superuser, now, is_replica, page_cost = cursor.fetchone()
        skew = abs((timezone.now() - now).total_seconds())
        executor = MigrationExecutor(connection)
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
        changeable = []
        for table in () if pending else UNCHANGEABLE:
            cursor.execute("SELECT has_table_privilege(%s, 'INSERT, UPDATE, DELETE, TRUNCATE')", [table])
            changeable += [table] if cursor.fetchone()[0] else []
    findings = (
        (number < OLDEST_SERVER, "warning", f"PostgreSQL {version} is older than 15.", "Upgrade PostgreSQL."),
        (is_replica, "fails", "It is a replica, which can't be written.", "Point DATABASE_URL at the primary."),
        (bool(pending), "fails", f"{len(pending)} migrations are missing.", "Run `migrate` as the tables' owner."),
        (is_superuser, "warning", f"The role {role} is a superuser, so it can change the audit.",
         "Use a role of its own for DATABASE_URL (deploy/roles.sh)."),
        (bool(changeable) and not is_superuser, "warning", f"The role {role} can change {', '.join(changeable)}.",
         "Run `migrate` again, as the tables' owner; name the role in DATABASE_APPLICATION_ROLE."),
        (skew > SKEW, "warning", f"Its clock and this host's differ by {skew:.0f} s.", "Synchronise both (NTP)."),
        (page_cost > 2, "warning", f"random_page_cost is {page_cost:g}: it reads whole tables instead of an index.",
         "Set it to 1.1 if the data is on SSDs."),
    )  # fmt: skip
    wrong = [Diagnosis("database", state, text, cure) for is_so, state, text, cure in findings if is_so]  # type: ignore[arg-type]
    yield from wrong or [Diagnosis("database", "ok", f"PostgreSQL {version}, all migrations, role {role}.")]


def _notifications() -> Iterator[Diagnosis]:
    if not settings.HOT_PATH:
        return
    cure = "Set DATABASE_DIRECT_URL to PostgreSQL's own address."
    try:
        with psycopg.connect(**notifying_parameters(), autocommit=True) as own:
            if is_pooled(own):
                text = "A connection pooler loses them, so repeated requests aren't answered before Django."
                yield Diagnosis("notifications", "warning", text, cure)
            else:
                yield Diagnosis("notifications", "ok", "They come from PostgreSQL itself.")
    except psycopg.OperationalError as error:
        problem = str(error).strip().partition("\n")[0]
        yield Diagnosis("notifications", "fails", f"The server that sends them doesn't answer: {problem}", cure)


def _audit() -> Iterator[Diagnosis]:
    if problem := truncation():
        yield Diagnosis("audit", "fails", problem, "Run `verify_audit` with the heads that you anchored.")
        return
    unsealed, oldest = tail()
    if oldest and timezone.now() - oldest > UNSEALED:
        sentence = f"{unsealed:,} events aren't sealed, the oldest of {oldest:%Y-%m-%d %H:%M} UTC."
        yield Diagnosis("audit", "warning", sentence, "Start beat and the worker of the queue default.")
        return
    yield Diagnosis("audit", "ok", "Its end is the recorded one, and events are sealed.")


def _scheduler() -> Iterator[Diagnosis]:
    cure = "Start `schemadesk beat` and a worker."
    newest: datetime | None = JobRun.objects.order_by("-started_at").values_list("started_at", flat=True).first()
    if newest is None:
        yield Diagnosis("scheduler", "fails", "No scheduled task has run yet.", cure)
        return
    if timezone.now() - newest > BEAT_LATE:
        yield Diagnosis("scheduler", "fails", f"The last scheduled task ran at {newest:%Y-%m-%d %H:%M} UTC.", cure)
        return
    yield Diagnosis("scheduler", "ok", f"The last task ran at {newest:%H:%M:%S} UTC.")


def _clusters() -> Iterator[Diagnosis]:
    for cluster in Cluster.objects.order_by("name"):
        name = f"cluster {cluster.name}"
        try:
            metadata = connect(cluster).metadata
        except SchemadeskError as error:
            yield Diagnosis(name, "fails", error.message, "Correct the cluster on the page Sources, or start it.")
        else:
            yield Diagnosis(name, "ok", f"{len(metadata.brokers)} brokers and {len(metadata.topics):,} topics.")


def _mirrors() -> Iterator[Diagnosis]:
    for mirror in list_mirrors():
        name = f"registry {mirror.registry}"
        if mirror.error:
            yield Diagnosis(name, "fails", mirror.error, "Test the connection on the page Registries.")
        elif mirror.synced_at:
            yield Diagnosis(name, "ok", "Its last sync succeeded.")
        else:
            yield Diagnosis(name, "not checked", "It was not read yet.")


#: the checks that read tables, by what they check
NEED_DATABASE: Final[Mapping[str, Callable[[], Iterator[Diagnosis]]]] = {
    "audit": _audit, "scheduler": _scheduler, "clusters": _clusters, "remote registries": _mirrors,
}  # fmt: skip


def _valkey() -> Iterator[Diagnosis]:
    try:
        cache.get("doctor")
    except (RedisError, OSError) as error:
        yield Diagnosis("valkey", "fails", f"It doesn't answer: {error}", "Start Valkey, or correct REDIS_URL.")
    else:
        yield Diagnosis("valkey", "ok", "It answers.")


def _workers() -> Iterator[Diagnosis]:
    try:
        answers = app.control.inspect(timeout=1.0).active_queues() or {}
    except (RedisError, OSError, OperationalError, CeleryError) as error:
        yield Diagnosis("workers", "not checked", f"Valkey doesn't answer: {error}")
        return
    served = {queue["name"]: worker for worker, queues in answers.items() for queue in queues}
    for queue in QUEUES:
        if queue in served:
            yield Diagnosis(f"queue {queue}", "ok", f"{served[queue]} works on it.")
        else:
            cure = f"Start `schemadesk worker --queue {queue}`."
            yield Diagnosis(f"queue {queue}", "fails", "No worker answers.", cure)


def _spark() -> Iterator[Diagnosis]:
    if not settings.SPARK_REMOTE:
        yield Diagnosis("spark", "not checked", "SPARK_REMOTE isn't set, so nothing is scanned.")
        return
    address = urlsplit(settings.SPARK_REMOTE.replace("sc://", "http://", 1))
    cure = "Start the Spark Connect server, or correct SPARK_REMOTE."
    yield _port("spark", address.hostname or "", address.port or 15002, cure)


def _mail() -> Iterator[Diagnosis]:
    if not settings.EMAIL_HOST:
        yield Diagnosis("mail", "not checked", "SCHEMADESK_MAIL_HOST isn't set, so no mail is sent.")
        return
    cure = "Correct SCHEMADESK_MAIL_HOST and SCHEMADESK_MAIL_PORT."
    yield _port("mail", settings.EMAIL_HOST, settings.EMAIL_PORT, cure)


def _port(part: str, host: str, port: int, cure: str) -> Diagnosis:
    try:
        socket.create_connection((host, port), SECONDS).close()
    except OSError as error:
        return Diagnosis(part, "fails", f"{host}:{port} doesn't answer: {error}", cure)
    return Diagnosis(part, "ok", f"{host}:{port} accepts connections.")


def _files() -> Iterator[Diagnosis]:
    folder: Path | None = settings.SECRETS_DIR
    if folder is not None:
        cure = "Create it, or correct SCHEMADESK_SECRETS_DIR."
        if not folder.is_dir():
            yield Diagnosis("secrets", "fails", f"{folder} is not a folder.", cure)
        elif names := sorted(file.name for file in folder.iterdir() if stat.S_IMODE(file.stat().st_mode) & 0o077):
            yield Diagnosis("secrets", "warning", f"Others can read {', '.join(names[:5])} in {folder}.", "chmod 600")
        else:
            yield Diagnosis("secrets", "ok", f"Only their owner can read the files in {folder}.")
    data: Path = settings.DATA_DIR
    if not data.is_dir():
        return
    usage = shutil.disk_usage(data)
    if usage.free < LEAST_FREE * usage.total:
        yield Diagnosis("disk", "warning", f"{data} has {usage.free / 2**30:.1f} GiB free.", "Free some space.")
    else:
        yield Diagnosis("disk", "ok", f"{data} has {usage.free / 2**30:.0f} GiB free.")
