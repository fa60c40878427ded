"""Make the checkpoints under `older/` again, with real queries on the Spark whose Python runs this.

    python3 -m venv /tmp/spark40
    /tmp/spark40/bin/pip install pyspark==4.0.5 'pandas<3' pyarrow 'protobuf==5.29.*'
    /tmp/spark40/bin/python -m tests.checkpoints.make_spark_version_fixtures /tmp/checkpoints [NAME …]

From the folder of the project; needs Java 17 and nothing of the project's own. Spark 3.5 wants `numpy<2` and a pyarrow
of its time, 4.1 `protobuf==6.33.*`. A query runs on the Sparks that have it, some in two versions of its application,
one after the other. It is kept as `older/VERSION/NAME`, VERSION without the patch: metadata, offsets, commits, sources,
operator metadata and schema files, the rows of WITH_ROWS as well; and from Spark 4.0 on `spark.json`, which is what
Spark's own reader says of the checkpoint. The versions that made what is there are in `older/versions.json`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.scala_classes import compiled

HERE = Path(__file__).parent
OLDER = HERE / "older"
VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
STORE = "spark.sql.streaming.stateStore."
STATE = "org.apache.spark.sql.execution.streaming.state."
ROCKSDB = {f"{STORE}providerClass": f"{STATE}RocksDBStateStoreProvider"}
HDFS = {f"{STORE}providerClass": f"{STATE}HDFSBackedStateStoreProvider"}
AVRO = {**ROCKSDB, f"{STORE}encodingFormat": "avro"}
ROWS = "id BIGINT, page STRING, at TIMESTAMP"
OUTPUT = "id BIGINT, seen INT"
WITH_ROWS = ("aggregation_hdfs", "dedup_rocksdb")
BATCH_TIMEOUT = 240  # seconds


@dataclass(frozen=True)
class Query:
    """A query: how it is made of (session, folder of its input, version of the application), its mode and settings, and
    the first and the last Spark that runs it.
    """

    made: Callable[[SparkSession, Path, int], DataFrame]
    mode: str = "update"
    settings: dict[str, str] = field(default_factory=dict)
    since: tuple[int, int] = (3, 5)
    until: tuple[int, int] = (9, 9)
    versions: int = 1


def rows(session: SparkSession, folder: Path) -> DataFrame:
    """The rows of the JSON files in a folder, as a stream."""
    return session.readStream.schema(ROWS).json(str(folder))


def rates(session: SparkSession) -> DataFrame:
    """Spark's own source of numbered rows."""
    stream = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).option("numPartitions", 1)
    return stream.load().select((f.col("value") % 3).alias("id"), "value", "timestamp")


def expiring(session: SparkSession, folder: Path) -> DataFrame:
    """The rows with a watermark."""
    return rows(session, folder).withWatermark("at", "10 minutes")


def aggregation(session: SparkSession, folder: Path, _: int) -> DataFrame:
    return rows(session, folder).groupBy("id").agg(f.count("*").alias("visits"), f.max("page").alias("last"))


def windows(session: SparkSession, folder: Path, _: int) -> DataFrame:
    return expiring(session, folder).groupBy(f.window("at", "5 minutes"), "page").agg(f.avg("id").alias("mean"))


def join(session: SparkSession, _: Path, __: int) -> DataFrame:
    return rates(session).alias("l").join(rates(session).alias("r"), f.expr("l.id = r.id"))


def outer_join(session: SparkSession, folder: Path, _: int) -> DataFrame:
    left = expiring(session, folder).select("id", "page", "at")
    right = expiring(session, folder).select(f.col("id").alias("other"), f.col("at").alias("then"))
    close = f.expr("id = other AND then BETWEEN at AND at + INTERVAL 5 MINUTES")
    return left.join(right, close, "leftOuter")


def sessions(session: SparkSession, folder: Path, _: int) -> DataFrame:
    return expiring(session, folder).groupBy("id", f.session_window("at", "5 minutes")).agg(f.count("*").alias("rows"))


def two_operators(session: SparkSession, folder: Path, _: int) -> DataFrame:
    once = expiring(session, folder).dropDuplicates(["id", "at"])
    return once.groupBy(f.window("at", "5 minutes")).agg(f.count("*").alias("visits"))


