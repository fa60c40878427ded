"""The mixed load of an endurance run, and its records: answers by the second, errors, memory, and faults."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from django.urls import reverse

from benchmarks import endurance_load
from benchmarks.endurance_load import GROUP
from benchmarks.endurance_site import Site
from benchmarks.registry_calls import FIRST_SERIAL, DataSet, Operation
from benchmarks.registry_client import CONTENT_TYPE, Call, Target
from benchmarks.registry_load import SERIAL
from registry.errors import RemoteUnavailable

#: of a hundred requests, so many are of each kind: programs read far more than they write, and people look at pages
SHARES: Final = {
    "schema by id": 50,
    "latest": 15,
    "version": 8,
    "look-up": 9,
    "re-register": 6,
    "compatibility check": 4,
    "register new": 3,
    "list": 1,
    "page": 4,
}
OTHER: Final = 0.5  # any other kind  # fmt: skip
TURN: Final = 2_000  # requests after which the mix begins anew


@dataclass(frozen=True, slots=True)
class Kind:
    """What is counted together: its name, its requests as they go over the wire, and how many of a hundred are its."""

    name: str
    requests: Sequence[str]
    share: float


def kinds_of(target: Target, operations: Sequence[Operation], pages: Mapping[str, str], cookie: str) -> list[Kind]:
    """The kinds of a mix: operations of the registry, and pages (name → address) with a session's cookie."""
    kinds = []
    for operation in operations:
        name = "list" if operation.name.startswith("list of ") else operation.name
        kinds.append(Kind(operation.name, [_raw(target, call) for call in operation.calls], SHARES.get(name, OTHER)))
    share = SHARES["page"] / max(1, len(pages))
    return kinds + [Kind(name, [raw_page(target, address, cookie)], share) for name, address in pages.items()]


def _raw(target: Target, call: Call) -> str:
    """The product's own API speaks plain JSON alone."""
    raw = target.raw(call)
    return raw.replace(CONTENT_TYPE, "application/json") if call.path.startswith("/api/") else raw


def raw_page(target: Target, address: str, cookie: str) -> str:
    """The request of a page as it goes over the wire."""
    head = [f"GET {address} HTTP/1.1", f"Host: {urlsplit(target.url).netloc}", "Accept: text/html", f"Cookie: {cookie}"]
    return "\r\n".join([*head, "", ""])


def mixed(kinds: Sequence[Kind]) -> list[tuple[int, str]]:
    """The requests in the order in which they are sent, with the numbers of their kinds: each kind has its share."""
    rng = random.Random(1)  # noqa: S311  no secret
    total = sum(kind.share for kind in kinds)
    requests: list[tuple[int, str]] = []
    for number, kind in enumerate(kinds):
        count = max(1, round(TURN * kind.share / total))
        requests += [(number, kind.requests[index % len(kind.requests)]) for index in range(count)]
    rng.shuffle(requests)
    return requests


def registrations(data: DataSet) -> Operation:
    """New versions under subjects that get 64 each: a subject of thousands is measured by nobody who has one."""
    name = f"{data.prefix}g-{GROUP.decode()}"
    text = data.text(name, 0, f"added_{SERIAL.decode()}")
    return Operation("register new", [Call("POST", f"/subjects/{name}/versions", {"schema": text})])


def pages_of(registry: str, subject: str, word: str) -> dict[str, str]:
    """The pages that people look at, by name."""
    parameters = {"registry": registry, "subject": subject}
    return {
        "page: subjects": reverse("ui:subjects", kwargs={"registry": registry}),
        "page: search": f"{reverse('ui:search')}?q={word}",
        "page: subject": reverse("ui:subject", kwargs=parameters),
        "page: board": reverse("ui:environments"),
        "page: compare": f"{reverse('ui:compare', kwargs=parameters)}?from=1&to=2",
    }


# -- running it ---------------------------------------------------------------------------------------------------------


def stream(
    name: str, requests: Sequence[tuple[int, str]], *, rate: float, lanes: int, pinned: bool = False
) -> dict[str, Any]:
    """A stream as the load generator is told; rate 0 is as fast as it goes."""
    return {"name": name, "requests": requests, "rate": rate, "lanes": lanes, "pinned": pinned}


