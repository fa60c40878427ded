"""Carries the state of a stopped streaming query over to a new checkpoint that its next release continues from.

The old state is read with Spark's state data source and brought into the form of the next release. A seeding query with
the same stateful operator writes it as batch 0 of the new checkpoint, which then gets the old checkpoint's offsets and
watermark. The module needs PySpark alone: the restart check copies its text into the scripts that it generates.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as every user of PySpark has it
from pyspark.sql import types as T  # noqa: N812

DUE_LATER = 60_000  # milliseconds: timers that are due already fire this long after the migration
EXACT = 9_007_199_254_740_992.0  # up to here, a double has every whole number
NO_WATERMARK = "0 seconds"
OWN = "__state_"  # how the columns of variables begin, beside those of the key
TIMERS = "__state_timers"


def migrate(spark: SparkSession, plan: Mapping[str, Any], source: str, target: str, ttl: Mapping[str, int]) -> None:
    """Read the old state, write the new checkpoint, and compare the numbers of rows.

    `plan` is the dictionary in a generated script; `ttl` has milliseconds by variable. Only `target` is written to.
    Ends with a message if something is in the way.
    """
    batch = _check_places(spark, source, target)
    _ = spark.streams.active  # starts what the state data source needs from streaming
    _set(spark, {**plan["old_settings"], "spark.sql.ansi.enabled": "true"})  # a value that doesn't fit is an error
    rows = _variables(spark, plan, source, batch) if "variables" in plan else _fields(spark, plan, source, batch)
    rows.write.parquet(f"{target}/rows")
    seed = spark.read.parquet(f"{target}/rows")
    _show(f"before: {source}, batch {batch}", seed)
    _set(spark, {**plan["settings"], "spark.sql.streaming.noDataMicroBatches.enabled": "false"})
    stream = spark.readStream.schema(seed.schema).parquet(f"{target}/rows")
    seeding = _processor(stream, seed, plan, ttl) if "variables" in plan else _operator(stream, plan)
    mode = plan.get("output_mode", "Update")
    query = (
        seeding.writeStream.format("noop")
        .outputMode(mode)
        .option("checkpointLocation", f"{target}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    _take_offsets(spark, source, f"{target}/checkpoint", batch)
    _compare(spark, plan, seed, f"{target}/checkpoint")


def _set(spark: SparkSession, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        spark.conf.set(name, value)


def _check_places(spark: SparkSession, source: str, target: str) -> int:
    """Return the last committed batch of the source; end if it has none, or if the target isn't new."""
    if f"{target}/".startswith(f"{source.rstrip('/')}/") or f"{source}/".startswith(f"{target.rstrip('/')}/"):
        sys.exit(f"The target {target} and the checkpoint {source} must be apart from each other.")
    system, path = _place(spark, target)
    if system.exists(path) and len(system.listStatus(path)) > 0:
        sys.exit(f"The target {target} isn't empty. Nothing was written.")
    system, path = _place(spark, f"{source}/commits")
    names = [status.getPath().getName() for status in system.listStatus(path)] if system.exists(path) else []
    batches = [int(name) for name in names if name.isdigit()]
    if not batches:
        sys.exit(f"The checkpoint {source} has no committed batch.")
    return max(batches)


def _place(spark: SparkSession, name: str) -> tuple[Any, Any]:
    """Return Hadoop's file system and path."""
    path = spark._jvm.org.apache.hadoop.fs.Path(name)  # type: ignore[union-attr]
    return path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), path


def _state(spark: SparkSession, plan: Mapping[str, Any], source: str, batch: int, **options: Any) -> DataFrame:
    reader = spark.read.format("statestore").options(operatorId=plan["operator"], batchId=batch, **options)
    return reader.load(source)


