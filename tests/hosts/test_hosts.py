"""Two web hosts, two workers, a database and a cache behind nginx, installed by the page's commands, under load and faults."""

from __future__ import annotations

import json
import re
import shutil
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.amounts import IS_LONG, whole_benchmark
from tests.hosts.browser import Browser
from tests.hosts.installation import (
    ADDRESSES,
    NAME,
    PASSWORDS,
    PROXY,
    SECRETS,
    WEBS,
    Installation,
    blocks,
    install_certificate,
    installation,
)
from tests.hosts.load import CLIENTS, FORGED, Load
from tests.hosts.network import missing
from tests.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing()), reason=missing()),
    pytest.mark.requirement("CARD-1"),
]
STEADY = 20.0 if IS_LONG else 2.0  # seconds of each part of the load


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installation(tmp_path_factory.mktemp("hosts"), is_whole=IS_LONG) as found:
        yield found


@pytest.fixture(scope="module")
def tokens(site: Installation) -> dict[str, str]:
    """A token for each address of the client."""
    commands = [f"schemadesk issue_token ops client-{number}" for number in range(len(CLIENTS))]
    return dict(zip(CLIENTS, [site.command(command).split()[-1] for command in commands], strict=True))


@pytest.fixture
def load(site: Installation, tokens: dict[str, str]) -> Iterator[Load]:
    found = Load(site.net["client"], tokens, site.folder / "ca.pem")
    setup = site.net["client"].inside(
        lambda: found.connection(PROXY, CLIENTS[0]).ask("PUT", "/config", {"compatibility": "NONE"})
    )
    assert setup.status == 200, setup
    with found.running():
        with found.part("start"):
            until(lambda: all(subject.ids for subject in found.subjects) or found.wrong, pause=0.1)
        yield found
    print(*found.parts, sep="\n")
    assert found.wrong == []


def assert_nothing_is_lost(site: Installation, load: Load, host: str = "db") -> None:
    """Every version that was answered is stored, with its id."""
    query = (
        "SELECT s.name || ' ' || substring(sc.canonical from 'n(\\d{8})x')::int || ' ' || sc.schema_id FROM subjects_schemaversion v"
        " JOIN subjects_subject s ON s.id = v.subject_id JOIN subjects_schema sc ON sc.id = v.schema_id WHERE s.name LIKE 'load-%'"
    )
    answered = {f"{subject.name} {number} {of}" for subject in load.subjects for number, of in subject.ids.items()}
    stored = {row for (row,) in site.sql(query, host)}
    assert len(answered) > 10
    assert answered - stored == set(), "a version that was answered is lost"


def has_no_errors(load: Load) -> bool:
    """Whether every request succeeds for a while."""
    with load.part("afterwards"):
        time.sleep(STEADY)
    return not any(what.startswith(("50", "0 ")) for what in load.parts[-1].counts)


def served_certificate(site: Installation) -> str:
    """The certificate that the proxy shows to new connections."""
    return site.net["client"].inside(lambda: ssl.get_server_certificate((ADDRESSES[PROXY], 443), timeout=20))


@contextmanager
def transactions_with_locks(site: Installation, host: str) -> Iterator[None]:
    """Transactions of a host hold the lock that every registration needs: over PgBouncer, and over PostgreSQL itself.

    Of each, one is idle, and the other gets an answer when its host is gone: then there is no keepalive.
    """
    script = """. /etc/schemadesk/environment
        for address in "$DATABASE_URL" "$DATABASE_DIRECT_URL"; do for more in '' "SELECT pg_sleep(8), repeat('x', 9);"; do
            (echo "BEGIN; SELECT 1 FROM subjects_context FOR SHARE; $more"; sleep 600) | psql --quiet "$address" &
        done; done; wait"""
    holder = site.net[host].start(script, site.folder / "transactions.log")
    held = (
        "SELECT count(*) FILTER (WHERE state = 'idle in transaction' AND query LIKE '%FOR SHARE%'),"
        " count(*) FILTER (WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%') FROM pg_stat_activity"
    )
    try:
        until(lambda: site.sql(held) == [["2", "2"]], pause=0.1)
        yield
    finally:
        site.net[host].run("pkill -KILL psql || true")
        holder.kill()
        holder.wait()


