"""Backups: one file with the database, the secrets and a manifest of what a restore must find again.

The database is dumped from one snapshot, in which the manifest's figures are read too, so that a backup taken under load
is consistent. A restore fills an empty database or nothing, and compares before it says that it is done.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final

from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from dashboard.database.base import refuse_pooler
from dashboard.runtime import PartFailed, PartMissing
from dashboard.runtime.layout import write_private
from dashboard.runtime.postgres import find_programs
from registry.audit.hash_chain import head, verify
from registry.errors import InvalidInput, WrongState

FORMAT: Final = 1
MANIFEST, DUMP, SECRETS = "manifest.json", "database.dump", "secrets/"
KEY, FALLBACKS = "secret_key", "secret_key_fallbacks"
#: tables whose rows a restore counts: what clients, people and auditors would miss first
COUNTED: Final = (
    "subjects_registry", "subjects_context", "subjects_subject", "subjects_schema", "subjects_schemaversion",
    "subjects_config", "subjects_mode", "audit_auditevent", "access_user", "access_apitoken", "promotions_promotionrequest",
    "drift_source", "drift_finding",
)  # fmt: skip
#: libpq's variables, so that a password is on no command line
_VARIABLES: Final = {
    "host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE",
    "sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY",
}  # fmt: skip
_BLOCK: Final = 1024 * 1024
_BEFORE_TIMEOUT: Final = b"\nSET idle_in_transaction_session_timeout = 0;\n"


@dataclass(frozen=True)
class Manifest:
    """What a backup has: the product's version, migrations, rows by table, the audit's head and each part's SHA-256."""

    format: int
    version: str
    made_at: str
    migrations: tuple[str, ...]
    rows: Mapping[str, int]
    audit_head: str
    parts: Mapping[str, str]


def back_up(path: Path, *, with_secrets: bool = True) -> Manifest:
    """Write a backup, readable by its owner alone; return its manifest.

    A failure leaves no file. Raises WrongState if the file exists or a pooler is in between, PartMissing, PartFailed.
    """
    if path.exists():
        raise WrongState(f"{path} exists. Choose another name: a backup replaces no file.")
    refuse_pooler(connection)
    try:
        with tempfile.TemporaryDirectory(prefix=".backup-", dir=path.parent) as folder:
            return _write(path, Path(folder), with_secrets=with_secrets)
    except OSError as error:
        raise PartFailed(f"No backup was made: {error}") from error


def _write(path: Path, folder: Path, *, with_secrets: bool) -> Manifest:
    """Write the backup's parts into a folder beside it, then the whole at its path."""
    dump, whole = folder / DUMP, folder / "backup.tar"
    with _snapshot() as (snapshot, facts):
        _run(
            "pg_dump",
            ["--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}", f"--file={dump}"],
        )
    parts = _secrets() if with_secrets else {}
    digests = _digests(dump, parts)
    manifest = Manifest(FORMAT, settings.PRODUCT_VERSION, datetime.now(UTC).isoformat(), parts=digests, **facts)
    whole.touch(mode=0o600)
    with whole.open("wb") as file, tarfile.open(fileobj=file, mode="w") as archive:
        _add(archive, MANIFEST, json.dumps(asdict(manifest), indent=1).encode())
        for name, text in parts.items():
            _add(archive, name, text)
        archive.add(dump, DUMP, filter=_plain)
        file.flush()
        os.fsync(file.fileno())
    os.link(whole, path)  # fails if another backup of that name was made meanwhile
    return manifest


def read_manifest(archive: tarfile.TarFile) -> Manifest:
    """Return the manifest of an open backup. Raises InvalidInput for anything else."""
    try:
        values = json.loads(_member(archive, MANIFEST).read(16 * _BLOCK))
        manifest = Manifest(**{**values, "migrations": tuple(values["migrations"])})
    except (KeyError, TypeError, ValueError, tarfile.TarError) as error:
        raise InvalidInput(f"This is not a backup: {MANIFEST} is missing or can't be read ({error}).") from error
    if DUMP not in manifest.parts:
        raise InvalidInput(f"This is not a backup: {MANIFEST} has no SHA-256 of {DUMP}.")
    if manifest.format != FORMAT:
        raise InvalidInput(f"The backup has format {manifest.format}; this version reads format {FORMAT}.")
    return manifest


