"""Sample data that covers a schema (every branch, symbol and element), and types with a single problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from registry.formats.avro.datum import branch_name
from registry.formats.avro.model import Array, AvroType, Enum, Fixed, Map, Named, Primitive, Record, RecordField, Union
from registry.formats.avro.resolution import Pair, Reason
from registry.formats.avro.value_hazards import ordinary_value

MAX_DATA: Final = 2_000
MAX_VALUES: Final = 200_000
MAX_DEPTH: Final = 48
MAX_BYTES_OF_FIXED: Final = 65_536
_ENTRIES: Final = 2
_INFINITE: Final = 1_000_000

# Values that reveal a loss: integers that no float or double holds, and bytes that aren't UTF-8.
_VALUES: Final[Mapping[str, Any]] = {
    "null": None,
    "boolean": True,
    "int": 2**24 + 1,
    "long": 2**53 + 1,
    "float": 1.5,
    "double": 0.1,
    "bytes": b"\xff",
    "string": "s",
}


class TooMuchData(Exception):
    """Covering data of the schema would be too numerous, too large or too deep."""


class Coverage:
    """The covering data of a type, in the form that `Codec.encode` takes.

    `is_cut` says that the data so far ends before the type's deepest parts.
    """

    def __init__(self, root: AvroType) -> None:
        self._root = root
        self._counts: dict[int, int] = {}
        self._branch_counts: dict[int, tuple[int, ...]] = {}
        self._heights = _heights(root)
        self._budget = MAX_VALUES
        self.is_cut = False
        self.count = self._count(root, 0)

    @property
    def is_empty(self) -> bool:
        """Whether the type has no finite datum."""
        return self._height(self._root) >= _INFINITE

    def data(self) -> Iterator[Any]:
        """Yield the covering data; raises TooMuchData if a limit is exceeded."""
        if self.is_empty:
            return
        for index in range(self.count):
            if index >= MAX_DATA:
                raise TooMuchData(f"the schema needs more than {MAX_DATA:,} covering records")
            yield self._value(self._root, index, {}, 0)

    def _count(self, type_: AvroType, depth: int) -> int:
        """Return the number of covering values of a type; 1 for a type that is being counted."""
        if isinstance(type_, Enum):
            return len(type_.symbols)
        if not isinstance(type_, (Array, Map, Union, Record)):
            return 1 if type_.logical is None else 2
        key = id(type_)
        if key not in self._counts:
            if depth > 400:
                raise TooMuchData("the schema is nested too deeply for covering data")
            self._counts[key] = 1
            self._counts[key] = self._count_complex(type_, depth + 1)
        return self._counts[key]

    def _count_complex(self, type_: Array | Map | Union | Record, depth: int) -> int:
        if isinstance(type_, Array):
            return max(1, self._count(type_.items, depth))
        if isinstance(type_, Map):
            return max(1, self._count(type_.values, depth))
        if isinstance(type_, Union):
            counts = tuple(self._count(branch, depth) if self._is_finite(branch) else 0 for branch in type_.branches)
            self._branch_counts[id(type_)] = counts
            return sum(counts)
        return max((self._count(field.type, depth) for field in type_.fields), default=1) or 1

    def _value(self, type_: AvroType, index: int, entered: dict[int, int], depth: int) -> Any:
        self._budget -= 1
        if self._budget < 0:
            raise TooMuchData(f"the covering data of the schema has more than {MAX_VALUES:,} values")
        if depth > MAX_DEPTH:
            self.is_cut = True
            return self._shortest(type_, depth)
        if isinstance(type_, Record):
            return self._record(type_, index, entered, depth)
        if isinstance(type_, Union):
            return self._branch(type_, index, entered, depth)
        if isinstance(type_, Array):
            return [self._value(type_.items, index, entered, depth + 1)] if self._is_finite(type_.items) else []
        if isinstance(type_, Map):
            inner = type_.values
            return {"k": self._value(inner, index, entered, depth + 1)} if self._is_finite(inner) else {}
        if isinstance(type_, Enum):
            return type_.symbols[index % len(type_.symbols)]
        return self._leaf(type_, index)

    def _record(self, record: Record, index: int, entered: dict[int, int], depth: int) -> Any:
        times = entered.get(id(record), 0)
        if times >= _ENTRIES:
            return self._shortest(record, depth)
        entered[id(record)] = times + 1
        value = {}
        for field in record.fields:
            value[field.name] = self._field(field, index, entered, depth)
        entered[id(record)] = times
        return value

    def _field(self, field: RecordField, index: int, entered: dict[int, int], depth: int) -> Any:
        count = self._counts.get(id(field.type)) or self._count(field.type, 0)
        return self._value(field.type, index % max(1, count), entered, depth + 1)

    def _branch(self, union: Union, index: int, entered: dict[int, int], depth: int) -> Any:
        for branch, count in zip(union.branches, self._branch_counts[id(union)], strict=True):
            if index < count:
                return (branch_name(branch), self._value(branch, index, entered, depth + 1))
            index -= count
        return self._shortest(union, depth)

    def _shortest(self, type_: AvroType, depth: int) -> Any:
        """Return the type's value with the least depth."""
        self._budget -= 1
        if self._budget < 0 or depth > 3 * MAX_DEPTH:
            raise TooMuchData("the smallest record of the schema is too large or nested too deeply")
        if isinstance(type_, Record):
            return {field.name: self._shortest(field.type, depth + 1) for field in type_.fields}
        if isinstance(type_, Union):
            branch = min(type_.branches, key=self._height)
            return (branch_name(branch), self._shortest(branch, depth + 1))
        if isinstance(type_, Array):
            return []
        if isinstance(type_, Map):
            return {}
        return type_.symbols[0] if isinstance(type_, Enum) else self._leaf(type_, 0)

    @staticmethod
    def _leaf(type_: AvroType, index: int) -> Any:
        """Return a value of a simple type; a logical type has an ordinary value first, then one that reveals a loss."""
        if isinstance(type_, Fixed) and type_.size > MAX_BYTES_OF_FIXED:
            raise TooMuchData(f"the fixed {type_.full_name} has {type_.size:,} bytes")
        ordinary = ordinary_value(type_) if type_.logical is not None and index == 0 else None
        if ordinary is not None:
            return ordinary
        if isinstance(type_, Fixed):
            return b"f" * type_.size
        return _VALUES[type_.kind]

    def _is_finite(self, type_: AvroType) -> bool:
        return self._height(type_) < _INFINITE

    def _height(self, type_: AvroType) -> int:
        return _height(type_, self._heights)


