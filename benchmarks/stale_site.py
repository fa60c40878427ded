"""Two hosts over one PostgreSQL and one Valkey, for `bench stale`, and the faults that happen to them.

A host is two web processes and a program that writes beside them, with a file of epochs and a way to Valkey of their
own. That program forks a process for each write, and lets some die at a chosen point of the commit.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import psutil

from benchmarks.endurance_site import SETUP, Keepers
from benchmarks.site import issued_token, product, signed_in
from dashboard.runtime.layout import Layout, free_port
from dashboard.runtime.parts import POSTGRES, VALKEY, WEB, Part
from dashboard.runtime.process import Command, Watchdog, run
from dashboard.runtime.programs import manage, migrate_command, prepare_command, web_command
from dashboard.runtime.valkey import socket_path

APPLICATION: Final = "dashboard.asgi:application"
#: forwards a host's connections to Valkey, and stalls them when told to
LINE: Final = """
import asyncio, sys
async def main(own, valkey):
    flows = asyncio.Event()
    flows.set()
    async def pump(reader, writer):
        try:
            while data := await reader.read(65536):
                await flows.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()
    async def accept(reader, writer):
        try:
            answers, asks = await asyncio.open_unix_connection(valkey)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, asks), pump(answers, writer))
    async with await asyncio.start_unix_server(accept, own):
        print("ready", flush=True)
        while line := await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
            (flows.clear if line == "stall\\n" else flows.set)()
asyncio.run(main(*sys.argv[1:]))
"""
#: a program of a host: one process per write, which dies at the step that its input names; lines of JSON in and out
WRITER: Final = """
import json, os, random, signal, sys, threading
import django
django.setup()
from django.db.backends.postgresql.base import DatabaseWrapper
from dashboard.response_cache.epoch import Generation
from dashboard.response_cache.hosts import Hosts
from registry.access.roles import system_actor
from registry.access.services import ensure_person, issue_token
from registry.subjects.services import set_config
from registry.subjects.versions.qualified_names import parse_subject
by = system_actor("stale", "command")
def config(subject, group):
    set_config(registry="dev", subject=parse_subject(subject), by=by, level="NONE", compatibility_group=group)
def person(name):
    ensure_person(username=name, role="reader", by=by)
    return secret(name)
def secret(name):
    return issue_token(username=name, name="stale", by=by)
def die():
    os.kill(os.getpid(), signal.SIGKILL)
POINTS = {"begin": Generation, "_commit": DatabaseWrapper, "end": Generation, "tell": Hosts, "others": Hosts, "_publish": Hosts}
def arm(point, when):
    do = getattr(POINTS[point], point)
    def dying(*arguments, **more):
        if when == "before":
            die()
        if when == "within":
            threading.Timer(random.uniform(0, 0.004), die).start()
        result = do(*arguments, **more)
        if when == "after":
            die()
        return result
    setattr(POINTS[point], point, dying)
for line in sys.stdin:
    action, arguments, death = json.loads(line)
    pid = os.fork()
    if not pid:
        if death:
            arm(*death)
        result = globals()[action](*arguments)
        print(json.dumps(["done", result]), flush=True)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    if status:
        print(json.dumps(["killed" if os.WIFSIGNALED(status) else "failed", None]), flush=True)
