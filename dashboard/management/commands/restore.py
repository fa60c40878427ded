"""`manage.py restore`: fill an empty database from a backup, and compare."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from dashboard.database.backup import restore
from registry.errors import SchemadeskError


class Command(BaseCommand):
    """The command; it writes as the tables' owner. Stop the web server and the workers first."""

    help = "Restore a backup into an empty database, and verify its rows and the audit's chain."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the file and where the key goes."""
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--secret-key-file", type=Path, metavar="FILE",
            help="where to write SECRET_KEY, and in FILE_fallbacks its fallbacks; without it, sessions and webhooks' keys of "
            "the backup end",
        )  # fmt: skip

    def handle(self, *args: object, file: Path, secret_key_file: Path | None, **options: object) -> None:
        """Restore and say what is there."""
        try:
            manifest = restore(file, key_file=secret_key_file)
        except SchemadeskError as error:
            raise CommandError(error.message) from error
        self.stdout.write(
            f"Restored the backup of {manifest.made_at}: {manifest.rows['subjects_schemaversion']:,} versions. Its rows "
            f"and the audit agree with it, up to {manifest.audit_head}."
        )
