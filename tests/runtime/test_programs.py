"""The product's own programs: who checks the settings, and what a probe says while what it asks is gone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from celery.app.control import Control
from kombu.exceptions import OperationalError
from redis.exceptions import BusyLoadingError, ConnectionError

from dashboard.runtime.layout import Layout
from dashboard.runtime.process import Watchdog
from dashboard.runtime.programs import (
    beat_answer,
    beat_command,
    migrate_command,
    prepare_command,
    worker_command,
    worker_probe,
)


@pytest.mark.requirement("CARD-4")
@pytest.mark.parametrize(
    "error", [ConnectionError("broken pipe"), BusyLoadingError("loading"), OperationalError("gone"), OSError("gone")]
)
def test_a_worker_isnt_ready_while_its_broker_is_restarted(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anything else would be raised in the supervisor, and end all of `up`."""

    def ping(*args: object, **named: object) -> None:
        raise error

    monkeypatch.setattr(Control, "ping", ping)
    layout = Layout(tmp_path, tmp_path, Watchdog(), product={"REDIS_URL": f"unix://{tmp_path}/none.sock"})
    assert worker_probe("default")(layout) is None
    assert worker_probe("default", without_broker="away")(layout) == "away", "that says nothing about the worker"


def test_beat_hangs_when_it_no_longer_saves_its_schedule(tmp_path: Path) -> None:
    layout = Layout(tmp_path, tmp_path, Watchdog())
    (tmp_path / "beat").mkdir()
    for name, seconds_ago in (("beat.pid", 9000), ("schedule.dat", 8000), ("schedule.dir", 100)):
        (tmp_path / "beat" / name).touch()
        os.utime(tmp_path / "beat" / name, (time.time() - seconds_ago,) * 2)
    assert beat_answer(layout)
    os.utime(tmp_path / "beat" / "schedule.dir", (time.time() - 400,) * 2)
    assert beat_answer(layout) is None


def test_the_settings_are_checked_by_the_migration_alone(tmp_path: Path) -> None:
    """Each check loads every address and page, which takes as long as all else that a worker loads."""
    layout = Layout(tmp_path, tmp_path, Watchdog())
    assert "--skip-checks" not in migrate_command(layout).argv
    assert "--skip-checks" in prepare_command(layout).argv
    assert "CELERY_SKIP_CHECKS" not in migrate_command(layout).environment
    for command in (worker_command("default", 1), beat_command):
        assert command(layout).environment["CELERY_SKIP_CHECKS"] == "true"
