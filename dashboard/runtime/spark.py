"""The embedded Spark Connect server, on loopback and protected by a token, because its clients can run code.

As a program (`python -m dashboard.runtime.spark`) it warms the server in `SPARK_REMOTE` up.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from dashboard.runtime import jars
from dashboard.runtime.java import find_java, home_for_spark
from dashboard.runtime.layout import LOOPBACK, PROJECT, Layout, answers, write_private
from dashboard.runtime.process import Command

PORTS = ("spark",)
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
# Without these, a small message that declares a string of 1.5 GB exhausts the server's memory and ends it.
AVRO_LIMITS = (
    "-Dorg.apache.avro.limits.string.maxLength=16777216",
    "-Dorg.apache.avro.limits.bytes.maxLength=16777216",
    "-Dorg.apache.avro.limits.collectionItems.maxLength=1000000",
)
# The C2 compiler starts later than by default: a fifth less CPU for the start; hot loops of a scan still get it.
LATER_COMPILER = (
    "-XX:Tier4InvocationThreshold=30000",
    "-XX:Tier4MinInvocationThreshold=10000",
    "-XX:Tier4CompileThreshold=60000",
    "-XX:Tier4BackEdgeThreshold=120000",
)


def remote(layout: Layout) -> str:
    """Return the address for clients, with the token.

    It must use the name localhost: for others the client requires TLS.
    """
    return f"sc://localhost:{layout.ports['spark']}/;token={layout.secret('spark-token')}"


def prepare(layout: Layout) -> None:
    """Download the jars that PySpark doesn't include. Raises PartFailed, PartMissing, JarMismatch."""
    find_java()
    jars.provide("spark", layout, "spark")


def command(layout: Layout) -> Command:
    """Return the server as a foreground process; SPARK_MASTER names an external cluster, by default it is local."""
    import pyspark

    home = Path(pyspark.__file__).parent
    folder = layout.folder("spark")
    # Temporary files of a killed server.
    shutil.rmtree(folder / "local", ignore_errors=True)
    arguments = ["--class", SERVER, "--name", "schemadesk", "--properties-file", str(_write_properties(layout, folder))]
    environment = {
        **layout.plain_environment(),
        "JAVA_HOME": str(home_for_spark(find_java(), folder / "java")),
        "SPARK_HOME": str(home),
        # Otherwise Python workers use another python3 without our packages, and only the JVM's log shows it.
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(PROJECT),
    }
    if _on_this_machine():
        environment["SPARK_LOCAL_IP"] = LOOPBACK
    return Command([str(home / "bin" / "spark-submit"), *arguments, "spark-internal"], environment, folder)


def _master() -> str:
    return os.environ.get("SPARK_MASTER", "local[*]")


def _on_this_machine() -> bool:
    return _master().startswith("local")


def _write_properties(layout: Layout, folder: Path) -> Path:
    """Write all settings to a file that only this user can read, because `ps` must not show the token."""
    values = {
        "spark.master": _master(),
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(layout.ports["spark"]),
        "spark.connect.authenticate.token": layout.secret("spark-token"),
        "spark.jars": ",".join(path.as_uri() for path in jars.jar_files("spark")),
        "spark.driver.memory": "2g",
        # By default, a message that is too large for the memory would end the server, and with it all other scans.
        "spark.executor.killOnFatalError.depth": "0",
        # Fetched data is cached for other queries by default; a few messages of 50 MB would fill the memory.
        "spark.kafka.consumer.fetchedData.cache.timeout": "10s",
        "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "10s",
        "spark.driver.extraJavaOptions": " ".join((*AVRO_LIMITS, *LATER_COMPILER)),
        "spark.executor.extraJavaOptions": " ".join(AVRO_LIMITS),
        "spark.local.dir": str(layout.folder("spark/local")),
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        # With a few cores, the default of 200 partitions per shuffle would mainly cost task starts.
        "spark.sql.shuffle.partitions": "8",
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": _write_pools(folder).as_uri(),
        "spark.ui.enabled": "false",
        # At INFO, a session that is closed early logs its whole query, with the password of the Kafka cluster.
        "spark.log.level": "WARN",
    }
    if _on_this_machine():
        values |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    path = folder / "server.properties"
    write_private(path, "".join(f"{name} {_escaped(value)}\n" for name, value in values.items()))
    return path


def _write_pools(folder: Path) -> Path:
    """Write a pool that lets the tasks of a small scan run between those of a large one; by default, they'd wait."""
    path = folder / "pools.xml"
    pool = '<pool name="default"><schedulingMode>FAIR</schedulingMode></pool>'
    path.write_text(f"<allocations>{pool}</allocations>\n", encoding="utf-8")
    return path


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")


def probe(layout: Layout) -> str | None:
    """Return the address once the server listens, which it does when its Spark session is up; None before."""
    return f"sc://localhost:{layout.ports['spark']}" if answers(layout.ports["spark"]) else None


def warm_up() -> None:
    """Run what every scan needs in a cold server, so that the first scan doesn't wait for the classes to load."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f
    from pyspark.sql.avro.functions import from_avro

    spark = SparkSession.builder.remote(os.environ["SPARK_REMOTE"]).create()
    try:
        decoded = from_avro(f.lit(bytearray(b"\x02")), '"long"', {"mode": "PERMISSIVE"})
        spark.range(1000).select(decoded.alias("x"), f.col("id") % 7).distinct().collect()
        # Reads of state stores fail in a server that hasn't used streaming yet.
        _ = spark.streams.active
    finally:
        spark.stop()


if __name__ == "__main__":
    warm_up()