def lines(
    targets: Sequence[Target], streams: Sequence[Mapping[str, Any]], *, seconds: float, serial: int
) -> Iterator[dict[str, Any]]:
    """What the load generator tells, second by second. Raises RemoteUnavailable where it ends before it is over."""
    job = {
        "servers": [target.address[:2] for target in targets],
        "streams": streams,
        "seconds": seconds,
        "serial": serial,
    }
    process = subprocess.Popen(
        [sys.executable, "-I", str(Path(endurance_load.__file__))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    with process:
        try:
            assert process.stdin is not None and process.stdout is not None
            with closing(process.stdin):
                process.stdin.write(json.dumps(job) + "\n")
            for line in process.stdout:
                report = json.loads(line)
                if report.get("over"):
                    return
                yield report
        finally:
            process.kill()
    raise RemoteUnavailable("The load generator ended before the load was over.")


def at_most(targets: Sequence[Target], requests: Sequence[tuple[int, str]], *, lanes: int, seconds: float, serial: int,
            note: Callable[[Mapping[str, Any]], None]) -> float:  # fmt: skip
    """How many requests a second are answered at most; the first third of the time isn't counted.

    `note` is given each line. Raises RemoteUnavailable where nothing is answered.
    """
    answered, last = 0, 0.0
    began: float | None = None
    for report in lines(targets, [stream("mix", requests, rate=0.0, lanes=lanes)], seconds=seconds, serial=serial):
        note(report)
        if report["at"] - report["began"] < seconds / 3:
            began = report["at"]
            continue
        began = report["began"] if began is None else began
        answered, last = answered + len(report["streams"]["mix"]["taken"]), report["at"]
    if began is None or not answered:
        raise RemoteUnavailable("No request of the mixed load was answered.")
    return answered / (last - began)


@dataclass(frozen=True, slots=True)
class Error:
    """A request that wasn't answered with what was asked for: when that came, after how long, and what it was."""

    at: float
    took: float
    what: str
    body: str

    @property
    def is_told(self) -> bool:
        """Whether it says in its dialect what is wrong; a connection that breaks can't."""
        if self.what in ("closed", "no answer"):
            return self.what == "closed"
        if "<html" in self.body.lower():
            return True
        try:
            return bool(json.loads(self.body))
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class Second:
    """What came in about a second: the seconds that answers took, how many errors and how many weren't sent."""

    at: float
    taken: array[float]
    errors: int
    skipped: int
    steady: int


@dataclass(frozen=True, slots=True)
class Fault:
    """What is done at which share of the time, to which part; `documented` is what may be answered then (docs/how-to/run.md)."""

    name: str
    part: str
    share: float
    do: Callable[[Site], None]
    documented: frozenset[str] = frozenset()


FAULTS: Final = (
    Fault("PostgreSQL restarted", "postgres", 0.3, Site.restart_postgres, frozenset({"503"})),
    Fault("Valkey restarted", "valkey", 0.4, Site.restart_valkey),
    Fault("one web process killed", "web-2", 0.5, Site.kill_web, frozenset({"closed"})),
)


@dataclass
class RunRecord:
    """All that came."""

    seconds: list[Second] = field(default_factory=list)
    errors: list[Error] = field(default_factory=list)
    steady_errors: list[Error] = field(default_factory=list)
    registered: dict[int, int] = field(default_factory=dict)
    memory: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    faults: list[tuple[Fault, float]] = field(default_factory=list)
    serial: int = FIRST_SERIAL
    began: float = 0.0

    def note_ids(self, report: Mapping[str, Any]) -> None:
        """Registrations that were answered for."""
        self.serial = report["serial"]
        for stream_report in report["streams"].values():
            self.registered |= {int(serial): int(schema_id) for serial, schema_id in stream_report["registered"]}

    def note(self, report: Mapping[str, Any]) -> None:
        """A line of the load generator."""
        self.note_ids(report)
        mix, steady = report["streams"]["mix"], report["streams"]["steady"]
        taken = array("f", [seconds for _, seconds in mix["taken"]])
        self.seconds.append(Second(report["at"], taken, len(mix["errors"]), mix["skipped"], len(steady["taken"])))
        self.errors += [Error(*error[1:]) for error in mix["errors"]]
        self.steady_errors += [Error(*error[1:]) for error in steady["errors"]]


def percentile(ordered: Sequence[float], share: float) -> float:
    """The nearest rank; 0 of none."""
    return ordered[math.ceil(len(ordered) * share) - 1] if ordered else 0.0
