"""Ports on the loopback address: whether one is free, and the same ones again at the next start."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable
from pathlib import Path

from dashboard.services.errors import PortTaken
from dashboard.services.folders import write_private

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
        known = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        known = None
    known = known if isinstance(known, dict) else {}
    found: dict[str, int] = {}
    for name in names:
        port = known.get(name)
        if not isinstance(port, int) or port in found.values() or not is_free(port):
            port = free_port(found.values())
        found[name] = port
    write_private(path, json.dumps({**known, **found}))
    return found


def web_port(asked: int | None, usual: int) -> tuple[int, str]:
    """The web server's port and a sentence about it, empty when there is nothing to say.

    Raises PortTaken when the port that was asked for is in use.
    """
    if asked is not None:
        if not is_free(asked):
            raise PortTaken(f"Port {asked} is in use by another program; give another one with --port.")
        return asked, ""
    if is_free(usual):
        return usual, ""
    port = free_port()
    return port, f"port {usual} is in use by another program; {port} it is"
