"""The folders, addresses and ports of an `up` or a test session.

These are the data folder, the cache shared by clones, the short folder for sockets, each part's files, and loopback
ports, which stay the same at the next start.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dashboard.runtime import PortTaken, ServiceError
from dashboard.runtime.process import Watchdog

# A Unix socket's path is limited to 108 bytes on Linux and 104 on macOS, with the final NUL.
SOCKET_PATH_LIMIT = 103
LONGEST_SOCKET_NAME = ".s.PGSQL.65535.lock"
# 64 characters: Django's `check --deploy` requires 50 for the secret key.
SECRET_BYTES = 48


def default_data_folder() -> Path:
    """Return the data folder without `--data`: $SCHEMADESK_DATA, else one in the user's data directory."""
    if named := os.environ.get("SCHEMADESK_DATA"):
        return Path(named).expanduser().absolute()
    return _user_folder("XDG_DATA_HOME", ".local/share", "Library/Application Support")


def cache_folder() -> Path:
    """Return the folder for downloads (jars): $SCHEMADESK_CACHE, else one in the user's cache directory."""
    if named := os.environ.get("SCHEMADESK_CACHE"):
        return Path(named).expanduser().absolute()
    return _user_folder("XDG_CACHE_HOME", ".cache", "Library/Caches")


def _user_folder(variable: str, elsewhere: str, macos: str) -> Path:
    if sys.platform == "darwin":
        return Path.home() / macos / "schemadesk"
    base = os.environ.get(variable, "")
    # The XDG specification says that relative paths in these variables must be ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / elsewhere) / "schemadesk"


def private_folder(path: Path) -> Path:
    """Create `path` and its parents if needed, only for this user, and return it.

    Raises ServiceError if it is a link, belongs to somebody else or can't be created.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise ServiceError(f"Folder {path} can't be created: {error.strerror}. Use another folder.") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise ServiceError(f"{path} is not a folder owned by this user. Remove it, or use another folder.")
    if status.st_mode & 0o077:
        path.chmod(0o700)
    return path


def socket_folder(data: Path) -> Path:
    """Return a short private folder for the sockets of the parts with data in `data`; the same at each start.

    Raises ServiceError if no folder's path is short enough for a socket.
    """
    digest = hashlib.sha256(os.fsencode(data.resolve())).hexdigest()[:10]
    # TMPDIR is often too long (macOS); /tmp is safe because the folder must be this user's and private.
    bases = [Path(os.environ.get("XDG_RUNTIME_DIR", "")), Path("/tmp"), Path(tempfile.gettempdir())]  # noqa: S108
    for base in bases:
        path = base / f"schemadesk-{os.geteuid()}" / digest
        fits = len(os.fsencode(path / LONGEST_SOCKET_NAME)) <= SOCKET_PATH_LIMIT
        if base.is_absolute() and base.is_dir() and os.access(base, os.W_OK) and fits:
            return private_folder(private_folder(path.parent) / path.name)
    raise ServiceError("No folder with a path short enough for sockets found. Set XDG_RUNTIME_DIR to one.")


def write_private(path: Path, text: str) -> None:
    """Write `text` to `path` atomically with mode 0600."""
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
    """Return the secret in `path`, created at the first call (`SECRET_BYTES` random bytes, mode 0600)."""
    try:
        if secret := path.read_text(encoding="utf-8").strip():
            return secret
    except FileNotFoundError:
        pass
    fresh = secrets.token_urlsafe(SECRET_BYTES)
    write_private(path, fresh + "\n")
    return fresh


PROJECT = Path(__file__).resolve().parents[2]
KEEP_OF_LOG = 1024 * 1024


def _silent(part: str, text: str) -> None:
    """Discard messages, for tests."""


@dataclass(frozen=True)
class Layout:
    """The folders of a set of parts, its watchdog, and their addresses.

    `ports` maps names in `PORTS` to numbers; `product` are variables for our own programs in addition to this process's
    environment; `say` shows what a part is doing.
    """

    data: Path
    sockets: Path
    watchdog: Watchdog
    # Tests trade durability for speed, because they discard their data.
    durable: bool = True
    ports: Mapping[str, int] = field(default_factory=dict)
    product: Mapping[str, str] = field(default_factory=dict)
    say: Callable[[str, str], None] = _silent

    @classmethod
    def at(cls, data: Path, watchdog: Watchdog, **more: Any) -> Layout:
        """Return the layout under `data`, which is created if needed. Raises ServiceError if that fails."""
        data = private_folder(data.absolute())
        private_folder(data / "logs")
        return cls(data, socket_folder(data), watchdog, **more)

    def log(self, part: str) -> Path:
        """Return the log file of `part`."""
        return self.data / "logs" / f"{part}.log"

    def rotate_log(self, part: str) -> None:
        """Start a new log; the last one is kept as `….log.1`."""
        log = self.log(part)
        if log.exists():
            log.replace(log.with_suffix(".log.1"))

    def trim_log(self, part: str, limit: int = 32 * 1024 * 1024) -> None:
        """Empty an open log of more than `limit` bytes; its last megabyte is kept as `….log.1`."""
        log = self.log(part)
        if not log.exists() or log.stat().st_size <= limit:
            return
        with log.open("r+b") as file:
            file.seek(-KEEP_OF_LOG, os.SEEK_END)
            log.with_suffix(".log.1").write_bytes(file.read())
            # Its writer uses O_APPEND, so it continues at the new end.
            file.truncate(0)

    def folder(self, name: str) -> Path:
        """Return a private folder of a part, created if needed."""
        return private_folder(self.data / name)

    def secret(self, name: str) -> str:
        """Return a secret of this data folder, created at the first call."""
        return kept_secret(self.folder("secrets") / name)

    def plain_environment(self) -> dict[str, str]:
        """Return the environment of third-party programs, without addresses and secrets of other parts."""
        names = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "SHELL", "LD_LIBRARY_PATH")
        return {name: os.environ[name] for name in names if name in os.environ}

    def own_environment(self) -> dict[str, str]:
        """Return the environment of our own programs: this process's, and the addresses of the parts.

        An empty address means that the part is omitted, even if the environment names one.
        """
        inherited = {name: value for name, value in os.environ.items() if name not in self.product}
        return {**inherited, **{name: value for name, value in self.product.items() if value}, "PYTHONUNBUFFERED": "1"}


LOOPBACK = "127.0.0.1"


def is_free(port: int) -> bool:
    """Return whether nobody listens on the loopback port and this user may bind it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except (OSError, OverflowError):
            return False
    # macOS allows binding although a program listens on all addresses.
    return not answers(port)


