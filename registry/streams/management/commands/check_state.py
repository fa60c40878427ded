"""`manage.py check_state`: what would a restart do to a streaming query's state? For a terminal and for CI."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from registry.checkpoints.plans import StateCheck, StatePlan, check_markdown, check_state, check_text, parse_plan
from registry.checkpoints.plans.python_source import parse_python
from registry.errors import InvalidInput, SchemadeskError

NOT_FINE, UNUSABLE = 1, 2
MAX_PLAN: Final = 4 * 1024 * 1024  # bytes
FORMS: Final[Mapping[str, Callable[[StateCheck], str]]] = {
    "text": check_text,
    "markdown": check_markdown,
    "json": lambda check: json.dumps(check.to_dict(), indent=2, ensure_ascii=False),
}


class Command(BaseCommand):
    """Checks a plan of state variables against a checkpoint. Nothing is started, stored or changed."""

    help = (
        "Say what a restart with planned state schemas does to a Spark checkpoint."
        " Exit code 1: refused, loses data or fails later, 2: can't be checked."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The checkpoint, the plan, and how the report is printed."""
        parser.add_argument("checkpoint", help="the folder that the query has as its checkpointLocation")
        parser.add_argument("plan", help='a plan (.json), the application\'s Python file (.py), or "-": JSON on stdin')
        parser.add_argument("--processor", default="", help="the StatefulProcessor of a Python file with several")
        parser.add_argument("--operator", type=int, help="the stateful operator, where the query has several")
        parser.add_argument(
            "--set", action="append", default=[], metavar="NAME=VALUE", help="a Spark setting of the next start"
        )
        parser.add_argument("--format", choices=list(FORMS), default="text", help="how the report is printed")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the report and end with its exit code."""
        try:
            # Who may start commands can read the folder anyway; links that lead out of it are still not followed.
            roots = [*settings.CHECKPOINT_ROOTS, Path(options["checkpoint"].removeprefix("file:")).resolve()]
            path = options["checkpoint"]
            found = check_state(path if path.startswith("file:") else str(Path(path).absolute()), roots, _plan(options))
        except (SchemadeskError, OSError, UnicodeDecodeError, ValueError) as error:
            said = error.placed if isinstance(error, SchemadeskError) else str(error)
            raise CommandError(said, returncode=UNUSABLE) from error
        self.stdout.write(FORMS[options["format"]](found))
        if not found.is_fine:
            sys.exit(NOT_FINE)


def _plan(options: dict[str, Any]) -> StatePlan:
    given = options["plan"]
    text = _read(given)
    plan = parse_python(text, options["processor"]) if given.endswith(".py") else parse_plan(text)
    set_ = dict(_setting(each) for each in options["set"])
    number = plan.operator if options["operator"] is None else options["operator"]
    return replace(plan, settings={**plan.settings, **set_}, operator=number)


def _read(given: str) -> str:
    if given == "-":
        text = sys.stdin.read(MAX_PLAN + 1)
    else:
        with Path(given).open(encoding="utf-8") as file:
            text = file.read(MAX_PLAN + 1)
    if len(text) > MAX_PLAN:
        raise InvalidInput(f"The plan has more than {MAX_PLAN:,} characters.")
    return text


def _setting(given: str) -> tuple[str, str]:
    name, sign, value = given.partition("=")
    if not (name.strip() and sign):
        raise InvalidInput(f"--set takes NAME=VALUE, not {given[:80]!r}.")
    return name.strip(), value.strip()
