"""The tests' own database: the application's role is in them what it is in production."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from django.core.cache import cache
from django.db import DatabaseError, connection, transaction
from psycopg.conninfo import make_conninfo

from dashboard.runtime.postgres import APPLICATION, OWNER
from registry.access.roles import Actor
from tests import services_plugin
from tests.migrated_database import dump, script
from tests.services_plugin import EMPTYING, KEPT, as_owner, empty_tables


def value(statement: str) -> object:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


@pytest.mark.django_db
def test_tests_run_as_the_application_which_owns_nothing() -> None:
    assert value("SELECT session_user::text") == value("SELECT current_user::text") == APPLICATION
    assert value("SELECT count(*) FROM pg_class WHERE relowner = (SELECT oid FROM pg_roles WHERE rolname = user)") == 0


@pytest.mark.django_db
@pytest.mark.parametrize("statement", ["UPDATE audit_auditevent SET why = ''", "DELETE FROM {0}", "TRUNCATE {0}"])
def test_the_application_cannot_change_the_audit(statement: str) -> None:
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        value(statement.format("audit_auditevent"))


@pytest.mark.django_db(transaction=True)
def test_a_test_can_act_as_the_owner_for_a_moment() -> None:
    with as_owner():
        assert value("SELECT current_user::text") == OWNER
    assert value("SELECT current_user::text") == APPLICATION


@pytest.mark.django_db(transaction=True)
def test_what_a_test_with_real_transactions_wrote_is_gone_in_the_next_one() -> None:
    from django.contrib.auth.models import Group

    assert not Group.objects.filter(name="left by a test").exists()
    Group.objects.create(name="left by a test")


def rows_held() -> dict[str, int]:
    """Table → how many rows it has, of those that hold some and aren't written by migrating."""
    with connection.cursor() as cursor:
        tables = sorted(set(connection.introspection.table_names(cursor)) - KEPT)
        counts = {}
        for table in tables:
            cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(table)}")
            counts[table] = cursor.fetchone()[0]
    return {table: count for table, count in counts.items() if count}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("silent", "large"), [("true", "4000000"), ("true", "2"), ("false", "4000000")])
def test_every_table_is_emptied_by_deleting_and_by_truncating(
    registries: None, person: Callable[[str], Actor], monkeypatch: pytest.MonkeyPatch, silent: str, large: str
) -> None:
    monkeypatch.setattr(
        services_plugin,
        "EMPTYING",
        EMPTYING.replace("has_parameter_privilege('session_replication_role', 'SET')", silent).replace(
            "4000000", large
        ),
    )
    person("admin")
    row_counts = rows_held()
    assert {"audit_auditevent", "access_rolegrant", "promotions_environment", "subjects_registry"} <= set(row_counts)
    with as_owner():
        empty_tables()
    assert rows_held() == {}


test_what_a_test_with_real_transactions_wrote_is_gone_again = (
    test_what_a_test_with_real_transactions_wrote_is_gone_in_the_next_one
)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("DATABASE_OWNER_URL" not in os.environ, reason="the database is given")
def test_the_kept_script_makes_what_the_migrations_make() -> None:
    """All tests run on what the script makes: a change that its digest doesn't see would be tested by none."""
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE migrated_anew")
    owner = make_conninfo(os.environ["DATABASE_OWNER_URL"], dbname="migrated_anew")
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(command, env=os.environ | {"DATABASE_OWNER_URL": owner}, check=True)
    assert same_but_times(dump("migrated_anew")) == same_but_times(script().read_text())


def same_but_times(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("INSERT INTO public.django_migrations ")]


def test_the_queue_answers() -> None:
    assert os.environ["REDIS_URL"]
    cache.set("asked", "answered", 5)
    assert cache.get("asked") == "answered"
