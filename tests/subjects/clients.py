"""Client processes on the test database, and races between them."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from django.db import connection

from tests.subjects.client_process import PATIENCE, Call, Outcome, run


class Clients:
    """Processes that wait for calls; `race` lets them begin at the same moment."""

    def __init__(self, count: int) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.subjects.client_process"])
        self.barrier = context.Barrier(count)  # kept: its semaphores go with it
        database = {name: connection.settings_dict[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
        self.pipes, self.processes = [], []
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=run, args=(theirs, self.barrier, database), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def race(self, tasks: Sequence[Iterable[Call]], seed: int = 0) -> list[Outcome]:
        """Give each client its calls, all to begin together; gives all outcomes.

        A call that crashed is a failure, and so is a deadlock: everybody locks in one order.
        """
        self.begin(tasks, seed)
        return self.outcomes()

    def begin(self, tasks: Sequence[Iterable[Call]], seed: int = 0) -> None:
        """Let a race begin."""
        assert len(tasks) <= len(self.pipes), f"{len(tasks)} tasks for {len(self.pipes)} clients"
        for number, pipe in enumerate(self.pipes):
            pipe.send((seed * 1000 + number, list(tasks[number]) if number < len(tasks) else []))

    def outcomes(self) -> list[Outcome]:
        """The outcomes of the race that has begun."""
        outcomes: list[Outcome] = []
        deadlocks: list[str] = []
        for pipe in self.pipes:
            if not pipe.poll(PATIENCE):
                self.kill()
                raise AssertionError(f"a client did not answer within {PATIENCE} seconds")
            performed, broken = pipe.recv()
            outcomes += performed
            deadlocks += broken
        crashed = [outcome for outcome in outcomes if outcome.crash]
        assert not crashed, f"{len(crashed)} of {len(outcomes)} calls crashed, the first one:\n{crashed[0]}"
        assert not deadlocks, f"{len(deadlocks)} deadlocks, the first one:\n{deadlocks[0]}"
        return outcomes

    def kill(self) -> None:
        """End all clients now."""
        for process in self.processes:
            process.kill()

    def stop(self) -> None:
        """Let the clients end, and wait until they have."""
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            if process.is_alive():
                pipe.send(None)
        deadline = time.monotonic() + 10
        for process in self.processes:
            process.join(max(0, deadline - time.monotonic()))
        self.kill()


@contextmanager
def client_processes(count: int) -> Iterator[Clients]:
    """So many clients, ended in the end."""
    clients = Clients(count)
    try:
        yield clients
    finally:
        clients.stop()