def in_pandas(timeout: str) -> Callable[[SparkSession, Path, int], DataFrame]:
    """applyInPandasWithState with one of its time-outs."""

    def count(key: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
        import pandas as pd

        number = sum(len(frame) for frame in frames) + (state.get[0] if state.exists else 0)
        state.update((number, "home"))
        yield pd.DataFrame({"id": [key[0]], "seen": [number]})

    def made(session: SparkSession, folder: Path, _: int) -> DataFrame:
        grouped = rows(session, folder).groupBy("id")
        return grouped.applyInPandasWithState(count, OUTPUT, "visits INT, page STRING", "Update", timeout)

    return made


def in_scala(method: str) -> Callable[[SparkSession, Path, int], DataFrame]:
    """A method of scala/Groups.scala."""

    def made(session: SparkSession, folder: Path, _: int) -> DataFrame:
        groups = session._jvm.schemadesk.fixtures.Groups
        return DataFrame(getattr(groups, method)(rows(session, folder)._jdf), session)

    return made


# Of the variables of visits(): how they are declared by the two versions of the application.
DECLARED: dict[str, tuple[str, str]] = {
    "last_visit": ("visits INT, page STRING", "visits BIGINT, page STRING, device STRING"),
    "pages": ("page STRING", "page STRING, at TIMESTAMP"),
    "counts": ("visits INT", "visits INT"),
}


def visits(api: str, has_clock: bool = True) -> Callable[[SparkSession, Path, int], DataFrame]:
    """transformWithState with a value, a list and a map, and a variable that its second version deletes; with a clock
    also timers and time to live. `api` is pandas or row.
    """

    def made(session: SparkSession, folder: Path, version: int) -> DataFrame:
        from pyspark.sql.streaming.stateful_processor import StatefulProcessor

        def declared(name: str) -> str:
            return DECLARED[name][version]

        class Visits(StatefulProcessor):
            def init(self, handle: Any) -> None:
                self._handle = handle
                ttl = 86_400_000 if has_clock else None
                self._last = handle.getValueState("last_visit", declared("last_visit"), ttl)
                self._pages = handle.getListState("pages", declared("pages"))
                self._counts = handle.getMapState("counts", "page STRING", declared("counts"), ttl)
                if version:
                    handle.deleteIfExists("first_visit")
                else:
                    self._first = handle.getValueState("first_visit", "page STRING")

            def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
                import pandas as pd

                number = sum(len(each) if api == "pandas" else 1 for each in rows)
                if version:
                    self._last.update((number, "home", "phone"))
                else:
                    self._last.update((number, "home"))
                    self._first.update(("home",))
                    self._pages.appendValue(("home",))
                self._counts.updateValue(("home",), (number,))
                if has_clock:
                    self._handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 3_600_000)
                row = {"id": key[0], "seen": number}
                yield pd.DataFrame([row]) if api == "pandas" else pyspark.sql.Row(**row)

            def close(self) -> None:
                """Nothing is held outside of Spark's state."""

        grouped = rows(session, folder).groupBy("id")
        ask = grouped.transformWithStateInPandas if api == "pandas" else grouped.transformWithState
        return ask(Visits(), OUTPUT, "Update", "ProcessingTime" if has_clock else "None")

    return made


QUERIES: dict[str, Query] = {
    "aggregation_hdfs": Query(aggregation, settings=HDFS),
    "aggregation_rocksdb": Query(windows, settings=ROCKSDB),
    "aggregation_v1": Query(aggregation, settings={**HDFS, "spark.sql.streaming.aggregation.stateFormatVersion": "1"}),
    "dedup_rocksdb": Query(lambda *given: rows(*given[:2]).dropDuplicates(["id"]), "append", ROCKSDB),
    "dedup_hdfs": Query(lambda *given: expiring(*given[:2]).dropDuplicates(["id", "at"]), "append", HDFS),
    "dedup_within": Query(lambda *given: expiring(*given[:2]).dropDuplicatesWithinWatermark(["id"]), "append", ROCKSDB),
    "join_rocksdb": Query(join, "append", ROCKSDB),
    "join_hdfs": Query(outer_join, "append", HDFS),
    # Spark 4.1.4 stops with an internal error while it plans this one.
    "join_v1": Query(join, "append", {**HDFS, "spark.sql.streaming.join.stateFormatVersion": "1"}, until=(4, 0)),
    "session_windows": Query(sessions, "append", ROCKSDB),
    "limit": Query(lambda session, *_: rates(session).limit(5), "append", HDFS),
    "two_operators": Query(two_operators, "append", ROCKSDB),
    "pandas_state": Query(in_pandas("NoTimeout"), settings=HDFS),
    "pandas_state_timeout": Query(in_pandas("ProcessingTimeTimeout"), settings=ROCKSDB),
    "groups_timeout": Query(in_scala("flatMap"), settings=ROCKSDB),
    "groups_v1": Query(
        in_scala("flatMap"), settings={**HDFS, "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion": "1"}
    ),
    "map_groups": Query(in_scala("map"), settings=HDFS),
    "tws_pandas": Query(visits("pandas"), settings=AVRO, since=(4, 0), versions=2),
    "tws_pandas_unsaferow": Query(visits("pandas"), settings=ROCKSDB, since=(4, 0)),
    "tws_pandas_plain": Query(visits("pandas", has_clock=False), settings=AVRO, since=(4, 0)),
    "tws_row": Query(visits("row"), settings=AVRO, since=(4, 1), versions=2),
    "tws_row_unsaferow": Query(visits("row"), settings=ROCKSDB, since=(4, 1)),
}


