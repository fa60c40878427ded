"""Restart real streaming queries with changed state schemas, and say what Spark did.

    python -m tests.state.restarts MATRIX FOLDER [text in a row's name …]

One Spark process does all rows of the matrix; one that a row kills is followed by another. A row's steps are versions of one application, started one after the
other on one checkpoint, a batch each; before the last one the checkpoint is copied to FOLDER/NUMBER/before, which is
what a check before the restart would have seen. A JSON line a row goes to standard output: the error class that the
last start stopped with (None if it ran), and what each variable's state read as, before anything new was written.

Needs Java 17; reads and writes FOLDER alone. `SPARK_PYTHON` may name the Python of another PySpark than the one that is
installed, with pandas, pyarrow, protobuf and PyYAML: 4.0 or 4.1. 4.0 has no API by rows, so all its rows go by pandas.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tests.java_words import SHORT_LIVED

ROOT: Final = Path(__file__).resolve().parents[2]
PREFIX: Final = "spark.sql.streaming.stateStore."
PROVIDER: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
#: what every step begins with, whatever the one before it set
DEFAULT_CONF: Final = {"spark.sql.shuffle.partitions": "1", f"{PREFIX}providerClass": PROVIDER}
OUTPUT: Final = StructType([StructField("seen", LongType())])
MEANT_TO_FAIL: Final = "this version stops before its batch is committed"
BATCH_TIMEOUT: Final = 120  # seconds
MORE_TRIES: Final = 4  # of a row on a busy machine
CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_]+)(?:\.[A-Z0-9_]+)*\]")
EXCEPTION: Final = re.compile(r"\b(?:[a-z]\w*\.)+([A-Z]\w+(?:Exception|Error))\b")
# What only wraps the error that counts.
WRAPPERS: Final = frozenset(
    {
        "STREAM_FAILED",
        "PYTHON_EXCEPTION",
        "PythonException",
        "SparkException",
        "StreamingQueryException",
        "Py4JJavaError",
        "PySparkRuntimeError",
        "SparkRuntimeException",
        "TRANSFORM_WITH_STATE_USER_FUNCTION_ERROR",
        "FOREACH_BATCH_USER_FUNCTION_ERROR",
        "FOREACH_USER_FUNCTION_ERROR",
    }
)
# Exceptions that Spark hands on by their words alone: the words, and the class.
WORDS: Final = (
    ("Unexpected type ", "IncompatibleSchemaException"),
    ("empty.max", "UnsupportedOperationException"),
    ("Illegal character in: ", "SchemaParseException"),
    ("Duplicate field ", "AvroRuntimeException"),
    (" does not exist SQLSTATE", "FileNotFoundException"),
    ("expecting union", "AvroTypeException"),
    ('" is null', "NullPointerException"),
    ("Incomplete log file", "IllegalStateException"),
    ("not found in offset log", "IllegalStateException"),
    (" doesn't exist", "IllegalStateException"),
    ("Invalid UUID string", "IllegalArgumentException"),
    ("No usable value for", "MappingException"),
    ("Unexpected end-of-input", "JsonParseException"),
    ("Checksum error", "ChecksumException"),
    ("assertion failed: ", "AssertionError"),
    (" is not supported for operator=", "AnalysisException"),
    ("Wrong basePath ", "IllegalArgumentException"),
)


class Application(StatefulProcessor):
    """One version of an application: says what its variables read as, then writes their rows.

    `variables` maps a name to {"kind", "value" (DDL), "key" (DDL, of a map), "ttl" (milliseconds), "row", "at"}; what
    was read goes to `report` as a JSON line a variable. `deleted` are the names that it calls deleteIfExists for.
    """

    def __init__(
        self, variables: dict[str, Any], deleted: list[str], report: str, has_timers: bool, fails: bool
    ) -> None:
        self._fails = fails
        self._variables = variables
        self._deleted = deleted
        self._report = report
        self._has_timers = has_timers

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._states = {}
        for name, each in self._variables.items():
            ttl = each.get("ttl")
            if each["kind"] == "map":
                self._states[name] = handle.getMapState(name, each["key"], each["value"], ttl)
            elif each["kind"] == "list":
                self._states[name] = handle.getListState(name, each["value"], ttl)
            else:
                self._states[name] = handle.getValueState(name, each["value"], ttl)
        for name in self._deleted:
            handle.deleteIfExists(name)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        for _ in rows:
            pass
        for name, each in self._variables.items():
            self._tell(name, self._read(each["kind"], self._states[name]))
        if self._has_timers:
            self._tell("timers", len(list(self._handle.listTimers())))
            self._handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 3_600_000)
        for name, each in self._variables.items():
            if "row" in each:
                self._write(each, self._states[name])
        if self._fails:
            raise RuntimeError(MEANT_TO_FAIL)
        return
        yield  # no output: a generator is expected

    def _tell(self, name: str, read: Any) -> None:
        with Path(self._report).open("a") as report:
            report.write(json.dumps({"variable": name, "read": as_json(read)}) + "\n")

    @staticmethod
    def _read(kind: str, state: Any) -> Any:
        if not state.exists():
            return None
        if kind == "map":
            return [[list(key), list(value)] for key, value in state.iterator()]
        return [list(row) for row in state.get()] if kind == "list" else list(state.get())

    @staticmethod
    def _write(each: dict[str, Any], state: Any) -> None:
        if each["kind"] == "map":
            state.updateValue(tuple(each["at"]), tuple(each["row"]))
        elif each["kind"] == "list":
            state.put([tuple(each["row"])])
        else:
            state.update(tuple(each["row"]))

    def close(self) -> None:
        """Nothing is held outside of Spark's state."""


