"""The texts of an Avro schema: Java's form, the normalized form, and single definitions.

The canonical text keeps everything that a person wrote (doc, defaults, aliases, order, properties) and drops
whitespace, comments and redundant namespaces. It equals `Schema.toString()` of Java's Avro 1.12, which Confluent's
registry compares. Types that references define are written by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

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
    Record,
    RecordField,
    Union,
)

# A type with one of these simple names would be read as Avro's own, so it is written with its namespace.
_AVRO_NAMES: Final = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed"}
_SHORT_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPES: Final = {ord(c): s for c, s in _SHORT_ESCAPES.items()} | {
    code: f"\\u{code:04X}" for code in range(32) if chr(code) not in _SHORT_ESCAPES
}


def canonical_text(schema: AvroSchema) -> str:
    """Return the text that is equal for schemas that differ only in whitespace, comments and redundant namespaces."""
    return "".join(_CanonicalWriter(schema.external).type(schema.root, ""))


def edited_text(schema: AvroSchema, replaced: Mapping[RecordField, RecordField | None]) -> str:
    """Return the canonical text with some fields replaced or (None) left out; types stay defined at their first use."""
    return "".join(_EditedWriter(schema.external, replaced).type(schema.root, ""))


def document_text(schema: AvroSchema, document: Document) -> str:
    """Return the canonical text of a referenced document: its own definitions in full, the rest by name."""
    return "".join(_CanonicalWriter(frozenset(schema.named) - document.own_names).type(document.root, ""))


def normalized_text(schema: AvroSchema) -> str:
    """Return the text that `normalize=true` registers: full names, fixed order of attributes, sorted properties."""
    return "".join(_NormalizedWriter(schema.external).type(schema.root, ""))


def definition(type_: AvroType) -> str:
    """Return the canonical text of one type with everything that it uses, including types from references."""
    return "".join(_CanonicalWriter(frozenset()).type(type_, ""))


def type_source(type_: AvroType, namespace: str, defined: frozenset[str]) -> str:
    """Return the text of a type for a namespace of another schema, which already defines some names."""
    return "".join(_CanonicalWriter(defined).type(type_, namespace))


def field_source(field: RecordField, namespace: str, defined: frozenset[str]) -> str:
    """Return the text of a field for a record of another schema."""
    return "".join(_CanonicalWriter(defined).field(field, namespace))


def quoted(text: str) -> str:
    """Return a JSON string in Jackson's form: only quotes, backslashes and control characters are escaped."""
    return f'"{text.translate(_ESCAPES)}"'


def json_text(value: Any, *, is_sorted: bool = False) -> str:
    """Return a JSON value without whitespace, with numbers in Java's form."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, list):
        return f"[{','.join(json_text(item, is_sorted=is_sorted) for item in value)}]"
    items: Iterable[tuple[str, Any]] = sorted(value.items()) if is_sorted else value.items()
    return "{" + ",".join(f"{quoted(key)}:{json_text(item, is_sorted=is_sorted)}" for key, item in items) + "}"


def java_double(number: float) -> str:
    """Return a finite double in the form of Java's Double.toString: 1.0, 1.0E10, 1.0E-5."""
    magnitude = abs(number)
    if magnitude == 0 or 1e-3 <= magnitude < 1e7:
        text = repr(number)
        return text if "e" not in text else format(number, "f")
    return _scientific(number)


def _scientific(number: float) -> str:
    """Return the shortest mantissa, with a decimal point, and the decimal exponent of a nonzero double."""
    sign = "-" if number < 0 else ""
    text = repr(abs(number))
    digits, _, exponent_text = text.partition("e")
    whole, _, fraction = digits.partition(".")
    exponent = int(exponent_text or 0) + len(whole) - 1
    significant = whole + fraction
    stripped = significant.lstrip("0")
    exponent -= len(significant) - len(stripped)
    stripped = stripped.rstrip("0")
    return f"{sign}{stripped[0]}.{stripped[1:] or '0'}E{exponent}"


class _SchemaWriter:
    """A writer of types: a named type is in full at its first use, and by name after that."""

    def __init__(self, defined: frozenset[str]) -> None:
        self._known = set(defined)

    def type(self, type_: AvroType, namespace: str) -> list[str]:
        """Return the parts of the text of a type in a namespace."""
        if isinstance(type_, Named):
            if type_.full_name in self._known:
                return [self.name(type_, namespace)]
            self._known.add(type_.full_name)
            return self.named(type_, namespace)
        if isinstance(type_, Union):
            parts = ["["]
            for position, branch in enumerate(type_.branches):
                if position:
                    parts.append(",")
                parts.extend(self.type(branch, namespace))
            parts.append("]")
            return parts
        if isinstance(type_, Array):
            inner = ['{"type":"array","items":', *self.type(type_.items, namespace)]
            return [*inner, self.properties(type_.props), "}"]
        if isinstance(type_, Map):
            inner = ['{"type":"map","values":', *self.type(type_.values, namespace)]
            return [*inner, self.properties(type_.props), "}"]
        properties = self.properties(type_.props)
        return [f'{{"type":"{type_.kind}"{properties}}}' if properties else f'"{type_.kind}"']

    def name(self, named: Named, namespace: str) -> str:
        """Return the name of an already defined type, relative to a namespace."""
        raise NotImplementedError

    def named(self, named: Named, namespace: str) -> list[str]:
        """Return a named type in full."""
        raise NotImplementedError

    def properties(self, props: Mapping[str, Any]) -> str:
        """Return the properties that aren't Avro's own, each with a leading comma."""
        raise NotImplementedError


