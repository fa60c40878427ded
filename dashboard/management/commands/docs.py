"""`manage.py docs`: build the documentation as a site."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    """Builds the site; fails for a link that leads nowhere, or a page that no section has."""

    help = "Build the documentation as a site: open index.html, or serve the folder."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the folder."""
        parser.add_argument("folder", nargs="?", type=Path, default=Path(settings.BASE_DIR) / "build" / "site")

    def handle(self, *args: object, folder: Path, **options: object) -> None:
        """Build and say where it is. Raises CommandError with MkDocs' own words before it."""
        config = Path(settings.BASE_DIR) / "mkdocs.yml"
        command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", str(config)]
        environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # decision 2 says how long the theme is maintained
        if subprocess.run([*command, "--site-dir", str(folder.absolute())], env=environment, check=False).returncode:
            raise CommandError("The site can't be built.")
        self.stdout.write(str(folder / "index.html"))
