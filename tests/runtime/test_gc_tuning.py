"""A web process leaves what it began with out of its collections of garbage."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dashboard.asgi import THRESHOLDS
from tests.runtime.conftest import ROOT

#: in a process of its own, since nothing of it can be undone
_PROGRAM = """
import asyncio, gc, sys
from unittest import mock
from dashboard.asgi import application
from registry.subjects.engine import schema_workers

async def begin():
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    async def receive():
        return next(messages)
    async def send(message):
        pass
    await application({"type": "lifespan"}, receive, send)

assert "dashboard.page_urls" not in sys.modules
with mock.patch.object(schema_workers, "prestart"):
    asyncio.run(begin())
print(*gc.get_threshold(), gc.get_freeze_count() > 100_000, len(gc.get_objects()) < gc.get_freeze_count() // 10)
print("dashboard.page_urls" in sys.modules)
"""


@pytest.mark.slow
def test_a_web_process_settles_at_its_start() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], cwd=ROOT, env={**os.environ, "SECRET_KEY": "k" * 50, "SCHEMADESK_HOT_PATH": "0"}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [*map(str, THRESHOLDS), "True", "True", "True"]
