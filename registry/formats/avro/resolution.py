"""Whether a reader can read a writer's data: all reasons against it, equal to Java's SchemaCompatibility 1.12.

The walk builds a graph of (reader type, writer type) pairs, each once and without recursion, so that depth and cycles
cost no more than their size. A pair counts as compatible while it is being examined. Each break is then propagated to
all pairs that depend on it, which gives the greatest fixpoint: a recursive type breaks only if something in it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from registry.errors import InvalidSchema
from registry.formats.avro import value_hazards
from registry.formats.avro.model import PRIMITIVES, Array, AvroType, Enum, Fixed, Map, Named, Record, RecordField, Union

MAX_PAIRS: Final = 50_000

# The writer's kinds that each reader's primitive can read.
READS: Final[dict[str, frozenset[str]]] = {
    "null": frozenset({"null"}),
    "boolean": frozenset({"boolean"}),
    "int": frozenset({"int"}),
    "long": frozenset({"long", "int"}),
    "float": frozenset({"float", "int", "long"}),
    "double": frozenset({"double", "int", "long", "float"}),
    "bytes": frozenset({"bytes", "string"}),
    "string": frozenset({"string", "bytes"}),
}

# A reason inside one pair: (rule, place below the pair, the field or None, further values).
Reason = tuple[str, str, RecordField | None, tuple[object, ...]]


class Edge:
    """A link from a pair to one inside it: the reader's and the writer's field, or the index of a writer's branch."""

    __slots__ = ("branch", "pair", "reader_field", "writer_field")

    def __init__(
        self,
        pair: Pair,
        reader_field: RecordField | None = None,
        writer_field: RecordField | None = None,
        branch: int | None = None,
    ) -> None:
        self.pair = pair
        self.reader_field = reader_field
        self.writer_field = writer_field
        self.branch = branch


class Pair:
    """A reader type and a writer type that are compared.

    All `edges` must be compatible. If set, `options` are the reader's branches, at least one of which must be
    compatible; `positions` are their positions in the union. `reasons` are the breaks of the pair itself, `hazards` its
    value changes.
    """

    __slots__ = (
        "edges",
        "hazards",
        "is_broken",
        "open_options",
        "options",
        "parents",
        "positions",
        "reader",
        "reasons",
        "writer",
    )

    def __init__(self, reader: AvroType, writer: AvroType) -> None:
        self.reader = reader
        self.writer = writer
        self.reasons: list[Reason] = []
        self.hazards: list[Reason] = []
        self.edges: list[Edge] = []
        self.options: list[Pair] | None = None
        self.positions: list[int] = []
        self.open_options = 0
        self.parents: list[Pair] = []
        self.is_broken = False


