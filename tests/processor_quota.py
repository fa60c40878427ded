"""Limits programs to a share of a processor, so that a measurement of several hosts fits on one machine (cgroups, version 1)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

GROUPS: Final = Path("/sys/fs/cgroup/cpu")
PERIOD: Final = 50_000  # microseconds
FIRST: Final = 65_536  # shares: with 1,024 for each other program, a group gets its quota on a busy machine too


def processes_below(pid: int) -> list[int]:
    """A process and all that it started, and those that they started."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


@contextmanager
def limited(name: str, pid: int, share: float | None) -> Iterator[None]:
    """A process and all below it together get at most this share of a processor, meanwhile; None: as much as there is."""
    group = GROUPS / name
    group.mkdir(exist_ok=True)  # one that a killed run left
    try:
        quota = -1 if share is None else int(PERIOD * share)
        for key, value in (("cfs_period_us", PERIOD), ("cfs_quota_us", quota), ("shares", FIRST)):
            (group / f"cpu.{key}").write_text(str(value))
        for each in processes_below(pid):
            (group / "cgroup.procs").write_text(str(each))
        yield
    finally:
        while left := (group / "cgroup.procs").read_text().split():
            for line in left:
                with suppress(ProcessLookupError):
                    (GROUPS / "cgroup.procs").write_text(line)
        group.rmdir()
