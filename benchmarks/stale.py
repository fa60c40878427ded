"""Looks for stale reads: two hosts with caches, writers, readers and faults; every read is held against what was confirmed."""

from __future__ import annotations

import os
import re
import threading
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.measurement import machine
from benchmarks.stale_model import LATE, Client, Tracked
from benchmarks.stale_objects import things
from benchmarks.stale_site import APPLICATION, CHANCE, Host, Site, running_hosts
from registry.errors import InvalidInput

READERS, WRITERS = 3, 2  # threads per host
AGAIN: Final = 8  # reads of one thing in a row: the first ones fill the caches
WRITTEN: Final = 0.5  # of the reads are of something that is being written
PAUSE: Final = 0.15  # mean seconds between the writes of a thread
MOST_STALE: Final = 5  # then the hunt is over
HOSTS: Final = {"a": APPLICATION, "b": APPLICATION}
FAULTS: Final[Mapping[str, Callable[[Site], None]]] = {
    "a web process killed": Site.kill_web,
    "PostgreSQL restarted": Site.restart_postgres,
    "PostgreSQL crashed": Site.crash_postgres,
    "Valkey killed": Site.kill_valkey,
    "Valkey stopped for 10 s": Site.stop_valkey,
    "a web process paused for 20 s": Site.pause_web,
    "host b paused for 20 s": Site.pause_host,
    "host b cut off from Valkey for 15 s": Site.cut_host,
}
HEAD: Final = ("", "seconds", "reads", "of them cached", "unanswered", "writes", "unknown", "killed", "late", "stale")
WIDTHS: Final = (36, 8, 9, 15, 11, 7, 8, 7, 34, 5)
Say = Callable[[str], object]
HuntPart = tuple[str, float, Callable[[Site], None] | None]  # its name, seconds, and fault


@dataclass(frozen=True, slots=True)
class Row:
    """A part of the hunt: how long, what was counted, the longest that a read was late by reason, the cached answers."""

    what: str
    seconds: float
    counts: Mapping[str, int]
    late: Mapping[str, float]
    cached: int


@dataclass
class Hunt:
    """The threads of a hunt, and what they counted since the last row."""

    site: Site
    things: Sequence[Tracked]
    counts: Counter[str] = field(default_factory=Counter)
    late: dict[str, float] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> list[threading.Thread]:
        """Start the threads."""
        threads = [
            threading.Thread(target=self._work, args=(host, do), daemon=True)
            for host in self.site.hosts.values()
            for do in [self._read] * READERS + [self._write] * WRITERS
        ]
        for thread in threads:
            thread.start()
        return threads

    def _work(self, host: Host, do: Callable[[dict[str, Client], Host], None]) -> None:
        clients = {name: Client(self.site, each, name) for each in self.site.hosts.values() for name in each.ports}
        try:
            while not self.over.is_set():
                do(clients, host)
        except Exception as error:
            self.stale.append(f"The hunt itself failed: {error!r}")
            self.over.set()
            raise
        finally:
            for client in clients.values():
                client.close()

    def _read(self, clients: dict[str, Client], host: Host) -> None:
        """Read one thing in two ways at all web processes of the host; rather one that is being written."""
        written = [thing for thing in self.things if thing.writing.locked()]
        thing = CHANCE.choice(written if written and CHANCE.random() < WRITTEN else self.things)
        ways = CHANCE.choices(list(thing.reads), k=2)
        for _ in range(AGAIN):
            if self._check(thing, clients[CHANCE.choice(list(host.ports))], CHANCE.choice(ways)) == "unanswered":
                time.sleep(0.2)
                return

    def _write(self, clients: dict[str, Client], host: Host) -> None:
        """Make one write, with reads at another host right before and right after it."""
        time.sleep(CHANCE.expovariate(1 / PAUSE))
        thing, server = CHANCE.choice(self.things), CHANCE.choice(list(host.ports))
        elsewhere = CHANCE.choice(
            [name for each in self.site.hosts.values() if each is not host for name in each.ports]
        )
        what = CHANCE.choice(list(thing.reads))
        if not thing.writing.acquire(blocking=False):
            return
        try:
            others = clients[elsewhere] if not clients[elsewhere].host.is_paused else clients[server]
            for _ in range(2):
                self._check(thing, others, what)
            clients[server].close()  # a kept connection may just be closed, and the outcome unknown for nothing
            status = thing.step(clients[server], frozenset(self.site.hosts), self.over.is_set)
            for _ in range(2):
                self._check(thing, others, what)
        finally:
            thing.writing.release()
        with self._lock:
            self.counts["writes"] += 1
            self.counts["unknown"] += status == "unknown"
            self.counts["killed"] += thing.more.pop("killed", 0)

    def _check(self, thing: Tracked, client: Client, what: str) -> str:
        verdict, seconds, why = thing.check(client, what)
        with self._lock:
            self.counts["reads"] += 1
            self.counts[verdict] += verdict != "right"
            if verdict == "late":
                self.late[why] = max(seconds, self.late.get(why, 0.0))
            if verdict == "stale" and len(self.stale) < MOST_STALE:
                self.stale.append("\n".join([f"{thing.name}, {what} at {client.server}:", *thing.history]))
            if len(self.stale) >= MOST_STALE:
                self.over.set()
        return verdict

    def cached(self) -> int:
        """Return how many answers the caches of all hosts have given."""
        total = 0
        for host in self.site.hosts.values():
            client = Client(self.site, host, next(iter(host.ports)))
            text = client.ask("GET", "/metrics").text
            client.close()
            total += sum(map(int, re.findall(r'schemadesk_answers_before_django_total\{outcome="hit"\} (\d+)', text)))
        return total

    def part(self, what: str, seconds: float, do: Callable[[Site], None] | None = None) -> Row:
        """Let it run for a time, with a fault at its start; return what was counted."""
        began, before = time.monotonic(), self.cached()
        with self._lock:
            self.counts, self.late = Counter(), {}
        if do:
            do(self.site)
        self.over.wait(max(0.0, began + seconds - time.monotonic()))
        with self._lock:
            counts, late = Counter(self.counts), dict(self.late)
        return Row(what, time.monotonic() - began, counts, late, self.cached() - before)


