"""Table, registered schema and events, held against each other column by column: where they part, and which is behind.

The table's shape is what the connector would emit for it now; it comes from the catalog, so it is the newest of the
three unless the registered schema was made ahead of it. A change of the table shows in the events with the table's
next row alone, and the registered schema moves with that row. What nobody tells (an untyped JSON value, a default that
is an expression, a column under a filter that isn't understood) parts with nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from registry.drift.debezium.shapes import (
    NO_DEFAULT,
    UNKNOWN_DEFAULT,
    FieldShape,
    RowShape,
    same_default,
    same_parameters,
    same_type,
)

Side = Literal["table", "registered", "events"]
SIDES: Final[tuple[Side, ...]] = ("table", "registered", "events")
Change = Literal["added", "dropped", "renamed", "retyped", "scaled", "relabelled", "nullability", "default"]
ABSENT: Final = "isn't there"


@dataclass(frozen=True)
class Departure:
    """A column on which the three part. `says` is what each side that tells says, `behind` who is behind.

    `becomes` is the new name of a column that looks renamed. `narrows` says that a column became optional or lost its
    default: consumers may find null where they found none.
    """

    change: Change
    column: str
    says: Mapping[Side, str]
    behind: frozenset[Side]
    becomes: str = ""
    narrows: bool = False


@dataclass(frozen=True)
class KeyDeparture:
    """A key on which the three part: `says` names its columns by side, `lost` a key that became null."""

    says: Mapping[Side, tuple[str, ...]]
    behind: frozenset[Side]
    lost: bool = False


@dataclass(frozen=True)
class Compared:
    """What became of comparing one table: `known` are the sides that told anything."""

    known: frozenset[Side]
    columns: tuple[Departure, ...] = ()
    key: KeyDeparture | None = None

    @property
    def in_step(self) -> bool:
        """Whether at least two sides told and none is behind."""
        return len(self.known) > 1 and not self.columns and self.key is None

    @property
    def behind(self) -> frozenset[Side]:
        """All sides that are behind in anything."""
        found = [each.behind for each in self.columns] + ([self.key.behind] if self.key else [])
        return frozenset().union(*found)


Rows = Mapping[Side, RowShape]


def compare(rows: Rows, *, ignore: frozenset[str] = frozenset(), keys: Rows | None = None) -> Compared:
    """Where the sides part. `rows` and `keys` have the sides that are known; a key without fields is a null key.

    `ignore` are fields that may be there or not.
    """
    names = list(dict.fromkeys(name for row in rows.values() for name in row.fields if name not in ignore))
    departures = [found for name in names for found in _column(name, rows)] if len(rows) > 1 else []
    return Compared(
        known=frozenset(rows),
        columns=tuple(_with_renames(departures, rows)),
        key=_key(keys) if keys and len(keys) > 1 else None,
    )


def _truth(sides: Mapping[Side, object]) -> Side:
    """The side that the others are held against: the table, else the events, which are newer than what is registered."""
    return next(side for side in ("table", "events", "registered") if side in sides)


def _column(name: str, rows: Rows) -> list[Departure]:
    """The departures of one column: being there comes before everything else."""
    told: dict[Side, FieldShape | None] = {}
    for side, row in rows.items():
        if name in row.partly:
            continue  # some messages have it: those before or those after the change
        if name in row.fields or row.exact:
            told[side] = row.fields.get(name)
    if len(told) < 2:
        return []
    truth = _truth(told)
    missing = {side for side, shape in told.items() if (shape is None) != (told[truth] is None)}
    found = []
    if missing:
        change: Change = "dropped" if told[truth] is None else "added"
        says = {side: shape.type_words if shape else ABSENT for side, shape in told.items()}
        found.append(Departure(change, name, says, frozenset(missing)))
    there = {side: shape for side, shape in told.items() if shape is not None}
    if len(there) > 1:
        found += _aspects(name, there)
    return found


def _aspects(name: str, there: Mapping[Side, FieldShape]) -> list[Departure]:
    """What of a column's field the sides tell differently; a new type says it all."""
    truth = there[_truth(there)]
    found = []
    for change, same, words in _ASPECTS:
        behind = frozenset(side for side, shape in there.items() if not same(truth, shape))
        if behind:
            says = {side: words(shape) for side, shape in there.items()}
            narrows = change == "nullability" and truth.optional is True
            narrows = narrows or (change == "default" and truth.default is NO_DEFAULT)
            found.append(Departure(change, name, says, behind, narrows=narrows))
            if change == "retyped":
                break
    return found


