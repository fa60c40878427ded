"""`manage.py check_compatibility FILE`: would a schema be accepted? For a terminal and for CI."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from registry.errors import InvalidSchema, SchemadeskError
from registry.formats import FORMATS
from registry.formats.compatibility import LEVELS, check
from registry.formats.report import Report
from registry.subjects.names import parse_subject
from registry.subjects.selectors import report_proposal
from registry.subjects.selectors.parsed import parse_schema
from registry.subjects.selectors.places import get_registry

INCOMPATIBLE, UNUSABLE = 1, 2


class Command(BaseCommand):
    """Checks a file against a subject's versions, or against other files, the oldest first."""

    help = (
        "Check a schema file against a subject or against other files. Exit code 1: incompatible, 2: can't be checked."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """FILE, and what it is held against."""
        parser.add_argument("file", type=Path, help="the new schema")
        held = parser.add_mutually_exclusive_group(required=True)
        held.add_argument("--subject", help="hold it against this subject's versions, under its level")
        held.add_argument("--against", type=Path, nargs="+", metavar="OLD", help="hold it against these, oldest first")
        parser.add_argument("--registry", default="", help="where the subject is (default: the default registry)")
        parser.add_argument(
            "--level", choices=list(LEVELS), default="BACKWARD", help="for --against (default: BACKWARD)"
        )
        parser.add_argument("--type", choices=sorted(FORMATS), default="AVRO", help="the format (default: AVRO)")
        parser.add_argument("--json", action="store_true", help="print the report as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the report and end with its exit code."""
        try:
            report = self._report(options)
        except (SchemadeskError, OSError, UnicodeDecodeError) as error:
            raise CommandError(_said(error), returncode=UNUSABLE) from error
        self.stdout.write(json.dumps(report.to_dict(), indent=2) if options["json"] else report.to_text())
        if not report.is_compatible:
            sys.exit(INCOMPATIBLE)

    def _report(self, options: dict[str, Any]) -> Report:
        text, kind = options["file"].read_text(encoding="utf-8"), options["type"]
        if options["subject"]:
            registry, subject = get_registry(options["registry"]), parse_subject(options["subject"])
            return report_proposal(registry, subject, text=text, schema_type=kind).report
        new = parse_schema(kind, text)
        files = [path.read_text(encoding="utf-8") for path in options["against"]]
        history = [(number, parse_schema(kind, old)) for number, old in enumerate(files, start=1)]
        return check(FORMATS[kind], new, history, options["level"])


def _said(error: Exception) -> str:
    if isinstance(error, InvalidSchema) and error.line is not None:
        return f"{error.message} (line {error.line}, column {error.column})"
    return str(error)
