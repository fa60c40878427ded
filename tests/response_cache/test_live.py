"""Real servers: no answer is older than what was answered for, nobody gets what is another's, and what fails is off."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest
from django.db import connection
from redis import Redis

from tests.amounts import how_many
from tests.response_cache.servers import Connection, Program, Site, copied, servers
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.requirement("GOO-2")]

CACHING = ("first", "second", "third")
OPERATIONS = how_many("requests to three servers at once")
READS_PER_WRITE = 14
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE")
LEVELS = ("BACKWARD", "FORWARD", "FULL", "NONE")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any) -> Iterator[Site]:
    with django_db_blocker.unblock():
        connection.close()
        name = str(connection.settings_dict["NAME"])
    with copied(name) as database, servers(tmp_path_factory.mktemp("servers"), database) as running:
        yield running


@pytest.fixture(autouse=True)
def all_answer_before_django(site: Site) -> None:
    """Each test begins with all caches on."""
    for server in CACHING:
        until(lambda name=server: site.is_hit(name), pause=0.2)  # type: ignore[misc]


def schema(number: int) -> dict[str, str]:
    record = {"type": "record", "name": "R", "fields": [{"name": f"f{number}", "type": "long", "default": 0}]}
    return {"schema": json.dumps(record)}


# -- no stale answer ---------------------------------------------------------------------------------------------------


class Known:
    """Something that goes from one state to the next, and what may be read of it."""

    def __init__(self, site: Site, name: str) -> None:
        self.site = site
        self.name = name
        self.lock = threading.Lock()
        self.counting = threading.Lock()
        self.begun = self.answered = 0

    def step(self, connection: Connection) -> None:
        """Go to the next state."""
        self.begun += 1
        self.go(connection, self.begun)
        self.answered = self.begun

    def check(self, connection: Connection) -> str:
        """What is wrong with what is read; empty where it is of a state between the last one answered for, and now."""
        oldest = self.answered
        state = self.read(connection)
        states = range(oldest, self.begun + 1)
        if any(state == self.state(number) for number in states):
            return ""
        return f"{self.name} read {state!r}, which isn't of {oldest} … {states[-1]} ({self.state(oldest)!r})"

    def go(self, connection: Connection, number: int) -> None:
        raise NotImplementedError

    def read(self, connection: Connection) -> Any:
        raise NotImplementedError

    def state(self, number: int) -> Any:
        raise NotImplementedError


def done(response: Any) -> Any:
    assert response.status < 300, response
    return response.json if response.body else None


class Registered(Known):
    """A subject that gets version after version; what one answer of a host has shown, no later one of it denies."""

    def __init__(self, site: Site, name: str) -> None:
        super().__init__(site, name)
        self.shown: dict[str, int] = {}

    def check(self, connection: Connection) -> str:
        shown = self.shown.get(connection.host, 0)
        oldest = self.answered
        version = self.read(connection)
        if not max(oldest, shown) <= version <= self.begun:
            return f"{self.name} read {version}, after {oldest} was answered for and {shown} read on this host"
        with self.counting:
            self.shown[connection.host] = max(version, self.shown.get(connection.host, 0))
        return ""

    def go(self, connection: Connection, number: int) -> None:
        done(connection.ask("POST", f"/subjects/{self.name}/versions", schema(number)))

    def read(self, connection: Connection) -> Any:
        response = connection.ask("GET", f"/subjects/{self.name}/versions/latest")
        return response.json["version"] if response.status == 200 else 0

    def state(self, number: int) -> Any:
        return number


class LookedUp(Registered):
    """The same, read by its list of versions."""

    def read(self, connection: Connection) -> Any:
        response = connection.ask("GET", f"/subjects/{self.name}/versions")
        return len(response.json) if response.status == 200 else 0


class Deleted(Known):
    """A subject that is there and isn't, in turns: the same version comes back when it is registered again."""

    def go(self, connection: Connection, number: int) -> None:
        if number % 2:
            done(connection.ask("POST", f"/subjects/{self.name}/versions", schema(0)))
        else:
            done(connection.ask("DELETE", f"/subjects/{self.name}"))

    def read(self, connection: Connection) -> Any:
        return connection.ask("POST", f"/subjects/{self.name}", schema(0)).status

    def state(self, number: int) -> Any:
        return 200 if number % 2 else 404


