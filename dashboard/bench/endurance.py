"""Half an hour of a mixed load with faults: whether it stays as quick and as large as it was, and loses nothing.

The maximum is measured first, with the same mix; then 70 % of it are asked for. At three tenths of the time PostgreSQL
is restarted, at four Valkey, at a half one of two web servers is killed: what was started anew has a quarter of the time
to fill its caches before its memory is judged. In the end every id that a registration was answered with is read again.
"""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dashboard.bench.endurance_mix import at_most, kinds_of, lines, mixed, pages_of, registrations, stream
from dashboard.bench.endurance_seen import FAULTS, Seen, percentile
from dashboard.bench.endurance_site import MEMORY, Site, running_site
from dashboard.bench.endurance_verdicts import Verdict, verdicts
from dashboard.bench.engines import milliseconds
from dashboard.bench.registry_calls import DataSet
from dashboard.bench.registry_client import Call, ask
from dashboard.bench.timing import machine
from registry.errors import InvalidInput

Say = Callable[[str], object]

LANES: Final = 32
SHARE: Final = 0.7  # of the maximum
STEADY: Final = 20.0  # times a second, at each server, the one schema that is always wanted
STEADY_LANES: Final = 2  # one a server
QUIET: Final = 1.0  # second without an error, after which a fault is over
STEPS: Final = 8  # of a run that is shorter than as many minutes
HEAD: Final = ("minute", "a second", "p50", "p99", "errors", "not sent", *MEMORY)
_WIDTHS: Final = (12, 9, 9, 10, 8, 9, *(len(name) + 4 for name in MEMORY))


@dataclass(frozen=True, slots=True)
class Size:
    """How long, over how many subjects, and how long the maximum is looked for."""

    minutes: float = 30.0
    subjects: int = 1_000
    maximum_seconds: float = 15.0


@dataclass(frozen=True, slots=True)
class Row:
    """A minute, or an eighth of a shorter run: its requests and the memory of the parts at its end."""

    what: str
    per_second: float
    p50: float
    p99: float
    errors: int
    skipped: int
    memory: Mapping[str, int]


# -- the command --------------------------------------------------------------------------------------------------------


def add_arguments(parser: ArgumentParser) -> None:
    """The options on the command line."""
    usual = Size()
    parser.add_argument("--minutes", type=float, default=usual.minutes, help="of the load with the faults")
    parser.add_argument("--subjects", type=int, default=usual.subjects, help="that are listed and called")
    parser.add_argument(
        "--maximum-seconds", type=float, default=usual.maximum_seconds, help="for which the maximum is looked for"
    )
    parser.add_argument("--note", default="", help="what else was running, for the page")


def size_of(options: Mapping[str, Any]) -> Size:
    """The sizes that the options name. Raises InvalidInput."""
    for name, least, most in (("minutes", 0.25, 1_440), ("subjects", 2, 100_000), ("maximum_seconds", 2, 600)):
        if not least <= options[name] <= most:
            raise InvalidInput(f"--{name.replace('_', '-')} {options[name]}: a number from {least} to {most:,}.")
    return Size(**{name: options[name] for name in Size.__dataclass_fields__})


def measure(size: Size, say: Say) -> Iterator[Row | Verdict]:
    """The rows as they are measured, then what came of the faults.

    Raises PartFailed or PartMissing when the parts can't be run, RemoteUnavailable where nothing is answered.
    """
    with running_site() as site:
        target = site.targets[0]
        data = DataSet(target, size.subjects)
        operations = [each for each in data.make() if not each.is_numbered]
        pages = pages_of("dev", data.hot[0], data.prefix)
        kinds = kinds_of(target, [*operations, registrations(data)], pages, site.cookie)
        requests, seen = mixed(kinds), Seen()
        say(f"{size.subjects:,} subjects; the maximum is looked for")
        most = at_most(
            site.targets, requests, lanes=LANES, seconds=size.maximum_seconds, serial=seen.serial, note=seen.note_ids
        )
        rate = SHARE * most
        yield Verdict("at most", f"{most:,.0f} requests a second are answered; {rate:,.0f} are asked for")
        yield from _load(site, size, requests, rate, seen)
        site.parts.wait(*site.parts.keepers)  # what was killed late may still be starting
        yield from verdicts(seen, size.minutes * 60, site)
        say(f"reading {len(seen.registered):,} ids again")
        yield kept(data, seen)


