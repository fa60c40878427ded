"""How quick state stores are read: the metadata of one large checkpoint and of many, and statistics of rows.

The checkpoints of metadata are of a query that has evolved many times, as Spark 4.2 writes it.
"""

from __future__ import annotations

import json
import os
import struct
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.engines import milliseconds
from benchmarks.measurement import machine, timed
from dashboard.runtime.parts import spark_connect
from registry.checkpoints import Bounds, Discovery, ReadCache, find_checkpoints, read_checkpoint
from registry.checkpoints.model import rows_to_read
from registry.checkpoints.schema_files import forget_schemas
from registry.observations import Bounds as ScanBounds
from registry.observations import StateRows, StateScan, StateVariableRead

_SPARK: Final = "org.apache.spark.sql.execution.streaming.state"
_CONF: Final = {
    "spark.sql.streaming.stateStore.providerClass": f"{_SPARK}.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.encodingFormat": "avro",
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    "spark.sql.streaming.aggregation.stateFormatVersion": "2",
    "spark.sql.streaming.join.stateFormatVersion": "2",
}
_TYPES: Final = ("string", "long", "double", "timestamp", "boolean")
_ENCODER: Final = '{"keyStateEncoderType":"NoPrefixKeyStateEncoderSpec"}'
RETAINED: Final = 100  # batches that Spark keeps unless told otherwise


