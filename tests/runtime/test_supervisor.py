"""The supervisor over stand-in parts: order, restarts, failures, and that nothing outlives it."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dashboard.runtime.data_folder import missing_parts
from dashboard.runtime.layout import free_port
from tests.runtime.conftest import SIGNALS, Supervised, command_line, is_alive, part
from tests.waiting import PATIENCE

pytestmark = pytest.mark.slow

Start = Callable[..., Supervised]
# A grandchild in a session and process group of its own, such as Spark's Python workers make.
ESCAPING = "setsid sh -c 'sleep 601' & sleep 602"
STUBBORN = "trap '' TERM INT; while true; do sleep 0.1; done"


def test_parts_start_in_their_order_and_the_end_is_said(stand_in: Start) -> None:
    up = stand_in(
        part("web", after=["migrate"]),
        {"name": "migrate", "argv": ["true"], "after": ["postgres"], "step": "quiet"},
        part("postgres"),
    )
    up.wait_for("all there")
    parts = [line.split()[0] for line in up.lines if "ready in" in line or "done in" in line]
    assert parts == ["postgres", "migrate", "web"]
    assert up.end(signal.SIGTERM) == 0
    assert up.left(0) == []


@pytest.mark.parametrize("number", SIGNALS)
def test_each_signal_stops_everything(stand_in: Start, number: int) -> None:
    up = stand_in(part("one", ESCAPING), part("two"))
    up.wait_for("all there")
    assert len(up.remember()) >= 4  # the watchdog, two parts, the one that escaped
    assert up.end(number) == 0
    assert up.left(0) == []


def test_a_part_that_ignores_its_signal_is_killed_after_its_time(stand_in: Start) -> None:
    up = stand_in(part("stubborn", STUBBORN, ladder="INT:0.3,TERM:0.3"))
    up.wait_for("all there")
    began = time.monotonic()
    assert up.end(signal.SIGTERM) == 0  # without the kill it never ends
    assert time.monotonic() - began >= 0.6
    assert up.left(0) == []


def test_a_second_interrupt_does_not_wait(stand_in: Start) -> None:
    up = stand_in(part("stubborn", STUBBORN, ladder="TERM:600"))
    up.wait_for("all there")
    up.remember()
    up.process.send_signal(signal.SIGINT)
    up.wait_for("stopping")
    assert up.end(signal.SIGINT) == 0
    assert up.left(0) == []


def test_kill_9_of_the_supervisor_leaves_nothing(stand_in: Start) -> None:
    up = stand_in(part("one", ESCAPING), part("stubborn", STUBBORN, ladder="TERM:0.5"))
    up.wait_for("all there")
    up.end(signal.SIGKILL)
    assert up.left(PATIENCE) == []


def test_kill_9_during_a_start_leaves_nothing(stand_in: Start) -> None:
    """A child waits for its watchdog's line: there is no moment in which it could be lost."""
    for pause in (0.0, 0.01, 0.02, 0.04):
        up = stand_in(*(part(f"part-{number}") for number in range(6)))
        up.wait_for("starting part-0, part-1")
        time.sleep(pause)
        up.end(signal.SIGKILL)
        assert up.left(PATIENCE) == [], f"after {pause} s"


def test_a_dead_watchdog_is_replaced_and_knows_everything(stand_in: Start) -> None:
    up = stand_in(part("one", ESCAPING))
    up.wait_for("all there")
    first = up.child("watchdog.py")
    first.kill()
    up.wait_for("watchdog")
    assert up.child("watchdog.py") != first
    up.end(signal.SIGKILL)
    assert up.left(PATIENCE) == []


def test_a_part_that_dies_is_started_again_and_what_it_left_is_ended(stand_in: Start) -> None:
    up = stand_in(part("fragile", ESCAPING))
    up.wait_for("all there")
    leader, escaped = up.child("sleep 602").parent(), up.child("sleep 601")
    leader.kill()
    assert "was stopped by signal 9" in up.wait_for("fragile")
    up.wait_for("ready in")
    assert not is_alive(escaped)
    assert up.child("sleep 601") != escaped
    assert up.end(signal.SIGTERM) == 0
    assert up.left(0) == []


