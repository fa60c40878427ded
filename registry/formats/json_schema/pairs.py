"""Pairs of writer and reader shapes: their differences, the pairs that each depends on, and which of them break."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from registry.errors import SchemaTooCostly
from registry.formats.json_schema.model import SchemaLocation
from registry.formats.json_schema.shapes import Shape


def maximum_matching(cells: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return a maximum matching of rows and columns, as row → column; each is used once."""
    columns_of: dict[int, list[int]] = {}
    for row, column in cells:
        columns_of.setdefault(row, []).append(column)
    row_of: dict[int, int] = {}
    column_of: dict[int, int] = {}
    for row, columns in columns_of.items():
        free = next((column for column in columns if column not in row_of), None)
        if free is not None:
            row_of[free], column_of[row] = row, free
    for row in columns_of:
        if row not in column_of:
            _augment(row, columns_of, row_of, column_of)
    return column_of


def _augment(start: int, columns_of: dict[int, list[int]], row_of: dict[int, int], column_of: dict[int, int]) -> None:
    """Assign a column to `start` by moving others along the shortest augmenting path, if there is one."""
    came_from: dict[int, int] = {}
    todo = deque([start])
    while todo:
        row = todo.popleft()
        for column in columns_of.get(row, ()):
            if column in came_from:
                continue
            came_from[column] = row
            if column not in row_of:
                _shift(column, came_from, row_of, column_of)
                return
            todo.append(row_of[column])


def _shift(end: int, came_from: dict[int, int], row_of: dict[int, int], column_of: dict[int, int]) -> None:
    """Reassign the columns on a path that ends at a free column, from its end to its start."""
    column: int | None = end
    while column is not None:
        taker = came_from[column]
        previous = column_of.get(taker)
        row_of[column], column_of[taker] = taker, column
        column = previous


MAX_EVALUATIONS: Final = 600_000
ChoiceKind = Literal["any", "matching", "covered", "not"]


@dataclass(frozen=True, slots=True)
class KeywordChange:
    """One difference: `kind` is the name in Confluent's registry, `at` the location below the pair.

    `before` is the writer's value, `after` the reader's. The places are the nearest that each side has.
    """

    kind: str
    at: tuple[str, ...]
    writer: SchemaLocation
    reader: SchemaLocation
    before: Any = None
    after: Any = None
    name: str = ""
    step: str = ""


@dataclass(slots=True, eq=False)
class Choice:
    """A condition on pairs: any of them, a matching of rows and columns, a covering one, or one under `not`.

    `change` is reported if the condition fails. If the policy accepts the failure (`is_told` is False), the breaks of a
    covering pair still count. `matched` are the pairs of the last matching that was found.
    """

    kind: ChoiceKind
    pairs: Sequence[ShapePair]
    change: KeywordChange
    needed: int = 0
    cells: Sequence[tuple[int, int]] = ()
    is_told: bool = True
    matched: tuple[ShapePair, ...] = ()

    def is_broken(self) -> bool:
        """Return whether the condition fails, given the pairs that are broken so far."""
        if self.kind == "any":
            return all(pair.is_broken for pair in self.pairs)
        if self.kind == "matching":
            if self.matched and not any(pair.is_broken for pair in self.matched):
                return False
            open_cells = [cell for cell, pair in zip(self.cells, self.pairs, strict=True) if not pair.is_broken]
            matching = maximum_matching(open_cells)
            if len(matching) < self.needed:
                return True
            by_cell = dict(zip(self.cells, self.pairs, strict=True))
            self.matched = tuple(by_cell[cell] for cell in matching.items())
            return False
        return self.pairs[0].is_broken


@dataclass(frozen=True, slots=True)
class Edge:
    """A pair that must be compatible: its place below, for the registry (`at`) and for people (`step`)."""

    at: tuple[str, ...]
    step: str
    pair: ShapePair


@dataclass(slots=True, eq=False)
class ShapePair:
    """A writer's and a reader's shape at the same place."""

    writer: Shape
    reader: Shape
    changes: list[KeywordChange] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    parents: list[ShapePair] = field(default_factory=list)
    is_broken: bool = False

    def children(self) -> Iterator[ShapePair]:
        """Yield the pairs that this one depends on."""
        for edge in self.edges:
            yield edge.pair
        for choice in self.choices:
            yield from choice.pairs

    def breaks(self) -> bool:
        """Return whether the pair breaks, given what is known about the pairs that it depends on."""
        if self.changes or any(edge.pair.is_broken for edge in self.edges):
            return True
        return any(choice.is_broken() for choice in self.choices)


def settle(pairs: Sequence[ShapePair]) -> None:
    """Mark every pair that breaks. `pairs` are in the order of their creation; raises SchemaTooCostly."""
    for pair in pairs:
        for child in pair.children():
            child.parents.append(pair)
    left = MAX_EVALUATIONS
    waiting: dict[int, ShapePair] = {id(pair): pair for pair in pairs}
    order: list[ShapePair] = list(pairs)
    while order:
        pair = order.pop()
        waiting.pop(id(pair), None)
        left -= 1 + sum(len(choice.pairs) for choice in pair.choices)
        if left < 0:
            raise SchemaTooCostly(
                "comparing the schemas takes too long: their combinations refer to each other too often"
            )
        if pair.is_broken or not pair.breaks():
            continue
        pair.is_broken = True
        for parent in pair.parents:
            if not parent.is_broken and id(parent) not in waiting:
                waiting[id(parent)] = parent
                order.append(parent)


def change(
    pair: ShapePair, kind: str, *at: str, before: Any = None, after: Any = None, name: str = "", step: str = ""
) -> KeywordChange:
    """Return a difference of a pair, with the nearest place that each side has."""
    return KeywordChange(kind, at, _nearest(pair.writer, at), _nearest(pair.reader, at), before, after, name, step)


def _nearest(shape: Shape, at: Sequence[str]) -> Any:
    """Return the place of the keyword that differs, or of the shape if it lacks the keyword."""
    value: Any = shape.schema
    tokens: list[str] = []
    for token in at:
        if isinstance(value, Mapping) and token in value:
            value = value[token]
        elif isinstance(value, list) and token.isdigit() and int(token) < len(value):
            value = value[int(token)]
        else:
            break
        tokens.append(token)
    return shape.child(*tokens)
