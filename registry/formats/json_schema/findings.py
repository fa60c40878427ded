"""Findings of pairs: breaks and hazards of a reader and a writer, each with its place, reason and cure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from registry.formats.base import Incompatibility, Judgement
from registry.formats.json_schema.comparison import SchemaComparison
from registry.formats.json_schema.keyword_comparison import has_default, properties_of, required_of
from registry.formats.json_schema.model import Model, root_path
from registry.formats.json_schema.pairs import Choice, KeywordChange, ShapePair, maximum_matching
from registry.formats.json_schema.pairs import change as make_change
from registry.formats.json_schema.rules import RULES
from registry.formats.json_schema.shapes import Shape
from registry.formats.json_schema.text import compact, json_equal, to_plain

# keywords that are compared as a whole: (kind of shape, keyword, rule)
_WHOLE: Final = (
    ("object", "patternProperties", "PATTERN_PROPERTIES_CHANGED"),
    ("object", "propertyNames", "PROPERTY_NAMES_CHANGED"),
    ("array", "contains", "CONTAINS_CHANGED"),
    ("string", "format", "FORMAT_CHANGED"),
)
_REQUIRED_PROPERTY_ADDED: Final = frozenset({"REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL"})
_TYPED: Final = frozenset({"string", "number", "object", "array"})


def pair_hazards(pair: ShapePair) -> Iterator[KeywordChange]:
    """Yield the hazards of one pair of shapes of the same kind; `kind` of each is the id of its rule."""
    writer, reader = pair.writer, pair.reader
    if writer.kind != reader.kind:
        return
    for kind, keyword, rule in _WHOLE:
        if reader.kind == kind and keyword in reader.schema and not _same(writer, reader, keyword):
            yield make_change(
                pair, rule, keyword, before=writer.schema.get(keyword), after=reader.schema[keyword], name=keyword
            )
    if reader.kind in _TYPED and reader.type_name and not writer.type_name:
        yield make_change(pair, "TYPE_ADDED", "type", before="any type", after=reader.type_name)
    if reader.kind == "object":
        yield from _required(pair)
    if reader.kind == "number":
        yield from _bounds(pair)
    if reader.kind == "conditional":
        names = [key for key in ("if", "then", "else") if not _same(writer, reader, key)]
        if names:
            yield make_change(pair, "CONDITION_CHANGED", names[0], name=", ".join(names))


def _same(writer: Shape, reader: Shape, keyword: str) -> bool:
    before, after = writer.schema.get(keyword), reader.schema.get(keyword)
    return before is after or json_equal(before, after)


def _required(pair: ShapePair) -> Iterator[KeywordChange]:
    ours, theirs = required_of(pair.writer), required_of(pair.reader)
    declared, written = properties_of(pair.reader), properties_of(pair.writer)
    broken = {change.name for change in pair.changes if change.kind in _REQUIRED_PROPERTY_ADDED}
    for name in sorted(theirs - ours):
        details: dict[str, Any] = {"before": False, "after": True, "name": name, "step": f".{name}"}
        if name in declared:
            if name in broken:
                continue
            if has_default(declared[name]):
                yield make_change(pair, "REQUIRED_FILLED_BY_DEFAULT", "required", name, **details)
            elif name not in written and _passes(declared[name]):
                yield make_change(pair, "REQUIRED_ANY_VALUE", "required", name, **details)
        else:
            yield make_change(pair, "REQUIRED_UNDECLARED", "required", name, **details)


def _passes(schema: Any) -> bool:
    """Return whether a property has no conditions, so that an open model may add it, even as a required one."""
    return schema is True or schema == {}


def _bounds(pair: ShapePair) -> Iterator[KeywordChange]:
    for keyword in ("exclusiveMaximum", "exclusiveMinimum"):
        if pair.reader.schema.get(keyword) is True and pair.writer.schema.get(keyword) is not True:
            yield make_change(pair, "EXCLUSIVE_BOUND_CHANGED", keyword, before=False, after=True, name=keyword)


MAX_FINDINGS: Final = 1_000
_MAX_STEPS: Final = 100_000
_MAX_CAUSES: Final = 8
_MAX_DEPTH: Final = 400


@dataclass(frozen=True, slots=True)
class FindingPath:
    """The place of a pair, for the registry (tokens of a location) and for people (a path)."""

    tokens: tuple[str, ...]
    path: str

    def inside(self, at: tuple[str, ...], step: str) -> FindingPath:
        """Return the path extended by tokens and a step."""
        return FindingPath(self.tokens + at, self.path + step)


def judge(reader: Model, writer: Model, policy: str) -> Judgement:
    """Return all breaks under a policy ("strict" or "lenient"), and all hazards; raises SchemaTooCostly."""
    comparison = SchemaComparison(reader, writer, policy)
    walk = _FindingWalk(reader, writer)
    finding_path = FindingPath((), root_path(reader))
    breaks = tuple(walk.breaks(comparison.root, finding_path)) if comparison.root.is_broken else ()
    hazards = tuple(walk.hazards(comparison.root, finding_path))
    if writer.draft.number != reader.draft.number:
        hazards = (walk.draft_hazard(comparison.root, finding_path), *hazards)
    return Judgement(breaks, hazards)


class _FindingWalk:
    """A walk over what is broken, from the root down; a pair may be reported at several places, never inside itself."""

    def __init__(self, reader: Model, writer: Model) -> None:
        self._reader = reader
        self._writer = writer
        self._steps = 0

    def breaks(self, root: ShapePair, finding_path: FindingPath) -> Iterator[Incompatibility]:
        """Yield the breaks of a pair and of the pairs that it depends on, in the order of the comparison."""
        stack: list[tuple[ShapePair, FindingPath, frozenset[int]]] = [(root, finding_path, frozenset())]
        count = 0
        while stack and count < MAX_FINDINGS:
            pair, here, around = stack.pop()
            self._steps += 1
            if self._steps > _MAX_STEPS or id(pair) in around or len(around) > _MAX_DEPTH:
                continue
            inner = around | {id(pair)}
            for change in pair.changes:
                yield self.finding(change, here)
                count += 1
            for choice in pair.choices:
                if not choice.is_broken():
                    continue
                if choice.kind == "covered":
                    stack.append((choice.pairs[0], here.inside(choice.change.at, choice.change.step), inner))
                if choice.is_told:
                    yield self.finding(choice.change, here, self._causes(choice, here))
                    count += 1
            needed = [edge for edge in reversed(pair.edges) if edge.pair.is_broken]
            stack.extend((edge.pair, here.inside(edge.at, edge.step), inner) for edge in needed)

    def _causes(self, choice: Choice, here: FindingPath) -> tuple[Incompatibility, ...]:
        """Return the breaks between the members of combinations that can't be paired."""
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

    def hazards(self, root: ShapePair, finding_path: FindingPath) -> Iterator[Incompatibility]:
        """Yield what the established check allows, each pair once."""
        stack = [(root, finding_path)]
        visited: set[int] = set()
        count = 0
        while stack and count < MAX_FINDINGS:
            pair, here = stack.pop()
            if id(pair) in visited:
                continue
            visited.add(id(pair))
            for change in pair_hazards(pair):
                yield self.finding(change, here)
                count += 1
            for choice in reversed(pair.choices):
                stack.extend((inner, here) for inner in _taken(choice))
            stack.extend((edge.pair, here.inside(edge.at, edge.step)) for edge in reversed(pair.edges))

    def draft_hazard(self, root: ShapePair, finding_path: FindingPath) -> Incompatibility:
        """Return the hazard of different drafts."""
        change = KeywordChange(
            "DRAFT_CHANGED",
            (),
            root.writer.location,
            root.reader.location,
            self._writer.draft.name,
            self._reader.draft.name,
        )
        return self.finding(change, finding_path)

    def finding(
        self, change: KeywordChange, here: FindingPath, causes: tuple[Incompatibility, ...] = ()
    ) -> Incompatibility:
        """Return a difference at its place as a finding, with its sentence, pointers, reason and cures."""
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


def _taken(choice: Choice) -> Iterator[ShapePair]:
    """Yield the pairs that satisfy a choice."""
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
    """Return a value for a sentence, shortened."""
    text = value if isinstance(value, str) else compact(value)
    return text if len(text) <= 120 else text[:119] + "…"
