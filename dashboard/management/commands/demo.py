"""`manage.py demo`: load the demo, with real producers and a real streaming query."""

from __future__ import annotations

import os

from django.core.management.base import BaseCommand, CommandError

from dashboard.demo.load import load_demo
from registry.errors import SchemadeskError

CURE = "Fix this, then run python3 manage.py demo to load the rest (with --data DIR if `up` has it)."


class Command(BaseCommand):
    """Runs the producers and the streaming query against the services that `up` started."""

    help = "Create the demo's topics and state, add them as sources and scan them."

    def handle(self, *args: object, **options: object) -> None:
        """Print a line per step."""
        url = f"http://127.0.0.1:{os.environ.get('SCHEMADESK_PORT', '8081')}"
        try:
            load_demo(registry_url=url, on_line=self._say)
        except SchemadeskError as error:
            raise CommandError(f"The demo failed: {error.message} {CURE}") from error

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
