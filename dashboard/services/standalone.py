"""A broker, a Spark, a Kafka Connect or a PostgreSQL for the length of a `with` block, as tests and benchmarks do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from dashboard.services import connect, kafka, postgres, spark
from dashboard.services.layout import Layout
from dashboard.services.part import running
from dashboard.services.parts import CONNECT, KAFKA, POSTGRES, SPARK
from dashboard.services.ports import kept_ports
from dashboard.services.process import Watchdog


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
    with _layout(data_dir, connect.PORTS) as empty:
        layout = replace(empty, product={"KAFKA_BOOTSTRAP": bootstrap})
        with running(layout, CONNECT):
            yield connect.url(layout)


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
