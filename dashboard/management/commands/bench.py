"""`manage.py bench SUBJECT`: measures the product on this machine."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.core.management.base import BaseCommand, OutputWrapper

from dashboard.bench import engines, scan, state
from dashboard.bench.page import write_section
from dashboard.bench.timing import machine


@dataclass(frozen=True)
class Subject:
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
    parser.add_argument("--calls", type=int, default=usual.calls, help="at most, a row")
    parser.add_argument("--seconds", type=float, default=usual.seconds, help="at most, a row")
    parser.add_argument("--checks", type=int, default=usual.checks, help="of the memory row")


def _engines(options: Mapping[str, Any], out: OutputWrapper) -> str:
    size = engines.Size(**{name: options[name] for name in engines.Size.__dataclass_fields__})
    rows = list(_printed(engines.measure(size), out))
    return engines.section(rows)


def _printed(rows: Iterable[engines.Row], out: OutputWrapper) -> Iterable[engines.Row]:
    out.write(f"{'':9} {'':44} {'median':>10} {'99 %':>10}  goal")
    for row in rows:
        median, p99, goal, said = engines.cells(row)
        out.write(f"{row.format:9} {row.what:44} {median:>10} {p99:>10}  {goal:18} {said}".rstrip())
        out.flush()
        yield row


def _scan_arguments(parser: ArgumentParser) -> None:
    usual = scan.Size()
    parser.add_argument("--messages", type=int, default=usual.messages, help="of the one topic")
    parser.add_argument("--partitions", type=int, default=usual.partitions, help="of the one topic")
    parser.add_argument("--topics", type=int, default=usual.topics, help="that are mostly idle")
    parser.add_argument("--repeats", type=int, default=usual.repeats, help="the quickest counts")
    parser.add_argument("--note", default="", help="what else was running, for the page")


def _scan(options: Mapping[str, Any], out: OutputWrapper) -> str:
    size = scan.Size(**{name: options[name] for name in scan.Size.__dataclass_fields__})
    rows = []
    for row in scan.measure(size):
        what, seconds, goal, said = scan.cells(row)
        out.write(f"{what:55} {seconds:>10}  {goal:12} {said}".rstrip())
        out.flush()
        rows.append(row)
    return scan.section(rows, size, options["note"])


def _state_arguments(parser: ArgumentParser) -> None:
    usual = state.Size()
    parser.add_argument("--schema-files", type=int, default=usual.schema_files, help="of the one checkpoint")
    parser.add_argument("--variables", type=int, default=usual.variables, help="of the one checkpoint")
    parser.add_argument("--checkpoints", type=int, default=usual.checkpoints, help="that are listed")
    parser.add_argument("--repeats", type=int, default=usual.repeats, help="the median counts")
    parser.add_argument("--note", default="", help="what else was running, for the page")


def _state(options: Mapping[str, Any], out: OutputWrapper) -> str:
    size = state.Size(**{name: options[name] for name in state.Size.__dataclass_fields__})
    rows = []
    for row in state.measure(size):
        what, taken, goal, said = state.cells(row)
        out.write(f"{what:60} {taken:>10}  {goal:12} {said}".rstrip())
        out.flush()
        rows.append(row)
    return state.section(rows, options["note"])


SUBJECTS: Final[Mapping[str, Subject]] = {
    "engines": Subject("reading, checking and comparing schemas", "Engines", _engine_arguments, _engines),
    "state": Subject("the metadata of checkpoints, read without Spark", "State stores", _state_arguments, _state),
    "scan": Subject("scans of topics, from a broker through Spark to findings", "Scans", _scan_arguments, _scan),
}


class Command(BaseCommand):
    """Prints a table; `--write` puts it into the page of measurements."""

    help = "Measure the product on this machine."
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
        if options["write"]:
            write_section(name, SUBJECTS[name].title, text)
