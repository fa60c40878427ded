"""Jars that only comparisons need: fetched as the product fetches its own, verified, kept in the same cache.

They are neither part of the product nor of its lock file: nothing is redistributed.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dashboard.services import jars
from dashboard.services.errors import ServiceError
from dashboard.services.folders import cache_folder
from dashboard.services.layout import Layout
from dashboard.services.process import Watchdog


def fetched(wanted: Sequence[jars.Jar]) -> list[Path]:
    """Where the jars are, once each has the content that its SHA-256 names; raises SystemExit when they can't be had."""
    cache = cache_folder() / "jars"
    missing = [jar for jar in wanted if not (cache / jar.place).exists()]
    try:
        for jar in wanted:
            if jar not in missing:
                jars.verify(jar, cache / jar.place)
        if missing:
            _fetch(missing, cache)
    except ServiceError as error:
        raise SystemExit(error.message) from error
    return [cache / jar.place for jar in wanted]


def _fetch(missing: Sequence[jars.Jar], cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    watchdog = Watchdog()
    watchdog.start()
    folder = Path(tempfile.mkdtemp(prefix="fetch-", dir=cache.parent))
    try:
        layout = Layout.at(folder / "work", watchdog)
        jars.ask_ivy(missing, folder, layout, "comparison", transitive=False)
        jars.install(missing, folder, cache)
    finally:
        watchdog.close()
        shutil.rmtree(folder, ignore_errors=True)
