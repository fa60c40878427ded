"""Half an hour of a mixed load with faults: whether it stays as quick and as large as it was, and loses nothing.

The verdicts are of each fault, of latency, and of memory.
"""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.endurance_site import MEMORY, Site, running_site
from benchmarks.endurance_workload import (
    FAULTS,
    Error,
    Fault,
    Seen,
    at_most,
    kinds_of,
    lines,
    mixed,
    pages_of,
    percentile,
    registrations,
    stream,
)
from benchmarks.engines import milliseconds
from benchmarks.measurement import machine
from benchmarks.registry_calls import DataSet
from benchmarks.registry_client import Call, ask
from registry.errors import InvalidInput

SLOWER: Final = 1.5  # times the second quarter's
FLAT: Final = 0.05  # of the mean, that memory may rise by in the last quarter
FLAT_BYTES: Final = 4 * 2**20  # or by this, which says nothing of a part as small as Valkey


@dataclass(frozen=True, slots=True)
class Verdict:
    """Something that was to be held, what was seen, and whether it was held; None where nothing was asked of it."""

    what: str
    said: str
    is_held: bool | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """A fault's time: from when until when something was wrong, and until when the part was away (None: it still is)."""

    fault: Fault
    begin: float
    back: float | None
    end: float
    errors: tuple[Error, ...]
    longest: float
    read: int
    read_errors: int


def troubles(seen: Seen, site: Site) -> list[Trouble]:
    """What each fault did, until the next one."""
    found = []
    ends = [*(at for _, at in seen.faults[1:]), seen.seconds[-1].at]
    for (fault, begin), limit in zip(seen.faults, ends, strict=True):
        back = site.ready_after(fault.part, begin)
        away = min(limit, back or limit)
        errors = tuple(each for each in seen.errors if begin <= each.at < limit)
        # The last answer to what was asked while the part was away: it may have waited for it.
        late = [
            each.at
            for each in seen.seconds
            if begin < each.at <= limit and each.taken and each.at - max(each.taken) <= away
        ]
        end = max([away, *(each.at for each in errors), *late])
        within = [each for each in seen.seconds if begin < each.at <= end + 1]
        found.append(
            Trouble(
                fault, begin, back, end, errors,
                longest=max((max(each.taken) for each in within if each.taken), default=0.0),
                read=sum(each.steady for each in seen.seconds if begin < each.at <= away + 0.5),
                read_errors=sum(begin <= each.at <= away for each in seen.steady_errors),
            )
        )  # fmt: skip
    return found


def verdicts(seen: Seen, seconds: float, site: Site) -> Iterator[Verdict]:
    """What came of the faults, and whether it stayed as quick and as large."""
    found = troubles(seen, site)
    for trouble in found:
        yield _fault(trouble)
        yield _reads(trouble)
    for fault in FAULTS[len(found) :]:
        yield Verdict(fault.name, "wasn't done: the one before it wasn't over in time", False)
    outside = [each for each in seen.errors if not any(each_.begin <= each.at <= each_.end for each_ in found)]
    said = f"{len(outside):,}{_statuses(outside)}"
    yield Verdict("errors at other times", said, not outside)
    yield _steady_p99(seen, seconds, found)
    yield from (_flat(name, seen, seconds) for name in MEMORY)


def _fault(trouble: Trouble) -> Verdict:
    errors = trouble.errors
    back = "is still away" if trouble.back is None else f"back after {trouble.back - trouble.begin:.1f} s"
    if not errors:
        return Verdict(
            trouble.fault.name,
            f"{back}; no error, the longest answer took {milliseconds(trouble.longest)}",
            trouble.back is not None,
        )
    first, last = errors[0].at - trouble.begin, errors[-1].at - trouble.begin
    documented = [each for each in errors if each.is_told and each.what in trouble.fault.told]
    others = [each for each in errors if each not in documented]
    said = (
        f"{back}; from {first:.1f} to {last:.1f} s after it {len(documented):,} answers as documented"
        f"{_statuses(documented)}, {len(others):,} other errors{_statuses(others)}; the longest answer took "
        f"{milliseconds(trouble.longest)}"
    )
    return Verdict(trouble.fault.name, said, not others and trouble.back is not None)


def _statuses(errors: Sequence[Error]) -> str:
    if not errors:
        return ""
    counts = Counter(each.what for each in errors).most_common()
    first = {each.what: each.said[:120] for each in reversed(errors)}
    return ": " + "; ".join(f"{count:,} × {what} ({' '.join(first[what].split())})" for what, count in counts)


def _reads(trouble: Trouble) -> Verdict:
    """One schema that was read all the time, by one connection to each web server."""
    seconds = (trouble.back or trouble.end) - trouble.begin
    said = f"{trouble.read:,} answers in {seconds:.1f} s, {trouble.read_errors:,} errors"
    return Verdict(f"cached reads meanwhile, {trouble.fault.name}", said, trouble.read > 0)


def _steady_p99(seen: Seen, seconds: float, found: Sequence[Trouble]) -> Verdict:
    def p99(quarter: int) -> float:
        begin, end = seen.began + quarter * seconds / 4, seen.began + (quarter + 1) * seconds / 4
        taken = [
            took
            for each in seen.seconds
            if begin < each.at <= end and not any(one.begin <= each.at <= one.end + 1 for one in found)
            for took in each.taken
        ]
        return percentile(sorted(taken), 0.99)

    what = f"p99 of the last quarter within {SLOWER} × of the second's"
    second, last = p99(1), p99(3)
    if not second or not last:
        return Verdict(what, "too short a run to say: a quarter has no time apart from the faults")
    said = f"{milliseconds(second)}, then {milliseconds(last)}, apart from the faults"
    return Verdict(what, said, last <= SLOWER * second)


def _flat(name: str, seen: Seen, seconds: float) -> Verdict:
    """Whether the memory of a part stays in the last quarter, when the caches of all have had time to fill."""
    samples = [(at, each[name]) for at, each in seen.memory if at >= seen.began + 0.75 * seconds and each[name]]
    what = f"memory of {name} flat in the last quarter"
    if len(samples) < 3:
        return Verdict(what, "too short a run to say")
    growth, mean = growth_of(samples)
    said = (
        f"{mean / 2**20:,.0f} MiB, {growth / 2**20:+.1f} MiB ({growth / mean:+.1%}) in "
        f"{(samples[-1][0] - samples[0][0]) / 60:.1f} minutes"
    )
    return Verdict(what, said, growth <= max(FLAT * mean, FLAT_BYTES))


def growth_of(samples: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """How much a line through the samples rises from the first to the last, and the mean."""
    mean_at = sum(at for at, _ in samples) / len(samples)
    mean = sum(value for _, value in samples) / len(samples)
    spread = sum((at - mean_at) ** 2 for at, _ in samples)
    slope = sum((at - mean_at) * (value - mean) for at, value in samples) / spread if spread else 0.0
    return slope * (samples[-1][0] - samples[0][0]), mean


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
