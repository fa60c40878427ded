"""`manage.py up`: run the whole product on this machine. `manage.py` usually calls `up` without loading Django."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dashboard.runtime import ServiceError
from dashboard.runtime.up import Options, add_arguments, up


class Command(BaseCommand):
    """Runs database, queue, broker, Spark, web server, workers and scheduler on loopback until Ctrl-C."""

    help = "Run Schemadesk with all its parts on this machine until Ctrl-C."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of `up`."""
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until stopped; exit with a message and status 1 if a service can't run."""
        chosen = {name: options[name] for name in ("data", "port", "without", "demo", "with_parts")}
        try:
            sys.exit(up(Options.of(**chosen)))
        except ServiceError as error:
            raise CommandError(error.message) from None
