"""The site for the length of a measurement: our own, as `up` runs it, or one that runs already."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import connection, connections
from django.test import override_settings
from psycopg.conninfo import conninfo_to_dict

from benchmarks import dataset
from benchmarks.page_data import furnish
from benchmarks.registry_client import Target, bearer
from dashboard.runtime import postgres, valkey
from dashboard.runtime.layout import LOOPBACK, Layout, free_port
from dashboard.runtime.parts import POSTGRES, VALKEY, WEB, running
from dashboard.runtime.process import Command, Watchdog, run
from dashboard.runtime.programs import manage, migrate_command, prepare_command, web_command
from registry.access.models import User
from registry.access.roles import system_actor
from registry.access.selectors import actor_of_user
from registry.access.services import ensure_person
from registry.subjects.models import Subject


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
                        cookie=signed_in(layout, role),
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


_SIGN_IN: Final = """
from django.conf import settings
from django.test import Client
from registry.access.models import User
client = Client()
client.force_login(User.objects.get(username={person!r}))
print(f"{{settings.SESSION_COOKIE_NAME}}={{client.cookies[settings.SESSION_COOKIE_NAME].value}}")
"""


def signed_in(layout: Layout, person: str) -> str:
    """The cookie of a session of theirs, as the layout's web servers take it. Raises PartFailed."""
    log = layout.log("session")
    run(manage(layout, "shell", "-v", "0", "-c", _SIGN_IN.format(person=person)), log, layout.watchdog)
    return log.read_text(encoding="utf-8").split()[-1]


PERSON: Final = "bench"
Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Site:
    """Where the site answers, who signs in there with which password, and what its pages show."""

    url: str
    person: str
    password: str
    there: dict[str, Any]


@contextmanager
def own_site(size: dataset.Size, say: Say, data: Path | None = None) -> Iterator[Site]:
    """Runs PostgreSQL, Valkey and the web server, durable, over a data set of the size.

    `data` is a folder that keeps it, and has it the next time; else it goes. Raises PartFailed or PartMissing when they
    can't be run.
    """
    scratch = tempfile.TemporaryDirectory(prefix="schemadesk-bench-", ignore_cleanup_errors=True)
    watchdog = Watchdog()
    watchdog.start()
    with nullcontext(str(data)) if data else scratch as folder:
        layout = Layout.at(Path(folder) / "data", watchdog, ports={"web": free_port()})
        layout.secret("django")
        layout = replace(layout, product=product(layout))
        try:
            with running(layout, VALKEY, POSTGRES):
                for command in (migrate_command(layout), prepare_command(layout)):
                    run(command, layout.log("setup"), watchdog)
                # what is signed for the site is signed with its key
                key = override_settings(SECRET_KEY=layout.secret("django"))
                with connected(postgres.url(layout, postgres.OWNER)), key:
                    if not Subject.objects.exists():
                        dataset.fill(size, say)
                    with _signed_up() as (password, there), running(layout, WEB):
                        yield Site(f"http://{LOOPBACK}:{layout.ports['web']}", PERSON, password, there)
        finally:
            watchdog.close()
            shutil.rmtree(layout.sockets, ignore_errors=True)


@contextmanager
def running_site(url: str) -> Iterator[Site]:
    """A site that runs over the connected database, which `bench fill` has filled. Raises Conflict where it hasn't."""
    with _signed_up() as (password, there):
        yield Site(url.rstrip("/"), PERSON, password, there)


@contextmanager
def _signed_up() -> Iterator[tuple[str, dict[str, Any]]]:
    """An admin with a password of this measurement, who is switched off in the end; and what there is to be seen."""
    by = system_actor("bench", channel="command")
    ensure_person(username=PERSON, role="admin", by=by)
    user, password = User.objects.get(username=PERSON), secrets.token_urlsafe(24)
    user.set_password(password)
    user.is_active = True
    user.save()
    try:
        yield password, furnish(actor_of_user(user, channel="ui"), user)
    finally:
        user.set_unusable_password()
        user.is_active = False
        user.save()


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Django's connection leads to the address for the length of the block, and its cache is this process's own."""
    parts: dict[str, Any] = conninfo_to_dict(address)
    before = dict(connection.settings_dict)
    connections.close_all()
    connection.settings_dict.update(
        NAME=parts["dbname"], USER=parts["user"], PASSWORD=parts.get("password", ""), HOST=parts["host"],
        PORT=str(parts.get("port") or ""), OPTIONS={},
    )  # fmt: skip
    caches = {name: {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"} for name in settings.CACHES}
    try:
        with override_settings(CACHES=caches):
            yield
    finally:
        connections.close_all()
        connection.settings_dict.update(before)
