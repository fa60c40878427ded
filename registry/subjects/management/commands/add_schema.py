"""`manage.py add_schema SUBJECT FILE`: add a schema, or with `--evolve` its next version."""

from __future__ import annotations

import getpass
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from registry.access.roles import system_actor
from registry.errors import IncompatibleSchema, InvalidSchema, PolicyViolated, SchemadeskError
from registry.formats import DEFAULT_FORMAT, FORMATS, format_of_suffix
from registry.formats.rendering import report_text
from registry.subjects.selectors import list_subjects
from registry.subjects.services import register_version
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject


class Command(BaseCommand):
    """The command; checks the file against the versions that the subject's level requires."""

    help = "Add a schema from a file. With --evolve, add it as the next version of an existing subject."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add SUBJECT, FILE and the options."""
        parser.add_argument("subject")
        parser.add_argument("file", type=Path)
        parser.add_argument("--evolve", action="store_true", help="add the next version of an existing subject")
        parser.add_argument(
            "--force", metavar="REASON", default="", help="override the level; the reason is recorded in the audit log"
        )
        parser.add_argument("--registry", default="", help="default: the default registry")
        parser.add_argument(
            "--type", choices=sorted(FORMATS), help=f"the format (default: by the file's suffix, {DEFAULT_FORMAT})"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print version and schema id, or every reason of a refusal."""
        try:
            subject = parse_subject(options["subject"])
            self._refuse_surprise(subject, options["registry"], evolve=options["evolve"])
            done = register_version(
                registry=options["registry"],
                subject=subject,
                text=options["file"].read_text(encoding="utf-8"),
                schema_type=options["type"] or format_of_suffix(options["file"].suffix),
                force=options["force"],
                by=system_actor(getpass.getuser(), "command"),
            )
        except IncompatibleSchema as error:
            raise CommandError(report_text(error.report)) from error
        except PolicyViolated as error:
            raise CommandError("\n".join([error.message, *error.report.messages()])) from error
        except InvalidSchema as error:
            raise CommandError(f"{options['file']}: {error.placed}") from error
        except (SchemadeskError, OSError, UnicodeDecodeError) as error:
            raise CommandError(str(error)) from error
        state = "added" if done.created else "already existed"
        self.stdout.write(f"{subject.qualified} version {done.version}, schema id {done.schema_id}, {state}")

    def _refuse_surprise(self, subject: SubjectName, registry: str, *, evolve: bool) -> None:
        there = subject.qualified in list_subjects(get_registry(registry), context=subject.context)
        if there and not evolve:
            raise CommandError(f"{subject.qualified} already exists. Add its next version with --evolve.")
        if evolve and not there:
            raise CommandError(f"{subject.qualified} doesn't exist yet. Add it without --evolve.")
