"""A filled database is upgraded and backed up while clients write, and the programs go back: nothing is lost.

If the clone has the last release's tag, the old server runs that release. Otherwise it runs the current code.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import re
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.migrated_database import ROOT, new_database
from tests.runtime.test_package import PROGRAM, SECRET_KEY, ask, web
from tests.upgrade.definitions import RECORDING

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("upgrade")]
RECORDED = gzip.decompress(RECORDING.read_bytes()).decode()
AGAIN = "trying again"
#: tables whose recorded rows change as versions are registered and tokens are used
CHANGING = {"access_apitoken", "audit_chainhead", "subjects_context", "search_stalesubject"}


def recorded_release(folder: Path) -> Path:
    """The code that the recording was made with, or the current one."""
    version = re.search(r"^-- Schemadesk (\S+)$", RECORDED, re.M)[1]
    archive = subprocess.run(["git", "archive", f"v{version}"], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        return ROOT
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


@pytest.fixture
def releases(tmp_path: Path) -> dict[str, Path]:
    """The folders of the old and of the new programs, as `web` takes them."""
    folders = {}
    for name, code in {"old": recorded_release(tmp_path / "tag"), "new": ROOT}.items():
        folders[name] = tmp_path / name
        folders[name].mkdir()
        (folders[name] / "site").symlink_to(code)
        (folders[name] / "schemadesk").write_text(PROGRAM)
    return folders


def called(release: Path, *words: str, **variables: str) -> tuple[list[str], dict[str, str]]:
    """A command line and its environment."""
    environment = {"SECRET_KEY": SECRET_KEY, "PYTHONPATH": str(release / "site"), "PYTHONUNBUFFERED": "1"}
    return [sys.executable, str(release / "schemadesk"), *words], {**os.environ, **environment, **variables}


def command(release: Path, *words: str, **variables: str) -> str:
    line, environment = called(release, *words, **variables)
    done = subprocess.run(line, env=environment, cwd=release, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


class Load:
    """Clients that register and read until the end; what was confirmed, what failed."""

    def __init__(self, token: str, recorded: dict[str, bytes]) -> None:
        self.headers = {"Authorization": f"Bearer {token}"}
        self.recorded, self.sites = recorded, [""]
        self.confirmed: dict[str, int] = {}
        self.failures: list[str] = []
        self._ends = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ends.set()
            for thread in threads:
                thread.join()

    def more(self, number: int = 15) -> None:
        """Return after so many further registrations."""
        until, deadline = len(self.confirmed) + number, time.monotonic() + 240
        while len(self.confirmed) < until:
            assert time.monotonic() < deadline, self.failures[-3:]
            time.sleep(0.05)

    def use(self, *sites: str) -> None:
        """Send what comes next there, and wait for what is on its way."""
        self.sites = list(sites)
        self.more()

    def _ask(self, path: str, body: object = None) -> bytes:
        site = self.sites[time.monotonic_ns() // 1_000 % len(self.sites)]
        status, text = ask(f"{site}{path}", body, **self.headers)
        if status != 200:
            self.failures.append(f"{path}: {status} {text[:200]!r}")
        return text if status == 200 else b""

    def _work(self, worker: int) -> None:
        for number in itertools.count():
            if self._ends.is_set():
                return
            subject = f"load-{worker}-{number // 5}"
            if answer := self._ask(f"/subjects/{subject}/versions", {"schema": schema(subject, number % 5)}):
                key = f"{subject}/versions/{number % 5 + 1}"
                self.confirmed[key] = json.loads(answer)["id"]
                read = self._ask(f"/subjects/{key}")
                assert not read or json.loads(read)["id"] == self.confirmed[key]
            for path, before in self.recorded.items():
                if (now := self._ask(path)) and now != before:
                    self.failures.append(f"{path} was {before!r} and is {now!r}")


def schema(subject: str, number: int) -> str:
    fields = [{"name": f"f{at}", "type": "long", "default": 0} for at in range(number + 1)]
    return json.dumps({"type": "record", "name": subject.replace("-", "_"), "fields": fields})


def rows(owner: psycopg.Connection, columns: dict[str, list[str]]) -> set[tuple[str, str]]:
    """The rows of all tables, with the columns of the recorded release."""
    owner.rollback()
    return {
        (table, row)
        for table, names in columns.items()
        for (row,) in owner.execute(f"SELECT ROW({', '.join(names)})::text FROM {table}").fetchall()
    }


def columns_of(owner: psycopg.Connection) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    query = """SELECT c.table_name, quote_ident(c.column_name) FROM information_schema.columns c
        JOIN information_schema.tables t USING (table_schema, table_name)
        WHERE t.table_type = 'BASE TABLE' AND t.table_schema = 'public' ORDER BY c.ordinal_position"""
    for table, column in owner.execute(query).fetchall():
        if table not in CHANGING:
            found.setdefault(table, []).append(column)
    return found


@pytest.mark.requirement("CARD-1")
def test_an_upgrade_a_backup_and_the_way_back_under_load_lose_nothing(
    releases: dict[str, Path], tmp_path: Path
) -> None:
    old, new, backup = releases["old"], releases["new"], tmp_path / "load.tar"
    with new_database(RECORDED) as variables, psycopg.connect(variables["DATABASE_OWNER_URL"]) as owner:
        command(old, "migrate", **variables)  # nothing to do but the application's rights
        token = command(old, "issue_token", "steward", "load", **variables).split()[-1]
        columns = columns_of(owner)
        before = rows(owner, columns)
        with web(old, old, variables) as old_site:
            paths = [f"/schemas/ids/{number}" for number in (1, 3)]
            answers = {path: ask(f"{old_site}{path}", Authorization=f"Bearer {token}") for path in paths}
            assert {status for status, _ in answers.values()} == {200}
            load = Load(token, {path: text for path, (_, text) in answers.items()})
            load.sites = [old_site]
            with load.running():
                load.more()
                said = migrate_behind_a_lock(new, owner, variables)
                assert "0002_subjects... OK" in said
                assert AGAIN in said
                load.more()
                with web(new, new, variables) as new_site:
                    load.use(old_site, new_site)  # side by side
                    load.use(new_site)  # the upgrade is done
                    backed_up = dict(load.confirmed)
                    command(new, "backup", str(backup), **variables)
                    load.use(old_site)  # and back
        assert load.failures == []
        assert before - rows(owner, columns) == set(), "a recorded row is gone or another"
        stored = stored_in(owner)
        assert load.confirmed.items() <= stored.items(), "a confirmed version is lost"
        owner.rollback()
        command(old, "verify_audit", **variables)
        with new_database() as restored, psycopg.connect(restored["DATABASE_OWNER_URL"]) as other:
            assert "agree with it" in command(
                new, "restore", str(backup), **restored, DJANGO_SETTINGS_MODULE="tests.upgrade.next_settings"
            )
            kept = stored_in(other)
        assert backed_up.items() <= kept.items(), "a version that was confirmed before the backup isn't in it"
        assert kept.items() <= stored.items(), "the restored database has something else"


def stored_in(owner: psycopg.Connection) -> dict[str, int]:
    """The version's address → the id of its schema."""
    query = """SELECT s.name || '/versions/' || v.version, sc.schema_id FROM subjects_schemaversion v
        JOIN subjects_subject s ON s.id = v.subject_id JOIN subjects_schema sc ON sc.id = v.schema_id"""
    return dict(owner.execute(query).fetchall())


def migrate_behind_a_lock(release: Path, owner: psycopg.Connection, variables: dict[str, str]) -> str:
    """What `migrate` of the next release says while another transaction reads a table that it changes."""
    owner.execute("LOCK TABLE subjects_schemaversion IN ACCESS SHARE MODE")
    line, environment = called(release, "migrate", **variables, DJANGO_SETTINGS_MODULE="tests.upgrade.next_settings")
    with subprocess.Popen(
        line, env=environment, cwd=release, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as migrate:
        said = ""
        for words in migrate.stdout:
            said += words
            if AGAIN in words:
                owner.rollback()
    assert migrate.returncode == 0, said
    return said
