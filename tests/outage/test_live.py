"""PostgreSQL and Valkey stopped and started under a real server: errors while they are away, of the right kind, and no longer."""

from __future__ import annotations

import json
import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
import pytest

from dashboard.database.circuit_breaker import LONGEST
from dashboard.response_cache.epoch import WORDS
from dashboard.runtime import postgres
from registry.subjects.registration.locks import POLICY_LOCK
from tests.outage.site import Answer, Site, running_site
from tests.waiting import SOON, until

pytestmark = [pytest.mark.slow, pytest.mark.requirement("CARD-1")]

#: seconds by the clock for the first answers once PostgreSQL is back: a quarter of a second, on a machine that is busy
BACK = 5.0
TRIES = 5  # of what a commit of a worker may come between
MANY = 40  # requests at once: many more than the web process has threads
GOOGLE = "/v1/projects/local/locations/local/schemaRegistries/dev"


def schema(number: int) -> dict[str, str]:
    record = {"type": "record", "name": "R", "fields": [{"name": f"f{number}", "type": "long", "default": 0}]}
    return {"schema": json.dumps(record)}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any) -> Iterator[Site]:
    with django_db_blocker.unblock(), running_site(tmp_path_factory.mktemp("outage")) as found:
        for number in range(MANY):
            assert found.ask("POST", f"/subjects/known-{number}/versions", schema(number)).status == 200
        yield found


@pytest.fixture(autouse=True)
def everything_runs(site: Site) -> Iterator[None]:
    """Each test leaves what it found, and the next one begins with answers."""
    yield
    for name in ("valkey", "postgres"):
        if name not in site.children:
            site.start(name)
    until(lambda: site.ask("GET", "/readyz").status == 200, pause=0.1)


# -- PostgreSQL --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Channel:
    """A request, and what its dialect says while the database is away: members of its body, or words of it."""

    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    members: dict[str, Any] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    is_signed_in: bool = False