def as_json(value: Any) -> Any:
    """A value of a state row as JSON: rows and tuples as lists, what JSON lacks as text; lists of Spark 4.0 are NumPy's."""
    if type(value).__module__ == "numpy":
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): as_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return str(value) if isinstance(value, Decimal) else value


def as_python(value: Any, kind: DataType) -> Any:
    """The other way round, by type: what the matrix says as a value that PySpark takes."""
    if value is None:
        return None
    if isinstance(kind, StructType):
        return tuple(as_python(each, field.dataType) for each, field in zip(value, kind.fields, strict=True))
    if isinstance(kind, ArrayType):
        return [as_python(each, kind.elementType) for each in value]
    if isinstance(kind, MapType):
        return {
            as_python(int(key) if isinstance(kind.keyType, IntegerType) else key, kind.keyType): as_python(
                each, kind.valueType
            )
            for key, each in value.items()
        }
    if isinstance(kind, BinaryType):
        return bytes.fromhex(value)
    if isinstance(kind, DecimalType):
        return Decimal(value)
    if isinstance(kind, DateType):
        return date.fromisoformat(value)
    if isinstance(kind, TimestampType | TimestampNTZType):
        return datetime.fromisoformat(value)
    return value


def prepared(variables: dict[str, Any]) -> dict[str, Any]:
    """The variables of a step with rows of the types that their schemas have."""
    made = {}
    for name, given in variables.items():
        each = {"kind": "value", **given}
        if "row" in each:
            each["row"] = as_python(each["row"], StructType.fromDDL(each["value"]))
        if "at" in each:
            each["at"] = as_python(each["at"], StructType.fromDDL(each["key"]))
        made[name] = each
    return made


def started(session: SparkSession, row: dict[str, Any], step: dict[str, Any], report: Path) -> DataFrame:
    """The query of one step; what the step doesn't say is as the row has it."""
    variables, deleted = prepared(step["variables"]), step.get("deleted", [])
    application = Application(variables, deleted, str(report), bool(step.get("timers")), bool(step.get("fails")))
    usual = {"api": "row", "source": "rate-micro-batch", "output_mode": "Update", "key": "CAST(7 AS BIGINT) AS id"}
    given = {**usual, **row, **step}
    stream = session.readStream.format(given["source"]).option("rowsPerBatch", 1).option("numPartitions", 1)
    key = given["key"].split(";")
    names = [each.rsplit(" ", 1)[1] for each in key]
    selected = stream.load().selectExpr(*key, "value", "timestamp")
    if given.get("watermark"):
        selected = selected.withWatermark("timestamp", "0 seconds")
    grouped = operators(selected, given.get("before", ())).groupBy(*names)
    by_rows = given["api"] == "row" and hasattr(grouped, "transformWithState")
    ask = grouped.transformWithState if by_rows else grouped.transformWithStateInPandas
    time_mode = step.get("time_mode", row.get("time_mode", "ProcessingTime" if needs_clock(step) else "None"))
    return operators(ask(application, OUTPUT, given["output_mode"], time_mode), given.get("after", ()))