def write_checkpoint(folder: Path, *, schema_files: int, variables: int, fields: int = 10) -> Path:
    """A checkpoint of one transformWithState operator: each schema file adds a field to one variable after another."""
    batches = [number * 10 for number in range(schema_files)]
    schemas = folder / "state" / "0" / "_stateSchema" / "default"
    metadata = folder / "state" / "0" / "_metadata" / "v2"
    for directory in (schemas, metadata, folder / "offsets", folder / "commits"):
        directory.mkdir(parents=True)
    (folder / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    written = []
    for batch, content in zip(batches, _schema_files(schema_files, variables, fields), strict=True):
        path = schemas / f"{batch}_{uuid.uuid4()}"
        path.write_bytes(content)
        written.append(f"file:{path}")
        if batch >= batches[-1] - RETAINED:
            (metadata / str(batch)).write_text(f"v2\n{json.dumps(_operator(written, variables))}")
    for batch in range(max(0, batches[-1] - RETAINED), batches[-1] + 1):
        write_batch(folder, batch)
    return folder


def write_batch(folder: Path, batch: int) -> None:
    """Plan and commit a batch of one Kafka source with 16 partitions."""
    described = {"batchWatermarkMs": 0, "batchTimestampMs": 1_790_000_000_000 + batch * 10_000, "conf": _CONF}
    offsets = {"orders": {str(partition): batch * 100 for partition in range(16)}}
    (folder / "offsets" / str(batch)).write_text(f"v1\n{json.dumps(described)}\n{json.dumps(offsets)}")
    (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def _schema_files(count: int, variables: int, fields: int) -> Iterator[bytes]:
    added = [0] * variables
    for number in range(count):
        if number:
            added[number % variables] += 1
        families = [_family(f"variable_{at:03d}", fields + more, more) for at, more in enumerate(added)]
        yield _text("v3") + struct.pack(">i", len(families)) + b"".join(families)


def _family(name: str, fields: int, value_id: int) -> bytes:
    value = _struct({f"field_{number}": _TYPES[number % len(_TYPES)] for number in range(fields)})
    key = _struct({"customer_id": "string"})
    parts = (_text(name), struct.pack(">h", 0), _chunked(key), struct.pack(">h", value_id), _chunked(value))
    return b"".join(parts) + _chunked(_ENCODER) + _chunked("{    }")


def _struct(columns: dict[str, str]) -> str:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    return json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")


def _chunked(text: str) -> bytes:
    return struct.pack(">i", 1) + _text(text)


def _operator(files: list[str], variables: int) -> dict[str, Any]:
    names = [f"variable_{number:03d}" for number in range(variables)]
    listed = [{"stateName": name, "stateVariableType": "ValueState", "ttlEnabled": False} for name in names]
    store = {"storeName": "default", "numColsPrefixKey": 0, "numPartitions": 200, "stateSchemaFilePaths": files}
    return {
        "operatorInfo": {"operatorId": 0, "operatorName": "transformWithStateExec"},
        "stateStoreInfo": [store],
        "operatorPropertiesJson": json.dumps({"timeMode": "NoTime", "outputMode": "Update", "stateVariables": listed}),
    }


CHANGED: Final = 5  # checkpoints that went on between two listings
SMALL_FILES, SMALL_VARIABLES = 6, 4  # of each of the many checkpoints
RATE: Final = 0.8  # of Spark's own count
BOUNDS: Final = ScanBounds(max_messages=10**9, max_bytes=10**12, deadline_seconds=3_600)


#: what a scan spends beside the count of the same rows, as the processor time of Spark's server was split
SPLIT: Final = (
    "A row costs both the same, 0.4 µs of processor time for an aggregation's; the statistics need more once for each "
    "variable: 0.05 s to plan some thirty expressions, and 0.25 s in place of 0.1 s as Spark compiles a query's code "
    "anew in every session. In a session that had run the query before, 400,000 keys took 0.35 s of it and their count "
    "0.30 s (0.86); in a session of its own, as every scan has, 0.60 s and 0.39 s (0.65). The longer a row takes to "
    "read, as those of transformWithState do, and the more of them there are, the nearer it comes to 1."
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: schema files and variables of the one checkpoint, how many checkpoints are listed.

    `keys` of the aggregation, `variable_keys` of each variable of transformWithState; 0 leaves them out, and Spark too.
    """

    schema_files: int = 128
    variables: int = 50
    checkpoints: int = 500
    repeats: int = 20
    keys: int = 1_000_000
    variable_keys: int = 100_000


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement; `goal` in seconds, None without one."""

    what: str
    seconds: float
    goal: float | None
    note: str = ""


def measure(size: Size) -> Iterator[Row]:
    """The rows, as they are measured."""
    for measurement in MEASURES:
        with tempfile.TemporaryDirectory(prefix="bench-state-") as folder:
            yield from measurement(Path(folder), size)


def _one_checkpoint(folder: Path, size: Size) -> Iterator[Row]:
    path = write_checkpoint(folder / "query", schema_files=size.schema_files, variables=size.variables)
    what = f"read a checkpoint of {size.schema_files} schema files and {size.variables} variables"

    def first() -> Callable[[], object]:
        forget_schemas()
        return lambda: read_checkpoint(str(path), [folder])

    cold = timed(first, most_calls=size.repeats, most_seconds=30)
    yield Row(what, cold.median, 0.3, f"99 %: {milliseconds(cold.p99)}")
    cache = ReadCache()
    again = timed(
        lambda: lambda: read_checkpoint(str(path), [folder], cache=cache), most_calls=size.repeats, most_seconds=30
    )
    yield Row("the same again when nothing changed", again.median, None)

    def after_a_batch() -> Callable[[], object]:
        newest = max(int(entry.name) for entry in (path / "offsets").iterdir())
        write_batch(path, newest + 1)
        return lambda: read_checkpoint(str(path), [folder], cache=cache)

    more = timed(after_a_batch, most_calls=size.repeats, most_seconds=30)
    yield Row("the same after one more batch", more.median, None)


def _many_checkpoints(folder: Path, size: Size) -> Iterator[Row]:
    paths = [
        write_checkpoint(
            folder / f"team_{number % 20}" / f"query_{number}", schema_files=SMALL_FILES, variables=SMALL_VARIABLES
        )
        for number in range(size.checkpoints)
    ]
    cache = ReadCache(checkpoints=size.checkpoints)

    def listing() -> float:
        began = time.perf_counter()
        _all_found(find_checkpoints(str(folder), [folder], cache=cache, bounds=Bounds(size.checkpoints)), size)
        return time.perf_counter() - began

    forget_schemas()
    yield Row(f"find and read {size.checkpoints} checkpoints", listing(), None)
    yield Row("list them again when nothing changed", min(listing() for _ in range(3)), 60.0)
    for path in paths[:: max(1, len(paths) // CHANGED)][:CHANGED]:
        write_batch(path, (SMALL_FILES - 1) * 10 + 1)
    yield Row(f"list them again when {CHANGED} of them went on", listing(), None)


def _all_found(discovery: Discovery, size: Size) -> None:
    read = [match for match in discovery.found if match.checkpoint is not None]
    if len(read) != size.checkpoints or discovery.ended_early:
        raise RuntimeError(f"{len(read)} of {size.checkpoints} checkpoints were read ({discovery.ended_early})")


def _row_statistics(folder: Path, size: Size) -> Iterator[Row]:
    """Statistics of rows held against Spark's own reader, which counts them; on one server, in turns."""
    from benchmarks.spark_state import write_aggregation, write_variables  # late: they need PySpark

    if not (size.keys or size.variable_keys):
        return
    with ExitStack() as stack:
        (folder / "spark").mkdir()
        remote = os.environ.get("SPARK_REMOTE") or stack.enter_context(spark_connect(folder / "spark"))
        for keys, what, write in (
            (size.keys, "an aggregation", write_aggregation),
            (size.variable_keys, "2 variables", write_variables),
        ):
            if keys:
                path = write(remote, folder / write.__name__, keys)
                yield from _against_count(remote, path, keys, what, min(3, size.repeats))


def _against_count(remote: str, path: Path, keys: int, what: str, repeats: int) -> Iterator[Row]:
    reads = rows_to_read(read_checkpoint(str(path), [path]))
    counted, scanned = [], []
    for _ in range(repeats + 1):  # the first of each isn't counted: a server compiles what it runs often
        counted.append(_seconds(lambda: _count(remote, path, reads)))
        scanned.append(_seconds(lambda: _scan(remote, path, reads, keys)))
    count, scan = min(counted[1:]), min(scanned[1:])
    rows = keys * len(reads)
    yield Row(
        f"count the rows of {what} of {keys:,} keys with Spark", count, None, f"{rows / count:,.0f} rows a second"
    )
    rate = f"{rows / scan:,.0f} rows a second, {count / scan:.2f} of the count's rate"
    yield Row(f"row statistics of {what} of {keys:,} keys", scan, count / RATE, rate)


def _seconds(action: Callable[[], None]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _count(remote: str, path: Path, reads: Sequence[StateVariableRead]) -> None:
    """Spark's own reader with a count for each variable: what the statistics are held against."""
    from registry.pipeline.session import close_session, open_session
    from registry.pipeline.state_store import read_rows, start_coordinator

    session = open_session(remote)
    try:
        start_coordinator(session)
        for read in reads:
            if not read_rows(session, str(path), read).count():
                raise RuntimeError(f"the state of {read.variable or 'the operator'} has no rows")
    finally:
        close_session(session)


def _scan(remote: str, path: Path, reads: tuple[StateVariableRead, ...], keys: int) -> None:
    """A scan's reading of rows, whole: every variable has all its keys, or the measurement is none."""
    from registry.pipeline.run import run

    observations = run(StateScan(str(path), reads, BOUNDS), remote=remote)
    rows = [rows_read.rows for rows_read in observations if isinstance(rows_read, StateRows)]
    if rows != [keys] * len(reads):
        raise RuntimeError(f"the scan read {rows} rows, not {keys:,} of each of {len(reads)}")


#: what is measured, in this order
MEASURES: Final[tuple[Callable[[Path, Size], Iterator[Row]], ...]] = (
    _one_checkpoint,
    _many_checkpoints,
    _row_statistics,
)


def cells(row: Row) -> tuple[str, str, str, str]:
    """A row as the table shows it."""
    goal = "" if row.goal is None else f"{row.goal:g} s{'' if row.seconds <= row.goal else ' (missed)'}"
    return row.what, milliseconds(row.seconds), goal, row.note


def section(rows: list[Row], note: str = "") -> str:
    """The section of the page of measurements."""
    lines = [
        f"Measured on {time.strftime('%Y-%m-%d')} with {machine()}.{' ' + note if note else ''}",
        "",
        f"Without Spark, on a local disk, but for the rows: they go through Spark's own reader, and the goal is "
        f"{RATE:g} of the rate at which it counts them, per variable and in the same run; the quickest of three. "
        "The one checkpoint's variables have ten fields and more; it keeps 100 batches. "
        f"Each of the many has {SMALL_FILES} schema files, {SMALL_VARIABLES} variables and 51 batches.",
        "",
        SPLIT,
        "",
        "| what | median or best | goal | |",
        "|---|---|---|---|",
        *(f"| {' | '.join(cells(row))} |" for row in rows),
    ]
    return "\n".join(lines)
