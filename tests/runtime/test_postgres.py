"""The embedded PostgreSQL's files and roles."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import InsufficientPrivilege

from dashboard.runtime import PartFailed, PartMissing, postgres
from dashboard.runtime.layout import Layout
from dashboard.runtime.parts import POSTGRES, postgres_server, running
from dashboard.runtime.process import Watchdog

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layout]:
    watchdog = Watchdog()
    watchdog.start()
    yield Layout.at(tmp_path_factory.mktemp("postgres"), watchdog)
    watchdog.close()


@pytest.fixture(scope="module")
def server(layout: Layout) -> Iterator[Layout]:
    with running(layout, POSTGRES):
        yield layout


def test_the_application_cannot_change_what_the_owner_made_unless_it_is_granted(server: Layout) -> None:
    with psycopg.connect(postgres.url(server, postgres.OWNER), autocommit=True) as owner:
        owner.execute("CREATE TABLE audit (what text)")
        owner.execute(f"GRANT SELECT, INSERT ON audit TO {postgres.APPLICATION}")
    with psycopg.connect(postgres.url(server, postgres.APPLICATION), autocommit=True) as application:
        application.execute("INSERT INTO audit VALUES ('x')")
        for statement in (
            "UPDATE audit SET what = 'y'",
            "DELETE FROM audit",
            "TRUNCATE audit",
            "ALTER TABLE audit ADD other int",
            "DROP TABLE audit",
            "GRANT UPDATE ON audit TO schemadesk_app",
            "SET ROLE schemadesk_owner",
            "CREATE TABLE own (x int)",
            "CREATE DATABASE other",
            "CREATE ROLE other SUPERUSER",
        ):
            with pytest.raises((InsufficientPrivilege, psycopg.Warning)):
                _strictly(application, statement)
        assert application.execute("SELECT * FROM audit").fetchall() == [("x",)]


def _strictly(connection: psycopg.Connection, statement: str) -> None:
    """A GRANT without the right to it is a warning only."""
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(str(notice.severity_nonlocalized)))
    connection.execute(statement.encode())
    if "WARNING" in notices:
        raise psycopg.Warning(statement)


def test_no_role_of_ours_is_a_superuser_or_may_make_databases(server: Layout) -> None:
    with psycopg.connect(postgres.url(server, postgres.APPLICATION)) as connection:
        rows = connection.execute(
            "SELECT rolname FROM pg_roles WHERE rolname LIKE 'schemadesk%' "
            "AND NOT (rolsuper OR rolcreatedb OR rolcreaterole OR rolbypassrls)"
        ).fetchall()
    assert {name for (name,) in rows} == {postgres.OWNER, postgres.APPLICATION}


def test_it_listens_on_no_port_and_its_socket_is_private(server: Layout) -> None:
    with psycopg.connect(postgres.url(server, postgres.APPLICATION)) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        assert connection.execute("SHOW server_encoding").fetchone() == ("UTF8",)
    assert server.sockets.stat().st_mode & 0o777 == 0o700


@pytest.mark.slow
def test_rows_survive_kill_9(tmp_path: Path) -> None:
    watchdog = Watchdog()
    watchdog.start()
    layout = Layout.at(tmp_path / "data", watchdog)
    try:
        with running(layout, POSTGRES) as children:
            with psycopg.connect(postgres.url(layout, postgres.OWNER), autocommit=True) as owner:
                owner.execute("CREATE TABLE kept AS SELECT 42 AS answer")
            children[0].process.send_signal(signal.SIGKILL)
            children[0].process.wait()
        with running(layout, POSTGRES), psycopg.connect(postgres.url(layout, postgres.OWNER)) as owner:
            assert owner.execute("SELECT answer FROM kept").fetchone() == (42,)
    finally:
        watchdog.close()


def test_files_of_another_major_version_are_refused_with_the_way_out(layout: Layout, tmp_path: Path) -> None:
    other = Layout.at(tmp_path / "data", layout.watchdog)
    (other.data / "postgres").mkdir()
    (other.data / "postgres/PG_VERSION").write_text("11\n")
    with pytest.raises(PartFailed, match=r"written by PostgreSQL 11.*pg_dump"):
        postgres.prepare(other)


def test_what_an_interrupted_initdb_left_is_recreated(layout: Layout, tmp_path: Path) -> None:
    other = Layout.at(tmp_path / "data", layout.watchdog, durable=False)
    (other.data / "postgres.new").mkdir()
    (other.data / "postgres.new/half").write_text("")
    postgres.prepare(other)
    assert (other.data / "postgres/PG_VERSION").exists()
    assert not (other.data / "postgres/half").exists()


def test_without_the_wheel_one_on_path_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel = postgres.find_programs().folder
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name in ("postgres", "initdb"):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec "{wheel / name}" "$@"\n')
        script.chmod(0o755)
    monkeypatch.setattr(postgres.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name, **more: str(folder / name))
    postgres.find_programs.cache_clear()
    try:
        assert postgres.find_programs().folder == folder
    finally:
        postgres.find_programs.cache_clear()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs to become somebody else")
def test_root_without_namespaces_becomes_nobody_and_reaches_its_files(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = {name: shutil.which(name) for name in ("setpriv", "true", "sh")}
    if not all(programs.values()):
        pytest.skip("this machine has no setpriv")
    for name, program in programs.items():
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).symlink_to(str(program))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    postgres.user_switch.cache_clear()
    try:
        assert postgres.user_switch().prefix[0] == "setpriv"
        for _ in range(2):
            again = Layout.at(tmp_path / "data", layout.watchdog)
            with running(again, POSTGRES) as children:
                assert psutil.Process(children[0].pid).uids().effective == postgres.NOBODY
                psycopg.connect(postgres.url(again, postgres.APPLICATION)).close()
        (tmp_path / "bin" / "setpriv").unlink()
        postgres.user_switch.cache_clear()
        with pytest.raises(PartMissing, match="DATABASE_URL"):
            postgres.user_switch()
    finally:
        postgres.user_switch.cache_clear()


def test_changes_can_be_read_from_the_log_and_a_forgotten_slot_keeps_a_bounded_part_of_it(server: Layout) -> None:
    with psycopg.connect(postgres.url(server, postgres.SUPERUSER)) as connection:
        assert connection.execute("SHOW wal_level").fetchone() == ("logical",)
        assert connection.execute("SHOW max_slot_wal_keep_size").fetchone() == ("512MB",)


def test_on_a_port_only_those_with_a_password_are_let_in(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with postgres_server(tmp_path / "data") as server:
        port = int(str(conninfo_to_dict(server)["port"]))
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("CREATE ROLE guest LOGIN PASSWORD 'right'")
        host = {"host": "127.0.0.1", "port": port, "dbname": "postgres", "connect_timeout": 5}
        for role in (postgres.SUPERUSER, postgres.OWNER, postgres.APPLICATION):
            with pytest.raises(psycopg.OperationalError, match=r"no password supplied|password authentication failed"):
                psycopg.connect(user=role, **host)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(user="guest", password="wrong", **host)
        with psycopg.connect(user="guest", password="right", **host) as guest:
            assert guest.execute("SELECT current_user::text").fetchone() == ("guest",)
        # Reads the whole table of sockets at once: a process that ends meanwhile can't fail it.
        listening = {
            connection.laddr.ip
            for connection in psutil.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
        }
        assert listening == {"127.0.0.1"}
