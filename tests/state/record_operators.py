"""Do the restarts of operators, settings, sources and sinks, and record what came of them.

    python -m tests.state.record_operators FOLDER
    python -m tests.state.record_operators FOLDER --rows "aggregation:" "max becomes min"
    python -m tests.state.record_operators FOLDER --missing
    python -m tests.state.record_operators FOLDER --answers ANSWERS
    python -m tests.state.record_operators FOLDER --describe
    SPARK_PYTHON=/tmp/spark40/bin/python python -m tests.state.record_operators FOLDER --record tests/state/operators_recorded_4.0.json

    /tmp/spark40/bin/python -m tests.state.operator_restarts known FOLDER "nothing changes"
    python -m tests.state.record_operators FOLDER --rows "nothing changes" --record tests/state/operators_recorded_4.0_to_4.2.json

The last two commands record what Spark does with checkpoints that an earlier one wrote: an upgrade.

The record, `operators_recorded.json`, has the date, Spark's version, a row for each restart, the checkpoints that the
restarts began with, without their rows of state, and what `schemadesk_spark` says of the queries before and after: a
row names its own. `--rows` does only the rows whose names hold one of the texts, `--missing` those that the record
lacks; `--answers` takes what `tests.state.operator_restarts` printed for FOLDER. `--describe` restarts nothing and
describes the queries of the recorded rows again, with `--missing` of those without a description. All of these keep the
other rows of the record, which is written after each restart.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.state.operator_feed import empty_feed
from tests.state.operator_restarts import (
    HERE,
    MATRIX,
    Restarts,
    named,
    readable_files,
    restarted,
    rows_of,
    side_of,
    started,
)

RECORD: Final = HERE / "operators_recorded.json"
LEFT_OUT: Final = ("number", "text")
DESCRIBED: Final = ("before", "after")
#: what every failed query's message begins with
IDS: Final = re.compile(r"\[STREAM_FAILED\] Query \[id = [^]]*\] terminated with exception: ")
MAX_TEXT: Final = 800  # characters of an error's message


class Record:
    """The record as it is on disk, and its rows."""

    def __init__(self, path: Path, *, keep: bool) -> None:
        self._path = path
        known = json.loads(path.read_text()) if keep and path.exists() else {}
        self.spark: str = known.get("spark", "")
        self.rows: dict[str, dict[str, Any]] = {row["name"]: row for row in known.get("rows", ())}
        self.descriptions: dict[str, Any] = known.get("descriptions", {})
        self._checkpoints: dict[str, dict[str, str]] = known.get("checkpoints", {})

    def add(self, answer: dict[str, Any], folder: Path, *, with_state: bool) -> None:
        """Take what came of a row, with the checkpoint that is in the row's folder: its state too if it was damaged."""
        row = {name: value for name, value in answer.items() if name not in LEFT_OUT}
        if answer.get("text"):
            row["text"] = IDS.sub("", answer["text"]).replace(str(folder), "/restarts")[:MAX_TEXT]
        row.setdefault("outcome", "fails later")  # the JVM died: what it was at isn't known any more
        files = readable_files(folder / str(answer["number"]) / "before", with_state=with_state)
        files = {name: text.replace(str(folder), "/restarts") for name, text in files.items()}
        self.describe(row, row, folder)
        row["checkpoint"] = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:12]
        self._checkpoints[row["checkpoint"]] = files
        self.rows[row["name"]] = row

    def describe(self, row: dict[str, Any], given: Mapping[str, Any], folder: Path) -> None:
        """Put descriptions into the record, and their names into a row."""
        for name in DESCRIBED:
            text = json.dumps(given.get(name), sort_keys=True).replace(str(folder), "/restarts")
            row[name] = hashlib.sha256(text.encode()).hexdigest()[:12]
            self.descriptions[row[name]] = json.loads(text)

    def write(self) -> None:
        """Write the rows in the matrix's order and the checkpoints that they name."""
        listed = [self.rows[row["name"]] for row in rows_of(MATRIX) if row["name"] in self.rows]
        head = json.dumps({"date": datetime.now(UTC).strftime("%Y-%m-%d"), "spark": self.spark})
        rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in listed)
        checkpoints = _lines(self._checkpoints, {row["checkpoint"] for row in listed})
        descriptions = _lines(self.descriptions, {row[name] for row in listed for name in DESCRIBED if name in row})
        text = f'{head[:-1]}, "rows": [\n{rows}\n], "descriptions": {descriptions}, "checkpoints": {checkpoints}}}\n'
        self._path.write_text(text, encoding="utf-8")


def _lines(values: Mapping[str, Any], names: set[str]) -> str:
    """The values of these names as JSON, a line each."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(values[name], ensure_ascii=False)}" for name in sorted(names))
    return f"{{\n{lines}\n}}"


def answers_of(folder: Path, numbers: list[int], kept: Path | None) -> Iterator[dict[str, Any]]:
    """What Spark did: now, or as it was printed before."""
    if kept is not None:
        yield from (json.loads(line) for line in kept.read_text().splitlines() if line.startswith("{"))
    else:
        yield from restarted(MATRIX, folder, numbers)


def described(record: Record, folder: Path, *, missing: bool) -> None:
    """Describe the queries of all recorded rows, or of those without a description."""
    folder.mkdir(parents=True, exist_ok=True)
    restarts = Restarts(started(folder), folder)
    empty_feed(folder / "feed")
    rows = rows_of(MATRIX)
    numbers = {row["name"]: number for number, row in enumerate(rows)}
    for row in rows:
        recorded = record.rows.get(row["name"])
        # The offsets of a checkpoint name its own topics, which are gone.
        if recorded is None or "topics" in row or (missing and "before" in recorded):
            continue
        place = folder / str(numbers[row["name"]])
        sides = {name: restarts.described(side_of(row, name), place) for name in DESCRIBED}
        record.describe(recorded, sides, folder)
    record.write()
    restarts.session.stop()


def main() -> None:
    """Run and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", nargs="*", default=[], metavar="TEXT")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--describe", action="store_true")
    parser.add_argument("--record", type=Path, default=RECORD)
    given = parser.parse_args()
    folder: Path = given.folder.resolve()
    record = Record(given.record.resolve(), keep=bool(given.rows or given.missing or given.answers or given.describe))
    if given.describe:
        described(record, folder, missing=given.missing)
        return
    rows = rows_of(MATRIX)
    is_recorded = record.rows if given.missing else ()
    numbers = [number for number in named(rows, given.rows) if rows[number]["name"] not in is_recorded]
    for answer in answers_of(folder, numbers, given.answers):
        record.spark = answer.get("spark", record.spark)
        if "number" in answer:
            answer.setdefault("name", rows[answer["number"]]["name"])
            record.add(answer, folder, with_state="changes" in rows[answer["number"]])
            record.write()
            print(f"{answer['name']}: {answer.get('outcome')} {answer.get('error')}", flush=True)


if __name__ == "__main__":
    main()
