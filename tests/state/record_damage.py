"""Damage real checkpoints as damage.yaml says, start their query again and record what Spark did.

    python -m tests.state.record_damage FOLDER [text in a row's name …]

Writes `damage_recorded.json`, and the checkpoints before any damage to `damaged/`, without rows of state. Needs Java 17.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from tests.state.damage import damage
from tests.state.restarts import MORE_TRIES, run_step, session_in, shortened

HERE: Final = Path(__file__).parent
RECORD: Final = HERE / "damage_recorded.json"
BASES: Final = HERE / "damaged"
#: the query of each base: `first` runs one batch, `then` the others
FIRST: Final[dict[str, Any]] = {
    "variables": {
        "v": {"value": "a INT", "row": [1]},
        "l": {"kind": "list", "value": "a INT", "row": [1]},
        "t": {"value": "a INT", "row": [1], "ttl": 36_000_000},
        "x": {"kind": "list", "value": "a INT", "row": [1], "ttl": 36_000_000},
        "m": {"kind": "map", "key": "k INT", "value": "a INT", "at": [1], "row": [1], "ttl": 36_000_000},
    },
    "timers": True,
}
LATER: Final = FIRST | {"variables": FIRST["variables"] | {"v": {"value": "a INT, b INT", "row": [1, 2]}}}
QUERIES: Final[dict[str, dict[str, Any]]] = {
    "plain": {"key": "CAST(7 AS INT) AS id"},
    "rate": {"key": "CAST(7 AS INT) AS id", "source": "rate"},
    "ids": {
        "key": "CAST(7 AS INT) AS id",
        "settings": {"checkpointFormatVersion": 2},
        "conf": {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"},
    },
}


def make_base(session: Any, name: str, folder: Path) -> Path:
    """The checkpoint of a query after five batches; `base` beside it keeps it as it is."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for step in (FIRST, LATER, LATER, LATER, LATER):
        error, text = run_step(session, QUERIES[name], step, folder)
        if error:
            raise RuntimeError(f"{name} can't be made: {text}")
    shutil.copytree(folder / "checkpoint", folder / "base")
    kept = BASES / name
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(folder / "base", kept, ignore=_rows)
    return folder


def _rows(folder: str, names: list[str]) -> set[str]:
    """What of a checkpoint isn't kept: the folders of partitions, which hold rows."""
    return {name for name in names if name.isdigit()} if Path(folder).parent.name == "state" else set()


def started_again(session: Any, row: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What two starts on the damaged checkpoint did."""
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    shutil.copytree(folder / "base", folder / "checkpoint")
    damage(folder / "checkpoint", row)
    query = QUERIES[row.get("base", "plain")]
    (folder / "report").unlink(missing_ok=True)
    error, text = run_step(session, query, LATER, folder)
    lines = (folder / "report").read_text().splitlines() if (folder / "report").exists() else []
    reads = {each["variable"]: each["read"] for each in map(json.loads, lines)}
    again = row.get("twice") and not error
    then, later = run_step(session, query, LATER, folder) if again else ("", "")
    words = shortened(text or later).replace(str(folder), "…")[:400]
    return {"name": row["name"], "error": error, "then": then, "reads": reads.get("v"), "text": words}


def write(answers: dict[str, Any], names: list[str], spark: str) -> None:
    """Write the record in the order of the rows."""
    head = json.dumps({"date": datetime.now(UTC).strftime("%Y-%m-%d"), "spark": spark})
    lines = ",\n".join(json.dumps(answers[name], ensure_ascii=False) for name in names if name in answers)
    RECORD.write_text(f'{head[:-1]}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")


def main(folder: Path, wanted: list[str]) -> None:
    """Do the rows whose names hold one of the texts, all without texts."""
    rows = yaml.safe_load((HERE / "damage.yaml").read_text())
    known = json.loads(RECORD.read_text())["rows"] if wanted and RECORD.exists() else []
    answers = {each["name"]: each for each in known}
    session = session_in(folder)
    bases: dict[str, Path] = {}
    for row in rows:
        if wanted and not any(text in row["name"] for text in wanted):
            continue
        base = row.get("base", "plain")
        if base not in bases:
            bases[base] = make_base(session, base, folder / base)
        begun = time.monotonic()
        answer = started_again(session, row, bases[base])
        for _ in range(MORE_TRIES):
            if "failed to connect back" not in answer["text"]:
                break
            answer = started_again(session, row, bases[base])
        answers[row["name"]] = answer
        print(f"{row['name']}: {answer['error']} | {answer['then']} | {time.monotonic() - begun:.1f}", flush=True)
        write(answers, [each["name"] for each in rows], session.version)
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
