"""The demo's streaming query: totals of a customer's orders, kept in Spark's state with Avro encoding.

It is one application in two releases. The second one widens two fields of its state, adds one and renames one. A scan
of the checkpoint shows what the restart does to the state.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row
from pyspark.sql.connect import functions as f
from pyspark.sql.connect.avro.functions import from_avro
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import IntegerType, LongType, StructField, StructType
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_fixed

from registry.pipeline.session import close_session, open_session

SCHEMAS = Path(__file__).parent / "schemas"
QUERY_NAME = "customer_totals"
OUTPUT = StructType([StructField("customer_id", IntegerType()), StructField("orders", LongType())])
FIRST_RELEASE_OFFSETS = 120  # messages that the first release reads before it is replaced
BATCH_TIMEOUT = 180  # seconds; a cold server needs about 20 for its first batch
TRIES = 3  # attempts to start a release whose Python worker is slow to start
PAUSE = 5.0  # seconds before the next attempt
# Spark 4.2 waits ten seconds for a Python worker, and fails the query if it is slower, as on a busy machine.
SLOW_WORKER = ("Python worker failed to connect back", "waiting for the Python worker to connect back")
SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.encodingFormat": "avro",
    "spark.sql.shuffle.partitions": "2",
}

# Spark's Python workers don't have this project on their path: send the class itself.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Release:
    """A build of the application: the schemas of its three state variables, and the names that it uses in them."""

    totals: str
    last_orders: str
    by_status: str
    with_currency: bool


FIRST = Release(
    totals="orders INT, amount_cents INT, last_status STRING",
    last_orders="order_id STRING, amount_cents INT",
    by_status="orders INT",
    with_currency=False,
)
SECOND = Release(
    totals="orders BIGINT, amount_cents BIGINT, status STRING, currency STRING",
    last_orders="order_id STRING, amount_cents BIGINT",
    by_status="orders INT",
    with_currency=True,
)


class CustomerTotals(StatefulProcessor):
    """Counts and sums a customer's orders, keeps the last ones, and counts them by status."""

    def __init__(self, release: Release) -> None:
        self._release = release

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state variables and their schemas; Spark calls it when a task starts."""
        self._totals = handle.getValueState("totals", self._release.totals)
        self._last_orders = handle.getListState("last_orders", self._release.last_orders)
        self._by_status = handle.getMapState("by_status", "status STRING", self._release.by_status)

    def handleInputRows(  # noqa: N802  Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803  Spark's name
    ) -> Iterator[Row]:
        """Update a customer's state with the orders in a batch."""
        count, amount, status, currency, recent = self._before()
        for row in rows:
            count, amount, status, currency = count + 1, amount + row.amount_cents, row.status, row.currency
            recent.append((row.order_id, row.amount_cents))
            count_row = self._by_status.getValue((status,)) if self._by_status.containsKey((status,)) else None
            self._by_status.updateValue((status,), ((count_row[0] if count_row else 0) + 1,))
        totals = (count, amount, status) + ((currency,) if self._release.with_currency else ())
        self._totals.update(totals)
        self._last_orders.put(recent[-3:])
        yield Row(customer_id=key[0], orders=count)

    def _before(self) -> tuple[int, int, str | None, str | None, list[tuple[Any, ...]]]:
        """Return the state before the batch; what an earlier release didn't write reads as null."""
        totals = self._totals.get() if self._totals.exists() else None
        if totals is None:
            return 0, 0, None, None, []
        recent = [tuple(entry) for entry in self._last_orders.get()] if self._last_orders.exists() else []
        currency = totals[3] if self._release.with_currency else None
        return totals[0] or 0, totals[1] or 0, totals[2], currency, recent

    def close(self) -> None:
        """Do nothing: everything is in Spark's state."""


def run_queries(
    remote: str, bootstrap: str, checkpoint_dir: str | Path, on_line: Callable[[str], object] = print
) -> Path:
    """Run both releases in order on one checkpoint; return the checkpoint's path.

    `remote` is a Spark Connect address (`sc://…`) whose server can write `checkpoint_dir`. A checkpoint of the second
    release is only continued, because the first one can no longer read its state. Raises SparkUnavailable, RuntimeError
    if a release makes no progress for three minutes, and Spark's own errors.
    """
    checkpoint = Path(checkpoint_dir) / QUERY_NAME
    session = open_session(remote)
    try:
        for name, value in SETTINGS.items():
            session.conf.set(name, value)
        if not _has_batches(checkpoint):
            batches = _with_retries(lambda: _run_first(session, bootstrap, checkpoint), "first", on_line)
            on_line(f"streaming query {QUERY_NAME}: first release ran {batches} batches")
        batches = _with_retries(lambda: _run_second(session, bootstrap, checkpoint), "second", on_line)
        on_line(f"streaming query {QUERY_NAME}: second release ran {batches} batches")
    finally:
        close_session(session)
    return checkpoint


