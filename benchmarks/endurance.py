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
    RunRecord,
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
    text: str
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


def troubles(record: RunRecord, site: Site) -> list[Trouble]:
    """What each fault did, until the next one."""
    results = []
    ends = [*(at for _, at in record.faults[1:]), record.seconds[-1].at]
    for (fault, begin), limit in zip(record.faults, ends, strict=True):
        back = site.ready_after(fault.part, begin)
        away = min(limit, back or limit)
        errors = tuple(sample for sample in record.errors if begin <= sample.at < limit)
        # The last answer to what was asked while the part was away: it may have waited for it.
        late = [
            sample.at
            for sample in record.seconds
            if begin < sample.at <= limit and sample.taken and sample.at - max(sample.taken) <= away
        ]
        end = max([away, *(sample.at for sample in errors), *late])
        within = [sample for sample in record.seconds if begin < sample.at <= end + 1]
        results.append(
            Trouble(
                fault, begin, back, end, errors,
                longest=max((max(sample.taken) for sample in within if sample.taken), default=0.0),
                read=sum(sample.steady for sample in record.seconds if begin < sample.at <= away + 0.5),
                read_errors=sum(begin <= sample.at <= away for sample in record.steady_errors),
            )
        )  # fmt: skip
    return results


def verdicts(record: RunRecord, seconds: float, site: Site) -> Iterator[Verdict]:
    """What came of the faults, and whether it stayed as quick and as large."""
    fault_results = troubles(record, site)
    for trouble in fault_results:
        yield _fault(trouble)
        yield _reads(trouble)
    for fault in FAULTS[len(fault_results) :]:
        yield Verdict(fault.name, "wasn't done: the one before it wasn't over in time", False)
    outside = [
        error for error in record.errors if not any(each_.begin <= error.at <= each_.end for each_ in fault_results)
    ]
    text = f"{len(outside):,}{_statuses(outside)}"
    yield Verdict("errors at other times", text, not outside)
    yield _steady_p99(record, seconds, fault_results)
    yield from (_flat(name, record, seconds) for name in MEMORY)


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
    documented = [error for error in errors if error.is_told and error.what in trouble.fault.documented]
    others = [error for error in errors if error not in documented]
    text = (
        f"{back}; from {first:.1f} to {last:.1f} s after it {len(documented):,} answers as documented"
        f"{_statuses(documented)}, {len(others):,} other errors{_statuses(others)}; the longest answer took "
        f"{milliseconds(trouble.longest)}"
    )
    return Verdict(trouble.fault.name, text, not others and trouble.back is not None)


def _statuses(errors: Sequence[Error]) -> str:
    if not errors:
        return ""
    counts = Counter(error.what for error in errors).most_common()
    first = {error.what: error.body[:120] for error in reversed(errors)}
    return ": " + "; ".join(f"{count:,} × {what} ({' '.join(first[what].split())})" for what, count in counts)


def _reads(trouble: Trouble) -> Verdict:
    """One schema that was read all the time, by one connection to each web server."""
    seconds = (trouble.back or trouble.end) - trouble.begin
    text = f"{trouble.read:,} answers in {seconds:.1f} s, {trouble.read_errors:,} errors"
    return Verdict(f"cached reads meanwhile, {trouble.fault.name}", text, trouble.read > 0)


def _steady_p99(record: RunRecord, seconds: float, fault_results: Sequence[Trouble]) -> Verdict:
    def p99(quarter: int) -> float:
        begin, end = record.began + quarter * seconds / 4, record.began + (quarter + 1) * seconds / 4
        taken = [
            took
            for second_row in record.seconds
            if begin < second_row.at <= end
            and not any(one.begin <= second_row.at <= one.end + 1 for one in fault_results)
            for took in second_row.taken
        ]
        return percentile(sorted(taken), 0.99)

    what = f"p99 of the last quarter within {SLOWER} × of the second's"
    second, last = p99(1), p99(3)
    if not second or not last:
        return Verdict(what, "too short a run to say: a quarter has no time apart from the faults")
    text = f"{milliseconds(second)}, then {milliseconds(last)}, apart from the faults"
    return Verdict(what, text, last <= SLOWER * second)


