"""`manage.py bench SUBJECT`: measures the product on this machine."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from benchmarks import board, dataset, endurance, engines, growth, mixed, pages, registry, scan, search, stale, state
from benchmarks.measurement import machine, write_section
from registry.errors import SchemadeskError


@dataclass(frozen=True)
class Measurement:
    """What can be measured: its arguments, and the measurement, which prints and gives the section to write."""

    help: str
    title: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Mapping[str, Any], OutputWrapper], str]


def _engine_arguments(parser: ArgumentParser) -> None:
    usual = engines.Size()
    parser.add_argument("--fields", type=int, default=usual.fields, help="of a pair")
    parser.add_argument("--diff-fields", type=int, default=usual.diff_fields, help="of the two that are compared")
    parser.add_argument("--versions", type=int, default=usual.versions, help="of the transitive check")
    parser.add_argument("--calls", type=int, default=usual.calls, help="maximum, per row")
    parser.add_argument("--seconds", type=float, default=usual.seconds, help="maximum, per row")
    parser.add_argument("--checks", type=int, default=usual.checks, help="of the memory row")


def _engines(options: Mapping[str, Any], out: OutputWrapper) -> str:
    size = engines.Size(**{name: options[name] for name in engines.Size.__dataclass_fields__})
    rows = list(_printed(engines.measure(size), out))
    return engines.section(rows)


def _printed(rows: Iterable[engines.Row], out: OutputWrapper) -> Iterable[engines.Row]:
    out.write(f"{'':9} {'':44} {'median':>10} {'99 %':>10}  goal")
    for row in rows:
        median, p99, goal, note = engines.cells(row)
        out.write(f"{row.format:9} {row.what:44} {median:>10} {p99:>10}  {goal:18} {note}".rstrip())
        out.flush()
        yield row


def _scan_arguments(parser: ArgumentParser) -> None:
    usual = scan.Size()
    parser.add_argument("--messages", type=int, default=usual.messages, help="of the one topic")
    parser.add_argument("--partitions", type=int, default=usual.partitions, help="of the one topic")
    parser.add_argument("--topics", type=int, default=usual.topics, help="that are mostly idle")
    parser.add_argument("--repeats", type=int, default=usual.repeats, help="the fastest counts")
    parser.add_argument("--note", default="", help="what else was running, to note on the page")


def _scan(options: Mapping[str, Any], out: OutputWrapper) -> str:
    size = scan.Size(**{name: options[name] for name in scan.Size.__dataclass_fields__})
    rows = []
    for row in scan.measure(size):
        what, seconds, goal, note = scan.cells(row)
        out.write(f"{what:55} {seconds:>10}  {goal:12} {note}".rstrip())
        out.flush()
        rows.append(row)
    return scan.section(rows, size, options["note"])


def _state_arguments(parser: ArgumentParser) -> None:
    usual = state.Size()
    parser.add_argument("--schema-files", type=int, default=usual.schema_files, help="of the one checkpoint")
    parser.add_argument("--variables", type=int, default=usual.variables, help="of the one checkpoint")
    parser.add_argument("--checkpoints", type=int, default=usual.checkpoints, help="that are listed")
    parser.add_argument("--keys", type=int, default=usual.keys, help="of an aggregation's state; 0: not measured")
    parser.add_argument(
        "--variable-keys", type=int, default=usual.variable_keys, help="of each variable; 0: not measured"
    )
    parser.add_argument("--repeats", type=int, default=usual.repeats, help="the median counts")
    parser.add_argument("--note", default="", help="what else was running, to note on the page")


def _state(options: Mapping[str, Any], out: OutputWrapper) -> str:
    size = state.Size(**{name: options[name] for name in state.Size.__dataclass_fields__})
    rows = []
    for row in state.measure(size):
        what, taken, goal, note = state.cells(row)
        out.write(f"{what:60} {taken:>10}  {goal:12} {note}".rstrip())
        out.flush()
        rows.append(row)
    return state.section(rows, options["note"])


def _board_arguments(parser: ArgumentParser) -> None:
    usual = board.Size()
    parser.add_argument("--subjects", type=int, default=usual.subjects, help="in three environments")
    parser.add_argument("--requests", type=int, default=usual.requests, help="in review")
    parser.add_argument("--repeats", type=int, default=usual.repeats, help="maximum, per row")
    parser.add_argument("--note", default="", help="what else was running, to note on the page")


def _board(options: Mapping[str, Any], out: OutputWrapper) -> str:
    size = board.Size(**{name: options[name] for name in board.Size.__dataclass_fields__})
    rows = []
    for row in board.measure(size):
        what, median, p99, goal, note = board.cells(row)
        out.write(f"{what:60} {median:>10} {p99:>10}  {goal:18} {note}".rstrip())
        out.flush()
        rows.append(row)
    return board.section(rows, size, options["note"])


def _fill_arguments(parser: ArgumentParser) -> None:
    usual = dataset.Size()
    parser.add_argument("--subjects", type=int, default=usual.subjects, help="in three environments together")
    parser.add_argument("--versions", type=int, default=usual.versions, help="of each")
    parser.add_argument("--fields-max", type=int, default=usual.fields_max, help="of the largest")
    parser.add_argument("--fields-mean", type=int, default=usual.fields_mean, help="on average")
    parser.add_argument("--no-index", action="store_true", help="let the workers build the index")


def _fill(options: Mapping[str, Any], out: OutputWrapper) -> str:
    size = dataset.Size(**{name: options[name] for name in dataset.Size.__dataclass_fields__})
    try:
        dataset.fill(size, out.write, indexed=not options["no_index"])
    except SchemadeskError as error:
        raise CommandError(error.message) from error
    return ""


def _search_arguments(parser: ArgumentParser) -> None:
    usual = search.Size()
    parser.add_argument("--subjects", type=int, default=usual.subjects, help="in three environments together")
    parser.add_argument("--versions", type=int, default=usual.versions, help="of each")
    parser.add_argument("--fields-max", type=int, default=usual.fields_max, help="of the largest")
    parser.add_argument("--fields-mean", type=int, default=usual.fields_mean, help="on average")
    parser.add_argument("--repeats", type=int, default=usual.repeats, help="of each query")
    parser.add_argument("--here", action="store_true", help="in the connected database, which `bench fill` has filled")
    parser.add_argument("--note", default="", help="what else was running, to note on the page")


def _search(options: Mapping[str, Any], out: OutputWrapper) -> str:
    rows = []
    for row in search.measure(search.size_of(options), out.write, here=options["here"]):
        what, p50, p95, goal, note = search.cells(row)
        out.write(f"{what:55} {p50:>10} {p95:>10}  {goal:18} {note}".rstrip())
        out.flush()
        rows.append(row)
    return search.section(rows, options["note"])


def _pages(options: Mapping[str, Any], out: OutputWrapper) -> str:
    rows = []
    try:
        out.write(pages.in_columns(pages.HEAD))
        for row in pages.measure(options, out.write):
            out.write(pages.in_columns(pages.cells(row)))
            out.flush()
            rows.append(row)
    except SchemadeskError as error:
        raise CommandError(error.message) from error
    if failed := [row for row in rows if row.failed]:
        raise CommandError(f"{len(failed)} of {len(rows)} pages failed; nothing written.")
    return pages.section(rows, pages.size_of(options), options["note"])


def _endurance(options: Mapping[str, Any], out: OutputWrapper) -> str:
    rows = []
    try:
        size = endurance.size_of(options)
        out.write(endurance.in_columns(endurance.HEAD))
        for row in endurance.measure(size, out.write):
            out.write(endurance.in_columns(endurance.cells(row)))
            out.flush()
            rows.append(row)
    except SchemadeskError as error:
        raise CommandError(error.message) from error
    return endurance.section(rows, size, options["note"])


def _growth(options: Mapping[str, Any], out: OutputWrapper) -> str:
    parts = []
    try:
        size = growth.size_of(options)
        for part in growth.measure(size, out.write, indexed=not options["no_index"]):
            out.write(growth.in_columns(part))
            out.flush()
            parts.append(part)
    except SchemadeskError as error:
        raise CommandError(error.message) from error
    return growth.section(parts, size, options["note"])


def _stale(options: Mapping[str, Any], out: OutputWrapper) -> str:
    rows = []
    try:
        size = stale.size_of(options)
        out.write(stale.in_columns(stale.HEAD))
        for row in stale.measure(size, out.write):
            out.write(stale.in_columns(stale.cells(row)))
            out.flush()
            rows.append(row)
    except SchemadeskError as error:
        raise CommandError(error.message) from error
    if wrong := sum(row.counts["stale"] for row in rows):
        raise CommandError(f"{wrong} reads were stale; nothing written.")
    return stale.section(rows, options["note"])


def _mixed(options: Mapping[str, Any], out: OutputWrapper) -> str:
    rows = []
    try:
        size = mixed.size_of(options)
        for row in mixed.measure(size, out.write):
            out.write("{:24} {:20} {:>9} {:>9} {:>9}  {}".format(*mixed.cells(row)).rstrip())
            out.flush()
            rows.append(row)
    except SchemadeskError as error:
        raise CommandError(error.message) from error
    return mixed.section(rows, size, options["note"])


_WIDTHS: Final = (16, 20, 11, 11, 9, 10, 10, 9, 10, 15)


def _registry(options: Mapping[str, Any], out: OutputWrapper) -> str:
    rows = []
    try:
        size = registry.size_of(options)
        with registry.targets_of(options) as targets:
            out.write(_in_columns(registry.HEAD))
            for row in registry.measure(targets, size, out.write):
                out.write(_in_columns(registry.cells(row)))
                out.flush()
                rows.append(row)
    except SchemadeskError as error:
        raise CommandError(error.message) from error
    if failed := [row for row in rows if row.measured.failed]:
        raise CommandError(f"{len(failed)} of {len(rows)} rows failed; nothing written.")
    return registry.section(rows, size, options["note"])


def _in_columns(cells: Sequence[str]) -> str:
    widths = (*_WIDTHS, *(0 for _ in cells))
    return " ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=False)).rstrip()


SUBJECTS: Final[Mapping[str, Measurement]] = {
    "engines": Measurement("reading, checking and comparing schemas", "Engines", _engine_arguments, _engines),
    "board": Measurement("the board, the inbox and can-promote at scale", "Board", _board_arguments, _board),
    "fill": Measurement(
        "nothing; fills an empty database with a large data set, as its owner", "", _fill_arguments, _fill
    ),
    "search": Measurement("the search over 100,000 subjects", "Search", _search_arguments, _search),
    "registry": Measurement(
        "a registry's API under load, Schemadesk's or another's", "Registry", registry.add_arguments, _registry
    ),
    "mixed": Measurement(
        "the API under a mixed load, alone and beside pages", "Mixed load", mixed.add_arguments, _mixed
    ),
    "state": Measurement(
        "checkpoints: their metadata without Spark, their rows with it", "State stores", _state_arguments, _state
    ),
    "endurance": Measurement(
        "half an hour of mixed load, with restarts and a kill", "Endurance", endurance.add_arguments, _endurance
    ),
    "stale": Measurement(
        "whether any read is stale: two hosts, writers, readers and faults", "Stale reads", stale.add_arguments, _stale
    ),
    "growth": Measurement("a million versions beside a small registry", "Growth", growth.add_arguments, _growth),
    "pages": Measurement("every page in a browser, over 100,000 subjects", "Pages", pages.add_arguments, _pages),
    "scan": Measurement("scans of topics, from a broker through Spark to findings", "Scans", _scan_arguments, _scan),
}


class Command(BaseCommand):
    """Prints a table; `--write` puts it into the page of measurements."""

    help = "Measure Schemadesk's performance on this machine."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """A sub-command for each subject."""
        subjects = parser.add_subparsers(dest="subject", required=True, metavar="SUBJECT")
        for name, subject in SUBJECTS.items():
            own = subjects.add_parser(name, help=subject.help)
            own.add_argument("--write", action="store_true", help="update docs/reference/benchmarks.md")
            subject.add_arguments(own)

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure, print, and write if asked to."""
        name = options["subject"]
        self.stdout.write(machine())
        text = SUBJECTS[name].run(options, self.stdout)
        if options["write"] and text:
            write_section(name, SUBJECTS[name].title, text)