def needs_clock(step: dict[str, Any]) -> bool:
    """Whether a step has timers or state that expires: where nothing says the time mode, it is by the clock then."""
    return bool(step.get("timers")) or any(each.get("ttl") for each in step["variables"].values())


def operators(stream: DataFrame, names: Sequence[str]) -> DataFrame:
    """The stream through other stateful operators."""
    for name in names:
        stream = stream.dropDuplicates() if name == "dedupe" else stream.limit(1_000_000)
    return stream


def run_step(session: SparkSession, row: dict[str, Any], step: dict[str, Any], folder: Path) -> tuple[str, str]:
    """Run one batch of one version; gives the class and the text of the error that it stopped with, both may be empty."""
    settings = {"encodingFormat": row.get("encoding", "avro"), **row.get("settings", {}), **step.get("settings", {})}
    named = {PREFIX + name: str(value) for name, value in settings.items()}
    named |= {name: str(value) for name, value in {**row.get("conf", {}), **step.get("conf", {})}.items()}
    for name, value in named.items():
        session.conf.set(name, value)
    try:
        query = (
            started(session, row, step, folder / "report")
            .writeStream.format("noop")
            .outputMode(step.get("output_mode", row.get("output_mode", "Update")).lower())
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(once=True)
            .start()
        )
        if not query.awaitTermination(BATCH_TIMEOUT):
            query.stop()
            return "TIMEOUT", f"no end within {BATCH_TIMEOUT} s"
    except Exception as error:  # noqa: BLE001 - whatever Spark throws is what is asked for
        return error_class(str(error)), str(error)
    finally:
        for name, value in DEFAULT_CONF.items():
            session.conf.set(name, value)
        for name in named.keys() - DEFAULT_CONF.keys():
            session.conf.unset(name)
    return "", ""


def error_class(text: str) -> str:
    """The error class that a message of Spark carries: its first condition or exception that is no wrapper."""
    for found in (*CONDITION.findall(text), *EXCEPTION.findall(text)):
        if found not in WRAPPERS:
            return str(found)
    return next((name for words, name in WORDS if words in text), "UNKNOWN")


def shortened(text: str) -> str:
    """The begin of a message without the plan that Spark appends, and the end of what a Python worker said."""
    text = text.partition("=== Streaming Query ===")[0]
    return text if len(text) <= 1500 else f"{text[:500]} … {text[-1000:]}"