def server(name: str, port: int, **more: object) -> dict[str, object]:
    """A part that is an HTTP server: the kernel still accepts its connections while it is stopped."""
    argv = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", "{data}"]
    return {"name": name, "argv": argv, "port": port, **more}


def test_a_part_that_hangs_is_reported_and_started_again(stand_in: Start, tmp_path: Path) -> None:
    up = stand_in(server("web", free_port()))
    up.wait_for("all there")
    hung = up.child("http.server")
    hung.suspend()
    told = up.wait_for("web            has not answered for")
    assert "It is restarted after 8 s." in told and str(tmp_path / "data" / "logs" / "web.log") in told
    assert "s; started again in 0.5 s" in up.wait_for("web            did not answer for")
    up.wait_for("web            ready in")
    assert not is_alive(hung)
    assert up.end(signal.SIGTERM) == 0
    assert up.left(0) == []


def test_a_part_that_keeps_data_and_hangs_is_only_reported_and_so_is_not_what_needs_it(stand_in: Start) -> None:
    """The web process hangs as well, since it waits for the database."""
    up = stand_in(server("postgres", free_port(), keeps_data=True), server("web", free_port(), after=["postgres"]))
    up.wait_for("all there")
    both = [process for process in up.remember() if "http.server" in command_line(process)]
    assert len(both) == 2
    for process in both:
        process.suspend()
    told = up.wait_for("has not answered for")
    assert told.startswith("postgres ") and any(
        f"only you can restart it: end process {row.pid}." in told for row in both
    )
    time.sleep(10)  # longer than a part may hang
    for process in both:
        process.resume()
    up.wait_for("postgres       answers again after")
    assert all(is_alive(process) for process in both)
    assert not any("started again" in line or line.startswith("web  has not") for line in up.lines)
    assert up.end(signal.SIGTERM) == 0


def test_a_part_that_keeps_dying_ends_everything_with_the_end_of_its_log(stand_in: Start) -> None:
    up = stand_in(
        part("healthy"), {"name": "broken", "argv": ["sh", "-c", "echo the cause; echo $$ >> {data}/tries; exit 7"]}
    )
    up.wait_for("broken ended with status 7, 3 times in a row.")
    up.wait_for("    the cause")
    assert up.process.wait(PATIENCE) == 1
    assert sum("started again in" in line for line in up.lines) == 2
    assert up.left(0) == []


def test_a_part_that_the_others_do_without_ends_nothing_and_is_tried_again(stand_in: Start, tmp_path: Path) -> None:
    data = tmp_path / "data"
    script = "echo the cause; [ -e {data}/repaired ] || exit 7; touch {data}/spark.ready; sleep 600"
    up = stand_in(
        part("web"),
        {"name": "spark", "argv": ["sh", "-c", script], "without": "nothing is scanned"},
        {"name": "warm-up", "argv": ["true"], "after": ["spark"], "step": "quiet"},
    )
    up.wait_for("NOT RUNNING. Schemadesk goes on without it: nothing is scanned.")
    up.wait_for("    the cause")
    up.wait_for("spark          until then these wait: warm-up")
    up.wait_for("all there")
    assert missing_parts(data) == {"spark": "ended with status 7"}
    for _ in range(3):
        up.wait_for("ended with status 7; tried again in")
    assert sum("NOT RUNNING" in line for line in up.lines) == 1
    (data / "repaired").touch()
    up.wait_for("ready in")
    up.wait_for("warm-up        done in")
    assert missing_parts(data) == {}
    assert up.end(signal.SIGTERM) == 0


