"""`manage.py backup`: write one file from which everything can be restored."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from dashboard.database.backup import back_up
from registry.errors import SchemadeskError


class Command(BaseCommand):
    """The command; it reads as the tables' owner, while the product runs."""

    help = "Write a backup: the database, the secrets, and what a restore must find again."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the file and what is left out."""
        parser.add_argument("file", type=Path, help="the file to write; it must not exist")
        parser.add_argument(
            "--without-secrets", action="store_true", help="leave out the secrets and SECRET_KEY with its fallbacks"
        )

    def handle(self, *args: object, file: Path, without_secrets: bool, **options: object) -> None:
        """Write the backup and say what it has."""
        try:
            manifest = back_up(file, with_secrets=not without_secrets)
        except SchemadeskError as error:
            raise CommandError(error.message) from error
        rows, secrets = manifest.rows, len(manifest.parts) - 1
        self.stdout.write(
            f"{file}: {rows['subjects_schemaversion']:,} versions, {rows['audit_auditevent']:,} audit events up to "
            f"{manifest.audit_head}, {secrets} secrets. Keep it as safe as the database."
        )