def _fields(spark: SparkSession, plan: Mapping[str, Any], source: str, batch: int) -> DataFrame:
    """Return a row for each key of the next release: its key's columns k0, k1 … and the fields of its state s0, s1 …"""
    state = _state(spark, plan, source, batch)
    state = _as_numbered(state)
    keys = [_key(state, each).alias(f"k{at}") for at, each in enumerate(plan["keys"])]
    fields = [_field(state, each).alias(f"s{at}") for at, each in enumerate(plan["fields"])]
    rows = state.select(*keys, *fields)
    names = [f"k{at}" for at in range(len(keys))]
    if plan["merges"]:
        merges = {"sum": F.sum, "min": F.min, "max": F.max, "and": F.bool_and}
        merged = [
            merges[each["merge"]](f"s{at}").cast(_type(each)).alias(f"s{at}") for at, each in enumerate(plan["fields"])
        ]
        return rows.groupBy(*names).agg(*merged) if merged else rows.distinct()
    if rows.groupBy(*names).count().where("count > 1").take(1):
        sys.exit("Several of the old keys become the same key, and their state can't be added up. Nothing was written.")
    return rows


def _as_numbered(state: DataFrame) -> DataFrame:
    """Return keys and values with their fields named f0, f1 …: the fields of a state may share a name."""
    columns = []
    for name in ("key", "value"):
        fields: Any = state.schema[name].dataType
        numbered = T.StructType([T.StructField(f"f{at}", field.dataType) for at, field in enumerate(fields.fields)])
        columns.append(F.col(name).cast(numbered).alias(name))
    return state.select(*columns)


def _type(each: Mapping[str, Any]) -> T.DataType:
    kind: T.DataType = T.StructType.fromJson({"fields": [{"name": "x", "nullable": True, **each}]})["x"].dataType
    return kind


def _key(state: DataFrame, each: Mapping[str, Any]) -> Column:
    """Return a field of the new key. One that the query itself casts may lose what the cast leaves out."""
    old, name = F.col(f"key.f{each['from']}"), f"f{each['from']}"
    return (
        _cast(old, state.schema["key"].dataType[name].dataType, _type(each)) if each["exact"] else old.cast(_type(each))
    )


def _cast(column: Column, old: T.DataType, new: T.DataType) -> Column:
    """Return the column in another type; the script ends at a value that would change."""
    if old.simpleString() == new.simpleString():
        return column.cast(new)
    made = column.cast(new)
    problem = (
        f"A value isn't carried over: as {new.simpleString()}, it would be another one than as {old.simpleString()}."
    )
    return F.when(made.cast(old).eqNullSafe(column), made).otherwise(F.raise_error(F.lit(problem)))


def _field(state: DataFrame, each: Mapping[str, Any]) -> Column:
    """Return a field of the new state: one of the old fields, else its initial value."""
    initial = F.lit(each["initial"]).cast(_type(each))
    if each["from"] is None:
        return initial
    name = f"f{each['from']}"
    old, kind = F.col(f"value.{name}"), state.schema["value"].dataType[name].dataType
    if each.get("count") is not None:  # an old sum over no values is 0 in an average, and null in a sum
        old = F.when(F.col(f"value.f{each['count']}") > 0, old)
        if isinstance(_type(each), T.LongType):  # the sum of an average is a double
            problem = F.lit("The sum of an average isn't carried over: it is too large to be exact.")
            old = F.when(F.abs(old) >= EXACT, F.raise_error(problem).cast("double")).otherwise(old)
    if each.get("is_null"):  # of a decimal's sum: whether it is over no values
        return old.isNull()
    return F.coalesce(_cast(old, kind, _type(each)) if each.get("exact") else old.cast(_type(each)), initial)


def _operator(stream: DataFrame, plan: Mapping[str, Any]) -> DataFrame:
    """Return the seeding query of an aggregation or a deduplication. Spark compares types by position, not names."""
    names = [f"k{at}" for at in range(len(plan["keys"]))]
    if plan["kind"] == "dedupe":
        return stream.select(*names).dropDuplicates()
    if plan["kind"] == "dedupeWithinWatermark":
        timed = stream.select(*names, F.timestamp_micros("s0").alias("expires"))
        return timed.withWatermark("expires", NO_WATERMARK).dropDuplicatesWithinWatermark(names)
    return stream.groupBy(*names).agg(*(F.max(f"s{at}") for at in range(len(plan["fields"]))))


