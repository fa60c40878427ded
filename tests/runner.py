"""`python3 manage.py test`: every test with the real parts. `--quick` leaves out broker, Spark, browser and clients.

`--clients` runs those alone that drive clients of other languages, with the toolchains that are on PATH. `--weigh` runs
all and writes down how long each group of tests took (see weights.py).
Whatever else is given goes to pytest, so `manage.py test tests/formats -k union` works.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.runtime.layout import cache_folder
from tests.weights import Weigher

QUICK = "not slow and not broker and not spark and not browser and not clients"
OWN = ("--quick", "--clients", "--weigh")
MAX_WORKERS = 4
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def main(arguments: list[str]) -> int:
    """Run the tests; gives pytest's exit code."""
    quick, clients, weigh = (option in arguments for option in OWN)
    rest = [argument for argument in arguments if argument not in OWN]
    os.chdir(Path(__file__).resolve().parent.parent)
    keep_bytecode()
    if quick:
        rest += ["-m", QUICK, *_workers("loadfile")]
    elif clients:
        rest += ["-m", "clients"]
    else:
        ensure_chromium()
        # xdist would begin with the groups of most tests; they come with the longest first (conftest.py).
        rest += [] if rest else [*_workers("loadgroup"), "--no-loadscope-reorder"]
    return int(pytest.main(rest, plugins=[Weigher()] if weigh else []))


def _workers(how: str) -> list[str]:
    """Pytest's options for several workers; none where they would share services that are given from outside."""
    count = min(MAX_WORKERS, os.cpu_count() or 1)
    given = {"DATABASE_URL", "REDIS_URL"} & os.environ.keys()
    return [] if given or count == 1 else ["-n", str(count), "--dist", how]


def keep_bytecode() -> None:
    """Where nothing may be written beside the sources, bytecode is kept in the product's cache.

    A run starts hundreds of processes, each of which would compile all that it imports, for seconds.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(cache_folder() / "bytecode"))


def ensure_chromium() -> None:
    """Find a Chromium for the browser tests, install Debian's where that is possible, or end with what to do."""
    if chromium_path():
        return
    if shutil.which("apt-get") and os.geteuid() == 0:
        print("installing Debian's Chromium for the browser tests …", flush=True)
        for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "chromium"]):
            subprocess.run(
                command, check=False, stdout=subprocess.DEVNULL, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
            )
        if chromium_path():
            return
    sys.exit("The browser tests need Chromium: install it and put it on PATH, or run `manage.py test --quick`.")


def chromium_path() -> str | None:
    """The Chromium on PATH, or None."""
    return next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
