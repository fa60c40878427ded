"""A pytest plugin (`-p tests.services_plugin`) that gives the tests a PostgreSQL and a Valkey of their own.

They start before pytest-django reads the settings, in a folder of the session, and end with it, even by `kill -9`.
A `DATABASE_URL` or `REDIS_URL` that is set already is used instead.

As in production, the tests' connection is the application's role: it owns no table and can't change the audit. The
test database is made, migrated, emptied (after a `transaction=True` test) and dropped as the owner. A test that has to
do something as the owner says `with as_owner(): …`.

With several workers (`-n`, from pytest-xdist) each has services of its own, and the process that shares out the tests
has none.

The fixtures `kafka_bootstrap` and `spark_remote` start a broker and a Spark Connect server at their first use, once a
session; tests that use them are marked `broker` and `spark`. `KAFKA_BOOTSTRAP` and `SPARK_REMOTE` replace them.
Likewise `connect_url` (marker `connect`, replaced by `CONNECT_URL` and `CONNECT_SECRETS`), a Kafka Connect with
Debezium's connector on the broker of `kafka_bootstrap`, and `logical_postgres` (`LOGICAL_POSTGRES`), a PostgreSQL of
its own that it can read.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from dashboard.runtime import postgres, spark, valkey
from dashboard.runtime.layout import Layout, private_folder
from dashboard.runtime.parts import (
    POSTGRES,
    VALKEY,
    Part,
    kafka_broker,
    kafka_connect,
    postgres_server,
    running,
    spark_connect,
)
from dashboard.runtime.process import Watchdog
from tests.java_words import PLANS_NOT_COMPILED, SHORT_LIVED


class Services:
    """The parts of one test session; they start beside the collection of tests."""

    def __init__(self) -> None:
        self.folder = _session_folder()
        self.stack = ExitStack()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self.watchdog = Watchdog()
        self._sockets: Path | None = None
        self._superuser = ""

    def start(self) -> None:
        """Sets the addresses and begins to start what isn't given from outside."""
        self.watchdog.start()
        layout = Layout.at(self.folder / "base", self.watchdog, durable=False)
        self._sockets = layout.sockets
        parts = []
        if "DATABASE_URL" not in os.environ:
            parts.append(POSTGRES)
            os.environ["DATABASE_URL"] = postgres.url(layout, postgres.APPLICATION)
            os.environ["DATABASE_OWNER_URL"] = postgres.url(layout, postgres.OWNER)
            self._superuser = postgres.url(layout, postgres.SUPERUSER, "postgres")
        if "REDIS_URL" not in os.environ:
            parts.append(VALKEY)
            os.environ["REDIS_URL"] = valkey.url(layout)
        self._thread = threading.Thread(target=self._run, args=(layout, parts), daemon=True)
        self._thread.start()

    def _run(self, layout: Layout, parts: list[Part]) -> None:
        try:
            self.stack.enter_context(running(layout, *parts))
            if self._superuser:
                _let_owner_pass_over_triggers(self._superuser)
        except BaseException as error:  # noqa: BLE001 - told to the session by wait()
            self._failure = error

    @property
    def has_own_database(self) -> bool:
        """Whether PostgreSQL is the session's own, and ends with it."""
        return bool(self._superuser)

    def wait(self) -> None:
        """Returns when all parts are ready; ends the session when one failed."""
        if self._thread:
            self._thread.join()
        if self._failure:
            pytest.exit(
                f"The tests' services did not start: {self._failure}", returncode=pytest.ExitCode.INTERNAL_ERROR
            )

    def stop(self) -> None:
        """Ends all parts and removes their folder."""
        if self._thread:
            self._thread.join()
        try:
            self.stack.close()
        finally:
            self.watchdog.close()
            for folder in filter(None, (self.folder, self._sockets)):
                shutil.rmtree(folder, ignore_errors=True)


def _let_owner_pass_over_triggers(superuser: str) -> None:
    """For `empty_tables`; PostgreSQL 14 knows no such right."""
    import psycopg

    with psycopg.connect(superuser, autocommit=True) as connection:
        if connection.info.server_version >= 150_000:
            connection.execute(f"GRANT SET ON PARAMETER session_replication_role TO {postgres.OWNER}")


def _session_folder() -> Path:
    """A fresh folder named after this process; those of sessions that were killed are removed."""
    base = private_folder(Path(tempfile.gettempdir()) / f"schemadesk-tests-{os.geteuid()}")
    for old in base.iterdir():
        pid = old.name.partition("-")[0]
        if pid.isdigit() and not _alive(int(pid)):
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=base))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


SERVICES = pytest.StashKey[Services]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, Any, Any]:
    """Before pytest-django reads the settings in the same hook: a wrapper runs first."""
    options = early_config.known_args_namespace
    shares_out = bool(getattr(options, "numprocesses", None)) and "PYTEST_XDIST_WORKER" not in os.environ
    if not (getattr(options, "help", False) or getattr(options, "version", 0) or options.collectonly or shares_out):
        services = early_config.stash[SERVICES] = Services()
        services.start()
        # Not through pytest_unconfigure alone: that isn't called when a conftest can't be imported.
        early_config.add_cleanup(services.stop)
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """Registered now, so after pytest-django, whose fixture of the same name it replaces."""
    config.pluginmanager.register(Database(), "schemadesk-database")