def _same_labels(one: FieldShape, other: FieldShape) -> bool:
    return "allowed" not in one.parameters or same_parameters(one, other)


def _same_scale(one: FieldShape, other: FieldShape) -> bool:
    return "allowed" in one.parameters or same_parameters(one, other)


def _same_nullability(one: FieldShape, other: FieldShape) -> bool:
    return None in (one.optional, other.optional) or one.optional == other.optional


def _parameter_words(shape: FieldShape) -> str:
    inner = shape.items if shape.items is not None else shape
    short = {"connect.decimal.precision": "precision", "allowed": "labels"}
    parts = [f"{short.get(name, name)} {value}" for name, value in sorted(inner.parameters.items())]
    return ", ".join(parts) or "nothing of it"


def _nullability_words(shape: FieldShape) -> str:
    return {True: "may be null", False: "is never null", None: "nothing of it"}[shape.optional]


def _default_words(shape: FieldShape) -> str:
    if shape.default in (NO_DEFAULT, UNKNOWN_DEFAULT) or shape.default is None:
        return "no default" if shape.default is not UNKNOWN_DEFAULT else "nothing of it"
    value = shape.default
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"default {str(value)[:80]!r}" if isinstance(value, str) else f"default {value}"


_ASPECTS: Final[tuple[tuple[Change, Callable[[FieldShape, FieldShape], bool], Callable[[FieldShape], str]], ...]] = (
    ("retyped", same_type, lambda shape: shape.type_words),
    ("scaled", _same_scale, _parameter_words),
    ("relabelled", _same_labels, _parameter_words),
    ("nullability", _same_nullability, _nullability_words),
    ("default", same_default, _default_words),
)


def _with_renames(departures: list[Departure], rows: Rows) -> list[Departure]:
    """A column that came and one that went, of one type and with the same sides behind: most likely renamed.

    Only where there is one of each: with more nobody can tell which became which.
    """
    groups: dict[frozenset[Side], tuple[list[Departure], list[Departure]]] = {}
    for each in departures:
        if each.change in ("added", "dropped"):
            groups.setdefault(each.behind, ([], []))[each.change == "dropped"].append(each)
    renamed: dict[str, Departure] = {}
    for behind, (added, dropped) in groups.items():
        if len(added) == len(dropped) == 1 and _alike(added[0].column, dropped[0].column, rows):
            says = {side: _name_there(side, added[0], dropped[0]) for side in added[0].says.keys() & dropped[0].says}
            new = Departure("renamed", dropped[0].column, says, behind, becomes=added[0].column)
            renamed |= {dropped[0].column: new, added[0].column: new}
    kept: list[Departure] = []
    for each in departures:
        replaced = renamed.get(each.column) if each.change in ("added", "dropped") else None
        if replaced is None:
            kept.append(each)
        elif replaced not in kept:
            kept.append(replaced)
    return kept


def _name_there(side: Side, added: Departure, dropped: Departure) -> str:
    return added.column if added.says[side] != ABSENT else dropped.column


def _alike(new: str, old: str, rows: Rows) -> bool:
    shapes_new = [row.fields[new] for row in rows.values() if new in row.fields]
    shapes_old = [row.fields[old] for row in rows.values() if old in row.fields]
    return all(same_type(one, other) and one.kind != "unknown" for one in shapes_new for other in shapes_old)


def _key(keys: Rows) -> KeyDeparture | None:
    """Keys are compared by their columns and types: their order is part of the schema, but not of its meaning."""
    truth = keys[_truth(keys)]
    behind = frozenset(side for side, key in keys.items() if not _same_key(truth, key))
    if not behind:
        return None
    says = {side: tuple(key.fields) for side, key in keys.items()}
    return KeyDeparture(says, behind, lost=not truth.fields)


def _same_key(one: RowShape, other: RowShape) -> bool:
    if one.fields.keys() != other.fields.keys():
        return False
    return all(same_type(shape, other.fields[name]) for name, shape in one.fields.items())
