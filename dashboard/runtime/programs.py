"""The product's own programs: the web server, the Celery workers and beat, and commands that run once."""

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
# Neither is needed by workers that don't talk to each other, and each costs seconds when one starts or stops.
QUIET = ("--without-gossip", "--without-mingle")
APICURIO_API = "/apis/registry/v2"
IMPORTING = threading.Lock()
SCHEDULE_SECONDS = 300.0  # for beat to save its schedule again
# The first signal lets a worker finish its tasks, the second drops them; they are delivered again.
WORKER_STOP = "TERM:6,QUIT:2"


def manage(layout: Layout, *arguments: str, owner: bool = False) -> Command:
    """A command of `manage.py`; `owner` gives it the database role that may change tables."""
    environment = layout.own_environment()
    if not owner:
        environment.pop("DATABASE_OWNER_URL", None)
    return Command([sys.executable, str(PROJECT / "manage.py"), *arguments], environment, PROJECT)


def migrate_command(layout: Layout) -> Command:
    """Brings the tables up to date, as their owner."""
    return manage(layout, "migrate", "--no-input", owner=True)


def prepare_command(layout: Layout) -> Command:
    """Makes what a fresh database needs besides its tables; the settings were checked as it was migrated."""
    return manage(layout, "prepare", "--skip-checks")


def demo_command(layout: Layout) -> Command:
    """Makes the demo's input; where Kafka Connect is ours, also what the demo's shop needs.

    | variable | what it holds |
    |---|---|
    | `DEMO_SHOP_SERVER` | the superuser's address of our PostgreSQL, which listens on a port |
    | `DEMO_SHOP_SECRETS` | the folder of the secrets that connectors may read |
    | `DEMO_SHOP_ENDPOINT` | the base of the API that Apicurio's converter calls |
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
    """The endpoint by which Apicurio's converter registers with the web server's registry."""
    arguments = ["--port", str(layout.ports["avro-endpoint"]), "--registry", f"http://{LOOPBACK}:{layout.ports['web']}"]
    environment = layout.plain_environment() | {"PYTHONPATH": str(PROJECT)}
    return Command([sys.executable, "-m", "dashboard.demo.apicurio_endpoint", *arguments], environment, layout.data)


def avro_endpoint_probe(layout: Layout) -> str | None:
    """The port, once the endpoint listens there."""
    port = layout.ports["avro-endpoint"]
    return f"port {port}" if answers(port) else None


def warm_up_command(layout: Layout) -> Command:
    """Has Spark run a first query."""
    return _python(layout, "-m", "dashboard.runtime.spark_warm_up", stop="TERM:1")


def _python(layout: Layout, *arguments: str, stop: str) -> Command:
    environment = layout.own_environment()
    environment.pop("DATABASE_OWNER_URL", None)
    return Command([sys.executable, *arguments], environment, PROJECT, stop)


def _celery(layout: Layout, *arguments: str, stop: str) -> Command:
    """A worker or beat. Both start after the migration, which checked the settings: that loads every address and page."""
    command = _python(layout, *CELERY, *arguments, stop=stop)
    return replace(command, environment={**command.environment, "CELERY_SKIP_CHECKS": "true"})


MOST_CONNECTIONS = 8192  # an idle one takes 3 KB
OTHER_FILES = 256  # that a web process has open besides: of the database, the log, child processes
# A login often allows 1,024 open files until a program asks for more. Above the limit no connection is accepted.
OPENING = ("/bin/sh", "-c", 'ulimit -S -n "$0" && exec "$@"')
IDLE_SECONDS = 30  # for a client to send the header of its next request

# What glibc keeps of large bodies that were read: few arenas, and large blocks are given back at once.
THRIFTY = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "262144", "MALLOC_TRIM_THRESHOLD_": "262144"}


def web_command(layout: Layout) -> Command:
    """The web server. One process; more would agree by dashboard/response_cache/epoch.py."""
    command = _python(layout, stop="TERM:6")
    argv = [*OPENING, str(most_files()), sys.executable, "-m", "granian", *web_arguments(layout.ports["web"])]
    environment = {**THRIFTY, **command.environment}
    return replace(command, argv=[*argv, "dashboard.asgi:application"], environment=environment)


def web_arguments(port: int) -> list[str]:
    """The options of granian.

    Its `backpressure` counts connections, also idle ones, and accepts no further one above it. The header timeout closes
    a connection that sends no whole header in time, before its first request as well as between two. Granian applies it
    to a silent connection only with `--http 1`: with `auto` it first waits, without a limit, for the protocol.
    """
    options = {
        "interface": "asgi",
        "host": LOOPBACK,
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
    """How many files the web server may have open: a connection may need one for its body too."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = 2 * MOST_CONNECTIONS + OTHER_FILES
    return files if hard == resource.RLIM_INFINITY else min(files, hard)


def most_connections() -> int:
    """How many connections the web server holds: as many as its limit of open files has room for."""
    return max(most_files() - OTHER_FILES, OTHER_FILES) // 2


def web_probe(layout: Layout) -> str | None:
    """The address, once Django says there that it can work."""
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
    """The command of the worker of one queue."""

    def command(layout: Layout) -> Command:
        name = f"{queue}@schemadesk"
        arguments = [
            "worker",
            "--queues",
            queue,
            "--hostname",
            name,
            "--pool",
            "threads",
            "--concurrency",
            str(threads),
        ]
        return _celery(layout, *arguments, *QUIET, stop=WORKER_STOP)

    return command


def worker_probe(queue: str, *, without_broker: str | None = None) -> Callable[[Layout], str | None]:
    """Says that the worker of a queue answers a ping over the broker, or `without_broker` if that is away."""

    def probe(layout: Layout) -> str | None:
        # Celery replaces its own module while it is imported: two probes in two threads must not do that at once.
        with IMPORTING:
            from celery import Celery
            from kombu.exceptions import OperationalError
            from redis.exceptions import RedisError

        with Celery("probe", broker=celery_form(layout.product["REDIS_URL"]), set_as_current=False) as app:
            app.conf.broker_connection_retry_on_startup = False
            try:
                answers = app.control.ping(destination=[f"{queue}@schemadesk"], timeout=0.5)
            # A broker that ends while the ping is under way is told by the client's own errors.
            except (OSError, OperationalError, RedisError):
                return without_broker
        return f"queue {queue}" if answers else None

    return probe


def beat_command(layout: Layout) -> Command:
    """The clock that queues what is due; one for a data folder."""
    folder = layout.folder("beat")
    pid_file = folder / "beat.pid"
    # Left by one that was killed; beat would refuse to start if another process has that number by now.
    pid_file.unlink(missing_ok=True)
    arguments = ["beat", "--schedule", str(folder / "schedule"), "--pidfile", str(pid_file)]
    return _celery(layout, *arguments, stop="TERM:3")


def beat_probe(layout: Layout) -> str | None:
    """Says that beat has read its schedule."""
    return "schedule running" if (layout.data / "beat" / "beat.pid").exists() else None


def beat_answer(layout: Layout) -> str | None:
    """Says that beat has saved its schedule lately, which it does once a minute (CELERY_BEAT_SYNC_EVERY)."""
    saved_at = max(file.stat().st_mtime for file in (layout.data / "beat").iterdir())
    return "schedule running" if time.time() - saved_at < SCHEDULE_SECONDS else None
