"""The database backend: what is committed is announced, before and after; what isn't, is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import DataError, OperationalError, connection
from django.db.backends.postgresql import base as django_base

from dashboard.database import base
from dashboard.database.base import DatabaseWrapper
from dashboard.database.circuit_breaker import Reach
from dashboard.database.statements import written
from dashboard.response_cache.epoch import (
    EVERYTHING,
    GROUPS,
    REGISTRATIONS,
    SUBJECTS,
    Generation,
    generation_at,
    group_of,
    is_quiet,
    now,
)
from dashboard.response_cache.listener import Listener
from registry.subjects.models import Context
from tests.waiting import until

pytestmark = pytest.mark.django_db
ADD = "INSERT INTO auth_group (name) VALUES ('of the backend')"
TAKE = "DELETE FROM auth_group WHERE name = 'of the backend'"


@pytest.fixture
def generation(tmp_path: Path, settings: Any) -> Generation:
    settings.HOT_PATH_FILE = tmp_path / "generation"
    settings.HOT_PATH_HOSTS = False
    return generation_at(settings.HOT_PATH_FILE)


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**32 + 1, 2**63])
def test_a_number_that_does_not_fit_is_refused_and_not_cut(number: int) -> None:
    with pytest.raises(DataError, match="out of range"):
        Context.objects.update(next_schema_id=number)
    assert not Context.objects.filter(next_schema_id=number).exists()


@pytest.fixture
def wrapper(generation: Generation, settings: Any) -> Iterator[DatabaseWrapper]:
    """A connection beside the test's, which really commits."""
    settings.HOT_PATH = True
    beside = DatabaseWrapper({**connection.settings_dict}, alias="beside")
    yield beside
    beside.close()
    beside.set_autocommit(True)
    with beside.cursor() as cursor:
        cursor.execute(TAKE)
    beside.close()


def run(wrapper: DatabaseWrapper, *statements: str) -> None:
    with wrapper.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