class Aliased(Known):
    """A name for one of three subjects after the other."""

    def prepare(self, connection: Connection) -> None:
        for number in range(3):
            done(connection.ask("POST", f"/subjects/{self.name}-{number}/versions", schema(number)))
        self.go(connection, 0)

    def go(self, connection: Connection, number: int) -> None:
        done(connection.ask("PUT", f"/config/{self.name}", {"alias": f"{self.name}-{number % 3}"}))

    def read(self, connection: Connection) -> Any:
        return connection.ask("GET", f"/subjects/{self.name}/versions/1").json.get("subject")

    def state(self, number: int) -> Any:
        return f"{self.name}-{number % 3}"


class Moded(Known):
    """A subject's mode."""

    def go(self, connection: Connection, number: int) -> None:
        done(connection.ask("PUT", f"/mode/{self.name}", {"mode": MODES[number % 3]}))

    def read(self, connection: Connection) -> Any:
        return connection.ask("GET", f"/mode/{self.name}?defaultToGlobal=true").json["mode"]

    def state(self, number: int) -> Any:
        return MODES[number % 3]


class Configured(Known):
    """A subject's level."""

    def go(self, connection: Connection, number: int) -> None:
        done(connection.ask("PUT", f"/config/{self.name}", {"compatibility": LEVELS[number % 4]}))

    def read(self, connection: Connection) -> Any:
        return connection.ask("GET", f"/config/{self.name}").json.get("compatibilityLevel")

    def state(self, number: int) -> Any:
        return LEVELS[number % 4] if number else None


class Revoked(Known):
    """A token that is made and revoked: the state is of the last one that was made."""

    token, token_id = "none", 0

    def go(self, connection: Connection, number: int) -> None:
        if number % 2:
            made = done(connection.ask("POST", "/api/v1/tokens", {"name": self.name}))
            self.token, self.token_id = made["token"], made["token_id"]
        else:
            done(connection.ask("DELETE", f"/api/v1/tokens/{self.token_id}"))

    def check(self, connection: Connection) -> str:
        token, oldest = self.token, self.answered
        status = connection.ask("GET", "/subjects", token=token).status
        if oldest and oldest == self.begun and token == self.token:
            expected = 200 if oldest % 2 else 401
            return "" if status == expected else f"{self.name}: {status} in state {oldest}"
        return "" if status in (200, 401) else f"{self.name}: {status}"


class Granted(Known):
    """Somebody whose one role comes and goes."""

    token, grant_id = "", 0

    def prepare(self, connection: Connection) -> None:
        done(connection.ask("POST", "/api/v1/people", {"username": self.name}))
        self.token = self.site.token(self.name, "own")

    def go(self, connection: Connection, number: int) -> None:
        if number % 2:
            grants = f"/api/v1/people/{self.name}/grants"
            self.grant_id = done(connection.ask("POST", grants, {"role": "reader"}))["grant_id"]
        else:
            done(connection.ask("DELETE", f"/api/v1/grants/{self.grant_id}"))

    def read(self, connection: Connection) -> Any:
        return connection.ask("GET", "/subjects", token=self.token).status

    def state(self, number: int) -> Any:
        return 200 if number % 2 else 403


class Removed(Known):
    """A registry that a program beside the servers makes and removes."""

    program: Program

    def go(self, connection: Connection, number: int) -> None:
        self.program.do("make" if number % 2 else "remove", self.name)

    def read(self, connection: Connection) -> Any:
        return connection.ask("GET", f"/registries/{self.name}/subjects").status

    def state(self, number: int) -> Any:
        return 200 if number % 2 else 404


class Storm:
    """Writers and readers at once, until so many operations are done."""

    def __init__(self, site: Site, things: list[Known]) -> None:
        self.site = site
        self.things = things
        self.lock = threading.Lock()
        self.writes = self.reads = 0
        self.complaints: list[str] = []

    def is_over(self) -> bool:
        return self.writes + self.reads >= OPERATIONS or len(self.complaints) > 5

    def work(self, number: int, do: Callable[[dict[str, Connection], random.Random], None]) -> None:
        connections = {name: self.site.connect(name) for name in CACHING}
        try:
            chance = random.Random(number)
            while not self.is_over():
                do(connections, chance)
        except Exception as error:  # noqa: BLE001 - told by the test
            self.complaints.append(repr(error))
        finally:
            for connection in connections.values():
                connection.close()

    def write(self, connections: dict[str, Connection], chance: random.Random) -> None:
        thing = chance.choice(self.things)
        if self.writes * READS_PER_WRITE > self.reads or not thing.lock.acquire(blocking=False):
            time.sleep(0.001)
            return
        try:
            thing.step(connections[chance.choice(CACHING)])
        finally:
            thing.lock.release()
        with self.lock:
            self.writes += 1

    def read(self, connections: dict[str, Connection], chance: random.Random) -> None:
        thing, server = chance.choice(self.things), chance.choice(CACHING)
        for _ in range(3):
            complaint = thing.check(connections[server])
            if complaint:
                self.complaints.append(f"{server}: {complaint}")
        with self.lock:
            self.reads += 3


