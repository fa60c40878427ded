"""Findings of a resolution, each with its path, sentence, pointers and values of both sides, reason and cure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from registry.formats.avro.datum import Refusal
from registry.formats.avro.model import Array, AvroType, Enum, Fixed, Named, Record, RecordField, Union, type_label
from registry.formats.avro.renames import likely_sources
from registry.formats.avro.resolution import Edge, Pair, Reason, Resolution, is_misnamed
from registry.formats.avro.rules import RENAMED_IN_READER, RULES
from registry.formats.avro.value_hazards import example
from registry.formats.base import Incompatibility, Judgement, Rule


@dataclass(frozen=True, slots=True)
class PairLocation:
    """The place of a pair: `location` in the reference implementation's notation, and the pointers of both sides."""

    location: str
    path: str
    reader_pointer: str
    writer_pointer: str
    reader_source: str | None
    writer_source: str | None


def finding(
    reason: Reason, pair: Pair, location: PairLocation, causes: tuple[Incompatibility, ...] = ()
) -> Incompatibility:
    """Return the finding for a reason at a place, with its sentence, pointers, explanation and cures."""
    rule_id, suffix, field, values = reason
    rule = RULES[rule_id]
    sides = _Sides.of(rule_id, pair, field, values)
    refused = next((value for value in values if isinstance(value, Refusal)), None)
    if refused is not None:
        return _refused(rule, str(values[0]), refused, location)
    path = location.path if field is None else f"{location.path}.{field.name}"
    names = {"reader": sides.reader, "writer": sides.writer, "name": sides.name, "path": path}
    kind = str(values[0]) if rule_id == "FIELD_WITHOUT_DEFAULT" and values else rule.kind
    own_reader, own_writer = _pointers(pair, location, rule_id, field)
    return Incompatibility(
        rule=rule_id,
        kind=kind,
        reader_pointer=own_reader,
        writer_pointer=own_writer,
        path=path,
        before=sides.before,
        after=sides.after,
        message=f"{path}: {rule.sentence.format_map(names)}",
        severity=rule.severity,
        location=(location.location + suffix) or "/",
        detail=_detail(kind, pair, field, sides),
        why=rule.why.format_map(names),
        remedy_in_reader=_cure_in_reader(rule, pair, field, names),
        remedy_in_writer=rule.in_writer.format_map(names),
        reader_source=location.reader_source if own_reader == location.reader_pointer else pair.reader.source,
        writer_source=location.writer_source if own_writer == location.writer_pointer else pair.writer.source,
        causes=causes,
        example=example(rule_id, pair.reader, pair.writer),
    )


def _refused(rule: Rule, side: str, refused: Refusal, location: PairLocation) -> Incompatibility:
    """Return the finding for a schema that a decoder rejects as a whole, placed at the rejected part of that side."""
    path = ".".join((location.path, *(field.name for field in refused.fields)))
    pointer, source, label = refused.type.pointer, refused.type.source, type_label(refused.type)
    if refused.fields and not pointer:
        pointer = refused.fields[-1].pointer
    names = {"reader": label, "writer": label, "name": side, "path": path}
    is_reader = side == "reader"
    return Incompatibility(
        rule=rule.id,
        kind=rule.kind,
        reader_pointer=pointer if is_reader else location.reader_pointer,
        writer_pointer=location.writer_pointer if is_reader else pointer,
        path=path,
        before=None,
        after=label,
        message=f"{path}: {rule.sentence.format_map(names)}: {refused.error}",
        severity=rule.severity,
        location=location.location or "/",
        why=rule.why,
        remedy_in_reader=rule.in_reader,
        remedy_in_writer=rule.in_writer,
        reader_source=source if is_reader else location.reader_source,
        writer_source=location.writer_source if is_reader else source,
    )


def _cure_in_reader(rule: Rule, pair: Pair, field: RecordField | None, names: dict[str, str]) -> str:
    """Return the rule's cure; if the writer seems to have the field under another name, suggest the alias first."""
    reader, writer = pair.reader, pair.writer
    if rule.id == "FIELD_WITHOUT_DEFAULT" and isinstance(reader, Record) and isinstance(writer, Record) and field:
        source = likely_sources(reader, writer).get(field.name)
        if source is not None:
            return RENAMED_IN_READER.format_map({**names, "old": source.name})
    return rule.in_reader.format_map(names)


def _pointers(pair: Pair, location: PairLocation, rule_id: str, field: RecordField | None) -> tuple[str, str]:
    """Return the pointers of a finding on both sides: the use of a type, or the affected part of its definition."""
    if field is not None:
        return field.pointer, location.writer_pointer
    part = {"ENUM_SYMBOL_MISSING": "symbols", "ENUM_SYMBOL_DEFAULTED": "symbols", "FIXED_SIZE_CHANGED": "size"}
    if rule_id in part:
        return f"{pair.reader.pointer}/{part[rule_id]}", f"{pair.writer.pointer}/{part[rule_id]}"
    return location.reader_pointer, location.writer_pointer


