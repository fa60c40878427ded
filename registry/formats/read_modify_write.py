"""The read-modify-write hazard: fields reset to defaults when another version writes the record back; and remedies."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cachetools import LRUCache

from registry.errors import InvalidDatum, InvalidInput, first_few
from registry.formats.base import FieldOutcome, ParsedSchema, Resolution
from registry.formats.json_change import Change, apply_change, apply_changes, different_value, scalar_places
from registry.formats.schema_format import SchemaFormat


@dataclass(frozen=True, slots=True)
class Remedy:
    """A remedy: what to do, and what it costs or requires."""

    id: str
    title: str
    text: str


# Values: {fields}, {older} and {newer} (version numbers), {knows} and {lacks} (the version that knows or loses them).
_ADDED: Final = Remedy(
    "UPGRADE_ORDER",
    "Upgrade first, use later",
    "Upgrade every client that writes from version {older} to version {newer} before any client sets "
    "{fields}. Until then, a client on version {older} that modifies a record resets {fields}.",
)
_REMOVED: Final = Remedy(
    "UPGRADE_ORDER",
    "Stop using it first, remove it later",
    "All clients on version {older} must stop relying on {fields} before the first client on version {newer} "
    "writes. After that, a client on version {newer} that modifies a record resets {fields}.",
)
_CHANGED: Final = Remedy(
    "UPGRADE_ORDER",
    "Upgrade all writers at once",
    "Upgrade every client that writes from version {older} to version {newer} before any of them writes a "
    "value in {fields} that the other version can't represent.",
)
_ALWAYS: Final = (
    Remedy(
        "FREEZE_WRITERS",
        "Freeze the writers that lose it",
        "While versions {knows} and {lacks} are used together, clients on version {lacks} must only read. They "
        "must not write back records that contain {fields}.",
    ),
    Remedy(
        "FIELD_OWNERSHIP",
        "Give the field an owner",
        "Store {fields} in a separate record with its own key that is written only by clients that know it. Or "
        "let each client update only its own fields instead of writing back the whole record.",
    ),
)


def worded(paths: Sequence[str], known_in: int, lost_in: int, *, goes_to_default: bool) -> tuple[Remedy, ...]:
    """Return the remedies for the fields that version `known_in` knows and `lost_in` resets."""
    values = {
        "fields": _listed(paths),
        "older": str(min(known_in, lost_in)),
        "newer": str(max(known_in, lost_in)),
        "knows": str(known_in),
        "lacks": str(lost_in),
    }
    # A field that the older version lacks was added; one that the newer version lacks was removed.
    order = _CHANGED if not goes_to_default else _ADDED if lost_in < known_in else _REMOVED
    return tuple(Remedy(row.id, row.title, row.text.format_map(values)) for row in (order, *_ALWAYS))


def _listed(paths: Sequence[str]) -> str:
    return first_few([f'"{path}"' for path in dict.fromkeys(paths)], 10)


MAX_VERSIONS: Final = 20
_CONCRETE: Final = re.compile(r"\[\d+\]|\{[^{}]*\}")
_MAX_VARIED: Final = 200
_MAX_READINGS: Final = 16


@dataclass(frozen=True, slots=True)
class SimulationStep:
    """One step: `value` is the record as the client sees it, `encoded` is what is stored after the step.

    `fields` is the outcome for each field that the client read; empty in the first step. `error` is the decoder's
    message if it failed.
    """

    title: str
    value: Any
    encoded: str
    fields: tuple[FieldOutcome, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class FieldReset:
    """A field whose value changed though no client changed it; `is_default` if it went back to its default."""

    path: str
    before: Any
    after: Any
    is_default: bool


@dataclass(frozen=True, slots=True)
class Simulation:
    """The three steps (write; read, modify and write back; read again) and the fields that they silently reset.

    If a client can't read what is stored, `steps` ends there with its error, and `resets` is empty.
    """

    steps: tuple[SimulationStep, ...]
    change: Change | None
    resets: tuple[FieldReset, ...] = ()

    @property
    def error(self) -> str:
        """Why the steps end early; empty if all were done."""
        return self.steps[-1].error


@dataclass(frozen=True, slots=True)
class Reset:
    """A field of one version that a read-modify-write by another version resets, with a simulation that shows it.

    `path` has no indexes (`Order.items[].price`); `before` and `after` are the values in the simulation.
    """

    path: str
    known_in: int
    lost_in: int
    before: Any
    after: Any
    is_default: bool
    simulation: Simulation

    @property
    def field(self) -> str:
        """The field's own name."""
        return self.path.rpartition(".")[2]


