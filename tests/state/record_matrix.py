"""Do every restart of the matrix and record what came of it: `python -m tests.state.record_matrix FOLDER`.

    python -m tests.state.record_matrix FOLDER --rows "time to live" threshold
    python -m tests.state.record_matrix FOLDER --answers ANSWERS
    python -m tests.state.record_matrix FOLDER --matrix tests/state/hazards.yaml
    SPARK_PYTHON=/tmp/spark40/bin/python python -m tests.state.record_matrix FOLDER --record tests/state/matrix_recorded_4.0.json

The checkpoints are kept in FOLDER. The record, `matrix_recorded.json` or that of another matrix, has the date, Spark's version, and a row each:
Spark's error class, what state read as, what the check had said, and whether they are one. `--rows` does only those
whose names hold one of the texts and puts them into the record; `--answers` takes what `tests.state.restarts` printed
for FOLDER before. Ends with 1 if a row differs. Another Spark is asked where `SPARK_PYTHON` names its Python, and its
record is another file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from tests.state.restarts import run_rows
from tests.state.test_matrix import HERE, assert_as_said, predicted

DEFAULT: Final = HERE / "matrix.yaml"


def recorded_row(row: dict[str, Any], answer: dict[str, Any], folder: Path, spark: str) -> dict[str, Any]:
    """One row of the record of a version of Spark."""
    check = predicted(row, folder / str(answer["number"]) / "before", spark)
    try:
        assert_as_said(row, check, answer, spark)
    except AssertionError as error:
        print(f"{row['name']}: {str(error)[:400]}")
        as_said = False
    else:
        as_said = True
    return {
        "name": row["name"],
        "error": answer["error"],
        "reads": answer["reads"],
        "verdict": check.verdict,
        "said_error": check.error,
        "status": {each.name: each.status for each in check.variables},
        "as_said": as_said,
        "seconds": answer.get("seconds"),
    }


def answers_of(matrix: Path, folder: Path, wanted: list[str], kept: Path | None) -> Iterator[dict[str, Any]]:
    """What Spark did: now, or as it was printed before."""
    if kept is not None:
        lines = kept.read_text().splitlines()
        yield from (json.loads(line) for line in lines if line.startswith("{"))
        return
    rows = yaml.safe_load(matrix.read_text())
    numbers = [at for at, row in enumerate(rows) if not wanted or any(text in row["name"] for text in wanted)]
    yield from run_rows(matrix, folder, numbers)


def write(names: list[str], rows: dict[str, dict[str, Any]], version: str, record: Path) -> bool:
    """Write the record in the order of the names; gives whether all rows are as said."""
    listed = [rows[name] for name in names if name in rows]
    as_said = sum(each["as_said"] for each in listed)
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    head = json.dumps({"date": date, "spark": version, "rows_as_said": as_said})
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in listed)
    record.write_text(f'{head[:-1]}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")
    return as_said == len(listed)


def main() -> int:
    """Run, compare, record; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", nargs="*", default=[], metavar="TEXT")
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--matrix", type=Path, default=DEFAULT)
    parser.add_argument("--record", type=Path, help="matrix_recorded.json for matrix.yaml, if it isn't said")
    given = parser.parse_args()
    folder, matrix = given.folder.resolve(), given.matrix.resolve()
    record = given.record or matrix.with_name(f"{matrix.stem}_recorded.json")
    is_part = bool(given.rows or given.answers) and record.exists()
    known = json.loads(record.read_text()) if is_part else {"rows": []}
    matrix_rows = yaml.safe_load(matrix.read_text())
    names = [row["name"] for row in matrix_rows]
    rows = {each["name"]: each for each in known["rows"]}
    version = known.get("spark", "")
    as_said = True
    for answer in answers_of(matrix, folder, given.rows, given.answers):
        version = answer.get("spark", version)
        if "number" in answer:
            made = recorded_row(matrix_rows[answer["number"]], answer, folder, version)
            rows[made["name"]] = made
            print(f"{made['name']}: {'as said' if made['as_said'] else 'DIFFERS'}", flush=True)
            as_said = write(names, rows, version, record)
    return 0 if as_said else 1


if __name__ == "__main__":
    sys.exit(main())
