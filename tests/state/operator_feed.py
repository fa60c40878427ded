"""The rows that the restarts of operators read: folders of JSON files, one file a batch, always the same rows.

`known` is what the query has read before the restart. Three batches follow it: `new` has keys and times that no state
has, so it passes unless the state can't be loaded at all; `old` has keys of `known` again, one of its rows too late for
a watermark of ten minutes and one that `known` has already; `end` moves the watermark past everything. The values in
`old` are below some and above other values of `known`, so a minimum that continues a maximum is neither of the two.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Final

Rows = tuple[tuple[object, ...], ...]

#: the columns of `df`, which reads the folder `in`
COLUMNS: Final = "k STRING, j STRING, v INT, w INT, n BIGINT, x DOUBLE, t TIMESTAMP, u TIMESTAMP"
#: the columns of `other`, which reads the folder `other`
OTHER_COLUMNS: Final = "k2 STRING, j2 STRING, v2 INT, w2 INT, t2 TIMESTAMP, u2 TIMESTAMP"
BATCHES: Final = ("known", "new", "old", "end")
_MTIME: Final = 1_700_000_000  # of the first file; each later one is a minute younger


def _main(key: str, second: str, value: int, weight: int, minute: int, second_minute: int) -> tuple[object, ...]:
    return key, second, value, weight, 100 * weight, value / 4, _clock(minute), _clock(second_minute)


def _other(key: str, second: str, value: int, weight: int, minute: int, second_minute: int) -> tuple[object, ...]:
    return key, second, value, weight, _clock(minute), _clock(second_minute)


def _clock(minute: int) -> str:
    return f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00Z"


#: for each folder the rows of each batch
ROWS: Final[dict[str, tuple[Rows, ...]]] = {
    "in": (
        (
            _main("a", "p", 5, 50, 1, 61),
            _main("a", "q", 3, 31, 7, 62),
            _main("b", "p", 7, 70, 3, 80),
            _main("b", "a", 2, 22, 12, 64),
            _main("p", "a", 4, 43, 13, 65),
            _main("p", "c", 2, 24, 14, 67),
            _main("c", "r", 9, 90, 16, 66),
        ),
        (_main("z", "y", 6, 61, 18, 81),),
        (
            _main("a", "p", 8, 85, 9, 70),
            _main("a", "q", 3, 31, 7, 62),
            _main("b", "a", 1, 11, 14, 71),
            _main("p", "b", 10, 99, 15, 72),
            _main("a", "s", 11, 110, 2, 63),
        ),
        (_main("end", "end", 0, 1, 180, 300),),
    ),
    "other": (
        (
            _other("a", "p", 100, 105, 2, 61),
            _other("p", "a", 400, 404, 12, 65),
            _other("b", "s", 200, 201, 5, 64),
            _other("q", "q", 900, 903, 16, 66),
        ),
        (_other("y", "z", 600, 606, 17, 81),),
        (
            _other("b", "p", 300, 303, 10, 70),
            _other("a", "q", 500, 505, 11, 71),
            _other("p", "b", 700, 707, 15, 72),
        ),
        (_other("end", "end", 1, 2, 180, 300),),
    ),
}
_NAMES: Final = {
    "in": [each.split()[0] for each in COLUMNS.split(", ")],
    "other": [each.split()[0] for each in OTHER_COLUMNS.split(", ")],
}
#: folders with the same files as another one
COPIES: Final = {"moved": "in", "second": "in"}


def folders() -> dict[str, str]:
    """Every folder, with the one whose rows it has."""
    return {"in": "in", "other": "other", **COPIES}


def empty_feed(feed: Path) -> None:
    """Remove all files and leave the folders."""
    shutil.rmtree(feed, ignore_errors=True)
    for folder in folders():
        (feed / folder).mkdir(parents=True)


def lines_of(folder: str, names: tuple[str, ...]) -> list[str]:
    """The rows of these batches of a folder, each as JSON."""
    columns, batches = _NAMES[folders()[folder]], ROWS[folders()[folder]]
    rows = [row for name in names for row in batches[BATCHES.index(name)]]
    return [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]


def add_batches(feed: Path, names: tuple[str, ...]) -> None:
    """Write the files of these batches to all folders; a file's time says its place."""
    for folder in folders():
        for name in names:
            place = BATCHES.index(name)
            path = feed / folder / f"{place}-{name}.json"
            path.write_text("".join(f"{line}\n" for line in lines_of(folder, (name,))))
            os.utime(path, (_MTIME + 60 * place, _MTIME + 60 * place))
