"""From pairs to findings: all breaks and hazards of a reader and a writer, each with its place, reason and cure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from registry.formats.base import Incompatibility, Judgement
from registry.formats.json_schema.comparison import Comparison
from registry.formats.json_schema.hazards import pair_hazards
from registry.formats.json_schema.matching import maximum_matching
from registry.formats.json_schema.model import Model
from registry.formats.json_schema.pairs import Change, Choice, Pair
from registry.formats.json_schema.paths import root_path
from registry.formats.json_schema.rules import RULES
from registry.formats.json_schema.text import compact
from registry.formats.json_schema.values import to_plain

MAX_FINDINGS: Final = 1_000
_MAX_STEPS: Final = 100_000
_MAX_CAUSES: Final = 8
_MAX_DEPTH: Final = 400


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a pair stands, for the registry (tokens of a location) and for people (a path)."""

    tokens: tuple[str, ...]
    path: str

    def inside(self, at: tuple[str, ...], step: str) -> Spot:
        """Further on."""
        return Spot(self.tokens + at, self.path + step)


def judge(reader: Model, writer: Model, policy: str) -> Judgement:
    """All breaks under a policy ("strict" or "lenient"), and all hazards; raises SchemaTooCostly."""
    comparison = Comparison(reader, writer, policy)
    walk = _Walk(reader, writer)
    spot = Spot((), root_path(reader))
    breaks = tuple(walk.breaks(comparison.root, spot)) if comparison.root.is_broken else ()
    hazards = tuple(walk.hazards(comparison.root, spot))
    if writer.draft.number != reader.draft.number:
        hazards = (walk.draft_hazard(comparison.root, spot), *hazards)
    return Judgement(breaks, hazards)


class _Walk:
    """Tells what is broken, from the root down; a pair may be told in several places, never inside itself."""

    def __init__(self, reader: Model, writer: Model) -> None:
        self._reader = reader
        self._writer = writer
        self._steps = 0

    def breaks(self, root: Pair, spot: Spot) -> Iterator[Incompatibility]:
        """The breaks of a pair and of what it needs, in the order of the comparison."""
        stack: list[tuple[Pair, Spot, frozenset[int]]] = [(root, spot, frozenset())]
        told = 0
        while stack and told < MAX_FINDINGS:
            pair, here, around = stack.pop()
            self._steps += 1
            if self._steps > _MAX_STEPS or id(pair) in around or len(around) > _MAX_DEPTH:
                continue
            inner = around | {id(pair)}
            for change in pair.changes:
                yield self.finding(change, here)
                told += 1
            for choice in pair.choices:
                if not choice.is_broken():
                    continue
                if choice.kind == "covered":
                    stack.append((choice.pairs[0], here.inside(choice.change.at, choice.change.step), inner))
                if choice.is_told:
                    yield self.finding(choice.change, here, self._causes(choice, here))
                    told += 1
            needed = [edge for edge in reversed(pair.edges) if edge.pair.is_broken]
            stack.extend((edge.pair, here.inside(edge.at, edge.step), inner) for edge in needed)

    def _causes(self, choice: Choice, here: Spot) -> tuple[Incompatibility, ...]:
        """What is broken between the members of combinations that can't be paired."""
        if choice.kind in ("covered", "not"):
            return ()
        matched: set[int] = set()
        if choice.kind == "matching":
            open_cells = [cell for cell, pair in zip(choice.cells, choice.pairs, strict=True) if not pair.is_broken]
            matched = set(maximum_matching(open_cells))
        causes: list[Incompatibility] = []
        for number, pair in enumerate(choice.pairs):
            is_matched = choice.kind == "matching" and choice.cells[number][0] in matched
            if is_matched or not pair.is_broken:
                continue
            causes.extend(self.finding(change, here) for change in pair.changes[: _MAX_CAUSES - len(causes)])
            if len(causes) >= _MAX_CAUSES:
                break
        return tuple(causes)

    def hazards(self, root: Pair, spot: Spot) -> Iterator[Incompatibility]:
        """What the established check lets pass, each pair told once."""
        stack = [(root, spot)]
        seen: set[int] = set()
        told = 0
        while stack and told < MAX_FINDINGS:
            pair, here = stack.pop()
            if id(pair) in seen:
                continue
            seen.add(id(pair))
            for change in pair_hazards(pair):
                yield self.finding(change, here)
                told += 1
            for choice in reversed(pair.choices):
                stack.extend((inner, here) for inner in _taken(choice))
            stack.extend((edge.pair, here.inside(edge.at, edge.step)) for edge in reversed(pair.edges))

    def draft_hazard(self, root: Pair, spot: Spot) -> Incompatibility:
        """The schemas are of different drafts."""
        change = Change(
            "DRAFT_CHANGED", (), root.writer.place, root.reader.place, self._writer.draft.name, self._reader.draft.name
        )
        return self.finding(change, spot)

    def finding(self, change: Change, here: Spot, causes: tuple[Incompatibility, ...] = ()) -> Incompatibility:
        """A difference in its place, with its sentence, pointers, reason and cures."""
        rule = RULES["CONST_CHANGED" if change.at == ("const",) else change.kind]
        path = here.path + change.step
        names = {"reader": shown(change.after), "writer": shown(change.before), "name": change.name, "path": path}
        return Incompatibility(
            rule=rule.id,
            kind=rule.kind,
            reader_pointer=change.reader.pointer,
            writer_pointer=change.writer.pointer,
            path=path,
            before=to_plain(change.before),
            after=to_plain(change.after),
            message=f"{path}: {rule.sentence.format_map(names)}",
            severity=rule.severity,
            location="#/" + "/".join(here.tokens + change.at),
            detail=change.name,
            why=rule.why.format_map(names),
            remedy_in_reader=rule.in_reader.format_map(names),
            remedy_in_writer=rule.in_writer.format_map(names),
            reader_source=self._reader.source(change.reader),
            writer_source=self._writer.source(change.writer),
            causes=causes,
        )


def _taken(choice: Choice) -> Iterator[Pair]:
    """The pairs by which a choice passes."""
    if choice.kind in ("not",) or choice.is_broken():
        return
    if choice.kind == "matching":
        open_cells = {cell: pair for cell, pair in zip(choice.cells, choice.pairs, strict=True) if not pair.is_broken}
        for cell in maximum_matching(open_cells).items():
            yield open_cells[cell]
    else:
        yield from (pair for pair in choice.pairs[:1] if choice.kind == "covered")
        if choice.kind == "any":
            yield from [pair for pair in choice.pairs if not pair.is_broken][:1]


def shown(value: Any) -> str:
    """A value in a sentence, shortened."""
    text = value if isinstance(value, str) else compact(value)
    return text if len(text) <= 120 else text[:119] + "…"
