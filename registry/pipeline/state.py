"""The scan of a checkpoint's state: rows and fields of each variable, and the timers of each operator."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.connect import functions as f
from pyspark.sql.connect.session import SparkSession

from registry.observations import (
    Bound,
    Observation,
    StateRows,
    StateScan,
    StateTimers,
    StateTotals,
    StateUnreadable,
    StateVariableRead,
)
from registry.pipeline.control import Control
from registry.pipeline.readers.state_store import read_rows, read_timers, start_coordinator
from registry.pipeline.session import first_line
from registry.pipeline.state_profile import profile_rows

TIMERS = "timers"
# What Spark says of an address that none of its jars can open.
NO_CLIENT = ("No FileSystem for scheme", "S3AFileSystem not found")
CLIENT_NEEDED = (
    "the Spark server has no client for this address: s3a needs hadoop-aws of the version of its Hadoop, and the bundle "
    "of the AWS SDK, on its class path"
)


def scan_state(session: SparkSession, spec: StateScan, control: Control) -> Iterator[Observation]:
    """Count rows, keys, nulls and masked ranges of the variables named in `spec`, as of the batches named there.

    A variable that can't be read (a batch that Spark has cleaned up) is observed as unreadable, with the reason.
    Raises ScanInterrupted, SparkUnavailable and what the caller's `on_progress` raised.
    """
    started = time.monotonic()
    bound: Bound | None = None
    rows = variables = 0
    control.run("preparing to read state", lambda: _prepare(session))
    for read in spec.variables:
        if rows >= spec.bounds.max_messages:
            bound = "messages"
            break
        name = read.variable or f"operator {read.operator}"
        if read.kind == TIMERS:
            name = f"the timers of operator {read.operator}"
        try:
            observed = control.run(f"reading the state of {name}", partial(_observe, session, spec.path, read))
        except PySparkException as error:
            if read.kind != TIMERS:  # the rows stand for themselves; without timers nothing is said of them
                yield StateUnreadable(read.operator, read.variable, read.batch, why_unreadable(error))
            continue
        variables += read.kind != TIMERS
        rows += sum(seen.rows for seen in observed if isinstance(seen, StateRows))
        yield from observed
    yield StateTotals(spec.path, variables, rows, bound, round(time.monotonic() - started, 3))


def why_unreadable(error: PySparkException) -> str:
    """What Spark says, and what it lacks where it can't open such addresses at all."""
    said = first_line(error)
    return f"{CLIENT_NEEDED} ({said})" if any(words in str(error) for words in NO_CLIENT) else said


def _prepare(session: SparkSession) -> None:
    start_coordinator(session)
    # What runs here ends in one row each: planning it again between its two stages only takes time.
    session.conf.set("spark.sql.adaptive.enabled", "false")


def _observe(session: SparkSession, path: str, read: StateVariableRead) -> list[Observation]:
    if read.kind == TIMERS:
        return [_timers(session, path, read)]
    return profile_rows(read_rows(session, path, read), read)


def _timers(session: SparkSession, path: str, read: StateVariableRead) -> StateTimers:
    due = f.col("expiration_timestamp_ms")
    timers = read_timers(session, path, read.operator, read.batch)
    found: Any = timers.agg(f.count("*").alias("n"), f.min(due).alias("first"), f.max(due).alias("last")).collect()[0]
    return StateTimers(read.operator, read.batch if read.batch is not None else -1, found.n, found.first, found.last)