class Seen:
    """What the words do while something is committed."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self.before = generation.snapshot()

    @property
    def has_changed(self) -> bool:
        before, self.before = self.before, self.generation.snapshot()
        assert is_quiet(self.before)
        return before != self.before


def test_a_transaction_is_announced_when_it_is_committed(
    wrapper: DatabaseWrapper, generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher, during = Seen(generation), []
    real = django_base.DatabaseWrapper._commit

    def commit(self: Any) -> Any:
        during.append(is_quiet(generation.snapshot()))
        return real(self)

    monkeypatch.setattr(django_base.DatabaseWrapper, "_commit", commit)
    wrapper.set_autocommit(False)
    run(wrapper, ADD)
    assert not watcher.has_changed
    wrapper.commit()
    assert during == [False], "it was under way before PostgreSQL was told"
    assert watcher.has_changed
    wrapper.commit()
    assert during == [False, True]
    assert not watcher.has_changed


#: what a registration does to the counter of ids, of a context that isn't there
COUNTER = """
WITH held AS (SELECT 0 AS id)
UPDATE subjects_context c SET next_schema_id = next_schema_id + 1 FROM held WHERE c.id = held.id"""


@pytest.mark.parametrize(
    ("statements", "groups"),
    [
        ((ADD,), {EVERYTHING}),
        ((COUNTER,), {REGISTRATIONS}),
        ((COUNTER, ADD), {EVERYTHING}),
        ((ADD, COUNTER), {EVERYTHING}),
        ((COUNTER, "SAVEPOINT a", ADD, "ROLLBACK TO a"), {REGISTRATIONS}),
        (("SAVEPOINT a", ADD, "ROLLBACK TO a"), {EVERYTHING}),
        ((COUNTER, "DO $$ BEGIN END $$"), {EVERYTHING}),
        ((COUNTER, "UPDATE subjects_context SET name = name WHERE id = 0"), {EVERYTHING}),
    ],
)
def test_triggers_tell_what_a_transaction_touches(
    wrapper: DatabaseWrapper, generation: Generation, statements: tuple[str, ...], groups: set[int]
) -> None:
    before = {group: generation.words(group) for group in range(GROUPS)}
    wrapper.set_autocommit(False)
    run(wrapper, *statements)
    wrapper.commit()
    assert {group for group, words in before.items() if generation.words(group) != words} == groups


@pytest.mark.parametrize("later", [(), ("SAVEPOINT a", "ROLLBACK TO a"), (ADD,)])
def test_what_a_pipeline_changes_is_reported_in_its_round_trip(
    wrapper: DatabaseWrapper, generation: Generation, monkeypatch: pytest.MonkeyPatch, later: tuple[str, ...]
) -> None:
    """The registration of a version does so; a later change is asked for again."""
    before = {group: generation.words(group) for group in range(GROUPS)}
    wrapper.set_autocommit(False)
    with wrapper.cursor() as cursor, wrapper.connection.pipeline():
        cursor.execute(COUNTER)
    run(wrapper, *later)
    asked, ask = [], wrapper.connection.execute
    monkeypatch.setattr(wrapper.connection, "execute", lambda sql: asked.append(sql) or ask(sql))
    wrapper.commit()
    assert bool(asked) == (later == (ADD,))
    touched = {group for group, words in before.items() if generation.words(group) != words}
    assert touched == {EVERYTHING if asked else REGISTRATIONS}


TELL = "SELECT set_config('schemadesk.changed', %s, true)"


def test_a_registration_is_announced_and_committed_in_its_round_trip(
    wrapper: DatabaseWrapper, generation: Generation
) -> None:
    group = group_of("orders")
    before = {number: generation.words(number) for number in range(GROUPS)}
    wrapper.set_autocommit(False)
    with wrapper.cursor() as cursor, wrapper.committing("orders"):
        cursor.execute(ADD)
        cursor.execute(TELL, [f"+ {group - SUBJECTS}"])
        assert not is_quiet(generation.snapshot()), "it is under way before PostgreSQL was told"
    assert is_quiet(generation.snapshot())
    assert {number for number, words in before.items() if generation.words(number) != words} == {REGISTRATIONS, group}
    watcher = Seen(generation)
    wrapper.rollback()
    run(wrapper, "SELECT 1")
    wrapper.commit()
    assert not watcher.has_changed
    with wrapper.cursor() as cursor:
        cursor.execute(TAKE)
        assert cursor.rowcount == 1


@pytest.mark.parametrize("told", ["", "*", "+", "+ 0 1", "+ 117"])
def test_a_transaction_that_does_more_than_a_registration_is_not_committed_as_one(
    wrapper: DatabaseWrapper, generation: Generation, told: str
) -> None:
    wrapper.set_autocommit(False)
    with pytest.raises(OperationalError) as caught, wrapper.cursor() as cursor, wrapper.committing("orders"):
        cursor.execute(ADD)
        cursor.execute(TELL, [told])
    assert isinstance(caught.value.__cause__, psycopg.errors.SerializationFailure)
    assert is_quiet(generation.snapshot())
    wrapper.rollback()
    with wrapper.cursor() as cursor:
        cursor.execute(TAKE)
        assert cursor.rowcount == 0


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1 FROM auth_group FOR UPDATE",
        "UPDATE auth_group SET name = 'x' WHERE name = 'nobody has it'",
        "UPDATE access_apitoken SET last_used_at = NULL WHERE id = 0",
        "DELETE FROM django_session",
    ],
)
def test_what_changes_no_answer_is_not_announced(
    wrapper: DatabaseWrapper, generation: Generation, statement: str
) -> None:
    watcher = Seen(generation)
    wrapper.set_autocommit(False)
    run(wrapper, statement)
    wrapper.commit()
    assert not watcher.has_changed


def test_what_is_rolled_back_is_not_announced(wrapper: DatabaseWrapper, generation: Generation) -> None:
    watcher = Seen(generation)
    wrapper.set_autocommit(False)
    run(wrapper, ADD)
    wrapper.rollback()
    run(wrapper, "SELECT 1")
    wrapper.commit()
    assert not watcher.has_changed
    run(wrapper, ADD)
    wrapper.close()
    wrapper.set_autocommit(False)
    run(wrapper, "SELECT 1")
    wrapper.commit()
    assert not watcher.has_changed


def test_without_a_transaction_each_statement_is_announced(wrapper: DatabaseWrapper, generation: Generation) -> None:
    watcher, count = Seen(generation), written()
    run(wrapper, "SELECT 1")
    assert not watcher.has_changed
    assert written() == count
    run(wrapper, ADD)
    assert watcher.has_changed
    assert written() == count + 1
    run(wrapper, "WITH gone AS (DELETE FROM auth_group WHERE name = 'of the backend' RETURNING 1) SELECT * FROM gone")
    assert watcher.has_changed


def test_a_refused_statement_leaves_nothing_under_way(wrapper: DatabaseWrapper, generation: Generation) -> None:
    for statement in ("INSERT INTO auth_group (no_column) VALUES (1)", "SELECT 1; DELETE FROM no_table"):
        with pytest.raises(Exception, match="does not exist"):
            run(wrapper, statement)
        assert is_quiet(generation.snapshot())


def test_a_commit_whose_end_nobody_knows_keeps_it_off(
    wrapper: DatabaseWrapper, generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    later: list[float] = []
    monkeypatch.setattr(Generation, "end_later", lambda self, groups: later.append(0))

    def commit(self: Any) -> Any:
        self.connection.close()
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(django_base.DatabaseWrapper, "_commit", commit)
    wrapper.set_autocommit(False)
    run(wrapper, ADD)
    with pytest.raises(OperationalError):
        wrapper.commit()
    assert later == [0]
    assert not is_quiet(generation.snapshot())
    generation.end()


def test_its_connections_are_known_at_the_server(wrapper: DatabaseWrapper, generation: Generation) -> None:
    with wrapper.cursor() as cursor:
        cursor.execute("SHOW application_name")
        assert cursor.fetchone() == (generation.name_of(generation.slot),)


# -- the listener ------------------------------------------------------------------------------------------------------


@pytest.fixture
def parameters() -> dict[str, Any]:
    return connection.get_connection_params()


def test_it_listens_sweeps_and_stops_when_it_is_lost(generation: Generation, parameters: dict[str, Any]) -> None:
    listener = Listener(generation, lambda: parameters, grace=3.0)
    assert listener.until == 0.0
    listener.start()
    try:
        until(lambda: listener.until > now())
        with psycopg.connect(**parameters, autocommit=True) as beside:
            watcher = Seen(generation)
            beside.execute("NOTIFY schemadesk_changed, 'somebody'")
            until(lambda: watcher.has_changed)
            parameters["host"] = "/nowhere"
            beside.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE query IN ('SELECT 1', 'LISTEN schemadesk_changed') AND pid <> pg_backend_pid()"
                " AND usename = current_user AND datname = current_database() AND state = 'idle'"
            )
        until(lambda: listener.until < now())
        assert listener.until > 0, "it went on for a while"
        parameters |= connection.get_connection_params()
        until(lambda: listener.until > now())
        assert watcher.has_changed, "for what was missed"
    finally:
        listener.stop()
    assert listener.until == 0.0


def test_a_file_that_was_removed_switches_it_off(generation: Generation, parameters: dict[str, Any]) -> None:
    listener = Listener(generation, lambda: parameters)
    listener.start()
    try:
        until(lambda: listener.until > now())
        generation.path.unlink()
        until(lambda: listener.until == 0.0)
    finally:
        listener.stop()


@pytest.fixture
def pooled() -> Iterator[DatabaseWrapper]:
    """A connection as a thread has it under `up`, from a pool."""
    options = {**connection.settings_dict["OPTIONS"], "pool": {"min_size": 1, "max_size": 2}}
    found = DatabaseWrapper(
        {**connection.settings_dict, "OPTIONS": options, "CONN_HEALTH_CHECKS": False}, alias="pooled"
    )
    try:
        yield found
    finally:
        found.close()
        found.close_pool()


def asked(wrapper: DatabaseWrapper) -> int:
    """The server's process, as a request asks for it: Django looks after connections before and after each."""
    wrapper.close_if_unusable_or_obsolete()
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    wrapper.close_if_unusable_or_obsolete()
    return int(pid)


