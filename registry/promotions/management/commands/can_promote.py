"""`manage.py can_promote SUBJECT FROM TO`: whether a version can be promoted, for a terminal and for CI."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from registry.access.roles import system_actor
from registry.errors import SchemadeskError
from registry.promotions.board.readiness import NEEDS_APPROVAL, NO, YES, Readiness, can_promote
from registry.promotions.hook_points import JobRelease
from registry.subjects.versions.qualified_names import parse_subject

EXIT: Final[Mapping[str, int]] = {YES: 0, NEEDS_APPROVAL: 1, NO: 2}
#: no verdict: an unknown name, no database
FAILED: Final = 3
#: the command line is wrong
USAGE: Final = 64


class Command(BaseCommand):
    """Prints the verdict with its reasons, as text or JSON."""

    help = (
        "Check whether a subject's version can be promoted from one environment to another. Exit code 0:"
        " yes, 1: needs approval, 2: no, 3: unknown, 64: wrong command line."
    )
    requires_system_checks: list[str] = []

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Create the parser with `--version` for the subject's version, instead of Django's own."""
        return super().create_parser(prog_name, subcommand, conflict_handler="resolve", **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add SUBJECT, FROM, TO and the options."""
        parser.add_argument("subject", metavar="SUBJECT")
        parser.add_argument("source", metavar="FROM", help="the source environment")
        parser.add_argument("target", metavar="TO", help="the target environment")
        parser.add_argument("--version", dest="number", metavar="NUMBER", default="latest", help="default: the latest")
        parser.add_argument(
            "--query",
            dest="queries",
            metavar="NAME",
            action="append",
            default=[],
            help="a streaming query in TO that is released too: its checkpoint's folder name or path, or Spark's id",
        )
        parser.add_argument(
            "--description",
            dest="descriptions",
            metavar="FILE",
            action="append",
            default=[],
            help="what schemadesk_spark describes of the next release of that query, or a plan; one for each --query",
        )
        parser.add_argument("--json", action="store_true")

    def run_from_argv(self, argv: list[str]) -> None:
        """Run with a separate exit code for a wrong command line, because argparse's means "no" here."""
        self._called_from_command_line = True
        try:
            self.create_parser(argv[0], argv[1]).parse_args(argv[2:])
        except SystemExit as error:
            raise SystemExit(USAGE if error.code else 0) from None
        super().run_from_argv(argv)

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the readiness, and exit with the code of the verdict."""
        try:
            readiness = can_promote(
                releases=_releases(options["queries"], options["descriptions"]),
                subject=parse_subject(options["subject"]),
                source=options["source"],
                target=options["target"],
                version=options["number"],
                by=system_actor("can_promote", channel="command"),
            )
        except SchemadeskError as error:
            raise CommandError(error.message, returncode=FAILED) from error
        except DatabaseError as error:
            cure = "Name the folder of a running `up` with --data DIR, or the database with DATABASE_URL."
            raise CommandError(
                f"The database can't be read: {str(error).strip()}\n{cure}", returncode=FAILED
            ) from error
        if options["json"]:
            self.stdout.write(json.dumps(readiness.to_dict(), indent=2, ensure_ascii=False))
        else:
            for line in lines_of(readiness):
                self.stdout.write(line)
        if EXIT[readiness.verdict]:
            raise SystemExit(EXIT[readiness.verdict])


def _releases(queries: Sequence[str], files: Sequence[str]) -> list[JobRelease]:
    if len(queries) != len(files):
        raise CommandError("Give one --description FILE for each --query NAME.", returncode=USAGE)
    return [JobRelease(query, _read(file)) for query, file in zip(queries, files, strict=True)]


def _read(file: str) -> Any:
    try:
        return json.loads(Path(file).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CommandError(f"{file} can't be read as a description: {error}", returncode=FAILED) from error


def lines_of(readiness: Readiness) -> Iterator[str]:
    """Return the text for a terminal."""
    yield f"{readiness.subject} version {readiness.version}, {readiness.source} → {readiness.target}: {readiness.verdict}"
    for reason in readiness.reasons:
        yield f"  {reason.code}: {reason.sentence}"
        if reason.cure:
            yield f"    {reason.cure}"
