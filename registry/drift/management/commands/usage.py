"""`manage.py usage SUBJECT`: shows where each version is used, and whether it can be retired."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.core.serializers.json import DjangoJSONEncoder

from registry.access.roles import system_actor
from registry.drift.usage.retirement import SubjectRetirement, retirement_of
from registry.drift.usage.version_usage import TopicUse, VersionUse, moment
from registry.errors import SchemadeskError
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import parse_subject

#: the exit code for an unknown name
FAILED: Final = 3


class Command(BaseCommand):
    """Prints usage and retirement, as text or as JSON."""

    help = (
        "Show where the versions of a subject are used and whether they can be retired. With --only, the exit code "
        "is 0 for yes, 1 for no or not before a date, 2 for not known. It is 3 for an unknown subject or version."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("subject")
        parser.add_argument("--registry", default="", help="default: the default registry")
        parser.add_argument("--only", type=int, metavar="VERSION", dest="number", help="only this version")
        parser.add_argument("--stored", action="store_true", help="use only stored scan results; don't query clusters")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print usage and retirement."""
        try:
            subject = parse_subject(options["subject"])
            retirement = retirement_of(
                get_registry(options["registry"]),
                subject,
                by=system_actor("usage", channel="command"),
                ask=not options["stored"],
            )
            number = options["number"]
            numbers = [number] if number is not None else [item.version for item in retirement.use.versions]
            versions = [retirement.use.version(number) for number in numbers]
        except SchemadeskError as error:
            raise CommandError(error.message, returncode=FAILED) from error
        if options["json"]:
            self.stdout.write(json.dumps(retirement.to_dict(), indent=2, cls=DjangoJSONEncoder))
        else:
            for line in lines_of(retirement, versions):
                self.stdout.write(line)
        if number is not None:
            verdict = retirement.versions[number].answer
            if verdict != "yes":
                raise SystemExit(2 if verdict == "unknown" else 1)


def lines_of(subject: SubjectRetirement, versions: list[VersionUse]) -> Iterator[str]:
    """Yield the text for a terminal."""
    for version in versions:
        deleted = ", deleted" if version.deleted else ""
        yield f"{subject.use.subject} version {version.version} (schema id {version.schema_id}{deleted})"
        for topic in version.topics:
            yield from _topic_lines(topic)
        if not version.topics:
            yield "  no messages seen"
        retirement = subject.versions[version.version]
        yield f"  can be retired? {retirement.sentence}"
        for reason in retirement.reasons[1:]:
            yield f"    {reason.answer.replace('_', ' ')}: {reason.sentence}"
    yield ""
    yield from (item.sentence for item in subject.use.coverage)
    for problem in subject.problems:
        yield f"not checked: {problem}"


def _topic_lines(topic: TopicUse) -> Iterator[str]:
    share = f", {topic.share:.1%} of the topic" if topic.share is not None else ""
    whose = "" if topic.owner != "other" else " (of another subject)"
    yield (
        f"  {topic.topic} {topic.side}{whose}: {topic.messages:,} messages{share},"
        f" {moment(topic.first_time)} to {moment(topic.last_time)}"
    )
    for part in topic.partitions:
        yield f"    partition {part.partition}: offsets {part.first_offset:,} to {part.last_offset:,}, {part.messages:,} messages"
