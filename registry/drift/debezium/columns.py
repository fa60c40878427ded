"""A row's columns in Kafka Connect's terms, and their comparison across table, registered schema and events.

The table's shape is what the connector would emit for it now. It comes from the catalog, so it is the newest of the
three unless the registered schema was created ahead of it. A change of the table reaches the events only with the
table's next row, and the registered schema with that row. Unknown values (an untyped JSON value, a default that is an
expression, a column under a filter that isn't understood) differ from nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

ConnectType = Literal[
    "int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string", "bytes", "struct", "array", "map"
]
#: for values without a schema: JSON's own kinds, or unknown
SeenType = Literal["json_integer", "json_number", "json_string", "json_boolean", "json_object", "json_array", "unknown"]
Kind = ConnectType | SeenType
Late = Literal["labels", "nullability", ""]


@dataclass(frozen=True)
class Unset:
    """A default that doesn't exist (`no default`) or isn't known (`unknown`); neither is null."""

    word: str


NO_DEFAULT: Final = Unset("no default")
UNKNOWN_DEFAULT: Final = Unset("unknown")


@dataclass(frozen=True)
class FieldShape:
    """A column as a field. `logical` is the semantic type's name, empty without one, None if unknown.

    `optional` is None if unknown. `parameters` are the meaningful ones: a decimal's `scale` and
    `connect.decimal.precision`, an enum's `allowed`, the `length` of bits. `late` is a part of a table's column that a
    type declares: a change of the type reaches the events when the connector next reads the table's definition.
    """

    name: str
    kind: Kind
    logical: str | None = ""
    optional: bool | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    default: object = UNKNOWN_DEFAULT
    items: FieldShape | None = None
    late: Late = ""

    @property
    def type_words(self) -> str:
        """Return the type for people, such as `int32 (Date)` or `array of string`."""
        kind = self.kind.removeprefix("json_")
        if self.items is not None:
            kind += f" of {self.items.type_words}"
        elif self.kind.startswith("json_"):
            kind = f"a JSON {kind}"
        return f"{kind} ({self.logical.rpartition('.')[2]})" if self.logical else kind


@dataclass(frozen=True)
class RowShape:
    """The columns of a row or a key. `exact` is False if existing fields may be missing from it.

    `partly` are fields that only some of the messages have: it is unknown whether the newest have them.
    """

    fields: Mapping[str, FieldShape]
    exact: bool = True
    partly: frozenset[str] = frozenset()


#: how a value of a Connect type may look in JSON without a schema
_JSON_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "int8": frozenset({"json_integer", "json_number"}),
    "int16": frozenset({"json_integer", "json_number"}),
    "int32": frozenset({"json_integer", "json_number"}),
    "int64": frozenset({"json_integer", "json_number"}),
    "float32": frozenset({"json_integer", "json_number", "json_string"}),  # NaN and infinity are text
    "float64": frozenset({"json_integer", "json_number", "json_string"}),
    "boolean": frozenset({"json_boolean"}),
    "string": frozenset({"json_string"}),
    "bytes": frozenset({"json_string", "json_number", "json_integer"}),  # base64; decimals may be numbers
    "struct": frozenset({"json_object"}),
    "array": frozenset({"json_array"}),
    "map": frozenset({"json_object", "json_array"}),
}


def same_type(one: FieldShape, other: FieldShape) -> bool:
    """Return whether two fields hold the same kind of value, as far as known, ignoring parameters."""
    if "unknown" in (one.kind, other.kind):
        return True
    if one.kind.startswith("json_") or other.kind.startswith("json_"):
        return _same_json(one, other)
    if one.kind != other.kind:
        return False
    if one.logical is not None and other.logical is not None and one.logical != other.logical:
        return False
    if one.items is not None and other.items is not None:
        return same_type(one.items, other.items)
    return True


def _same_json(one: FieldShape, other: FieldShape) -> bool:
    if one.kind.startswith("json_") and other.kind.startswith("json_"):
        return one.kind == other.kind or {one.kind, other.kind} == {"json_integer", "json_number"}
    json_shape, other_shape = (other, one) if one.kind.startswith("json_") else (one, other)
    return other_shape.kind in _JSON_KINDS[json_shape.kind]


def same_parameters(one: FieldShape, other: FieldShape) -> bool:
    """Return whether scale, precision, labels and length agree, if both sides have them."""
    if one.items is not None and other.items is not None:
        return same_parameters(one.items, other.items)
    shared = one.parameters.keys() & other.parameters.keys()
    return all(one.parameters[name] == other.parameters[name] for name in shared)


def same_default(one: FieldShape, other: FieldShape) -> bool:
    """Return whether the defaults agree, if both are known; an optional field's null is no default."""
    first, second = (_default(shape) for shape in (one, other))
    if UNKNOWN_DEFAULT in (first, second):
        return True
    return type(first) is type(second) and first == second