def test_ends_while_a_part_that_it_needs_is_away_are_not_counted(stand_in: Start) -> None:
    """As the web process does while PostgreSQL is away: it ends at once, however often it is started."""
    needing = "touch {data}/web.ready; while [ -e {data}/postgres.ready ]; do sleep 0.05; done; exit 3"
    up = stand_in(
        {"name": "postgres", "argv": ["sh", "-c", "sleep 4; touch {data}/postgres.ready; sleep 600"]},
        {"name": "migrate", "argv": ["true"], "after": ["postgres"], "step": "quiet"},
        {"name": "web", "argv": ["sh", "-c", needing], "after": ["migrate"]},
    )
    up.wait_for("all there")
    up.child("sleep 600").kill()
    up.wait_for("web            ended with status 3 while postgres was away; started again after that")
    assert up.wait_for("ready in").startswith("postgres"), "web is started once it can work"
    up.wait_for("web            ready in")
    assert up.end(signal.SIGTERM) == 0


def test_a_program_that_is_not_there_is_a_failure_with_its_name(stand_in: Start) -> None:
    up = stand_in({"name": "gone", "argv": ["/no/such/program"]})
    up.wait_for("/no/such/program")
    assert up.process.wait(PATIENCE) == 1


def test_a_step_that_fails_ends_everything(stand_in: Start) -> None:
    up = stand_in(
        part("postgres"),
        {"name": "migrate", "argv": ["sh", "-c", "echo no table; exit 1"], "after": ["postgres"], "step": "quiet"},
    )
    up.wait_for("migrate ended with status 1.")
    up.wait_for("    no table")
    assert up.process.wait(PATIENCE) == 1


def test_the_others_go_on_without_a_step_that_fails_and_is_not_vital(stand_in: Start) -> None:
    up = stand_in(part("web"), {"name": "demo", "argv": ["sh", "-c", "exit 3"], "after": ["web"], "step": "relay"})
    up.wait_for("demo           FAILED: ended with status 3. Schemadesk goes on without it.")
    up.wait_for("all there")
    up.end(signal.SIGTERM)


def test_a_relayed_step_is_shown_and_kept_in_no_log(stand_in: Start, tmp_path: Path) -> None:
    up = stand_in(
        part("web"), {"name": "demo", "argv": ["echo", "password: s3cret"], "after": ["web"], "step": "relay"}
    )
    up.wait_for("demo           password: s3cret")
    up.wait_for("all there")
    up.end(signal.SIGTERM)
    logs = list((tmp_path / "data" / "logs").iterdir())
    assert logs and not any("s3cret" in log.read_text() for log in logs)


def test_a_second_one_on_the_same_folder_is_refused_by_name(stand_in: Start, tmp_path: Path) -> None:
    first = stand_in(part("one"))
    first.wait_for("all there")
    second = stand_in(part("two"))
    line = second.wait_for("is already running")
    assert second.process.wait(PATIENCE) == 1
    assert str(tmp_path / "data") in line
    assert f"process {first.process.pid}" in line
    assert "http://localhost:12345/" in line
    first.end(signal.SIGTERM)
    third = stand_in(part("three"))
    third.wait_for("all there")


def test_the_next_one_waits_for_the_end_of_what_a_killed_one_left(stand_in: Start) -> None:
    first = stand_in(part("slow", STUBBORN, ladder="TERM:1.5"))
    first.wait_for("all there")
    first.end(signal.SIGKILL)
    second = stand_in(part("two"))
    second.wait_for("waiting for processes of a killed")
    second.wait_for("all there")
    assert first.left(0) == []


def test_logs_of_the_last_start_are_kept_apart(stand_in: Start, tmp_path: Path) -> None:
    logs = tmp_path / "data" / "logs"
    for word in ("first", "second"):
        up = stand_in(part("talker", f"echo {word}; sleep 600"))
        up.wait_for("all there")
        up.end(signal.SIGTERM)
    assert (logs / "talker.log").read_text().split() == ["second"]
    assert (logs / "talker.log.1").read_text().split() == ["first"]


def test_the_published_state_is_private_and_names_this_process(stand_in: Start, tmp_path: Path) -> None:
    up = stand_in(part("one"))
    up.wait_for("all there")
    state = tmp_path / "data" / "up.json"
    assert state.stat().st_mode & 0o777 == 0o600
    assert json.loads(state.read_text())["pid"] == up.process.pid
    up.end(signal.SIGTERM)
    assert not state.exists()