def _variables(spark: SparkSession, plan: Mapping[str, Any], source: str, batch: int) -> DataFrame:
    """Return a row for each key and variable: the key's columns, and the variable or the timers in a column."""
    parts = []
    for at, each in enumerate(plan["variables"]):
        if each["from"] is None:
            continue
        options = {"stateVarName": each["from"], "flattenCollectionTypes": "false"}
        state = _state(spark, plan, source, batch, **options)
        parts.append(state.select("key", _carried(state, each).alias(f"{OWN}{at}")).where(f"{OWN}{at} IS NOT NULL"))
    if plan["time_mode"] != "None":
        state = _state(spark, plan, source, batch, readRegisteredTimers="true")
        parts.append(state.groupBy("key").agg(F.collect_list("expiration_timestamp_ms").alias(TIMERS)))
    whole = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    key = T.StructType.fromJson(plan["key"]) if plan["key"] else whole.schema["key"].dataType
    missing = [f"{OWN}{at}" for at in range(len(plan["variables"])) if f"{OWN}{at}" not in whole.columns]
    for name in missing:
        whole = whole.withColumn(name, F.lit(None).cast("int"))
    made = _converted(F.col("key"), whole.schema["key"].dataType, key, plan["key_renamed"])
    return whole.select(made.alias("key"), *whole.columns[1:]).select("key.*", *whole.columns[1:])


def _carried(state: DataFrame, each: Mapping[str, Any]) -> Column:
    """Return a variable's value, its list, or its list of map entries (key, value), in the new types."""
    new = T.StructType.fromJson(each["value"])
    names = each["renamed"]
    now = int(time.time() * 1000)
    column = next(name for name in ("value", "list_value", "map_value") if name in state.columns)
    kind: Any = state.schema[column].dataType
    if each["kind"] == "value":
        inner, live = _alive(kind, F.col(column), now)
        return F.when(live, _converted(F.col(column) if inner is kind else F.col(f"{column}.value"), inner, new, names))
    element = kind.elementType if each["kind"] == "list" else kind.valueType
    inner, _ = _alive(element, F.lit(None), now)

    def value_of(entry: Column) -> Column:
        return _converted(entry if inner is element else entry["value"], inner, new, names)

    def is_alive(entry: Column) -> Column:
        return _alive(element, entry, now)[1]

    if each["kind"] == "list":
        return _unless_empty(F.transform(F.filter(column, is_alive), value_of))
    new_key = T.StructType.fromJson(each["user_key"])
    entries = F.filter(F.map_entries(column), lambda entry: is_alive(entry["value"]))

    def new_entry(entry: Column) -> Column:
        key = _converted(entry["key"], kind.keyType, new_key, each["key_renamed"])
        return F.struct(key.alias("key"), value_of(entry["value"]).alias("value"))

    return _unless_empty(F.transform(entries, new_entry))


def _unless_empty(entries: Column) -> Column:
    return F.when(F.size(entries) > 0, entries)


def _alive(kind: Any, column: Column, now: int) -> tuple[Any, Column]:
    """Return the type within Spark's struct around a value that expires, and whether it hasn't expired."""
    if kind.names[-1:] == ["ttlExpirationMs"]:
        return kind["value"].dataType, column["ttlExpirationMs"] > now
    return kind, F.lit(True)


def _converted(column: Column, old: Any, new: Any, renamed: Mapping[str, str], path: str = "") -> Column:
    """Return the column in another type: fields by name, and all else by a cast that must keep every value."""
    if isinstance(old, T.StructType) and isinstance(new, T.StructType):
        fields = []
        for field in new.fields:
            at = f"{path}.{field.name}" if path else field.name
            name = renamed.get(at, field.name)
            value = F.lit(None).cast(field.dataType)
            if name in old.names:
                value = _converted(column.getField(name), old[name].dataType, field.dataType, renamed, at)
            fields.append(value.alias(field.name))
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(old, T.ArrayType) and isinstance(new, T.ArrayType):
        place = f"{path}[]"
        return F.transform(column, lambda each: _converted(each, old.elementType, new.elementType, renamed, place))
    if isinstance(old, T.MapType) and isinstance(new, T.MapType):
        place, of_key = f"{path}{{}}", f"{path}{{key}}"

        def entry_of(entry: Column) -> Column:
            key = _converted(entry["key"], old.keyType, new.keyType, renamed, of_key)
            value = _converted(entry["value"], old.valueType, new.valueType, renamed, place)
            return F.struct(key.alias("key"), value.alias("value"))

        return F.map_from_entries(F.transform(F.map_entries(column), entry_of))
    return _cast(column, old, new)


