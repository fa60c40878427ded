"""A registry of a million versions beside a small one: what its operations cost, and how PostgreSQL finds what is asked.

Both are filled by the same command with subjects of the same kind, and asked for as many of them.
"""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from benchmarks import dataset, registry
from benchmarks.endurance_site import Database, filled, mark
from benchmarks.endurance_workload import Kind, kinds_of, lines, mixed, pages_of, percentile, stream
from benchmarks.engines import milliseconds
from benchmarks.growth_database import (
    TOP,
    Index,
    Plans,
    Statement,
    counted,
    database_size,
    explained,
    forget_statements,
    indexes,
    large_tables,
    largest_tables,
    slowest,
)
from benchmarks.measurement import machine, timing_of
from benchmarks.pages import server_times
from benchmarks.registry_calls import FIRST_SERIAL, LISTED, LoadedSet
from benchmarks.registry_client import Target
from registry.errors import InvalidInput, RemoteUnavailable

Say = Callable[[str], object]

GOAL: Final = 1.3  # times what the small registry takes
LIST_GOAL: Final = 0.15  # seconds, 95th percentile
SEARCH_GOAL: Final = 0.1
#: how operations are measured: most that were asked for before never reach the database
WAYS: Final = {"each answered by Django": False, "as under `up`": True}
PAGE_REQUESTS: Final = 40
LANES: Final = 16
LONGEST: Final = 300  # characters of a statement
UNUSED_FROM: Final = 1_000_000  # bytes of an index that are worth a line
SEARCHES: Final = {
    "search: customer email": "customer+email",
    "search: field:email": "field:email",
    "search: orders": "orders",
}


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is, see dataset.Size, and in the small registry; seconds of each row and of the mixed load."""

    subjects: int = 100_000
    versions: int = 10
    fields_max: int = 40
    fields_mean: int = 10
    small: int = 1_000
    listed: int = LISTED
    seconds: float = 3.0
    mixed_seconds: float = 60.0

    def of_data(self, subjects: int) -> dataset.Size:
        """The data set of so many subjects."""
        return dataset.Size(subjects, self.versions, self.fields_max, self.fields_mean)


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table of the section: its title, the names of its columns and its rows."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[Sequence[str]]


# -- the command --------------------------------------------------------------------------------------------------------


def add_arguments(parser: ArgumentParser) -> None:
    """The options on the command line."""
    usual = Size()
    parser.add_argument("--subjects", type=int, default=usual.subjects, help="in three environments together")
    parser.add_argument("--versions", type=int, default=usual.versions, help="of each")
    parser.add_argument("--fields-max", type=int, default=usual.fields_max, help="of the largest")
    parser.add_argument("--fields-mean", type=int, default=usual.fields_mean, help="on average")
    parser.add_argument(
        "--small", type=int, default=usual.small, help="subjects of the registry that it is held against"
    )
    parser.add_argument("--listed", type=int, default=usual.listed, help="subjects of the list that is measured")
    parser.add_argument("--seconds", type=float, default=usual.seconds, help="of each operation")
    parser.add_argument("--mixed-seconds", type=float, default=usual.mixed_seconds, help="of the mixed load")
    parser.add_argument("--no-index", action="store_true", help="leave the search without an index")
    parser.add_argument("--note", default="", help="what else was running, to note on the page")


def size_of(options: Mapping[str, Any]) -> Size:
    """The sizes that the options name. Raises InvalidInput."""
    limits = (
        ("small", 200, 100_000), ("subjects", 400, 10_000_000), ("versions", 2, 1_000), ("listed", 1, 100_000),
        ("seconds", 0.05, 3_600), ("mixed_seconds", 1, 3_600),
    )  # fmt: skip
    for name, least, most in limits:
        if not least <= options[name] <= most:
            raise InvalidInput(f"--{name.replace('_', '-')} {options[name]}: a number from {least} to {most:,}.")
    return Size(**{name: options[name] for name in Size.__dataclass_fields__})


def measure(size: Size, say: Say, *, indexed: bool = True) -> Iterator[ReportTable]:
    """The tables as they are measured.

    Raises PartFailed or PartMissing when the parts can't be run, RemoteUnavailable where an answer isn't the right one.
    """
    sizes = size.of_data(size.small), size.of_data(size.subjects)
    say(
        f"registries of {size.small:,} and of {size.subjects:,} subjects with {size.subjects * size.versions:,} versions"
    )
    with filled(sizes[0], say, indexed=indexed) as small, filled(sizes[1], say, indexed=indexed) as large:
        for way in WAYS:
            yield _compared((small, large), sizes, size, say, way)
        mark(large, say)
        with large.web(answers_before_django=True) as target:
            data = LoadedSet(target, sizes[1])
            yield _pages(target, data, large)
            kinds = _kinds(target, data, large)
            with large.connect() as connection:
                plans, at_first = Plans(large_tables(connection)), counted(connection)
                forget_statements(connection)
                yield _mixed(target, kinds, size.mixed_seconds)
                with explained(connection, large.layout.log("postgres"), plans):
                    _load(target, kinds, max(1.0, size.mixed_seconds / 4), FIRST_SERIAL * 3)
        # The web server has ended, and with it every connection that had counted something for itself.
        yield from _database(large, plans, at_first)


# -- operations ---------------------------------------------------------------------------------------------------------


def _compared(
    databases: tuple[Database, Database], sizes: tuple[dataset.Size, dataset.Size], size: Size, say: Say, way: str
) -> ReportTable:
    """Measure each operation over the small registry and right after it over the large one: how fast the machine is varies."""
    with ExitStack() as stack:
        data = [
            LoadedSet(stack.enter_context(database.web(answers_before_django=WAYS[way])), data_size)
            for database, data_size in zip(databases, sizes, strict=True)
        ]
        say(way)
        measured = [_measured(loaded, size, say) for loaded in data]
        rows = [_pair(old, new) for old, new in zip(*measured, strict=True)]
    title = f"operations over {size.small:,} and over {size.subjects:,} subjects, {way}, goal {GOAL} ×"
    return ReportTable(
        title, ("operation", "connections", "small p50", "large p50", "×", "small CPU ms", "large CPU ms", "×"), rows
    )


def _pair(old: registry.Row, new: registry.Row) -> tuple[str, ...]:
    return (
        new.what, f"{new.connections}", milliseconds(old.measured.p50), milliseconds(new.measured.p50),
        _ratio(old.measured.p50, new.measured.p50), _cpu(old), _cpu(new), _cpu_ratio(old, new),
    )  # fmt: skip


def _measured(data: LoadedSet, size: Size, say: Say) -> Iterator[registry.Row]:
    operations = [*data.operations(), data.listing(size.listed)]
    for row in registry.measure_operations(
        data, operations, registry.Size(seconds=size.seconds, conditions=(registry.CACHED,))
    ):
        say(f"{row.what}, {row.connections} connections: {row.measured.failed or milliseconds(row.measured.p50)}")
        if row.measured.failed:
            raise RemoteUnavailable(f"{row.what}: {row.measured.failed}")
        yield row


def _used(row: registry.Row) -> float | None:
    return None if row.cpu is None else row.cpu + (row.database_cpu or 0.0)


def _cpu(row: registry.Row) -> str:
    used = _used(row)
    return "unknown" if used is None else f"{used * 1000:.3f}"


def _cpu_ratio(old: registry.Row, new: registry.Row) -> str:
    before, after = _used(old), _used(new)
    return _ratio(before, after) if before and after else "unknown"


def _ratio(before: float, after: float) -> str:
    ratio = after / before if before else 0.0
    return f"{ratio:.2f}{' (missed)' if ratio > GOAL else ''}"


# -- pages --------------------------------------------------------------------------------------------------------------


def _pages(target: Target, data: LoadedSet, database: Database) -> ReportTable:
    pages = {name: (address, LIST_GOAL) for name, address in _addresses(data).items()}
    pages |= {name: (f"/ui/search?q={query}", SEARCH_GOAL) for name, query in SEARCHES.items()}
    rows = []
    for name, (address, goal) in pages.items():
        taken = sorted(server_times(target.url, address, database.cookie, PAGE_REQUESTS))
        p95 = percentile(taken, 0.95)
        rows.append(
            (
                name,
                milliseconds(timing_of(taken).median),
                milliseconds(p95),
                f"{milliseconds(goal)}{'' if p95 <= goal else ' (missed)'}",
            )
        )
    return ReportTable("pages, by one connection", ("page", "median", "95 %", "goal"), rows)


def _addresses(data: LoadedSet) -> dict[str, str]:
    addresses = pages_of("dev", dataset.name_of(data.hot[0]), "customer")
    addresses["page: subjects, in the middle"] = f"{addresses['page: subjects']}?offset={data.count // 2 // 50 * 50}"
    addresses["page: subjects, by a word"] = f"{addresses['page: subjects']}?q=customer"
    return {name: address for name, address in addresses.items() if name != "page: search"}


# -- the mixed load -----------------------------------------------------------------------------------------------------


def _kinds(target: Target, data: LoadedSet, database: Database) -> list[Kind]:
    pages = _addresses(data) | {f"page: {name}": f"/ui/search?q={query}" for name, query in SEARCHES.items()}
    return kinds_of(target, [*data.operations(), *data.others()], pages, database.cookie)


def _load(target: Target, kinds: Sequence[Kind], seconds: float, serial: int) -> list[list[float]]:
    """What the answers of each kind took. Raises RemoteUnavailable where one was no success."""
    taken: list[list[float]] = [[] for _ in kinds]
    mix = stream("mix", mixed(kinds), rate=0.0, lanes=LANES)
    for report in lines([target], [mix], seconds=seconds, serial=serial):
        for number, took in report["streams"]["mix"]["taken"]:
            taken[number].append(took)
        for number, _, _, what, text in report["streams"]["mix"]["errors"]:
            raise RemoteUnavailable(f"{target.url}: {kinds[number].name} was answered {what}: {text}")
    return taken


def _mixed(target: Target, kinds: Sequence[Kind], seconds: float) -> ReportTable:
    taken = [sorted(durations) for durations in _load(target, kinds, seconds, FIRST_SERIAL * 2)]
    rows = [
        (kind.name, f"{len(times):,}", milliseconds(percentile(times, 0.5)), milliseconds(percentile(times, 0.95)), milliseconds(percentile(times, 0.99)))
        for kind, times in zip(kinds, taken, strict=True)
    ]  # fmt: skip
    return ReportTable(
        f"a mixed load of {LANES} connections, {seconds:g} s", ("what", "answers", "p50", "p95", "p99"), rows
    )


# -- the database -------------------------------------------------------------------------------------------------------


def _database(database: Database, plans: Plans, before: Any) -> Iterator[ReportTable]:
    with database.connect() as connection:
        after = counted(connection)
        for measure, statements in slowest(connection, plans):
            yield ReportTable(
                f"the slowest {TOP} statements of the mixed load by {measure} time",
                ("mean", "calls", "total", "statement", "plans"),
                [_slow(row) for row in statements],
            )
        yield _scanned(plans, {name: after.scans[name] - before.scans.get(name, 0) for name in plans.large})
        yield ReportTable(
            f"the database has {_size(database_size(connection))}; its largest tables", ("table", "rows", "size", "indexes"),
            [(name, f"{rows:,}", _size(own), _size(more)) for name, rows, own, more in largest_tables(connection)],
        )  # fmt: skip
        found_indexes = indexes(connection, before, after)
        head = ("index", "table", "size", "used")
        yield ReportTable("its largest indexes", head, [_index(row) for row in found_indexes[: 2 * TOP]])
        unused = [row for row in found_indexes if not row.used and not row.is_unique and row.size >= UNUSED_FROM]
        yield ReportTable(
            "indexes that nothing of the mixed load used, but for those that keep rows unique",
            head,
            [_index(row) for row in unused],
        )


def _slow(statement: Statement) -> tuple[str, ...]:
    text = " ".join(statement.text.split())
    text = f"{text[:LONGEST]} …" if len(text) > LONGEST else text
    plans_text = "; or ".join(plan if len(plan) <= LONGEST else f"{plan[:LONGEST]} …" for plan in statement.plans[:3])
    scanned = f" – reads all of {', '.join(statement.scanned)} (missed)" if statement.scanned else ""
    return milliseconds(statement.mean), f"{statement.calls:,}", f"{statement.total:,.2f} s", text, plans_text + scanned


def _scanned(plans: Plans, scans: Mapping[str, int]) -> ReportTable:
    """Large tables that were read whole: how often by the counters, and by which plans."""
    rows = []
    for table in sorted(plans.large):
        ways = [
            plan_text
            for scans_by_plan in plans.of.values()
            for plan_text, scanned in scans_by_plan.items()
            if table in scanned
        ]
        if scans[table] or ways:
            rows.append((table, f"{scans[table]:,} (missed)", "; ".join(way[:LONGEST] for way in ways[:3])))
    return ReportTable(
        "sequential scans of tables above 10,000 rows in the mixed load", ("table", "scans", "plans"), rows
    )


def _index(index: Index) -> tuple[str, ...]:
    return index.name, index.table, _size(index.size), f"{index.used:,}"


def _size(count: int) -> str:
    return f"{count / 2**30:,.1f} GiB" if count >= 2**30 else f"{count / 2**20:,.1f} MiB"


# -- what is shown ------------------------------------------------------------------------------------------------------


def in_columns(part: ReportTable) -> str:
    """A table for a terminal."""
    rows = [part.head, *part.rows]
    widths = [min(44, max(len(row[index]) for row in rows)) for index in range(len(part.head))]
    shown = [" ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(["", f"{part.title}:", *(shown if part.rows else ["none"])])


def section(parts: Sequence[ReportTable], size: Size, note: str = "") -> str:
    """The section of the page of measurements."""
    load_average = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    lines_ = [
        f"Measured on {time.strftime('%Y-%m-%d')} with {machine()}; load average at the end {load_average}."
        f"{' ' + note if note else ''}",
        "",
        f"{size.subjects * size.versions:,} versions over {size.subjects:,} subjects in three environments, each with some "
        f"{size.fields_mean} fields, beside a registry of {size.small:,} subjects of the same kind; both filled by "
        f"`dataset.fill`, behind one web process as under `up`. The operations are those of `bench registry`, over loaded "
        "subjects that are spread over all of them, each over the small one and right after it over the large one. CPU time is the web server's with PostgreSQL's and Valkey's. "
        "Statements are those of `pg_stat_statements`, plans those that `auto_explain` wrote down.",
    ]
    for part in parts:
        lines_ += ["", f"{part.title[0].upper()}{part.title[1:]}:", ""]
        rows = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in part.rows]
        lines_ += [f"| {' | '.join(part.head)} |", f"|{'---|' * len(part.head)}", *rows] if rows else ["None."]
    return "\n".join(lines_)