def started(folder: Path) -> SparkSession:
    """A session of the Spark at hand, with the Scala classes on its path."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    classes = compiled([HERE / "scala" / "Groups.scala"], folder / "classes")
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-memory 1200m --driver-class-path {classes} pyspark-shell"
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def run(session: SparkSession, name: str, folder: Path) -> Path:
    """Run every version of one of QUERIES on what has come in until then; returns its checkpoint."""
    query = QUERIES[name]
    shutil.rmtree(folder / name, ignore_errors=True)
    for version in range(query.versions):
        given = folder / name / "input"
        given.mkdir(parents=True, exist_ok=True)
        written = [{"id": number % 3, "page": "home", "at": f"2024-01-01T00:0{number}:00Z"} for number in range(4)]
        (given / f"{version}.json").write_text("".join(json.dumps(row) + "\n" for row in written))
        for setting, value in query.settings.items():
            session.conf.set(setting, value)
        writer = query.made(session, given, version).writeStream.format("noop").outputMode(query.mode)
        writer = writer.option("checkpointLocation", str(folder / name / "checkpoint"))
        running = writer.trigger(availableNow=True).start()
        try:
            if not running.awaitTermination(BATCH_TIMEOUT):
                raise RuntimeError(f"{name} doesn't end within {BATCH_TIMEOUT} s")
        finally:
            running.stop()
            for setting in query.settings:
                session.conf.unset(setting)
    return folder / name / "checkpoint"


def what_spark_says(session: SparkSession, checkpoint: Path) -> list[dict[str, Any]]:
    """Every store of a checkpoint as Spark's own readers know it: its metadata, and the columns of its state."""
    session.streams.active  # noqa: B018 - starts what the state reader asks
    said = []
    for row in session.read.format("state-metadata").load(str(checkpoint)).collect():
        store = row.asDict()
        properties = json.loads(store.pop("operatorProperties", "") or "{}")
        names = [each["stateName"] for each in properties.get("stateVariables") or ()]
        told = {"operatorId": store["operatorId"], "storeName": store["stateStoreName"]}
        asked = [{"operatorId": told["operatorId"], "stateVarName": name} for name in names] or [told]
        columns = {}
        for options in asked:
            reader = session.read.format("statestore").option("path", str(checkpoint))
            for option, value in options.items():
                reader = reader.option(option, value)
            columns[str(options.get("stateVarName", "default"))] = {
                each.name: each.dataType.simpleString() for each in reader.load().schema.fields
            }
        said.append({**store, "operatorProperties": properties, "columns": columns})
    return said


def keep(checkpoint: Path, name: str, said: list[dict[str, Any]] | None) -> None:
    """Copy what is kept to `older/VERSION/NAME`."""
    target = OLDER / ".".join(map(str, VERSION)) / name
    shutil.rmtree(target, ignore_errors=True)
    for path in sorted(checkpoint.rglob("*")):
        relative = path.relative_to(checkpoint)
        described = relative.parts[0] != "state" or {"_metadata", "_stateSchema"} & set(relative.parts)
        if path.is_file() and path.suffix != ".crc" and (described or name in WITH_ROWS):
            (target / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / relative)
    if said is not None:
        lines = ",\n".join(map(json.dumps, said))
        (target / "spark.json").write_text(f"[\n{lines}\n]\n")


def main(folder: Path, wanted: list[str]) -> None:
    """Make the queries of these names, all that this Spark has without names."""
    session = started(folder.resolve())
    for name in wanted or [name for name, query in QUERIES.items() if query.since <= VERSION <= query.until]:
        checkpoint = run(session, name, folder.resolve())
        keep(checkpoint, name, what_spark_says(session, checkpoint) if VERSION >= (4, 0) else None)
        print(f"{pyspark.__version__} {name}", flush=True)
    session.stop()
    versions = OLDER / "versions.json"
    known = json.loads(versions.read_text()) if versions.exists() else {}
    known[".".join(map(str, VERSION))] = pyspark.__version__
    versions.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
