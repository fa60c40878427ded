"""Hosts on one Linux machine: each has its own network, processes and file system, which nothing outside sees.

A host is a process that holds namespaces. What is written to /etc, /var, /opt and /run stays in memory and goes with it,
so that an operator's commands can run as they are. The bridge between the hosts is in a namespace of its own too.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar

from dashboard.runtime import PartMissing, valkey
from dashboard.runtime.postgres import find_programs
from tests.migrated_database import ROOT
from tests.waiting import until

T = TypeVar("T")
CLONE_NEWNET: Final = 0x40000000
NOWHERE: Final = "02:00:00:00:00:99"  # a hardware address that no host has
#: ends with the test, even if that is killed
HOLDER: Final = ("setpriv", "--pdeathsig=KILL", "--", "unshare", "--fork", "--kill-child")
REAPING: Final = "while :; do sleep 3600; done"  # a shell as the first process collects those that lost their parent
OWN_FILES: Final = """\
mount -t tmpfs -o mode=755 own /mnt
mkdir -p /mnt/closed
for folder in etc var opt; do
    mkdir -p "/mnt/$folder" "/mnt/$folder.work"
    mount -t overlay -o "lowerdir=/$folder,upperdir=/mnt/$folder,workdir=/mnt/$folder.work" own "/$folder"
done
mount -t tmpfs -o mode=755 own /run
hostname "$NAME"
"""
SYSTEM: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@lru_cache(maxsize=1)
def variables_of_a_host() -> Mapping[str, str]:
    """What every program gets, with the paths of PostgreSQL and Valkey. Raises PartMissing."""
    return {
        "PATH": f"{find_programs().folder}:{SYSTEM}:/opt", "VALKEY": valkey.find_program(), "HOME": "/root", "LC_ALL": "C.UTF-8",
        "PGHOST": "/run/postgresql", "PGDATA": "/var/lib/postgresql/main",
    }  # fmt: skip


@lru_cache(maxsize=1)
def missing() -> str:
    """Why the hosts can't be made here; empty if they can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "namespaces need Linux and root"
    needed = ("ip", "nsenter", "unshare", "setpriv", "runuser", "nginx", "pgbouncer", "openssl", "curl", "bash")
    if absent := [name for name in needed if shutil.which(name, path=SYSTEM) is None]:
        return f"not on PATH: {', '.join(absent)}"
    try:
        variables_of_a_host()
    except PartMissing as error:
        return str(error)
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "--pid", "--fork", "sh", "-c", "mount -t tmpfs own /mnt"],
        capture_output=True, check=False,
    )  # fmt: skip
    return "this machine forbids namespaces" if tried.returncode else ""


