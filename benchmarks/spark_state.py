"""Checkpoints with rows to measure with, written by real queries on a Spark Connect server that shares this disk.

An aggregation's state is written by Spark itself, a million keys in seconds; that of transformWithState goes through
Python, some thousand keys a second.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pyspark import cloudpickle
from pyspark.sql import DataFrame, Row
from pyspark.sql.connect import functions as f
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StructField, StructType

from registry.pipeline.session import close_session, open_session

OUTPUT: Final = StructType([StructField("id", LongType())])
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PARTITIONS: Final = 4
TIMEOUT: Final = 1_800  # seconds of the one batch

# The workers that run the processor don't have this project on their path: send the class itself.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


class Customers(StatefulProcessor):
    """A value and a map of one entry for each key, with a field that is filled in every second one."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state variables; Spark calls it when a task starts."""
        self._totals = handle.getValueState("totals", "orders BIGINT, amount DOUBLE, status STRING, note STRING")
        self._by_status = handle.getMapState("by_status", "status STRING", "orders INT, last TIMESTAMP")

    def handleInputRows(  # noqa: N802  Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803  Spark's name
    ) -> Iterator[Row]:
        """Write the key's rows."""
        last = max(row.timestamp for row in rows)
        number = int(key[0])
        self._totals.update((number, number / 7, "PAID", "by hand" if number % 2 else None))
        self._by_status.updateValue(("PAID",), (number % 100, last))
        yield Row(id=number)

    def close(self) -> None:
        """Nothing is held outside of Spark's state."""


def write_aggregation(remote: str, folder: Path, keys: int) -> Path:
    """The checkpoint of an aggregation with so many groups."""
    return _run(remote, folder, keys, _aggregated, {})


def write_variables(remote: str, folder: Path, keys: int) -> Path:
    """The checkpoint of a transformWithState operator with two variables of so many keys, Avro-encoded."""
    return _run(remote, folder, keys, _processed, {"spark.sql.streaming.stateStore.encodingFormat": "avro"})


def _aggregated(rows: DataFrame) -> DataFrame:
    sums = (f.count("*"), f.sum("amount"), f.max("timestamp"), f.max("status"))
    return rows.groupBy("id").agg(*(column.alias(f"a{number}") for number, column in enumerate(sums)))


def _processed(rows: DataFrame) -> DataFrame:
    return rows.groupBy("id").transformWithState(
        statefulProcessor=Customers(), outputStructType=OUTPUT, outputMode="Update", timeMode="None"
    )


def _rows(session: SparkSession, keys: int) -> DataFrame:
    stream = session.readStream.format("rate-micro-batch").option("rowsPerBatch", keys)
    amount, status = (f.col("value") / 7).alias("amount"), f.lit("PAID").alias("status")
    loaded = stream.option("numPartitions", PARTITIONS).load()
    return loaded.select("timestamp", f.col("value").alias("id"), amount, status)


def _run(
    remote: str, folder: Path, keys: int, query: Callable[[DataFrame], DataFrame], settings: dict[str, str]
) -> Path:
    """One batch of a query; its checkpoint. Raises RuntimeError when it doesn't end."""
    session = open_session(remote)
    try:
        usual = {
            "spark.sql.shuffle.partitions": str(PARTITIONS),
            "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        }
        for name, value in (usual | settings).items():
            session.conf.set(name, value)
        writer = query(_rows(session, keys)).writeStream.format("noop").outputMode("update").trigger(once=True)
        if not writer.option("checkpointLocation", str(folder)).start().awaitTermination(TIMEOUT):
            raise RuntimeError(f"the query that writes {keys:,} keys didn't end within {TIMEOUT} s")
    finally:
        close_session(session)
    return folder