class Resolution:
    """The graph of a reader and a writer; `root.is_broken` is the verdict."""

    def __init__(self, reader: AvroType, writer: AvroType) -> None:
        self._pairs: dict[tuple[int, int], Pair] = {}
        self._todo: list[Pair] = []
        self._union_indexes: dict[int, _UnionIndex] = {}
        self.has_hazards = False
        self.root = self._pair(reader, writer)
        while self._todo:
            self._expand(self._todo.pop())
        self._propagate_breaks()

    def _pair(self, reader: AvroType, writer: AvroType) -> Pair:
        key = (id(reader), id(writer))
        pair = self._pairs.get(key)
        if pair is None:
            if len(self._pairs) >= MAX_PAIRS:
                raise InvalidSchema(
                    f"the two schemas have more than {MAX_PAIRS:,} pairs of types to compare: "
                    "split the unions or the recursive types"
                )
            pair = self._pairs[key] = Pair(reader, writer)
            self._todo.append(pair)
        return pair

    def _expand(self, pair: Pair) -> None:
        reader, writer = pair.reader, pair.writer
        if writer.kind == "union":
            self._expand_writer_union(pair)
        elif reader.kind == "union":
            self._expand_reader_union(pair)
        elif reader.kind == writer.kind:
            self._expand_same_kind(pair)
        elif writer.kind not in READS.get(reader.kind, ()):
            pair.reasons.append((mismatch_rule(reader, writer), "", None, ()))
        if reader is not writer:
            self._note_hazard(pair)

    def _note_hazard(self, pair: Pair) -> None:
        hazards = value_hazards.pair_hazards(pair.reader, pair.writer)
        if hazards:
            pair.hazards.extend(hazards)
            self.has_hazards = True

    def _expand_same_kind(self, pair: Pair) -> None:
        reader, writer = pair.reader, pair.writer
        if isinstance(reader, Array) and isinstance(writer, Array):
            self._edge(pair, Edge(self._pair(reader.items, writer.items)))
        elif isinstance(reader, Map) and isinstance(writer, Map):
            self._edge(pair, Edge(self._pair(reader.values, writer.values)))
        elif isinstance(reader, Named) and isinstance(writer, Named):
            if not names_match(reader, writer):
                pair.reasons.append(("NAME_CHANGED", "/name", None, ()))
            if isinstance(reader, Record) and isinstance(writer, Record):
                self._expand_record(pair, reader, writer)
            elif isinstance(reader, Enum) and isinstance(writer, Enum):
                missing = writer.symbol_set - reader.symbol_set
                if missing and reader.default is None:
                    pair.reasons.append(("ENUM_SYMBOL_MISSING", "/symbols", None, (sorted(missing),)))
            elif isinstance(reader, Fixed) and isinstance(writer, Fixed) and reader.size != writer.size:
                pair.reasons.append(("FIXED_SIZE_CHANGED", "/size", None, ()))

    def _expand_record(self, pair: Pair, reader: Record, writer: Record) -> None:
        uses_alias = False
        for field in reader.fields:
            if field.aliases:
                candidates = writer_fields(writer, field)
                if len(candidates) > 1:
                    pair.reasons.append(("ALIAS_AMBIGUOUS", f"/fields/{field.position}", field, (candidates,)))
                    continue
                match = candidates[0] if candidates else None
                uses_alias = uses_alias or (match is not None and match.name != field.name)
            else:
                match = writer.by_name.get(field.name)
            if match is None:
                if not field.has_default:
                    pair.reasons.append(_missing_field(field))
                elif value_hazards.is_filled_differently(field):
                    pair.hazards.append(("DEFAULT_FILLED_DIFFERENTLY", "", field, ()))
                    self.has_hazards = True
            elif not _is_plainly_equal(field.type, match.type):
                self._edge(pair, Edge(self._pair(field.type, match.type), field, match))
        if uses_alias:
            pair.hazards.extend(value_hazards.field_alias_hazards(reader, writer))
            self.has_hazards = self.has_hazards or bool(pair.hazards)

    def _expand_writer_union(self, pair: Pair) -> None:
        assert isinstance(pair.writer, Union)
        for position, branch in enumerate(pair.writer.branches):
            self._edge(pair, Edge(self._pair(pair.reader, branch), branch=position))

    def _expand_reader_union(self, pair: Pair) -> None:
        reader, writer = pair.reader, pair.writer
        assert isinstance(reader, Union)
        index = self._union_indexes.get(id(reader))
        if index is None:
            index = self._union_indexes[id(reader)] = _UnionIndex(reader)
        candidates = index.candidates(writer)
        pair.positions = [position for position, _ in candidates]
        pair.options = [self._pair(branch, writer) for _, branch in candidates]
        pair.open_options = len(pair.options)
        for option in pair.options:
            option.parents.append(pair)
        if len(pair.options) > 1 and isinstance(writer, Named):
            pair.hazards.append(("UNION_BRANCH_AMBIGUOUS", "", None, ()))
            self.has_hazards = True
        elif len(pair.options) > 1 and value_hazards.is_changed_by_order([branch for _, branch in candidates], writer):
            pair.hazards.append(("UNION_BRANCH_ORDER", "", None, ()))
            self.has_hazards = True

    @staticmethod
    def _edge(pair: Pair, edge: Edge) -> None:
        pair.edges.append(edge)
        edge.pair.parents.append(pair)

    def _propagate_breaks(self) -> None:
        """Mark everything that depends on something broken as broken, until nothing changes."""
        todo = [
            pair for pair in self._pairs.values() if pair.reasons or (pair.options is not None and not pair.options)
        ]
        for pair in todo:
            pair.is_broken = True
        while todo:
            broken = todo.pop()
            for parent in broken.parents:
                if parent.is_broken:
                    continue
                if parent.options is not None:
                    parent.open_options -= 1
                    if parent.open_options > 0:
                        continue
                parent.is_broken = True
                todo.append(parent)


