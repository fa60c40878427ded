"""PgBouncer in transaction mode between the web server and PostgreSQL: everything works, and nothing is stale.

It runs where `pgbouncer` is on PATH (Debian: pgbouncer, with libevent and libc-ares).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from dashboard.database.base import is_pooled
from dashboard.runtime import PartFailed
from dashboard.runtime.layout import LOOPBACK, free_port
from dashboard.runtime.postgres import user_switch
from dashboard.runtime.process import run
from dashboard.runtime.programs import manage
from tests.outage.site import Answer, Site, running_site
from tests.waiting import ends_soon, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("pgbouncer") is None, reason="no pgbouncer here"),
    pytest.mark.requirement("CARD-1"),
]

SETTINGS = """\
[databases]
{dbname} = host={host} user={user}
[pgbouncer]
listen_addr = {address}
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
"""
CLIENTS = 8  # more than the pooler has sessions
EACH = 12
PAGES = ("/ui/", "/ui/findings", "/ui/search?q=pooled")


def schema(number: int) -> dict[str, str]:
    fields = [{"name": "id", "type": "long"}, {"name": f"f{number}", "type": "long", "default": 0}]
    return {"schema": json.dumps({"type": "record", "name": "R", "fields": fields})}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any) -> Iterator[Site]:
    with django_db_blocker.unblock(), running_site(tmp_path_factory.mktemp("pooler")) as found:
        yield found


@pytest.fixture(scope="module")
def pooled_url(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The database's address at a pooler of its own."""
    direct, port = conninfo_to_dict(site.layout.product["DATABASE_URL"]), free_port()
    folder = Path(site.layout.sockets)
    file = folder / "pgbouncer.ini"
    file.write_text(SETTINGS.format(**direct, address=LOOPBACK, port=port))
    file.chmod(0o644)
    url = f"postgresql://{direct['user']}@{LOOPBACK}:{port}/{direct['dbname']}"
    process = subprocess.Popen([*user_switch().prefix, "pgbouncer", str(file)])
    try:
        until(lambda: _answers(url))
        yield url
    finally:
        ends_soon(process)


def _answers(url: str) -> bool:
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            return is_pooled(connection)
    except psycopg.OperationalError:
        return False


def restarted(site: Site, **variables: str) -> None:
    site.stop("web")
    site.layout = replace(site.layout, product={**site.layout.product, **variables})
    site.start("web")


def answered_before_django(site: Site) -> int:
    return int(float(re.findall(r'before_django_total{outcome="hit"} (\S+)', site.ask("GET", "/metrics").text)[0]))


def is_hit(site: Site) -> bool:
    before = answered_before_django(site)
    for _ in range(2):
        site.ask("GET", "/config")
    return answered_before_django(site) > before


def worked_at_once(site: Site, name: str) -> list[Answer]:
    """What several clients get that register, read and look at pages at the same time."""
    answers: list[Answer] = []

    def work(client: int) -> None:
        subject = f"/subjects/{name}-{client}/versions"
        for number in range(EACH):
            answers.append(site.ask("POST", subject, schema(number)))
            answers.extend(site.ask("GET", path) for path in (f"{subject}/latest", subject, "/subjects"))
            read = json.loads(site.ask("GET", f"{subject}/latest").json["schema"])
            assert read["fields"][1]["name"] == f"f{number}", "what was answered for is read"
        answers.extend(site.ask("GET", page, headers={"Accept": "text/html"}, is_signed_in=True) for page in PAGES)

    threads = [threading.Thread(target=work, args=(client,)) for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == CLIENTS * (EACH * 4 + len(PAGES)), "a client stopped"
    return answers


def test_with_its_own_address_beside_it_nothing_is_lost(site: Site, pooled_url: str) -> None:
    direct = site.layout.product["DATABASE_URL"]
    restarted(site, DATABASE_URL=pooled_url, DATABASE_DIRECT_URL=direct)
    try:
        assert {answer.status for answer in worked_at_once(site, "pooled")} == {200}
        until(lambda: is_hit(site), pause=0.2)
        assert site.ask("PUT", "/config", {"compatibility": "NONE"}).status == 200
        assert site.ask("GET", "/config").json["compatibilityLevel"] == "NONE"
        with psycopg.connect(site.layout.product["DATABASE_OWNER_URL"]) as other:
            assert other.execute("UPDATE subjects_config SET compatibility_level = 'FULL'").rowcount == 1
        until(lambda: site.ask("GET", "/config").json["compatibilityLevel"] == "FULL", pause=0.1)
    finally:
        restarted(site, DATABASE_URL=direct, DATABASE_DIRECT_URL="")


def test_without_it_every_request_reaches_the_database(site: Site, pooled_url: str) -> None:
    direct = site.layout.product["DATABASE_URL"]
    restarted(site, DATABASE_URL=pooled_url)
    try:
        assert {answer.status for answer in worked_at_once(site, "alone")} == {200}
        assert not is_hit(site), "changes by other programs wouldn't be heard"
        assert "set DATABASE_DIRECT_URL" in site.layout.log("web").read_text()
    finally:
        restarted(site, DATABASE_URL=direct)


@pytest.mark.parametrize("words", [("migrate", "--no-input"), ("backup", "backup.tar")], ids=str)
def test_what_a_command_sets_in_its_session_reaches_no_request(
    site: Site, pooled_url: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    variables = {**site.layout.product, "DATABASE_URL": pooled_url, "DATABASE_OWNER_URL": pooled_url}
    name, *arguments = (str(tmp_path / word) if word.endswith(".tar") else word for word in words)
    command = manage(replace(site.layout, product=variables), name, *arguments, owner=True)
    with pytest.raises(PartFailed, match="needs PostgreSQL's own address"):
        run(command, tmp_path / "log", site.layout.watchdog)
    with psycopg.connect(pooled_url) as connection:
        assert connection.execute("SHOW search_path").fetchone() == ('"$user", public',)
        assert connection.execute("SHOW lock_timeout").fetchone() == ("0",)
