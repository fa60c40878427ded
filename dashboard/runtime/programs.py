"""The product's own programs: the web server, the Celery workers and beat, and one-off commands."""

from __future__ import annotations

import resource
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import replace

from dashboard.runtime import kafka_connect, postgres
from dashboard.runtime.layout import LOOPBACK, PROJECT, Layout, answers
from dashboard.runtime.process import Command
from dashboard.runtime.valkey import celery_form

CELERY = ("-m", "celery", "--app", "dashboard.celery:app")
#: queue → threads of its worker: scans of sources with a backlog take two, and the third is for small ones
QUEUES = {"default": 4, "scans": 3}
# Workers don't talk to each other, and each of these costs seconds at start and stop.
QUIET = ("--without-gossip", "--without-mingle")
APICURIO_API = "/apis/registry/v2"
IMPORTING = threading.Lock()
SCHEDULE_SECONDS = 300.0  # limit for beat to save its schedule again
# SIGTERM lets a worker finish its tasks, SIGQUIT drops them; they are delivered again.
WORKER_STOP = "TERM:6,QUIT:2"


def manage(layout: Layout, *arguments: str, owner: bool = False) -> Command:
    """Return a command of `manage.py`; `owner` gives it the database role that can change tables."""
    environment = layout.own_environment()
    if not owner:
        environment.pop("DATABASE_OWNER_URL", None)
    return Command([sys.executable, str(PROJECT / "manage.py"), *arguments], environment, PROJECT)


def migrate_command(layout: Layout) -> Command:
    """Return the command that updates the tables, as their owner."""
    return manage(layout, "migrate", "--no-input", owner=True)


def prepare_command(layout: Layout) -> Command:
    """Return the command that creates initial data; the migration has already run the system checks."""
    return manage(layout, "prepare", "--skip-checks")


def demo_command(layout: Layout) -> Command:
    """Return the command that loads the demo; with the embedded Kafka Connect, also with the demo shop's variables.

    | variable | value |
    |---|---|
    | `DEMO_SHOP_SERVER` | the superuser's URL of the embedded PostgreSQL, which listens on a port |
    | `DEMO_SHOP_SECRETS` | the folder of secrets that connectors can read |
    | `DEMO_SHOP_ENDPOINT` | the base URL of the API that Apicurio's converter calls |
    """
    command = manage(layout, "demo")
    if not {"connect", "postgres"} <= layout.ports.keys():
        return command
    shop = {
        "DEMO_SHOP_SERVER": postgres.url(layout, postgres.SUPERUSER, "postgres"),
        "DEMO_SHOP_SECRETS": str(kafka_connect.secrets_folder(layout)),
        "DEMO_SHOP_ENDPOINT": f"http://{LOOPBACK}:{layout.ports['avro-endpoint']}{APICURIO_API}",
    }
    return replace(command, environment={**command.environment, **shop})


def avro_endpoint_command(layout: Layout) -> Command:
    """Return the endpoint by which Apicurio's converter registers schemas with the web server's registry."""
    arguments = ["--port", str(layout.ports["avro-endpoint"]), "--registry", f"http://{LOOPBACK}:{layout.ports['web']}"]
    environment = layout.plain_environment() | {"PYTHONPATH": str(PROJECT)}
    return Command([sys.executable, "-m", "dashboard.demo.apicurio_endpoint", *arguments], environment, layout.data)


def avro_endpoint_probe(layout: Layout) -> str | None:
    """Return the port once the endpoint listens; None before."""
    port = layout.ports["avro-endpoint"]
    return f"port {port}" if answers(port) else None


def warm_up_command(layout: Layout) -> Command:
    """Return the command that runs a first query in Spark."""
    return _python(layout, "-m", "dashboard.runtime.spark", stop="TERM:1")


def _python(layout: Layout, *arguments: str, stop: str) -> Command:
    environment = layout.own_environment()
    environment.pop("DATABASE_OWNER_URL", None)
    return Command([sys.executable, *arguments], environment, PROJECT, stop)


def _celery(layout: Layout, *arguments: str, stop: str) -> Command:
    """Return a worker or beat.

    Both start after the migration, which has already run the system checks: these load every URL and page.
    """
    command = _python(layout, *CELERY, *arguments, stop=stop)
    return replace(command, environment={**command.environment, "CELERY_SKIP_CHECKS": "true"})


MOST_CONNECTIONS = 8192  # an idle connection takes 3 KB
OTHER_FILES = 256  # other open files of a web process: database, log, child processes
# A login often has a soft limit of 1,024 open files. Above the limit, no connection is accepted.
OPENING = ("/bin/sh", "-c", 'ulimit -S -n "$0" && exec "$@"')
IDLE_SECONDS = 30  # limit for a client to send the next request's header

