"""Scans a checkpoint's state through Spark's `statestore` source: rows and fields of state variables, and timers.

One pass counts the rows of a variable. Of values, only lengths, magnitudes and the like leave Spark.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as f
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from registry import observations
from registry.pipeline.session import Control, first_line
from registry.pipeline.workers.fields import shown_magnitude

MAX_FIELDS = 500  # per variable; only the first ones are counted
# the source's columns → what they hold; other columns aren't counted
PARTS = {
    "key": "key",
    "value": "value",
    "list_element": "value",
    "user_map_key": "map_key",
    "user_map_value": "value",
}

WRAPPED = ["value", "ttlExpirationMs"]  # the fields that Spark writes for a value that expires


class CountedField(NamedTuple):
    """A field whose nulls are counted: its path for people, its column and its type."""

    path: str
    column: Column
    type: DataType


def start_coordinator(session: SparkSession) -> None:
    """Start the state store coordinator: reading state fails without it in a session that never ran a stream."""
    _ = session.streams.active


def read_rows(session: SparkSession, path: str, read: observations.StateVariableRead) -> DataFrame:
    """Return the rows of a state variable; one row per entry for list and map state."""
    reader = session.read.format("statestore").option("path", path).option("operatorId", read.operator)
    if read.variable is not None:
        reader = reader.option("stateVarName", read.variable).option("flattenCollectionTypes", "true")
    if read.batch is not None:
        reader = reader.option("batchId", read.batch)
    if read.join_side is not None:
        reader = reader.option("joinSide", read.join_side)
    return reader.load()


def read_timers(session: SparkSession, path: str, operator: int, batch: int | None) -> DataFrame:
    """Return the timers registered by an operator: key and `expiration_timestamp_ms`, one row per timer."""
    reader = session.read.format("statestore").option("path", path).option("operatorId", operator)
    reader = reader.option("readRegisteredTimers", "true")
    return (reader if batch is None else reader.option("batchId", batch)).load()


def with_distinct_names(rows: DataFrame) -> DataFrame:
    """Rename repeated fields of structs, such as `max` in an aggregation with two maxima.

    Spark can't find those by name. A cast matches by position.
    """
    for part in rows.schema.fields:
        kind = part.dataType
        if isinstance(kind, StructType) and _names(kind) != _names(_distinct(kind)):
            rows = rows.withColumn(part.name, f.col(_quoted(part.name)).cast(_distinct(kind)))
    return rows


def expiry_column(schema: StructType) -> Column | None:
    """Return when an entry expires, in milliseconds since 1970; None for a variable without time to live."""
    for part in schema.fields:
        kind = part.dataType
        if PARTS.get(part.name) == "value" and isinstance(kind, StructType) and kind.names == WRAPPED:
            return f.col(_quoted(part.name)).getField("ttlExpirationMs")
    return None


def counted_fields(schema: StructType) -> list[CountedField]:
    """Return the fields of a state's rows, including those of nested structs, in schema order."""
    return [
        field
        for part in schema.fields
        if part.name in PARTS
        for field in _below(PARTS[part.name], *_unwrapped(part.dataType, f.col(_quoted(part.name))))
    ]


def _unwrapped(kind: DataType, column: Column) -> tuple[DataType, Column]:
    """Return the user's value without the expiry that Spark stores around it for variables with time to live."""
    if isinstance(kind, StructType) and kind.names == WRAPPED:
        return kind["value"].dataType, column.getField("value")
    return kind, column


def _below(path: str, kind: DataType, column: Column) -> Iterator[CountedField]:
    if not isinstance(kind, StructType):
        yield CountedField(path, column, kind)
        return
    for field in kind.fields:
        yield from _below(f"{path}.{field.name}", field.dataType, column.getField(field.name))


def _distinct(kind: DataType) -> DataType:
    """Return the type with distinct names in every struct: the second `max` is `max#2`."""
    if not isinstance(kind, StructType):
        return kind
    times, fields = Counter[str](), []
    for field in kind.fields:
        times[field.name.lower()] += 1
        number = times[field.name.lower()]
        name = field.name if number == 1 else f"{field.name}#{number}"
        fields.append(StructField(name, _distinct(field.dataType), field.nullable))
    return StructType(fields)


def _names(kind: DataType) -> list[object]:
    if not isinstance(kind, StructType):
        return []
    return [(field.name, _names(field.dataType)) for field in kind.fields]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


