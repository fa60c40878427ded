"""`manage.py migrate` over databases of before: at the newest of what was replaced they go on, half-way they don't."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.core.management.commands.migrate import Command as DjangoMigrate
from django.db import OperationalError, connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from psycopg.errors import DeadlockDetected, DiskFull, LockNotAvailable

from dashboard.management.commands import migrate
from tests.services_plugin import as_owner

APPS = ("access", "audit", "drift", "notifications", "promotions", "search", "streams", "subjects")


@cache
def replacing() -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Each migration that replaces others, with these."""
    migrations = MigrationLoader(None).disk_migrations.items()
    return {key: list(migration.replaces) for key, migration in migrations if migration.replaces}


@pytest.fixture
def recorder(transactional_db: None) -> Iterator[MigrationRecorder]:
    """The record of migrations, as it was before they were replaced; the tables are as ever."""
    with as_owner(), transaction.atomic():
        record = MigrationRecorder(connection)
        for app, name in replacing():
            record.record_unapplied(app, name)
        for app, name in {old for replaced in replacing().values() for old in replaced}:
            record.record_applied(app, name)
        yield record
        transaction.set_rollback(True)


def migrated() -> str:
    out = StringIO()
    call_command("migrate", interactive=False, no_color=True, stdout=out)
    return out.getvalue()


def test_a_database_at_the_newest_of_before_goes_on_without_a_step(recorder: MigrationRecorder) -> None:
    assert "No migrations to apply." in migrated()
    assert {app for app, _ in replacing()} == set(APPS)
    assert recorder.applied_migrations().keys() >= replacing().keys()


def test_nothing_is_replaced_twice() -> None:
    named = [old for replaced in replacing().values() for old in replaced]
    assert len(named) == len(set(named)), "the second counts as made as soon as the first is"


@pytest.mark.parametrize("app", APPS)
def test_one_half_way_is_refused(recorder: MigrationRecorder, app: str) -> None:
    newest = replacing()[app, "0001_tables"][-1][1]
    recorder.record_unapplied(app, newest)
    with pytest.raises(CommandError, match=f"lacks {app}.{newest} .* or create a new database"):
        migrated()


@pytest.mark.django_db
def test_models_and_migrations_say_the_same() -> None:
    call_command("makemigrations", check_changes=True, dry_run=True, stdout=StringIO())


@pytest.mark.django_db
@pytest.mark.parametrize("conflict", [LockNotAvailable, DeadlockDetected])
def test_a_migration_that_meets_a_lock_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, conflict: type[Exception]
) -> None:
    failures = [conflict("busy"), conflict("busy")]

    def handle(command: object, **options: object) -> None:
        if failures:
            raise OperationalError from failures.pop()

    monkeypatch.setattr(migrate, "LOCK_PAUSE", 0.0)
    monkeypatch.setattr(DjangoMigrate, "handle", lambda command, *args, **options: handle(command))
    said = StringIO()
    call_command("migrate", stderr=said)
    assert said.getvalue().count("trying again") == 2
    assert failures == []


@pytest.mark.django_db
def test_another_failure_of_a_migration_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def handle(command: object, *args: object, **options: object) -> None:
        raise OperationalError from DiskFull("no space")

    monkeypatch.setattr(DjangoMigrate, "handle", handle)
    with pytest.raises(OperationalError):
        call_command("migrate")
