"""Writes a schema's statements in the layout of Confluent's registry: its stored, normal and bare forms.

The stored form has names and values as submitted, without comments. The normal form resolves and sorts them. The bare
form omits extensions and custom options. Sections have a fixed order: in a message reserved ranges, options, fields,
oneofs, groups, extension ranges, extensions, then messages before enums.

There are differences from Confluent's registry where its text couldn't be read again or would change its meaning: weak
imports and editions are kept; a string keeps escapes that represent bytes; normal numbers aren't rounded to three
digits; the first value of an enum, which is its default, stays first in the normal form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

from registry.errors import InvalidSchema
from registry.formats.protobuf.model import MAX_FIELD_NUMBER
from registry.formats.protobuf.text.name_resolution import Names, Scope, merged, scope_of
from registry.formats.protobuf.text.statements import (
    EnumStatement,
    EnumValue,
    Extend,
    FieldStatement,
    FileStatements,
    Group,
    MessageStatement,
    OneofStatement,
    Option,
    OptionKind,
    Primitive,
    Range,
    ReservedNames,
    Rpc,
    ServiceStatement,
    StringValue,
)

SCALARS: Final = frozenset(
    [
        "bool",
        "bytes",
        "double",
        "float",
        "fixed32",
        "fixed64",
        "int32",
        "int64",
        "sfixed32",
        "sfixed64",
        "sint32",
        "sint64",
        "string",
        "uint32",
        "uint64",
    ]
)
_OWN_OPTIONS: Final = "confluent."
_MAX: Final = 2**31 - 1
_ESCAPES: Final = str.maketrans(
    {
        "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\",
        "'": "\\'", '"': '\\"',
    }
)  # fmt: skip
_WORD: Final = re.compile(r"[A-Za-z0-9_.\-]+")
_NUMBER: Final = re.compile(r"(-?(?:0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE]-?\d+)?))[fF]?")
_MAX_EXPONENT: Final = 40


def stored_text(file: FileStatements) -> str:
    """Return the text that a registration stores."""
    return "".join(_StatementWriter(None).file(file))


def bare_text(file: FileStatements) -> str:
    """Return the text without extensions and custom options, except the server's own."""
    return "".join(_StatementWriter(None, is_bare=True).file(file))


def normal_text(file: FileStatements, names: Names) -> str:
    """Return the text that a registration with `normalize` stores. Raises InvalidSchema for a type not in `names`."""
    return "".join(_StatementWriter(names).file(file))


def value_text(option: Option) -> str:
    """Return the value of an option, or of the last part of its name, in one line."""
    while option.kind == "option":
        option = option.value
    lines = _StatementWriter(None).value(option.kind, option.value).split("\n")
    return " ".join(line.strip() for line in lines)


