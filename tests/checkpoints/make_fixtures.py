"""Make the checkpoints under `fixtures/` again, with real queries on a Spark Connect server that shares this disk.

    python -m tests.checkpoints.make_fixtures sc://localhost:15002 /tmp/checkpoints [NAME …]
    python -m tests.checkpoints.make_fixtures keep CHECKPOINT NAME

`customer_totals` is the demo's own query, kept by the second form. Only what holds no rows is kept: metadata, offsets, commits, operator metadata and schema files.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, Row
from pyspark.sql.connect import functions as f
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from registry.pipeline.session import close_session, open_session

FIXTURES = Path(__file__).parent / "fixtures"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
OUTPUT = StructType([StructField("id", LongType()), StructField("seen", IntegerType())])
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Visits(StatefulProcessor):
    """State of every kind, with timers and time to live."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._last = handle.getValueState("last_visit", "visits INT, page STRING", ttlDurationMs=86_400_000)
        self._pages = handle.getListState("pages", "page STRING")
        self._counts = handle.getMapState("counts", "page STRING", "visits INT", ttlDurationMs=3_600_000)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        number = len(list(rows))
        self._last.update((number, "home"))
        self._pages.appendValue(("home",))
        self._counts.updateValue(("home",), (number,))
        self._handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 3_600_000)
        yield Row(id=key[0], seen=number)

    def close(self) -> None:
        """Nothing is held outside of Spark's state."""


def _rows(session: SparkSession) -> DataFrame:
    stream = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 40).option("numPartitions", 1)
    return stream.load().select("timestamp", (f.col("value") % 7).alias("id"), "value")


def _timers(session: SparkSession) -> DataFrame:
    return (
        _rows(session)
        .groupBy("id")
        .transformWithState(
            statefulProcessor=Visits(), outputStructType=OUTPUT, outputMode="Update", timeMode="ProcessingTime"
        )
    )


def _aggregation(session: SparkSession) -> DataFrame:
    return _rows(session).groupBy("id").agg(f.count("*").alias("rows"), f.max("value").alias("highest"))


def _dedup(session: SparkSession) -> DataFrame:
    return _rows(session).dropDuplicates(["id"])


def _join(session: SparkSession) -> DataFrame:
    left, right = _rows(session).alias("l"), _rows(session).alias("r")
    return left.join(right, f.expr("l.id = r.id"))


def _expiring_dedup(session: SparkSession) -> DataFrame:
    return _rows(session).withWatermark("timestamp", "1 minute").dropDuplicatesWithinWatermark(["id"])


def _sessions(session: SparkSession) -> DataFrame:
    rows = _rows(session).withWatermark("timestamp", "1 minute")
    return rows.groupBy("id", f.session_window("timestamp", "5 minutes")).agg(f.count("*").alias("rows"))


def _limit(session: SparkSession) -> DataFrame:
    return _rows(session).limit(5)


def _count_in_pandas(key: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
    import pandas as pd

    number = sum(len(frame) for frame in frames) + (state.get[0] if state.exists else 0)
    state.update((number, "home"))
    yield pd.DataFrame({"id": [key[0]], "seen": [number]})


def _pandas_state(session: SparkSession) -> DataFrame:
    return (
        _rows(session)
        .groupBy("id")
        .applyInPandasWithState(_count_in_pandas, OUTPUT, "visits INT, page STRING", "Update", "NoTimeout")
    )


class PandasVisits(Visits):
    """One value, by way of pandas."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._last = handle.getValueState("last_visit", "visits INT, page STRING")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        import pandas as pd

        number = sum(len(frame) for frame in rows)
        self._last.update((number, "home"))
        yield pd.DataFrame({"id": [key[0]], "seen": [number]})


def _in_pandas(session: SparkSession) -> DataFrame:
    return (
        _rows(session)
        .groupBy("id")
        .transformWithStateInPandas(
            statefulProcessor=PandasVisits(), outputStructType=OUTPUT, outputMode="Update", timeMode="None"
        )
    )


def _named_source(session: SparkSession) -> DataFrame:
    stream = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 40).option("numPartitions", 1)
    return stream.name("clicks").load().groupBy("value").count()


# name → (query, output mode, settings)
QUERIES: dict[str, tuple[Callable[[SparkSession], DataFrame], str, dict[str, str]]] = {
    "timers_and_ttl": (
        _timers,
        "update",
        {
            "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
            "spark.sql.streaming.stateStore.encodingFormat": "avro",
        },
    ),
    "timers_unsaferow": (_timers, "update", {"spark.sql.streaming.stateStore.providerClass": ROCKSDB}),
    "aggregation_hdfs": (_aggregation, "update", {"spark.sql.streaming.stateStore.providerClass": HDFS}),
    "dedup_rocksdb": (_dedup, "append", {"spark.sql.streaming.stateStore.providerClass": ROCKSDB}),
    "join_rocksdb": (_join, "append", {"spark.sql.streaming.stateStore.providerClass": ROCKSDB}),
    "join_v3": (
        _join,
        "append",
        {
            "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
            "spark.sql.streaming.join.stateFormatVersion": "3",
        },
    ),
    "dedup_watermark": (_expiring_dedup, "append", {"spark.sql.streaming.stateStore.providerClass": ROCKSDB}),
    "session_windows": (_sessions, "append", {"spark.sql.streaming.stateStore.providerClass": ROCKSDB}),
    "limit": (_limit, "append", {"spark.sql.streaming.stateStore.providerClass": HDFS}),
    "pandas_state": (_pandas_state, "update", {"spark.sql.streaming.stateStore.providerClass": ROCKSDB}),
    "in_pandas": (
        _in_pandas,
        "update",
        {
            "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
            "spark.sql.streaming.stateStore.encodingFormat": "avro",
        },
    ),
    "named_source": (
        _named_source,
        "update",
        {
            "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
            "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
            "spark.sql.streaming.offsetLog.formatVersion": "2",
        },
    ),
}


def run(remote: str, name: str, folder: Path) -> Path:
    """Run one of QUERIES for one batch; returns its checkpoint under `folder`."""
    query, mode, settings = QUERIES[name]
    checkpoint = folder / name
    session = open_session(remote)
    try:
        session.conf.set("spark.sql.shuffle.partitions", "1")
        for setting, value in settings.items():
            session.conf.set(setting, value)
        writer = query(session).writeStream.format("noop").outputMode(mode).queryName(name).trigger(once=True)
        writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination(120)
    finally:
        close_session(session)
    return checkpoint


def keep(checkpoint: Path, name: str) -> None:
    """Copy the files without rows to `fixtures/NAME`."""
    target = FIXTURES / name
    shutil.rmtree(target, ignore_errors=True)
    for path in sorted(checkpoint.rglob("*")):
        relative = path.relative_to(checkpoint)
        in_state = relative.parts[0] == "state"
        described = any(part in ("_metadata", "_stateSchema") for part in relative.parts)
        if path.is_file() and path.suffix != ".crc" and (described or not in_state):
            (target / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / relative)


if __name__ == "__main__":
    if sys.argv[1] == "keep":
        keep(Path(sys.argv[2]), sys.argv[3])
        sys.exit()
    for wanted in sys.argv[3:] or QUERIES:
        keep(run(sys.argv[1], wanted, Path(sys.argv[2])), wanted)