HTML = {"Accept": "text/html"}
AVRO = {"subject": "away", "format": "avro", "definition": '"string"'}
CHANNELS = {
    "confluent read": Channel("GET", "/subjects/absent/versions", members={"error_code": 50001}),
    "confluent write": Channel("POST", "/subjects/away/versions", schema(1), members={"error_code": 50001}),
    "confluent level": Channel("PUT", "/config", {"compatibility": "NONE"}, members={"error_code": 50001}),
    "google read": Channel("GET", f"{GOOGLE}/subjects", members={"error.code": 503, "error.status": "UNAVAILABLE"}),
    "google write": Channel(
        "POST", f"{GOOGLE}/subjects/away/versions", schema(1), members={"error.code": 503, "error.status": "UNAVAILABLE"}
    ),
    "spring read": Channel("GET", "/spring/absent/avro", members={"status": 503, "error": "Service Unavailable"}),
    "spring write": Channel("POST", "/spring/", AVRO, members={"status": 503, "error": "Service Unavailable"}),
    "product read": Channel("GET", "/api/v1/tokens", members={"error": "DatabaseAway", "details.retry_after": 2}),
    "product write": Channel("POST", "/api/v1/people", {"username": "away"}, members={"error": "DatabaseAway"}),
    "figures": Channel("GET", "/metrics", members={"error_code": 50001}),
    "page": Channel(
        "GET", "/ui/", headers=HTML, words=("The database is unavailable", "Try again in 2 seconds.", "<html"), is_signed_in=True
    ),
    "page of somebody": Channel("GET", "/ui/audit", headers=HTML, words=("The database is unavailable",), is_signed_in=True),
    "page that isn't there": Channel("GET", "/ui/absent", headers=HTML, words=("The database is unavailable",), is_signed_in=True),
    "part of a page": Channel(
        "GET", "/ui/registries/dev/subjects", headers={**HTML, "HX-Request": "true"}, words=("The database is unavailable",),
        is_signed_in=True,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def while_away(site: Site) -> dict[str, Answer]:
    """What every door answers: once all at once as it goes away, and then one after the other."""
    site.stop("postgres")
    found = {name: _through(site, channel) for name, channel in CHANNELS.items()}
    site.start("postgres")
    return found


def _through(site: Site, channel: Channel) -> Answer:
    return site.ask(
        channel.method, channel.path, channel.body, headers=channel.headers, is_signed_in=channel.is_signed_in
    )


@pytest.mark.parametrize("name", CHANNELS)
def test_every_channel_says_503_in_its_own_words_and_when_to_ask_again(
    site: Site, while_away: dict[str, Answer], name: str
) -> None:
    channel, answer = CHANNELS[name], while_away[name]
    assert (answer.status, answer.headers.get("retry-after")) == (503, "2"), answer
    for path, wanted in channel.members.items():
        found = answer.json
        for part in path.split("."):
            found = found[part]
        assert found == wanted, answer.text
    assert all(word in answer.text for word in channel.words), answer.text
    if name == "part of a page":
        assert answer.text.startswith('<div class="note'), "a note, not a page in a page"
    inside = (postgres.APPLICATION, str(site.layout.sockets), "psycopg", "Traceback", "socket", "connection")
    assert not [word for word in inside if word in answer.text]
    assert answer.seconds < SOON


def test_many_requests_are_refused_at_once_and_answered_soon_after_it_is_back(site: Site) -> None:
    site.stop("postgres")
    refused = site.ask_at_once(MANY, lambda number: f"/subjects/absent-{number}/versions")
    assert {answer.status for answer in refused} == {503}
    longest = max(answer.seconds for answer in refused)
    assert longest < SOON, "each waits no longer than the database may be away for"
    site.start("postgres")
    began = time.monotonic()
    until(lambda: site.ask("GET", "/subjects/known-1/versions/1?first").status == 200)
    first = time.monotonic() - began
    answers = site.ask_at_once(MANY, lambda number: f"/subjects/known-{number}/versions/1?many")
    assert {answer.status for answer in answers} == {200}
    assert time.monotonic() - began < BACK
    print(f"refused after at most {longest:.2f} s; the first answer {first:.2f} s after the start")


def test_after_a_restart_that_nobody_asked_during_no_request_fails(site: Site) -> None:
    warm = site.ask_at_once(MANY, lambda number: f"/subjects/known-{number}/versions/1?warm")
    assert {answer.status for answer in warm} == {200}
    site.stop("postgres")
    site.start("postgres")
    answers = site.ask_at_once(MANY, lambda number: f"/subjects/known-{number}/versions/1?after")
    assert {answer.status for answer in answers} == {200}
    print(f"after a restart that nobody asked during, the longest answer took {max(a.seconds for a in answers):.2f} s")


def test_a_crash_is_reported_like_a_shutdown(site: Site) -> None:
    site.crash("postgres")
    assert site.ask("GET", "/subjects/absent/versions").status == 503
    site.start("postgres")
    until(lambda: site.ask("GET", "/subjects/known-1/versions/1").status == 200, BACK)


def test_a_database_that_hangs_holds_up_nobody_for_long(site: Site) -> None:
    """Requests are refused in time, and what needs no database is answered while they wait."""
    warm = site.ask_at_once(MANY, lambda number: f"/subjects/known-{number}/versions/1?warmer")
    assert {answer.status for answer in warm} == {200}
    paths = [*(f"/subjects/absent-{number}/versions" for number in range(MANY)), "/healthz", "/ui/static/app.js"]
    with site.hanging("postgres"):
        *refused, alive, static = site.ask_at_once(len(paths), paths.__getitem__)
        assert {answer.status for answer in refused} == {503}
        assert max(answer.seconds for answer in refused) < SOON
        assert (alive.status, static.status) == (200, 200)
        assert max(alive.seconds, static.seconds) < min(BACK, max(answer.seconds for answer in refused))
        assert site.ask("POST", "/subjects/hung/versions", schema(1)).status == 503
        ready = site.ask("GET", "/readyz")
        assert ready.status == 503 and ready.json["database"].startswith("doesn't answer")
        print(f"refused after at most {max(answer.seconds for answer in refused):.2f} s, /readyz {ready.seconds:.2f} s")
    until(lambda: site.ask("POST", "/subjects/hung/versions", schema(1)).status == 200, BACK)


def test_sessions_that_hang_under_a_living_server_hold_up_nobody_for_long(site: Site) -> None:
    """Each fails the request that meets it, in time; the next requests get others, and nothing is lost."""
    warm = site.ask_at_once(MANY, lambda number: f"/subjects/known-{number}/versions/1?hung")
    assert {answer.status for answer in warm} == {200}
    paths = [f"/subjects/known-{number}/versions/1?alone" for number in range(MANY)]
    with site.hanging("postgres", title=postgres.APPLICATION):
        answers = site.ask_at_once(len(paths), paths.__getitem__)
        assert 503 in {answer.status for answer in answers} <= {200, 503}
        assert max(answer.seconds for answer in answers) < SOON
        assert all(answer.json["error_code"] == 50001 for answer in answers if answer.status == 503)
        print(f"answered after at most {max(answer.seconds for answer in answers):.2f} s")
        until(lambda: site.ask("POST", "/subjects/alone/versions", schema(1)).status == 200)
    assert site.ask("POST", "/subjects/alone/versions", schema(2)).status == 200
    assert site.ask("GET", "/subjects/alone/versions").json == [1, 2]
    again = site.ask_at_once(MANY, lambda number: f"/subjects/known-{number}/versions/1?again")
    assert {answer.status for answer in again} == {200}


def test_a_lock_that_is_never_released_holds_up_a_registration_for_a_while_only(site: Site) -> None:
    """As a session holds it that hangs in its transaction."""
    with superuser(site) as other:
        other.execute("BEGIN")
        other.execute("SELECT pg_advisory_xact_lock(%s, id::integer) FROM subjects_registry", [POLICY_LOCK])
        answer = site.ask("POST", "/subjects/locked/versions", schema(1))
        assert (answer.status, answer.json["error_code"]) == (503, 50001)
        assert LONGEST <= answer.seconds < LONGEST + SOON
        other.execute("ROLLBACK")
    assert site.ask("POST", "/subjects/locked/versions", schema(1)).status == 200
    assert site.ask("GET", "/subjects/locked/versions").json == [1]


def test_what_was_answered_before_goes_on(site: Site) -> None:
    """As long as nothing was committed since: each try ends with PostgreSQL back, and the first without a commit counts."""
    shared = site.layout.data / "run" / "generation"

    def count_hits() -> str:
        text = site.ask("GET", "/metrics").text
        return next(line for line in text.splitlines() if line.startswith("schemadesk_answers") and '"hit"' in line)

    def is_known() -> bool:
        return site.ask("GET", "/subjects/known-2/versions/1").status == 200

    for _ in range(TRIES):
        before = count_hits()
        until(lambda: is_known() and count_hits() != before, pause=0.1)  # noqa: B023 - over before the next try
        words = shared.read_bytes()[WORDS]
        assert is_known()
        site.stop("postgres")
        # The lease of a busy machine may have lapsed; it is renewed without PostgreSQL.
        until(lambda: is_known() or shared.read_bytes()[WORDS] != words, pause=0.1)  # noqa: B023
        if shared.read_bytes()[WORDS] == words:
            assert site.ask("GET", "/subjects/known-2/versions/2").status == 503
            return
        site.start("postgres")
        until(lambda: site.ask("GET", "/readyz").status == 200, pause=0.1)
    pytest.fail(f"something was committed in each of {TRIES} tries")


def test_registrations_in_flight_are_made_whole_or_not_at_all(site: Site) -> None:
    over, answers, lock = threading.Event(), dict[int, Answer](), threading.Lock()

    def register(worker: int) -> None:
        number = worker * 100_000
        while not over.is_set():
            answer = site.ask("POST", f"/subjects/flight-{number}/versions", schema(number))
            with lock:
                answers[number] = answer
            number += 1

    def count(status: int) -> int:
        with lock:
            return sum(answer.status == status for answer in answers.values())

    threads = [threading.Thread(target=register, args=(worker,)) for worker in range(1, 7)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: count(200) >= 30)
        site.stop("postgres")
        until(lambda: count(503) >= 6)
        site.start("postgres")
        made = count(200)
        until(lambda: count(200) >= made + 30)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert {answer.status for answer in answers.values()} == {200, 503}
    lost = [
        number
        for number, answer in answers.items()
        if answer.status == 200
        and f"f{number}" not in site.ask("GET", f"/schemas/ids/{answer.json['id']}?subject=flight-{number}").text
    ]
    assert lost == []
    for number in (number for number, answer in answers.items() if answer.status == 503):
        there = site.ask("GET", f"/subjects/flight-{number}/versions")
        assert (there.status, there.text) in ((404, there.text), (200, "[1]")), "nothing is half-written"
        assert site.ask("POST", f"/subjects/flight-{number}/versions", schema(number)).status == 200
        assert site.ask("GET", f"/subjects/flight-{number}/versions").text == "[1]", "it can be sent again"


# -- a PostgreSQL that can't save ---------------------------------------------------------------------------------------

CANT_SAVE = "The database can't save anything at the moment. Nothing was changed. Try again in 30 seconds."
WRITES = [name for name in CHANNELS if name.endswith(("write", "level"))]
RAISE = """
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$"""
TABLES = ("subjects_subject", "subjects_config", "access_user")


@contextmanager
def superuser(site: Site) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres.url(site.layout, postgres.SUPERUSER), autocommit=True) as connection:
        yield connection


@contextmanager
def read_only(site: Site) -> Iterator[None]:
    """Every transaction is read-only, as on a standby."""
    with superuser(site) as connection:
        connection.execute("SET default_transaction_read_only = off")
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s"
        for value in ("on", "off"):
            connection.execute(f"ALTER ROLE {postgres.APPLICATION} SET default_transaction_read_only = {value}")
            connection.execute(end, [postgres.APPLICATION])
            until(lambda: site.ask("GET", "/subjects/known-1/versions/1").status == 200, pause=0.1)
            if value == "on":
                try:
                    yield
                except BaseException:
                    connection.execute(f"ALTER ROLE {postgres.APPLICATION} RESET default_transaction_read_only")
                    raise


@contextmanager
def no_room(site: Site) -> Iterator[None]:
    """Writing fails as on a full disk."""
    with superuser(site) as connection:
        connection.execute(RAISE)
        for table in TABLES:
            connection.execute(f"CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON {table} EXECUTE FUNCTION fail()")
        try:
            yield
        finally:
            connection.execute("DROP FUNCTION fail CASCADE")


@contextmanager
def full_disk(site: Site) -> Iterator[None]:
    """The texts of schemas are on a real disk without room."""
    disk = site.layout.data / "small"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=0777", "small", disk], check=False).returncode:
        pytest.skip("a disk can be mounted by root only")
    with superuser(site) as connection:
        try:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
            connection.execute("ALTER TABLE subjects_schema SET TABLESPACE small")
            (disk / "filled").write_bytes(b"x" * 8_000_000)
        except OSError:
            yield
        finally:
            (disk / "filled").unlink(missing_ok=True)
            connection.execute("ALTER TABLE subjects_schema SET TABLESPACE pg_default")
            connection.execute("DROP TABLESPACE small")
            subprocess.run(["umount", "--lazy", disk], check=True)


def _written(name: str, state: str) -> Channel:
    """The door with a subject of its own, so that there is something to write."""
    channel = CHANNELS[name]
    body = json.dumps(channel.body).replace("away", state).replace("NONE", {"no_room": "FULL"}.get(state, "NONE"))
    return replace(channel, path=channel.path.replace("away", state), body=json.loads(body))


@pytest.mark.parametrize("state", [read_only, no_room], ids=lambda state: str(state.__name__))
def test_every_channel_says_that_the_database_cannot_save(site: Site, state: Callable[[Site], Any]) -> None:
    channels = {name: _written(name, state.__name__) for name in WRITES}
    with state(site):
        for channel in channels.values():
            answer = _through(site, channel)
            assert (answer.status, answer.headers.get("retry-after")) == (503, "30"), answer
            assert CANT_SAVE in answer.text
        assert site.ask("GET", "/subjects/known-2/versions/1").status == 200
        ready = site.ask("GET", "/readyz")
        assert ready.status == 503 and ready.json["database"].startswith("can't save"), ready.text
    for name, channel in channels.items():
        assert _through(site, channel).status != 503, name
    assert site.ask("PUT", "/config", {"compatibility": "BACKWARD"}).status == 200


def test_a_full_disk_is_reported_as_such(site: Site) -> None:
    long = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=500_000))
    with full_disk(site):
        text = json.dumps({"type": "enum", "name": "E", "symbols": ["A"], "doc": long})
        answer = site.ask("POST", "/subjects/full/versions", {"schema": text})
        assert (answer.status, answer.json) == (503, {"error_code": 50001, "message": CANT_SAVE})
        assert site.ask("GET", "/readyz").json["database"] == "can't save (DiskFull)"
        assert site.ask("GET", "/subjects/known-3/versions/1").status == 200
    assert site.ask("POST", "/subjects/full/versions", schema(1)).status == 200