class _StatementWriter:
    def __init__(self, names: Names | None, *, is_bare: bool = False) -> None:
        self._names = names
        self._is_bare = is_bare
        self._scope: Scope = ()

    # -- the file ------------------------------------------------------------------------------------------------------

    def file(self, file: FileStatements) -> Iterable[str]:
        self._scope = scope_of(file.package)
        if file.edition is not None:
            yield f'edition = "{file.edition}";\n'
        elif file.syntax is not None and (self._names is None or file.syntax == "proto3"):
            yield f'syntax = "{file.syntax}";\n'
        if file.package is not None:
            yield f"package {file.package};\n"
        imports = [line for kind in ("", "public", "weak", "option") for line in self._imports(file, kind)]
        extends = () if self._is_bare else self._grouped(file.extends)
        for section in (
            imports,
            [self._statement(option) for option in self._options(file.options)],
            self._types(file.types),
            [self._extend(extend) for extend in extends],
            [self._service(service) for service in file.services],
        ):
            if section:
                yield "\n"
                yield from section

    def _imports(self, file: FileStatements, kind: str) -> list[str]:
        names = [item.name for item in file.imports if item.kind == kind]
        if self._names is not None:
            names = sorted(set(names))
        return [f'import {kind}{" " if kind else ""}"{name}";\n' for name in names]

    def _types(self, types: Sequence[MessageStatement | EnumStatement]) -> list[str]:
        messages = [item for item in types if isinstance(item, MessageStatement)]
        if self._names is not None:
            messages = [item for item in messages if not item.is_map_entry]
        enums = [item for item in types if isinstance(item, EnumStatement)]
        return [self._message(item) for item in messages] + [self._enum(item) for item in enums]

    def _service(self, service: ServiceStatement) -> str:
        options = [self._statement(option) for option in self._options(service.options)]
        return _block(f"service {service.name}", [options, [self._rpc(rpc) for rpc in service.rpcs]])

    def _rpc(self, rpc: Rpc) -> str:
        request = f"{'stream ' if rpc.is_request_stream else ''}{self._type(rpc.request)}"
        response = f"{'stream ' if rpc.is_response_stream else ''}{self._type(rpc.response)}"
        head = f"rpc {rpc.name} ({request}) returns ({response})"
        options = [_indented(self._statement(option)) for option in self._options(rpc.options)]
        return head + (" {\n" + "".join(options) + "}" if options else "") + ";\n"

    # -- types ---------------------------------------------------------------------------------------------------------

    def _message(self, message: MessageStatement) -> str:
        return _block(f"{_visibility(message)}message {message.name}", self._body(message))

    def _body(self, message: MessageStatement) -> list[list[str]]:
        around, self._scope = self._scope, (*self._scope, message.name)
        extends = () if self._is_bare else self._grouped(message.extends)
        sections = [
            self._reserved(message.reserved),
            [self._statement(option) for option in self._options(message.options)],
            [self._field(field) for field in self._by_number(message.fields)],
            [self._oneof(oneof) for oneof in self._oneofs(message.oneofs)],
            [self._group(group) for group in self._by_number(message.groups)],
            [] if self._is_bare else self._extensions(message.extensions),
            [self._extend(extend) for extend in extends],
            self._types(message.types),
        ]
        self._scope = around
        return sections

    def _enum(self, enum: EnumStatement) -> str:
        around, self._scope = self._scope, (*self._scope, enum.name)
        values = enum.values
        if self._names is not None:
            values = [*values[:1], *sorted(values[1:], key=lambda value: (value.number, value.name))]
        lines = [
            *self._reserved(enum.reserved),
            *(self._statement(option) for option in self._options(enum.options)),
            *(self._value(value) for value in values),
        ]
        self._scope = around
        return _block(f"{_visibility(enum)}enum {enum.name}", [lines])

    def _value(self, value: EnumValue) -> str:
        return f"{value.name} = {value.number}{self._bracketed(value.options)};\n"

    def _oneofs(self, oneofs: list[OneofStatement]) -> list[OneofStatement]:
        if self._names is None:
            return oneofs
        filled = [oneof for oneof in oneofs if oneof.fields or oneof.groups]
        return sorted(filled, key=lambda oneof: min(part.number for part in oneof.fields or oneof.groups))

    def _oneof(self, oneof: OneofStatement) -> str:
        return _block(
            f"oneof {oneof.name}",
            [
                [self._statement(option) for option in self._options(oneof.options)],
                [self._field(field) for field in self._by_number(oneof.fields)],
                [self._group(group) for group in self._by_number(oneof.groups)],
            ],
        )

    def _group(self, group: Group) -> str:
        label = f"{group.label} " if group.label else ""
        head = f"{label}group {group.name} = {group.number}{self._bracketed(group.options)}"
        return _block(head, self._body(group.message))

    def _grouped(self, extends: list[Extend]) -> list[Extend]:
        if self._names is None:
            return extends
        by_name: dict[str, Extend] = {}
        for extend in extends:
            name = self._type(extend.name)
            same = by_name.setdefault(name, Extend(name))
            same.fields += extend.fields
            same.groups += extend.groups
        return list(by_name.values())

    def _extend(self, extend: Extend) -> str:
        fields = [self._field(field) for field in self._by_number(extend.fields)]
        groups = [self._group(group) for group in self._by_number(extend.groups)]
        return _block(f"extend {extend.name}", [fields, groups])

    def _by_number(self, parts: list[Any]) -> list[Any]:
        return parts if self._names is None else sorted(parts, key=lambda part: part.number)

    # -- numbers and names ---------------------------------------------------------------------------------------------

    def _reserved(self, statements: list[ReservedNames]) -> list[str]:
        if self._names is not None:
            values = sorted((value for item in statements for value in item.values), key=_place_of)
            statements = [ReservedNames([value]) for value in values]
        return [f"reserved {', '.join(self._number(value) for value in item.values)};\n" for item in statements]

    def _extensions(self, statements: list[ReservedNames]) -> list[str]:
        if self._names is not None:
            single = [ReservedNames([value], item.options) for item in statements for value in item.values]
            statements = sorted(single, key=lambda item: _place_of(item.values[0])[0])
        return [
            f"extensions {', '.join(self._number(value) for value in item.values)}{self._bracketed(item.options)};\n"
            for item in statements
        ]

    def _number(self, value: Any) -> str:
        if isinstance(value, StringValue):
            return f'"{value.text}"'
        if not isinstance(value, Range):
            return str(value)
        if self._names is not None and value.first == value.last:
            return str(value.first)
        return f"{value.first} to {value.last if value.last < MAX_FIELD_NUMBER else 'max'}"

    def _type(self, name: str) -> str:
        """Return a type's name; in the normal form, its full name with a leading dot."""
        if self._names is None:
            return name
        full_name = self._names.type(name, self._scope)
        if full_name is None:
            raise InvalidSchema(f"Could not resolve type: {name[:200]}")
        return f".{full_name}"

    def _field(self, field: FieldStatement) -> str:
        label, kind = field.label, field.type
        if self._names is not None:
            label, kind = self._normal_type(label, kind, self._names)
        options = list(field.options)
        if field.default is not None:
            options.append(_default(field.default, kind))
        if field.json_name is not None:
            options.append(Option("json_name", "string", field.json_name.value))
        head = f"{label} " if label else ""
        return f"{head}{kind} {field.name} = {field.number}{self._bracketed(options)};\n"

    def _normal_type(self, label: str, kind: str, names: Names) -> tuple[str, str]:
        if not kind.startswith("map<"):
            if kind in SCALARS:
                return label, kind
            kind = self._type(kind)
            entry = names.types[kind[1:]]
            if not isinstance(entry, MessageStatement) or not entry.is_map_entry:
                return label, kind
            parts = {part.name: part.type for part in entry.fields}
            kind = f"map<{parts.get('key')}, {parts.get('value')}>"
        key, value = kind[4:-1].split(", ", 1)
        full_name = names.type(value, self._scope)
        return "", f"map<{key}, {f'.{full_name}' if full_name else value}>"

    # -- options -------------------------------------------------------------------------------------------------------

    def _options(self, options: list[Option]) -> list[Option]:
        if self._is_bare:
            options = [item for item in options if not item.is_custom or item.name.startswith(_OWN_OPTIONS)]
        return options if self._names is None else merged(options, self._names, self._scope)

    def _statement(self, option: Option) -> str:
        return f"option {self._option(option)};\n"

    def _bracketed(self, options: list[Option]) -> str:
        shown = [self._option(option) for option in self._options(options)]
        if len(shown) < 2:
            return f" [{shown[0]}]" if shown else ""
        return f" [\n{_listed(shown)}]"

    def _option(self, option: Option) -> str:
        name = f"({option.name})" if option.is_custom else option.name
        if option.kind == "option":
            return f"{name}.{self._option(option.value)}"
        return f"{name} = {self.value(option.kind, option.value)}"

    def value(self, kind: OptionKind, value: Any) -> str:
        if kind == "map":
            return self._map(value)
        if kind == "list":
            shown = [self._inside(item) for item in value]
            return f"[{shown[0]}]" if len(shown) == 1 else f"[\n{_listed(shown)}]"
        if kind == "string":
            return _quoted(value)
        return self._number_text(str(value)) if kind == "number" else str(value)

    def _map(self, value: dict[str, Any]) -> str:
        items = list(value.items())
        if self._names is not None:
            items = self._normal_items(items, self._names)
        return "{\n" + _listed([f"{name}: {self._inside(item)}" for name, item in items]) + "}"

    def _normal_items(self, items: list[tuple[str, Any]], names: Names) -> list[tuple[str, Any]]:
        values: dict[str, Any] = {}
        for name, item in items:
            if isinstance(item, list) and not item:
                continue
            full_name = names.extension(name[1:-1], self._scope) if name.startswith("[") else None
            values.setdefault(f"[{full_name}]" if full_name else name, item)
        return sorted(values.items())

    def _inside(self, value: Any) -> str:
        """Return a value inside an aggregate value."""
        if isinstance(value, dict):
            return self._map(value)
        if isinstance(value, StringValue):
            return _quoted(value)
        if isinstance(value, Primitive):
            return self._number_text(value.text) if value.kind == "number" else value.text
        if isinstance(value, Option):
            return self._option(value)
        if not isinstance(value, list):
            return _quoted(StringValue(str(value), ""))
        if self._names is not None and len(value) == 1:
            return self._inside(value[0])
        return "[\n" + _listed([self._inside(item) for item in value]) + "]"

    def _number_text(self, text: str) -> str:
        match = None if self._names is None else _NUMBER.fullmatch(text)
        return text if match is None else _normal_number(text, match.group(1))


