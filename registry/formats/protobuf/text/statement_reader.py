"""Reads the statements of a .proto text without resolving names, in the grammar of Square's Wire.

Confluent's registry reads schemas with Wire, and stores the statements that Wire prints. Editions and groups with more
than fields are also supported; anything else that only the compiler can read raises UnreadableText.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from registry.formats.protobuf.model import MAX_FIELD_NUMBER
from registry.formats.protobuf.text.statements import (
    Cursor,
    EnumStatement,
    EnumValue,
    Extend,
    FieldStatement,
    FileStatements,
    Group,
    Import,
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
    UnreadableText,
)

_LABELS: Final = frozenset({"required", "optional", "repeated"})
_VISIBILITIES: Final = frozenset({"export", "local"})
_SIMPLE: Final = frozenset({"boolean", "enum", "number"})
_MAX_DEPTH: Final = 100


def read_statements(text: str) -> FileStatements:
    """Return the statements of a text. Raises UnreadableText."""
    return _StatementReader(text).file()


class _StatementReader:
    def __init__(self, text: str) -> None:
        self.at = Cursor(text)
        self._syntax: str | None = None
        self._is_edition = False
        self._depth = 0

    def file(self) -> FileStatements:
        file = FileStatements()
        is_first = True
        while not self.at.at_end():
            if not self.at.take(";"):
                self._file_statement(file, is_first=is_first)
            is_first = False
        names = [part.name for part in (*file.types, *file.services)]
        if len(names) != len(set(names)):
            raise UnreadableText("a name is declared twice")
        return file

    def _file_statement(self, file: FileStatements, *, is_first: bool) -> None:
        start, word = self.at.skip(), self.at.word()
        if word == "package":
            file.package = self.at.word()
            self.at.need(";")
        elif word == "import":
            file.imports.append(self._import(start))
        elif word in ("syntax", "edition") and is_first:
            self.at.need("=")
            setattr(file, word, self.at.string().text)
            self._syntax, self._is_edition = file.syntax, file.edition is not None
            self.at.need(";")
        elif word == "option":
            file.options.append(self._option_statement(start))
        elif word in _VISIBILITIES:
            file.types.append(self._visible(word))
        elif word in ("message", "enum"):
            file.types.append(self._message(start) if word == "message" else self._enum())
        elif word == "service":
            file.services.append(self._service())
        elif word == "extend":
            file.extends.append(self._extend())
        else:
            raise UnreadableText(f"unexpected {word!r} before {self.at.place}")

    def _import(self, start: int) -> Import:
        kind = "" if self.at.is_string() else self.at.word()
        if kind not in ("", "public", "weak", "option"):
            raise UnreadableText(f"unknown kind of import before {self.at.place}")
        name = self.at.string().text
        self.at.need(";")
        return Import(name, kind, start, self.at.place)

    # -- types ---------------------------------------------------------------------------------------------------------

    def _visible(self, visibility: str) -> MessageStatement | EnumStatement:
        start, word = self.at.skip(), self.at.word()
        if word not in ("message", "enum"):
            raise UnreadableText(f"unexpected {word!r} before {self.at.place}")
        statement = self._message(start) if word == "message" else self._enum()
        statement.visibility = visibility
        return statement

    def _message(self, start: int) -> MessageStatement:
        return self._body(MessageStatement(self.at.word(), start=start))

    def _body(self, message: MessageStatement) -> MessageStatement:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UnreadableText("messages are nested too deeply")
        self.at.need("{")
        while not self.at.take("}"):
            if not self.at.take(";"):
                self._message_statement(message)
        self._depth -= 1
        message.end = self.at.place
        return message

    def _message_statement(self, message: MessageStatement) -> None:
        start, word = self.at.skip(), self.at.word()
        if word == "option":
            message.options.append(self._option_statement(start))
        elif word == "reserved":
            message.reserved.append(self._numbers())
        elif word == "extensions":
            message.extensions.append(self._numbers())
        elif word == "message":
            message.types.append(self._message(start))
        elif word == "enum":
            message.types.append(self._enum())
        elif word == "extend":
            message.extends.append(self._extend())
        elif word == "oneof":
            message.oneofs.append(self._oneof())
        elif word in _VISIBILITIES and self._is_edition and self._is_type():
            message.types.append(self._visible(word))
        else:
            self._put(message, self._field(start, word))

    def _is_type(self) -> bool:
        """Return whether a message or an enum is next, not a field with such a type name."""
        start = self.at.skip()
        is_type = self.at.word() in ("message", "enum") and self.at.word() != "" and self.at.peek() == "{"
        self.at.place = start
        return is_type

    @staticmethod
    def _put(holder: MessageStatement | OneofStatement | Extend, statement: FieldStatement | Group) -> None:
        if isinstance(statement, Group):
            holder.groups.append(statement)
        else:
            holder.fields.append(statement)

    def _field(self, start: int, word: str) -> FieldStatement | Group:
        label, type_start = "", start
        if word in _LABELS and self.at.peek() != "=":
            label, type_start = word, self.at.skip()
            word = self.at.word()
        name = self.at.type_of(word)
        if label and name.startswith("map<"):
            raise UnreadableText("a map has no label")
        if name == "group":
            return self._group(start, label)
        if not label and not name.startswith("map<") and self._syntax != "proto3" and not self._is_edition:
            raise UnreadableText(f"a field without a label before {self.at.place}")
        return self._field_of(start, label, name, type_start)

    def _field_of(self, start: int, label: str, type_name: str, type_start: int) -> FieldStatement:
        field = FieldStatement(label, type_name, "", 0, start=start, type_start=type_start, type_end=self.at.place)
        field.name = self.at.word()
        self.at.need("=")
        field.number = self.at.integer()
        begin = self.at.skip()
        field.in_brackets = self._options()
        field.options_span = (begin, self.at.place)
        self.at.need(";")
        for option in field.in_brackets:
            if option.name in ("default", "json_name"):
                setattr(field, option.name, option)
            else:
                field.options.append(option)
        return field

    def _group(self, start: int, label: str) -> Group:
        group = Group(label, 0, MessageStatement(self.at.word(), start=start), start=start)
        self.at.need("=")
        group.number = self.at.integer()
        begin = self.at.skip()
        group.options = self._options()
        group.options_span = (begin, self.at.place)
        self._body(group.message)
        return group

    def _oneof(self) -> OneofStatement:
        oneof = OneofStatement(self.at.word())
        self.at.need("{")
        while not self.at.take("}"):
            start, word = self.at.skip(), self.at.type()
            if word == "group":
                oneof.groups.append(self._group(start, ""))
            elif word == "option":
                oneof.options.append(self._option_statement(start))
            else:
                oneof.fields.append(self._field_of(start, "", word, start))
        return oneof

    def _extend(self) -> Extend:
        start = self.at.skip()
        extend = Extend(self.at.word(), name_start=start)
        self.at.need("{")
        while not self.at.take("}"):
            if self.at.take(";"):
                continue
            start = self.at.skip()
            self._put(extend, self._field(start, self.at.word()))
        return extend

    def _enum(self) -> EnumStatement:
        enum = EnumStatement(self.at.word())
        self.at.need("{")
        while not self.at.take("}"):
            if self.at.take(";"):
                continue
            start, word = self.at.skip(), self.at.word()
            if word == "option":
                enum.options.append(self._option_statement(start))
            elif word == "reserved":
                enum.reserved.append(self._numbers())
            else:
                self.at.need("=")
                value = EnumValue(word, self.at.integer())
                begin = self.at.skip()
                value.options = self._options()
                value.options_span = (begin, self.at.place)
                self.at.need(";")
                enum.values.append(value)
        return enum

    def _numbers(self) -> ReservedNames:
        numbers = ReservedNames([])
        while True:
            start = self.at.skip()
            if self.at.is_string():
                numbers.values.append(self.at.string())
            elif self._is_edition and not self.at.word()[0].isdigit() and self.at.text[start] != "-":
                numbers.values.append(self.at.text[start : self.at.place])
            else:
                self.at.place = start
                first = self.at.integer()
                if self.at.peek() in ",;[":
                    numbers.values.append(first)
                elif self.at.word() == "to":
                    numbers.values.append(Range(first, self._last()))
                else:
                    raise UnreadableText(f"expected 'to' before {self.at.place}")
            if self.at.peek() == "[":
                numbers.options = self._options()
            if self.at.take(";"):
                return numbers
            self.at.need(",")

    def _last(self) -> int:
        start = self.at.skip()
        if self.at.word() == "max":
            return MAX_FIELD_NUMBER
        self.at.place = start
        return self.at.integer()

    # -- services ------------------------------------------------------------------------------------------------------

    def _service(self) -> ServiceStatement:
        service = ServiceStatement(self.at.word())
        self.at.need("{")
        while not self.at.take("}"):
            if self.at.take(";"):
                continue
            start, word = self.at.skip(), self.at.word()
            if word == "option":
                service.options.append(self._option_statement(start))
            elif word == "rpc":
                service.rpcs.append(self._rpc())
            else:
                raise UnreadableText(f"unexpected {word!r} before {self.at.place}")
        return service

    def _rpc(self) -> Rpc:
        name = self.at.word()
        request, is_request_stream, request_start = self._rpc_type()
        if self.at.word() != "returns":
            raise UnreadableText(f"expected 'returns' before {self.at.place}")
        response, is_response_stream, response_start = self._rpc_type()
        rpc = Rpc(name, request, response, is_request_stream, is_response_stream, [], request_start, response_start)
        if not self.at.take("{"):
            self.at.need(";")
            return rpc
        while not self.at.take("}"):
            if not self.at.take(";"):
                start = self.at.skip()
                if self.at.word() != "option":
                    raise UnreadableText(f"expected 'option' before {self.at.place}")
                rpc.options.append(self._option_statement(start))
        return rpc

    def _rpc_type(self) -> tuple[str, bool, int]:
        self.at.need("(")
        start, word = self.at.skip(), self.at.word()
        is_stream = word == "stream" and self.at.peek() != ")"
        if is_stream:
            start, word = self.at.skip(), self.at.word()
        name = self.at.type_of(word)
        self.at.need(")")
        return name, is_stream, start

    # -- options -------------------------------------------------------------------------------------------------------

    def _option_statement(self, start: int) -> Option:
        option = self._option("=")
        self.at.need(";")
        option.start, option.end = start, self.at.place
        return option

    def _options(self) -> list[Option]:
        """Read the options in brackets; none if no bracket is next."""
        options: list[Option] = []
        if not self.at.take("["):
            return options
        while True:
            options.append(self._option("="))
            if self.at.take("]"):
                return options
            self.at.need(",")

    def _option(self, separator: str) -> Option:
        start = self.at.skip()
        name, is_custom, name_start = self._option_name()
        inside: list[tuple[str, bool]] = []
        while self.at.take("."):
            inside.append(self._option_part())
        if not (separator == ":" and self.at.peek() == "{"):
            self.at.need(separator)
        kind, value = self._value()
        for part, is_part_custom in reversed(inside):
            kind, value = "option", Option(part, kind, value, is_part_custom)
        return Option(name, kind, value, is_custom, start, self.at.place, name_start)

    def _option_name(self) -> tuple[str, bool, int]:
        if self.at.take("("):
            start = self.at.skip()
            name = self.at.word()
            self.at.need(")")
            return name, True, start
        if self.at.take("["):
            start = self.at.skip()
            name = self.at.word()
            if self.at.take("/"):
                name += f"/{self.at.word()}"
            self.at.need("]")
            return f"[{name}]", False, start
        start = self.at.skip()
        return self.at.word(), False, start

    def _option_part(self) -> tuple[str, bool]:
        if not self.at.take("("):
            return self.at.part(), False
        name = self.at.word()
        self.at.need(")")
        return name, True

    def _value(self) -> tuple[OptionKind, Any]:
        sign = self.at.peek()
        if sign in "{[":
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                raise UnreadableText("values are nested too deeply")
            value: tuple[OptionKind, Any] = ("map", self._map()) if sign == "{" else ("list", self._list())
            self._depth -= 1
            return value
        if self.at.is_string():
            return "string", self.at.string()
        word = self.at.word()
        if sign.isdigit() or sign == "-":
            return "number", word
        return ("boolean" if word in ("true", "false") else "enum"), word

    def _map(self) -> dict[str, Any]:
        self.at.need("{")
        values: dict[str, Any] = {}
        while not self.at.take("}"):
            option = self._option(":")
            if option.kind == "option":
                nested = values.setdefault(option.name, {})
                if not isinstance(nested, dict):
                    raise UnreadableText("a value is set and set inside of")
                nested[option.value.name] = option.value.value
            else:
                _add(values, option.name, _inner(option.kind, option.value))
            if not self.at.take(","):
                self.at.take(";")
        return values

    def _list(self) -> list[Any]:
        self.at.need("[")
        values: list[Any] = []
        while not self.at.take("]"):
            values.append(_inner(*self._value()))
            if not self.at.take(",") and self.at.peek() != "]":
                raise UnreadableText(f"expected ',' at {self.at.place}")
        return values


def _inner(kind: OptionKind, value: Any) -> Any:
    return Primitive(kind, value) if kind in _SIMPLE else value


def _add(map_values: dict[str, Any], name: str, value: Any) -> None:
    """Add a value; values under one name form a list."""
    if name not in map_values:
        map_values[name] = value
        return
    values = map_values[name] if isinstance(map_values[name], list) else [map_values[name]]
    map_values[name] = [*values, *(value if isinstance(value, list) else [value])]


def plain(value: Any) -> Any:
    """Return a value as words and containers, which are equal for equal values."""
    if isinstance(value, StringValue):
        return ("string", value.text)
    if isinstance(value, Primitive):
        return (value.kind, value.text)
    if isinstance(value, Mapping):
        return tuple((key, plain(inner)) for key, inner in value.items())
    return tuple(plain(inner) for inner in value) if isinstance(value, list) else value
