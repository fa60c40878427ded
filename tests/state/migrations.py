"""The restarts of `migrations.yaml`, before and after the generated scripts; each half in one Spark process.

    python -m tests.state.migrations known FOLDER
    python -m tests.state.migrations after FOLDER

The first half leaves each row's checkpoint in FOLDER/NUMBER, and prints the descriptions of its queries. The second half
starts the next release on FOLDER/NUMBER/checkpoint-migrated/checkpoint, and prints what it writes, and what it writes
where it has run from the first row. Needs Java 17; reads and writes FOLDER alone.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from tests.amounts import IS_LONG
from tests.state.operator_restarts import AFTER, MATRIX, Restarts, Run, rows_of, side_of, started

HERE: Final = Path(__file__).parent


def migrations() -> list[dict[str, Any]]:
    """The rows of this run (see amounts.py), in the form of rows of `operators`."""
    recorded = {row["name"]: row for row in rows_of(MATRIX)}
    define, rows = "", []
    for row in yaml.safe_load((HERE / "migrations.yaml").read_text()):
        if set(row) == {"define"}:
            define = row["define"]
        elif IS_LONG or not row.get("is_long"):
            rows.append(recorded[row["restart"]] | row if "restart" in row else {"define": define, **row})
    return rows


class Halves(Restarts):
    """The two halves of each restart."""

    def before(self, row: dict[str, Any], place: Path) -> dict[str, Any]:
        """Leave a checkpoint that has read `known`; answer with the descriptions."""
        before, after = side_of(row, "before"), side_of(row, "after")
        shutil.rmtree(place, ignore_errors=True)
        self._empty(before)
        self._add(("known",))
        done = _said(self._run(before, place))
        return {**done, "before": self.described(before, place), "after": self.described(after, place)}

    def after(self, row: dict[str, Any], place: Path) -> dict[str, Any]:
        """Answer with what the next release writes on the new checkpoint, and with what is right."""
        after = side_of(row, "after")
        right = self._control(after, with_known=True)
        self._empty(after)
        self._add(("known", *AFTER))
        written = self._run(after, place)
        return {**_said(written), "written": written.output, "right": right.output}


def _said(run: Run) -> dict[str, str]:
    return {"error": run.error, "text": run.text}


def main(half: str, folder: Path) -> None:
    """Do one half of all rows."""
    halves = Halves(started(folder), folder)
    for number, row in enumerate(migrations()):
        place = folder / str(number)
        done = halves.before(row, place) if half == "known" else halves.after(row, place / "checkpoint-migrated")
        print(json.dumps({"number": number, **done}), flush=True)
    halves.session.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).resolve())
