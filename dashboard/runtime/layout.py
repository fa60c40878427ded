"""Folders, addresses and ports of one `up` or one test session.

The data folder, the cache that clones share and the short folder of sockets; where each part keeps its files; and
ports on the loopback address, the same ones again at the next start.
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
        status = path.lstat()
    except OSError as error:
        raise ServiceError(f"Folder {path} can't be created: {error.strerror}. Use another folder.") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise ServiceError(f"{path} is not a folder owned by this user. Remove it, or use another folder.")
    if status.st_mode & 0o077:
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
    raise ServiceError("No folder with a path short enough for sockets found. Set XDG_RUNTIME_DIR to one.")


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
    """For tests: nobody reads along."""


@dataclass(frozen=True)
class Layout:
    """The folders of one set of parts, its watchdog, and the addresses that were found for it.

    `ports` maps the names in `PORTS` to numbers; `product` is what our own programs find in their environment besides
    that of this process; `say` tells people what a part is doing.
    """

    data: Path
    sockets: Path
    watchdog: Watchdog
    # Tests trade durability for speed: what they keep is thrown away.
    durable: bool = True
    ports: Mapping[str, int] = field(default_factory=dict)
    product: Mapping[str, str] = field(default_factory=dict)
    say: Callable[[str, str], None] = _silent

    @classmethod
    def at(cls, data: Path, watchdog: Watchdog, **more: Any) -> Layout:
        """The layout under `data`, which is made if needed. Raises ServiceError when it can't be."""
        data = private_folder(data.absolute())
        private_folder(data / "logs")
        return cls(data, socket_folder(data), watchdog, **more)

    def log(self, part: str) -> Path:
        """The file that takes what `part` prints."""
        return self.data / "logs" / f"{part}.log"

    def turn_log(self, part: str) -> None:
        """Begins a fresh log; the last one stays as `….log.1`."""
        log = self.log(part)
        if log.exists():
            log.replace(log.with_suffix(".log.1"))

    def trim_log(self, part: str, limit: int = 32 * 1024 * 1024) -> None:
        """Empties a log of more than `limit` bytes while it is written; its last megabyte stays as `….log.1`."""
        log = self.log(part)
        if not log.exists() or log.stat().st_size <= limit:
            return
        with log.open("r+b") as file:
            file.seek(-KEEP_OF_LOG, os.SEEK_END)
            log.with_suffix(".log.1").write_bytes(file.read())
            # Its writer appends (O_APPEND), so it goes on at the new end.
            file.truncate(0)

    def folder(self, name: str) -> Path:
        """A private folder of a part, made if needed."""
        return private_folder(self.data / name)

    def secret(self, name: str) -> str:
        """A secret of this data folder, made at the first call."""
        return kept_secret(self.folder("secrets") / name)

    def plain_environment(self) -> dict[str, str]:
        """What a program that isn't ours gets to see: no address or secret of the other parts."""
        names = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "SHELL", "LD_LIBRARY_PATH")
        return {name: os.environ[name] for name in names if name in os.environ}

    def own_environment(self) -> dict[str, str]:
        """What our own programs get to see: this process's environment, and where the parts are.

        An empty address says that the part was left out, whatever the environment says of it.
        """
        inherited = {name: value for name, value in os.environ.items() if name not in self.product}
        return {**inherited, **{name: value for name, value in self.product.items() if value}, "PYTHONUNBUFFERED": "1"}


LOOPBACK = "127.0.0.1"


def is_free(port: int) -> bool:
    """Whether nobody listens on the port of the loopback address and this user may."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except (OSError, OverflowError):
            return False
    # macOS lets one bind beside a program that listens on all addresses.
    return not answers(port)


def answers(port: int) -> bool:
    """Whether somebody accepts connections on the port."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1):
            return True
    except OSError:
        return False


#: what a server of HTTP answers, whatever it says; and what one of gRPC answers: HTTP/2's preface with empty settings
HTTP_HELLO = b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n"
GRPC_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


def reply(port: int, hello: bytes, *, seconds: float = 30.0) -> str | None:
    """The port, if a program there sends anything back: the kernel accepts connections for one that hangs too."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=seconds) as connection:
            connection.sendall(hello)
            return f"port {port}" if connection.recv(1) else None
    except OSError:
        return None


def free_port(but: Iterable[int] = ()) -> int:
    """A port that is free now and none of `but`."""
    avoided = set(but)
    while True:
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            port = int(probe.getsockname()[1])
        if port not in avoided:
            return port


def kept_ports(data: Path, names: Iterable[str]) -> dict[str, int]:
    """A free port for each name: those of the last start (kept in `data`) where they still are free."""
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
    """The web server's port and a sentence about it, empty when there is nothing to say.

    Raises PortTaken when the port that was asked for is in use.
    """
    if requested is not None:
        if not is_free(requested):
            raise PortTaken(f"Port {requested} is in use by another program. Use another port with --port.")
        return requested, ""
    if is_free(usual):
        return usual, ""
    port = free_port()
    return port, f"port {usual} is in use by another program; using port {port}"
