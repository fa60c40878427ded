"""From the graph of a resolution to findings: each with its path, its pointers on both sides, its reason and cure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from registry.formats.avro.branches import is_misnamed
from registry.formats.avro.model import Array, AvroType, Named, Record, Union
from registry.formats.avro.resolution import Edge, Pair, Reason, Resolution
from registry.formats.avro.sides import Place, finding
from registry.formats.base import Incompatibility, Judgement

_MAX_CAUSES: Final = 20
_MAX_CAUSE_DEPTH: Final = 4
MAX_FINDINGS: Final = 10_000
_MAX_STEPS: Final = 500_000
_MAX_ALL_CAUSES: Final = 2_000


def judge(reader: AvroType, writer: AvroType) -> Judgement:
    """All breaks and hazards of reading the writer's data with the reader; raises InvalidSchema beyond MAX_PAIRS."""
    return findings_of(Resolution(reader, writer))


def findings_of(resolution: Resolution) -> Judgement:
    """All breaks and hazards of a resolution."""
    if not resolution.root.is_broken and not resolution.has_hazards:
        return _CLEAN
    root = Place("", root_path(resolution.root.reader), "", "", None, None)
    breaks = tuple(_Walk().breaks(resolution.root, root)) if resolution.root.is_broken else ()
    return Judgement(breaks, tuple(_hazards(resolution.root, root)) if resolution.has_hazards else ())


_CLEAN: Final = Judgement()


def root_path(type_: AvroType) -> str:
    """What a path begins with: the simple name of the root type, or its kind."""
    return type_.simple if isinstance(type_, Named) else type_.kind


class _Walk:
    """Walks what is broken, in the order of the reader's text: depth first, on a stack of its own.

    A pair that is being walked counts as compatible for the unions inside of it: a branch that breaks only because
    the record around it does is no finding of its own.
    """

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._open_types: set[tuple[int, int]] = set()
        self._steps_left = _MAX_STEPS
        self._causes_left = _MAX_ALL_CAUSES

    def breaks(self, root: Pair, place: Place) -> Iterator[Incompatibility]:
        """The findings below a pair."""
        return self._breaks(root, place, 0, set())

    def _breaks(self, root: Pair, place: Place, depth: int, seen: set[int]) -> Iterator[Incompatibility]:
        """As `breaks`; `depth` counts the unions whose causes are being told."""
        stack: list[tuple[Pair | Reason | None, Pair, Place]] = [(root, root, place)]
        closing: dict[int, Pair] = {}
        count = 0
        try:
            while stack and count < MAX_FINDINGS:
                item, pair, here = stack.pop()
                if item is None:
                    self._close(closing.pop(id(pair)))
                elif not isinstance(item, Pair):
                    count += 1
                    yield finding(item, pair, here)
                elif item.is_broken and id(item) not in self._open and not _was_seen(item, seen):
                    if item.options is not None and self._breaks_by_itself(item):
                        count += 1
                        yield self._union_finding(item, here, depth, seen)
                    self._open.add(id(item))
                    self._open_types.add((id(item.reader), id(item.writer)))
                    closing[id(item)] = item
                    stack.append((None, item, here))
                    stack.extend((part, item, where) for part, where in reversed(_parts(item, here)))
        finally:
            for pair in closing.values():
                self._close(pair)

    def _close(self, pair: Pair) -> None:
        self._open.discard(id(pair))
        self._open_types.discard((id(pair.reader), id(pair.writer)))

    def _union_finding(self, pair: Pair, place: Place, depth: int, seen: set[int]) -> Incompatibility:
        """A union that breaks, with the reasons inside of the branches that were meant to read the datum."""
        causes: list[Incompatibility] = []
        inner = set() if depth == 0 else seen
        if depth < _MAX_CAUSE_DEPTH:
            for position, option in zip(pair.positions, pair.options or (), strict=True):
                wanted = min(_MAX_CAUSES - len(causes), self._causes_left)
                if wanted <= 0:
                    break
                there = option_place(pair, position, place)
                found = list(islice(self._breaks(option, there, depth + 1, inner), wanted))
                self._causes_left -= len(found)
                causes.extend(found)
        return finding(("UNION_BRANCH_MISSING", "", None, ()), pair, place, tuple(causes))

    def _breaks_by_itself(self, pair: Pair) -> bool:
        """Whether a union breaks even if all pairs that are being walked are taken as compatible.

        In a schema where finding that out would take too long, every union that breaks is told.
        """
        if isinstance(pair.reader, Union) and isinstance(pair.writer, Record):
            writer = id(pair.writer)
            readers = {key[0] for key in self._open_types if key[1] == writer}
            if readers and any(id(branch) in readers for branch in pair.reader.branches):
                return False
        below: dict[int, Pair] = {id(pair): pair}
        todo = [pair]
        meets_open = False
        while todo:
            current = todo.pop()
            self._steps_left -= 1 + len(current.edges) + len(current.options or ())
            if self._steps_left < 0:
                return True
            for child in (*(edge.pair for edge in current.edges), *(current.options or ())):
                if id(child) in self._open:
                    meets_open = True
                elif child.is_broken and id(child) not in below:
                    below[id(child)] = child
                    todo.append(child)
        if not meets_open:
            return True
        broken = {key for key, item in below.items() if item.reasons or (item.options is not None and not item.options)}
        todo = [below[key] for key in broken]
        while todo:
            for parent in todo.pop().parents:
                if id(parent) not in below or id(parent) in broken:
                    continue
                if parent.options is not None and any(id(option) not in broken for option in parent.options):
                    continue
                broken.add(id(parent))
                todo.append(parent)
        return id(pair) in broken


