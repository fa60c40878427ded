"""What a part is, and running a few of them without a supervisor, as tests do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dashboard.services.errors import PartFailed
from dashboard.services.layout import Layout
from dashboard.services.process import Child, Command, end_children, start, tail


@dataclass(frozen=True)
class Part:
    """A program that runs as long as `up` does.

    `probe` gives a line such as "port 9092" once the part is ready, and None before. `prepare` is what has to be done
    before the first start; it may take its time. `after` names the parts and steps that have to be ready first.
    `replaced_by` is the environment variable that, when it is set already, names a server to be used instead.
    `seconds` is how long it may take to become ready.
    """

    name: str
    command: Callable[[Layout], Command]
    probe: Callable[[Layout], str | None]
    prepare: Callable[[Layout], None] | None = None
    after: tuple[str, ...] = ()
    replaced_by: str = ""
    late: bool = False
    seconds: float = 60.0


@dataclass(frozen=True)
class Step:
    """A program that runs once, after others are ready. `relay` shows its output instead of keeping it in a log;
    `vital` says that without its success there is no going on, `late` that the product is up without it."""

    name: str
    command: Callable[[Layout], Command]
    after: tuple[str, ...] = ()
    relay: bool = False
    vital: bool = True
    late: bool = False
    seconds: float = 600.0


@contextmanager
def running(layout: Layout, *parts: Part) -> Iterator[list[Child]]:
    """Starts the parts at once, waits until all are ready, and ends them when the block is left.

    Raises PartFailed, with the end of the log, when one doesn't become ready.
    """
    children: list[Child] = []
    try:
        for part in parts:
            if part.prepare:
                part.prepare(layout)
            children.append(start(part.command(layout), layout.log(part.name), layout.watchdog))
        for part, child in zip(parts, children, strict=True):
            wait_until_ready(part, child, layout)
        yield children
    finally:
        end_children(children)


def wait_until_ready(part: Part, child: Child, layout: Layout) -> str:
    """Waits for the part's probe and gives its line. Raises PartFailed when it ends or takes too long."""
    deadline = time.monotonic() + part.seconds
    while (status := child.ended()) is None:
        if line := part.probe(layout):
            return line
        if time.monotonic() > deadline:
            raise PartFailed(f"{part.name} was not ready after {part.seconds:.0f} s.\n{tail(layout.log(part.name))}")
        time.sleep(0.05)
    raise PartFailed(f"{part.name} {how_it_ended(status)}.\n{tail(layout.log(part.name))}")


def how_it_ended(status: int) -> str:
    """An exit status in words."""
    return f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
