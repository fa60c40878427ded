"""The product over a small and over a large data set: PostgreSQL with its statistics of statements, Valkey, one web server."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import psycopg

from dashboard.bench import dataset
from dashboard.bench.endurance_site import SETUP, signed_in
from dashboard.bench.pages_site import Say, connected
from dashboard.bench.registry_client import Target, bearer
from dashboard.bench.registry_server import closed_web_command, issued_token, product
from dashboard.services import postgres
from dashboard.services.layout import Layout
from dashboard.services.part import running
from dashboard.services.parts import POSTGRES, VALKEY, WEB
from dashboard.services.ports import LOOPBACK, free_port
from dashboard.services.process import Command, Watchdog, run
from dashboard.services.programs import migrate_command, prepare_command
from registry.promotions.marking import refresh_marks

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