def _flat(name: str, record: RunRecord, seconds: float) -> Verdict:
    """Whether the memory of a part stays in the last quarter, when the caches of all have had time to fill."""
    samples = [
        (at, memory[name]) for at, memory in record.memory if at >= record.began + 0.75 * seconds and memory[name]
    ]
    what = f"memory of {name} flat in the last quarter"
    if len(samples) < 3:
        return Verdict(what, "too short a run to say")
    growth, mean = growth_of(samples)
    text = (
        f"{mean / 2**20:,.0f} MiB, {growth / 2**20:+.1f} MiB ({growth / mean:+.1%}) in "
        f"{(samples[-1][0] - samples[0][0]) / 60:.1f} minutes"
    )
    return Verdict(what, text, growth <= max(FLAT * mean, FLAT_BYTES))


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
    parser.add_argument("--note", default="", help="what else was running, to note on the page")


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
        operations = [operation for operation in data.make() if not operation.is_numbered]
        pages = pages_of("dev", data.hot[0], data.prefix)
        kinds = kinds_of(target, [*operations, registrations(data)], pages, site.cookie)
        requests, record = mixed(kinds), RunRecord()
        say(f"{size.subjects:,} subjects; the maximum is looked for")
        most = at_most(
            site.targets,
            requests,
            lanes=LANES,
            seconds=size.maximum_seconds,
            serial=record.serial,
            note=record.note_ids,
        )
        rate = SHARE * most
        yield Verdict("at most", f"{most:,.0f} requests a second are answered; {rate:,.0f} are asked for")
        yield from _load(site, size, requests, rate, record)
        site.parts.wait(*site.parts.keepers)  # what was killed late may still be starting
        yield from verdicts(record, size.minutes * 60, site)
        say(f"reading {len(record.registered):,} ids again")
        yield kept(data, record)


def _load(site: Site, size: Size, requests: Sequence[tuple[int, str]], rate: float, record: RunRecord) -> Iterator[Row]:
    seconds = size.minutes * 60
    step = 60.0 if size.minutes >= STEPS else seconds / STEPS
    steady = next(request for request in requests if "GET /schemas/ids/" in request[1])
    streams = [
        stream("mix", requests, rate=rate, lanes=LANES),
        stream("steady", [steady], rate=STEADY * STEADY_LANES, lanes=STEADY_LANES, pinned=True),
    ]
    left, shown, sampled = list(FAULTS), 0, 0.0
    for line in lines(site.targets, streams, seconds=seconds, serial=record.serial):
        record.began = line["began"]
        record.note(line)
        passed = time.monotonic() - record.began
        if left and passed >= left[0].share * seconds and _is_over(record, site):
            fault = left.pop(0)
            record.faults.append((fault, time.monotonic()))
            fault.do(site)
        if passed - sampled >= min(5.0, step / 2):
            sampled = passed
            record.memory.append((time.monotonic(), site.memory()))
        while line["at"] - record.began >= (shown + 1) * step - 0.5:
            yield _row(record, shown, step)
            shown += 1


def _is_over(record: RunRecord, site: Site) -> bool:
    """Whether the last fault is: its part is back and nothing has been wrong since for a while.

    On a machine that has much else to do a part takes its time, and what comes of it mustn't count for the next fault.
    """
    if not record.faults:
        return True
    fault, begin = record.faults[-1]
    back = site.ready_after(fault.part, begin)
    last_error = max((error.at for error in record.errors), default=0.0)
    return back is not None and time.monotonic() > max(back, last_error) + QUIET


def _row(record: RunRecord, number: int, step: float) -> Row:
    begin, end = record.began + number * step, record.began + (number + 1) * step
    seconds = [duration for duration in record.seconds if begin < duration.at - 0.5 <= end]
    taken = sorted(duration for second in seconds for duration in second.taken)
    return Row(
        f"{number + 1}" if step == 60 else f"{number * step:.0f}–{(number + 1) * step:.0f} s",
        len(taken) / step,
        percentile(taken, 0.5),
        percentile(taken, 0.99),
        sum(second.errors for second in seconds),
        sum(second.skipped for second in seconds),
        record.memory[-1][1] if record.memory else {},
    )


def kept(data: DataSet, record: RunRecord) -> Verdict:
    """Whether every registration that was answered for is there. Raises RemoteUnavailable."""
    ids = sorted(record.registered.items())
    answers = ask(data.target, [Call("GET", f"/schemas/ids/{schema_id}") for _, schema_id in ids])
    lost = [
        (serial, schema_id, status)
        for (serial, schema_id), (status, body) in zip(ids, answers, strict=True)
        if status != 200 or f"added_{serial:012d}" not in body
    ]
    text = f"{len(ids):,} were answered for, {len(lost):,} of them aren't there"
    if lost:
        serial, schema_id, status = lost[0]
        text += f"; the first: number {serial} got id {schema_id}, which answers {status}"
    return Verdict("registrations", text, bool(ids) and not lost)


# -- what is shown ------------------------------------------------------------------------------------------------------


def cells(row: Row | Verdict) -> tuple[str, ...]:
    """A row as the table shows it."""
    if isinstance(row, Verdict):
        return f"{row.what}:", f"{row.text}{' (missed)' if row.is_held is False else ''}"
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
