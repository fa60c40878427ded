"""What is asked of a registry that dataset.py has filled: the operations of `bench registry` over its subjects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dashboard.bench.dataset import SHARED, SHARES, Size, is_referring, name_of, text_of
from dashboard.bench.registry_calls import GROWING, HOT, DataSet, Operation
from dashboard.bench.registry_client import Call, Target, ask_all
from dashboard.bench.registry_load import SERIAL

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
        found = (
            block * stride * TOGETHER + (block + turn) % TOGETHER for turn in range(TOGETHER) for block in range(blocks)
        )
        return [number for number in found if number < self.count and not is_referring(number)]

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
                answer["id"]
                for answer in ask_all(self.target, [Call("GET", _version(number, version)) for number in self.hot])
            ]
            for version in (1, last)
        )
        hot = list(zip(self.hot, first, latest, strict=True))

        def calls(make: Callable[[int, int, int], Call]) -> list[Call]:
            return [make(*each) for each in hot]

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
            Operation("register new", [Call(
                "POST", f"/subjects/{name_of(number)}/versions",
                {"schema": self.text(number, last, f"added_{SERIAL.decode()}")},
                lambda answer: isinstance(answer.get("id"), int)) for number in self.growing],
                is_numbered=True),
        ]  # fmt: skip

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
            answer["id"] for answer in ask_all(self.target, [Call("GET", _version(number, 1)) for number in self.hot])
        ]
        word = name_of(self.hot[0]).partition(".")[0]
        yield _gets("versions", [f"/subjects/{name}/versions" for name in names])
        yield _gets("versions of an id", [f"/schemas/ids/{each}/versions" for each in ids])
        yield _gets("subjects of an id", [f"/schemas/ids/{each}/subjects" for each in ids])
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


def _has(**wanted: Any) -> Callable[[Any], bool]:
    """Whether an answer has these values; a schema counts for what it says."""

    def is_right(answer: Any) -> bool:
        return isinstance(answer, dict) and all(
            json.loads(answer.get(key, "null")) == json.loads(value) if key == "schema" else answer.get(key) == value
            for key, value in wanted.items()
        )

    return is_right