def simulate_read_modify_write(
    format: SchemaFormat | _CachedFormat,
    written_by: ParsedSchema,
    modified_by: ParsedSchema,
    read_by: ParsedSchema,
    datum: Any,
    change: Change | None = None,
) -> Simulation:
    """Simulate the three steps on a datum (the format's JSON form) with real encoding and decoding.

    `change` is what the client in the middle modifies in its own view; None writes back what it read. Raises
    InvalidDatum if the datum isn't valid for `written_by`, or the change has no target in `modified_by`.
    """
    stored = format.resolve(written_by, written_by, datum)
    first = SimulationStep("write", stored.datum, stored.encoded)
    view = format.resolve(modified_by, written_by, stored.datum)
    if view.error:
        return Simulation(
            (first, SimulationStep("read, modify, write back", None, stored.encoded, (), view.error)), change
        )
    modified = view.value if change is None else apply_change(view.value, change)
    back = format.resolve(modified_by, modified_by, modified)
    second = SimulationStep("read, modify, write back", back.datum, back.encoded, view.fields)
    again = format.resolve(read_by, modified_by, back.datum)
    third = SimulationStep("read again", again.value, back.encoded, again.fields, again.error)
    steps = (first, second, third)
    if again.error:
        return Simulation(steps, change)
    before = format.resolve(read_by, written_by, stored.datum)
    # The effect of the change itself isn't a reset, so the same steps without it are compared.
    unchanged = again if change is None else format.resolve(read_by, modified_by, view.value)
    return Simulation(steps, change, tuple(_resets(before, unchanged)))


def find_resets(format: SchemaFormat, versions: Sequence[tuple[int, ParsedSchema]]) -> tuple[Reset, ...]:
    """Return every field that a read-modify-write by another version resets, each with a simulation that shows it.

    `versions` are those in use at the same time, with their numbers. A pair in which one can't read the other has no
    resets; the compatibility check reports that break. Raises InvalidInput for more than MAX_VERSIONS.
    """
    distinct, cached = _distinct(versions), _CachedFormat(format)
    if len(distinct) > MAX_VERSIONS:
        raise InvalidInput(
            f"{len(distinct)} different versions are too many to simulate: choose at most {MAX_VERSIONS}"
        )
    resets: list[Reset] = []
    for known_in, version in distinct:
        for lost_in, other in distinct:
            if version is not other:
                resets.extend(_pair_resets(cached, (known_in, version), (lost_in, other)))
    return tuple(resets)


def remedies(resets: Sequence[Reset]) -> tuple[Remedy, ...]:
    """Return how to avoid the resets, for each pair of versions: upgrade order, freeze of writers, field ownership."""
    groups: dict[tuple[int, int], list[Reset]] = {}
    for reset in resets:
        groups.setdefault((reset.known_in, reset.lost_in), []).append(reset)
    return tuple(
        remedy
        for (known_in, lost_in), group in sorted(groups.items())
        for remedy in worded(
            [reset.path for reset in group], known_in, lost_in, goes_to_default=any(reset.is_default for reset in group)
        )
    )


def _distinct(versions: Sequence[tuple[int, ParsedSchema]]) -> list[tuple[int, ParsedSchema]]:
    """Drop versions that are equal to an earlier one, because equal schemas need no conversion."""
    by_fingerprint: dict[str, tuple[int, ParsedSchema]] = {}
    for number, schema in versions:
        by_fingerprint.setdefault(schema.fingerprint, (number, schema))
    return list(by_fingerprint.values())


class _CachedFormat:
    """A format with cached examples and its last readings, because a pair asks for the same one several times."""

    def __init__(self, format: SchemaFormat) -> None:
        self._format = format
        self._examples: dict[str, Any] = {}
        self._readings: LRUCache[tuple[str, str, str], Resolution] = LRUCache(_MAX_READINGS)

    def example(self, schema: ParsedSchema) -> Any:
        """Return the format's example."""
        if schema.fingerprint not in self._examples:
            self._examples[schema.fingerprint] = self._format.example(schema)
        return self._examples[schema.fingerprint]

    def resolve(self, reader: ParsedSchema, writer: ParsedSchema, datum: Any) -> Resolution:
        """Return the format's reading."""
        try:
            key = (reader.fingerprint, writer.fingerprint, json.dumps(datum))
        except RecursionError:
            raise InvalidDatum("the datum is nested too deep for this process") from None
        if key not in self._readings:
            self._readings[key] = self._format.resolve(reader, writer, datum)
        return self._readings[key]


