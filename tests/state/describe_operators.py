"""Describe the queries before and after each restart of operators with `schemadesk_spark`; nothing is restarted.

    python -m tests.state.describe_operators FOLDER

Writes `operators_described.json`: each description once, a line each, and for every row the names of its two. Queries
that Spark doesn't plan have none. Run it again after a change of `schemadesk_spark` or of the rows.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any, Final

from schemadesk_spark import describe
from tests.state.operator_feed import empty_feed
from tests.state.operator_restarts import HERE, MATRIX, Restarts, Side, rows_of, settings_of, side_of
from tests.state.restarts import session_in

DESCRIBED: Final = HERE / "operators_described.json"


def described(restarts: Restarts, side: Side, folder: Path) -> dict[str, Any] | None:
    """The description of a query with its settings; None if Spark doesn't plan it."""
    settings = settings_of(side)
    for name, value in settings.items():
        restarts.session.conf.set(name, value)
    try:
        made = describe(restarts.query(side), output_mode=side.mode, sink=side.sink)
    except Exception as error:  # noqa: BLE001 - Spark says in many ways that it doesn't plan a query
        print(f"no description of {side.query}: {str(error)[:200]}")
        return None
    finally:
        for name in settings:
            restarts.session.conf.unset(name)
    read: dict[str, Any] = json.loads(json.dumps(made).replace(str(folder), "/restarts"))
    return read


def main(folder: Path) -> None:
    """Describe the queries of all rows and write them."""
    folder.mkdir(parents=True, exist_ok=True)
    restarts = Restarts(session_in(folder), folder)
    empty_feed(folder / "feed")
    known: dict[str, str] = {}
    queries: dict[str, Any] = {}
    rows = {}
    for row in rows_of(MATRIX):
        restarts.topics = {name: name for name in row.get("topics", ())}
        rows[row["name"]] = []
        for side in (side_of(row, "before"), side_of(row, "after")):
            if side.name not in known:
                made = described(restarts, side, folder)
                known[side.name] = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:12]
                queries[known[side.name]] = made
            rows[row["name"]].append(known[side.name])
    restarts.session.stop()
    listed = (
        ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in all_.items()) for all_ in (rows, queries)
    )
    DESCRIBED.write_text('{{"rows": {{\n{}\n}}, "queries": {{\n{}\n}}}}\n'.format(*listed))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