MAX_RANGES: Final = 100  # fields per variable; for more, only nulls are counted
KEYS_SKETCH: Final = 12  # 2 to this many counters estimate keys: a standard error of at most 2 %
_NUMBERS: Final = (ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType, DecimalType)
_TIMES: Final = (DateType, TimestampType, TimestampNTZType)
_WIDTHS: Final[dict[type[DataType], int]] = {
    BooleanType: 1,
    ByteType: 1,
    ShortType: 2,
    IntegerType: 4,
    FloatType: 4,
    DateType: 4,
    LongType: 8,
    DoubleType: 8,
    TimestampType: 8,
    TimestampNTZType: 8,
    DecimalType: 16,
}


class _Measure(NamedTuple):
    """The minimum and maximum of a field as numbers that may be shown, and their unit."""

    low: Column
    high: Column
    label: str


def profile_rows(rows: DataFrame, read: observations.StateVariableRead) -> list[observations.Observation]:
    """Count rows, keys, nulls, sizes and masked ranges of a variable's rows, in one Spark query."""
    rows = with_distinct_names(rows)
    all_fields = counted_fields(rows.schema)
    fields = all_fields[:MAX_FIELDS]
    expiry = expiry_column(rows.schema)
    aggregates: list[Column] = [f.count("*").alias("rows")]
    counts_keys = read.kind in ("list", "map") and "key" in rows.columns
    if counts_keys:
        # Not approx_count_distinct: its hundreds of columns cost more than reading the rows.
        sketch = f.hll_sketch_agg(f.xxhash64(f.col("key")), f.lit(KEYS_SKETCH))
        aggregates.append(f.hll_sketch_estimate(sketch).alias("keys"))
    if expiry is not None:
        expiring = f.when(expiry > 0, expiry)
        aggregates += [f.count(expiring).alias("x"), f.min(expiring).alias("x_first"), f.max(expiring).alias("x_last")]
    for index, field in enumerate(fields):
        aggregates += _aggregates(index, field, with_range=index < MAX_RANGES)
    totals: Any = rows.agg(*aggregates).collect()[0]
    batch = read.batch if read.batch is not None else -1
    observed = _observations(totals.asDict(), fields, read, batch, counts_keys=counts_keys, expires=expiry is not None)
    if len(all_fields) > MAX_FIELDS:
        reason = f"the first {MAX_FIELDS} of {len(all_fields):,} fields were counted"
        observed.append(observations.StateUnreadable(read.operator, read.variable, batch, reason))
    return observed


def _aggregates(index: int, field: CountedField, *, with_range: bool) -> list[Column]:
    aggregates = [f.count(field.column).alias(f"n{index}")]
    if not with_range:
        return aggregates
    measure = _measure(field)
    if measure is not None:
        aggregates += [_masked(measure.low, field).alias(f"l{index}"), _masked(measure.high, field).alias(f"h{index}")]
    if isinstance(field.type, StringType | BinaryType):
        aggregates.append(f.sum(f.octet_length(field.column)).alias(f"b{index}"))
    return aggregates


def _measure(field: CountedField) -> _Measure | None:
    kind, value = field.type, field.column
    # What preserves the order is computed from the two ends, not for every row.
    if isinstance(kind, _NUMBERS):
        return _Measure(f.min(value).cast("double"), f.max(value).cast("double"), "")
    if isinstance(kind, _TIMES):
        return _Measure(f.year(f.min(value)), f.year(f.max(value)), "year")
    if isinstance(kind, StringType):
        return _ends(f.length(value), "characters")
    if isinstance(kind, BinaryType):
        return _ends(f.octet_length(value), "bytes")
    if isinstance(kind, ArrayType | MapType):
        return _ends(f.size(value), "entries")
    return None


def _ends(number: Column, label: str) -> _Measure:
    return _Measure(f.min(number), f.max(number), label)


def _masked(number: Column, field: CountedField) -> Column:
    """Return a number's sign and order of magnitude; all other measures unchanged."""
    if not isinstance(field.type, _NUMBERS):
        return number.cast("double")
    size = f.greatest(f.least(f.abs(number), f.lit(1e300)), f.lit(1e-300))
    code = f.signum(number) * (f.floor(f.log10(size)) + 400)
    return f.when(number == 0, f.lit(0.0)).otherwise(code).cast("double")


