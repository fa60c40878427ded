"""The parts of the product: their type, the table of all of them, and running some without a supervisor.

Tests and benchmarks run a broker, Spark, Kafka Connect or PostgreSQL within a `with` block.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dashboard.runtime import PartFailed, kafka, postgres, programs, spark, valkey
from dashboard.runtime import kafka_connect as connect_worker
from dashboard.runtime.layout import GRPC_HELLO, HTTP_HELLO, Layout, kept_ports, reply
from dashboard.runtime.process import Child, Command, Watchdog, end_children, start, tail


@dataclass(frozen=True)
class Part:
    """A program that runs as long as `up` does.

    `probe` returns a line such as "port 9092" once the part is ready, and None before. `prepare` runs before the first
    start and may take long. `after` names the parts and steps that must be ready first. `replaced_by` is an environment
    variable that, if set, names a server to use instead. `seconds` is the limit for becoming ready. `without` says what
    doesn't work without it; if such a part fails, the others go on and it is retried. `answer` is the probe of a
    running part, for parts where `probe` doesn't detect a hang, or also fails if another server is away. `keeps_data`
    says that a person must decide about a restart.
    """

    name: str
    command: Callable[[Layout], Command]
    probe: Callable[[Layout], str | None]
    prepare: Callable[[Layout], None] | None = None
    after: tuple[str, ...] = ()
    replaced_by: str = ""
    late: bool = False
    seconds: float = 60.0
    without: str = ""
    answer: Callable[[Layout], str | None] | None = None
    keeps_data: bool = False


@dataclass(frozen=True)
class StartupStep:
    """A program that runs once, after others are ready.

    `relay` shows its output instead of logging it; `vital` means that its failure ends `up`, `late` that the product is
    up without it.
    """

    name: str
    command: Callable[[Layout], Command]
    after: tuple[str, ...] = ()
    relay: bool = False
    vital: bool = True
    late: bool = False
    seconds: float = 600.0


@contextmanager
def running(layout: Layout, *parts: Part) -> Iterator[list[Child]]:
    """Start the parts together, wait until all are ready, and end them when the block is left.

    Raises PartFailed with the end of the log if one doesn't become ready.
    """
    children: list[Child] = []
    try:
        for part in parts:
            if part.prepare:
                part.prepare(layout)
            children.append(start(part.command(layout), layout.log(part.name), layout.watchdog))
        for part, child in zip(parts, children, strict=True):
            wait_until_ready(part, child, layout)
        yield children
    finally:
        end_children(children)


def wait_until_ready(part: Part, child: Child, layout: Layout) -> str:
    """Wait for the part's probe and return its line. Raises PartFailed if the part ends or takes too long."""
    deadline = time.monotonic() + part.seconds
    while (status := child.ended()) is None:
        if line := part.probe(layout):
            return line
        if time.monotonic() > deadline:
            raise PartFailed(f"{part.name} was not ready after {part.seconds:.0f} s.\n{tail(layout.log(part.name))}")
        time.sleep(0.05)
    raise PartFailed(f"{part.name} {how_it_ended(status)}.\n{tail(layout.log(part.name))}")


def how_it_ended(status: int) -> str:
    """Describe an exit status."""
    return f"was stopped by signal {-status}" if status < 0 else f"ended with status {status}"


VALKEY = Part("valkey", valkey.command, valkey.probe, replaced_by="REDIS_URL", keeps_data=True)
POSTGRES = Part(
    "postgres", postgres.command, postgres.probe, postgres.prepare, replaced_by="DATABASE_URL", keeps_data=True
)
KAFKA = Part(
    "kafka",
    kafka.command,
    kafka.probe,
    kafka.prepare,
    replaced_by="KAFKA_BOOTSTRAP",
    seconds=120,
    without="topics of this broker can't be scanned until it runs",
    keeps_data=True,
)
SPARK = Part(
    "spark",
    spark.command,
    spark.probe,
    spark.prepare,
    replaced_by="SPARK_REMOTE",
    seconds=300,  # 20 s of CPU, which a busy machine takes minutes for: ending it then only starts it over
    without="no topic and no checkpoint is scanned until it runs",
    answer=lambda layout: reply(layout.ports["spark"], GRPC_HELLO),
)
# Connectors register schemas: those of an earlier run resume immediately, and would fail without the registry.
CONNECT = Part(
    "connect",
    connect_worker.command,
    connect_worker.probe,
    connect_worker.prepare,
    after=("kafka", "avro-endpoint"),
    replaced_by="CONNECT_URL",
    late=True,
    seconds=120,
    answer=lambda layout: reply(layout.ports["connect"], HTTP_HELLO),
)

MIGRATE = StartupStep("migrate", programs.migrate_command, after=("valkey", "postgres"))
# Its output is shown but not logged: it has the passwords of the first start.
PREPARE = StartupStep("prepare", programs.prepare_command, after=("migrate",), relay=True)