def restore(path: Path, *, key_file: Path | None = None) -> Manifest:
    """Restore a backup into the empty database of the settings; return its manifest once everything agrees with it.

    The secrets go into SECRETS_DIR, the key of sessions into `key_file`, its fallbacks beside it; none replaces another
    content. An older backup is migrated. Raises InvalidInput for a damaged file or one of a newer version, WrongState if
    something is in the way, a pooler is in between or something doesn't agree afterwards, PartMissing, PartFailed.
    """
    refuse_pooler(connection)
    try:
        with tempfile.TemporaryDirectory(prefix="restore-") as folder:
            manifest, dump, texts = _unpacked(path, Path(folder))
            places = _places(texts, key_file)
            _refuse_filled()
            script = Path(folder) / "database.sql"
            _run("pg_restore", ["--no-owner", "--no-privileges", f"--file={script}", str(dump)])
            remove_transaction_timeout(script)
            _run(
                "psql", ["--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1", f"--file={script}"]
            )
    except OSError as error:
        raise PartFailed(f"Nothing was restored: {error}") from error
    call_command("migrate", interactive=False, verbosity=0)
    _compare(manifest)
    for place, text in places.items():
        write_private(place, text.decode())
    return manifest


def _unpacked(path: Path, folder: Path) -> tuple[Manifest, Path, dict[str, bytes]]:
    """Return a backup's manifest, the file of its dump and its secrets, after a comparison with the manifest."""
    try:
        archive = tarfile.open(path)  # noqa: SIM115  closed below
    except (OSError, tarfile.TarError) as error:
        raise InvalidInput(f"{path} can't be read as a backup: {error}") from error
    with archive:
        manifest = read_manifest(archive)
        _refuse_newer(manifest)
        dump = folder / DUMP
        with dump.open("wb") as target:
            shutil.copyfileobj(_member(archive, DUMP), target, _BLOCK)
        texts = {name: _member(archive, name).read() for name in manifest.parts if name != DUMP}
    found = _digests(dump, texts)
    for name, digest in manifest.parts.items():
        if found[name] != digest:
            raise InvalidInput(f"{name} in {path} is damaged: its SHA-256 isn't the one in the manifest.")
    return manifest, dump, texts