def answers(port: int) -> bool:
    """Return whether a program accepts connections on the port."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1):
            return True
    except OSError:
        return False


#: a request that any HTTP server answers; and one for gRPC: HTTP/2's preface with empty settings
HTTP_HELLO = b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n"
GRPC_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


def reply(port: int, hello: bytes, *, seconds: float = 30.0) -> str | None:
    """Return the port if a program there replies; the kernel accepts connections even for a hanging one."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=seconds) as connection:
            connection.sendall(hello)
            return f"port {port}" if connection.recv(1) else None
    except OSError:
        return None


def free_port(but: Iterable[int] = ()) -> int:
    """Return a free port that isn't in `but`."""
    avoided = set(but)
    while True:
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            port = int(probe.getsockname()[1])
        if port not in avoided:
            return port


def kept_ports(data: Path, names: Iterable[str]) -> dict[str, int]:
    """Return a free port for each name: that of the last start (stored in `data`) if it is still free."""
    path = data / "ports.json"
    try:
        last_ports = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        last_ports = None
    last_ports = last_ports if isinstance(last_ports, dict) else {}
    ports: dict[str, int] = {}
    for name in names:
        port = last_ports.get(name)
        if not isinstance(port, int) or port in ports.values() or not is_free(port):
            port = free_port(ports.values())
        ports[name] = port
    write_private(path, json.dumps({**last_ports, **ports}))
    return ports


def web_port(requested: int | None, usual: int) -> tuple[int, str]:
    """Return the web server's port and a message about it, possibly empty.

    Raises PortTaken if the requested port is in use.
    """
    if requested is not None:
        if not is_free(requested):
            raise PortTaken(f"Port {requested} is in use by another program. Use another port with --port.")
        return requested, ""
    if is_free(usual):
        return usual, ""
    port = free_port()
    return port, f"port {usual} is in use by another program; using port {port}"