# -- Valkey ------------------------------------------------------------------------------------------------------------


def is_found(site: Site, subject: str, number: int) -> bool:
    """Whether the worker has read the subject for the search's index, which a registration leaves to it."""
    answer = site.ask("GET", f"/api/v1/search?q=field:f{number}").json
    return any(hit.get("subject") == subject for group in answer["groups"] for hit in group["hits"])


def test_without_valkey_registrations_and_reads_go_on_and_their_work_is_done_afterwards(site: Site) -> None:
    site.stop("valkey")
    assert site.ask("POST", "/subjects/without-valkey/versions", schema(900_001)).status == 200
    assert site.ask("GET", "/subjects/without-valkey/versions/1").status == 200
    assert site.ask("GET", "/ui/", headers=HTML, is_signed_in=True).status == 200
    ready = site.ask("GET", "/readyz")
    assert (ready.status, ready.json["database"]) == (503, "ok")
    assert not is_found(site, "without-valkey", 900_001), "nobody was told"
    site.start("valkey")
    began = time.monotonic()
    until(lambda: is_found(site, "without-valkey", 900_001), pause=0.2)
    print(f"the search's index has it {time.monotonic() - began:.1f} s after Valkey's start")


def test_a_valkey_that_hangs_holds_up_no_registration_for_long(site: Site) -> None:
    """With somebody who is told of each by a webhook, so that a worker is woken."""
    hook = {"name": "hung", "url": "https://10.255.255.1/"}
    made = site.ask("POST", "/api/v1/webhooks", hook)
    assert made.status == 201, made.text
    with site.hanging("valkey"):
        for number in range(4):
            answer = site.ask("POST", f"/subjects/hung-{number}/versions", schema(910_000 + number))
            assert answer.status == 200
            assert answer.seconds < (BACK if number == 0 else 1.0), number
            print(f"registered in {answer.seconds:.2f} s")
        page = site.ask("GET", "/ui/", headers=HTML, is_signed_in=True)
        assert page.status == 200 and page.seconds < 1.5
        print(f"page in {page.seconds:.2f} s")
    _, *after = site.layout.log("web").read_text().split("Valkey doesn't answer")
    assert after and "Traceback" not in "".join(after)


def test_signing_in_says_that_valkey_is_away_as_it_counts_wrong_passwords_there(site: Site) -> None:
    site.stop("valkey")
    form = site.ask("GET", "/ui/accounts/login/", headers=HTML, is_signed_in=False)
    token = form.text.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
    cookie = form.headers["set-cookie"].split(";")[0]
    answer = site.send_form("/ui/accounts/login/", cookie, csrfmiddlewaretoken=token, login="admin", password="wrong")
    assert (answer.status, answer.headers.get("retry-after")) == (503, "2")
    assert "Valkey, the task queue, is unavailable" in answer.text


def test_the_worker_and_beat_go_on_after_postgres_was_away(site: Site) -> None:
    site.stop("postgres")
    until(lambda: site.ask("GET", "/readyz").status == 503)
    site.start("postgres")
    until(lambda: site.ask("POST", "/subjects/after-postgres/versions", schema(900_002)).status == 200)
    began = time.monotonic()
    until(lambda: is_found(site, "after-postgres", 900_002), pause=0.2)
    print(f"the search's index has it {time.monotonic() - began:.1f} s after the registration")
