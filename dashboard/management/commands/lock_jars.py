"""Writes jars.lock anew."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dashboard.services import jars
from dashboard.services.console import Console
from dashboard.services.errors import ServiceError
from dashboard.services.layout import Layout
from dashboard.services.process import Watchdog


class Command(BaseCommand):
    """Resolves the sets of jars in dashboard/services/jars.py and writes each jar's name and SHA-256 to jars.lock."""

    help = __doc__
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Needs the network. Look at the difference in version control before you keep it."""
        watchdog = Watchdog()
        watchdog.start()
        with tempfile.TemporaryDirectory() as folder:
            layout = Layout.at(Path(folder) / "work", watchdog, say=Console().say)
            try:
                found = jars.write_lock(layout)
            except ServiceError as error:
                raise CommandError(error.message) from error
            finally:
                watchdog.close()
        self.stdout.write(f"{len(found)} jars, {sum(jar.size for jar in found) / 1e6:.0f} MB: {jars.LOCK_FILE}")