def _default(shape: FieldShape) -> object:
    if shape.default is None:
        return NO_DEFAULT
    if isinstance(shape.default, int | float) and not isinstance(shape.default, bool):
        return float(shape.default)
    return shape.default


Side = Literal["table", "registered", "events"]
SIDES: Final[tuple[Side, ...]] = ("table", "registered", "events")
Change = Literal["added", "dropped", "renamed", "retyped", "scaled", "relabelled", "nullability", "default"]
ABSENT: Final = "missing"


@dataclass(frozen=True)
class ColumnChange:
    """A column that differs between the sides. `says` has the value on each known side, `behind` the sides that lag.

    `becomes` is the new name of a column that looks renamed. `narrows` means that a column became optional or lost its
    default: consumers may find null where there was none before.
    """

    change: Change
    column: str
    says: Mapping[Side, str]
    behind: frozenset[Side]
    becomes: str = ""
    narrows: bool = False


@dataclass(frozen=True)
class KeyChange:
    """A key that differs between the sides: `says` has its columns by side, `lost` means that it became null."""

    says: Mapping[Side, tuple[str, ...]]
    behind: frozenset[Side]
    lost: bool = False


@dataclass(frozen=True)
class TableComparison:
    """The comparison of one table; `sides` are the known ones."""

    sides: frozenset[Side]
    columns: tuple[ColumnChange, ...] = ()
    key: KeyChange | None = None

    @property
    def in_step(self) -> bool:
        """Return whether at least two sides are known and none is behind."""
        return len(self.sides) > 1 and not self.columns and self.key is None

    @property
    def behind(self) -> frozenset[Side]:
        """Return all sides that are behind in anything."""
        sides = [departure.behind for departure in self.columns] + ([self.key.behind] if self.key else [])
        return frozenset().union(*sides)


Rows = Mapping[Side, RowShape]


def compare(rows: Rows, *, ignore: frozenset[str] = frozenset(), keys: Rows | None = None) -> TableComparison:
    """Compare the known sides in `rows` and `keys`; a key without fields is a null key.

    `ignore` are fields that may be present or not.
    """
    names = list(dict.fromkeys(name for row in rows.values() for name in row.fields if name not in ignore))
    departures = [departure for name in names for departure in _column(name, rows)] if len(rows) > 1 else []
    return TableComparison(
        sides=frozenset(rows),
        columns=tuple(_with_renames(departures, rows)),
        key=_key(keys) if keys and len(keys) > 1 else None,
    )


def _truth(sides: Mapping[Side, object]) -> Side:
    """Return the side to compare with: the table, else the events, which are newer than the registered schema."""
    return next(side for side in ("table", "events", "registered") if side in sides)