def test_faults_of_hosts_lose_nothing_and_show_nothing_stale(site: Installation, load: Load) -> None:
    with load.part("steady"):
        time.sleep(STEADY)
    with load.part("web1 killed"):
        load.down.add("web1")
        site.kill("web1", "schemadesk-web")
        time.sleep(STEADY)
        site.start("web1", "schemadesk-web")
        until(lambda: site.is_ready("web1"), pause=0.2)
    load.down.clear()
    load.late = 2.0
    with load.part("web1 can't reach Valkey"):
        site.net.cut("web1", "cache")
        time.sleep(2 * STEADY)
        site.net.join("web1", "cache")
        until(lambda: site.is_ready("web1"), pause=0.2)
    time.sleep(2)
    load.late = 0.0
    with load.part("web1 can't reach the database"), transactions_with_locks(site, "web1"):
        site.net.cut("web1", "db")
        time.sleep(STEADY)
        before = load.answered()
        # PostgreSQL and PgBouncer end those transactions.
        until(lambda: load.answered() > before + 10, pause=0.2)
        site.net.join("web1", "db")
        until(lambda: site.is_ready("web1"), pause=0.2)
    until(lambda: has_no_errors(load), pause=0.1)
    failed = [
        f"{part.name}: {what}" for part in load.parts for what in part.counts if what.endswith("for reads at proxy")
    ]
    assert failed == [], "nginx asks the other host"
    assert_nothing_is_lost(site, load)


def test_the_audit_and_tokens_show_the_clients_address(site: Installation, tokens: dict[str, str], load: Load) -> None:
    for source in CLIENTS:
        assert (
            site.net["client"]
            .inside(lambda source=source: load.connection(PROXY, source).ask("GET", "/subjects"))
            .status
            == 200
        )
    rows = site.sql("SELECT name, last_used_from FROM access_apitoken WHERE name LIKE 'client-%' ORDER BY name")
    assert [address for _, address in rows] == list(CLIENTS)
    origins = {row[0] for row in site.sql("SELECT DISTINCT origin FROM audit_auditevent WHERE origin <> ''")}
    assert origins
    assert all(any(source in origin for source in CLIENTS) for origin in origins), origins
    assert not any(FORGED in origin for origin in origins)


def test_the_proxy_redirects_to_its_own_name_and_passes_large_bodies_on(site: Installation) -> None:
    client, address = site.net["client"], ADDRESSES[PROXY]
    shown = client.run(f"curl --silent --include --header 'Host: evil.example.com' http://{address}/ui/?a=%2F")
    assert f"Location: https://{NAME}/ui/?a=%2F" in shown.splitlines(), shown
    refused = client.run(
        f"head -c 8400000 /dev/zero | curl --silent --insecure --data-binary @- https://{NAME}/subjects/s/versions"
        f" --resolve {NAME}:443:{address} --header 'Content-Type: application/json'"
    )
    assert json.loads(refused)["error_code"] == 413


def test_a_full_disk_of_the_database_refuses_writes_and_loses_none(site: Installation, load: Load) -> None:
    with load.part("the database's disk is full"):
        site.fill_disk("db")
        until(lambda: load.counted("503 for writes at proxy") > 3, pause=0.1)
        time.sleep(STEADY)
    assert not [what for what in load.parts[-1].counts if "for reads" in what], "reads go on"
    if IS_LONG:
        with load.part("PostgreSQL can't write its log, and ends"):
            site.net["db"].run("runuser -u postgres -- psql -c 'SELECT pg_switch_wal()' || true")
            until(lambda: load.counted("503 for reads at web1") > 3, pause=0.1)
    with load.part("there is space again"):
        site.free_disk("db")
        before = load.answered()
        until(lambda: load.answered() > before + 10, pause=0.1)
    assert_nothing_is_lost(site, load)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C makes the clock")
def test_a_wrong_clock_of_a_web_host_shows_nothing_stale(site: Installation, load: Load) -> None:
    browser = Browser(site)
    for hours in (-1, 1):
        site.set_clock("web1", hours * 3600)
        with load.part(f"web1's clock is ahead by {hours} h"):
            time.sleep(STEADY)
            assert browser.statuses("/ui/tokens", 4) == ["200"] * 4, "both hosts know the session"
        if hours == 1:  # the web server's `Date` never goes back
            assert abs(site.clock("web1") - 3600) < 60
        assert not [what for what in load.parts[-1].counts if re.match("[1-9]", what)], load.parts[-1]
    site.set_clock("web1", 0)
    back = "SELECT count(*) FROM (SELECT lag(at) OVER (ORDER BY id) - at AS back FROM audit_auditevent) a WHERE back > '1 minute'"
    assert site.sql(back) == [["0"]], "the audit has the time of the database"
    assert_nothing_is_lost(site, load)


def test_a_new_certificate_is_served_without_a_failed_request(site: Installation, load: Load) -> None:
    with load.part("the certificate is replaced"):
        before = served_certificate(site)
        install_certificate(site)
        site.follow("rotate.md", "How do I replace the certificate?")
        until(lambda: served_certificate(site) != before, pause=0.1)
        time.sleep(STEADY)
    assert load.parts[-1].counts.keys() == {"reads", "writes"}


