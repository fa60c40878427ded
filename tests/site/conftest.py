"""The gallery served, for the tests that look at it in a browser."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Where the gallery is served, without a database, by a process of its own, which starts once for all files."""
    command = [sys.executable, "-m", "tests.site.shoot", "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None and server.stdin is not None
        yield server.stdout.readline().strip()
        server.stdin.close()