def _column(name: str, rows: Rows) -> list[ColumnChange]:
    """Return the differences of one column: whether it exists comes before everything else."""
    shapes: dict[Side, FieldShape | None] = {}
    for side, row in rows.items():
        if name in row.partly:
            continue  # some messages have it: those before or after the change
        if name in row.fields or row.exact:
            shapes[side] = row.fields.get(name)
    if len(shapes) < 2:
        return []
    truth = _truth(shapes)
    missing = {side for side, shape in shapes.items() if (shape is None) != (shapes[truth] is None)}
    departures = []
    if missing:
        change: Change = "dropped" if shapes[truth] is None else "added"
        says = {side: shape.type_words if shape else ABSENT for side, shape in shapes.items()}
        departures.append(ColumnChange(change, name, says, frozenset(missing)))
    there = {side: shape for side, shape in shapes.items() if shape is not None}
    if len(there) > 1:
        departures += _aspects(name, there)
    return departures


def _aspects(name: str, there: Mapping[Side, FieldShape]) -> list[ColumnChange]:
    """Return the aspects of a column's field that differ; a new type makes the other aspects moot."""
    truth = there[_truth(there)]
    departures = []
    for change, same, described in _ASPECTS:
        behind = frozenset(side for side, shape in there.items() if not same(truth, shape))
        if behind:
            says = {side: described(shape) for side, shape in there.items()}
            narrows = change == "nullability" and truth.optional is True
            narrows = narrows or (change == "default" and truth.default is NO_DEFAULT)
            departures.append(ColumnChange(change, name, says, behind, narrows=narrows))
            if change == "retyped":
                break
    return departures


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
    return ", ".join(parts) or "unknown"


def _nullability_words(shape: FieldShape) -> str:
    return {True: "nullable", False: "not null", None: "unknown"}[shape.optional]


def _default_words(shape: FieldShape) -> str:
    if shape.default in (NO_DEFAULT, UNKNOWN_DEFAULT) or shape.default is None:
        return "no default" if shape.default is not UNKNOWN_DEFAULT else "unknown"
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


def _with_renames(departures: list[ColumnChange], rows: Rows) -> list[ColumnChange]:
    """Merge an added and a dropped column with the same type and the same sides behind: most likely a rename.

    Only if there is one of each: with more, the pairs are ambiguous.
    """
    groups: dict[frozenset[Side], tuple[list[ColumnChange], list[ColumnChange]]] = {}
    for departure in departures:
        if departure.change in ("added", "dropped"):
            groups.setdefault(departure.behind, ([], []))[departure.change == "dropped"].append(departure)
    renamed: dict[str, ColumnChange] = {}
    for behind, (added, dropped) in groups.items():
        if len(added) == len(dropped) == 1 and _alike(added[0].column, dropped[0].column, rows):
            says = {side: _name_there(side, added[0], dropped[0]) for side in added[0].says.keys() & dropped[0].says}
            new = ColumnChange("renamed", dropped[0].column, says, behind, becomes=added[0].column)
            renamed |= {dropped[0].column: new, added[0].column: new}
    result: list[ColumnChange] = []
    for departure in departures:
        replaced = renamed.get(departure.column) if departure.change in ("added", "dropped") else None
        if replaced is None:
            result.append(departure)
        elif replaced not in result:
            result.append(replaced)
    return result


def _name_there(side: Side, added: ColumnChange, dropped: ColumnChange) -> str:
    return added.column if added.says[side] != ABSENT else dropped.column


def _alike(new: str, old: str, rows: Rows) -> bool:
    shapes_new = [row.fields[new] for row in rows.values() if new in row.fields]
    shapes_old = [row.fields[old] for row in rows.values() if old in row.fields]
    return all(same_type(one, other) and one.kind != "unknown" for one in shapes_new for other in shapes_old)


def _key(keys: Rows) -> KeyChange | None:
    """Compare keys by their columns and types: the order is part of the schema, but not of its meaning."""
    truth = keys[_truth(keys)]
    behind = frozenset(side for side, key in keys.items() if not _same_key(truth, key))
    if not behind:
        return None
    says = {side: tuple(key.fields) for side, key in keys.items()}
    return KeyChange(says, behind, lost=not truth.fields)


def _same_key(one: RowShape, other: RowShape) -> bool:
    if one.fields.keys() != other.fields.keys():
        return False
    return all(same_type(shape, other.fields[name]) for name, shape in one.fields.items())