# Limits what glibc retains of large bodies: few arenas, and large blocks are released immediately.
THRIFTY = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "262144", "MALLOC_TRIM_THRESHOLD_": "262144"}


def web_command(layout: Layout) -> Command:
    """Return the web server. It has one process; several would synchronise by dashboard/response_cache/epoch.py."""
    command = _python(layout, stop="TERM:6")
    argv = [*OPENING, str(most_files()), sys.executable, "-m", "granian", *web_arguments(layout.ports["web"])]
    environment = {**THRIFTY, **command.environment}
    return replace(command, argv=[*argv, "dashboard.asgi:application"], environment=environment)


def web_arguments(port: int, host: str = LOOPBACK) -> list[str]:
    """Return granian's options.

    Its `backpressure` counts connections, including idle ones, and accepts no more above it. The header timeout closes
    a connection without a complete header in time, before its first request and between two. Granian applies it to a
    silent connection only with `--http 1`: with `auto`, it first waits for the protocol without a limit.
    """
    options = {
        "interface": "asgi",
        "host": host,
        "port": str(port),
        "workers": "1",
        "http": "1",
        "backlog": "4096",
        "backpressure": str(most_connections()),
        "http1-header-read-timeout": str(IDLE_SECONDS * 1000),
        "workers-kill-timeout": "4",
    }
    return [*(word for name, value in options.items() for word in (f"--{name}", value)), "--no-ws"]


def most_files() -> int:
    """Return the limit of open files of the web server: a connection may need another file for its body."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = 2 * MOST_CONNECTIONS + OTHER_FILES
    return files if hard == resource.RLIM_INFINITY else min(files, hard)


def most_connections() -> int:
    """Return the limit of connections of the web server, derived from its limit of open files."""
    return max(most_files() - OTHER_FILES, OTHER_FILES) // 2


def web_probe(layout: Layout) -> str | None:
    """Return the URL once Django reports that it is ready; None before."""
    address = f"http://{LOOPBACK}:{layout.ports['web']}"
    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{address}/readyz", timeout=5).close()
    except urllib.error.HTTPError as error:
        error.close()
        return None
    except OSError:
        return None
    return address


def worker_command(queue: str, threads: int) -> Callable[[Layout], Command]:
    """Return the command of a queue's worker."""

    def command(layout: Layout) -> Command:
        return _celery(layout, *worker_arguments(queue, threads, "schemadesk"), stop=WORKER_STOP)

    return command


def worker_arguments(queue: str, threads: int, host: str) -> list[str]:
    """Return Celery's options for the worker of a queue on a host."""
    options = {"queues": queue, "hostname": f"{queue}@{host}", "pool": "threads", "concurrency": str(threads)}
    return ["worker", *(word for name, value in options.items() for word in (f"--{name}", value)), *QUIET]


def worker_probe(queue: str, *, without_broker: str | None = None) -> Callable[[Layout], str | None]:
    """Return a probe that pings a queue's worker over the broker; `without_broker` is the result without one."""

    def probe(layout: Layout) -> str | None:
        # Celery replaces its module during the import, so that two threads must not import it together.
        with IMPORTING:
            from celery import Celery
            from kombu.exceptions import OperationalError
            from redis.exceptions import RedisError

        with Celery("probe", broker=celery_form(layout.product["REDIS_URL"]), set_as_current=False) as app:
            app.conf.broker_connection_retry_on_startup = False
            try:
                answers = app.control.ping(destination=[f"{queue}@schemadesk"], timeout=0.5)
            # If the broker ends during the ping, the client raises its own errors.
            except (OSError, OperationalError, RedisError):
                return without_broker
        return f"queue {queue}" if answers else None

    return probe


def beat_command(layout: Layout) -> Command:
    """Return the scheduler; one per data folder."""
    folder = layout.folder("beat")
    pid_file = folder / "beat.pid"
    # Left by a killed beat; beat would refuse to start if another process now has that id.
    pid_file.unlink(missing_ok=True)
    arguments = ["beat", "--schedule", str(folder / "schedule"), "--pidfile", str(pid_file)]
    return _celery(layout, *arguments, stop="TERM:3")


def beat_probe(layout: Layout) -> str | None:
    """Return a line once beat has read its schedule; None before."""
    return "schedule running" if (layout.data / "beat" / "beat.pid").exists() else None


def beat_answer(layout: Layout) -> str | None:
    """Return a line if beat has recently saved its schedule, which it does once a minute (CELERY_BEAT_SYNC_EVERY)."""
    saved_at = max(file.stat().st_mtime for file in (layout.data / "beat").iterdir())
    return "schedule running" if time.time() - saved_at < SCHEDULE_SECONDS else None
