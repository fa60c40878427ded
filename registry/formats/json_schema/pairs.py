"""Pairs of shapes, writer and reader: what differs in each, which pairs it depends on, and which of them break.

A pair breaks if it has a difference (those that the policy accepts are never noted), if a pair that it needs breaks, or if one of its
choices has no way out. Pairs are met once and taken as compatible until shown otherwise (the greatest fixpoint), so
recursion ends and the order of the walk doesn't matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from registry.errors import SchemaTooCostly
from registry.formats.json_schema.matching import maximum_matching
from registry.formats.json_schema.model import Place
from registry.formats.json_schema.shapes import Shape

MAX_EVALUATIONS: Final = 600_000
ChoiceKind = Literal["any", "matching", "covered", "not"]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: `kind` as the established registry names it, `at` the location below the pair.

    `before` is of the writer, `after` of the reader; the places are the nearest that each side has.
    """

    kind: str
    at: tuple[str, ...]
    writer: Place
    reader: Place
    before: Any = None
    after: Any = None
    name: str = ""
    step: str = ""


@dataclass(slots=True, eq=False)
class Choice:
    """A condition over pairs: any of them, a matching of rows to columns, one that covers, one under `not`.

    `change` is what is said if it fails; where the policy accepts that (`is_told` is False), a covering pair's own
    breaks still count. `held` are the pairs of the last matching that was found.
    """

    kind: ChoiceKind
    pairs: Sequence[Pair]
    change: Change
    needed: int = 0
    cells: Sequence[tuple[int, int]] = ()
    is_told: bool = True
    held: tuple[Pair, ...] = ()

    def is_broken(self) -> bool:
        """Whether no way out is left, going by which pairs are broken so far."""
        if self.kind == "any":
            return all(pair.is_broken for pair in self.pairs)
        if self.kind == "matching":
            if self.held and not any(pair.is_broken for pair in self.held):
                return False
            open_cells = [cell for cell, pair in zip(self.cells, self.pairs, strict=True) if not pair.is_broken]
            found = maximum_matching(open_cells)
            if len(found) < self.needed:
                return True
            by_cell = dict(zip(self.cells, self.pairs, strict=True))
            self.held = tuple(by_cell[cell] for cell in found.items())
            return False
        return self.pairs[0].is_broken


@dataclass(frozen=True, slots=True)
class Edge:
    """A pair that must hold: where it stands below, for the registry (`at`) and for people (`step`)."""

    at: tuple[str, ...]
    step: str
    pair: Pair


@dataclass(slots=True, eq=False)
class Pair:
    """A writer's and a reader's shape in the same place."""

    writer: Shape
    reader: Shape
    changes: list[Change] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    parents: list[Pair] = field(default_factory=list)
    is_broken: bool = False

    def children(self) -> Iterator[Pair]:
        """The pairs that this one depends on."""
        for edge in self.edges:
            yield edge.pair
        for choice in self.choices:
            yield from choice.pairs

    def breaks(self) -> bool:
        """Whether it breaks, going by what is known of the pairs it depends on."""
        if self.changes or any(edge.pair.is_broken for edge in self.edges):
            return True
        return any(choice.is_broken() for choice in self.choices)


def settle(pairs: Sequence[Pair]) -> None:
    """Marks every pair that breaks. `pairs` are in the order in which they were met; raises SchemaTooCostly."""
    for pair in pairs:
        for child in pair.children():
            child.parents.append(pair)
    left = MAX_EVALUATIONS
    waiting: dict[int, Pair] = {id(pair): pair for pair in pairs}
    order: list[Pair] = list(pairs)
    while order:
        pair = order.pop()
        waiting.pop(id(pair), None)
        left -= 1 + sum(len(choice.pairs) for choice in pair.choices)
        if left < 0:
            raise SchemaTooCostly(
                "comparing the schemas takes too long: their combinations refer to one another too often"
            )
        if pair.is_broken or not pair.breaks():
            continue
        pair.is_broken = True
        for parent in pair.parents:
            if not parent.is_broken and id(parent) not in waiting:
                waiting[id(parent)] = parent
                order.append(parent)


def change(
    pair: Pair, kind: str, *at: str, before: Any = None, after: Any = None, name: str = "", step: str = ""
) -> Change:
    """A difference of a pair, with the nearest place that each side has."""
    return Change(kind, at, _nearest(pair.writer, at), _nearest(pair.reader, at), before, after, name, step)


def _nearest(shape: Shape, at: Sequence[str]) -> Any:
    """The place of the keyword that a difference is about, of the shape itself where it lacks the keyword."""
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
