"""Our own web server for the length of a measurement: as `up` runs it, durable, and open to nobody without a token."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from dashboard.bench.registry_client import Target, bearer
from dashboard.services import postgres, valkey
from dashboard.services.layout import Layout
from dashboard.services.part import running
from dashboard.services.parts import POSTGRES, VALKEY, WEB
from dashboard.services.ports import LOOPBACK, free_port
from dashboard.services.process import Command, Watchdog, run
from dashboard.services.programs import manage, migrate_command, prepare_command, web_command


@contextmanager
def own_server(role: str = "steward") -> Iterator[Target]:
    """Runs PostgreSQL, Valkey and the web server in a scratch folder; gives the address with a token of the role.

    Valkey's CPU time counts with the database's. Raises PartFailed or PartMissing when they can't be run.
    """
    watchdog = Watchdog()
    watchdog.start()
    with tempfile.TemporaryDirectory(prefix="schemadesk-bench-", ignore_cleanup_errors=True) as scratch:
        layout = Layout.at(Path(scratch) / "data", watchdog, ports={"web": free_port()})
        layout.secret("django")
        layout = replace(layout, product=product(layout))
        try:
            with running(layout, VALKEY, POSTGRES) as services:
                for command in (migrate_command(layout), prepare_command(layout)):
                    run(command, layout.log("setup"), watchdog)
                token = issued_token(layout, role)
                with running(layout, replace(WEB, command=closed_web_command)) as (web,):
                    yield Target(
                        "ours",
                        f"http://{LOOPBACK}:{layout.ports['web']}",
                        bearer(token),
                        pids=(web.pid,),
                        database_pids=tuple(child.pid for child in services),
                        has_goals=True,
                        is_scratch=True,
                    )
        finally:
            watchdog.close()
            shutil.rmtree(layout.sockets, ignore_errors=True)


def product(layout: Layout) -> dict[str, str]:
    """What the product's programs find in their environment: PostgreSQL and Valkey alone."""
    return {
        "SCHEMADESK_UP": "1",
        "SCHEMADESK_HOSTS": f"localhost,{LOOPBACK}",
        "SCHEMADESK_DATA": str(layout.data),
        "SECRET_KEY_FILE": str(layout.data / "secrets" / "django"),
        "REDIS_URL": valkey.url(layout),
        "DATABASE_URL": postgres.url(layout, postgres.APPLICATION),
        "DATABASE_OWNER_URL": postgres.url(layout, postgres.OWNER),
        "DATABASE_APPLICATION_ROLE": postgres.APPLICATION,
        "KAFKA_BOOTSTRAP": "",
        "SPARK_REMOTE": "",
        "CONNECT_URL": "",
    }


def closed_web_command(layout: Layout) -> Command:
    """As under `up`, where programs without a token are stewards: here they are nobody."""
    command = web_command(layout)
    return replace(command, environment={**command.environment, "ANONYMOUS_ROLE": ""})


def issued_token(layout: Layout, role: str) -> str:
    """A token of the role. Raises PartFailed."""
    log = layout.log("token")
    run(manage(layout, "issue_token", role, "bench"), log, layout.watchdog)
    return log.read_text(encoding="utf-8").split()[-1]
