"""A Spark standalone cluster of two workers, from the jars that PySpark ships."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from dashboard.runtime import spark
from dashboard.runtime.java import find_java, home_for_spark
from dashboard.runtime.parts import spark_connect
from tests.java_words import SHORT_LIVED

HOME = Path(pyspark.__file__).parent
STARTED = 180.0  # seconds


@dataclass(frozen=True)
class SparkCluster:
    """A running cluster: `spark://…`, and its workers."""

    master: str
    workers: list[subprocess.Popen[bytes]]

    def kill_worker(self) -> None:
        """Kill a worker with its executors, as when its host dies."""
        os.killpg(self.workers.pop().pid, signal.SIGKILL)


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """Runs a master and its workers of one core on loopback. The workers know nothing of this project."""
    port = _free_port()
    address = f"spark://127.0.0.1:{port}"
    started = [
        _start(folder / "master", "master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
    ]
    try:
        _wait_for(folder / "master" / "log", "I have been elected leader")
        for number in range(workers):
            own = folder / f"worker{number}"
            arguments = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0")
            started.append(_start(own, "worker.Worker", *arguments, "--work-dir", str(own / "work"), address))
        for number in range(workers):
            _wait_for(folder / f"worker{number}" / "log", "Successfully registered with master")
        yield SparkCluster(address, started[1:])
    finally:
        for process in reversed(started):
            with suppress(ProcessLookupError):  # a test killed it
                os.killpg(process.pid, signal.SIGTERM)
        for process in started:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def connect_to(cluster: SparkCluster, folder: Path) -> Iterator[str]:
    """Runs a Spark Connect server that drives the cluster; gives its address."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_MASTER", cluster.master)
        patch.setattr(spark, "AVRO_LIMITS", (*spark.AVRO_LIMITS, *SHORT_LIVED))  # the executors have these too
        patch.setattr(spark, "LATER_COMPILER", ())
        folder.mkdir()
        with spark_connect(folder) as remote:
            yield remote


def _start(folder: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "JAVA_HOME": str(home_for_spark(find_java(), folder / "java")),
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": " ".join(SHORT_LIVED),
    }
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
        )


def _wait_for(log: Path, text: str) -> None:
    ends = time.monotonic() + STARTED
    while text not in log.read_text(errors="replace"):
        if time.monotonic() > ends:
            raise AssertionError(f"{log} doesn't say {text!r}: {log.read_text(errors='replace')[-2_000:]}")
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
