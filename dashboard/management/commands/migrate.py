"""`manage.py migrate`: Django's command, with fewer checks, and a refusal of partly applied squashed migrations."""

from __future__ import annotations

from typing import Any

from django.core.checks import Tags
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder


class Command(migrate.Command):
    """Updates the tables. Other system checks load every page, which takes longer than the migration."""

    help = "Bring the database's tables up to date."
    requires_system_checks = [Tags.models, Tags.database]

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate a database that is empty, up to date, or has all replaced migrations."""
        refuse_half_a_history(connections[options["database"]])
        super().handle(*args, **options)


def refuse_half_a_history(connection: BaseDatabaseWrapper) -> None:
    """Raise CommandError if the database has some but not all migrations that a squashed one replaces.

    Django would silently skip the squashed migration, and the tables would lack the rest.
    """
    applied = MigrationRecorder(connection).applied_migrations()
    for (app, name), migration in MigrationLoader(None).disk_migrations.items():
        lacking = [replaced for replaced in migration.replaces if replaced not in applied]
        if not lacking or len(lacking) == len(migration.replaces):
            continue
        raise CommandError(
            f"This database lacks {app}.{lacking[0][1]} but has other migrations that {app}.{name} replaces. First "
            "migrate it to the latest migration of a release that still has them, then with this release; or "
            "create a new database."
        )