class _UnionIndex:
    """An index of the branches of a reader's union that may read a writer's type, to avoid trying all of them."""

    def __init__(self, union: Union) -> None:
        self._by_kind: dict[str, list[tuple[int, AvroType]]] = {}
        self._by_name: dict[tuple[str, str], list[tuple[int, AvroType]]] = {}
        for position, branch in enumerate(union.branches):
            if isinstance(branch, Named):
                # A key without a dot is a simple name; full names of aliases get a leading dot to distinguish them.
                self._by_name.setdefault((branch.kind, branch.simple), []).append((position, branch))
                for alias in branch.aliases:
                    self._by_name.setdefault((branch.kind, f".{alias}"), []).append((position, branch))
            else:
                for kind in READS.get(branch.kind, (branch.kind,)):
                    self._by_kind.setdefault(kind, []).append((position, branch))

    def namesakes(self, writer: Named) -> Iterator[tuple[int, AvroType]]:
        """Yield (position, branch) for branches with a named type's simple name, or with its full name as an alias."""
        names = ((writer.kind, writer.simple), (writer.kind, f".{writer.full_name}"))
        found = {position: branch for name in names for position, branch in self._by_name.get(name, ())}
        return ((position, found[position]) for position in sorted(found))

    def candidates(self, writer: AvroType) -> Sequence[tuple[int, AvroType]]:
        """Return (position, branch) for branches that match the writer's kind and, for a named type, name or alias."""
        if not isinstance(writer, Named):
            return self._by_kind.get(writer.kind, ())
        same_name = self._by_name.get((writer.kind, writer.simple), [])
        aliased = [
            (position, branch)
            for position, branch in self._by_name.get((writer.kind, f".{writer.full_name}"), ())
            if isinstance(branch, Named) and branch.simple != writer.simple and names_match(branch, writer)
        ]
        return sorted([*same_name, *aliased], key=lambda item: item[0]) if aliased else same_name


def names_match(reader: Named, writer: Named) -> bool:
    """Return whether two named types match: by simple name, whatever the namespace, or by an alias of the reader.

    An alias without a namespace in a type that has one never matches, as in the reference implementation.
    """
    if reader.simple == writer.simple:
        return True
    return writer.full_name in reader.alias_set and not (reader.namespace and not writer.namespace)


def writer_fields(writer: Record, field: RecordField) -> list[RecordField]:
    """Return the writer's fields that a reader's field matches by its name and aliases.

    A field with its own name as an alias counts twice and is ambiguous, as in the reference implementation.
    """
    return [writer.by_name[name] for name in (field.name, *field.aliases) if name in writer.by_name]


def _is_plainly_equal(reader: AvroType, writer: AvroType) -> bool:
    """Return whether there is nothing to compare: equal primitives, or a union, array or map of them."""
    if reader.kind != writer.kind or reader.logical is not writer.logical:
        return False
    if reader.kind in PRIMITIVES:
        return True
    if isinstance(reader, Union) and isinstance(writer, Union):
        # Plain primitives are shared objects, so this compares identities.
        is_equal = reader.branches == writer.branches and all(branch.kind in PRIMITIVES for branch in reader.branches)
        return is_equal and not value_hazards.has_unsure_order(reader.branches)
    if isinstance(reader, Array) and isinstance(writer, Array):
        return reader.items is writer.items and reader.items.kind in PRIMITIVES
    if isinstance(reader, Map) and isinstance(writer, Map):
        return reader.values is writer.values and reader.values.kind in PRIMITIVES
    return False


