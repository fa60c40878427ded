"""`manage.py import_registry --from URL|FILE`: import another registry, or restore an export."""

from __future__ import annotations

import getpass
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from registry.access.egress import parse_connection
from registry.access.roles import Actor, system_actor
from registry.errors import RegistryNotFound, SchemadeskError
from registry.subjects.import_export.export_file import read_snapshot
from registry.subjects.import_export.import_plan import describe, diff_snapshots
from registry.subjects.import_export.import_versions import ImportResult
from registry.subjects.import_export.registry_import import DEFAULTS, import_snapshot
from registry.subjects.import_export.snapshot import Problem, Snapshot, contents_of
from registry.subjects.remote.remote_client import RemoteRegistry
from registry.subjects.services import ensure_registry
from registry.subjects.versions.lookup import get_registry

PROGRESS_SECONDS = 1.0
DIFFERENT = 1
FAILED = 2


class Command(BaseCommand):
    """The command; running it again continues and changes nothing that exists. Progress goes to standard error."""

    help = (
        "Copy another registry, or an export file, with ids, versions, references, deletions, configs and modes. "
        "Exit code 0: both are now the same; 1: something differs or couldn't be imported; 2: it could not be "
        "read."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the source, and the registry to import into."""
        parser.add_argument("--from", dest="source", required=True, metavar="URL|FILE")
        parser.add_argument(
            "--into", dest="registry", default="", help="created if it doesn't exist; default: the default registry"
        )
        parser.add_argument(
            "--user", default="", help="user name for the sign-in; without it, the secret is a bearer token"
        )
        parser.add_argument(
            "--secret", default="", metavar="NAME", help="the name of the secret, never the secret itself"
        )
        parser.add_argument("--diff", action="store_true", help="show the differences and change nothing")
        parser.add_argument(
            "--only-missing", action="store_true", help="add what is missing, change nothing that exists"
        )
        parser.add_argument("--keep-going", action="store_true", help="continue with the rest after a problem")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print progress, what was done, and every problem."""
        by = system_actor(getpass.getuser(), "command")
        self._next_line = 0.0
        try:
            snapshot, problems = self._read(options)
            if options["diff"]:
                self._diff(options["registry"], snapshot, problems)
            else:
                self._bring(options, snapshot, problems, by)
        except (SchemadeskError, OSError) as error:
            raise CommandError(getattr(error, "message", str(error)), returncode=FAILED) from error

    def _read(self, options: dict[str, Any]) -> tuple[Snapshot, list[Problem]]:
        source = options["source"]
        if "://" not in source:
            with Path(source).open("rb") as file:
                return read_snapshot(file, source), []
        connection = parse_connection(source, user=options["user"], secret=options["secret"])
        remote = RemoteRegistry(connection, on_progress=lambda count, what: self._progress(f"{count} {what}"))
        return remote.read()

    def _diff(self, registry: str, snapshot: Snapshot, problems: list[Problem]) -> None:
        try:
            here = contents_of(get_registry(registry))
        except RegistryNotFound:
            here = Snapshot((), {}, {}, {})
        move = diff_snapshots(snapshot, here, defaults=DEFAULTS)
        for line in (*describe(move, here), *(f"! {problem}" for problem in problems)):
            self.stdout.write(line)
        self.stdout.write(f"{move.same} versions are the same")
        if not move.is_empty or move.gone or problems:
            sys.exit(DIFFERENT)

    def _bring(self, options: dict[str, Any], snapshot: Snapshot, problems: list[Problem], by: Actor) -> None:
        keep_going = options["keep_going"] or options["only_missing"]
        if problems and not keep_going:
            self._end(ImportResult(problems=tuple(problems)), keep_going=False)
        if options["registry"]:
            ensure_registry(name=options["registry"], by=by)
        done = import_snapshot(
            registry=options["registry"],
            snapshot=snapshot,
            by=by,
            keep_going=keep_going,
            only_missing=options["only_missing"],
            on_progress=lambda brought, total, failed: self._progress(
                f"{brought} of {total} versions, {failed} problems"
            ),
        )
        self._end(done + ImportResult(problems=tuple(problems)), keep_going=keep_going)

    def _progress(self, text: str) -> None:
        if time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + PROGRESS_SECONDS
            self.stderr.write(text, self.style.NOTICE)
            self.stderr.flush()

    def _end(self, done: ImportResult, *, keep_going: bool) -> None:
        for problem in done.problems:
            self.stderr.write(f"! {problem}")
        self.stdout.write(
            f"{done.added} versions added, {done.changed} changed, {done.same} unchanged, {len(done.problems)} problems"
        )
        if done.problems:
            if not keep_going:
                self.stderr.write(
                    "Stopped. Start it again to continue. Use --keep-going to skip what can't be imported."
                )
            sys.exit(DIFFERENT)
