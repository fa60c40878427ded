"""`manage.py check_state`: what would a restart do to a streaming query's state? For a terminal and for CI."""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from registry.checkpoints.filesystem import LOCAL
from registry.checkpoints.plans import StateCheck, StatePlan, check_markdown, check_state, check_text, parse_plan
from registry.checkpoints.plans.python_source import parse_python
from registry.checkpoints.plans.queries import read_description
from registry.errors import InvalidInput, SchemadeskError
from registry.streams.services import FIELDS, CheckpointLocation, checked_store, checkpoint_location, location_of

NOT_FINE, UNUSABLE = 1, 2
# How file: and s3: addresses begin; a folder whose name has a colon is written ./a:b.
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
MAX_PLAN: Final = 4 * 1024 * 1024  # bytes
FORMS: Final[Mapping[str, Callable[[StateCheck], str]]] = {
    "text": check_text,
    "markdown": check_markdown,
    "json": lambda check: json.dumps(check.to_dict(), indent=2, ensure_ascii=False),
}


class Command(BaseCommand):
    """The command: checks a plan of state variables against a checkpoint. It starts, stores and changes nothing."""

    help = (
        "Check what a restart with planned state schemas would do to a Spark checkpoint. Exit code 0: safe; 1: fails "
        "at start or later, silently wrong, or loses data; 2: not checked, fully or in part."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the checkpoint, the plan, and the format of the report."""
        parser.add_argument("checkpoint", help="the folder or address that the query uses as its checkpointLocation")
        parser.add_argument(
            "plan",
            help="a plan or the description of the next version by schemadesk_spark (.json), the application's Python "
            'file (.py), or "-": JSON on stdin',
        )
        parser.add_argument("--running", help="the description of the version that wrote the checkpoint (.json)")
        parser.add_argument("--processor", default="", help="the StatefulProcessor, if the Python file has several")
        parser.add_argument("--operator", type=int, help="the stateful operator, if the query has several")
        parser.add_argument(
            "--set", action="append", default=[], metavar="NAME=VALUE", help="a Spark setting for the next start"
        )
        parser.add_argument("--endpoint", default="", help="the endpoint of an s3:// address, https://HOST[:PORT]")
        parser.add_argument("--region", default="", help="the endpoint's region (default: us-east-1)")
        parser.add_argument(
            "--access-key-id", default="", help="the access key id; without it, the bucket must be public"
        )
        parser.add_argument(
            "--secret", default="", help="the name of the secret that holds the key, never the key itself"
        )
        parser.add_argument(
            "--script", metavar="FILE", help="write the script that carries the state over to a new file"
        )
        parser.add_argument("--format", choices=list(FORMS), default="text", help="output format")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the report and end with its exit code."""
        try:
            plan = _plan(options)
            location = _place(options)
            report = check_state(location.path, location.roots, plan, store=location.store)
        except (SchemadeskError, OSError, UnicodeDecodeError, ValueError) as error:
            message = error.placed if isinstance(error, SchemadeskError) else str(error)
            raise CommandError(message, returncode=UNUSABLE) from error
        self.stdout.write(FORMS[options["format"]](report))
        if options["script"] and report.script:
            _write_script(report.script, options["script"])
        elif options["script"]:
            self.stderr.write("No script is written: see what to do in the report.")
        if not report.is_safe:
            sys.exit(UNUSABLE if report.verdict == "not checked" else NOT_FINE)


def _write_script(script: str, file_name: str) -> None:
    try:
        with Path(file_name).open("x", encoding="utf-8") as file:
            file.write(script)
    except OSError as error:
        raise CommandError(f"The script can't be written: {error}", returncode=UNUSABLE) from error


def _place(options: dict[str, Any]) -> CheckpointLocation:
    """Return where the checkpoint is.

    It is a root of its own, since a person who can start commands can read it anyway; links that lead out of it still
    aren't followed. Protocols and endpoints are checked as everywhere.
    """
    checkpoint = options["checkpoint"]
    is_address = _ADDRESS.match(checkpoint) is not None
    path = checkpoint if is_address else str(Path(checkpoint).absolute())
    store = {name: options[name] for name in FIELDS if options[name]}
    location = location_of(path)
    root = location.text if location.protocol != LOCAL else str(Path(location.path).resolve())
    if store and "endpoint" not in store:
        raise InvalidInput(f"--{min(store).replace('_', '-')} applies to an object store. Give its --endpoint too.")
    return checkpoint_location(path, checked_store(store) if store else None, also=(root,))


def _plan(options: dict[str, Any]) -> StatePlan:
    file_name = options["plan"]
    text = _read(file_name)
    plan = parse_python(text, options["processor"]) if file_name.endswith(".py") else parse_plan(text)
    set_ = dict(_setting(setting) for setting in options["set"])
    if options["running"]:
        plan = replace(plan, running=read_description(json.loads(_read(options["running"]))))
    number = plan.operator if options["operator"] is None else options["operator"]
    return replace(plan, settings={**plan.settings, **set_}, operator=number)


def _read(file_name: str) -> str:
    if file_name == "-":
        text = sys.stdin.read(MAX_PLAN + 1)
    else:
        with Path(file_name).open(encoding="utf-8") as file:
            text = file.read(MAX_PLAN + 1)
    if len(text) > MAX_PLAN:
        raise InvalidInput(f"The plan has more than {MAX_PLAN:,} characters.")
    return text


def _setting(assignment: str) -> tuple[str, str]:
    name, sign, value = assignment.partition("=")
    if not (name.strip() and sign):
        raise InvalidInput(f"--set must be NAME=VALUE, not {assignment[:80]!r}.")
    return name.strip(), value.strip()
