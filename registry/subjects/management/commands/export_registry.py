"""`manage.py export_registry FILE`: all that a registry holds, in one file."""

from __future__ import annotations

import getpass
import os
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from registry.access.roles import system_actor
from registry.errors import SchemadeskError
from registry.subjects.import_export.registry_import import export_registry


class Command(BaseCommand):
    """Writes beside the file and renames at the end, so a file of that name is whole."""

    help = "Write a whole registry into one file. import_registry --from FILE restores it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """FILE."""
        parser.add_argument("file", type=Path)
        parser.add_argument("--registry", default="", help="default: the default registry")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print how many versions were written."""
        target: Path = options["file"]
        by = system_actor(getpass.getuser(), "command")
        try:
            with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}-", delete=False) as file:
                unfinished = Path(file.name)
                try:
                    count = export_registry(registry=options["registry"], file=file, by=by)
                    file.flush()
                    os.fsync(file.fileno())
                    unfinished.replace(target)
                except BaseException:
                    unfinished.unlink(missing_ok=True)
                    raise
        except (SchemadeskError, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{target}: {count} versions, {target.stat().st_size} bytes")
