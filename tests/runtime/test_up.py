"""`manage.py up`: what it runs, and the real thing started, killed and hurt."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from dashboard.runtime import ServiceError, parts
from dashboard.runtime.layout import GRPC_HELLO, answers, free_port, reply
from dashboard.runtime.up import Options, choose
from tests.runtime.conftest import ROOT, Supervised, command_line, is_alive
from tests.waiting import until

Start = Callable[..., Supervised]
ADDRESSES = ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "KAFKA_BOOTSTRAP", "SPARK_REMOTE", "CONNECT_URL")
ON_DEMAND = {"connect", "avro-endpoint", "demo"}
PATIENCE = 120


def names(options: Options, environment: dict[str, str]) -> list[str]:
    return [item.name for item in choose(options, environment)]


def test_every_part_by_default_and_no_demo() -> None:
    assert names(Options(), {}) == [item.name for item in parts.ALL if item.name not in ON_DEMAND]
    assert names(Options(demo=True), {}) == [item.name for item in parts.ALL]


def test_kafka_connect_when_it_is_asked_for_and_the_demo_without_it() -> None:
    assert names(Options(with_parts=("connect",)), {}) == [item.name for item in parts.ALL if item.name != "demo"]
    chosen = choose(Options(demo=True, without=("connect",)), {})
    assert [item.name for item in chosen] == [
        item.name for item in parts.ALL if item.name not in {"connect", "avro-endpoint"}
    ]
    assert not any({"connect", "avro-endpoint"} & set(item.after) for item in chosen)
    assert {"connect", "avro-endpoint"}.isdisjoint(names(Options(demo=True, without=("kafka",)), {}))
    order = names(Options(with_parts=("connect",)), {"KAFKA_BOOTSTRAP": "somewhere"})
    assert {"connect", "avro-endpoint"} <= set(order)


def test_without_kafka_and_spark_nothing_that_needs_them() -> None:
    chosen = names(Options(without=("kafka", "spark"), demo=True), {})
    assert not {"kafka", "spark", "warm-up", "demo"} & set(chosen)
    assert {"postgres", "valkey", "web", "worker-scans", "beat"} <= set(chosen)


@pytest.mark.parametrize("part", parts.SERVICES, ids=lambda part: part.name)
def test_an_address_replaces_its_part_and_nothing_waits_for_that(part: parts.Part) -> None:
    chosen = choose(Options(demo=True), {part.replaced_by: "somewhere"})
    assert part.name not in [item.name for item in chosen]
    assert not any(part.name in item.after for item in chosen)
    assert len(chosen) == len(parts.ALL) - (2 if part.name in parts.ONLY_FOR else 1)


def test_an_empty_address_replaces_nothing() -> None:
    assert "postgres" in names(Options(), {"DATABASE_URL": ""})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"without": "postgres"}, "--without postgres: only kafka, spark and connect can be omitted."),
        ({"with_parts": "kafka"}, "--with kafka: only connect can be added."),
        ({"with_parts": "connect", "without": "kafka"}, "--with connect needs kafka, which --without omits."),
        ({"with_parts": "connect", "without": "connect"}, "--with connect needs connect, which --without omits."),
        ({"without": "kafka,nonsense"}, "--without nonsense"),
        ({"port": 0}, "--port 0"),
        ({"port": 65536}, "--port 65536"),
    ],
)
def test_words_that_mean_nothing_are_refused(words: dict[str, object], said: str) -> None:
    with pytest.raises(ServiceError, match=said):
        Options.of(**{"data": None, "port": None, "without": "", "demo": False, **words})  # type: ignore[arg-type]


# -- the real thing ---------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def up(supervised: Start, folder: Path) -> Start:
    """Starts `manage.py up` with parts of its own, not those of the tests."""
    environment = {
        name: value for name, value in os.environ.items() if name not in (*ADDRESSES, "DJANGO_SETTINGS_MODULE")
    }

    def start(*words: str, port: int | None = None) -> Supervised:
        argv = [sys.executable, str(ROOT / "manage.py"), "up", "--data", str(folder)]
        return supervised(*argv, "--port", str(port or free_port()), *words, environment=environment)

    return start


def left_of(folder: Path) -> list[str]:
    """The command lines of living processes that name the folder."""
    living = [process for process in psutil.process_iter() if str(folder) in " ".join(command_line(process))]
    return [" ".join(command_line(process)) for process in living if is_alive(process)]


def get(address: str) -> int:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=60) as response:
        return int(response.status)


@pytest.mark.slow
def test_a_registry_alone_stops_in_order_finds_its_data_again_lives_through_hurt_and_leaves_nothing(
    up: Start, folder: Path
) -> None:
    one = up("--without", "kafka,spark")
    one.wait_for("Schemadesk is at", PATIENCE)
    assert one.end(signal.SIGINT) == 0  # as by Ctrl+C; the whole product below is sent the other signal
    assert one.left(0) == []
    assert registries_made(one)
    log = folder / "logs" / "postgres.log"
    assert "database system is shut down" in log.read_text()

    running = up("--without", "kafka,spark")
    address = running.wait_for("Schemadesk is at", PATIENCE).split()[3]
    assert not registries_made(running)
    assert "not properly shut down" not in log.read_text(), "of this start"
    assert get(f"{address}ui/") == 200
    first = running.remember()
    assert not any("kafka" in " ".join(command_line(process)) for process in first if is_alive(process))

    _assert_hidden(running, folder)

    refused = up("--without", "kafka,spark")
    line = refused.wait_for("is already running", PATIENCE)
    assert refused.process.wait(PATIENCE) != 0
    assert str(folder) in line and f"process {running.process.pid}" in line and address in line

    running.child("postgres -D").kill()
    running.wait_for("postgres       was stopped by signal 9")
    running.wait_for("postgres       ready")
    running.child("granian").kill()
    assert "started again" in running.wait_for("web            ")
    running.wait_for("web            ready", PATIENCE)
    assert get(f"{address}ui/") == 200

    running.end(signal.SIGKILL)
    assert running.left(20) == []
    assert left_of(folder) == []


def registries_made(running: Supervised) -> list[str]:
    """The lines that say which registries a start made."""
    return [line for line in running.lines if "registry" in line and "created" in line]


@pytest.mark.slow
def test_a_port_that_was_asked_for_and_is_taken_is_an_error(up: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = up("--without", "kafka,spark", port=port)
        refused.wait_for(f"Port {port} is in use by another program. Use another port with --port.", PATIENCE)
        assert refused.process.wait(PATIENCE) != 0


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.connect
def test_the_whole_product_starts_and_kill_9_leaves_nothing(up: Start, folder: Path) -> None:
    running = up("--with", "connect")
    running.wait_for("Schemadesk is at", 300)
    running.wait_for("warm-up        done", PATIENCE)  # Spark has Python workers by now, if ever
    if not any(line.startswith("connect        ready") for line in running.lines):
        running.wait_for("connect        ready", PATIENCE)
    _assert_hidden(running, folder)
    listening = {
        connection.laddr.ip
        for process in running.remember()
        if is_alive(process)
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
    _assert_a_hang_shows(running, folder)
    running.end(signal.SIGKILL)
    assert running.left(30) == []
    assert left_of(folder) == []
    began = time.monotonic()
    again = up()
    again.wait_for("Schemadesk is at", PATIENCE)
    print(f"second start: {time.monotonic() - began:.1f} s")
    assert again.end(signal.SIGTERM) == 0
    assert again.left(0) == []


def _assert_a_hang_shows(running: Supervised, folder: Path) -> None:
    """The kernel goes on accepting connections for a server that is stopped: only a missing reply tells."""
    port = json.loads((folder / "ports.json").read_text())["spark"]
    assert reply(port, GRPC_HELLO)
    running.child("SparkConnectServer").suspend()
    until(lambda: not reply(port, GRPC_HELLO, seconds=1))  # its threads stop one after the other
    assert answers(port)
    assert not [line for line in running.lines if "not answered" in line or "be probed" in line]


def _assert_hidden(running: Supervised, folder: Path) -> None:
    secrets = {path.read_text().strip() for path in (folder / "secrets").iterdir()}
    assert secrets
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in (folder / "secrets").iterdir())
    shown = [" ".join(command_line(process)) for process in running.remember() if is_alive(process)]
    shown += [log.read_text(errors="replace") for log in (folder / "logs").iterdir()]
    assert not [secret for secret in secrets if any(secret in text for text in shown)]