def _visibility(part: MessageStatement | EnumStatement) -> str:
    return f"{part.visibility} " if part.visibility else ""


def _place_of(value: Any) -> tuple[int, str]:
    """Return the sort key of reserved names and numbers; names come last."""
    if isinstance(value, str | StringValue):
        return _MAX, value if isinstance(value, str) else value.text
    return (value.first if isinstance(value, Range) else value), str(value)


def _default(option: Option, type_name: str) -> Option:
    """Return the default in the form for the field's kind: bytes as a bare word if that can be read back."""
    simple = type_name.rpartition(".")[2]
    if simple == "string":
        return Option("default", "string", option.value)
    if isinstance(option.value, StringValue):
        text = option.value.text
        is_word = simple == "bytes" and option.value.is_exact and _WORD.fullmatch(text) is not None
        return Option("default", "enum", text if is_word else option.value.source)
    return Option(
        "default", "number" if simple in SCALARS and simple not in ("bool", "bytes") else "enum", option.value
    )


def _normal_number(text: str, number: str) -> str:
    """Return a number in its shortest form; `number` is the text without the type suffix."""
    digits = number.removeprefix("-")
    sign = "-" if digits != number else ""
    if digits[:2] in ("0x", "0X"):
        return f"{sign}{int(digits, 16)}"
    if digits.isdigit():
        is_octal = digits.startswith("0") and not set(digits) - set("01234567")
        return f"{sign}{int(digits, 8 if is_octal else 10)}"
    value = Decimal(number)
    if value.adjusted() > _MAX_EXPONENT or value != round(value, 3):
        return text  # Confluent's registry rounds it
    shown = f"{value:f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _quoted(value: Any) -> str:
    if isinstance(value, StringValue):
        return f'"{value.text.translate(_ESCAPES)}"' if value.is_exact else value.source
    return f'"{str(value).translate(_ESCAPES)}"'


def _block(head: str, sections: Sequence[Sequence[str]]) -> str:
    """Return sections separated by empty lines; without any, both braces are on one line."""
    filled = ["".join(_indented(part) for part in section) for section in sections if section]
    return f"{head} {{" + ("\n" if filled else "") + "\n".join(filled) + "}\n"


def _listed(items: Sequence[str]) -> str:
    last = len(items) - 1
    return "".join(_indented(f"{item}," if index < last else item) for index, item in enumerate(items))


def _indented(text: str) -> str:
    lines = text.split("\n")
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    return "".join(f"  {line}\n" for line in lines)
