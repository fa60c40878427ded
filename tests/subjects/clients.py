"""Client processes on the test database, and races between them."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from django.db import connection

from tests.subjects.client_process import PATIENCE, Call, Outcome, run


class Clients:
    """Processes that wait for calls; `race` lets them begin at the same moment."""

    def __init__(self, count: int) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.subjects.client_process"])
        barrier = context.Barrier(count)
        database = {name: connection.settings_dict[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
        self.pipes, self.processes = [], []
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=run, args=(theirs, barrier, database), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def race(self, tasks: Sequence[Iterable[Call]], seed: int = 0) -> list[Outcome]:
        """Give each client its calls, all to begin together; gives all outcomes. A call that crashed is a failure."""
        assert len(tasks) <= len(self.pipes), f"{len(tasks)} tasks for {len(self.pipes)} clients"
        for number, pipe in enumerate(self.pipes):
            pipe.send((seed * 1000 + number, list(tasks[number]) if number < len(tasks) else []))
        outcomes: list[Outcome] = []
        for pipe in self.pipes:
            if not pipe.poll(PATIENCE):
                self.kill()
                raise AssertionError(f"a client did not answer within {PATIENCE} seconds")
            outcomes += pipe.recv()
        crashed = [outcome for outcome in outcomes if outcome.crash]
        assert not crashed, f"{len(crashed)} of {len(outcomes)} calls crashed, the first one:\n{crashed[0]}"
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
        for process in self.processes:
            process.join(10)
        self.kill()


@contextmanager
def client_processes(count: int) -> Iterator[Clients]:
    """So many clients, ended in the end."""
    clients = Clients(count)
    try:
        yield clients
    finally:
        clients.stop()