def hunting(site: Site, parts: Sequence[HuntPart], say: Say, prefix: str = "") -> Iterator[Row]:
    """Hunt over the parts (name, seconds, fault); print the history of what was read stale."""
    host = next(iter(site.hosts.values()))
    client = Client(site, host, next(iter(host.ports)))
    hunt = Hunt(site, list(things(client, host.writer, prefix)))
    client.close()
    threads = hunt.run()
    try:
        for part in parts:
            if not hunt.over.is_set():
                yield hunt.part(*part)
    finally:
        hunt.over.set()
        for thread in threads:
            thread.join()
    for text in hunt.stale:
        say(f"STALE {text}")


# -- the command --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Size:
    """How long, and with which faults."""

    minutes: float = 10.0
    faults: tuple[str, ...] = tuple(FAULTS)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command line."""
    parser.add_argument("--minutes", type=float, default=Size().minutes, help="of the hunt")
    parser.add_argument("--without", default="", help="parts of the names of faults to leave out, separated by commas")
    parser.add_argument("--note", default="", help="what else was running, to note on the page")


def size_of(options: Mapping[str, Any]) -> Size:
    """Return the size that the options name. Raises InvalidInput."""
    if not 0.2 <= options["minutes"] <= 1_440:
        raise InvalidInput(f"--minutes {options['minutes']}: a number from 0.2 to 1,440.")
    without = [word for word in options["without"].split(",") if word]
    return Size(options["minutes"], tuple(name for name in FAULTS if not any(word in name for word in without)))


def measure(size: Size, say: Say) -> Iterator[Row]:
    """Yield the row of each part. Raises PartFailed, PartMissing."""
    share = 60 * size.minutes / (len(size.faults) + 2)
    parts: list[HuntPart] = [("writers killed alone", 2 * share, None)]
    parts += [(name, share, FAULTS[name]) for name in size.faults]
    with running_hosts(HOSTS) as site:
        yield from hunting(site, parts, say)


def cells(row: Row) -> tuple[str, ...]:
    """Return a row as the table shows it."""
    count = row.counts
    late = "; ".join(f"{why}: {seconds * 1000:,.0f} ms" for why, seconds in sorted(row.late.items()))
    numbers = (count["reads"], row.cached, count["unanswered"], count["writes"], count["unknown"], count["killed"])
    return (
        row.what, f"{row.seconds:.0f}", *(f"{number:,}" for number in numbers),
        f"{count['late']:,}{f' ({late})' if late else ''}", f"{count['stale']:,}",
    )  # fmt: skip


def in_columns(texts: Sequence[str]) -> str:
    """Return a row for a terminal."""
    return " ".join(f"{text:{width}}" for text, width in zip(texts, WIDTHS, strict=True)).rstrip()


def section(rows: Sequence[Row], note: str = "") -> str:
    """Return the section of the page of measurements."""
    load_average = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return "\n".join(
        [
            f"Measured on {time.strftime('%Y-%m-%d')} with {machine()}; load average at the end {load_average}."
            f"{' ' + note if note else ''}",
            "",
            "Two hosts with two web processes each, over one durable PostgreSQL and one Valkey. Threads register, delete, "
            "restore and configure at both, change roles, tokens, modes, aliases and notes, and read them over the three "
            "dialects, the product's API and pages. Programs beside the web processes are killed at random points of a "
            "commit and of its announcement, all the time. A read is *stale* if it began after a write was confirmed and "
            "shows an older state. It is *late* if it shows an older state than a write that nobody confirmed (*unknown*), "
            "that another read showed before it was confirmed (*seen*), or that a host confirmed while it was cut off from "
            f"Valkey; after {LATE:.0f} s it would be stale. The milliseconds are the longest that a read was late.",
            "",
            f"| {' | '.join(HEAD)} |",
            f"|{'---|' * len(HEAD)}",
            *(f"| {' | '.join(cells(row))} |" for row in rows),
        ]
    )
