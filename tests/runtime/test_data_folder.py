"""How commands that are run by hand find the parts of a running `up`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dashboard.runtime.data_folder import adopt_running, claim, read_state


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("SCHEMADESK_UP", "DATABASE_URL", "REDIS_URL", "SPARK_REMOTE"):
        # Set first, so that what a test puts there is taken away again.
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)
    monkeypatch.setenv("SCHEMADESK_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


GIVEN = {"DATABASE_URL": "postgresql:///theirs", "SPARK_REMOTE": "sc://theirs"}


def test_a_command_takes_the_addresses_of_the_running_up(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = claim(data, print)
    running.publish(address="http://localhost:1/", environment=GIVEN)
    monkeypatch.setenv("SPARK_REMOTE", "sc://mine")
    adopt_running()
    assert os.environ["DATABASE_URL"] == "postgresql:///theirs"
    assert os.environ["SPARK_REMOTE"] == "sc://mine"
    running.release()


def test_a_folder_on_the_command_line_comes_first(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    running = claim(other, print)
    monkeypatch.setenv("DATABASE_URL", "postgresql:///mine")
    assert adopt_running(str(other)).startswith(f"No `up` runs on {other}."), "it is still starting"
    running.publish(environment=GIVEN)
    assert adopt_running(str(other)) == ""
    assert os.environ["DATABASE_URL"] == "postgresql:///theirs"
    running.release()
    assert adopt_running(str(other)).startswith(f"No `up` runs on {other}.")


@pytest.mark.parametrize("name", ["SCHEMADESK_UP", "DATABASE_URL"])
def test_who_has_been_notified_already_takes_nothing(data: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    running = claim(data, print)
    running.publish(environment=GIVEN)
    monkeypatch.setenv(name, "1")
    adopt_running()
    assert "SPARK_REMOTE" not in os.environ
    running.release()


def test_what_a_dead_one_published_is_no_state(data: Path) -> None:
    running = claim(data, print)
    running.publish(environment=GIVEN)
    path = data / "up.json"
    state = json.loads(path.read_text())
    assert read_state(data) == state
    path.write_text(json.dumps({**state, "start": "another process with that number"}))
    assert read_state(data) is None
    path.write_text(json.dumps({**state, "pid": 2**30}))
    assert read_state(data) is None
    path.write_text("{")
    assert read_state(data) is None
    adopt_running()
    assert "DATABASE_URL" not in os.environ
    running.release()
    assert read_state(data) is None