def _pair_resets(
    cached: _CachedFormat, version: tuple[int, ParsedSchema], other: tuple[int, ParsedSchema]
) -> Iterator[Reset]:
    try:
        datum = _datum_without_defaults(cached, version[1], other[1])
        if not simulate_read_modify_write(cached, version[1], other[1], version[1], datum).resets:
            return
        change = _some_change(cached, version[1], other[1], datum)
        simulation = simulate_read_modify_write(cached, version[1], other[1], version[1], datum, change)
    except InvalidDatum:
        # No datum can be made for the schema, or the other version can't write back what it read.
        return
    paths: set[str] = set()
    for reset in simulation.resets:
        path = _CONCRETE.sub(lambda match: match.group()[0] + match.group()[-1], reset.path)
        if path not in paths:
            paths.add(path)
            yield Reset(path, version[0], other[0], reset.before, reset.after, reset.is_default, simulation)


def _datum_without_defaults(cached: _CachedFormat, schema: ParsedSchema, other: ParsedSchema) -> Any:
    """Return a datum in which every defaulted field differs from its default; raises InvalidDatum if none can be made.

    If the example happens to hold a default, its values are varied as far as the schema accepts that.
    """
    datum = cached.example(schema)
    before, after = cached.resolve(schema, schema, datum), _round_trip(cached, schema, other, datum)
    if after is None or not _hides_a_default(before, after):
        return datum
    for changes in _bisected(
        [Change(pointer, different_value(value)) for pointer, value in scalar_places(datum)][:_MAX_VARIED]
    ):
        candidate = apply_changes(datum, changes)
        if _is_datum(cached, schema, candidate):
            datum = candidate
            changes.clear()
    return datum


def _bisected(changes: list[Change]) -> Iterator[list[Change]]:
    """Yield all changes, then each half of those that the caller leaves in the list, down to single changes."""
    yield changes
    if len(changes) > 1:
        middle = len(changes) // 2
        for half in (changes[:middle], changes[middle:]):
            yield from _bisected(half)


def _round_trip(cached: _CachedFormat, schema: ParsedSchema, other: ParsedSchema, datum: Any) -> Resolution | None:
    """Return what is left after another version reads and writes back; None if either side can't read."""
    view = cached.resolve(other, schema, datum)
    again = None if view.error else cached.resolve(schema, other, view.value)
    return None if again is None or again.error else again


def _hides_a_default(before: Resolution, after: Resolution) -> bool:
    values = {item.path: item.read for item in before.fields}
    return any(item.outcome == "filled" and _same(values.get(item.path), item.read) for item in after.fields)


def _some_change(cached: _CachedFormat, schema: ParsedSchema, other: ParsedSchema, datum: Any) -> Change | None:
    """Return a modification of a field that the other version has; None if none of the first candidates is accepted."""
    view = cached.resolve(other, schema, datum)
    for pointer, value in list(scalar_places(view.value))[:_MAX_VARIED] if not view.error else ():
        change = Change(pointer, different_value(value))
        if _is_datum(cached, other, apply_change(view.value, change)):
            return change
    return None


def _is_datum(cached: _CachedFormat, schema: ParsedSchema, value: Any) -> bool:
    try:
        return not cached.resolve(schema, schema, value).error
    except InvalidDatum:
        return False


def _resets(before: Resolution, after: Resolution) -> Iterator[FieldReset]:
    """Yield the fields of one reader whose values differ between two readings, in the order of the first."""
    now = {item.path: item for item in after.fields if item.outcome != "dropped"}
    for item in before.fields:
        if item.outcome == "dropped":
            continue
        match = _nearest(now, item.path)
        if match is not None:
            # A complete record that was filled has no row for each of its fields.
            is_whole = match.path == item.path
            if not is_whole or not _same(match.read, item.read):
                yield FieldReset(item.path, item.read, match.read, match.outcome == "filled")
        elif not any(path.startswith(item.path) for path in now):
            yield FieldReset(item.path, item.read, None, False)
        else:
            inner = {path: row.read for path, row in now.items() if path.startswith(item.path)}
            yield FieldReset(item.path, item.read, inner, all(now[path].outcome == "filled" for path in inner))


def _nearest(rows: dict[str, FieldOutcome], path: str) -> FieldOutcome | None:
    """Return the row of a path, or of its nearest enclosing path."""
    while path:
        if path in rows:
            return rows[path]
        cut = max(path.rfind(mark) for mark in ".[{")
        path = path[: max(0, cut)]
    return None


def _same(ours: Any, theirs: Any) -> bool:
    """Return whether two JSON values are equal; 1 and true differ."""
    return json.dumps(ours, sort_keys=True) == json.dumps(theirs, sort_keys=True)