def _with_retries(run: Callable[[], int], release: str, on_line: Callable[[str], object]) -> int:
    """Return the number of batches of a run, repeated if Spark's Python worker was slow to start.

    An uncommitted batch is repeated from its start, so that a second run loses and duplicates nothing.
    """

    def tell(state: RetryCallState) -> None:
        remaining = TRIES - state.attempt_number
        on_line(
            f"streaming query {QUERY_NAME}: Spark's Python worker did not start in time for the {release} release; "
            f"it is tried again in {PAUSE:.0f} s, up to {remaining} {'time' if remaining == 1 else 'times'}"
        )

    return Retrying(
        retry=retry_if_exception(_is_slow_worker),
        wait=wait_fixed(PAUSE),
        stop=stop_after_attempt(TRIES),
        before_sleep=tell,
        reraise=True,
    )(run)


def _is_slow_worker(error: BaseException) -> bool:
    return isinstance(error, PySparkException) and any(words in str(error) for words in SLOW_WORKER)


def _has_batches(checkpoint: Path) -> bool:
    commits = checkpoint / "commits"
    return commits.is_dir() and any(entry.name.isdigit() for entry in commits.iterdir())


def _orders(session: SparkSession, bootstrap: str, release: Release) -> DataFrame:
    """Return the orders in the topic, one per row, without other messages.

    The query decodes with the schemas it was built with, newest first: an older body is too short for the newer schema,
    which only appends fields, and so falls through to its own.
    """
    messages = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
    )
    if release is FIRST:
        messages = messages.option("maxOffsetsPerTrigger", FIRST_RELEASE_OFFSETS)
    body = f.expr("CASE WHEN length(value) > 5 AND substring(value, 1, 1) = X'00' THEN substring(value, 6) END")
    fields = ("order_id", "customer_id", "status")
    newest, oldest = (
        from_avro(body, _schema_text(name), {"mode": "PERMISSIVE"}) for name in ("orders_v2", "orders_v1")
    )
    decoded = messages.load().select(newest.alias("v2"), oldest.alias("v1"))
    columns = [f.coalesce(f"v2.{name}", f"v1.{name}").alias(name) for name in fields]
    amount = f.coalesce("v2.amount_cents", f.col("v1.amount_cents").cast("bigint")).alias("amount_cents")
    orders = decoded.select(*columns, amount, f.col("v2.currency").alias("currency"))
    return orders.where("customer_id BETWEEN 1 AND 1000000 AND amount_cents BETWEEN 0 AND 2000000000")


def _start(session: SparkSession, bootstrap: str, checkpoint: Path, release: Release, trigger: dict[str, Any]) -> Any:
    states = (
        _orders(session, bootstrap, release)
        .groupBy("customer_id")
        .transformWithState(
            statefulProcessor=CustomerTotals(release), outputStructType=OUTPUT, outputMode="Update", timeMode="None"
        )
    )
    return (
        states.writeStream.queryName(QUERY_NAME)
        .format("noop")
        .outputMode("update")
        .option("checkpointLocation", str(checkpoint))
        .trigger(**trigger)
        .start()
    )


def _run_first(session: SparkSession, bootstrap: str, checkpoint: Path) -> int:
    """Run the first release for one batch: a trigger of an hour reads once and then waits."""
    query = _start(session, bootstrap, checkpoint, FIRST, {"processingTime": "1 hour"})
    ends = time.monotonic() + BATCH_TIMEOUT
    try:
        while not _has_batches(checkpoint):
            _raise_if_failed(query)
            if time.monotonic() > ends:
                raise RuntimeError(f"the first release of {QUERY_NAME} finished no batch within {BATCH_TIMEOUT} s")
            time.sleep(0.2)
    finally:
        query.stop()
    return 1


def _run_second(session: SparkSession, bootstrap: str, checkpoint: Path) -> int:
    query = _start(session, bootstrap, checkpoint, SECOND, {"availableNow": True})
    try:
        if not query.awaitTermination(BATCH_TIMEOUT):
            raise RuntimeError(f"the second release of {QUERY_NAME} didn't finish within {BATCH_TIMEOUT} s")
        return len(query.recentProgress)
    finally:
        query.stop()


def _raise_if_failed(query: Any) -> None:
    error = query.exception()
    if error is not None:
        raise error


def _schema_text(name: str) -> str:
    return (SCHEMAS / f"{name}.avsc").read_text(encoding="utf-8")
