"""Time in tests: it tells an end from none, and never how quick something is, which `manage.py bench` measures.

The numbers are far above what is measured, so that a machine with eight times as much to do as it has processors fails
nothing, and far below what comes without the limit that is tested: minutes, or no end at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

#: seconds for what has to come, such as a process that starts
PATIENCE: Final = 60.0
#: seconds by the clock for what is ended by a limit of at most three
SOON: Final = 20.0
#: seconds of this process's processor time for what is measured below two
AFFORDABLE: Final = 15.0


def until(holds: Callable[[], object], seconds: float = PATIENCE, *, pause: float = 0.01) -> None:
    """Returns when it holds; fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it did not come to that in {seconds:g} s"
        time.sleep(pause)


@contextmanager
def ends_soon(seconds: float = SOON) -> Iterator[None]:
    """Fails where what is done inside took longer by the clock: for limits on what waits or runs elsewhere.

    What is waited for has to take longer than that, or nothing is shown.
    """
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    assert took < seconds, f"it took {took:.1f} s"


@contextmanager
def costs_little(seconds: float = AFFORDABLE, *, what: object = "it") -> Iterator[None]:
    """Fails where what is done inside took more of the processor, which doesn't count what others do meanwhile."""
    began = time.process_time()
    yield
    took = time.process_time() - began
    assert took < seconds, f"{what} took {took:.1f} s of the processor"