@whole_benchmark
def test_the_secret_key_is_rotated_host_by_host_without_ending_a_session(site: Installation, load: Load) -> None:
    browser = Browser(site)
    load.down |= set(WEBS)
    ends, statuses = threading.Event(), list[str]()

    def use() -> None:
        while not ends.is_set():
            statuses.extend(browser.statuses("/ui/tokens", 4))

    thread = threading.Thread(target=use)
    thread.start()
    try:
        with load.part("SECRET_KEY is rotated"):
            site.follow("rotate.md", "How do I rotate `SECRET_KEY`?")
            for name in WEBS:
                site.restart(name, "schemadesk-web")
                until(lambda name=name: site.is_ready(name), pause=0.2)
            time.sleep(STEADY)
    finally:
        ends.set()
        thread.join()
    load.down.clear()
    assert len(statuses) > 20
    assert set(statuses) == {"200"}, Counter(statuses)
    keys = {site.net[name].run("cat /etc/schemadesk/secret_key") for name in WEBS}
    assert keys == {SECRETS["printf %s '"]}
    assert_nothing_is_lost(site, load)


def change_password(site: Installation, load: Load, section: str, secrets: dict[str, str]) -> None:
    """Follow a section of rotate.md, whose last commands end the former password."""
    *first, last = blocks("rotate.md", section, secrets)
    load.down |= set(WEBS)
    with load.part(section):
        for block in first:
            site.do_on(*block)
        site.follow("rotate.md", "How do I restart all programs?")
        site.do_on(*last)
        time.sleep(STEADY)
    load.down.clear()
    failed = [what for what in load.parts[-1].counts if "at proxy" in what and what != "502 for writes at proxy"]
    assert failed == []
    assert_nothing_is_lost(site, load)


@whole_benchmark
def test_the_password_of_the_database_is_changed_without_a_failed_request(site: Installation, load: Load) -> None:
    section, new = (
        "How do I change the password of the database?",
        {"PASSWORD '": "app-2", "schemadesk_app_2:": "app-2"},
    )
    change_password(site, load, section, new)
    users = "SELECT DISTINCT usename FROM pg_stat_activity WHERE usename LIKE 'schemadesk%'"
    assert site.sql(users) == [["schemadesk_app_2"]]
    assert "role schemadesk_app." in site.command("schemadesk doctor || true")
    *_, (_, closing) = blocks("rotate.md", section, new)
    assert "NOLOGIN" in closing
    site.do(site.net["db"], re.sub("NOLOGIN' .*", "LOGIN'", closing))  # the other way round, for the next tests


@whole_benchmark
def test_a_standby_takes_over_without_losing_what_was_answered(site: Installation, load: Load) -> None:
    with load.part("a standby is added"):
        site.copy_bouncer("db", "db2")
        site.follow("failover.md", "How do I add a standby?")
        until(lambda: site.sql("SELECT sync_state FROM pg_stat_replication") == [["sync"]], pause=0.2)
        for name in WEBS:
            load.down.add(name)
            site.restart(name, "schemadesk-web")
            until(lambda name=name: site.is_ready(name), pause=0.2)
    load.down.clear()
    with load.part("with a standby"):
        time.sleep(STEADY)
    with load.part("the primary fails"):
        site.net["db"].run("pkill -KILL postgres")
        time.sleep(3)
        site.follow("failover.md", "What do I do when the primary fails?")
        until(lambda: all(map(site.is_ready, WEBS)), pause=0.2)
    with load.part("after the failover"):
        time.sleep(STEADY)
    assert load.parts[-1].counts["writes"] > 10
    assert_nothing_is_lost(site, load, "db2")


@whole_benchmark
def test_the_password_of_valkey_is_changed_without_a_failed_request(site: Installation, load: Load) -> None:
    old, new = PASSWORDS["cache"], "cache-2"
    secrets = {"REDISCLI_AUTH=": old, "'>": new, "'<": old, "requirepass ": new, "redis://:": new}
    change_password(site, load, "How do I change the password of Valkey?", secrets)
    for name in ("schemadesk-worker@default", "schemadesk-beat"):  # sign in with the new one
        assert "WRONGPASS" not in (site.folder / f"worker1-{name}.log").read_text()
    cache = site.net["cache"]
    assert cache.run(f"REDISCLI_AUTH={old} valkey-cli PING 2>&1 || true").startswith("invalid username-password pair")
    assert cache.run(f"REDISCLI_AUTH={new} valkey-cli PING").strip() == "True"
