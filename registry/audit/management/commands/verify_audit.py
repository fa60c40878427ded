"""`manage.py verify_audit`: whether the audit is the one that was written."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError

from django.core.management.base import BaseCommand, CommandError

from registry.audit.sealing import Head, seal_events, verify


def head_of(text: str) -> Head:
    """A head as `verify_audit` prints it: POSITION:SEAL. Raises ArgumentTypeError."""
    found = re.fullmatch(r"([0-9]{1,18}):([0-9a-f]{64})", text)
    if found is None:
        raise ArgumentTypeError("a head is POSITION:SEAL, as this command and the worker's log print it")
    return Head(int(found[1]), found[2])


class Command(BaseCommand):
    """Makes every seal again and compares."""

    help = "Verify the audit's chain of seals; ends with 1 where an event was changed, removed or slipped in."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--expect and --seal."""
        parser.add_argument("--expect", type=head_of, metavar="HEAD", help="a head that was noted earlier")
        parser.add_argument("--seal", action="store_true", help="seal what waits first")

    def handle(self, *args: object, **options: object) -> None:
        """Print the head and the unsealed tail."""
        if options["seal"]:
            while seal_events():
                pass
        expected = options["expect"]
        chain = verify(expected if isinstance(expected, Head) else None)
        if chain.problem:
            raise CommandError(f"{chain.problem} Everything before is as it was sealed (head {chain.head}).")
        self.stdout.write(f"{chain.head.position} events are as they were sealed. Head: {chain.head}")
        if chain.unsealed:
            self.stdout.write(
                f"{chain.unsealed} newer events aren't sealed yet, the oldest of {chain.oldest_unsealed}."
            )
