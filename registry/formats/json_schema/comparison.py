"""Compares pairs of writer and reader schemas, and records the differences that Confluent's registry rejects.

The walk uses a list of pending pairs instead of recursion. Each pair is visited once, and their number is limited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from registry.errors import SchemaTooCostly
from registry.formats.json_schema.keyword_comparison import (
    compare_arrays,
    compare_const,
    compare_enums,
    compare_nots,
    compare_numbers,
    compare_objects,
    compare_strings,
)
from registry.formats.json_schema.model import ROOT, Model
from registry.formats.json_schema.pairs import Choice, Edge, ShapePair, change, settle
from registry.formats.json_schema.rules import BREAKING
from registry.formats.json_schema.shapes import Kind, Shape, Shapes
from registry.formats.json_schema.text import normalized

MAX_PAIRS: Final = 40_000
_MAX_CELLS: Final = 2_500


class SchemaComparison:
    """All pairs of a reader and a writer; the constructor settles `root`."""

    def __init__(self, reader: Model, writer: Model, policy: str) -> None:
        self.breaking = BREAKING[policy]
        self._pairs: dict[tuple[int, int], ShapePair] = {}
        self._todo: list[ShapePair] = []
        self.root = self.pair(shapes_of(writer).at(ROOT), shapes_of(reader).at(ROOT))
        while self._todo:
            self._look(self._todo.pop())
        settle(list(self._pairs.values()))

    def pair(self, writer: Shape, reader: Shape) -> ShapePair:
        """Return the pair of two shapes, which may exist already; raises SchemaTooCostly beyond MAX_PAIRS."""
        key = (id(writer), id(reader))
        known_pair = self._pairs.get(key)
        if known_pair is None:
            if len(self._pairs) >= MAX_PAIRS:
                raise SchemaTooCostly(
                    f"comparing the schemas takes more than {MAX_PAIRS:,} pairs of parts: split the large combinations"
                )
            known_pair = self._pairs[key] = ShapePair(writer, reader)
            self._todo.append(known_pair)
        return known_pair

    def note(
        self,
        pair: ShapePair,
        kind: str,
        *at: str,
        before: Any = None,
        after: Any = None,
        name: str = "",
        step: str = "",
    ) -> None:
        """Record a difference of a pair if the policy rejects it."""
        if kind in self.breaking:
            pair.changes.append(change(pair, kind, *at, before=before, after=after, name=name, step=step))

    def need(self, pair: ShapePair, writer: Shape, reader: Shape, *at: str, step: str = "") -> None:
        """Record that a pair depends on another one."""
        pair.edges.append(Edge(at, step, self.pair(writer, reader)))

    def _look(self, pair: ShapePair) -> None:
        writer, reader = pair.writer, pair.reader
        if writer.kind == reader.kind:
            if writer.kind == "combined":
                self._combinations(pair)
            elif writer.kind in _COMPARE:
                _COMPARE[writer.kind](self, pair)
            return
        if writer.kind == "false" or reader.kind in ("empty", "true") or _are_bytes(writer, reader):
            return
        options = _options(writer, reader)
        changed = change(pair, "TYPE_CHANGED", before=writer.label, after=reader.label)
        if not options:
            pair.changes.append(changed)
        else:
            pair.choices.append(Choice("any", [self.pair(*option) for option in options], changed))

    def _combinations(self, pair: ShapePair) -> None:
        writer, reader = pair.writer, pair.reader
        before, after = writer.label, reader.label
        # Confluent's check counts members as written if it needs a single one; after that, equal members count once.
        sizes = len(writer.all_parts()), len(reader.all_parts())
        if not _criteria_fit(writer.criterion, sizes[0], reader.criterion, sizes[1]):
            self.note(pair, "COMBINED_TYPE_CHANGED", before=before, after=after)
            return
        ours, theirs = writer.distinct_parts(), reader.distinct_parts()
        if len(ours) < len(theirs) and reader.criterion == "allOf":
            self.note(pair, "PRODUCT_TYPE_EXTENDED", before=before, after=after)
        elif len(ours) > len(theirs) and writer.criterion != "allOf":
            self.note(pair, "SUM_TYPE_NARROWED", before=before, after=after)
        cells = _cells(ours, theirs)
        pair.choices.append(
            Choice(
                "matching",
                [self.pair(ours[row], theirs[column]) for row, column in cells],
                change(pair, "COMBINED_TYPE_SUBSCHEMAS_CHANGED", before=before, after=after),
                needed=min(len(ours), len(theirs)),
                cells=cells,
            )
        )


def shapes_of(model: Model) -> Shapes:
    """Return the shapes of a model; cached."""
    if "shapes" not in model.cache:
        model.cache["shapes"] = Shapes(model)
    shapes: Shapes = model.cache["shapes"]
    return shapes


def _are_bytes(writer: Shape, reader: Shape) -> bool:
    """Return whether Kafka Connect marks both types as bytes, so that they count as equal."""
    return writer.schema.get("connect.type") == "bytes" == reader.schema.get("connect.type")


def _options(writer: Shape, reader: Shape) -> list[tuple[Shape, Shape]]:
    """Return the pairs of which one must be compatible, if only one side is a combination."""
    if reader.kind == "combined" and writer.kind != "combined":
        parts = reader.all_parts()
        if len(parts) == 1 or reader.criterion in ("anyOf", "oneOf"):
            return [(writer, part) for part in parts]
    elif writer.kind == "combined" and reader.kind != "combined":
        parts = writer.all_parts()
        if len(parts) == 1 or writer.criterion == "allOf":
            return [(part, reader) for part in parts]
    return []


def _criteria_fit(writer: str, writer_size: int, reader: str, reader_size: int) -> bool:
    if reader in (writer, "anyOf"):
        return True
    if writer_size == 1 and (reader_size == 1 or reader == "oneOf"):
        return True
    return reader_size == 1 and writer == "allOf"


def _cells(ours: Sequence[Shape], theirs: Sequence[Shape]) -> list[tuple[int, int]]:
    """Return the pairs of members worth comparing; in large combinations, members with equal text are paired first."""
    rows, columns = list(range(len(ours))), list(range(len(theirs)))
    fixed: list[tuple[int, int]] = []
    if len(ours) * len(theirs) > _MAX_CELLS:
        texts: dict[Any, list[int]] = {}
        for column, shape in enumerate(theirs):
            texts.setdefault(_text(shape), []).append(column)
        for row, shape in enumerate(ours):
            alike = texts.get(_text(shape))
            if alike:
                fixed.append((row, alike.pop()))
        taken_rows, taken_columns = {row for row, _ in fixed}, {column for _, column in fixed}
        rows = [row for row in rows if row not in taken_rows]
        columns = [column for column in columns if column not in taken_columns]
    if len(rows) * len(columns) > MAX_PAIRS // 2:
        raise SchemaTooCostly(
            f"pairing {len(rows):,} members of a combination with {len(columns):,} takes too long: "
            "split the combination, or change fewer members at a time"
        )
    return fixed + [(row, column) for row in rows for column in columns if _may_fit(ours[row], theirs[column])]


def _text(shape: Shape) -> tuple[str, str, str]:
    return shape.kind, shape.type_name, normalized(dict(shape.schema))


def _may_fit(writer: Shape, reader: Shape) -> bool:
    """Return False for two kinds that can't be compared at all, which keeps large combinations small."""
    return (
        writer.kind == reader.kind
        or "combined" in (writer.kind, reader.kind)
        or writer.kind == "false"
        or reader.kind in ("empty", "true")
        or _are_bytes(writer, reader)
    )


Compare = Callable[[SchemaComparison, ShapePair], None]


_COMPARE: Final[Mapping[Kind, Compare]] = {
    "string": compare_strings,
    "number": compare_numbers,
    "enum": compare_enums,
    "const": compare_const,
    "not": compare_nots,
    "object": compare_objects,
    "array": compare_arrays,
}
