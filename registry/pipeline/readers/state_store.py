"""A state variable's rows, through Spark's `statestore` source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as f
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from registry.observations import StateVariableRead

MAX_FIELDS = 500  # of one variable; beyond it, only the first ones are counted
# the source's own columns → what they hold; the others are counted as they come
PARTS = {
    "key": "key",
    "value": "value",
    "list_element": "value",
    "user_map_key": "map_key",
    "user_map_value": "value",
}

WRAPPED = ["value", "ttlExpirationMs"]  # what Spark makes of a value that expires


class CountedField(NamedTuple):
    """A field whose nulls are counted: its path for people, its column and its type."""

    path: str
    column: Column
    type: DataType


def start_coordinator(session: SparkSession) -> None:
    """In a session that never streamed, reading state fails for want of a coordinator, which this call starts."""
    _ = session.streams.active


def read_rows(session: SparkSession, path: str, read: StateVariableRead) -> DataFrame:
    """The rows of a state variable, one an entry for list and map state."""
    reader = session.read.format("statestore").option("path", path).option("operatorId", read.operator)
    if read.variable is not None:
        reader = reader.option("stateVarName", read.variable).option("flattenCollectionTypes", "true")
    if read.batch is not None:
        reader = reader.option("batchId", read.batch)
    if read.join_side is not None:
        reader = reader.option("joinSide", read.join_side)
    return reader.load()


def read_timers(session: SparkSession, path: str, operator: int, batch: int | None) -> DataFrame:
    """The timers that an operator has registered: key and `expiration_timestamp_ms`, one row a timer."""
    reader = session.read.format("statestore").option("path", path).option("operatorId", operator)
    reader = reader.option("readRegisteredTimers", "true")
    return (reader if batch is None else reader.option("batchId", batch)).load()


def with_distinct_names(rows: DataFrame) -> DataFrame:
    """The rows with structs in which no name stands twice, as `max` does in the state of an aggregation with two maxima:
    Spark finds none of those by name. A cast goes by position.
    """
    for part in rows.schema.fields:
        kind = part.dataType
        if isinstance(kind, StructType) and _names(kind) != _names(_distinct(kind)):
            rows = rows.withColumn(part.name, f.col(_quoted(part.name)).cast(_distinct(kind)))
    return rows


def expiry_column(schema: StructType) -> Column | None:
    """When an entry expires, in milliseconds since 1970; None for a variable without time to live."""
    for part in schema.fields:
        kind = part.dataType
        if PARTS.get(part.name) == "value" and isinstance(kind, StructType) and kind.names == WRAPPED:
            return f.col(_quoted(part.name)).getField("ttlExpirationMs")
    return None


def counted_fields(schema: StructType) -> list[CountedField]:
    """The fields of a state's rows, nested structs followed, in the order of the schema."""
    found = [
        field
        for part in schema.fields
        if part.name in PARTS
        for field in _below(PARTS[part.name], *_unwrapped(part.dataType, f.col(_quoted(part.name))))
    ]
    return found[:MAX_FIELDS]


def _unwrapped(kind: DataType, column: Column) -> tuple[DataType, Column]:
    """The user's value, without the time of expiry that Spark keeps around it for variables with time to live."""
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
    """The type with names that differ in every struct: the second `max` is `max#2`."""
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