def pytest_collection_finish(session: pytest.Session) -> None:
    """The first test may use everything."""
    if services := session.config.stash.get(SERVICES, None):
        services.wait()


class Database:
    """The test database, made by its owner and used by the application's role."""

    @pytest.fixture(scope="session")
    @classmethod
    def django_db_setup(
        cls, request: pytest.FixtureRequest, django_test_environment: None, django_db_blocker: Any
    ) -> Iterator[None]:
        """Makes and migrates the database, and drops it at the end where its server stays."""
        from django.test import TransactionTestCase
        from django.test.utils import setup_databases, teardown_databases

        from tests.migrated_database import migrating_quickly

        verbosity = request.config.option.verbose
        services = request.config.stash.get(SERVICES, None)
        is_own = bool(services and services.has_own_database)
        with django_db_blocker.unblock(), as_owner(), migrating_quickly() if is_own else nullcontext():
            made = setup_databases(verbosity=verbosity, interactive=False)

        def empty_as_owner(_: TransactionTestCase) -> None:
            with as_owner():
                empty_tables()

        with mock.patch.object(TransactionTestCase, "_fixture_teardown", empty_as_owner):
            yield
        if is_own:
            return  # it goes with its server; PostgreSQL would write all of it to the disk before it drops it
        with django_db_blocker.unblock(), as_owner():
            teardown_databases(made, verbosity=verbosity)


#: what migrating wrote, which is the same in every test
KEPT = frozenset({"django_migrations", "django_content_type", "auth_permission"})


#: Truncating makes new files for a table, for all that refer to it, and for their indexes: of few rows it is quicker to
#: delete them, in any order and the audit's too, where the owner may have no trigger called.
EMPTYING = f"""
DO $$
DECLARE
    place regclass;
    size bigint;
    holds boolean;
    silent boolean := false;
BEGIN
    IF current_setting('server_version_num')::int >= 150000 THEN
        silent := has_parameter_privilege('session_replication_role', 'SET');
    END IF;
    IF silent THEN
        SET LOCAL session_replication_role = replica;
    END IF;
    FOR place, size IN
        SELECT oid, pg_relation_size(oid) FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> ALL ('{{{",".join(sorted(KEPT))}}}')
    LOOP
        IF silent AND size BETWEEN 1 AND 4000000 THEN  -- what is deleted stays in the file
            EXECUTE format('DELETE FROM %s', place);
        ELSIF size > 0 THEN
            EXECUTE format('SELECT EXISTS (SELECT FROM %s)', place) INTO holds;
            IF silent OR holds THEN
                EXECUTE format('TRUNCATE %s CASCADE', place);
            END IF;
        END IF;
    END LOOP;
END $$
"""


def empty_tables() -> None:
    """Empties the tables, as their owner. Django would truncate all and write the content types anew each time."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(EMPTYING)


@pytest.fixture(scope="session")
def kafka_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Kafka broker, `host:port`."""
    if given := os.environ.get("KAFKA_BOOTSTRAP"):
        yield given
        return
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as bootstrap:
        yield bootstrap


@pytest.fixture(scope="session")
def spark_remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server, `sc://…` with its token."""
    if given := os.environ.get("SPARK_REMOTE"):
        yield given
        return
    # Its queries are many and small: the second compiler would take two fifths more CPU time than it gives back.
    with (
        mock.patch.object(spark, "LATER_COMPILER", (*SHORT_LIVED, *PLANS_NOT_COMPILED)),
        spark_connect(tmp_path_factory.mktemp("spark")) as remote,
    ):
        yield remote


@pytest.fixture(scope="session")
def connect_worker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    """A Kafka Connect worker: its REST API, and the folder of the secrets that its connectors may read."""
    if given := os.environ.get("CONNECT_URL"):
        yield given, Path(os.environ.get("CONNECT_SECRETS", os.devnull))
        return
    folder = tmp_path_factory.mktemp("connect")
    with kafka_connect(folder, request.getfixturevalue("kafka_bootstrap")) as url:
        yield url, folder / "connect" / "secrets"


@pytest.fixture(scope="session")
def connect_url(connect_worker: tuple[str, Path]) -> str:
    """The address of a Kafka Connect worker's REST API, with its user and password; it writes to `kafka_bootstrap`."""
    return connect_worker[0]


@pytest.fixture(scope="session")
def logical_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The superuser's address of a PostgreSQL with logical decoding; it also listens on 127.0.0.1 at that port."""
    if given := os.environ.get("LOGICAL_POSTGRES"):
        yield given
        return
    folder = tmp_path_factory.mktemp("postgres")
    with postgres_server(folder) as url:
        yield url
    # pytest keeps the folders of three sessions; here lies a gigabyte of the log.
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def as_owner() -> Iterator[None]:
    """Inside, Django's default connection is the owner's (DATABASE_OWNER_URL), not the application's.

    The connection is closed on the way in and out: not for use inside a transaction.
    """
    from django.db import connection
    from psycopg.conninfo import conninfo_to_dict

    login = conninfo_to_dict(os.environ.get("DATABASE_OWNER_URL") or os.environ["DATABASE_URL"])
    owner = {"USER": str(login.get("user") or ""), "PASSWORD": str(login.get("password") or "")}
    # Only these two are put back: the name of the database changes inside when the test database is made.
    application = {name: connection.settings_dict[name] for name in owner}
    connection.close()
    connection.settings_dict.update(owner)
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(application)