@dataclass(frozen=True)
class Host:
    """A host by its name and address; `pid` is the first process of its namespaces."""

    name: str
    address: str
    pid: int

    def words(self, *argv: str) -> list[str]:
        """The command that runs these words there."""
        return ["nsenter", f"--target={self.pid}", "--mount", "--uts", "--net", "--pid", "--", *argv]

    def run(self, script: str, given: str = "", **variables: str) -> str:
        """What a script of bash writes that runs in the checkout, with that input; fails if it does."""
        done = subprocess.run(
            self.words("bash", "-euo", "pipefail", "-c", f"cd {ROOT}\n{script}"),
            env={**variables_of_a_host(), **variables},
            input=given, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, f"on {self.name}: {script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def start(self, script: str, log: Path, **variables: str) -> subprocess.Popen[bytes]:
        """A program that runs until it is ended."""
        with log.open("ab") as file:
            return subprocess.Popen(
                self.words("bash", "-euc", script), env={**variables_of_a_host(), **variables},
                stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            )  # fmt: skip

    def write(self, path: str, text: str, mode: str = "644") -> None:
        """A file there, or new content of one, with its owner."""
        self.run(f'mkdir -p "$(dirname {path})"; printf %s "$TEXT" > {path}; chmod {mode} {path}', TEXT=text)

    def enter(self) -> None:
        """This thread opens its connections from that host from here on."""
        with Path(f"/proc/{self.pid}/ns/net").open() as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")

    def inside(self, work: Callable[[], T]) -> T:
        """What a function gives whose connections come from there."""
        results: list[T] = []

        def run() -> None:
            self.enter()
            results.append(work())

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert results, "it failed in its thread"
        return results[0]


@dataclass(frozen=True)
class Network:
    """The hosts by name."""

    hosts: Mapping[str, Host]

    def __getitem__(self, name: str) -> Host:
        return self.hosts[name]

    def cut(self, one: str, other: str) -> None:
        """Lose every packet between two hosts, in both directions, without a word to either."""
        for host, peer in ((one, other), (other, one)):
            address = self[peer].address
            self[host].run(f"ip neigh replace {address} lladdr {NOWHERE} dev eth0 nud permanent")

    def join(self, one: str, other: str) -> None:
        """Undo the cut."""
        for host, peer in ((one, other), (other, one)):
            self[host].run(f"ip neigh del {self[peer].address} dev eth0")


@contextmanager
def network(addresses: Mapping[str, str], shared: Mapping[str, Path]) -> Iterator[Network]:
    """Hosts with these names and addresses; each sees the folders of `shared` at their paths there."""
    holders: list[subprocess.Popen[Any]] = []
    try:
        switch = _first_process(holders, "--net", "--pid", script=REAPING)
        _in_network(switch, "ip link add bridge0 type bridge && ip link set bridge0 up")
        hosts = {}
        for name, address in addresses.items():
            pid = _first_process(
                holders, "--net", "--mount", "--uts", "--pid", "--mount-proc",
                script=_files(shared) + REAPING, NAME=name,
            )  # fmt: skip
            _in_network(switch, f"ip link add name {name} type veth peer name eth0 netns {pid}")
            _in_network(switch, f"ip link set dev {name} master bridge0 up")
            _in_network(pid, f"ip link set lo up; ip addr add {address}/24 dev eth0; ip link set eth0 up")
            hosts[name] = Host(name, address, pid)
        names = "".join(f"{address} {name}\n" for name, address in addresses.items())
        for host in hosts.values():
            until(lambda host=host: host.run("ls /run/*.ready 2>/dev/null || true"), pause=0.05)
            host.write("/etc/hosts", f"127.0.0.1 localhost\n{names}")
        yield Network(hosts)
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()


def _first_process(holders: list[subprocess.Popen[Any]], *namespaces: str, script: str, **variables: str) -> int:
    holder = subprocess.Popen(
        [*HOLDER, *namespaces, "sh", "-euc", script], env={"PATH": SYSTEM, **variables}, stdin=subprocess.DEVNULL
    )
    holders.append(holder)
    children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children")
    until(lambda: holder.poll() is None and children.read_text().split())
    return int(children.read_text().split()[0])


def _in_network(pid: int, script: str) -> None:
    subprocess.run(["nsenter", f"--target={pid}", "--net", "sh", "-euc", script], check=True)


def _files(shared: Mapping[str, Path]) -> str:
    """The commands that give a host files of its own, and show it these folders."""
    lines = [OWN_FILES]
    lines += [f"mkdir -p {place}; mount --bind {folder} {place}" for place, folder in shared.items()]
    for number, path in enumerate((Path(sys.base_prefix).resolve(), ROOT)):
        closed = next((each for each in (*reversed(path.parents), path) if not each.stat().st_mode & 1), None)
        if closed:  # as root's home: other users see only this path in it
            kept = f"/mnt/closed/{number}"
            lines += [f"mkdir {kept}; mount --bind {closed} {kept}", f"mount -t tmpfs -o mode=755 own {closed}",
                      f"mkdir -p {path}; mount --bind {kept}/{path.relative_to(closed)} {path}"]  # fmt: skip
    return "\n".join([*lines, "touch /run/host.ready", ""])