@contextmanager
def _snapshot() -> Iterator[tuple[str, dict[str, Any]]]:
    """Hold a snapshot that pg_dump can use, and read the manifest's figures in it."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT pg_export_snapshot()")
        (snapshot,) = cursor.fetchone()
        yield snapshot, {"migrations": _migrations(), "rows": _rows(), "audit_head": str(head())}


def _migrations() -> tuple[str, ...]:
    return tuple(sorted(f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations()))


def _rows() -> dict[str, int]:
    with connection.cursor() as cursor:
        counts = {}
        for table in COUNTED:
            cursor.execute(f"SELECT count(*) FROM {table}")  # noqa: S608  a constant
            counts[table] = int(cursor.fetchone()[0])
        return counts


def _secrets() -> dict[str, bytes]:
    """Return the secrets of outgoing calls and the key of sessions and webhooks, by their names in the archive."""
    folder = settings.SECRETS_DIR
    files = sorted(file for file in folder.iterdir() if file.is_file()) if folder and folder.is_dir() else []
    found = {f"{SECRETS}{file.name}": file.read_bytes() for file in files}
    if settings.SECRET_KEY_FALLBACKS:
        found[FALLBACKS] = ",".join(settings.SECRET_KEY_FALLBACKS).encode()
    return {KEY: settings.SECRET_KEY.encode(), **found} if settings.HAS_SECRET_KEY else found


def _places(texts: Mapping[str, bytes], key_file: Path | None) -> dict[Path, bytes]:
    """Return where each secret goes. Raises WrongState if there is no place, or one with another content."""
    places: dict[Path, bytes] = {}
    for name, text in texts.items():
        if name in (KEY, FALLBACKS):
            place = key_file and key_file.with_name(key_file.name + name.removeprefix(KEY))
        elif settings.SECRETS_DIR and Path(name).name == name.removeprefix(SECRETS):
            place = settings.SECRETS_DIR / Path(name).name
        else:
            raise WrongState(f"The backup has {name}. Set SCHEMADESK_SECRETS_DIR to the folder of secrets.")
        if place is not None and place.exists() and place.read_bytes().strip() not in (b"", text.strip()):
            raise WrongState(f"{place} exists with another content than in the backup. Move it away.")
        if place is not None and not os.access(place.parent, os.W_OK):
            raise WrongState(f"{place} can't be written. Create its folder, or run the command as its owner.")
        if place is not None:
            places[place] = text
    return places


def _refuse_newer(manifest: Manifest) -> None:
    present = MigrationLoader(None).disk_migrations
    replaced = (name for migration in present.values() for name in migration.replaces)
    known = {f"{app}.{name}" for app, name in (*present, *replaced)}
    if newer := sorted(set(manifest.migrations) - known):
        raise InvalidInput(
            f"The backup was made by a newer version ({manifest.version}): it has the migration {newer[0]}. Restore it "
            "with that version."
        )


def _refuse_filled() -> None:
    if tables := connection.introspection.table_names():
        raise WrongState(
            f"The database {connection.settings_dict['NAME']} has {len(tables)} tables. Restore into an empty one: "
            "CREATE DATABASE … OWNER, then set DATABASE_OWNER_URL and DATABASE_URL to it."
        )


def _compare(manifest: Manifest) -> None:
    """Raise WrongState if the database isn't the one that was backed up."""
    rows = _rows()
    if different := [table for table, count in manifest.rows.items() if rows.get(table) != count]:
        raise WrongState(
            f"The restored {different[0]} has {rows.get(different[0])} rows instead of {manifest.rows[different[0]]}."
        )
    chain = verify()
    if chain.problem or str(chain.head) != manifest.audit_head:
        raise WrongState(f"The restored audit isn't the one in the backup: {chain.problem or chain.head}")


def remove_transaction_timeout(script: Path) -> None:
    """Make the setting that programs from 17 write at the start of a script a comment: older servers refuse it."""
    with script.open("r+b") as file:
        before, found, rest = file.read(4096).partition(_BEFORE_TIMEOUT)
        if rest.startswith(b"SET transaction_timeout = 0;\n"):
            file.seek(len(before + found))
            file.write(b"-- ")


def _environment() -> dict[str, str]:
    values = connection.get_connection_params()
    return {variable: str(values[name]) for name, variable in _VARIABLES.items() if values.get(name) not in (None, "")}


def _run(program: str, arguments: Sequence[str]) -> None:
    """Run one of PostgreSQL's programs, which must be as new as the server or newer."""
    on_path = shutil.which(program)
    embedded = find_programs().folder / program
    command = str(embedded) if embedded.exists() else on_path
    if command is None:
        raise PartMissing(f"{program} isn't installed. Install PostgreSQL's client programs.")
    done = subprocess.run(
        [command, *arguments], env={**os.environ, **_environment()}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise PartFailed(f"{program} failed: {done.stderr.strip()[-1000:]}")


def _digests(dump: Path, texts: Mapping[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of each part by its name."""
    with dump.open("rb") as file:
        whole = hashlib.file_digest(file, "sha256").hexdigest()
    return {DUMP: whole, **{name: hashlib.sha256(text).hexdigest() for name, text in texts.items()}}


def _add(archive: tarfile.TarFile, name: str, text: bytes) -> None:
    entry = _plain(tarfile.TarInfo(name))
    entry.size = len(text)
    archive.addfile(entry, io.BytesIO(text))


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mode, entry.uid, entry.gid, entry.uname, entry.gname = 0o600, 0, 0, "", ""
    return entry


def _member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    file = archive.extractfile(name) if name in archive.getnames() else None
    if file is None:
        raise InvalidInput(f"This is not a backup: it has no file {name}.")
    return file
