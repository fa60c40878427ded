"""`manage.py migrate` over databases of before: at the newest of what was replaced they go on, half-way they don't."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

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
