"""What `schemadesk COMMAND` says when an operator has to do something first: a sentence, not a traceback."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import psycopg
import pytest
from django.core import management
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError

from dashboard.command_line import main

pytestmark = pytest.mark.requirement("CARD-1")


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """Give this process its signal handler back."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (ImproperlyConfigured("LOG_FORMAT can't be used."), "LOG_FORMAT can't be used.\n"),
        (psycopg.errors.UndefinedTable("no table t"), "no table t\nRun `schemadesk migrate` first"),
        (psycopg.errors.InsufficientPrivilege("permission denied"), "permission denied\nSet DATABASE_OWNER_URL"),
        (psycopg.OperationalError("connection refused"), "connection refused\nStart PostgreSQL"),
        (psycopg.errors.DeadlockDetected("deadlock"), None),
        (ValueError("a defect"), None),
    ],
)
def test_what_an_operator_can_mend_is_a_sentence_and_a_defect_a_traceback(
    cause: Exception, words: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: list[str]) -> None:
        raise DatabaseError(f"{cause}\nLINE 1: SELECT") from cause

    monkeypatch.setattr(management, "execute_from_command_line", fail)
    if words:
        assert main(["schemadesk", "prepare"]) == 1
        said = capsys.readouterr().err
        assert said.startswith(f"schemadesk prepare: {words}")
        assert "LINE 1" not in said
    with pytest.raises(DatabaseError):
        main(["schemadesk", "prepare", *(["--traceback"] if words else [])])
