"""The parts of the product: what a part is, the table of all of them, and running a few without a supervisor.

Tests and benchmarks take a broker, a Spark, a Kafka Connect or a PostgreSQL for the length of a `with` block.
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

    `probe` gives a line such as "port 9092" once the part is ready, and None before. `prepare` is what has to be done
    before the first start; it may take its time. `after` names the parts and steps that have to be ready first.
    `replaced_by` is the environment variable that, when it is set already, names a server to be used instead.
    `seconds` is how long it may take to become ready. `without` says what doesn't work while it doesn't run; a part
    that has it ends nothing when it fails: the others go on, and it is tried again. `answer` is the probe of a part that
    runs, if `probe` doesn't show that it hangs, or also fails when another server is away. `keeps_data` says that a
    person has to decide about its restart.
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
    """A program that runs once, after others are ready. `relay` shows its output instead of keeping it in a log;
    `vital` says that without its success there is no going on, `late` that the product is up without it."""

    name: str
    command: Callable[[Layout], Command]
    after: tuple[str, ...] = ()
    relay: bool = False
    vital: bool = True
    late: bool = False
    seconds: float = 600.0


@contextmanager
def running(layout: Layout, *parts: Part) -> Iterator[list[Child]]:
    """Starts the parts at once, waits until all are ready, and ends them when the block is left.

    Raises PartFailed, with the end of the log, when one doesn't become ready.
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
    """Waits for the part's probe and gives its line. Raises PartFailed when it ends or takes too long."""
    deadline = time.monotonic() + part.seconds
    while (status := child.ended()) is None:
        if line := part.probe(layout):
            return line
        if time.monotonic() > deadline:
            raise PartFailed(f"{part.name} was not ready after {part.seconds:.0f} s.\n{tail(layout.log(part.name))}")
        time.sleep(0.05)
    raise PartFailed(f"{part.name} {how_it_ended(status)}.\n{tail(layout.log(part.name))}")


def how_it_ended(status: int) -> str:
    """An exit status in words."""
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
    seconds=120,
    without="no topic and no checkpoint is scanned until it runs",
    answer=lambda layout: reply(layout.ports["spark"], GRPC_HELLO),
)
# Connectors register schemas: those of an earlier run go on at once, and would fail without the registry.
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
# Its lines are shown and kept nowhere: the passwords of the first start are among them.
PREPARE = StartupStep("prepare", programs.prepare_command, after=("migrate",), relay=True)

# Django's start takes 2 s of CPU, and minutes on a machine that is busy with all the others.
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
        programs.worker_command(queue, threads),
        programs.worker_probe(queue),
        after=("migrate",),
        seconds=180,
        without=f"{tasks} wait until it runs",
        answer=programs.worker_probe(queue, without_broker="the broker is away"),
    )
    for queue, threads, tasks in (("default", 4, "syncs, deliveries and promotions"), ("scans", 2, "scans"))
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
# Those that a registry can do without: `up --without kafka,spark`.
OPTIONAL = ("kafka", "spark", "connect")
# Those that only run when they are asked for, `up --with connect`, or for the demo.
ON_DEMAND = ("connect",)
# What is of no use without another part, by that part's name.
ONLY_FOR = {"connect": "avro-endpoint"}

# Steps that nobody waits for. The first query of a cold Spark takes 13 s: let it be nobody's.
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
    """Runs a broker that keeps its data in `data_dir`; gives its address, `127.0.0.1:PORT`. Ready in some 7 s.

    Raises PartFailed, PartMissing or JarMismatch when it can't be run.
    """
    with _layout(data_dir, kafka.PORTS) as layout, running(layout, KAFKA):
        yield kafka.bootstrap(layout)


@contextmanager
def spark_connect(data_dir: Path) -> Iterator[str]:
    """Runs a Spark Connect server that keeps its data in `data_dir`; gives its address, token included.

    Raises PartFailed, PartMissing or JarMismatch when it can't be run.
    """
    with _layout(data_dir, spark.PORTS) as layout, running(layout, SPARK):
        yield spark.remote(layout)


@contextmanager
def kafka_connect(data_dir: Path, bootstrap: str) -> Iterator[str]:
    """Runs a Kafka Connect worker on the broker at `bootstrap`; gives the address of its REST API, password included.

    It has Debezium's PostgreSQL connector and Apicurio's Avro converter; connectors read their secrets from the folder
    `data_dir/connect/secrets`. Raises PartFailed, PartMissing or JarMismatch when it can't be run.
    """
    with _layout(data_dir, connect_worker.PORTS) as empty:
        layout = replace(empty, product={"KAFKA_BOOTSTRAP": bootstrap})
        with running(layout, CONNECT):
            yield connect_worker.url(layout)


@contextmanager
def postgres_server(data_dir: Path) -> Iterator[str]:
    """Runs a PostgreSQL with logical decoding; gives the address of its superuser, over a Unix socket.

    Roles that have a password are let in on 127.0.0.1 too, at the port that the address names. Raises PartFailed or
    PartMissing when it can't be run.
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
