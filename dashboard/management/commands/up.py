"""Runs the whole product on this machine."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dashboard.services.errors import ServiceError
from dashboard.services.up import USUAL_PORT, Options, up


class Command(BaseCommand):
    """Database, queue, broker, Spark, web server, workers and clock, on loopback, until Ctrl-C."""

    help = __doc__
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The options of `up`."""
        parser.add_argument("--data", metavar="DIR", help="folder for everything that is kept (default: user's data)")
        parser.add_argument("--port", type=int, help=f"the web server's port (default: {USUAL_PORT}, else a free one)")
        parser.add_argument("--without", metavar="PARTS", default="", help="parts to leave out: kafka,spark")
        parser.add_argument("--demo", action="store_true", help="make the demo's input when everything is ready")

    def handle(self, *args: Any, **options: Any) -> None:
        """Returns when it was told to stop; ends with a sentence and status 1 when a part can't run."""
        chosen = {name: options[name] for name in ("data", "port", "without", "demo")}
        try:
            sys.exit(up(Options.of(**chosen)))
        except ServiceError as error:
            raise CommandError(error.message) from None
