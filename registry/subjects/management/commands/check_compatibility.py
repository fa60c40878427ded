"""`manage.py check_compatibility`: would a schema be accepted? For a terminal and for CI."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from registry.access.roles import system_actor
from registry.errors import InvalidInput, InvalidSchema, SchemadeskError, SubjectNotFound, VersionNotFound
from registry.formats import DEFAULT_FORMAT, FORMATS, format_of_suffix
from registry.formats.assessment import Assessment
from registry.formats.base import Reference, ResolvedReference
from registry.formats.ci_findings import assessment_junit, assessment_sarif, syntax_junit, syntax_sarif
from registry.formats.compatibility import LEVELS, level_named
from registry.formats.rendering import assessment_markdown, assessment_text
from registry.formats.report import PROFILES
from registry.subjects.engine import schema_engine
from registry.subjects.models import Registry
from registry.subjects.selectors import get_version, report_proposal
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

INCOMPATIBLE, UNUSABLE = 1, 2
NEWEST: Final = -1
FORMS: Final[Mapping[str, Callable[[Assessment], str]]] = {
    "text": assessment_text,
    "markdown": assessment_markdown,
    "json": lambda assessment: json.dumps(assessment.to_dict(), indent=2, ensure_ascii=False),
}
#: forms that name the file and report a syntax error in their own format
FILE_FORMS: Final[Mapping[str, tuple[Callable[..., str], Callable[..., str]]]] = {
    "sarif": (assessment_sarif, syntax_sarif),
    "junit": (assessment_junit, syntax_junit),
}


class Command(BaseCommand):
    """The command; checks a file against a subject's versions or other files, or many pairs, one per line."""

    help = (
        "Check a schema file against a subject or against other files, or JSON lines of pairs."
        " Exit code 1: incompatible, 2: can't be checked."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add FILE, and what it is compared with."""
        parser.add_argument("file", type=Path, nargs="?", help="the new schema")
        group = parser.add_mutually_exclusive_group(required=True)
        group.add_argument("--subject", help="check it against the versions of this subject, under its level")
        group.add_argument(
            "--against", type=Path, nargs="+", metavar="OLD", help="check it against these schemas, oldest first"
        )
        group.add_argument(
            "--pairs",
            metavar="FILE",
            help='check JSON lines {"new": TEXT, "old": [TEXT, …], "type": …, "level": …}; "-" reads standard input',
        )
        parser.add_argument("--registry", default="", help="registry of the subject (default: the default registry)")
        parser.add_argument(
            "--level", choices=list(LEVELS), default="BACKWARD", help="for --against and --pairs (default: BACKWARD)"
        )
        parser.add_argument(
            "--profile", choices=PROFILES, help="whose verdict counts (default: the subject's, else confluent)"
        )
        parser.add_argument(
            "--type", choices=sorted(FORMATS), help=f"the format (default: by the file's suffix, {DEFAULT_FORMAT})"
        )
        parser.add_argument(
            "--reference",
            action="append",
            default=[],
            metavar="NAME=FILE",
            help="file for the name of a reference; with --subject NAME=SUBJECT or NAME=SUBJECT@VERSION"
            " (default: the references of its newest version)",
        )
        parser.add_argument(
            "--format", choices=[*FORMS, *FILE_FORMS], default="text", help="output format of the report"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the report and end with its exit code."""
        try:
            code = self._pairs(options) if options["pairs"] else self._file(options)
        except (SchemadeskError, OSError, UnicodeDecodeError) as error:
            raise CommandError(_error_text(error), returncode=UNUSABLE) from error
        if code:
            sys.exit(code)

    def _file(self, options: dict[str, Any]) -> int:
        if options["file"] is None:
            raise InvalidInput("Give the file with the new schema.")
        form = options["format"]
        if form in FORMS:
            assessment = self._assessment(options)
            self.stdout.write(FORMS[form](assessment))
            return 0 if assessment.is_compatible else INCOMPATIBLE
        whole, unread = FILE_FORMS[form]
        about = {"subject": options["subject"] or "", "file": options["file"].as_posix()}
        try:
            assessment = self._assessment(options)
        except InvalidSchema as error:
            self.stdout.write(unread(error, **about))
            raise
        self.stdout.write(whole(assessment, **about))
        return 0 if assessment.is_compatible else INCOMPATIBLE

    def _assessment(self, options: dict[str, Any]) -> Assessment:
        text = options["file"].read_text(encoding="utf-8")
        kind = options["type"] or format_of_suffix(options["file"].suffix)
        if options["subject"]:
            registry, subject = get_registry(options["registry"]), parse_subject(options["subject"])
            return report_proposal(
                registry,
                subject,
                text=text,
                schema_type=kind,
                by=system_actor("check_compatibility", channel="command"),
                references=_registered_references(registry, subject, options["reference"]),
                profile=options["profile"],
            ).assessment
        references = tuple(_reference(option) for option in options["reference"])
        new = schema_engine.parse(kind, text, references)
        files = [path.read_text(encoding="utf-8") for path in options["against"]]
        history = [(number, schema_engine.parse(kind, old, references)) for number, old in enumerate(files, start=1)]
        return schema_engine.assess(
            new, history, options["level"], references=references, profile=options["profile"] or "confluent"
        )

    def _pairs(self, options: dict[str, Any]) -> int:
        defaults = {
            "type": options["type"] or DEFAULT_FORMAT,
            "level": options["level"],
            "profile": options["profile"] or "confluent",
        }
        failed = unusable = False
        path = options["pairs"]
        with nullcontext(sys.stdin) if path == "-" else Path(path).open(encoding="utf-8") as source:
            for verdict in check_pairs(source, defaults):
                unusable |= verdict["is_compatible"] is None
                failed |= verdict["is_compatible"] is False
                self.stdout.write(json.dumps(verdict, ensure_ascii=False))
        return UNUSABLE if unusable else INCOMPATIBLE if failed else 0


def _reference(option: str) -> ResolvedReference:
    name, sign, path = option.partition("=")
    if not (name and sign and path):
        raise InvalidInput(f"--reference needs NAME=FILE, not {option!r}.")
    return ResolvedReference(name, name, 1, Path(path).read_text(encoding="utf-8"))


def _registered_references(registry: Registry, subject: SubjectName, options: Sequence[str]) -> tuple[Reference, ...]:
    """Return the references in the options; by default those of the subject's newest version, if it exists."""
    if options:
        return tuple(_registered_reference(option) for option in options)
    try:
        return get_version(registry, subject, "latest").schema.references
    except (SubjectNotFound, VersionNotFound):
        return ()


def _registered_reference(option: str) -> Reference:
    name, sign, target = option.partition("=")
    subject, _, version = target.partition("@")
    if not (name and sign and subject) or not (version == "" or (version.isascii() and version.isdigit())):
        raise InvalidInput(f"With --subject, --reference needs NAME=SUBJECT or NAME=SUBJECT@VERSION, not {option!r}.")
    if Path(target).is_file():
        raise InvalidInput(f"With --subject, a reference is to a registered subject: {target} is a file.")
    return Reference(name, subject, int(version) if version else NEWEST)


def _error_text(error: Exception) -> str:
    return error.placed if isinstance(error, SchemadeskError) else str(error)


# -- many pairs of schemas, one per line of JSON: thousands in one run of the command ----------------------------------


def check_pairs(lines: Iterable[str], defaults: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the answer for each line: its number, `is_compatible` and the items; or `is_compatible` null and the error.

    A line is {"new": TEXT, "old": TEXT or [TEXT, …], oldest first} with optional `type`, `level` and `profile`. A
    schema may be a JSON object instead of a text; an `old` list always means several schemas. Blank lines are skipped.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield {"line": number, **_verdict(line, defaults)}
        except SchemadeskError as error:
            yield {"line": number, "is_compatible": None, "error": error.placed}


def _verdict(line: str, defaults: Mapping[str, str]) -> dict[str, Any]:
    pair = _pair(line)
    kind, level, profile = (str(pair.get(name, defaults[name])) for name in ("type", "level", "profile"))
    if profile not in PROFILES:
        raise InvalidInput(f"{profile[:40]!r} is not a profile: use one of {', '.join(PROFILES)}.")
    level_named(level)
    old = pair["old"] if isinstance(pair["old"], list) else [pair["old"]]
    history = [(version, schema_engine.parse(kind, _text(text))) for version, text in enumerate(old, start=1)]
    new = schema_engine.parse(kind, _text(pair["new"]))
    return schema_engine.check(new, history, level, profile=profile).to_dict()


def _pair(line: str) -> dict[str, Any]:
    try:
        pair = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The line is not JSON: {error}.") from error
    if not isinstance(pair, dict) or "new" not in pair or "old" not in pair:
        raise InvalidInput('A line is an object with "new" and "old".')
    return pair


def _text(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)
