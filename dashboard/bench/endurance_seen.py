"""What an endurance run saw: answers by the second, errors, registrations, memory, and the faults that were made."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dashboard.bench.endurance_site import Site
from dashboard.bench.registry_calls import FIRST_SERIAL


@dataclass(frozen=True, slots=True)
class Error:
    """A request that wasn't answered with what was asked for: when that came, after how long, and what it was."""

    at: float
    took: float
    what: str
    said: str

    @property
    def is_told(self) -> bool:
        """Whether it says in its dialect what is wrong; a connection that breaks can't."""
        if self.what in ("closed", "no answer"):
            return self.what == "closed"
        if "<html" in self.said.lower():
            return True
        try:
            return bool(json.loads(self.said))
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
    """What is done at which share of the time, to which part; `told` is what may be answered then (docs/how-to/run.md)."""

    name: str
    part: str
    share: float
    do: Callable[[Site], None]
    told: frozenset[str] = frozenset()


FAULTS: Final = (
    Fault("PostgreSQL restarted", "postgres", 0.3, Site.restart_postgres, frozenset({"503"})),
    Fault("Valkey restarted", "valkey", 0.4, Site.restart_valkey),
    Fault("one web process killed", "web-2", 0.5, Site.kill_web, frozenset({"closed"})),
)


@dataclass
class Seen:
    """All that came."""

    seconds: list[Second] = field(default_factory=list)
    errors: list[Error] = field(default_factory=list)
    steady_errors: list[Error] = field(default_factory=list)
    registered: dict[int, int] = field(default_factory=dict)
    memory: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    faults: list[tuple[Fault, float]] = field(default_factory=list)
    serial: int = FIRST_SERIAL
    began: float = 0.0

    def note_ids(self, told: Mapping[str, Any]) -> None:
        """Registrations that were answered for."""
        self.serial = told["serial"]
        for each in told["streams"].values():
            self.registered |= {int(serial): int(found) for serial, found in each["registered"]}

    def note(self, told: Mapping[str, Any]) -> None:
        """A line of the load generator."""
        self.note_ids(told)
        mix, steady = told["streams"]["mix"], told["streams"]["steady"]
        taken = array("f", [seconds for _, seconds in mix["taken"]])
        self.seconds.append(Second(told["at"], taken, len(mix["errors"]), mix["skipped"], len(steady["taken"])))
        self.errors += [Error(*each[1:]) for each in mix["errors"]]
        self.steady_errors += [Error(*each[1:]) for each in steady["errors"]]


def percentile(ordered: Sequence[float], share: float) -> float:
    """The nearest rank; 0 of none."""
    return ordered[math.ceil(len(ordered) * share) - 1] if ordered else 0.0
