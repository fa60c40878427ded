"""What is asked of a registry that is measured: a data set of its own, made and removed through the API, and the calls."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dashboard.bench.registry_client import Call, Target, ask, ask_all
from dashboard.bench.registry_load import SERIAL
from dashboard.bench.schemas import GENERATORS
from registry.errors import RemoteUnavailable

#: subjects that the calls go to, with two versions each: as many as a program's producers and consumers have
HOT: Final = 100
#: subjects that new versions are registered under
GROWING: Final = 32
FIELDS: Final = 10
FIRST_SERIAL: Final = 1_000_000
LISTED: Final = 1_000  # what the goal of the list is for
STEP: Final = 10_000
GOAL_CONNECTIONS: Final = 32


@dataclass(frozen=True, slots=True)
class Operation:
    """What is measured: its name, its calls, and the goal in CPU milliseconds a request at so many connections."""

    name: str
    calls: Sequence[Call]
    goal: float | None = None
    is_numbered: bool = False


@dataclass(frozen=True, slots=True)
class DataSet:
    """The subjects of one run at one registry; nobody else's names begin like theirs. `begun` are to be removed."""

    target: Target
    count: int
    prefix: str = field(default_factory=lambda: f"bench-{secrets.token_hex(4)}-")
    begun: list[str] = field(default_factory=list)

    @property
    def subjects(self) -> list[str]:
        """Those that are listed; the first of them are called."""
        return [f"{self.prefix}s-{number:06d}" for number in range(self.count)]

    @property
    def hot(self) -> list[str]:
        """Those that are called."""
        return self.subjects[:HOT]

    @property
    def growing(self) -> list[str]:
        """Those that new versions are registered under."""
        return [f"{self.prefix}new-{number:02d}" for number in range(GROWING)]

    def many(self, count: int) -> list[str]:
        """As many more, to be listed; all have the same schema."""
        return [f"{self.prefix}l-{number:06d}" for number in range(count)]

    def text(self, subject: str, version: int, more: str = "") -> str:
        """A schema of ten fields; a later version widens one and adds an optional one, and so does `more`."""
        record = json.loads(GENERATORS["AVRO"](FIELDS, version))
        # A name of its own: the same definition under two subjects would have one id.
        record |= {"name": subject.replace("-", "_"), "namespace": "bench"}
        if more:
            record["fields"].append({"name": more, "type": ["null", "string"], "default": None})
        return json.dumps(record)

    def make(self) -> list[Operation]:
        """Register the data set; the calls with the ids that it got. Raises RemoteUnavailable."""
        self.begun.extend([*self.subjects, *self.growing])
        ids = self._register([(name, self.text(name, 0)) for name in self.subjects])
        again = self._register([(name, self.text(name, 1)) for name in self.hot])
        self._register([(name, self.text(name, 0)) for name in self.growing])
        return self._operations(ids, again)

    def add_many(self, count: int) -> Iterator[int]:
        """Register many more subjects; says how many there are, now and then. Raises RemoteUnavailable."""
        names = self.many(count)
        for begin in range(0, count, STEP):
            batch = names[begin : begin + STEP]
            self.begun.extend(batch)
            self._register([(name, '"string"') for name in batch])
            yield begin + len(batch)

    def _register(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        calls = [Call("POST", f"/subjects/{name}/versions", {"schema": text}, _has_id) for name, text in pairs]
        return [answer["id"] for answer in ask_all(self.target, calls)]

    def listing(self, names: Sequence[str], goal: float | None = None) -> Operation:
        """The list of those subjects."""
        prefix = names[0].rpartition("-")[0] + "-"
        call = Call("GET", f"/subjects?subjectPrefix={prefix}", is_right=_lists(prefix, frozenset(names)))
        return Operation(f"list of {len(names):,}", [call], goal)

    def _operations(self, ids: Sequence[int], again: Sequence[int]) -> list[Operation]:
        hot = list(zip(self.hot, ids, again, strict=False))

        def calls(make: Callable[[str, int, int], Call]) -> list[Call]:
            return [make(*each) for each in hot]

        def stored(name: str, version: int) -> dict[str, Any]:
            return {"subject": name, "version": version, "schema": self.text(name, version - 1)}

        return [
            Operation("schema by id", calls(lambda name, first, _: Call(
                "GET", f"/schemas/ids/{first}", is_right=_is({"schema": self.text(name, 0)}))), 0.06),
            Operation("version", calls(lambda name, first, _: Call(
                "GET", f"/subjects/{name}/versions/1", is_right=_is({**stored(name, 1), "id": first}))), 0.06),
            Operation("latest", calls(lambda name, _, second: Call(
                "GET", f"/subjects/{name}/versions/latest", is_right=_is({**stored(name, 2), "id": second}))), 0.06),
            Operation("look-up", calls(lambda name, _, second: Call(
                "POST", f"/subjects/{name}", {"schema": self.text(name, 1)},
                _is({"subject": name, "version": 2, "id": second}))), 0.12),
            Operation("re-register", calls(lambda name, _, second: Call(
                "POST", f"/subjects/{name}/versions", {"schema": self.text(name, 1)}, _is({"id": second}))), 0.2),
            Operation("compatibility check", calls(lambda name, *_: Call(
                "POST", f"/compatibility/subjects/{name}/versions/latest", {"schema": self.text(name, 2)},
                _is({"is_compatible": True}))), 0.5),
            Operation("register new", [Call(
                "POST", f"/subjects/{name}/versions",
                {"schema": self.text(name, 0, f"added_{SERIAL.decode()}")}, _has_id) for name in self.growing],
                2.0, is_numbered=True),
            self.listing(self.subjects, 0.3 if self.count == LISTED else None),
        ]  # fmt: skip

    def registered(self) -> int:
        """How many versions the growing subjects have. Raises RemoteUnavailable."""
        calls = [Call("GET", f"/subjects/{name}/versions") for name in self.growing]
        return sum(len(numbers) for numbers in ask_all(self.target, calls))

    def try_to_remove(self) -> None:
        """Make one subject and remove it: whoever may not is told before there are thousands. Raises RemoteUnavailable."""
        probe = f"{self.prefix}probe"
        self.begun.append(probe)
        self._register([(probe, self.text(probe, 0))])
        self.remove()

    def remove(self) -> None:
        """Delete every subject for good. Raises RemoteUnavailable, which says what is left."""
        for query in ("", "?permanent=true"):  # in this order: only what is deleted can be removed
            calls = [Call("DELETE", f"/subjects/{name}{query}") for name in self.begun]
            for call, (status, body) in zip(calls, ask(self.target, calls), strict=True):
                # 404: it wasn't made, as what was to make it failed.
                if status not in (200, 404):
                    raise RemoteUnavailable(
                        f"{self.target.url}: {call.name} answered {status}: {body[:300]}. "
                        f"Remove what is left of the subjects {self.prefix}*. It takes credentials that may delete for good "
                        "(of ours, an admin's), or --keep."
                    )
        self.begun.clear()


def _has_id(answer: Any) -> bool:
    return isinstance(answer, dict) and isinstance(answer.get("id"), int)


def _is(wanted: dict[str, Any]) -> Callable[[Any], bool]:
    """Whether an answer has these values; a schema counts for what it says, however it is written."""

    def is_right(answer: Any) -> bool:
        return isinstance(answer, dict) and all(
            _same_schema(answer.get(key), value) if key == "schema" else answer.get(key) == value
            for key, value in wanted.items()
        )

    return is_right


def _same_schema(found: Any, wanted: str) -> bool:
    try:
        return bool(json.loads(found) == json.loads(wanted))
    except (TypeError, ValueError):
        return False


def _lists(prefix: str, names: frozenset[str]) -> Callable[[Any], bool]:
    """Whether a list has these names, all of them and none else of that prefix (a server may not know the parameter)."""

    def is_right(answer: Any) -> bool:
        return isinstance(answer, list) and {name for name in answer if name.startswith(prefix)} == names

    return is_right