def run_again(session: SparkSession, number: int, row: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The row's answer; again where a Python worker was too slow to start, which says nothing of the restart."""
    answer = run_row(session, number, row, folder)
    for _ in range(MORE_TRIES):
        if "failed to connect back" not in answer.get("text", ""):
            break
        answer = run_row(session, number, row, folder)
    return answer


def run_row(session: SparkSession, number: int, row: dict[str, Any], folder: Path) -> dict[str, Any]:
    """All steps of a row; gives what the last one did."""
    begun = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    *earlier, last = row["steps"]
    answer: dict[str, Any] = {"number": number, "name": row["name"], "reads": {}}
    for step in earlier:
        for _ in range(step.get("times", 1)):
            error, text = run_step(session, row, step, folder)
            if error and not (step.get("fails") and MEANT_TO_FAIL in text):
                return answer | {"error": f"an earlier step stopped: {error}", "text": shortened(text)}
    for pattern in last.get("lost", ()):
        for path in lost_files(folder / "checkpoint", pattern):
            path.unlink()
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    shutil.copytree(folder / "checkpoint", folder / "before", ignore=shutil.ignore_patterns("*.crc"))
    (folder / "report").unlink(missing_ok=True)
    error, text = run_step(session, row, last, folder)
    if (folder / "report").exists():
        lines = [json.loads(line) for line in (folder / "report").read_text().splitlines()]
        answer["reads"] = {line["variable"]: line["read"] for line in lines}
    shutil.rmtree(folder / "checkpoint")
    return answer | {"error": error, "text": shortened(text), "seconds": round(time.monotonic() - begun, 1)}


def lost_files(checkpoint: Path, pattern: str) -> list[Path]:
    """The files of a checkpoint that a row takes away; an error where there is none, as the row would say nothing."""
    found = [path for path in sorted(checkpoint.glob(pattern)) if not path.name.endswith(".crc")]
    if not found:
        raise FileNotFoundError(f"no file is {pattern}")
    return found


def session_in(folder: Path) -> SparkSession:
    """The Spark session that restarts are done in; what it keeps for itself is in `folder`."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.python.daemon.module": "tests.state.daemon",
        "spark.driver.extraJavaOptions": " ".join(SHORT_LIVED),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **DEFAULT_CONF,
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def child(matrix: Path, folder: Path, numbers: list[int]) -> None:
    """Do the rows of these numbers in one Spark process; a line before each row and one after it."""
    begun = time.monotonic()
    session = session_in(folder)
    _say({"spark": session.version, "seconds": round(time.monotonic() - begun, 1)})
    rows = yaml.safe_load(matrix.read_text())
    for number in numbers:
        _say({"begins": number})
        _say(run_again(session, number, rows[number], folder / str(number)))
    session.stop()


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def run_rows(
    matrix: Path, folder: Path, numbers: list[int], module: str = "tests.state.restarts"
) -> Iterator[dict[str, Any]]:
    """What Spark did with each row of these numbers; JVM_DIED is the error of a row that ended its process. `module`
    has the `child` that does them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    waiting = list(numbers)
    while waiting:
        python = os.environ.get("SPARK_PYTHON", sys.executable)
        command = [python, "-m", module, "child", str(matrix), str(folder)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TZ": "UTC"}
        # A JVM that dies writes its report where it was started.
        process = subprocess.Popen(
            [*command, *map(str, waiting)],
            cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        before = len(waiting)
        try:
            yield from _answers(process, waiting)
        finally:
            process.kill()
            process.wait()
        if len(waiting) == before:
            raise RuntimeError("Spark doesn't start: run the command that the docstring names to see why")


def _answers(process: subprocess.Popen[str], waiting: list[int]) -> Iterator[dict[str, Any]]:
    """The answers of one child; takes the numbers that it dealt with off `waiting`."""
    running = None
    for line in process.stdout or ():
        answer = json.loads(line) if line.startswith("{") else {}
        if "begins" in answer:
            running = answer["begins"]
        elif "number" in answer:
            waiting.remove(answer["number"])
            running = None
            # Once the JVM is gone every call of the session fails: the row that saw it first is the one that killed it.
            if any(
                word in answer["text"]
                for word in (
                    "Py4JNetworkError",
                    "ConnectionRefused",
                    "Connection refused",
                    "Answer from Java side is empty",
                )
            ):
                yield answer | {"error": "JVM_DIED"}
                return
            yield answer
        elif "spark" in answer:
            yield answer
    if running is not None:
        waiting.remove(running)
        yield {"number": running, "error": "JVM_DIED", "text": "", "reads": {}}


def main(matrix: Path, folder: Path, wanted: list[str]) -> None:
    """Run the rows whose names hold one of the texts, all without texts."""
    rows = yaml.safe_load(matrix.read_text())
    numbers = [at for at, row in enumerate(rows) if not wanted or any(text in row["name"] for text in wanted)]
    for answer in run_rows(matrix.resolve(), folder.resolve(), numbers):
        _say(answer)


if __name__ == "__main__":
    if sys.argv[1] == "child":
        child(Path(sys.argv[2]), Path(sys.argv[3]), [int(number) for number in sys.argv[4:]])
    else:
        main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
