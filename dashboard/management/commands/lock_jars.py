"""`manage.py lock_jars`: write jars.lock again."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dashboard.runtime import ServiceError, jars
from dashboard.runtime.layout import Layout
from dashboard.runtime.process import Watchdog
from dashboard.runtime.supervisor import Console


class Command(BaseCommand):
    """Resolves the sets of jars in dashboard/runtime/jars.py and writes each jar's name and SHA-256 to jars.lock."""

    help = "Write jars.lock again after a change of versions."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Resolve and write; needs the network. Check the diff before you commit it."""
        watchdog = Watchdog()
        watchdog.start()
        with tempfile.TemporaryDirectory() as folder:
            layout = Layout.at(Path(folder) / "work", watchdog, say=Console().say)
            try:
                locked = jars.write_lock(layout)
            except ServiceError as error:
                raise CommandError(error.message) from error
            finally:
                watchdog.close()
        self.stdout.write(f"{len(locked)} jars, {sum(jar.size for jar in locked) / 1e6:.0f} MB: {jars.LOCK_FILE}")
