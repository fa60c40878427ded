"""The tables that the migrations make, kept as a script: to run it takes a fifth of the time that migrating takes.

Each worker of each run needs them. The script is in the product's cache, under the digest of all that it is made from.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unittest import mock

import psycopg
from django.core import management
from django.db import connection
from psycopg import sql
from psycopg.conninfo import make_conninfo

from dashboard.runtime.layout import cache_folder
from dashboard.runtime.postgres import find_programs

ROOT: Final = Path(__file__).resolve().parent.parent
#: the migrations, what they import, what follows them, and the versions of the other apps
MADE_FROM: Final = (
    "registry/*/migrations/*.py",
    "registry/*/models.py",
    "registry/*/models/*.py",
    "registry/audit/*.py",
    "dashboard/management/commands/migrate.py",
    "requirements.lock",
    "tests/migrated_database.py",
)
KEPT_SCRIPTS: Final = 8


def script() -> Path:
    """Where the script is, or will be."""
    digest = hashlib.sha256(str(find_programs().major).encode())
    for pattern in MADE_FROM:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return cache_folder() / "migrated-databases" / f"{digest.hexdigest()[:16]}.sql"


@contextmanager
def migrating_quickly() -> Iterator[None]:
    """Inside, `migrate` on an empty database runs the script, or migrates and writes it."""
    call_command, path = management.call_command, script()

    def call(command: str, *arguments: Any, **options: Any) -> Any:
        if command != "migrate":
            return call_command(command, *arguments, **options)
        if not path.exists():
            call_command(command, *arguments, **options)
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path)
            return None
        with connection.cursor() as cursor:
            cursor.execute(path.read_text())
        connection.close()  # the script set a search path of its own
        return None

    with mock.patch.object(management, "call_command", call):
        yield


def write(path: Path) -> None:
    """Keep what is in the database now; forget the oldest scripts."""
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_text(dump(connection.settings_dict["NAME"]))
    unfinished.rename(path)
    for old in sorted(path.parent.glob("*.sql"), key=lambda each: each.stat().st_mtime)[:-KEPT_SCRIPTS]:
        old.unlink(missing_ok=True)


def dump(database: str, *options: str) -> str:
    """The script that makes what is in that database, without the commands that psql alone knows."""
    address = make_conninfo(os.environ["DATABASE_OWNER_URL"], dbname=database)
    command = [find_programs().folder / "pg_dump", "--inserts", *options, address]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("\\"))


@contextmanager
def new_database(text: str = "") -> Iterator[dict[str, str]]:
    """A database of its own, empty or as a script makes it; gives its variables. It goes in the end."""
    name = f"fresh_{secrets.token_hex(4)}"
    owner = os.environ["DATABASE_OWNER_URL"]
    with psycopg.connect(make_conninfo(owner, dbname="postgres"), autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            if text:
                with psycopg.connect(make_conninfo(owner, dbname=name)) as fresh:
                    fresh.execute(text.encode())
            yield {
                "DATABASE_URL": make_conninfo(os.environ["DATABASE_URL"], dbname=name),
                "DATABASE_OWNER_URL": make_conninfo(owner, dbname=name),
            }
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