def _missing_field(field: RecordField) -> Reason:
    """Return the reason; for an enum with a default symbol, the reference implementation reports a type mismatch."""
    if isinstance(field.type, Enum) and field.type.default is not None:
        return ("FIELD_WITHOUT_DEFAULT", f"/fields/{field.position}/type", field, ("TYPE_MISMATCH",))
    return ("FIELD_WITHOUT_DEFAULT", f"/fields/{field.position}", field, ())


def mismatch_rule(reader: AvroType, writer: AvroType) -> str:
    """Return the rule for two types if one can never be read as the other."""
    if writer.kind == "null":
        return "NULL_NOT_ACCEPTED"
    return "TYPE_NARROWED" if reader.kind in _WIDER.get(writer.kind, ()) else "TYPE_CHANGED"


_WIDER: Final = {kind: READS[kind] - {kind} for kind in ("long", "float", "double")}


# The reader's branch that a decoder uses for a writer's type, and the branch that the type means.


def first_match(reader: Union, writer: AvroType) -> tuple[int, AvroType] | None:
    """Return the branch of the reader that a decoder uses: the first match, as the specification says."""
    branches = _index_of(reader).namesakes(writer) if isinstance(writer, Named) else enumerate(reader.branches)
    return next(((at, branch) for at, branch in branches if matches(branch, writer)), None)


@lru_cache(maxsize=32)
def _index_of(union: Union) -> _UnionIndex:
    return _UnionIndex(union)


def matches(reader: AvroType, writer: AvroType) -> bool:
    """Return whether fastavro matches the two types, before it sees the data."""
    while True:
        if reader.kind == "union" or writer.kind == "union":
            return True
        if isinstance(reader, Array) and isinstance(writer, Array):
            reader, writer = reader.items, writer.items
        elif isinstance(reader, Map) and isinstance(writer, Map):
            reader, writer = reader.values, writer.values
        else:
            break
    if isinstance(reader, Named) and isinstance(writer, Named):
        if reader.kind != writer.kind:
            return False
        if isinstance(reader, Fixed) and isinstance(writer, Fixed) and reader.size != writer.size:
            return False
        return reader.simple == writer.simple or writer.full_name in reader.alias_set
    return writer.kind in READS.get(reader.kind, ())


def is_taken_by_order(reader: AvroType, writer: AvroType) -> bool:
    """Return whether decoders differ: the first matching branch isn't the one of the same type, which also exists."""
    if not isinstance(reader, Union) or isinstance(writer, Union):
        return False
    match = first_match(reader, writer)
    return match is not None and not _same(match[1], writer) and any(_same(item, writer) for item in reader.branches)


def meant_branch(reader: Union, writer: Named) -> int | None:
    """Return the branch that a named type means: by full name, then by alias; None if the names don't decide."""
    namesakes = list(_index_of(reader).namesakes(writer))
    same = next((position for position, branch in namesakes if _same(branch, writer)), None)
    if same is not None:
        return same
    aliased = (at for at, branch in namesakes if isinstance(branch, Named) and writer.full_name in branch.alias_set)
    return next(aliased, None)


def has_namesakes(reader: Union, writer: Named) -> bool:
    """Return whether several branches match a named type by simple name or alias."""
    return sum(matches(branch, writer) for _, branch in _index_of(reader).namesakes(writer)) > 1


def is_misnamed(reader: AvroType, writer: AvroType) -> bool:
    """Return whether a decoder that uses the first branch by name doesn't use the intended one."""
    if not isinstance(reader, Union) or not isinstance(writer, Named) or not has_namesakes(reader, writer):
        return False
    match = first_match(reader, writer)
    return match is not None and match[0] != meant_branch(reader, writer)


def _same(reader: AvroType, writer: AvroType) -> bool:
    if isinstance(reader, Named) and isinstance(writer, Named):
        return reader.kind == writer.kind and reader.full_name == writer.full_name
    return reader.kind == writer.kind