class _CanonicalWriter(_SchemaWriter):
    """The form of Java's Schema.toString()."""

    def name(self, named: Named, namespace: str) -> str:
        short = named.namespace == namespace and named.namespace != "" and named.simple not in _AVRO_NAMES
        return f'"{named.simple if short else named.full_name}"'

    def named(self, named: Named, namespace: str) -> list[str]:
        parts = [f'{{"type":"{self.kind(named)}","name":"{named.simple}"']
        if named.namespace != namespace:
            parts.append(f',"namespace":"{named.namespace}"')
        doc = self.doc(named)
        if doc is not None:
            parts.append(f',"doc":{quoted(doc)}')
        if isinstance(named, Record):
            parts.append(',"fields":[')
            for position, field in enumerate(self.fields(named)):
                if position:
                    parts.append(",")
                parts.extend(self.field(field, named.namespace))
            parts.append("]")
        elif isinstance(named, Enum):
            parts.append(',"symbols":[' + ",".join(f'"{symbol}"' for symbol in named.symbols) + "]")
            if named.default is not None:
                parts.append(f',"default":"{named.default}"')
        elif isinstance(named, Fixed):
            parts.append(f',"size":{named.size}')
        parts.append(self.properties(named.props))
        if named.aliases:
            aliases = (self._alias(alias, named.namespace) for alias in self.aliases(named.aliases))
            parts.append(f',"aliases":[{",".join(aliases)}]')
        parts.append("}")
        return parts

    def fields(self, record: Record) -> Sequence[RecordField]:
        """Return the fields that are written of a record."""
        return record.fields

    def field(self, field: RecordField, namespace: str) -> list[str]:
        """Return the parts of the text of a record's field."""
        return [f'{{"name":"{field.name}","type":', *self.type(field.type, namespace), self._field_attributes(field)]

    def _field_attributes(self, field: RecordField) -> str:
        parts = []
        if field.doc is not None:
            parts.append(f',"doc":{quoted(field.doc)}')
        if field.has_default:
            parts.append(f',"default":{self.default(field)}')
        if field.order != "ascending":
            parts.append(f',"order":"{field.order}"')
        if field.aliases:
            parts.append(',"aliases":[' + ",".join(f'"{alias}"' for alias in self.aliases(field.aliases)) + "]")
        parts.append(self.properties(field.props))
        parts.append("}")
        return "".join(parts)

    def kind(self, named: Named) -> str:
        """Return the keyword of the type; `error` for a record that is an error."""
        return "error" if isinstance(named, Record) and named.is_error else named.kind

    def doc(self, named: Named) -> str | None:
        """Return the doc of a named type; None if none is written."""
        return named.doc

    def aliases(self, aliases: tuple[str, ...]) -> Iterable[str]:
        """Return the aliases in the order in which they are written."""
        return aliases

    def default(self, field: RecordField) -> str:
        """Return the text of a field's default."""
        return json_text(field.default)

    @staticmethod
    def _alias(alias: str, namespace: str) -> str:
        """Keep the leading dot of an alias without a namespace, so that a type's namespace doesn't apply to it."""
        space, _, simple = alias.rpartition(".")
        if space == namespace and simple not in _AVRO_NAMES:
            return f'"{simple}"'
        return f'"{alias}"' if space else f'".{alias}"'

    def properties(self, props: Mapping[str, Any]) -> str:
        return "".join(f",{quoted(key)}:{json_text(value)}" for key, value in props.items()) if props else ""


class _EditedWriter(_CanonicalWriter):
    """The canonical form with some fields replaced, or (None) left out."""

    def __init__(self, defined: frozenset[str], replaced: Mapping[RecordField, RecordField | None]) -> None:
        super().__init__(defined)
        self._replaced = replaced

    def fields(self, record: Record) -> Sequence[RecordField]:
        fields = (self._replaced.get(field, field) for field in record.fields)
        return [field for field in fields if field is not None]


class _NormalizedWriter(_CanonicalWriter):
    """The canonical form with irrelevant differences removed.

    Properties and aliases are sorted; an empty doc of a named type is dropped; an error is written as a record; integer
    defaults of floats get a decimal point; a decimal's scale of 0, which is the default, is dropped.
    """

    def kind(self, named: Named) -> str:
        return named.kind

    def doc(self, named: Named) -> str | None:
        return named.doc or None

    def aliases(self, aliases: tuple[str, ...]) -> Iterable[str]:
        return sorted(aliases)

    def default(self, field: RecordField) -> str:
        value = field.default
        if field.type.kind in ("float", "double") and isinstance(value, int):
            value = float(value)
        return json_text(value, is_sorted=True)

    def properties(self, props: Mapping[str, Any]) -> str:
        if not props:
            return ""
        keys = sorted(key for key in props if not _is_redundant_scale(key, props))
        return "".join(f",{quoted(key)}:{json_text(props[key], is_sorted=True)}" for key in keys)


def _is_redundant_scale(key: str, props: Mapping[str, Any]) -> bool:
    return key == "scale" and props[key] == 0 and props.get("logicalType") == "decimal"
