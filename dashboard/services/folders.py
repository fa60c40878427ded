"""Where things are kept: the data folder, the cache shared by clones, and the short folder of sockets."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import sys
import tempfile
from pathlib import Path

from dashboard.services.errors import ServiceError

# A Unix socket's address has 108 bytes on Linux and 104 on macOS, with the final NUL.
SOCKET_PATH_LIMIT = 103
LONGEST_SOCKET_NAME = ".s.PGSQL.65535.lock"
# 64 characters: Django's `check --deploy` asks for 50 of the key that signs.
SECRET_BYTES = 48


def default_data_folder() -> Path:
    """The folder of `up` when `--data` isn't given: $SCHEMADESK_DATA, else one in the user's data directory."""
    if named := os.environ.get("SCHEMADESK_DATA"):
        return Path(named).expanduser().absolute()
    return _user_folder("XDG_DATA_HOME", ".local/share", "Library/Application Support")


def cache_folder() -> Path:
    """What can be fetched again (jars): $SCHEMADESK_CACHE, else a folder in the user's cache directory."""
    if named := os.environ.get("SCHEMADESK_CACHE"):
        return Path(named).expanduser().absolute()
    return _user_folder("XDG_CACHE_HOME", ".cache", "Library/Caches")


def _user_folder(variable: str, elsewhere: str, macos: str) -> Path:
    if sys.platform == "darwin":
        return Path.home() / macos / "schemadesk"
    base = os.environ.get(variable, "")
    # The XDG specification says that a relative path in these variables is to be ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / elsewhere) / "schemadesk"


def private_folder(path: Path) -> Path:
    """Makes `path` (and its parents) if needed, for this user alone, and gives it back.

    Raises ServiceError when it is a link, belongs to somebody else or can't be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise ServiceError(f"The folder {path} can't be made: {error.strerror}. Name another one.") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise ServiceError(f"{path} is not a folder of this user; remove it, or name another one.")
    if found.st_mode & 0o077:
        path.chmod(0o700)
    return path


def socket_folder(data: Path) -> Path:
    """A short private folder for the sockets of the parts that keep their data in `data`; the same at each start.

    Raises ServiceError when no folder is short enough for a socket's address.
    """
    digest = hashlib.sha256(os.fsencode(data.resolve())).hexdigest()[:10]
    # TMPDIR is often too long (macOS); /tmp is safe because the folder must be this user's own and closed to others.
    bases = [Path(os.environ.get("XDG_RUNTIME_DIR", "")), Path("/tmp"), Path(tempfile.gettempdir())]  # noqa: S108
    for base in bases:
        path = base / f"schemadesk-{os.geteuid()}" / digest
        fits = len(os.fsencode(path / LONGEST_SOCKET_NAME)) <= SOCKET_PATH_LIMIT
        if base.is_absolute() and base.is_dir() and os.access(base, os.W_OK) and fits:
            return private_folder(private_folder(path.parent) / path.name)
    raise ServiceError("No folder with a short path for sockets was found; set XDG_RUNTIME_DIR to one.")


def write_private(path: Path, text: str) -> None:
    """Writes `text` to `path` with mode 0600, whole or not at all."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def kept_secret(path: Path) -> str:
    """The secret in `path`; made at the first call (`SECRET_BYTES` random bytes, mode 0600) and the same ever after."""
    try:
        if found := path.read_text(encoding="utf-8").strip():
            return found
    except FileNotFoundError:
        pass
    fresh = secrets.token_urlsafe(SECRET_BYTES)
    write_private(path, fresh + "\n")
    return fresh
