"""The model of an Avro schema: the parser's output, which all other modules of this package read."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, Final

from registry.formats.base import ResolvedReference

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

NO_PROPERTIES: Final[Mapping[str, Any]] = {}


class Missing:
    """The type of MISSING, which means no default, as opposed to a default of null."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()


class LogicalType:
    """A valid logical type: its name and, for decimals, its precision and scale."""

    __slots__ = ("name", "precision", "scale")

    def __init__(self, name: str, precision: int = 0, scale: int = 0) -> None:
        self.name = name
        self.precision = precision
        self.scale = scale

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogicalType) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name


class AvroType:
    """The base of all types: `kind` is Avro's name for it; `pointer` is the place of its definition in the text
    `source`.

    `source` is None for the schema's own text, otherwise the name of the reference that defines the type.
    """

    __slots__ = ("kind", "logical", "pointer", "props", "source")

    def __init__(self, kind: str, pointer: str, source: str | None) -> None:
        self.kind = kind
        self.pointer = pointer
        self.source = source
        self.props: Mapping[str, Any] = NO_PROPERTIES
        self.logical: LogicalType | None = None


class Primitive(AvroType):
    """null, boolean, int, long, float, double, bytes or string."""

    __slots__ = ()


class Named(AvroType):
    """A type with a full name; `simple` is the part after the last dot, `aliases` are full names."""

    __slots__ = ("alias_set", "aliases", "doc", "full_name", "namespace", "simple")

    def __init__(self, kind: str, full_name: str, pointer: str, source: str | None) -> None:
        super().__init__(kind, pointer, source)
        self.full_name = full_name
        self.namespace, _, self.simple = full_name.rpartition(".")
        self.aliases: tuple[str, ...] = ()
        self.alias_set: frozenset[str] = frozenset()
        self.doc: str | None = None


class RecordField:
    """A field of a record; `default` is MISSING or a JSON value."""

    __slots__ = ("aliases", "default", "doc", "name", "order", "pointer", "position", "props", "type")

    def __init__(self, name: str, type_: AvroType, position: int, pointer: str) -> None:
        self.name = name
        self.type = type_
        self.position = position
        self.pointer = pointer
        self.default: Any = MISSING
        self.doc: str | None = None
        self.order = "ascending"
        self.aliases: tuple[str, ...] = ()
        self.props: Mapping[str, Any] = NO_PROPERTIES

    @property
    def has_default(self) -> bool:
        """Whether the field has a default, null included."""
        return self.default is not MISSING


class Record(Named):
    """A record or, if `is_error`, an error; `by_name` maps names to fields."""

    __slots__ = ("by_name", "fields", "is_error")

    def __init__(self, full_name: str, pointer: str, source: str | None) -> None:
        super().__init__("record", full_name, pointer, source)
        self.is_error = False
        self.fields: tuple[RecordField, ...] = ()
        self.by_name: dict[str, RecordField] = {}


class Enum(Named):
    """An enum; `default` is the symbol that replaces unknown ones."""

    __slots__ = ("default", "symbol_set", "symbols")

    def __init__(self, full_name: str, pointer: str, source: str | None) -> None:
        super().__init__("enum", full_name, pointer, source)
        self.symbols: tuple[str, ...] = ()
        self.symbol_set: frozenset[str] = frozenset()
        self.default: str | None = None


class Fixed(Named):
    """A fixed type; `size` is in bytes."""

    __slots__ = ("size",)

    def __init__(self, full_name: str, pointer: str, source: str | None) -> None:
        super().__init__("fixed", full_name, pointer, source)
        self.size = 0


class Array(AvroType):
    """An array of `items`."""

    __slots__ = ("items",)
    items: AvroType

    def __init__(self, pointer: str, source: str | None) -> None:
        super().__init__("array", pointer, source)


class Map(AvroType):
    """A map from strings to `values`."""

    __slots__ = ("values",)
    values: AvroType

    def __init__(self, pointer: str, source: str | None) -> None:
        super().__init__("map", pointer, source)


