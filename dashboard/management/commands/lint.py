"""`manage.py lint`: check format, lint and types, like CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from django.core.management.base import BaseCommand

CHECKS = (
    ("format", ["ruff", "format", "--check", "."]),
    ("lint", ["ruff", "check", "."]),
    ("templates", ["djangofmt", "--check", "templates"]),
    ("types", ["mypy", "registry", "dashboard", "benchmarks", "schemadesk_spark"]),
)


class Command(BaseCommand):
    """Runs every check; exits with 1 if one fails."""

    help = "Check format, lint and types."
    requires_system_checks: list[str] = []

    def handle(self, *args: object, **options: object) -> None:
        """Run all checks, so that a failure doesn't hide the next."""
        # mypy's plugin loads the settings, which need a key outside manage.py.
        environment = os.environ | {"SECRET_KEY": "for the type check only " * 2}
        failed = [
            name
            for name, (tool, *arguments) in CHECKS
            if subprocess.run(
                [Path(sys.executable).with_name(tool), *arguments], env=environment, check=False
            ).returncode
        ]
        if failed:
            self.stderr.write(f"failed: {', '.join(failed)}")
            sys.exit(1)
