"""Strict parsing of the JSON of an Avro 1.12 schema into its model; errors have line and column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from registry.errors import InvalidSchema
from registry.formats.avro.canonical import definition
from registry.formats.avro.defaults import float_default, why_invalid
from registry.formats.avro.json_reader import (
    aliases_of,
    check_depth,
    check_name,
    doc_of,
    json_kind,
    logical_type,
    properties,
    qualified,
    read_json,
)
from registry.formats.avro.model import (
    PRIMITIVES,
    Array,
    AvroSchema,
    AvroType,
    Document,
    Enum,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    RecordField,
    Union,
)
from registry.formats.base import ResolvedReference
from registry.formats.json_pointer import MAX_DEPTH, SchemaProblem, invalid

MAX_REFERENCES: Final = 1_000
MAX_FIXED_SIZE: Final = 2**31 - 1

_SCHEMA_RESERVED: Final = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
)
_ENUM_RESERVED: Final = _SCHEMA_RESERVED | {"default"}
_FIELD_RESERVED: Final = frozenset({"default", "doc", "name", "order", "type", "aliases"})
_ORDERS: Final = frozenset({"ascending", "descending", "ignore"})
_SHARED: Final[Mapping[str, Primitive]] = {kind: Primitive(kind, "", None) for kind in PRIMITIVES}


def parse_schema(
    text: str, references: Sequence[ResolvedReference] = (), *, validate_defaults: bool = True
) -> AvroSchema:
    """Return the model of a schema text; raises InvalidSchema.

    `validate_defaults=False` accepts defaults that don't match their type, for schemas that another registry accepted.
    """
    named: dict[str, Named] = {}
    documents = [_read_reference(reference, named, validate_defaults) for reference in _in_order(references)]
    external = frozenset(named)
    value = read_json(text)
    try:
        root = Parser(named, None, validate_defaults).parse_document(value)
    except SchemaProblem as problem:
        raise invalid(problem, text) from None
    return AvroSchema(root, named, external, tuple(documents))


def _in_order(references: Sequence[ResolvedReference]) -> list[ResolvedReference]:
    """Return each referenced text once, after its own references; without recursion."""
    ordered: list[ResolvedReference] = []
    visited: set[tuple[str, int, str]] = set()
    stack = [(reference, False) for reference in reversed(references)]
    while stack:
        reference, is_expanded = stack.pop()
        key = (reference.subject, reference.version, reference.text)
        if is_expanded:
            ordered.append(reference)
        elif key not in visited:
            visited.add(key)
            if len(visited) > MAX_REFERENCES:
                raise InvalidSchema(f"the schema refers to more than {MAX_REFERENCES:,} others, directly or not")
            stack.append((reference, True))
            stack.extend((inner, False) for inner in reversed(reference.references))
    return ordered


def _read_reference(reference: ResolvedReference, named: dict[str, Named], validate_defaults: bool) -> Document:
    source_label = f'the reference "{reference.name}" (subject {reference.subject}, version {reference.version})'
    parser = Parser(named, reference.name, validate_defaults)
    try:
        return Document(parser.parse_document(read_json(reference.text)), parser.own_names, reference)
    except SchemaProblem as problem:
        raise InvalidSchema(f"in {source_label}: {invalid(problem, reference.text).message}") from None
    except InvalidSchema as error:
        raise InvalidSchema(f"in {source_label}: {error.message}") from None


class Parser:
    """A reader of one document; `named` collects the types of all documents, including earlier ones."""

    def __init__(self, named: dict[str, Named], source: str | None, validate_defaults: bool) -> None:
        self._named = named
        self.own_names: set[str] = set()
        self._unfinished: set[str] = set()
        self._source = source
        self._validate_defaults = validate_defaults
        self._defaults: list[tuple[Record, RecordField]] = []
        self._depth = 0

    def parse_document(self, value: Any) -> AvroType:
        """Return the root type of a JSON document; raises SchemaProblem."""
        root = self._type(value, "", "")
        if self._validate_defaults:
            for record, field in self._defaults:
                self._check_default(record, field)
        return root

    def _type(self, value: Any, namespace: str, pointer: str) -> AvroType:
        if isinstance(value, str):
            return _SHARED[value] if value in _SHARED else self._by_name(value, namespace, pointer)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SchemaProblem(f"the schema is nested too deeply: {MAX_DEPTH} levels are allowed", pointer)
        if isinstance(value, dict):
            result = self._from_object(value, namespace, pointer)
        elif isinstance(value, list):
            result = self._union(value, namespace, pointer)
        else:
            raise SchemaProblem(f"a type is a name, an object or an array of types, not {json_kind(value)}", pointer)
        self._depth -= 1
        return result

    def _by_name(self, name: str, namespace: str, pointer: str) -> Named:
        full_name = f"{namespace}.{name}" if namespace and "." not in name else name
        finished = (item for item in (full_name, name) if item not in self._unfinished and item in self._named)
        type_ = self._named.get(next(finished, full_name))
        if type_ is not None:
            return type_
        raise SchemaProblem(
            f'the type "{full_name}" is unknown: define it before this position, or add a reference to the schema '
            "that defines it",
            pointer,
        )

    def _from_object(self, value: dict[str, Any], namespace: str, pointer: str) -> AvroType:
        kind = value.get("type")
        if not isinstance(kind, str):
            if kind is None:
                raise SchemaProblem('the object has no "type": give it a type name', pointer)
            raise SchemaProblem(
                f'the "type" of a type is a name, not {json_kind(kind)}: use the inner type directly', pointer + "/type"
            )
        if kind in PRIMITIVES:
            return self._primitive(kind, value, pointer)
        if kind in ("record", "error"):
            return self._record(value, namespace, pointer)
        if kind == "enum":
            return self._enum(value, namespace, pointer)
        if kind == "fixed":
            return self._fixed(value, namespace, pointer)
        if kind in ("array", "map"):
            return self._container(kind, value, namespace, pointer)
        return self._by_name(kind, namespace, pointer + "/type")

    def _primitive(self, kind: str, value: dict[str, Any], pointer: str) -> AvroType:
        if len(value) == 1:
            return _SHARED[kind]
        type_ = Primitive(kind, pointer, self._source)
        self._properties(type_, value, _SCHEMA_RESERVED, pointer)
        return type_

    def _properties(self, type_: AvroType, value: dict[str, Any], reserved: frozenset[str], pointer: str) -> None:
        props = properties(value, reserved, pointer)
        if props:
            type_.props = props
            type_.logical = logical_type(type_, props)

    def _container(self, kind: str, value: dict[str, Any], namespace: str, pointer: str) -> AvroType:
        key = "items" if kind == "array" else "values"
        if key not in value:
            raise SchemaProblem(f'the {kind} has no "{key}": add it', pointer)
        inner = self._type(value[key], namespace, f"{pointer}/{key}")
        type_: Array | Map
        if kind == "array":
            type_ = Array(pointer, self._source)
            type_.items = inner
        else:
            type_ = Map(pointer, self._source)
            type_.values = inner
        self._properties(type_, value, _SCHEMA_RESERVED, pointer)
        return type_

    def _union(self, value: list[Any], namespace: str, pointer: str) -> Union:
        branches: list[AvroType] = []
        names: set[str] = set()
        for position, item in enumerate(value):
            branch_pointer = f"{pointer}/{position}"
            branch = self._type(item, namespace, branch_pointer)
            if branch.kind == "union":
                raise SchemaProblem(
                    "a union can't contain a union: list its branches in the outer union", branch_pointer
                )
            name = branch.full_name if isinstance(branch, Named) else branch.kind
            if name in names:
                raise SchemaProblem(
                    f'the union has "{name}" twice: remove one, or give the types different names', branch_pointer
                )
            names.add(name)
            branches.append(branch)
        return Union(tuple(branches), pointer, self._source)

    def _record(self, value: dict[str, Any], namespace: str, pointer: str) -> Record:
        record = Record(self._full_name(value, namespace, pointer), pointer, self._source)
        record.is_error = value["type"] == "error"
        fields = value.get("fields")
        if not isinstance(fields, list):
            raise SchemaProblem(f'the record {record.full_name} has no array "fields"', pointer)
        earlier = self._define(record, pointer)
        self._named_attributes(record, value, _SCHEMA_RESERVED, pointer)
        self._unfinished.add(record.full_name)
        parsed = []
        for position, item in enumerate(fields):
            field = self._field(record, item, position, f"{pointer}/fields/{position}")
            if field.name in record.by_name:
                raise SchemaProblem(
                    f'the record {record.full_name} has the field "{field.name}" twice: rename one', field.pointer
                )
            record.by_name[field.name] = field
            parsed.append(field)
        record.fields = tuple(parsed)
        self._unfinished.discard(record.full_name)
        self._check_redefinition(record, earlier, pointer)
        return record

    def _field(self, record: Record, value: Any, position: int, pointer: str) -> RecordField:
        if not isinstance(value, dict):
            raise SchemaProblem(f"a field is an object, not {json_kind(value)}", pointer)
        name = value.get("name")
        if not isinstance(name, str):
            raise SchemaProblem(f'the field has no "name" (record {record.full_name})', pointer)
        check_name(name, "field name", pointer + "/name")
        if "type" not in value:
            raise SchemaProblem(f'the field "{name}" has no "type"', pointer)
        type_ = self._type(value["type"], record.namespace, pointer + "/type")
        field = RecordField(name, type_, position, pointer)
        if len(value) > 2:
            self._field_attributes(record, field, value)
        return field

    def _field_attributes(self, record: Record, field: RecordField, value: dict[str, Any]) -> None:
        field.doc = doc_of(value, field.pointer)
        if "default" in value:
            check_depth(value["default"], field.pointer + "/default")
            field.default = float_default(value["default"], field.type)
            self._defaults.append((record, field))
        if "order" in value:
            order = value["order"]
            if not isinstance(order, str) or order.lower() not in _ORDERS:
                raise SchemaProblem(
                    'the "order" of a field is "ascending", "descending" or "ignore"', field.pointer + "/order"
                )
            field.order = order.lower()
        if "aliases" in value:
            field.aliases = aliases_of(value, field.pointer)
            for alias in field.aliases:
                check_name(alias, "alias of a field", field.pointer + "/aliases")
        props = properties(value, _FIELD_RESERVED, field.pointer)
        if props:
            field.props = props

    def _enum(self, value: dict[str, Any], namespace: str, pointer: str) -> Enum:
        enum = Enum(self._full_name(value, namespace, pointer), pointer, self._source)
        symbols = value.get("symbols")
        if not isinstance(symbols, list):
            raise SchemaProblem(f'the enum {enum.full_name} has no array "symbols"', pointer)
        unique_symbols: set[str] = set()
        for position, symbol in enumerate(symbols):
            symbol_pointer = f"{pointer}/symbols/{position}"
            if not isinstance(symbol, str):
                raise SchemaProblem(f"a symbol of an enum is a string, not {json_kind(symbol)}", symbol_pointer)
            check_name(symbol, "symbol", symbol_pointer)
            if symbol in unique_symbols:
                raise SchemaProblem(f'the enum {enum.full_name} has the symbol "{symbol}" twice', symbol_pointer)
            unique_symbols.add(symbol)
        enum.symbols, enum.symbol_set = tuple(symbols), frozenset(unique_symbols)
        default = value.get("default")
        if default is not None and default not in symbols:
            raise SchemaProblem(
                f"the default of the enum {enum.full_name} is not one of its symbols", pointer + "/default"
            )
        enum.default = default
        earlier = self._define(enum, pointer)
        self._named_attributes(enum, value, _ENUM_RESERVED, pointer)
        self._check_redefinition(enum, earlier, pointer)
        return enum

    def _fixed(self, value: dict[str, Any], namespace: str, pointer: str) -> Fixed:
        fixed = Fixed(self._full_name(value, namespace, pointer), pointer, self._source)
        size = value.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= MAX_FIXED_SIZE:
            raise SchemaProblem(f'the fixed {fixed.full_name} needs a "size" in bytes, a whole number from 0', pointer)
        fixed.size = size
        earlier = self._define(fixed, pointer)
        self._named_attributes(fixed, value, _SCHEMA_RESERVED, pointer)
        self._check_redefinition(fixed, earlier, pointer)
        return fixed

    def _named_attributes(self, named: Named, value: dict[str, Any], reserved: frozenset[str], pointer: str) -> None:
        named.doc = doc_of(value, pointer)
        if "aliases" in value:
            aliases_pointer = pointer + "/aliases"
            named.aliases = tuple(
                qualified(alias, named.namespace, aliases_pointer) for alias in aliases_of(value, pointer)
            )
            named.alias_set = frozenset(named.aliases)
        self._properties(named, value, reserved, pointer)

    def _full_name(self, value: dict[str, Any], namespace: str, pointer: str) -> str:
        name = value.get("name")
        if not isinstance(name, str):
            raise SchemaProblem(f'the {value["type"]} has no "name"', pointer)
        own = value.get("namespace")
        if own is not None and not isinstance(own, str):
            raise SchemaProblem(f"a namespace is a string, not {json_kind(own)}", pointer + "/namespace")
        full_name = qualified(name, namespace if own is None else own, pointer + "/name")
        if full_name in PRIMITIVES:
            raise SchemaProblem(f'"{full_name}" is a built-in Avro type: choose another name', pointer + "/name")
        return full_name

    def _define(self, named: Named, pointer: str) -> Named | None:
        """Register the type; return the type of that name from an earlier document, if there is one."""
        earlier = self._named.get(named.full_name)
        if named.full_name in self.own_names:
            raise SchemaProblem(
                f'"{named.full_name}" is defined twice: use its name here, or choose another name', pointer
            )
        self.own_names.add(named.full_name)
        self._named[named.full_name] = named
        return earlier

    def _check_redefinition(self, named: Named, earlier: Named | None, pointer: str) -> None:
        """Raise SchemaProblem if a reference defines the type differently."""
        if earlier is None:
            return
        if definition(named) != definition(earlier):
            raise SchemaProblem(
                f'"{named.full_name}" is defined here and, differently, by the reference "{earlier.source}": use its name '
                "here, or choose another name",
                pointer,
            )

    def _check_default(self, record: Record, field: RecordField) -> None:
        reason = why_invalid(field.type, field.default)
        if reason is not None:
            raise SchemaProblem(
                f'the default of the field "{field.name}" of {record.full_name} doesn\'t match its type: {reason}',
                field.pointer + "/default",
            )