def _heights(root: AvroType) -> dict[int, int]:
    """Map each record below a type to the depth of its shortest value, _INFINITE if it has none."""
    records = _records(root)
    heights = {id(record): _INFINITE for record in records}
    changed = True
    rounds = 0
    while changed and rounds <= MAX_DEPTH * 3:
        changed = False
        rounds += 1
        for record in reversed(records):
            height = 1 + max((_height(field.type, heights) for field in record.fields), default=0)
            if height < heights[id(record)]:
                heights[id(record)] = height
                changed = True
    return heights


def _height(type_: AvroType, heights: dict[int, int]) -> int:
    if isinstance(type_, Record):
        return min(_INFINITE, heights.get(id(type_), _INFINITE))
    if isinstance(type_, Union):
        return min((_height(branch, heights) for branch in type_.branches), default=_INFINITE)
    if isinstance(type_, Enum):
        return 0 if type_.symbols else _INFINITE
    return 0


def _records(root: AvroType) -> list[Record]:
    """Return all records below a type, outer ones first; without recursion."""
    records: list[Record] = []
    visited: set[int] = set()
    stack = [root]
    while stack:
        type_ = stack.pop()
        if id(type_) in visited:
            continue
        visited.add(id(type_))
        if isinstance(type_, Record):
            records.append(type_)
            stack.extend(field.type for field in reversed(type_.fields))
        elif isinstance(type_, Union):
            stack.extend(reversed(type_.branches))
        elif isinstance(type_, Array):
            stack.append(type_.items)
        elif isinstance(type_, Map):
            stack.append(type_.values)
    return records


def reader_with_only_this_problem(reason: Reason, pair: Pair) -> AvroType | None:
    """Return the pair's reader without its other reasons; None if the pair has only one."""
    rule, _, field, _ = reason
    reader, writer = pair.reader, pair.writer
    if isinstance(reader, Record) and isinstance(writer, Record):
        fields = () if field is None else (_field_alone(rule, field),)
        return record_of(fields, reader if rule == "NAME_CHANGED" else writer)
    if len(pair.reasons) < 2 or not (isinstance(reader, Named) and isinstance(writer, Named)):
        return None
    return _renamed(reader, writer) if rule != "NAME_CHANGED" else _renamed(writer, reader)


def _field_alone(rule: str, field: RecordField) -> RecordField:
    if rule != "FIELD_WITHOUT_DEFAULT":
        return field
    alone = RecordField(field.name, Primitive("null", "", None), 0, field.pointer)
    alone.aliases = field.aliases
    return alone


def record_of(fields: tuple[RecordField, ...], name_of: Record) -> Record:
    """Return a record with the given fields and another record's name."""
    record = Record(name_of.full_name, "", None)
    record.aliases, record.alias_set = name_of.aliases, name_of.alias_set
    record.fields = fields
    record.by_name = {field.name: field for field in fields}
    return record


def _renamed(type_: Named, named: Named) -> AvroType:
    """Return an enum or fixed with another type's name."""
    if isinstance(type_, Enum):
        enum = Enum(named.full_name, "", None)
        enum.symbols, enum.symbol_set, enum.default = type_.symbols, type_.symbol_set, type_.default
        enum.aliases, enum.alias_set = named.aliases, named.alias_set
        return enum
    assert isinstance(type_, Fixed)
    fixed = Fixed(named.full_name, "", None)
    fixed.size, fixed.aliases, fixed.alias_set = type_.size, named.aliases, named.alias_set
    return fixed