def test_no_answer_is_older_than_what_was_answered_for(site: Site) -> None:
    """`SCHEMADESK_LONG=1` asks 10,000 times (see amounts.py)."""
    first = site.connect("first")
    done(first.ask("PUT", "/config", {"compatibility": "NONE"}))
    kinds: list[type[Known]] = [Registered, LookedUp, Deleted, Aliased, Moded, Configured, Revoked, Granted, Removed]
    things = [kind(site, f"{kind.__name__.lower()}-thing") for kind in kinds]
    for thing in things:
        if isinstance(thing, Aliased | Granted):
            thing.prepare(first)
        if isinstance(thing, Removed):
            thing.program = site.helper
    first.close()
    before = sum(site.counted(server)[0] for server in ("first", "third"))
    storm = Storm(site, things)
    works = [storm.write] * 2 + [storm.read] * 4
    threads = [threading.Thread(target=storm.work, args=(number, do)) for number, do in enumerate(works)]
    with site.untold():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert storm.complaints == []
    assert storm.writes + storm.reads >= OPERATIONS
    assert all(thing.answered > 5 for thing in things)
    assert sum(site.counted(server)[0] for server in ("first", "third")) - before > OPERATIONS / 20, "it was at work"


# -- nobody gets what is another's -------------------------------------------------------------------------------------


def test_nobody_gets_what_a_server_without_the_cache_would_refuse(site: Site) -> None:
    admin = site.connect("first")
    done(admin.ask("POST", "/subjects/orders-value/versions", schema(1)))
    done(admin.ask("POST", "/subjects/secret-value/versions", schema(2)))
    done(admin.ask("POST", "/api/v1/people", {"username": "limited"}))
    grant = {"role": "reader", "registry": "dev", "subject_pattern": "orders-*"}
    done(admin.ask("POST", "/api/v1/people/limited/grants", grant))
    done(admin.ask("POST", "/api/v1/people", {"username": "stranger"}))
    tokens = {
        "nobody": "",
        "unknown": "x" * 43,
        "admin": site.admin,
        "limited": site.token("limited", "own"),
        "stranger": site.token("stranger", "own"),
        "of-prod": site.token("admin", "prod", "--registry", "prod"),
        "of-orders": site.token("admin", "orders", "--subjects", "orders-*", "--scope", "read"),
    }
    paths = [
        "/subjects", "/subjects/orders-value/versions/1", "/subjects/secret-value/versions/latest", "/schemas/ids/1",
        "/schemas/ids/2?subject=orders-value", "/config", "/config/orders-value?defaultToGlobal=true", "/mode",
        "/registries/prod/subjects", "/registries/dev/contexts/./subjects/orders-value/versions", "/schemas",
        "/subjects/absent/versions", "/schemas/types",
    ]  # fmt: skip
    posts = [("/subjects/orders-value", schema(1)), ("/subjects/secret-value", schema(2)),
             ("/subjects/secret-value/versions", schema(2)),
             ("/compatibility/subjects/secret-value/versions/latest", schema(3))]  # fmt: skip
    calls: list[tuple[str, str, Any]] = [("GET", path, None) for path in paths]
    calls += [("POST", path, body) for path, body in posts]
    connections = {name: site.connect(name) for name in ("plain", "first", "second", "third")}
    expected = {
        (who, number): told(connections["plain"].ask(*call, token=token))
        for who, token in tokens.items()
        for number, call in enumerate(calls)
    }
    assert {status for status, _, _ in expected.values()} >= {200, 401, 403, 404}
    order = [(*key, server) for key in expected for server in CACHING for _ in range(3)]
    random.Random(1).shuffle(order)
    before = site.counted("first")[0]
    for who, number, server in order:
        response = told(connections[server].ask(*calls[number], token=tokens[who]))
        assert response == expected[who, number], f"{who} at {server}: {calls[number]}"
    assert site.counted("first")[0] - before > 50
    for client in (*connections.values(), admin):
        client.close()


