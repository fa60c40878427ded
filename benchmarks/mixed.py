"""What programs ask of the Confluent API all day, all of it together: alone, and beside somebody who reads pages.

As many connections as the goal names ask for one thing after the other, while versions of other subjects are registered.
"""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from benchmarks import site
from benchmarks.endurance_load import FRESH
from benchmarks.endurance_workload import SHARES, Kind, kinds_of, lines, mixed, pages_of, percentile, stream
from benchmarks.engines import milliseconds
from benchmarks.measurement import machine
from benchmarks.registry_calls import FIRST_SERIAL, DataSet
from benchmarks.registry_client import Target
from registry.errors import InvalidInput, RemoteUnavailable

LANES: Final = 16
GOAL: Final = 0.05  # seconds, 99th percentile of each operation
RATE: Final = 5  # registrations a second
WARM_UP: Final = 0.25  # of the seconds that are measured, before them
TOGETHER: Final = "all of these"
HEAD: Final = ("condition", "what", "answers", "p50", "p99", "goal")


@dataclass(frozen=True, slots=True)
class Condition:
    """Whether no cache knows the requests, and whether somebody reads one page after the other beside them."""

    name: str
    is_fresh: bool = False
    has_pages: bool = False


CONDITIONS: Final = (
    Condition("cached"),
    Condition("uncached", is_fresh=True),
    Condition("cached, beside pages", has_pages=True),
    Condition("uncached, beside pages", is_fresh=True, has_pages=True),
)


@dataclass(frozen=True, slots=True)
class Size:
    """How many seconds each condition is measured, and how many subjects there are."""

    seconds: float = 30.0
    subjects: int = 1_000


@dataclass(frozen=True, slots=True)
class Row:
    """What the answers of one operation took under a condition, ascending."""

    condition: str
    what: str
    taken: Sequence[float]
    has_goal: bool = True


def add_arguments(parser: ArgumentParser) -> None:
    """The options on the command line."""
    usual = Size()
    parser.add_argument("--seconds", type=float, default=usual.seconds, help="of each condition")
    parser.add_argument("--subjects", type=int, default=usual.subjects, help="in the registry")
    parser.add_argument("--note", default="", help="what else was running, to note on the page")


def size_of(options: Mapping[str, Any]) -> Size:
    """The sizes that the options name. Raises InvalidInput."""
    for name, least, most in (("seconds", 1, 3_600), ("subjects", 1, 100_000)):
        if not least <= options[name] <= most:
            raise InvalidInput(f"--{name} {options[name]}: a number from {least} to {most:,}.")
    return Size(options["seconds"], options["subjects"])


def measure(size: Size, say: Callable[[str], object]) -> Iterator[Row]:
    """The rows as they are measured.

    Raises PartFailed or PartMissing when the server can't be run, RemoteUnavailable where an answer was no success.
    """
    with site.own_server() as target:
        say(f"{target.name}: {size.subjects:,} subjects")
        data = DataSet(target, size.subjects)
        operations = data.make()
        programs = kinds_of(target, [one for one in operations if one.name in SHARES and not one.is_numbered], {}, "")
        writer = kinds_of(target, [one for one in operations if one.is_numbered], {}, "")
        pages = kinds_of(target, [], pages_of("dev", data.hot[0], "bench"), target.cookie)
        serial = FIRST_SERIAL
        for condition in CONDITIONS:
            kinds = [_fresh(kind) for kind in programs] if condition.is_fresh else programs
            serial += FIRST_SERIAL
            yield from _rows(target, condition, kinds, writer, pages, size.seconds, serial)


def _fresh(kind: Kind) -> Kind:
    """The same requests with a header that no other one has."""
    marked = [
        request.replace("\r\nAccept:", f"\r\nX-Bench: {FRESH.decode()}\r\nAccept:", 1) for request in kind.requests
    ]
    return replace(kind, requests=marked)


def _rows(
    target: Target, condition: Condition, programs: Sequence[Kind], writer: Sequence[Kind], pages: Sequence[Kind],
    seconds: float, serial: int,
) -> Iterator[Row]:  # fmt: skip
    streams = {"mix": (programs, 0.0, LANES), "writer": (writer, RATE, 1)}
    if condition.has_pages:
        streams["pages"] = (pages, 0.0, 1)
    jobs = [stream(name, mixed(kinds), rate=rate, lanes=lanes) for name, (kinds, rate, lanes) in streams.items()]
    taken: dict[str, list[float]] = {}
    for report in lines([target], jobs, seconds=seconds * (1 + WARM_UP), serial=serial):
        for name, (kinds, _, _) in streams.items():
            for number, _, _, what, text in report["streams"][name]["errors"]:
                raise RemoteUnavailable(f"{target.url}: {kinds[number].name} was answered {what}: {text}")
            if report["at"] - report["began"] > seconds * WARM_UP:
                for number, took in report["streams"][name]["taken"]:
                    taken.setdefault("page" if name == "pages" else kinds[number].name, []).append(took)
    for kind in (*programs, *writer):
        yield Row(condition.name, kind.name, sorted(taken.get(kind.name, ())))
    yield Row(
        condition.name, TOGETHER, sorted(took for what, times in taken.items() if what != "page" for took in times)
    )
    if condition.has_pages:
        yield Row(condition.name, "page", sorted(taken.get("page", ())), has_goal=False)


def cells(row: Row) -> tuple[str, ...]:
    """A row as the table shows it."""
    p50, p99 = (percentile(row.taken, share) for share in (0.5, 0.99))
    goal = f"{milliseconds(GOAL)}{'' if p99 <= GOAL else ' (missed)'}" if row.has_goal else ""
    return row.condition, row.what, f"{len(row.taken):,}", milliseconds(p50), milliseconds(p99), goal


def section(rows: Sequence[Row], size: Size, note: str = "") -> str:
    """The section of the page of measurements."""
    load_average = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return "\n".join(
        [
            f"Measured on {time.strftime('%Y-%m-%d')} with {machine()}; load average at the end {load_average}."
            f"{' ' + note if note else ''}",
            "",
            f"One web process as under `up`, in front of a durable PostgreSQL, with {size.subjects:,} subjects of ten fields. "
            f"Over {LANES} connections programs ask as fast as they are answered, each kind by its share, for "
            f"{size.seconds:g} s after a warm-up; {RATE} versions a second are registered beside them. Uncached requests have "
            "a header that no request had before. Beside pages, one person reads one page after the other without a pause: "
            f"the list, a search, a subject, the board, a comparison. The goal is for the 99th percentile: {milliseconds(GOAL)}.",
            "",
            f"| {' | '.join(HEAD)} |",
            f"|{'---|' * len(HEAD)}",
            *(f"| {' | '.join(cells(row))} |" for row in rows),
        ]
    )
