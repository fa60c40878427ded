"""How long a call takes, how much memory the process has, and the page of measurements, one section a subject."""

from __future__ import annotations

import gc
import math
import os
import platform
import re
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Timing:
    """The seconds that one call took, over all calls."""

    median: float
    p99: float
    calls: int


def timed(prepare: Callable[[], Callable[[], object]], *, most_calls: int, most_seconds: float) -> Timing:
    """What the prepared calls took; each is prepared anew, outside of the time, and the first one is not counted.

    Ends after so many calls, or so many seconds with what prepares them.
    """
    prepare()()
    gc.collect()
    taken: list[float] = []
    end = time.perf_counter() + most_seconds
    while len(taken) < most_calls and (not taken or time.perf_counter() < end):
        call = prepare()
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return timing_of(taken)


def timing_of(taken: Sequence[float]) -> Timing:
    """The median and the 99th percentile (nearest rank) of some seconds."""
    ordered = sorted(taken)
    return Timing(statistics.median(ordered), ordered[math.ceil(len(ordered) * 0.99) - 1], len(ordered))


def resident_bytes() -> int:
    """The memory that this process holds now; where the system doesn't say, the most that it has held."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def machine() -> str:
    """The processor, its cores, the system and the Python, in one line."""
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "reference" / "benchmarks.md"
_HEAD: Final = "# Benchmarks\n\nWritten by `manage.py bench SUBJECT --write`, on the machine that each section names.\n"


def write_section(name: str, title: str, text: str, page: Path = PAGE) -> None:
    """Puts a section in its place on the page, or at the end if the page has none of that name."""
    content = page.read_text(encoding="utf-8") if page.exists() else _HEAD
    section = f"<!-- {name} -->\n## {title}\n\n{text.strip()}\n<!-- /{name} -->\n"
    old = re.compile(rf"<!-- {re.escape(name)} -->\n.*?<!-- /{re.escape(name)} -->\n", re.DOTALL)
    changed, count = old.subn(lambda _: section, content, count=1)
    page.write_text(changed if count else f"{content.rstrip()}\n\n{section}", encoding="utf-8")
