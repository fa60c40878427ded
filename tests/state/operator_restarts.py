"""Restart real streaming queries with changed operators, settings, sources and sinks, and say what came of it.

    python -m tests.state.operator_restarts FOLDER [text in a row's name …]
    /tmp/spark40/bin/python -m tests.state.operator_restarts known FOLDER [text in a row's name …]

A row of `operators/*.yaml` has a query before the restart and one after it (`query` where both are the same), each a
PySpark expression of `df` and `other` (the streams of `operator_feed`), `files(folder, schema, options…)`, `spark`, `F`
and `T`, and of what the file's `define` row defines. `mode` is the output mode, `conf` holds settings (names below
`spark.sql.streaming.` may leave that out), `options` those of the sink; below `before` and `after` they are of that side
alone. Queries of `topics` read Kafka. `note` says why an outcome is what it is. The query reads `known`, stops, and
starts as the changed query on the same checkpoint with `new`, `old` and `end`, a batch each; `changes` are done to its
files before, as `damage.py` says. The outcome is one of:

- **harmless**: it runs, and what it writes after the restart is what the changed query writes for the same batches if it
  has run from the first row, on a checkpoint of its own;
- **loses data**: it runs, and what it writes is what the changed query writes if it never read `known`, or is a part of
  what it should write: rows or state from before the restart don't count any more;
- **silently wrong**: it runs and writes anything else: values that come of no input, or rows a second time;
- **fails at start**: it stops before its first batch is committed, whatever rows come, as `new` has only new keys;
- **fails later**: it stops after a batch was committed.

Rows are compared without their order, over all batches after the restart; a batch that is done again doesn't count.
Where the change adds rows from before the restart (`catches_up`), right is what the changed query writes if it reads all
rows at once. Where the change itself decides which late rows count (`either`), what the unchanged query goes on to write is right as
well: each row written is one of either query, and what both write is written. If the changed query can't run on a
checkpoint of its own, what the unchanged one writes is right. A row that differs keeps the proof: what was written, what
should have been, what the changed query writes without `known`, and the state as Spark's state data source reads it
before and after. Needs Java 17; reads and writes FOLDER alone.

With `known`, the queries before the restarts alone are run, by the Spark whose Python runs this; what restarts in that
FOLDER afterwards continues their checkpoints, as an upgrade of Spark does.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as every user of PySpark has it
from pyspark.sql import types as T  # noqa: N812

from schemadesk_spark import describe
from tests.state.damage import damage
from tests.state.operator_feed import COLUMNS, OTHER_COLUMNS, add_batches, empty_feed, lines_of
from tests.state.operator_topics import BOOTSTRAP, broker, new_topics, produce, recreate
from tests.state.restarts import BATCH_TIMEOUT, error_class, run_rows, session_in, shortened

HERE: Final = Path(__file__).parent
MATRIX: Final = HERE / "operators"
STREAMING: Final = "spark.sql.streaming."
#: plans are read instead of compiled, which takes a third of the time
INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
#: what every query runs with unless the row says otherwise: Spark's own default store
DEFAULTS: Final = {"stateStore.providerClass": "HDFS", "spark.sql.shuffle.partitions": "1"}
#: short for these values of settings
CLASSES: Final = {
    "HDFS": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "ROCKS": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
SIDE: Final = ("query", "mode", "conf", "sink", "options", "trigger", "topics", "define")
TRIGGERS: Final[dict[str, Any]] = {
    "available now": {"availableNow": True},
    "processing time": {"processingTime": "0 seconds"},
    "once": {"once": True},
    "continuous": {"continuous": "1 second"},
}
#: the options of a sink that repeats batches at a restart
ASYNC: Final = frozenset({
    "asyncProgressTrackingEnabled",
    "_asyncProgressTrackingOverrideSinkSupportCheck",
    "asyncProgressTrackingCheckpointIntervalMs",
})  # fmt: skip
AFTER: Final = ("new", "old", "end")
MAX_PROOF: Final = 30  # rows of output or state
Output = list[str]


@dataclass(frozen=True)
class Side:
    """One of a row's two queries, with its settings and its sink."""

    query: str
    mode: str = "update"
    conf: dict[str, Any] = field(default_factory=dict)
    sink: str = "collect"
    options: dict[str, Any] = field(default_factory=dict)
    trigger: str = "available now"
    topics: tuple[str, ...] = ()
    define: str = ""

    @property
    def name(self) -> str:
        """A short name of its content, for what is kept of it."""
        return hashlib.sha256(json.dumps(vars(self), sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Run:
    """What a query wrote, and the class and the text of the error that it stopped with; both may be empty."""

    output: Output
    error: str = ""
    text: str = ""


def rows_of(matrix: Path) -> list[dict[str, Any]]:
    """All rows, by the files' names; what a file's `define` row defines is in each of its rows."""
    rows = []
    for path in sorted(matrix.glob("*.yaml")):
        define = ""
        for row in yaml.safe_load(path.read_text()):
            if set(row) == {"define"}:
                define = row["define"]
            else:
                rows.append({"group": path.stem, **row, "define": define + row.get("define", "")})
    return rows


def side_of(row: dict[str, Any], name: str) -> Side:
    """The query of a row before or after the restart."""
    own = row.get(name, {})
    own = {"query": own} if isinstance(own, str) else own
    both = {key: row[key] for key in SIDE if key in row}
    conf = {**row.get("conf", {}), **own.get("conf", {})}
    return Side(**{**both, **own, "conf": conf})


class Restarts:
    """The restarts of one Spark process; checkpoints and outputs that several rows need are made once."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self.session = session
        self._folder = folder
        self._feed = folder / "feed"
        self._controls: dict[tuple[str, bool], Run] = {}
        self.topics: dict[str, str] = {}

    def answer(self, number: int, row: dict[str, Any]) -> dict[str, Any]:
        """What came of a row's restart."""
        begun = time.monotonic()
        before, after = side_of(row, "before"), side_of(row, "after")
        place = self._folder / str(number)
        shutil.rmtree(place, ignore_errors=True)
        first = self.known(before, place)
        answer = {"number": number, "name": row["name"], "text": first.text, "before": self.described(before, place)}
        if first.error:
            return answer | {"error": first.error, "outcome": "", "text": f"an earlier step stopped: {first.text}"}
        damage(place / "checkpoint", {"changes": [], **row})
        if "recreated" in row:
            recreate(self.topics[row["recreated"]])
        answer["after"] = self.described(after, place)
        continued = Path(str(after.options.get("checkpointLocation", place / "checkpoint")).format(place=place))
        if continued.exists():
            shutil.copytree(continued, place / "before")
        committed = commits(place)
        self._add(AFTER)
        again = self._run(after, place)
        batches = len(commits(place) - committed)
        judged = self._judged(row, again, batches, place)
        took = round(time.monotonic() - begun, 1)
        shutil.rmtree(place / "checkpoint")
        return answer | {"error": again.error, "text": again.text, "batches": batches, **judged, "seconds": took}

    def _judged(self, row: dict[str, Any], again: Run, batches: int, place: Path) -> dict[str, Any]:
        before, after = side_of(row, "before"), side_of(row, "after")
        if again.error:
            is_of_state = again.error.startswith(("STATE_", "STREAMING_STATEFUL_"))  # which no new checkpoint raises
            new = "" if is_of_state else self._control(after, with_known=True).error
            outcome = "fails later" if batches else "fails at start"
            return {"outcome": outcome, **({"error_when_new": new} if new else {})}
        # Asynchronous progress repeats batches: what is right is what the query writes without it.
        after = replace(after, options={name: each for name, each in after.options.items() if name not in ASYNC})
        should = self._all_at_once(after) if row.get("catches_up") else self._control(after, with_known=True)
        if should.error:  # the checkpoint's settings won
            should = self._control(before, with_known=True)
        if again.output == should.output:
            return {"outcome": "harmless", "rows": len(again.output)}
        if row.get("either"):
            unchanged = self._control(before, with_known=True).output
            if is_between(again.output, unchanged, should.output):
                proof = {"written": again.output, "right": should.output, "unchanged": unchanged}
                return {"outcome": "harmless", "rows": len(again.output), **proof}
        without = self._control(after, with_known=False)
        lost = again.output == without.output or not Counter(again.output) - Counter(should.output)
        return {
            "outcome": "loses data" if lost else "silently wrong",
            "proof": {
                "written": again.output[:MAX_PROOF],
                "right": should.output[:MAX_PROOF],
                "without_known": without.output[:MAX_PROOF],
                "state_before": self._state(place / "before"),
                "state_after": self._state(place / "checkpoint"),
            },
        }

    def known(self, side: Side, place: Path) -> Run:
        """Bring a query to where it has read `known`, in `place`; the same query without files of its own is copied."""
        self._empty(side)
        self._add(("known",))
        kept = self._folder / "known" / side.name
        if side.sink != "collect" or side.topics:
            return self._run(side, place)
        if not kept.exists():
            made = self._run(side, kept)
            if made.error:
                shutil.rmtree(kept, ignore_errors=True)
                return made
        shutil.copytree(kept, place)
        return Run([])

    def _control(self, side: Side, *, with_known: bool) -> Run:
        """What a query writes for the batches after `known` that it ran with, or ran without."""
        if (side.name, with_known) not in self._controls:
            place = self._folder / "control"
            shutil.rmtree(place, ignore_errors=True)
            made = Run([])
            self._empty(side)
            if with_known:
                self._add(("known",))
                made = self._run(side, place)
            if not made.error:
                self._add(AFTER)
                made = self._run(side, place)
            self._controls[side.name, with_known] = made
        return self._controls[side.name, with_known]

    def _all_at_once(self, side: Side) -> Run:
        """What a query writes that reads all rows in one run."""
        shutil.rmtree(self._folder / "control", ignore_errors=True)
        self._empty(side)
        self._add(("known", *AFTER))
        return self._run(side, self._folder / "control")

    def _empty(self, side: Side) -> None:
        """Begin with folders and topics without rows."""
        empty_feed(self._feed)
        self.topics = new_topics(tuple(side.topics)) if side.topics else {}

    def _add(self, names: tuple[str, ...]) -> None:
        add_batches(self._feed, names)
        for name, topic in self.topics.items():
            produce(topic, lines_of(name, names))

    def _run(self, side: Side, place: Path) -> Run:
        """Run a query until it has read all that there is."""
        place.mkdir(parents=True, exist_ok=True)
        named = settings_of(side)
        before = self._written(side, place)
        collected: Output = []
        try:
            for name, value in named.items():
                self.session.conf.set(name, value)
            query = self._writer(side, place, collected).start()
            if side.trigger in ("processing time", "continuous"):
                query.processAllAvailable()
                query.stop()
            elif not query.awaitTermination(BATCH_TIMEOUT):
                query.stop()
                return Run([], "TIMEOUT", f"no end within {BATCH_TIMEOUT} s")
        except Exception as error:  # noqa: BLE001 - whatever Spark throws is what is asked for
            said = "\n".join([str(error), *causes_of(error)])
            return Run(sorted(collected), error_class(said), message_of(said))
        finally:
            for name in named:
                self.session.conf.unset(name)
        written = Counter(self._written(side, place)) - Counter(before)
        return Run(sorted([*collected, *written.elements()]))

    def _writer(self, side: Side, place: Path, collected: Output) -> Any:
        options = {name: str(each).format(place=place) for name, each in side.options.items()}
        checkpoint = options.pop("checkpointLocation", str(place / "checkpoint"))
        writer = (
            self.query(side)
            .writeStream.outputMode(side.mode)
            .options(checkpointLocation=checkpoint, **options)
            .trigger(**TRIGGERS[side.trigger])
        )
        if side.sink not in ("collect", "first row"):
            return writer.format(side.sink)
        planned = {path.name for path in (place / "checkpoint" / "offsets").glob("[0-9]*")}

        def collect(batch: DataFrame, number: int) -> None:
            rows = batch.collect() if side.sink == "collect" else batch.take(1)
            if str(number) not in planned:  # a batch that is done again has its number again: sinks replace it
                collected.extend(row_text(row) for row in rows)

        return writer.foreachBatch(collect)

    def query(self, side: Side) -> DataFrame:
        """The query of a side, not started."""

        def files(folder: str, schema: str = COLUMNS, **options: Any) -> DataFrame:
            reader = self.session.readStream.schema(schema).option("maxFilesPerTrigger", 1).options(**options)
            return reader.json(str(self._feed / folder))

        scope: dict[str, Any] = {
            "__name__": "__main__",  # so that PySpark sends functions to its workers by value
            "spark": self.session,
            "F": F,
            "T": T,
            "files": files,
            "feed": str(self._feed),
            "topics": self.topics,
            "bootstrap": os.environ.get(BOOTSTRAP, ""),
            "COLUMNS": COLUMNS,
            "df": files("in"),
            "other": files("other", OTHER_COLUMNS),
        }
        exec(side.define, scope)
        made: DataFrame = eval(side.query, scope)
        return made

    def described(self, side: Side, place: Path) -> dict[str, Any] | None:
        """What `schemadesk_spark` says of a query; None where Spark doesn't plan it."""
        settings = settings_of(side)
        options = {name: str(each).format(place=place) for name, each in side.options.items()}
        sink = f"{side.sink}[{options['path']}]" if "path" in options else side.sink
        for name, value in settings.items():
            self.session.conf.set(name, value)
        try:
            return describe(
                self.query(side),
                output_mode=side.mode, sink=sink, options=options, settings=settings, trigger=TRIGGERS[side.trigger],
                topic_ids=bool(self.topics),
            )  # fmt: skip
        except Exception:  # noqa: BLE001 - Spark says in many ways that it doesn't plan a query
            return None
        finally:
            for name in settings:
                self.session.conf.unset(name)

    def _written(self, side: Side, place: Path) -> Output:
        """What a sink of files holds."""
        path = side.options.get("path", "").format(place=place)
        if side.sink not in ("parquet", "json") or not path or not Path(path).exists():
            return []
        try:
            return [row_text(row) for row in self.session.read.format(side.sink).load(path).collect()]
        except Exception as error:  # noqa: BLE001 - a folder that Spark can't read is what the query made of it
            return [f"can't be read: {error_class(str(error))}"]

    def _state(self, checkpoint: Path) -> dict[str, Any]:
        """The state's rows by operator and store, as Spark's own data source reads them."""
        read: dict[str, Any] = {}
        for operator, store in stores_of(checkpoint):
            reader = self.session.read.format("statestore").option("operatorId", operator)
            try:
                rows = reader.option("storeName", store).load(str(checkpoint)).collect()
                read[f"{operator} {store}"] = sorted(row_text(row[:2]) for row in rows)[:MAX_PROOF]
            except Exception as error:  # noqa: BLE001 - the state may be what is broken
                read[f"{operator} {store}"] = [error_class(str(error))]
        return read


def causes_of(error: BaseException) -> Iterator[str]:
    """What Java says of the causes of an error, which PySpark leaves out."""
    cause = getattr(error, "_origin", None)
    while cause is not None:
        yield str(cause.toString())
        cause = cause.getCause()


def message_of(text: str) -> str:
    """An error's message from its condition on, without what wraps it: Python's and Spark's calls."""
    at = text.find(f"[{error_class(text)}")
    return shortened(text[max(at, 0) :])


def settings_of(side: Side) -> dict[str, str]:
    """The settings that a query runs with, by their full names."""
    settings = {**DEFAULTS, **side.conf}
    named = {name if name.startswith("spark.") else STREAMING + name: str(each) for name, each in settings.items()}
    # YAML's true is Spark's "true".
    return {
        name: CLASSES.get(each, each.lower() if each in ("True", "False") else each) for name, each in named.items()
    }


def stores_of(checkpoint: Path) -> list[tuple[str, str]]:
    """The operators of a checkpoint and their stores with rows; of a join those that hold the rows themselves."""
    found = []
    for operator in sorted((checkpoint / "state").glob("[0-9]*")):
        stores = [path.name for path in sorted((operator / "0").glob("[a-z]*")) if path.is_dir()]
        found += [(operator.name, store) for store in stores or ["default"] if not store.endswith("NumValues")]
    return found


def row_text(row: Any) -> str:
    """A row as one text, for comparisons."""
    return json.dumps(list(row), default=str)


def is_between(written: Output, one: Output, other: Output) -> bool:
    """Whether an output has all that both others have, and nothing that neither has."""
    found, first, second = Counter(written), Counter(one), Counter(other)
    return first & second <= found <= first | second


def commits(place: Path) -> set[str]:
    """The batches that a checkpoint has as committed."""
    folder = place / "checkpoint" / "commits"
    return {path.name for path in folder.glob("[0-9]*")} if folder.exists() else set()


def readable_files(checkpoint: Path, *, with_state: bool = False) -> dict[str, str]:
    """The files of a checkpoint, without those of rows of state if they aren't asked for, as text, else in Base64."""
    read = {}
    for path in sorted(checkpoint.rglob("*")):
        relative = path.relative_to(checkpoint)
        is_state = relative.parts[0] == "state"
        is_row = is_state and not {"_metadata", "_stateSchema"} & set(relative.parts)
        if not path.is_file() or (is_row and not with_state) or (path.suffix == ".crc" and not is_row):
            continue
        is_binary = is_row or path.name == "schema" or "_stateSchema" in relative.parts
        content = path.read_bytes()
        read[str(relative)] = "base64:" + base64.b64encode(content).decode() if is_binary else content.decode()
    return read


def started(folder: Path) -> SparkSession:
    """The session that restarts are done in."""
    session = session_in(folder)
    for name, value in INTERPRETED.items():
        session.conf.set(name, value)
    return session


def child(matrix: Path, folder: Path, numbers: list[int]) -> None:
    """Do the rows of these numbers in one Spark process; a line before each row and one after it."""
    session = started(folder)
    print(json.dumps({"spark": session.version}), flush=True)
    restarts, rows = Restarts(session, folder), rows_of(matrix)
    for number in numbers:
        print(json.dumps({"begins": number}), flush=True)
        print(json.dumps(restarts.answer(number, rows[number])), flush=True)
    session.stop()


def restarted(matrix: Path, folder: Path, numbers: list[int]) -> Iterator[dict[str, Any]]:
    """What came of the rows of these numbers; with a broker if one of them has topics. The matrix is copied first."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(matrix, folder / "matrix", dirs_exist_ok=True)
    rows = rows_of(folder / "matrix")
    with broker(folder / "kafka") if any("topics" in rows[at] for at in numbers) else nullcontext():
        yield from run_rows(folder / "matrix", folder, numbers, "tests.state.operator_restarts")


def named(rows: list[dict[str, Any]], wanted: list[str]) -> list[int]:
    """The numbers of the rows whose names hold one of the texts, of all without texts."""
    return [at for at, row in enumerate(rows) if not wanted or any(text in row["name"] for text in wanted)]


def keep_known(folder: Path, wanted: list[str]) -> None:
    """Run the queries before the restarts of these rows and keep their checkpoints."""
    folder.mkdir(parents=True, exist_ok=True)
    session, rows = started(folder), rows_of(MATRIX)
    restarts = Restarts(session, folder)
    for number in named(rows, wanted):
        made = restarts.known(side_of(rows[number], "before"), folder / "copies" / str(number))
        print(f"{rows[number]['name']}: {made.error or 'kept'} {made.text}", flush=True)
    session.stop()


def main(folder: Path, wanted: list[str]) -> None:
    """Run the rows whose names hold one of the texts, all without texts."""
    for answer in restarted(MATRIX, folder.resolve(), named(rows_of(MATRIX), wanted)):
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "child":
        child(Path(sys.argv[2]), Path(sys.argv[3]), [int(number) for number in sys.argv[4:]])
    elif sys.argv[1] == "known":
        keep_known(Path(sys.argv[2]).resolve(), sys.argv[3:])
    else:
        main(Path(sys.argv[1]), sys.argv[2:])
