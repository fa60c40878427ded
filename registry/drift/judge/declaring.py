"""Fields as a schema declares them, by path: what readers of the formats collect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

#: what an object says of names that it doesn't declare: refused, allowed by silence, or allowed on purpose
Others = Literal["closed", "silent", "open"]
MAX_FIELDS: Final = 2_000
MAX_DEPTH: Final = 12
MAX_STEPS: Final = 20_000


@dataclass(frozen=True)
class DeclaredField:
    """A path: the kinds that a value may have and the symbols of an enum (None: any), and whether it must be there."""

    kinds: frozenset[str] | None
    required: bool = False
    symbols: frozenset[str] | None = None


@dataclass(frozen=True)
class Declared:
    """All fields of a schema by path; `others` says of an object (the root's path is empty) what else it may hold.

    `messages` are the full names of Protobuf's message types by their path of indexes, as `0` or `1.0`.
    """

    fields: Mapping[str, DeclaredField] = field(default_factory=dict)
    others: Mapping[str, Others] = field(default_factory=dict)
    messages: Mapping[str, str] = field(default_factory=dict)


class Collected:
    """Fields as they are found."""

    def __init__(self) -> None:
        self.fields: dict[str, DeclaredField] = {}
        self.others: dict[str, Others] = {}
        self.messages: dict[str, str] = {}

    def is_full(self, depth: int) -> bool:
        """Whether to stop here."""
        return depth >= MAX_DEPTH or len(self.fields) >= MAX_FIELDS

    def add(self, path: str, kinds: frozenset[str] | None, required: bool, symbols: frozenset[str] | None) -> None:
        """One more field; of a path that is declared twice, either declaration may hold."""
        before = self.fields.get(path)
        if before is not None:
            kinds = None if kinds is None or before.kinds is None else kinds | before.kinds
            symbols = None if symbols is None or before.symbols is None else symbols | before.symbols
            required = required and before.required
        self.fields[path] = DeclaredField(kinds, required, symbols)


def below(path: str, name: str) -> str:
    """The path of a field of the object at `path`."""
    return f"{path}.{name}" if path else name