def _processor(stream: DataFrame, seed: DataFrame, plan: Mapping[str, Any], ttl: Mapping[str, int]) -> DataFrame:
    """Return the seeding query of transformWithState: it declares the variables of the next release and fills them."""
    from pyspark.sql.streaming import StatefulProcessor

    variables = plan["variables"]
    missing = [each["name"] for each in variables if each["ttl"] and not ttl.get(each["name"])]
    if missing:
        sys.exit(f"Fill in TTL_MS for {missing}: the time to live in milliseconds, as the next release declares it.")

    class Seed(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self._handle = handle
            self._states = []
            for each in variables:
                value, duration = T.StructType.fromJson(each["value"]), ttl[each["name"]] if each["ttl"] else None
                if each["kind"] == "map":
                    user_key = T.StructType.fromJson(each["user_key"])
                    self._states.append(handle.getMapState(each["name"], user_key, value, duration))
                else:
                    get = handle.getListState if each["kind"] == "list" else handle.getValueState
                    self._states.append(get(each["name"], value, duration))

        def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803
            row = initialState.asDict()
            for at, (each, state) in enumerate(zip(variables, self._states, strict=True)):
                carried, kind = row[f"{OWN}{at}"], T.StructType.fromJson(each["value"])
                if carried is None:
                    continue
                if each["kind"] == "map":
                    user_key = T.StructType.fromJson(each["user_key"])
                    for entry in carried:
                        state.updateValue(_values(entry["key"], user_key), _values(entry["value"], kind))
                elif each["kind"] == "list":
                    state.put([_values(entry, kind) for entry in carried])
                else:
                    state.update(_values(carried, kind))
            later = timerValues.getCurrentProcessingTimeInMs() + DUE_LATER
            for due in row.get(TIMERS) or ():
                self._handle.registerTimer(max(due, later) if plan["time_mode"] == "ProcessingTime" else due)

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            return iter(())

        def close(self) -> None:
            return

    keys = [name for name in seed.columns if name not in _own_columns(plan)]
    nothing = stream.where(F.rand() < 0).withColumn(f"{OWN}time", F.current_timestamp())
    if plan["time_mode"] == "EventTime":
        nothing = nothing.withWatermark(f"{OWN}time", NO_WATERMARK)
    return nothing.groupBy(*keys).transformWithState(
        Seed(), "nothing INT", plan["output_mode"], plan["time_mode"], initialState=seed.groupBy(*keys)
    )


def _values(value: Any, kind: T.DataType) -> Any:
    """Return a value as state takes it: structs, which initial state has as dictionaries, as tuples."""
    if value is None:
        return None
    if isinstance(kind, T.StructType):
        return tuple(_values(value[field.name], field.dataType) for field in kind.fields)
    if isinstance(kind, T.ArrayType):
        return [_values(each, kind.elementType) for each in value]
    if isinstance(kind, T.MapType):
        return {_values(key, kind.keyType): _values(each, kind.valueType) for key, each in dict(value).items()}
    return value


def _own_columns(plan: Mapping[str, Any]) -> set[str]:
    return {TIMERS, *(f"{OWN}{at}" for at in range(len(plan["variables"])))}


def _take_offsets(spark: SparkSession, source: str, target: str, batch: int) -> None:
    """Give the new checkpoint the old one's offsets, watermark and logs of its sources: it continues from there."""
    version, metadata, *offsets = _read(spark, f"{source}/offsets/{batch}").split("\n")
    _, made, *_seeds = _read(spark, f"{target}/offsets/0").split("\n")
    commit = json.loads(_read(spark, f"{source}/commits/{batch}").split("\n")[1])
    watermark = commit.get("nextBatchWatermarkMs", 0)
    if version != "v1":
        sys.exit(f"The offsets of {source} have the format {version}; only v1 is known.")
    merged = json.loads(made) | {"batchWatermarkMs": json.loads(metadata)["batchWatermarkMs"]}
    _write(spark, f"{target}/offsets/0", "\n".join([version, json.dumps(merged), *offsets]))
    head, own = _read(spark, f"{target}/commits/0").split("\n")[:2]
    _write(
        spark,
        f"{target}/commits/0",
        "\n".join([head, json.dumps(json.loads(own) | {"nextBatchWatermarkMs": watermark})]),
    )
    system, path = _place(spark, f"{target}/sources")
    system.delete(path, True)
    old_system, old = _place(spark, f"{source}/sources")
    if old_system.exists(old):
        files = spark._jvm.org.apache.hadoop.fs.FileUtil  # type: ignore[union-attr]
        files.copy(old_system, old, system, path, False, True, spark._jsparkSession.sessionState().newHadoopConf())


def _read(spark: SparkSession, name: str) -> str:
    system, path = _place(spark, name)
    stream = system.open(path)
    try:
        return str(spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))  # type: ignore[union-attr]
    finally:
        stream.close()


