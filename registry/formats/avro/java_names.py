"""The writer's names in Java's decoder, after the reader's aliases are applied.

Java renames the types and fields of the writer schema before it compares anything. It does so twice (for the decoder,
then for the resolver), unless the two schemas are equal after the first time. So an alias can lead to another alias,
and two fields that swap names may or may not be swapped. If the renamed schema is invalid (two fields with one name,
two branches of a union with one name), Java fails before any datum.

Source: `Schema.applyAliases` of org.apache.avro 1.12, called by `FastReaderBuilder` and again by `Resolver`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from registry.formats.avro.findings import PairLocation, root_path
from registry.formats.avro.model import Array, AvroType, Enum, Fixed, Map, Named, Record, RecordField, Union
from registry.formats.avro.resolution import Pair, Reason

_ROUNDS: Final = 2


class JavaStops(Exception):
    """Java's decoder fails at a place of a datum, or (with `is_whole`) at the schemas before any datum."""

    def __init__(
        self, message: str, reason: Reason, pair: Pair, location: PairLocation, *, is_whole: bool = False
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.pair = pair
        self.location = location
        self.is_whole = is_whole


class RenamedWriter:
    """The names of a writer's types and fields for a reader; `refusal` is Java's error about them, or None."""

    def __init__(self, reader: AvroType, writer: AvroType) -> None:
        self.refusal: JavaStops | None = None
        self._names: dict[int, str] = {}
        self._fields: dict[int, tuple[str, ...]] = {}
        aliases = _Aliases(reader)
        for _ in range(_ROUNDS):
            if self.refusal is not None or aliases.are_none or self._is_equal(writer, reader):
                return
            self._rename(writer, aliases)
            self.refusal = next(self._refusals(reader, writer), None)

    def name_of(self, writer: Named) -> str:
        """Return the full name of a writer's type."""
        return self._names.get(id(writer), writer.full_name)

    def fields_of(self, writer: Record) -> tuple[str, ...]:
        """Return the field names of a writer's record, in the writer's order."""
        return self._fields.get(id(writer)) or tuple(field.name for field in writer.fields)

    def _rename(self, writer: AvroType, aliases: _Aliases) -> None:
        for type_ in types_of(writer):
            if not isinstance(type_, Named):
                continue
            name = self._names[id(type_)] = aliases.names.get(self.name_of(type_), self.name_of(type_))
            if isinstance(type_, Record):
                renamed = aliases.fields.get(name, {})
                self._fields[id(type_)] = tuple(renamed.get(field, field) for field in self.fields_of(type_))

    def _refusals(self, reader: AvroType, writer: AvroType) -> Iterator[JavaStops]:
        """Yield what makes the renamed schema invalid."""
        readers = {type_.full_name: type_ for type_ in types_of(reader) if isinstance(type_, Record)}
        for type_ in types_of(writer):
            if isinstance(type_, Record):
                yield from self._doubled_fields(reader, type_, readers.get(self.name_of(type_)))
            elif isinstance(type_, Union):
                names = [self.name_of(item) for item in type_.branches if isinstance(item, Named)]
                if len(set(names)) < len(names):
                    location = PairLocation(
                        "", root_path(reader), reader.pointer, type_.pointer, reader.source, type_.source
                    )
                    reason: Reason = ("UNION_BRANCH_AMBIGUOUS", "", None, ())
                    message = (
                        "two branches of the union in the writer schema have the same name after the aliases of the reader "
                        "schema are applied"
                    )
                    yield JavaStops(message, reason, Pair(reader, type_), location, is_whole=True)

    def _doubled_fields(self, root: AvroType, writer: Record, reader: Record | None) -> Iterator[JavaStops]:
        by_name: dict[str, list[RecordField]] = {}
        for name, field in zip(self.fields_of(writer), writer.fields, strict=True):
            by_name.setdefault(name, []).append(field)
        for name, fields in by_name.items():
            if len(fields) < 2:
                continue
            target = reader.by_name.get(name) if reader is not None else None
            own = reader if reader is not None else root
            location = PairLocation("", root_path(own), own.pointer, writer.pointer, own.source, writer.source)
            suffix = "" if target is None else f"/fields/{target.position}"
            reason: Reason = ("ALIAS_AMBIGUOUS", suffix, target, (fields,))
            shown = ", ".join(f'"{item.name}"' for item in fields)
            message = (
                f'the fields {shown} of the writer schema are all named "{name}" after the aliases of the reader schema '
                "are applied"
            )
            yield JavaStops(message, reason, Pair(own, writer), location, is_whole=True)

    def _is_equal(self, writer: AvroType, reader: AvroType) -> bool:
        """Return whether Java considers the two schemas equal, apart from docs and aliases, with the current names."""
        visited: set[tuple[int, int]] = set()
        stack = [(writer, reader)]
        while stack:
            ours, theirs = stack.pop()
            if (id(ours), id(theirs)) in visited:
                continue
            visited.add((id(ours), id(theirs)))
            if self._own_parts(ours) != _own_parts(theirs) or len(_inner(ours)) != len(_inner(theirs)):
                return False
            stack.extend(zip(_inner(ours), _inner(theirs), strict=True))
        return True

    def _own_parts(self, writer: AvroType) -> list[object]:
        name = self.name_of(writer) if isinstance(writer, Named) else ""
        return _own_parts(writer, name, self.fields_of(writer) if isinstance(writer, Record) else ())


class _Aliases:
    """The renames that the reader's aliases cause: types by full name, fields by type; later ones win."""

    def __init__(self, reader: AvroType) -> None:
        self.names: dict[str, str] = {}
        self.fields: dict[str, dict[str, str]] = {}
        self._collect(reader)

    @property
    def are_none(self) -> bool:
        """Whether the reader has no aliases."""
        return not self.names and not self.fields

    def _collect(self, reader: AvroType) -> None:
        """Collect in Java's order: a record's names, its fields and all below, then those fields under its aliases."""
        visited: set[int] = set()
        stack: list[tuple[AvroType, bool]] = [(reader, False)]
        while stack:
            type_, is_walked = stack.pop()
            if is_walked:
                assert isinstance(type_, Record)
                if type_.full_name in self.fields:
                    self.fields.update(dict.fromkeys(type_.aliases, self.fields[type_.full_name]))
                continue
            if isinstance(type_, Named):
                self.names.update(dict.fromkeys(type_.aliases, type_.full_name))
            if isinstance(type_, Record):
                if id(type_) in visited:
                    continue
                visited.add(id(type_))
                for field in type_.fields:
                    for alias in field.aliases:
                        self.fields.setdefault(type_.full_name, {})[alias] = field.name
                stack.append((type_, True))
            stack.extend((inner, False) for inner in reversed(_inner(type_)))


def simple_name(full_name: str) -> str:
    """Return a name without its namespace."""
    return full_name.rpartition(".")[2]


def types_of(root: AvroType) -> Iterator[AvroType]:
    """Yield a type and all types below it, each once."""
    visited: set[int] = set()
    stack = [root]
    while stack:
        type_ = stack.pop()
        if id(type_) not in visited:
            visited.add(id(type_))
            yield type_
            stack.extend(reversed(_inner(type_)))


def _inner(type_: AvroType) -> tuple[AvroType, ...]:
    if isinstance(type_, Record):
        return tuple(field.type for field in type_.fields)
    if isinstance(type_, Union):
        return type_.branches
    if isinstance(type_, Array):
        return (type_.items,)
    return (type_.values,) if isinstance(type_, Map) else ()


def _own_parts(type_: AvroType, name: str = "", field_names: tuple[str, ...] = ()) -> list[object]:
    """Return the parts of a type, other than inner types, that decide equality; names are the current ones."""
    parts: list[object] = [type_.kind, type_.logical, repr(dict(type_.props))]
    if isinstance(type_, Named):
        parts.append(name or type_.full_name)
    if isinstance(type_, Record):
        parts.append(field_names or tuple(field.name for field in type_.fields))
        parts += [(item.order, repr(item.default), repr(dict(item.props))) for item in type_.fields]
    elif isinstance(type_, Enum):
        parts.append(type_.symbols)
    elif isinstance(type_, Fixed):
        parts.append(type_.size)
    return parts
