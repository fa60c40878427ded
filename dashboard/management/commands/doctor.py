"""`manage.py doctor`: check every part of an installation, and say the cure of what is wrong."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict
from json import dumps

from django.core.management.base import BaseCommand

from dashboard.management.diagnosis import diagnose


class Command(BaseCommand):
    """The command; it changes nothing. Exit code 0: nothing fails, 1: something does."""

    help = "Check the settings, the database, Valkey, workers, clusters, Spark and files, and say how to mend them."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add --json."""
        parser.add_argument("--json", action="store_true", help="print a JSON object per line")

    def handle(self, *args: object, json: bool, **options: object) -> None:
        """Print a line per part as it is known; its cure is below it."""
        fails = False
        for item in diagnose():
            fails = fails or item.state == "fails"
            self.stdout.write(
                dumps(asdict(item), ensure_ascii=False) if json else f"{item.state:<12}{item.part:<20}{item.sentence}"
            )
            if item.cure and not json:
                self.stdout.write(f"{'':<32}→ {item.cure}")
        if fails:
            raise SystemExit(1)