@dataclass(frozen=True, slots=True)
class _Sides:
    """The two sides of a finding: labels for the sentence, and JSON values for before and after."""

    reader: str
    writer: str
    name: str
    before: Any
    after: Any

    @classmethod
    def of(cls, rule_id: str, pair: Pair, field: RecordField | None, values: tuple[object, ...]) -> _Sides:
        reader, writer = type_label(pair.reader), type_label(pair.writer)
        name = field.name if field is not None else ""
        if rule_id == "FIELD_WITHOUT_DEFAULT" and field is not None:
            return cls(reader, writer, name, None, type_label(field.type))
        if rule_id == "DEFAULT_FILLED_DIFFERENTLY" and field is not None:
            return cls(type_label(field.type), writer, name, None, field.default)
        if rule_id == "ALIAS_AMBIGUOUS":
            names = [item.name for item in _fields(values[0])]
            return cls(reader, ", ".join(names), name, names, name)
        if rule_id == "FIELD_ALIASED_TWICE":
            names = [item.name for item in _fields(values[1])]
            return cls(", ".join(names), str(values[0]), name, values[0], names)
        if isinstance(pair.reader, Enum) and isinstance(pair.writer, Enum) and rule_id.startswith("ENUM_"):
            missing = list(values[0]) if isinstance(values[0], list) else []
            shown = ", ".join(missing[:20]) + (" …" if len(missing) > 20 else "")
            default = pair.reader.default or reader
            return cls(default, writer, shown, list(pair.writer.symbols), list(pair.reader.symbols))
        if isinstance(pair.reader, Fixed) and isinstance(pair.writer, Fixed) and rule_id == "FIXED_SIZE_CHANGED":
            return cls(str(pair.reader.size), str(pair.writer.size), name, pair.writer.size, pair.reader.size)
        return cls(reader, writer, name, writer, reader)


def _fields(value: object) -> list[RecordField]:
    return [item for item in value if isinstance(item, RecordField)] if isinstance(value, list) else []


def _detail(kind: str, pair: Pair, field: RecordField | None, sides: _Sides) -> str:
    """Return the reference implementation's message for its kind."""
    reader, writer = pair.reader, pair.writer
    if kind == "READER_FIELD_MISSING_DEFAULT_VALUE" and field is not None:
        return field.name
    if kind == "TYPE_MISMATCH":
        own = field.type if field is not None else reader
        return f"reader type: {own.kind.upper()} not compatible with writer type: {writer.kind.upper()}"
    if kind == "MISSING_UNION_BRANCH":
        return f"reader union lacking writer type: {writer.kind.upper()}"
    if kind == "NAME_MISMATCH" and isinstance(writer, Named):
        return f"expected: {writer.full_name}"
    if kind == "FIXED_SIZE_MISMATCH":
        return f"expected: {sides.writer}, found: {sides.reader}"
    if kind == "MISSING_ENUM_SYMBOLS" and isinstance(reader, Enum) and isinstance(writer, Enum):
        return f"[{', '.join(sorted(writer.symbol_set - reader.symbol_set))}]"
    return ""


_MAX_CAUSES: Final = 20
_MAX_CAUSE_DEPTH: Final = 4
MAX_FINDINGS: Final = 10_000
_MAX_STEPS: Final = 500_000
_MAX_ALL_CAUSES: Final = 2_000


def judge(reader: AvroType, writer: AvroType) -> Judgement:
    """Return all breaks and hazards of reading writer data with the reader; raises InvalidSchema beyond MAX_PAIRS."""
    return findings_of(Resolution(reader, writer))


def findings_of(resolution: Resolution) -> Judgement:
    """Return all breaks and hazards of a resolution."""
    if not resolution.root.is_broken and not resolution.has_hazards:
        return _CLEAN
    root = PairLocation("", root_path(resolution.root.reader), "", "", None, None)
    breaks = tuple(_BreakWalk().breaks(resolution.root, root)) if resolution.root.is_broken else ()
    return Judgement(breaks, tuple(_hazards(resolution.root, root)) if resolution.has_hazards else ())


_CLEAN: Final = Judgement()


def root_path(type_: AvroType) -> str:
    """Return the start of every path: the simple name of the root type, or its kind."""
    return type_.simple if isinstance(type_, Named) else type_.kind


