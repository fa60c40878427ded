"""The CPU time of a server's processes, as the operating system counts it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dashboard.bench.registry_client import Target
from registry.errors import RemoteUnavailable

try:
    import psutil
except ImportError:  # it comes with the packages of the tests
    psutil = None

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - what a server that listens on all addresses is listed with


def server_pids(target: Target) -> tuple[int, ...] | None:
    """The roots of the processes that listen where the registry is; None where that isn't known.

    It isn't for a registry that isn't on this machine, or whose processes belong to somebody else; nor without psutil.
    """
    if psutil is None or not target.is_here:
        return None
    places, port = {*target.places(), *EVERYWHERE}, target.address[1]
    try:
        sockets = [each for each in psutil.net_connections("tcp") if _listens(each, port)]
    except psutil.Error:
        return None
    pids = {each.pid for each in sockets if each.laddr.ip.removeprefix("::ffff:") in places}
    if not pids or None in pids:
        return None
    roots = {_root(psutil.Process(pid), port) for pid in pids}
    # A server in this very process can't be told from the one that measures it.
    return None if psutil.Process().pid in roots else tuple(sorted(roots))


def _listens(connection: Any, port: int) -> bool:
    return bool(connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port)


def _root(process: psutil.Process, port: int) -> int:
    """The topmost process that has the socket: workers inherit it from the one that started them."""
    try:
        while (parent := process.parent()) and any(_listens(each, port) for each in parent.net_connections("tcp")):
            process = parent
    except psutil.Error:
        pass  # a parent of somebody else's is none of the server's
    return int(process.pid)


def cpu_of(target: Target) -> tuple[float | None, float | None]:
    """The CPU seconds until now of a registry's processes and of its database's; None where nobody knows.

    Raises RemoteUnavailable where a process is gone or may not be read.
    """
    if psutil is None:
        return None, None
    try:
        server = None if target.pids is None else cpu_seconds(target.pids, target.database_pids)
        return server, cpu_seconds(target.database_pids) if target.database_pids else None
    except psutil.Error as error:
        raise RemoteUnavailable(f"{target.url}: the CPU time of its processes can't be read: {error}") from error


def cpu_seconds(roots: Sequence[int], leaving_out: Iterable[int] = ()) -> float:
    """User and system time of the processes with all their descendants, those that have ended included.

    What is below `leaving_out` doesn't count. Raises psutil.Error where a root is gone or may not be read.
    """
    without = _below(leaving_out)
    total = 0.0
    # The deepest first: one that ends meanwhile is counted by its parent, which has waited for it.
    for pid, process in reversed(_below(roots).items()):
        if pid in without:
            continue
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            if pid in roots:
                raise
            continue
        ended = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
        total += times.user + times.system + ended
    return total


def _below(roots: Iterable[int]) -> dict[int, psutil.Process]:
    found: dict[int, psutil.Process] = {}
    for root in roots:
        process = psutil.Process(root)
        found |= {each.pid: each for each in (process, *process.children(recursive=True))}
    return found