"""
CHANCE: Final = random.Random()  # noqa: S311 - nothing here is secret
POINTS: Final = ("begin", "_commit", "end", "tell", "others", "_publish")
WHEN: Final = ("before", "within", "after")


class Program:
    """A program that reads commands as lines."""

    def __init__(self, command: Command, log: Path) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command.argv, env=command.environment, cwd=command.folder, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip
        self._lock = threading.Lock()
        self.pid = self._process.pid

    def say(self, line: str) -> None:
        """Send a line."""
        assert self._process.stdin
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def read(self) -> str:
        """Return the next line."""
        assert self._process.stdout
        return self._process.stdout.readline()

    def do(self, action: str, *arguments: str, death: tuple[str, str] | None = None) -> tuple[str, Any]:
        """Return how an action ended (`done`, `killed`, `failed`), and its result."""
        with self._lock:
            self.say(json.dumps([action, arguments, death]))
            status, result = json.loads(self.read())
        return status, result

    def end(self) -> None:
        """Kill it."""
        self._process.kill()
        with self._process:
            pass


@dataclass
class Host:
    """A host: its layout, ports by the names of its web processes, its program, and its way to Valkey."""

    name: str
    layout: Layout
    ports: dict[str, int]
    writer: Program
    line: Program
    is_paused: bool = False
    is_cut: bool = False


@dataclass
class Site:
    """The hosts by name, an admin's token and the cookie of a session."""

    layout: Layout
    parts: Keepers
    token: str
    cookie: str
    hosts: dict[str, Host] = field(default_factory=dict)

    # -- faults; each returns when it is over --------------------------------------------------------------------------

    def kill_web(self) -> None:
        """`kill -9` of a web process in the middle of its work; its keeper starts it again."""
        name = CHANCE.choice([name for host in self.hosts.values() for name in host.ports])
        self._kill(max(self._tree(name), key=lambda process: int(process.memory_info().rss)), name)

    def restart_postgres(self) -> None:
        """A fast shutdown; the keeper starts it again."""
        self._signal("postgres", signal.SIGINT)

    def crash_postgres(self) -> None:
        """It ends at once and recovers when it starts again."""
        self._signal("postgres", signal.SIGQUIT)

    def kill_valkey(self) -> None:
        """`kill -9`; the keeper starts it again, with what it had written."""
        self._kill(self._tree("valkey")[0], "valkey")

    def stop_valkey(self) -> None:
        """It keeps its connections and answers nothing."""
        self._signal("valkey", signal.SIGSTOP)
        time.sleep(10)
        self._signal("valkey", signal.SIGCONT)

    def pause_host(self) -> None:
        """All programs of a host stand still."""
        host = list(self.hosts.values())[-1]
        writer = psutil.Process(host.writer.pid)
        self._pause(
            host, [*(process for name in host.ports for process in self._tree(name)), writer, *writer.children()]
        )

    def pause_web(self) -> None:
        """A web process stands still, whatever it is doing."""
        host = CHANCE.choice(list(self.hosts.values()))
        self._pause(host, self._tree(CHANCE.choice(list(host.ports))))

    def _pause(self, host: Host, processes: list[psutil.Process]) -> None:
        host.is_paused = True
        for process in processes:
            process.suspend()
        time.sleep(20)
        for process in processes:
            if process.is_running():
                process.resume()
        host.is_paused = False

    def cut_host(self) -> None:
        """A host's messages to and from Valkey arrive when it is over."""
        host = list(self.hosts.values())[-1]
        host.is_cut = True
        host.line.say("stall")
        time.sleep(15)
        host.line.say("flow")
        time.sleep(3)  # a write that began before may still end without Valkey
        host.is_cut = False

    def _signal(self, name: str, number: signal.Signals) -> None:
        self._tree(name)[0].send_signal(number)

    def _kill(self, process: psutil.Process, name: str) -> None:
        process.kill()
        time.sleep(2)
        self.parts.wait(name)

    def _tree(self, name: str) -> list[psutil.Process]:
        self.parts.wait(name)
        root = psutil.Process(self.parts.pid(name) or 0)
        return [root, *root.children(recursive=True)]


@contextmanager
def running_hosts(applications: Mapping[str, str], webs: int = 2) -> Iterator[Site]:
    """Run hosts (name → the application of its web processes), durable, in a scratch folder.

    Raises PartFailed, PartMissing.
    """
    watchdog = Watchdog()
    watchdog.start()
    with tempfile.TemporaryDirectory(prefix="schemadesk-bench-", ignore_cleanup_errors=True) as scratch:
        layout = Layout.at(Path(scratch) / "data", watchdog)
        layout.secret("django")
        layout = replace(layout, product=product(layout))
        site = Site(layout, Keepers(layout), "", "")
        try:
            site.parts.add({"valkey": (VALKEY, layout), "postgres": (POSTGRES, layout)})
            for command in (migrate_command(layout), prepare_command(layout)):
                run(command, layout.log("setup"), watchdog, seconds=SETUP)
            site.token, site.cookie = issued_token(layout, "admin"), signed_in(layout, "admin")
            taken: list[int] = []
            for name in applications:
                site.hosts[name] = _host(name, layout, webs, taken)
            site.parts.add({
                web: (_web(applications[host.name]), replace(host.layout, ports={"web": port}))
                for host in site.hosts.values() for web, port in host.ports.items()
            })  # fmt: skip
            yield site
        finally:
            site.parts.end()
            for host in site.hosts.values():
                host.writer.end()
                host.line.end()
            watchdog.close()
            shutil.rmtree(layout.sockets, ignore_errors=True)


def _host(name: str, layout: Layout, webs: int, taken: list[int]) -> Host:
    own = layout.sockets / f"valkey-{name}.sock"
    line = Program(Command([sys.executable, "-c", LINE, str(own), str(socket_path(layout))], dict(os.environ), layout.data), layout.log("line"))  # fmt: skip
    line.read()
    more = {
        "REDIS_URL": f"unix://{own}?db=0",
        "SCHEMADESK_HOT_PATH": "1",
        "SCHEMADESK_HOT_PATH_FILE": str(layout.data / f"run-{name}" / "generation"),
        "SCHEMADESK_HOT_PATH_HOSTS": "1",
    }
    layout = replace(layout, product={**layout.product, **more})
    shell = manage(layout, "shell")
    settings = {**shell.environment, "DJANGO_SETTINGS_MODULE": "dashboard.settings"}
    writer = Program(replace(shell, argv=[sys.executable, "-c", WRITER], environment=settings), layout.log(f"writer-{name}"))  # fmt: skip
    ports = {}
    for number in range(webs):
        taken.append(free_port(taken))
        ports[f"web-{name}-{number + 1}"] = taken[-1]
    return Host(name, layout, ports, writer, line)


def _web(application: str) -> Part:
    def command(layout: Layout) -> Command:
        web = web_command(layout)
        return replace(web, argv=[*web.argv[:-1], application], environment={**web.environment, "ANONYMOUS_ROLE": ""})

    return replace(WEB, command=command)
