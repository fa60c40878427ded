"""What is counted of a state variable's rows in one pass. Nothing of a value leaves Spark but lengths, magnitudes, years."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as f
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
    TimestampNTZType,
    TimestampType,
)

from registry.observations import (
    Observation,
    StateExpiry,
    StateFieldNulls,
    StateFieldRange,
    StateKeys,
    StateRows,
    StateVariableRead,
)
from registry.pipeline.readers.state_store import CountedField, counted_fields, expiry_column, with_distinct_names
from registry.pipeline.workers.masking import shown_magnitude

MAX_RANGES: Final = 100  # fields of one variable; beyond it, only nulls are counted
KEYS_SKETCH: Final = 12  # 2 to this many counters estimate keys: a standard error of 2 % at most
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
    """What may be known of a field's values as a number, at both ends, and the words for it."""

    low: Column
    high: Column
    words: str


def profile_rows(rows: DataFrame, read: StateVariableRead) -> list[Observation]:
    """Counts rows, keys, nulls, sizes and masked ranges of a variable's rows; one query of Spark."""
    rows = with_distinct_names(rows)
    fields = counted_fields(rows.schema)
    expiry = expiry_column(rows.schema)
    asked: list[Column] = [f.count("*").alias("rows")]
    counts_keys = read.kind in ("list", "map") and "key" in rows.columns
    if counts_keys:
        # Not approx_count_distinct: its hundreds of columns cost more than to read the rows.
        sketch = f.hll_sketch_agg(f.xxhash64(f.col("key")), f.lit(KEYS_SKETCH))
        asked.append(f.hll_sketch_estimate(sketch).alias("keys"))
    if expiry is not None:
        known = f.when(expiry > 0, expiry)
        asked += [f.count(known).alias("x"), f.min(known).alias("x_first"), f.max(known).alias("x_last")]
    for index, field in enumerate(fields):
        asked += _asked(index, field, with_range=index < MAX_RANGES)
    found: Any = rows.agg(*asked).collect()[0]
    batch = read.batch if read.batch is not None else -1
    return _observations(found.asDict(), fields, read, batch, counts_keys=counts_keys, expires=expiry is not None)


def _asked(index: int, field: CountedField, *, with_range: bool) -> list[Column]:
    asked = [f.count(field.column).alias(f"n{index}")]
    if not with_range:
        return asked
    measure = _measure(field)
    if measure is not None:
        asked += [_masked(measure.low, field).alias(f"l{index}"), _masked(measure.high, field).alias(f"h{index}")]
    if isinstance(field.type, StringType | BinaryType):
        asked.append(f.sum(f.octet_length(field.column)).alias(f"b{index}"))
    return asked


def _measure(field: CountedField) -> _Measure | None:
    kind, value = field.type, field.column
    # What keeps the order is worked out of the two ends, not of every row.
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


def _ends(number: Column, words: str) -> _Measure:
    return _Measure(f.min(number), f.max(number), words)


def _masked(number: Column, field: CountedField) -> Column:
    """A number's sign and order of magnitude; all other measures as they are."""
    if not isinstance(field.type, _NUMBERS):
        return number.cast("double")
    size = f.greatest(f.least(f.abs(number), f.lit(1e300)), f.lit(1e-300))
    code = f.signum(number) * (f.floor(f.log10(size)) + 400)
    return f.when(number == 0, f.lit(0.0)).otherwise(code).cast("double")


def _observations(
    found: dict[str, Any],
    fields: Sequence[CountedField],
    read: StateVariableRead,
    batch: int,
    *,
    counts_keys: bool,
    expires: bool,
) -> list[Observation]:
    rows = int(found["rows"])
    where = (read.operator, read.variable, batch)
    sizes = [_size(found, index, field) for index, field in enumerate(fields)]
    size = sum(each or 0 for each in sizes) if all(each is not None for each in sizes) else None
    observed: list[Observation] = [StateRows(*where, rows)]
    observed.append(StateKeys(*where, min(rows, int(found["keys"])) if counts_keys else rows, size))
    for index, field in enumerate(fields):
        observed.append(StateFieldNulls(*where, field.path, rows, rows - int(found[f"n{index}"])))
        low, high = (_shown(found.get(f"{end}{index}"), field) for end in "lh")
        observed.append(StateFieldRange(*where, field.path, field.type.simpleString()[:200], low, high, sizes[index]))
    if expires:
        observed.append(StateExpiry(*where, rows - int(found["x"]), found["x_first"], found["x_last"]))
    return observed


def _size(found: dict[str, Any], index: int, field: CountedField) -> int | None:
    if isinstance(field.type, StringType | BinaryType):
        return int(found[f"b{index}"] or 0) if f"b{index}" in found else None
    width = _WIDTHS.get(type(field.type))
    return None if width is None else width * int(found[f"n{index}"])


def _shown(number: float | None, field: CountedField) -> str | None:
    """The masked end of a range in words; None where there is none."""
    measure = _measure(field)
    if number is None or measure is None or number != number:  # noqa: PLR0124 - NaN
        return None
    if isinstance(field.type, _NUMBERS):
        return shown_magnitude(int(number))
    return str(int(number)) if measure.words == "year" else f"{int(number):,} {measure.words}"