def _parts(pair: Pair, place: Place) -> list[tuple[Pair | Reason, Place]]:
    """What is broken in a pair and directly inside of it, in the order of the reader's fields."""
    parts: list[tuple[int, Pair | Reason, Place]] = [
        (reason[2].position if reason[2] is not None else -1, reason, place) for reason in pair.reasons
    ]
    parts.extend(
        (edge.reader_field.position if edge.reader_field is not None else 0, edge.pair, inside(pair, edge, place))
        for edge in pair.edges
        if edge.pair.is_broken
    )
    parts.sort(key=lambda part: part[0])
    return [(part, where) for _, part, where in parts]


def _hazards(root: Pair, place: Place) -> Iterator[Incompatibility]:
    """What changes values in the pairs that a decoder would take."""
    seen: set[int] = set()
    stack = [(root, place)]
    count = 0
    while stack and count < MAX_FINDINGS:
        pair, here = stack.pop()
        if _was_seen(pair, seen):
            continue
        for hazard in pair.hazards:
            if hazard[0] == "UNION_BRANCH_AMBIGUOUS" and not (_has_broken_option(pair) or _is_misread(pair)):
                continue
            count += 1
            yield finding(hazard, pair, here)
        stack.extend((edge.pair, inside(pair, edge, here)) for edge in reversed(pair.edges))
        taken = _taken(pair)
        if taken is not None:
            stack.append((taken[1], option_place(pair, taken[0], here)))


def _has_broken_option(pair: Pair) -> bool:
    """Whether some, not all, of the branches that match by name break."""
    return not pair.is_broken and any(option.is_broken for option in pair.options or ())


def _is_misread(pair: Pair) -> bool:
    """Whether the first branch that matches by name isn't the one that the writer's type means, all else being fine."""
    return not pair.is_broken and is_misnamed(pair.reader, pair.writer)


def _was_seen(pair: Pair, seen: set[int]) -> bool:
    """Only pairs of named types can come again in one place; the others are shared by many places."""
    if not (isinstance(pair.reader, Named) and isinstance(pair.writer, Named)):
        return False
    if id(pair) in seen:
        return True
    seen.add(id(pair))
    return False


def _taken(pair: Pair) -> tuple[int, Pair] | None:
    """The branch that a decoder takes: the one of the same type, else the first that reads the writer's."""
    options = zip(pair.positions, pair.options or (), strict=True)
    open_options = [(position, option) for position, option in options if not option.is_broken]
    same = (item for item in open_options if _same(item[1].reader, pair.writer))
    return next(same, open_options[0] if open_options else None)


def _same(reader: AvroType, writer: AvroType) -> bool:
    if isinstance(reader, Named) and isinstance(writer, Named):
        return reader.full_name == writer.full_name
    return reader.kind == writer.kind


def inside(pair: Pair, edge: Edge, place: Place) -> Place:
    """The place of a pair inside of another."""
    reader, writer = pair.reader, pair.writer
    if edge.reader_field is not None and edge.writer_field is not None:
        return Place(
            f"{place.location}/fields/{edge.reader_field.position}/type",
            f"{place.path}.{edge.reader_field.name}",
            edge.reader_field.pointer + "/type",
            edge.writer_field.pointer + "/type",
            reader.source,
            writer.source,
        )
    if edge.branch is not None:
        return Place(
            f"{place.location}/{edge.branch}",
            place.path,
            place.reader_pointer,
            f"{writer.pointer}/{edge.branch}",
            place.reader_source,
            writer.source,
        )
    key, suffix = ("items", "[]") if isinstance(reader, Array) else ("values", "{}")
    return Place(
        f"{place.location}/{key}",
        place.path + suffix,
        f"{reader.pointer}/{key}",
        f"{writer.pointer}/{key}",
        reader.source,
        writer.source,
    )


def option_place(pair: Pair, position: int, place: Place) -> Place:
    """The place of a branch of the reader's union."""
    pointer = f"{pair.reader.pointer}/{position}"
    return Place(place.location, place.path, pointer, place.writer_pointer, pair.reader.source, place.writer_source)