def _write(spark: SparkSession, name: str, text: str) -> None:
    system, path = _place(spark, name)
    stream = system.create(path, True)
    stream.write(bytearray(text.encode()))
    stream.close()


def _compare(spark: SparkSession, plan: Mapping[str, Any], seed: DataFrame, target: str) -> None:
    """Show the new state; end with an error if it isn't what was carried over."""
    _set(spark, {"spark.sql.session.timeZone": "UTC"})  # texts of times in which no hour is twice
    wrong = []
    for at, each in enumerate(plan.get("variables", [None])):
        options = {"stateVarName": each["name"], "flattenCollectionTypes": "false"} if each else {}
        state = _state(spark, {"operator": 0}, target, 0, **options)
        _show(f"after: {target}{' ' + repr(each['name']) if each else ''}", state)
        if each:
            carried = _carried(state, {**each, "renamed": {}, "key_renamed": {}}).alias(f"{OWN}{at}")
            names = [name for name in seed.columns if name not in _own_columns(plan)]
            expected = seed.where(f"{OWN}{at} IS NOT NULL").select(*names, f"{OWN}{at}")
            made = state.select("key.*", carried)
        else:
            expected, made = (
                seed,
                _as_numbered(state).select("key.*", *(() if plan["kind"] == "dedupe" else ("value.*",))),
            )
        if not _is_same(expected, made):
            wrong.append(repr(each["name"]) if each else "the state")
    if wrong:
        sys.exit(f"The new state differs from what was carried over: {', '.join(wrong)}. Don't use {target}.")
    _say(f"Start the next release with checkpointLocation {target}")


def _is_same(one: DataFrame, other: DataFrame) -> bool:
    """Return whether two sets of rows have the same texts; entries of a map count in any order."""
    left, right = (_texts(rows) for rows in (one, other))
    return not left.exceptAll(right).take(1) and not right.exceptAll(left).take(1)


def _texts(rows: DataFrame) -> DataFrame:
    numbered = rows.toDF(*(f"c{at}" for at in range(len(rows.columns))))
    texts = [_text(F.col(field.name), field.dataType) for field in numbered.schema.fields]
    return numbered.select(F.struct(*texts).cast("string").alias("row"))


def _text(column: Column, kind: Any) -> Column:
    is_of_map = isinstance(kind, T.ArrayType) and getattr(kind.elementType, "names", None) == ["key", "value"]
    return F.array_sort(F.transform(column, lambda each: each.cast("string"))) if is_of_map else column.cast("string")


def _show(title: str, rows: DataFrame) -> None:
    _say(f"{title}: {rows.count():,} rows, such as")
    for row in rows.limit(5).collect():
        _say(f"  {row}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
