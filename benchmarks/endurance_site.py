"""The product for the length of an endurance or growth run: its parts under supervision, as `up` has them.

An endurance run has two web servers; a growth run has one over a small and one over a large data set, and
PostgreSQL with statistics of its statements.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import psycopg

from benchmarks import dataset
from benchmarks.registry_client import Target, bearer
from benchmarks.site import Say, closed_web_command, connected, issued_token, product, signed_in
from dashboard.runtime import PartFailed, postgres
from dashboard.runtime.layout import LOOPBACK, Layout, free_port
from dashboard.runtime.parts import BEAT, POSTGRES, VALKEY, WEB, WORKERS, Part, running
from dashboard.runtime.process import Command, Watchdog, end_children, run
from dashboard.runtime.programs import migrate_command, prepare_command
from dashboard.runtime.supervisor import PartSupervisor
from registry.errors import InvalidInput
from registry.promotions.board.board_index import refresh_marks

try:
    import psutil
except ImportError:  # it comes with the packages of the tests
    psutil = None

PACE: Final = 0.05
PATIENCE: Final = 300.0  # seconds for a part to be ready
SETUP: Final = 900.0  # seconds for a fresh database, on a machine with much else to do
WEBS: Final = ("web", "web-2")
#: what is added up for a line of the table
MEMORY: Final = {"web": ("web",), "web-2": ("web-2",), "PostgreSQL": ("postgres",), "Valkey": ("valkey",),
                 "workers": ("worker-default", "beat")}  # fmt: skip


@dataclass
class Keepers:
    """Keeps parts running in a thread, as the supervisor of `up` does in its own loop."""

    layout: Layout
    keepers: dict[str, PartSupervisor] = field(default_factory=dict)
    failed: str = ""
    _executor: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(8, "part"))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def add(self, parts: dict[str, tuple[Part, Layout]]) -> None:
        """Start parts and return when all are ready. Raises PartFailed."""
        with self._lock:
            for name, (part, layout) in parts.items():
                self.keepers[name] = PartSupervisor(
                    replace(part, name=name, after=(), seconds=PATIENCE), layout, self._executor
                )
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="keepers", daemon=True)
            self._thread.start()
        self.wait(*parts)

    def wait(self, *names: str, seconds: float = 2 * PATIENCE) -> None:
        """Return when these are ready. Raises PartFailed."""
        deadline = time.monotonic() + seconds
        while not all(self.keepers[name].done for name in names):
            if self.failed or time.monotonic() > deadline:
                raise PartFailed(self.failed or f"{', '.join(names)} weren't ready after {seconds:.0f} s.")
            time.sleep(PACE)

    def pid(self, name: str) -> int | None:
        """The root of a part's processes; None while it has none."""
        child = self.keepers[name].child
        return child.pid if child else None

    def end(self) -> None:
        """End all parts, the last ones first."""
        self._over.set()
        if self._thread:
            self._thread.join()
        for names in (
            tuple(name for name in self.keepers if name not in ("postgres", "valkey")),
            ("postgres", "valkey"),
        ):
            end_children([child for name in names if name in self.keepers and (child := self.keepers[name].child)])
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _run(self) -> None:
        while not self._over.is_set():
            with self._lock:
                keepers = list(self.keepers.values())
            try:
                for keeper in keepers:
                    keeper.advance(set(), time.monotonic())
                self.layout.watchdog.revive()
            except Exception as error:  # noqa: BLE001 - nobody would hear of it in this thread
                self.failed = f"A keeper failed: {getattr(error, 'message', repr(error))}"
                return
            self._over.wait(PACE)


@dataclass
class Site:
    """What runs: its parts and what their keepers told when, the web servers, and the cookie of somebody signed in."""

    layout: Layout
    parts: Keepers
    log: list[tuple[float, str, str]]
    targets: tuple[Target, Target]
    cookie: str

    # -- faults --------------------------------------------------------------------------------------------------------

    def restart_postgres(self) -> None:
        """A fast shutdown; the keeper starts it again."""
        self._send("postgres", signal.SIGINT)

    def restart_valkey(self) -> None:
        """It ends as told to; the keeper starts it again."""
        self._send("valkey", signal.SIGTERM)

    def kill_web(self) -> None:
        """`kill -9` of the process that answers, of the second web server; its server ends, the keeper starts it again."""
        root = self._pid("web-2")
        # The one that serves is by far the largest: the others only track resources.
        largest = max(psutil.Process(root).children(), key=lambda process: int(process.memory_info().rss), default=None)
        os.kill(largest.pid if largest else root, signal.SIGKILL)

    def _send(self, name: str, number: signal.Signals) -> None:
        os.kill(self._pid(name), number)

    def _pid(self, name: str) -> int:
        pid = self.parts.pid(name)
        if pid is None:
            raise PartFailed(f"{name} doesn't run: it can't be restarted.")
        return pid

    def ready_after(self, part: str, moment: float) -> float | None:
        """When a part was ready again after that time; None if it isn't yet."""
        return next((at for at, name, text in self.log if at > moment and name == part and "ready in" in text), None)

    # -- memory --------------------------------------------------------------------------------------------------------

    def memory(self) -> dict[str, int]:
        """The bytes that the parts hold for themselves now; what processes share, such as buffers, doesn't count."""
        return {what: sum(map(self._own, names)) for what, names in MEMORY.items()}

    def _own(self, name: str) -> int:
        pid = self.parts.pid(name)
        total = 0
        try:
            root = psutil.Process(pid) if pid else None
            processes = [root, *root.children(recursive=True)] if root else []
        except psutil.Error:
            return 0  # it has just ended: its keeper starts it again
        for process in processes:
            try:
                total += process.memory_full_info().uss
            except psutil.Error:
                continue
        return total


