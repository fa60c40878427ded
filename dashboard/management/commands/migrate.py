"""`manage.py migrate`: Django's command, with fewer checks and short waits for locks; it refuses half a squashed history."""

from __future__ import annotations

from typing import Any, Final

from django.core.checks import Tags
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from psycopg.errors import DeadlockDetected, LockNotAvailable
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from dashboard.database.base import refuse_pooler
from registry.errors import WrongState

#: requests queue behind a migration that waits for a lock, so it soon lets them through and tries again
LOCK_TIMEOUT: Final = "1s"
LOCK_PAUSE: Final = 2.0  # seconds
LOCK_PATIENCE: Final = 300.0  # seconds


class Command(migrate.Command):
    """Updates the tables. Other system checks load every page, which takes longer than the migration."""

    help = "Bring the database's tables up to date."
    requires_system_checks = [Tags.models, Tags.database]

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate a database that is empty, up to date, or has all replaced migrations."""
        connection = connections[options["database"]]
        try:
            refuse_pooler(connection)
        except WrongState as error:
            raise CommandError(error.message) from error
        refuse_half_a_history(connection)
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [LOCK_TIMEOUT])
        for attempt in Retrying(
            retry=retry_if_exception(_is_lock_conflict),
            stop=stop_after_delay(LOCK_PATIENCE),
            wait=wait_fixed(LOCK_PAUSE),
            before_sleep=lambda _: self.stderr.write("Another transaction has a lock; trying again."),
            reraise=True,
        ):
            with attempt:
                super().handle(*args, **options)
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")


def _is_lock_conflict(error: BaseException) -> bool:
    return isinstance(error.__cause__, (LockNotAvailable, DeadlockDetected))


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
