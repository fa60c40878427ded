"""`manage.py migrate`: Django's, with the checks that concern it, and not over half of what a migration stands for."""

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
    """Brings the tables up to date. What else `check` looks at loads every page, which costs more than the tables do."""

    help = "Bring the database's tables up to date."
    requires_system_checks = [Tags.models, Tags.database]

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate a database that is empty, up to date, or at the newest of what was replaced."""
        refuse_half_a_history(connections[options["database"]])
        super().handle(*args, **options)


def refuse_half_a_history(connection: BaseDatabaseWrapper) -> None:
    """Raises CommandError where the database has some of the migrations that another one replaces, and not all.

    Django would leave out the replacement without a word, and the tables would lack what was still to come.
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