@contextmanager
def running_site() -> Iterator[Site]:
    """PostgreSQL, Valkey, two web servers, the worker and beat, durable, in a scratch folder.

    Raises PartFailed, PartMissing; InvalidInput without psutil.
    """
    if psutil is None:
        raise InvalidInput("Memory and processes are read by psutil, which isn't here: install requirements-dev.lock.")
    watchdog = Watchdog()
    watchdog.start()
    with tempfile.TemporaryDirectory(prefix="schemadesk-bench-", ignore_cleanup_errors=True) as scratch:
        log: list[tuple[float, str, str]] = []
        ports = {"web": free_port()}
        first = Layout.at(
            Path(scratch) / "data", watchdog, ports=ports,
            say=lambda part, text: log.append((time.monotonic(), part, text)),
        )  # fmt: skip
        first.secret("django")
        first = replace(first, product=product(first))
        second = replace(first, ports={"web": free_port([first.ports["web"]])})
        parts = Keepers(first)
        try:
            parts.add({"valkey": (VALKEY, first), "postgres": (POSTGRES, first)})
            for command in (migrate_command(first), prepare_command(first)):
                run(command, first.log("setup"), watchdog, seconds=SETUP)
            authorization = bearer(issued_token(first, "admin"))
            cookie = signed_in(first, "admin")
            web = replace(WEB, command=closed_web_command)
            worker = next(part for part in WORKERS if part.name == "worker-default")
            parts.add({name: (web, layout) for name, layout in zip(WEBS, (first, second), strict=True)}
                      | {worker.name: (worker, first), BEAT.name: (BEAT, first)})  # fmt: skip
            targets = [
                Target(name, f"http://{LOOPBACK}:{layout.ports['web']}", authorization, pids=(), is_scratch=True)
                for name, layout in zip(WEBS, (first, second), strict=True)
            ]
            yield Site(first, parts, log, (targets[0], targets[1]), cookie)
        finally:
            parts.end()
            watchdog.close()
            shutil.rmtree(first.sockets, ignore_errors=True)


#: for this run alone: `up` starts PostgreSQL without them
STATISTICS: Final = (
    "shared_preload_libraries=pg_stat_statements,auto_explain",
    "pg_stat_statements.track=all",
    "pg_stat_statements.max=5000",
    "compute_query_id=on",
    "auto_explain.log_format=json",
    "auto_explain.log_verbose=on",  # with the statement's id
    "auto_explain.log_nested_statements=on",
    "track_activity_query_size=16384",
)


@dataclass(frozen=True, slots=True)
class Database:
    """A filled database without a web server yet: its layout, and the processes of PostgreSQL and Valkey."""

    layout: Layout
    pids: tuple[int, ...]
    authorization: str
    cookie: str

    def connect(self) -> psycopg.Connection:
        """As the superuser, who may read the statistics."""
        return psycopg.connect(postgres.url(self.layout, postgres.SUPERUSER), autocommit=True)

    @contextmanager
    def web(self, *, answers_before_django: bool) -> Iterator[Target]:
        """Runs the web server. Raises PartFailed."""
        product_ = {**self.layout.product, "SCHEMADESK_HOT_PATH": "1" if answers_before_django else "0"}
        layout = replace(self.layout, product=product_)
        with running(layout, replace(WEB, command=closed_web_command)) as (child,):
            yield Target(
                "ours", f"http://{LOOPBACK}:{self.layout.ports['web']}", self.authorization,
                pids=(child.pid,), database_pids=self.pids, is_scratch=True,
            )  # fmt: skip


@contextmanager
def filled(size: dataset.Size, say: Say, *, indexed: bool) -> Iterator[Database]:
    """A durable database of its own, filled by one command. Raises PartFailed or PartMissing when it can't be run."""
    watchdog = Watchdog()
    watchdog.start()
    with tempfile.TemporaryDirectory(prefix="schemadesk-bench-", ignore_cleanup_errors=True) as scratch:
        layout = Layout.at(Path(scratch) / "data", watchdog, ports={"web": free_port()})
        layout.secret("django")
        layout = replace(layout, product=product(layout))
        try:
            with running(layout, VALKEY, replace(POSTGRES, command=_with_statistics)) as services:
                for command in (migrate_command(layout), prepare_command(layout)):
                    run(command, layout.log("setup"), watchdog, seconds=SETUP)
                with connected(postgres.url(layout, postgres.OWNER)):
                    dataset.fill(size, say, indexed=indexed)
                database = Database(
                    layout, tuple(child.pid for child in services), bearer(issued_token(layout, "admin")),
                    signed_in(layout, "admin"),
                )  # fmt: skip
                mark(database, say)
                with database.connect() as connection:
                    connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
                    connection.execute("CHECKPOINT")  # what was loaded is written now, and not while it is measured
                yield database
        finally:
            watchdog.close()
            shutil.rmtree(layout.sockets, ignore_errors=True)


def mark(database: Database, say: Say) -> None:
    """What beat does every minute, where a worker runs: thousands of new versions without it, and the board is worked out whole."""
    with connected(postgres.url(database.layout, postgres.OWNER)):
        say(f"{refresh_marks():,} subjects of the board marked")


def _with_statistics(layout: Layout) -> Command:
    command = postgres.command(layout)
    more = [word for setting in STATISTICS for word in ("-c", setting)]
    return replace(command, argv=[*command.argv, *more])
