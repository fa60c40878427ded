"""How quick the metadata of state stores is read: one large checkpoint, and many of which nothing or little changed."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dashboard.bench.engines import milliseconds
from dashboard.bench.state_files import write_batch, write_checkpoint
from dashboard.bench.timing import machine, timed
from registry.checkpoints import Bounds, Discovery, ReadCache, find_checkpoints, read_checkpoint
from registry.checkpoints.schema_files import forget_schemas

CHANGED: Final = 5  # checkpoints that went on between two listings
SMALL_FILES, SMALL_VARIABLES = 6, 4  # of each of the many checkpoints


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: schema files and variables of the one checkpoint, how many checkpoints are listed."""

    schema_files: int = 128
    variables: int = 50
    checkpoints: int = 500
    repeats: int = 20


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement; `goal` in seconds, None without one."""

    what: str
    seconds: float
    goal: float | None
    said: str = ""


def measure(size: Size) -> Iterator[Row]:
    """The rows, as they are measured."""
    for each in MEASURES:
        with tempfile.TemporaryDirectory(prefix="bench-state-") as folder:
            yield from each(Path(folder), size)


def _one_checkpoint(folder: Path, size: Size) -> Iterator[Row]:
    path = write_checkpoint(folder / "query", schema_files=size.schema_files, variables=size.variables)
    what = f"read a checkpoint of {size.schema_files} schema files and {size.variables} variables"

    def first() -> Callable[[], object]:
        forget_schemas()
        return lambda: read_checkpoint(str(path), [folder])

    cold = timed(first, most_calls=size.repeats, most_seconds=30)
    yield Row(what, cold.median, 0.3, f"99 %: {milliseconds(cold.p99)}")
    cache = ReadCache()
    again = timed(
        lambda: lambda: read_checkpoint(str(path), [folder], cache=cache), most_calls=size.repeats, most_seconds=30
    )
    yield Row("the same again when nothing changed", again.median, None)

    def after_a_batch() -> Callable[[], object]:
        newest = max(int(entry.name) for entry in (path / "offsets").iterdir())
        write_batch(path, newest + 1)
        return lambda: read_checkpoint(str(path), [folder], cache=cache)

    more = timed(after_a_batch, most_calls=size.repeats, most_seconds=30)
    yield Row("the same after one more batch", more.median, None)


def _many_checkpoints(folder: Path, size: Size) -> Iterator[Row]:
    paths = [
        write_checkpoint(
            folder / f"team_{number % 20}" / f"query_{number}", schema_files=SMALL_FILES, variables=SMALL_VARIABLES
        )
        for number in range(size.checkpoints)
    ]
    cache = ReadCache(checkpoints=size.checkpoints)

    def listing() -> float:
        began = time.perf_counter()
        _all_found(find_checkpoints(str(folder), [folder], cache=cache, bounds=Bounds(size.checkpoints)), size)
        return time.perf_counter() - began

    forget_schemas()
    yield Row(f"find and read {size.checkpoints} checkpoints", listing(), None)
    yield Row("list them again when nothing changed", min(listing() for _ in range(3)), 60.0)
    for path in paths[:: max(1, len(paths) // CHANGED)][:CHANGED]:
        write_batch(path, (SMALL_FILES - 1) * 10 + 1)
    yield Row(f"list them again when {CHANGED} of them went on", listing(), None)


def _all_found(discovery: Discovery, size: Size) -> None:
    read = [each for each in discovery.found if each.checkpoint is not None]
    if len(read) != size.checkpoints or discovery.ended_early:
        raise RuntimeError(f"{len(read)} of {size.checkpoints} checkpoints were read ({discovery.ended_early})")


#: what is measured, in this order; reading rows through Spark belongs here as one more
MEASURES: Final[tuple[Callable[[Path, Size], Iterator[Row]], ...]] = (_one_checkpoint, _many_checkpoints)


def cells(row: Row) -> tuple[str, str, str, str]:
    """A row as the table shows it."""
    goal = "" if row.goal is None else f"{row.goal:g} s{'' if row.seconds <= row.goal else ' (missed)'}"
    return row.what, milliseconds(row.seconds), goal, row.said


def section(rows: list[Row], note: str = "") -> str:
    """The section of the page of measurements."""
    lines = [
        f"Measured on {time.strftime('%Y-%m-%d')} with {machine()}.{' ' + note if note else ''}",
        "",
        f"Without Spark, on a local disk. The one checkpoint's variables have ten fields and more; it keeps 100 batches. "
        f"Each of the many has {SMALL_FILES} schema files, {SMALL_VARIABLES} variables and 51 batches.",
        "",
        "| what | median or best | goal | |",
        "|---|---|---|---|",
        *(f"| {' | '.join(cells(row))} |" for row in rows),
    ]
    return "\n".join(lines)
