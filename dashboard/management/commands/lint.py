"""`manage.py lint`: format, lint and types, as CI asks for them."""

from __future__ import annotations

import subprocess
import sys

from django.core.management.base import BaseCommand

CHECKS = (
    ("format", ["ruff", "format", "--check", "."]),
    ("lint", ["ruff", "check", "."]),
    ("types", ["mypy", "registry", "dashboard"]),
)


class Command(BaseCommand):
    """Runs every check and ends with 1 if one of them fails."""

    help = "Check format, lint and types."
    requires_system_checks: list[str] = []

    def handle(self, *args: object, **options: object) -> None:
        """Run them all, so that one failure doesn't hide the next."""
        failed = [
            name for name, command in CHECKS if subprocess.run([sys.executable, "-m", *command], check=False).returncode
        ]
        if failed:
            self.stderr.write(f"failed: {', '.join(failed)}")
            sys.exit(1)
