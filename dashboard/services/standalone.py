"""A broker or a Spark for the length of a `with` block, as tests and benchmarks need them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dashboard.services import kafka, spark
from dashboard.services.layout import Layout
from dashboard.services.part import running
from dashboard.services.parts import KAFKA, SPARK
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
def _layout(data_dir: Path, names: tuple[str, ...]) -> Iterator[Layout]:
    watchdog = Watchdog()
    watchdog.start()
    layout = Layout.at(data_dir, watchdog, durable=False, ports=kept_ports(data_dir, names))
    try:
        yield layout
    finally:
        watchdog.close()
        shutil.rmtree(layout.sockets, ignore_errors=True)