class Union(AvroType):
    """A union of `branches`."""

    __slots__ = ("branches",)

    def __init__(self, branches: tuple[AvroType, ...], pointer: str, source: str | None) -> None:
        super().__init__("union", pointer, source)
        self.branches = branches


class Document:
    """A referenced text: its root type, and the full names that it defines itself."""

    __slots__ = ("own_names", "reference", "root")

    def __init__(self, root: AvroType, own_names: Set[str], reference: ResolvedReference) -> None:
        self.root = root
        self.own_names = own_names
        self.reference = reference


class AvroSchema:
    """A parsed Avro schema: its root type, all its named types, and the names that references define.

    `documents` are its direct and indirect references, in the order in which they must be read.
    """

    __slots__ = ("documents", "external", "named", "root")

    def __init__(
        self, root: AvroType, named: dict[str, Named], external: frozenset[str], documents: tuple[Document, ...]
    ) -> None:
        self.root = root
        self.named = named
        self.external = external
        self.documents = documents


def type_label(type_: AvroType) -> str:
    """Return a type as people write it: `string`, `long (timestamp-millis)`, `com.example.Order`, `array<int>`,
    `union<…>`.

    The label is never longer than about 200 characters.
    """
    label = _label(type_, 3)
    return label if len(label) <= 200 else label[:199] + "…"


def _label(type_: AvroType, depth: int) -> str:
    if isinstance(type_, Named):
        label = type_.full_name
    elif depth == 0:
        label = "…"
    elif isinstance(type_, Array):
        label = f"array<{_label(type_.items, depth - 1)}>"
    elif isinstance(type_, Map):
        label = f"map<{_label(type_.values, depth - 1)}>"
    elif isinstance(type_, Union):
        shown = [_label(branch, depth - 1) for branch in type_.branches[:12]]
        if len(type_.branches) > 12:
            shown.append("…")
        label = f"union<{', '.join(shown)}>"
    else:
        label = type_.kind
    return f"{label} ({type_.logical})" if type_.logical is not None else label


@dataclass(frozen=True, slots=True)
class Spot:
    """A type at its place of use, with the namespace that applies there to names without dots."""

    type: AvroType
    namespace: str


def root_of(schema: AvroSchema, source: str | None) -> AvroType | None:
    """Return the root type of the schema's own text, or of the reference with that name."""
    if source is None:
        return schema.root
    return next((item.root for item in schema.documents if item.reference.name == source), None)


def type_at(root: AvroType | None, pointer: str | None) -> Spot | None:
    """Return the type at a pointer; None if the pointer has another target."""
    if root is None or pointer is None:
        return None
    type_, namespace = root, ""
    tokens = pointer.split("/")[1:]
    while tokens:
        inner = _step(type_, tokens)
        if inner is None:
            return None
        if isinstance(type_, Named):
            namespace = type_.namespace
        type_ = inner
    return Spot(type_, namespace)


def field_at(root: AvroType | None, pointer: str | None) -> tuple[Record, RecordField] | None:
    """Return the field at a pointer, with its record; None if the pointer has another target."""
    holder, _, index = (pointer or "").rpartition("/")
    spot = type_at(root, holder.removesuffix("/fields"))
    if spot is None or not holder.endswith("/fields") or not isinstance(spot.type, Record):
        return None
    return (spot.type, spot.type.fields[int(index)]) if index.isdigit() and int(index) < len(spot.type.fields) else None


def _step(type_: AvroType, tokens: list[str]) -> AvroType | None:
    """Return the type one step further, and remove the step's tokens."""
    part = tokens.pop(0)
    if isinstance(type_, Record) and part == "fields" and len(tokens) >= 2 and tokens[1] == "type":
        index = tokens[0]
        del tokens[:2]
        return type_.fields[int(index)].type if index.isdigit() and int(index) < len(type_.fields) else None
    if isinstance(type_, Array) and part == "items":
        return type_.items
    if isinstance(type_, Map) and part == "values":
        return type_.values
    if isinstance(type_, Union) and part.isdigit() and int(part) < len(type_.branches):
        return type_.branches[int(part)]
    return None
