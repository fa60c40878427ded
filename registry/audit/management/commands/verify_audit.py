"""`manage.py verify_audit`: check that the audit is the one that was written."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from registry.audit.hash_chain import Head, seal_events, verify


def head_of(text: str) -> Head:
    """Parse a head as `verify_audit` prints it: POSITION:SEAL. Raises ArgumentTypeError."""
    match = re.fullmatch(r"([0-9]{1,18}):([0-9a-f]{64})", text)
    if match is None:
        raise ArgumentTypeError("a head is POSITION:SEAL, as this command and the worker's log print it")
    return Head(int(match[1]), match[2])


def anchors_of(path: Path) -> list[Head]:
    """Return the heads in a file with one JSON object per line; none if the file doesn't exist yet.

    Raises CommandError.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"The anchors in {path} can't be read: {error}") from error
    heads = []
    for number, line in enumerate(lines, start=1):
        try:
            heads.append(head_of(str(json.loads(line)["head"])))
        except (ValueError, KeyError, TypeError, ArgumentTypeError) as error:
            raise CommandError(
                f"Line {number} of {path} is not an anchor. An anchor is a JSON object with a head."
            ) from error
    return heads


def add_anchor(path: Path, head: Head) -> None:
    """Append a head to the anchors. Raises CommandError."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"head": str(head), "at": timezone.now().isoformat()}) + "\n")
    except OSError as error:
        raise CommandError(f"The head {head} isn't in the anchors, because {path} can't be written: {error}") from error


class Command(BaseCommand):
    """The command: computes every seal again and compares."""

    help = (
        "Verify the audit's chain of seals. Ends with 1 if an event was changed, inserted or removed, at the end of the"
        " chain too."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add --expect, --anchors and --seal."""
        parser.add_argument("--expect", type=head_of, metavar="HEAD", help="a head that was noted earlier")
        parser.add_argument(
            "--anchors", type=Path, metavar="FILE",
            help="compare with every head in this file, then append the present one; keep it out of the database's reach",
        )  # fmt: skip
        parser.add_argument("--seal", action="store_true", help="seal what waits first")

    def handle(self, *args: object, **options: object) -> None:
        """Print the head and the number of unsealed events."""
        path = options["anchors"]
        expected = anchors_of(path) if isinstance(path, Path) else []
        if isinstance(options["expect"], Head):
            expected.append(options["expect"])
        if options["seal"]:
            while seal_events():
                pass
        chain = verify(*expected)
        if chain.problem:
            raise CommandError(f"{chain.problem} Everything before it is unchanged (head {chain.head}).")
        if isinstance(path, Path):
            self.stdout.write(f"Earlier heads compared: {len(expected)}.")
            add_anchor(path, chain.head)
        self.stdout.write(
            f"{chain.head.position} events verified, unchanged since they were sealed. Head: {chain.head}"
        )
        if chain.unsealed:
            self.stdout.write(
                f"{chain.unsealed} newer events are not sealed yet, the oldest from {chain.oldest_unsealed}."
            )