def test_a_thread_keeps_its_connection_and_notices_that_it_was_ended(
    pooled: DatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = asked(pooled)
    kept = pooled.connection
    assert kept is not None
    assert asked(pooled) == first
    assert pooled.connection is kept
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 60000)", [first])
    assert asked(pooled) != first, "no request fails"
    monkeypatch.setattr(base, "KEPT_SECONDS", 0.0)
    pooled.close()
    asked(pooled)
    assert pooled.connection is None, "the pool has it back"


@pytest.mark.requirement("CARD-1")
def test_while_the_database_hangs_a_kept_connection_is_no_way_to_it(
    pooled: DatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(pooled)
    reach = Reach()
    reach.note_away(60)
    monkeypatch.setattr(base, "REACH", reach)
    with pytest.raises(OperationalError, match="away"):
        asked(pooled)


def test_after_a_restart_only_those_fail_that_were_using_a_connection() -> None:
    """None that waited in the pool is given to a request, although it isn't asked whether it lives."""
    options = {**connection.settings_dict["OPTIONS"], "pool": {"min_size": 1, "max_size": 4}}
    # As under `up`: nobody asks a connection whether it lives before it is given to a request.
    pooled = {**connection.settings_dict, "OPTIONS": options, "CONN_HEALTH_CHECKS": False}
    wrappers = [DatabaseWrapper({**pooled}, alias="pooled") for _ in range(3)]
    try:
        pids = []
        for wrapper in wrappers:
            with wrapper.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                pids += cursor.fetchone()
        for wrapper in wrappers:
            wrapper.close()
        assert len(set(pids)) == 3
        run(wrappers[0], "SELECT 1")
        with connection.cursor() as cursor:
            cursor.execute("SELECT bool_and(pg_terminate_backend(pid, 60000)) FROM unnest(%s::int[]) AS pid", [pids])
            assert cursor.fetchone() == (True,)
        run(wrappers[1], "SELECT 1")
        with pytest.raises(OperationalError):
            run(wrappers[0], "SELECT 1")
        for wrapper in wrappers:
            wrapper.close()
        for wrapper in wrappers:
            run(wrapper, "SELECT 1")
    finally:
        for wrapper in wrappers:
            wrapper.close()
        wrappers[0].close_pool()
