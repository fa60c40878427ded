"""`manage.py export_registry FILE`: the contents of a registry in one file."""

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
    """The command; writes to a temporary file and renames it at the end, so FILE is always complete."""

    help = "Write a whole registry into one file. import_registry --from FILE restores it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add FILE and the options."""
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