def told(response: Any) -> tuple[int, dict[str, Any], bytes]:
    """What came back, but for what differs from process to process: the time, and the order of the policy's parts."""
    headers: dict[str, Any] = {name: value for name, value in response.headers.items() if name != "date"}
    if policy := headers.get("content-security-policy"):
        headers["content-security-policy"] = set(policy.split("; "))
    return response.status, headers, response.body


# -- what fails --------------------------------------------------------------------------------------------------------


def test_a_process_killed_in_a_commit_leaves_it_off_and_then_it_is_swept(site: Site) -> None:
    program = site.program()
    try:
        assert program.begin("hang", "hung-registry") == "hanging"
        assert not site.is_hit("first")
        assert not site.is_hit("second")
        assert site.is_hit("third"), "another host's file says nothing of it"
        time.sleep(3)
        assert not site.is_hit("first"), "the process lives"
    finally:
        program.end()
    until(lambda: site.is_hit("first") and site.is_hit("second"), pause=0.2)
    assert site.ask("first", "GET", "/registries/hung-registry/subjects").status == 404, "it was never committed"


def test_changes_by_other_channels_are_heard_and_a_lost_listener_listens_again(site: Site) -> None:
    def levels() -> set[str]:
        return {site.ask(server, "GET", "/config").json["compatibilityLevel"] for server in CACHING}

    site.ask("first", "PUT", "/config", {"compatibility": "FORWARD"})
    assert levels() == {"FORWARD"}
    site.execute("UPDATE subjects_config SET compatibility_level = 'FULL' WHERE compatibility_level = 'FORWARD'")
    until(lambda: levels() == {"FULL"})
    ended = site.execute(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query IN ('SELECT 1', 'LISTEN"
        " schemadesk_changed') AND application_name LIKE 'schemadesk %' AND pid <> pg_backend_pid()"
    )
    assert ended[0][0] >= len(CACHING)
    site.execute("UPDATE subjects_config SET compatibility_level = 'BACKWARD' WHERE compatibility_level = 'FULL'")
    until(lambda: levels() == {"BACKWARD"})
    until(lambda: all(site.is_hit(server) for server in CACHING), pause=0.2)


def test_a_host_that_pauses_has_lost_its_lease_when_the_write_is_answered(site: Site) -> None:
    site.ask("first", "PUT", "/config", {"compatibility": "NONE"})
    # A lease that was renewed late, on a busy machine, only means that the server caches again a little later.
    until(lambda: site.is_hit("third"), pause=0.2)
    stopped = [site.web["third"].pid, *_below(site.web["third"].pid)]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        done(site.ask("first", "PUT", "/config", {"compatibility": "FULL_TRANSITIVE"}))
        assert time.monotonic() - began > 1, "it waited for the lease to end"
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    assert site.ask("third", "GET", "/config").json["compatibilityLevel"] == "FULL_TRANSITIVE"
    until(lambda: site.is_hit("third"), pause=0.2)


def _below(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def test_without_valkey_it_is_off_and_writes_go_on(site: Site) -> None:
    server = _valkey()
    os.kill(server, signal.SIGSTOP)
    try:
        until(lambda: not site.is_hit("first") and not site.is_hit("third"), pause=0.2)
        for level in ("FORWARD", "BACKWARD", "NONE"):
            done(site.ask("first", "PUT", "/config", {"compatibility": level}))
            levels = {site.ask(name, "GET", "/config").json["compatibilityLevel"] for name in CACHING}
            assert levels == {level}
    finally:
        os.kill(server, signal.SIGCONT)
    until(lambda: all(site.is_hit(name) for name in CACHING), pause=0.2)
    done(site.ask("third", "PUT", "/config", {"compatibility": "FULL"}))
    assert {site.ask(name, "GET", "/config").json["compatibilityLevel"] for name in CACHING} == {"FULL"}


def _valkey() -> int:
    with Redis.from_url(os.environ["REDIS_URL"]) as client:
        return int(client.info("server")["process_id"])  # type: ignore[index]