def _observations(
    totals: dict[str, Any],
    fields: Sequence[CountedField],
    read: observations.StateVariableRead,
    batch: int,
    *,
    counts_keys: bool,
    expires: bool,
) -> list[observations.Observation]:
    rows = int(totals["rows"])
    where = (read.operator, read.variable, batch)
    sizes = [_size(totals, index, field) for index, field in enumerate(fields)]
    size = sum(width or 0 for width in sizes) if all(width is not None for width in sizes) else None
    observed: list[observations.Observation] = [observations.StateRows(*where, rows)]
    observed.append(observations.StateKeys(*where, min(rows, int(totals["keys"])) if counts_keys else rows, size))
    for index, field in enumerate(fields):
        observed.append(observations.StateFieldNulls(*where, field.path, rows, rows - int(totals[f"n{index}"])))
        low, high = (_shown(totals.get(f"{end}{index}"), field) for end in "lh")
        observed.append(
            observations.StateFieldRange(*where, field.path, field.type.simpleString()[:200], low, high, sizes[index])
        )
    if expires:
        observed.append(observations.StateExpiry(*where, rows - int(totals["x"]), totals["x_first"], totals["x_last"]))
    return observed


def _size(totals: dict[str, Any], index: int, field: CountedField) -> int | None:
    if isinstance(field.type, StringType | BinaryType):
        return int(totals[f"b{index}"] or 0) if f"b{index}" in totals else None
    width = _WIDTHS.get(type(field.type))
    return None if width is None else width * int(totals[f"n{index}"])


def _shown(number: float | None, field: CountedField) -> str | None:
    """Return the masked end of a range as text; None if it has none."""
    measure = _measure(field)
    if number is None or measure is None or number != number:  # noqa: PLR0124 - NaN
        return None
    if isinstance(field.type, _NUMBERS):
        return shown_magnitude(int(number))
    return str(int(number)) if measure.label == "year" else f"{int(number):,} {measure.label}"


TIMERS = "timers"
# Spark's errors for an address that none of its jars can open.
NO_CLIENT = ("No FileSystem for scheme", "S3AFileSystem not found")
CLIENT_NEEDED = (
    "the Spark server has no client for this address: s3a needs hadoop-aws of the version of its Hadoop, and the bundle "
    "of the AWS SDK, on its class path"
)


def scan_state(
    session: SparkSession, spec: observations.StateScan, control: Control
) -> Iterator[observations.Observation]:
    """Count rows, keys, nulls and masked ranges of the variables in `spec`, as of the batches named there.

    A variable that can't be read (a batch that Spark has cleaned up) is observed as unreadable, with the reason. Raises
    ScanInterrupted, SparkUnavailable and what the caller's `on_progress` raised.
    """
    started = time.monotonic()
    bound: observations.Bound | None = None
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
            if read.kind != TIMERS:  # rows count without their timers, so unreadable timers aren't reported
                yield observations.StateUnreadable(read.operator, read.variable, read.batch, why_unreadable(error))
            continue
        variables += read.kind != TIMERS
        rows += sum(observation.rows for observation in observed if isinstance(observation, observations.StateRows))
        yield from observed
    yield observations.StateTotals(spec.path, variables, rows, bound, round(time.monotonic() - started, 3))


def why_unreadable(error: PySparkException) -> str:
    """Return Spark's message, and what the server lacks if it can't open such addresses at all."""
    message = first_line(error)
    return f"{CLIENT_NEEDED} ({message})" if any(mark in str(error) for mark in NO_CLIENT) else message


def _prepare(session: SparkSession) -> None:
    start_coordinator(session)
    # The queries return one row each: adaptive planning between their two stages only takes time.
    session.conf.set("spark.sql.adaptive.enabled", "false")


def _observe(session: SparkSession, path: str, read: observations.StateVariableRead) -> list[observations.Observation]:
    if read.kind == TIMERS:
        return [_timers(session, path, read)]
    return profile_rows(read_rows(session, path, read), read)


def _timers(session: SparkSession, path: str, read: observations.StateVariableRead) -> observations.StateTimers:
    due = f.col("expiration_timestamp_ms")
    timers = read_timers(session, path, read.operator, read.batch)
    totals: Any = timers.agg(f.count("*").alias("n"), f.min(due).alias("first"), f.max(due).alias("last")).collect()[0]
    return observations.StateTimers(
        read.operator, read.batch if read.batch is not None else -1, totals.n, totals.first, totals.last
    )
