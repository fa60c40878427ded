"""Client processes on the test database, races between them, and what the clients of a race do."""

from __future__ import annotations

import json
import multiprocessing
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection

from registry.formats import FORMATS
from registry.formats.base import Reference
from registry.subjects.versions.qualified_names import SubjectName
from tests.subjects.client_process import PATIENCE, Call, Outcome, run
from tests.subjects.linearizability import REFERENCE


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


CLIENTS = 16


def record_text(*fields: dict[str, object], name: str = "Order") -> str:
    """A record's canonical text."""
    return FORMATS["AVRO"].parse(json.dumps({"type": "record", "name": name, "fields": list(fields)}), ()).canonical


def optional(name: str) -> dict[str, object]:
    """A field that any reader can do without."""
    return {"name": name, "type": ["null", "string"], "default": None}


def required(name: str) -> dict[str, object]:
    """A field that a reader can't do without."""
    return {"name": name, "type": "string"}


PLAIN = record_text({"name": "id", "type": "long"})
#: any two of these fit each other
FITTING = [record_text({"name": "id", "type": "long"}, optional(f"note_{number}")) for number in range(CLIENTS)]
#: each reads what PLAIN and FITTING wrote, none what another one wrote
RIVALS = [
    record_text(
        {"name": "id", "type": "long"},
        {"name": "kind", "type": {"type": "enum", "name": f"Kind{number}", "symbols": ["A"]}, "default": "A"},
    )
    for number in range(CLIENTS)
]
#: none of these reads what anything else wrote
MISFITS = [record_text({"name": "id", "type": "long"}, required(f"key_{number}")) for number in range(CLIENTS)]
#: refers to Order
BASKET = '{"type":"record","name":"Basket","fields":[{"name":"order","type":"Order"}]}'


@dataclass(frozen=True)
class Calls:
    """Calls within one context of the registry `dev`."""

    context: str

    def _call(self, service: str, subject: str, **arguments: object) -> Call:
        return Call(service, {"registry": "dev", "subject": SubjectName(self.context, subject), **arguments})

    def register(self, subject: str, text: str, *references: str) -> Call:
        """A registration; a reference is the name of a subject whose version 1 has the type Order."""
        targets = tuple(Reference(REFERENCE, f":{self.context}:{name}", 1) for name in references)
        return self._call("register_version", subject, text=text, references=targets)

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> Call:
        """The deletion of a subject, or of one version."""
        if version is None:
            return self._call("delete_subject", subject, permanent=permanent)
        return self._call("delete_version", subject, version=version, permanent=permanent)

    def remove(self, subject: str, version: int | None = None) -> Call:
        """The removal at once and for good of a subject, or of one version."""
        if version is None:
            return self._call("remove_subject", subject)
        return self._call("remove_version", subject, version=version)

    def level(self, subject: str, level: str) -> Call:
        """The setting of a level, of the context where the subject is empty."""
        return self._call("set_config", subject, level=level)

    def mode(self, subject: str, mode: str) -> Call:
        """The setting of a mode, of the context where the subject is empty."""
        return self._call("set_mode", subject, mode=mode)


#: what is done before the race, and the calls of each client in it
Racers = tuple[list[Call], list[list[Call]]]


def each(*calls: Call) -> list[list[Call]]:
    """A client for each call."""
    return [[call] for call in calls]


def last_version_goes(calls: Calls, dice: random.Random) -> Racers:
    """Two clients and more delete the same subject for ever, others register into it again."""
    before = [calls.register("orders", PLAIN), calls.delete("orders")]
    return before, each(*[calls.delete("orders", permanent=True)] * 4, *[calls.register("orders", PLAIN)] * 2)


def shared_schema_goes(calls: Calls, dice: random.Random) -> Racers:
    """Every subject that has a schema is deleted for ever at the same time."""
    names = [f"orders-{number}" for number in range(6)]
    before = [call for name in names for call in (calls.register(name, PLAIN), calls.delete(name))]
    return before, each(*(calls.delete(name, permanent=True) for name in names))


def shared_schema_goes_and_comes(calls: Calls, dice: random.Random) -> Racers:
    """The last version of a schema is deleted for ever while others register that schema."""
    before = [calls.register("orders", PLAIN), calls.delete("orders")]
    arriving = [calls.register(f"other-{number}", PLAIN) for number in range(5)]
    return before, each(calls.delete("orders", 1, permanent=True), *arriving)


def mode_goes_with_its_subject(calls: Calls, dice: random.Random) -> Racers:
    """A subject that may be written in a closed context goes, and its own mode with it."""
    before = [
        calls.mode("orders", "READWRITE"),
        calls.level("orders", "NONE"),
        calls.register("orders", PLAIN),
        calls.delete("orders"),
        calls.mode("", "READONLY"),
    ]
    arriving = [calls.register("orders", text) for text in MISFITS[:4]]
    return before, each(calls.delete("orders", permanent=True), *arriving)


def target_goes(calls: Calls, dice: random.Random) -> Racers:
    """A version is deleted while others begin to refer to it."""
    before = [calls.register("orders", PLAIN)]
    arriving = [calls.register(f"baskets-{number % 2}", BASKET, "orders") for number in range(4)]
    leaving = [
        calls.delete("orders"),
        calls.delete("orders", 1),
        calls.delete("orders", permanent=True),
        calls.delete("baskets-0"),
        calls.delete("baskets-0", permanent=True),
    ]
    return before, each(*arriving, *leaving)


