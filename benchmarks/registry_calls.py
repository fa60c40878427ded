"""The calls to a registry that is measured, over a data set of its own or one that dataset.py has filled."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.dataset import SHARED, SHARES, Size, is_referring, name_of, text_of
from benchmarks.engines import GENERATORS
from benchmarks.registry_client import Call, Target, ask, ask_all
from benchmarks.registry_load import SERIAL
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
#: requests of a client that starts, on a connection of its own
EACH: Final = 20


def _goals(cached: float, uncached: float, written: float) -> dict[str, float]:
    return {"cached": cached, "uncached": uncached, "writes-5": written}


READ: Final = _goals(0.06, 0.9, 0.15)


@dataclass(frozen=True, slots=True)
class Operation:
    """What is measured: its name, its calls, and by condition the goal in CPU milliseconds a request at so many connections.

    A connection is made anew after `each` requests, 0: never.
    """

    name: str
    calls: Sequence[Call]
    goals: Mapping[str, float] = field(default_factory=dict)
    is_numbered: bool = False
    each: int = 0


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
        return [content["id"] for content in ask_all(self.target, calls)]

    def listing(self, names: Sequence[str], goals: Mapping[str, float] = {}) -> Operation:
        """The list of those subjects."""
        prefix = names[0].rpartition("-")[0] + "-"
        call = Call("GET", f"/subjects?subjectPrefix={prefix}", is_right=_lists(prefix, frozenset(names)))
        return Operation(f"list of {len(names):,}", [call], goals)

    def _operations(self, ids: Sequence[int], again: Sequence[int]) -> list[Operation]:
        hot = list(zip(self.hot, ids, again, strict=False))

        def calls(make: Callable[[str, int, int], Call]) -> list[Call]:
            return [make(*item) for item in hot]

        def stored(name: str, version: int) -> dict[str, Any]:
            return {"subject": name, "version": version, "schema": self.text(name, version - 1)}

        return [
            Operation("fleet that starts", [Call("GET", f"/schemas/ids/{number}", is_right=_has_schema) for number in ids], each=EACH),
            Operation("schema by id", calls(lambda name, first, _: Call(
                "GET", f"/schemas/ids/{first}", is_right=_is({"schema": self.text(name, 0)}))), READ),
            Operation("version", calls(lambda name, first, _: Call(
                "GET", f"/subjects/{name}/versions/1", is_right=_is({**stored(name, 1), "id": first}))), READ),
            Operation("latest", calls(lambda name, _, second: Call(
                "GET", f"/subjects/{name}/versions/latest", is_right=_is({**stored(name, 2), "id": second}))), READ),
            Operation("look-up", calls(lambda name, _, second: Call(
                "POST", f"/subjects/{name}", {"schema": self.text(name, 1)},
                _is({"subject": name, "version": 2, "id": second}))), _goals(0.12, 1.3, 0.25)),
            Operation("re-register", calls(lambda name, _, second: Call(
                "POST", f"/subjects/{name}/versions", {"schema": self.text(name, 1)}, _is({"id": second}))), _goals(0.2, 1.3, 0.25)),
            Operation("compatibility check", calls(lambda name, *_: Call(
                "POST", f"/compatibility/subjects/{name}/versions/latest", {"schema": self.text(name, 2)},
                _is({"is_compatible": True}))), _goals(0.5, 1.8, 0.6)),
            Operation("register new", self.registering, {"uncached": 3.5}, is_numbered=True),
            self.listing(self.subjects, _goals(0.3, 2.0, 0.5) if self.count == LISTED else {}),
        ]  # fmt: skip

    @property
    def registering(self) -> list[Call]:
        """The calls that register new versions."""
        return [
            Call(
                "POST",
                f"/subjects/{name}/versions",
                {"schema": self.text(name, 0, f"added_{SERIAL.decode()}")},
                _has_id,
            )
            for name in self.growing
        ]

    def registered(self) -> int:
        """How many versions the growing subjects have. Raises RemoteUnavailable."""
        calls = [Call("GET", f"/subjects/{name}/versions") for name in self.growing]
        return sum(len(numbers) for numbers in ask_all(self.target, calls))

    def try_to_remove(self) -> None:
        """Create and remove one subject, so that missing permission shows before there are thousands. Raises RemoteUnavailable."""
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


def _has_id(content: Any) -> bool:
    return isinstance(content, dict) and isinstance(content.get("id"), int)


def _has_schema(content: Any) -> bool:
    return isinstance(content, dict) and isinstance(content.get("schema"), str)


def _is(expected: dict[str, Any]) -> Callable[[Any], bool]:
    """Whether an answer has these values; a schema counts for what it says, however it is written."""

    def is_right(content: Any) -> bool:
        return isinstance(content, dict) and all(
            _same_schema(content.get(key), value) if key == "schema" else content.get(key) == value
            for key, value in expected.items()
        )

    return is_right


def _same_schema(actual: Any, expected: str) -> bool:
    try:
        return bool(json.loads(actual) == json.loads(expected))
    except (TypeError, ValueError):
        return False


def _lists(prefix: str, names: frozenset[str]) -> Callable[[Any], bool]:
    """Whether a list has these names, all of them and none else of that prefix (a server may not know the parameter)."""

    def is_right(content: Any) -> bool:
        return isinstance(content, list) and {name for name in content if name.startswith(prefix)} == names

    return is_right


TOGETHER: Final = 10  # neighbours that are asked for: how large a subject is goes by the last digit of its number


@dataclass(frozen=True, slots=True)
class LoadedSet:
    """Subjects of the first environment of a filled registry, which the root's addresses mean."""

    target: Target
    size: Size

    @property
    def count(self) -> int:
        """How many subjects the first environment has, besides the shared one."""
        return max(1, self.size.subjects * max(SHARES.values()) // sum(SHARES.values()))

    @property
    def numbers(self) -> list[int]:
        """The subjects that are asked for: as many in each data set, spread over all of it, with whole texts."""
        blocks = max(1, min((HOT + GROWING) // TOGETHER + 1, self.count // TOGETHER))
        stride = max(1, self.count // TOGETHER // blocks)
        # One of each block in turn, and of each last digit.
        candidates = (
            block * stride * TOGETHER + (block + turn) % TOGETHER for turn in range(TOGETHER) for block in range(blocks)
        )
        return [number for number in candidates if number < self.count and not is_referring(number)]

    @property
    def hot(self) -> list[int]:
        """Those that are called."""
        return self.numbers[: max(1, min(HOT, len(self.numbers) * 3 // 4))]

    @property
    def growing(self) -> list[int]:
        """Those that new versions are registered under."""
        return self.numbers[len(self.hot) :][:GROWING]

    def text(self, number: int, version: int, more: str = "") -> str:
        """The text of a version, with one optional field more."""
        text = text_of(number, version, self.size)
        if not more:
            return text
        record = json.loads(text)
        record["fields"].append({"name": more, "type": ["null", "string"], "default": None})
        return json.dumps(record)

    def registered(self) -> int:
        """How many versions the growing subjects have. Raises RemoteUnavailable."""
        calls = [Call("GET", f"/subjects/{name_of(number)}/versions") for number in self.growing]
        return sum(len(numbers) for numbers in ask_all(self.target, calls))

    def operations(self) -> list[Operation]:
        """The operations, with the ids that the registry has. Raises RemoteUnavailable."""
        last = self.size.versions
        first, latest = (
            [
                content["id"]
                for content in ask_all(self.target, [Call("GET", _version(number, version)) for number in self.hot])
            ]
            for version in (1, last)
        )
        hot = list(zip(self.hot, first, latest, strict=True))

        def calls(make: Callable[[int, int, int], Call]) -> list[Call]:
            return [make(*item) for item in hot]

        return [
            Operation("schema by id", calls(lambda number, first, _: Call(
                "GET", f"/schemas/ids/{first}", is_right=_has(schema=self.text(number, 1))))),
            Operation("version", calls(lambda number, first, _: Call(
                "GET", _version(number, 1), is_right=_has(version=1, id=first)))),
            Operation("latest", calls(lambda number, _, id_: Call(
                "GET", _version(number, "latest"), is_right=_has(version=last, id=id_)))),
            Operation("look-up", calls(lambda number, _, id_: Call(
                "POST", f"/subjects/{name_of(number)}", {"schema": self.text(number, last)}, _has(version=last, id=id_)))),
            Operation("re-register", calls(lambda number, _, id_: Call(
                "POST", f"/subjects/{name_of(number)}/versions", {"schema": self.text(number, last)}, _has(id=id_)))),
            Operation("compatibility check", calls(lambda number, *_: Call(
                "POST", f"/compatibility{_version(number, 'latest')}", {"schema": self.text(number, last + 1)},
                _has(is_compatible=True)))),
            Operation("register new", self.registering, is_numbered=True),
        ]  # fmt: skip

    @property
    def registering(self) -> list[Call]:
        """The calls that register new versions."""
        last = self.size.versions
        return [
            Call(
                "POST",
                f"/subjects/{name_of(number)}/versions",
                {"schema": self.text(number, last, f"added_{SERIAL.decode()}")},
                _has_id,
            )
            for number in self.growing
        ]

    def listing(self, count: int) -> Operation:
        """The list of so many subjects, which are registered for it. Raises RemoteUnavailable."""
        data = DataSet(self.target, 1)
        for _ in data.add_many(count):
            pass
        return data.listing(data.many(count))

    def others(self) -> Iterator[Operation]:
        """What else programs ask: for the mixed load."""
        names = [name_of(number) for number in self.hot]
        ids = [
            content["id"] for content in ask_all(self.target, [Call("GET", _version(number, 1)) for number in self.hot])
        ]
        word = name_of(self.hot[0]).partition(".")[0]
        yield _gets("versions", [f"/subjects/{name}/versions" for name in names])
        yield _gets("versions of an id", [f"/schemas/ids/{schema_id}/versions" for schema_id in ids])
        yield _gets("subjects of an id", [f"/schemas/ids/{schema_id}/subjects" for schema_id in ids])
        yield _gets(
            "config and mode", [f"/{what}/{name}?defaultToGlobal=true" for name in names for what in ("config", "mode")]
        )
        yield _gets(
            "referenced by",
            [f"/subjects/{SHARED}/versions/1/referencedby", f"/subjects/{names[0]}/versions/1/referencedby"],
        )
        yield _gets(
            "a page of all subjects", [f"/subjects?limit=100&offset={offset}" for offset in (0, 100, self.count // 2)]
        )
        yield _gets("subjects of a team", [f"/subjects?subjectPrefix={word}.&limit=100"])
        yield _gets("a page of all schemas", [f"/schemas?limit=50&offset={offset}" for offset in (0, 1_000)])
        yield _gets("latest schemas of a team", [f"/schemas?subjectPrefix={word}.&latestOnly=true&limit=50"])
        yield _gets("search", [f"/api/v1/search?q={query}" for query in ("customer+email", "field:email", word)])


def _gets(name: str, paths: Sequence[str]) -> Operation:
    return Operation(name, [Call("GET", path) for path in paths])


def _version(number: int, version: int | str) -> str:
    return f"/subjects/{name_of(number)}/versions/{version}"


def _has(**expected: Any) -> Callable[[Any], bool]:
    """Whether an answer has these values; a schema counts for what it says."""

    def is_right(content: Any) -> bool:
        return isinstance(content, dict) and all(
            json.loads(content.get(key, "null")) == json.loads(value) if key == "schema" else content.get(key) == value
            for key, value in expected.items()
        )

    return is_right
