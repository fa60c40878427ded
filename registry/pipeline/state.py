"""The scan of a checkpoint's state: rows of each variable, and nulls of each field."""

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
    StateFieldNulls,
    StateRows,
    StateScan,
    StateTotals,
    StateUnreadable,
    StateVariableRead,
)
from registry.pipeline.control import Control
from registry.pipeline.readers.state_store import counted_fields, read_rows, start_coordinator
from registry.pipeline.session import first_line


def scan_state(session: SparkSession, spec: StateScan, control: Control) -> Iterator[Observation]:
    """Count rows and nulls of the variables named in `spec`, as of the batches named there.

    A variable that can't be read (a batch that Spark has cleaned up) is observed as unreadable, with the reason.
    Raises ScanInterrupted, SparkUnavailable and what the caller's `on_progress` raised.
    """
    started = time.monotonic()
    bound: Bound | None = None
    rows = variables = 0
    control.run("preparing to read state", lambda: start_coordinator(session))
    for read in spec.variables:
        if rows >= spec.bounds.max_messages:
            bound = "messages"
            break
        name = read.variable or f"operator {read.operator}"
        try:
            observed = control.run(f"reading the state of {name}", partial(_observe, session, spec.path, read))
        except PySparkException as error:
            yield StateUnreadable(read.operator, read.variable, read.batch, first_line(error))
            continue
        variables += 1
        rows += sum(seen.rows for seen in observed if isinstance(seen, StateRows))
        yield from observed
    yield StateTotals(spec.path, variables, rows, bound, round(time.monotonic() - started, 3))


def _observe(session: SparkSession, path: str, read: StateVariableRead) -> list[Observation]:
    rows = read_rows(session, path, read)
    fields = counted_fields(rows.schema)
    filled = [f.count(field.column).alias(f"f{index}") for index, field in enumerate(fields)]
    counted: Any = rows.agg(f.count("*").alias("rows"), *filled).collect()[0]
    batch = read.batch if read.batch is not None else -1
    observed: list[Observation] = [StateRows(read.operator, read.variable, batch, counted.rows)]
    observed += [
        StateFieldNulls(read.operator, read.variable, batch, field.path, counted.rows, counted.rows - counted[index])
        for index, field in enumerate(fields, start=1)
    ]
    return observed
