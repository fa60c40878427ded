"""What is said on a terminal and elsewhere."""

from __future__ import annotations

import io

import pytest

from dashboard.runtime import supervisor
from dashboard.runtime.supervisor import Console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_last_line_is_what_is_waited_for() -> None:
    stream = Terminal()
    shown = Console(stream)
    shown.wait("waiting for web … 1 s")
    shown.say("postgres", "ready")
    shown.wait("")
    lines = stream.getvalue().replace("\r\033[K", "|")
    assert lines == "|waiting for web … 1 s|postgres       ready\nwaiting for web … 1 s|"


def test_what_is_waited_for_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = Terminal()
    Console(stream).wait("x" * 100)
    assert stream.getvalue() == "\r\033[K" + "x" * 19


def test_elsewhere_it_is_a_line_after_two_seconds_and_every_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(supervisor.time, "monotonic", lambda: now)
    stream = io.StringIO()
    shown = Console(stream)
    for now in range(30):
        shown.wait(f"{now} s")
    shown.wait("")
    assert stream.getvalue().split("\n") == ["2 s", "12 s", "22 s", ""]


def test_a_terminal_that_went_away_is_no_failure() -> None:
    stream = io.StringIO()
    shown = Console(stream)
    stream.close()
    shown.say("web", "ready")
    shown.wait("x")