class _BreakWalk:
    """A walk over what is broken, in the order of the reader's text: depth first, with an explicit stack.

    A pair that is being walked counts as compatible for the unions inside it: a branch that breaks only because the
    enclosing record breaks isn't a finding of its own.
    """

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._open_types: set[tuple[int, int]] = set()
        self._steps_left = _MAX_STEPS
        self._causes_left = _MAX_ALL_CAUSES

    def breaks(self, root: Pair, location: PairLocation) -> Iterator[Incompatibility]:
        """Yield the findings below a pair."""
        return self._breaks(root, location, 0, set())

    def _breaks(self, root: Pair, location: PairLocation, depth: int, visited: set[int]) -> Iterator[Incompatibility]:
        """Like `breaks`; `depth` counts the enclosing unions whose causes are being collected."""
        stack: list[tuple[Pair | Reason | None, Pair, PairLocation]] = [(root, root, location)]
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
                elif item.is_broken and id(item) not in self._open and not _was_seen(item, visited):
                    if item.options is not None and self._breaks_by_itself(item):
                        count += 1
                        yield self._union_finding(item, here, depth, visited)
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

    def _union_finding(self, pair: Pair, location: PairLocation, depth: int, visited: set[int]) -> Incompatibility:
        """Return the finding for a broken union, with the reasons in the branches that should have read the datum."""
        causes: list[Incompatibility] = []
        inner = set() if depth == 0 else visited
        if depth < _MAX_CAUSE_DEPTH:
            for position, option in zip(pair.positions, pair.options or (), strict=True):
                cause_limit = min(_MAX_CAUSES - len(causes), self._causes_left)
                if cause_limit <= 0:
                    break
                there = option_place(pair, position, location)
                option_causes = list(islice(self._breaks(option, there, depth + 1, inner), cause_limit))
                self._causes_left -= len(option_causes)
                causes.extend(option_causes)
        return finding(("UNION_BRANCH_MISSING", "", None, ()), pair, location, tuple(causes))

    def _breaks_by_itself(self, pair: Pair) -> bool:
        """Return whether a union breaks even if all pairs that are being walked count as compatible.

        If a schema is too large to find out, every broken union is reported.
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


def _parts(pair: Pair, location: PairLocation) -> list[tuple[Pair | Reason, PairLocation]]:
    """Return the broken parts of a pair and those directly inside it, in the order of the reader's fields."""
    parts: list[tuple[int, Pair | Reason, PairLocation]] = [
        (reason[2].position if reason[2] is not None else -1, reason, location) for reason in pair.reasons
    ]
    parts.extend(
        (edge.reader_field.position if edge.reader_field is not None else 0, edge.pair, inside(pair, edge, location))
        for edge in pair.edges
        if edge.pair.is_broken
    )
    parts.sort(key=lambda part: part[0])
    return [(part, where) for _, part, where in parts]


def _hazards(root: Pair, location: PairLocation) -> Iterator[Incompatibility]:
    """Yield the value changes in the pairs that a decoder would take."""
    visited: set[int] = set()
    stack = [(root, location)]
    count = 0
    while stack and count < MAX_FINDINGS:
        pair, here = stack.pop()
        if _was_seen(pair, visited):
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
    """Return whether some, but not all, of the branches that match by name break."""
    return not pair.is_broken and any(option.is_broken for option in pair.options or ())


def _is_misread(pair: Pair) -> bool:
    """Return whether the first branch that matches by name isn't the intended one, and nothing is broken."""
    return not pair.is_broken and is_misnamed(pair.reader, pair.writer)


def _was_seen(pair: Pair, visited: set[int]) -> bool:
    """Return whether a pair of named types was visited; other pairs can't recur in one place but are shared by many."""
    if not (isinstance(pair.reader, Named) and isinstance(pair.writer, Named)):
        return False
    if id(pair) in visited:
        return True
    visited.add(id(pair))
    return False


def _taken(pair: Pair) -> tuple[int, Pair] | None:
    """Return the branch that a decoder takes: that of the same type, else the first that can read the writer's."""
    options = zip(pair.positions, pair.options or (), strict=True)
    open_options = [(position, option) for position, option in options if not option.is_broken]
    same = (item for item in open_options if _same(item[1].reader, pair.writer))
    return next(same, open_options[0] if open_options else None)


def _same(reader: AvroType, writer: AvroType) -> bool:
    if isinstance(reader, Named) and isinstance(writer, Named):
        return reader.full_name == writer.full_name
    return reader.kind == writer.kind


def inside(pair: Pair, edge: Edge, location: PairLocation) -> PairLocation:
    """Return the place of a pair inside another."""
    reader, writer = pair.reader, pair.writer
    if edge.reader_field is not None and edge.writer_field is not None:
        return PairLocation(
            f"{location.location}/fields/{edge.reader_field.position}/type",
            f"{location.path}.{edge.reader_field.name}",
            edge.reader_field.pointer + "/type",
            edge.writer_field.pointer + "/type",
            reader.source,
            writer.source,
        )
    if edge.branch is not None:
        return PairLocation(
            f"{location.location}/{edge.branch}",
            location.path,
            location.reader_pointer,
            f"{writer.pointer}/{edge.branch}",
            location.reader_source,
            writer.source,
        )
    key, suffix = ("items", "[]") if isinstance(reader, Array) else ("values", "{}")
    return PairLocation(
        f"{location.location}/{key}",
        location.path + suffix,
        f"{reader.pointer}/{key}",
        f"{writer.pointer}/{key}",
        reader.source,
        writer.source,
    )


def option_place(pair: Pair, position: int, location: PairLocation) -> PairLocation:
    """Return the place of a branch of the reader's union."""
    pointer = f"{pair.reader.pointer}/{position}"
    return PairLocation(
        location.location, location.path, pointer, location.writer_pointer, pair.reader.source, location.writer_source
    )