# Django's start takes 2 s of CPU, and minutes on a machine busy with all the other starts.
WEB = Part(
    "web",
    programs.web_command,
    programs.web_probe,
    after=("migrate",),
    seconds=180,
    answer=lambda layout: reply(layout.ports["web"], HTTP_HELLO),
)
WORKERS = tuple(
    Part(
        f"worker-{queue}",
        programs.worker_command(queue, programs.QUEUES[queue]),
        programs.worker_probe(queue),
        after=("migrate",),
        seconds=180,
        without=f"{tasks} wait until it runs",
        answer=programs.worker_probe(queue, without_broker="the broker is away"),
    )
    for queue, tasks in (("default", "syncs, deliveries and promotions"), ("scans", "scans"))
)
AVRO_ENDPOINT = Part(
    "avro-endpoint",
    programs.avro_endpoint_command,
    programs.avro_endpoint_probe,
    after=("web",),
    late=True,
    answer=lambda layout: reply(layout.ports["avro-endpoint"], HTTP_HELLO),
)
BEAT = Part(
    "beat",
    programs.beat_command,
    programs.beat_probe,
    after=("migrate",),
    seconds=180,
    without="scheduled scans, syncs and releases wait until it runs",
    answer=programs.beat_answer,
)

SERVICES = (VALKEY, POSTGRES, KAFKA, SPARK, CONNECT)
PROGRAMS = (WEB, *WORKERS, BEAT)
# Parts that a registry doesn't require: `up --without kafka,spark`.
OPTIONAL = ("kafka", "spark", "connect")
# Parts that only run on request, `up --with connect`, or for the demo.
ON_DEMAND = ("connect",)
# Part → a part that is only useful with it.
ONLY_FOR = {"connect": "avro-endpoint"}

# Steps that nothing waits for. The first query of a cold Spark takes 13 s, so that no scan should be the first.
WARM_UP = StartupStep("warm-up", programs.warm_up_command, after=("spark", "web"), vital=False, late=True)
DEMO = StartupStep(
    "demo",
    programs.demo_command,
    after=(*(part.name for part in (*SERVICES, *PROGRAMS)), "prepare", "warm-up"),
    relay=True,
    vital=False,
    late=True,
    seconds=1800,
)
ALL: tuple[Part | StartupStep, ...] = (*SERVICES, MIGRATE, PREPARE, *PROGRAMS, AVRO_ENDPOINT, WARM_UP, DEMO)


@contextmanager
def kafka_broker(data_dir: Path) -> Iterator[str]:
    """Run a broker that stores its data in `data_dir`; yield its address, `127.0.0.1:PORT`. Ready in about 7 s.

    Raises PartFailed, PartMissing or JarMismatch if it can't run.
    """
    with _layout(data_dir, kafka.PORTS) as layout, running(layout, KAFKA):
        yield kafka.bootstrap(layout)


@contextmanager
def spark_connect(data_dir: Path) -> Iterator[str]:
    """Run a Spark Connect server that stores its data in `data_dir`; yield its address with the token.

    Raises PartFailed, PartMissing or JarMismatch if it can't run.
    """
    with _layout(data_dir, spark.PORTS) as layout, running(layout, SPARK):
        yield spark.remote(layout)


@contextmanager
def kafka_connect(data_dir: Path, bootstrap: str) -> Iterator[str]:
    """Run a Kafka Connect worker with the broker at `bootstrap`; yield its REST API's URL with the password.

    It has Debezium's PostgreSQL connector and Apicurio's Avro converter; connectors read their secrets from the folder
    `data_dir/connect/secrets`. Raises PartFailed, PartMissing or JarMismatch if it can't run.
    """
    with _layout(data_dir, connect_worker.PORTS) as empty:
        layout = replace(empty, product={"KAFKA_BOOTSTRAP": bootstrap})
        with running(layout, CONNECT):
            yield connect_worker.url(layout)


@contextmanager
def postgres_server(data_dir: Path) -> Iterator[str]:
    """Run a PostgreSQL with logical decoding; yield its superuser's URL over a Unix socket.

    Roles with a password can also connect to 127.0.0.1, at the URL's port. Raises PartFailed or PartMissing if it can't
    run.
    """
    with _layout(data_dir, postgres.PORTS) as layout, running(layout, POSTGRES):
        yield postgres.url(layout, postgres.SUPERUSER, "postgres")


@contextmanager
def _layout(data_dir: Path, names: tuple[str, ...]) -> Iterator[Layout]:
    watchdog = Watchdog()
    watchdog.start()
    layout = Layout.at(data_dir, watchdog, durable=False, ports=kept_ports(data_dir, names))
    try:
        yield layout
    finally:
        watchdog.close()
        shutil.rmtree(layout.sockets, ignore_errors=True)