def removed_while_registered(calls: Calls, dice: random.Random) -> Racers:
    """A subject and its versions are removed at once and for good while others register into it."""
    before = [calls.register("orders", PLAIN), calls.register("orders", FITTING[0])]
    arriving = [calls.register("orders", text) for text in (PLAIN, FITTING[0], FITTING[1], MISFITS[0])]
    leaving = [calls.remove("orders"), calls.remove("orders"), calls.remove("orders", 1), calls.remove("orders", 2)]
    return before, each(*arriving, *leaving)


def removed_while_referred_to(calls: Calls, dice: random.Random) -> Racers:
    """A version is removed for good while others begin to refer to it, and the referrers are removed too."""
    before = [calls.register("orders", PLAIN), calls.register("baskets-0", BASKET, "orders")]
    arriving = [calls.register(f"baskets-{number % 2}", BASKET, "orders") for number in range(4)]
    leaving = [calls.remove("orders", 1), calls.remove("orders"), calls.remove("baskets-0"), calls.remove("baskets-1")]
    return before, each(*arriving, *leaving, calls.delete("orders"), calls.register("orders", PLAIN))


def removed_by_lot(calls: Calls, dice: random.Random) -> Racers:
    """Removals of both kinds, deletions, modes and registrations by lot."""
    texts = [PLAIN, FITTING[0], FITTING[1], MISFITS[0]]
    kinds: list[Callable[[str], Call]] = [
        lambda name: calls.register(name, dice.choice(texts)),
        lambda name: calls.register(name, dice.choice(texts)),
        lambda name: calls.register("baskets", BASKET, name),
        lambda name: calls.remove(dice.choice([name, "baskets"])),
        lambda name: calls.remove(name, dice.randint(1, 2)),
        lambda name: calls.delete(name, permanent=dice.random() < 0.5),
        lambda name: calls.mode(dice.choice(["", name]), dice.choice(["READWRITE", "READWRITE", "READONLY"])),
    ]
    drawn = [dice.choice(kinds)(dice.choice(["orders", "invoices"])) for _ in range(18)]
    return drawn[:6], each(*drawn[6:])


def context_comes(calls: Calls, dice: random.Random) -> Racers:
    """A context that nobody has used yet gets settings and versions from all sides."""
    racers = [calls.level("", "FORWARD"), calls.level("orders", "NONE"), calls.mode("orders", "READWRITE")]
    return [], each(*racers, *(calls.register("orders", text) for text in (MISFITS[0], MISFITS[1], PLAIN)))


def readonly_comes(calls: Calls, dice: random.Random) -> Racers:
    """A context is closed and opened while versions come and go."""
    before = [calls.register("orders", PLAIN), calls.register("orders", FITTING[0])]
    racers = [calls.mode("", "READONLY"), calls.mode("", "READWRITE"), calls.mode("orders", "READONLY_OVERRIDE")]
    racers += [calls.register("orders", text) for text in FITTING[:5]]
    return before, each(*racers, calls.delete("orders", 1), calls.delete("orders"), calls.level("orders", "FULL"))


def readonly_stays(calls: Calls, dice: random.Random) -> Racers:
    """Whoever closes a context knows by the next id which registrations came before: no other may follow."""
    before = [calls.mode("open", "READWRITE"), calls.register("orders", PLAIN)]
    closing = [calls.mode("", "READONLY"), calls.register("open", MISFITS[0])]
    return before, [closing, *each(*(calls.register("orders", text) for text in FITTING[:8]))]


def level_changes(calls: Calls, dice: random.Random) -> Racers:
    """The level is loosened and tightened while schemas that don't fit are registered; ids tell the order again."""
    before = [calls.register("orders", PLAIN), calls.level("orders", "NONE")]
    changing = [
        [calls.level("orders", level), calls.register(f"mark-{level}", MISFITS[number])]
        for number, level in enumerate(("BACKWARD", "FULL_TRANSITIVE"), start=10)
    ]
    return before, changing + each(*(calls.register("orders", text) for text in (*MISFITS[:5], *FITTING[:3])))


def anything(calls: Calls, dice: random.Random) -> Racers:
    """Sixteen calls by lot."""
    texts = [PLAIN, FITTING[0], MISFITS[0], MISFITS[1]]
    kinds: list[Callable[[str], Call]] = [
        lambda name: calls.register(name, dice.choice(texts)),
        lambda name: calls.register(name, dice.choice(texts)),
        lambda name: calls.register("baskets", BASKET, name),
        lambda name: calls.delete(dice.choice([name, "baskets"]), permanent=dice.random() < 0.6),
        lambda name: calls.delete(name, dice.randint(1, 2), permanent=dice.random() < 0.6),
        lambda name: calls.level(dice.choice(["", name]), dice.choice(["NONE", "BACKWARD", "FULL"])),
        lambda name: calls.mode(dice.choice(["", name]), dice.choice(["READWRITE", "READWRITE", "READONLY"])),
    ]
    drawn = [dice.choice(kinds)(dice.choice(["orders", "invoices"])) for _ in range(CLIENTS + 6)]
    return drawn[:6], each(*drawn[6:])


SCENARIOS = [
    last_version_goes,
    shared_schema_goes,
    shared_schema_goes_and_comes,
    mode_goes_with_its_subject,
    target_goes,
    removed_while_registered,
    removed_while_referred_to,
    removed_by_lot,
    context_comes,
    readonly_comes,
    readonly_stays,
    level_changes,
    anything,
]