def _load(site: Site, size: Size, requests: Sequence[tuple[int, str]], rate: float, seen: Seen) -> Iterator[Row]:
    seconds = size.minutes * 60
    step = 60.0 if size.minutes >= STEPS else seconds / STEPS
    steady = next(request for request in requests if "GET /schemas/ids/" in request[1])
    streams = [
        stream("mix", requests, rate=rate, lanes=LANES),
        stream("steady", [steady], rate=STEADY * STEADY_LANES, lanes=STEADY_LANES, pinned=True),
    ]
    left, shown, sampled = list(FAULTS), 0, 0.0
    for told in lines(site.targets, streams, seconds=seconds, serial=seen.serial):
        seen.began = told["began"]
        seen.note(told)
        passed = time.monotonic() - seen.began
        if left and passed >= left[0].share * seconds and _is_over(seen, site):
            fault = left.pop(0)
            seen.faults.append((fault, time.monotonic()))
            fault.do(site)
        if passed - sampled >= min(5.0, step / 2):
            sampled = passed
            seen.memory.append((time.monotonic(), site.memory()))
        while told["at"] - seen.began >= (shown + 1) * step - 0.5:
            yield _row(seen, shown, step)
            shown += 1


def _is_over(seen: Seen, site: Site) -> bool:
    """Whether the last fault is: its part is back and nothing has been wrong since for a while.

    On a machine that has much else to do a part takes its time, and what comes of it mustn't count for the next fault.
    """
    if not seen.faults:
        return True
    fault, begin = seen.faults[-1]
    back = site.ready_after(fault.part, begin)
    wrong = max((each.at for each in seen.errors), default=0.0)
    return back is not None and time.monotonic() > max(back, wrong) + QUIET


def _row(seen: Seen, number: int, step: float) -> Row:
    begin, end = seen.began + number * step, seen.began + (number + 1) * step
    found = [each for each in seen.seconds if begin < each.at - 0.5 <= end]
    taken = sorted(each for second in found for each in second.taken)
    return Row(
        f"{number + 1}" if step == 60 else f"{number * step:.0f}–{(number + 1) * step:.0f} s",
        len(taken) / step,
        percentile(taken, 0.5),
        percentile(taken, 0.99),
        sum(second.errors for second in found),
        sum(second.skipped for second in found),
        seen.memory[-1][1] if seen.memory else {},
    )


def kept(data: DataSet, seen: Seen) -> Verdict:
    """Whether every registration that was answered for is there. Raises RemoteUnavailable."""
    ids = sorted(seen.registered.items())
    answers = ask(data.target, [Call("GET", f"/schemas/ids/{found}") for _, found in ids])
    lost = [
        (serial, found, status)
        for (serial, found), (status, body) in zip(ids, answers, strict=True)
        if status != 200 or f"added_{serial:012d}" not in body
    ]
    said = f"{len(ids):,} were answered for, {len(lost):,} of them aren't there"
    if lost:
        serial, found, status = lost[0]
        said += f"; the first: number {serial} got id {found}, which answers {status}"
    return Verdict("registrations", said, bool(ids) and not lost)


# -- what is shown ------------------------------------------------------------------------------------------------------


def cells(row: Row | Verdict) -> tuple[str, ...]:
    """A row as the table shows it."""
    if isinstance(row, Verdict):
        return f"{row.what}:", f"{row.said}{' (missed)' if row.is_held is False else ''}"
    return (
        row.what,
        f"{row.per_second:,.0f}",
        milliseconds(row.p50),
        milliseconds(row.p99),
        f"{row.errors:,}",
        f"{row.skipped:,}",
        *(f"{row.memory.get(name, 0) / 2**20:,.0f} MiB" for name in MEMORY),
    )


def in_columns(texts: Sequence[str]) -> str:
    """A row for a terminal."""
    if len(texts) == 2:
        return " ".join(texts)
    return " ".join(f"{text:{width}}" for text, width in zip(texts, _WIDTHS, strict=True)).rstrip()


def section(rows: Sequence[Row | Verdict], size: Size, note: str = "") -> str:
    """The section of the page of measurements."""
    load_average = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    table = [row for row in rows if isinstance(row, Row)]
    return "\n".join(
        [
            f"Measured on {time.strftime('%Y-%m-%d')} with {machine()}; load average at the end {load_average}."
            f"{' ' + note if note else ''}",
            "",
            f"Two web servers, the worker and beat under their keepers as `up` has them, in front of a durable PostgreSQL; "
            f"{size.subjects:,} subjects. Asked for is {SHARE:.0%} of the maximum, which was measured before with the same mix: "
            "reads of schemas, versions and lists, look-ups, checks, registrations, and pages of somebody signed in. Times are "
            "from when a request was due. Memory is what the processes of a part don't share with others. In a "
            f"fault's time one schema is read {STEADY:.0f} times a second from each web server.",
            "",
            *(f"- {' '.join(cells(row))}" for row in rows if isinstance(row, Verdict)),
            "",
            f"| {' | '.join(HEAD)} |",
            f"|{'---|' * len(HEAD)}",
            *(f"| {' | '.join(cells(row))} |" for row in table),
        ]
    )
