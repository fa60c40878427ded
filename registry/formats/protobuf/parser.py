"""Parsing of a text and its references into a compiled schema and its model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from registry.errors import InvalidSchema, SchemaTooCostly
from registry.formats.base import ResolvedReference
from registry.formats.json_pointer import join
from registry.formats.protobuf import file_descriptors
from registry.formats.protobuf.compiler import (
    MAIN,
    MAX_ALL_BYTES,
    MAX_ALL_STATEMENTS,
    checked,
    compile_files,
    placeholders,
    with_syntax,
)
from registry.formats.protobuf.model import KINDS, Enum, Field, File, Label, Message, Method, Oneof, Schema, Service
from registry.formats.protobuf.options import Options, comments, imports, known_options, pool_of, syntax_of
from registry.formats.protobuf.text.compilable import attach, compilable, read_all
from registry.formats.protobuf.text.descriptor_statements import statements_of
from registry.formats.protobuf.text.name_resolution import documents
from registry.formats.protobuf.text.printer import print_file
from registry.formats.protobuf.text.statement_reader import read_statements
from registry.formats.protobuf.text.statements import FileStatements, UnreadableText
from registry.formats.protobuf.text.stored_text import stored_text

_REPEATED: Final = FieldDescriptorProto.LABEL_REPEATED
_REQUIRED: Final = FieldDescriptorProto.LABEL_REQUIRED


def build_schema(
    protos: tuple[FileDescriptorProto, ...],
    pool: DescriptorPool,
    text: str,
    references: Sequence[ResolvedReference],
    *,
    is_encoded: bool,
    column_shift: int,
) -> Schema:
    """Return the model of a compiled schema; `protos` are as returned by `compile_files`."""
    builder = _Builder(pool)
    files = {proto.name: builder.file(proto) for proto in protos}
    builder.link(files.values())
    main = files[MAIN]
    return Schema(
        text=text,
        is_encoded=is_encoded,
        column_shift=column_shift,
        main=main,
        files=files,
        messages=builder.messages,
        enums=builder.enums,
        protos=protos,
        references=tuple(references),
        pool=pool,
    )


class _Builder:
    def __init__(self, pool: DescriptorPool) -> None:
        self._pool = pool
        self._options = Options(pool)
        self.messages: dict[str, Message] = {}
        self.enums: dict[str, Enum] = {}
        self._extensions: list[tuple[str, Field]] = []
        self._docs: Mapping[tuple[int, ...], str] = {}
        self._source: str | None = None
        self._package = ""
        self._syntax = ""

    def file(self, proto: FileDescriptorProto) -> File:
        self._source = None if proto.name == MAIN else proto.name
        self._docs = comments(proto)
        self._package = proto.package
        self._syntax = syntax_of(proto)
        scope = proto.package
        return File(
            name=proto.name,
            source=self._source,
            package=proto.package,
            syntax=self._syntax,
            imports=imports(proto),
            messages=self._messages(proto.message_type, scope, "", (4,)),
            enums=self._enums(proto.enum_type, scope, "", (5,)),
            extensions=self._declared(proto.extension, scope, "", (7,)),
            services={item.name: self._service(item, (6, i)) for i, item in enumerate(proto.service)},
            options=self._options.mapping(proto.options),
        )

    def link(self, files: Iterable[File]) -> None:
        """Link fields to the messages and enums of their types, and messages to their extensions."""
        for message in self.messages.values():
            for field in (*message.fields, *message.extensions):
                self._link(field)
        for file in files:
            for field in file.extensions:
                self._link(field)
        for extendee, field in self._extensions:
            if extendee in self.messages:
                self.messages[extendee].extended[field.number] = field

    def _link(self, field: Field) -> None:
        if field.type_name:
            field.message = self.messages.get(field.type_name)
            field.enum = self.enums.get(field.type_name)
            if field.is_map:
                field.label = ""  # as in the text; the descriptor calls a map repeated
            if field.kind == "group" and field.message is not None:
                field.message.is_group = True

    def _messages(
        self, protos: Sequence[DescriptorProto], scope: str, pointer: str, path: tuple[int, ...]
    ) -> dict[str, Message]:
        return {
            proto.name: self._message(proto, scope, join(pointer, "messages", proto.name), (*path, i))
            for i, proto in enumerate(protos)
        }

    def _message(self, proto: DescriptorProto, scope: str, pointer: str, path: tuple[int, ...]) -> Message:
        full_name = f"{scope}.{proto.name}" if scope else proto.name
        described = self._pool.FindMessageTypeByName(full_name).fields_by_number
        names = {i: oneof.name for i, oneof in enumerate(proto.oneof_decl)}
        fields = tuple(
            self._field(item, described[item.number], join(pointer, "fields", item.number), (*path, 2, i), names)
            for i, item in enumerate(proto.field)
        )
        message = Message(
            full_name=full_name,
            local_name=self._local(full_name),
            pointer=pointer,
            source=self._source,
            fields=fields,
            by_number={field.number: field for field in fields},
            oneofs=self._oneofs(proto, fields, pointer, path),
            messages=self._messages(proto.nested_type, full_name, pointer, (*path, 3)),
            enums=self._enums(proto.enum_type, full_name, pointer, (*path, 4)),
            extensions=self._declared(proto.extension, full_name, pointer, (*path, 6)),
            reserved=tuple((span.start, span.end - 1) for span in proto.reserved_range),
            reserved_names=frozenset(proto.reserved_name),
            extension_ranges=tuple((span.start, span.end - 1) for span in proto.extension_range),
            options=self._options.mapping(proto.options),
            doc=self._docs.get(path, ""),
            is_map_entry=proto.options.map_entry,
        )
        self.messages[full_name] = message
        return message

    def _oneofs(
        self, proto: DescriptorProto, fields: Sequence[Field], pointer: str, path: tuple[int, ...]
    ) -> dict[str, Oneof]:
        numbers: dict[str, list[int]] = {}
        for field in fields:
            if field.oneof is not None:
                numbers.setdefault(field.oneof, []).append(field.number)
        return {
            oneof.name: Oneof(
                oneof.name,
                join(pointer, "oneofs", oneof.name),
                tuple(numbers[oneof.name]),
                self._options.mapping(oneof.options),
                self._docs.get((*path, 8, i), ""),
            )
            for i, oneof in enumerate(proto.oneof_decl)
            if oneof.name in numbers
        }

    def _declared(
        self, protos: Sequence[FieldDescriptorProto], scope: str, pointer: str, path: tuple[int, ...]
    ) -> tuple[Field, ...]:
        fields = []
        for i, proto in enumerate(protos):
            full_name = f"{scope}.{proto.name}" if scope else proto.name
            described = self._pool.FindExtensionByName(full_name)
            field_pointer = join(pointer, "extensions", proto.name)
            field = self._field(proto, described, field_pointer, (*path, i), {}, full_name)
            self._extensions.append((proto.extendee.removeprefix("."), field))
            fields.append(field)
        return tuple(fields)

    def _field(
        self,
        proto: FieldDescriptorProto,
        described: FieldDescriptor,
        pointer: str,
        path: tuple[int, ...],
        oneofs: Mapping[int, str],
        extension: str | None = None,
    ) -> Field:
        is_member = proto.HasField("oneof_index") and not proto.proto3_optional
        kind = KINDS[described.type]
        is_value = not described.is_repeated and kind not in ("message", "group")
        return Field(
            name=extension or proto.name,
            number=proto.number,
            kind=kind,
            label=self._label(proto, is_member=is_member),
            is_repeated=described.is_repeated,
            is_required=described.is_required,
            has_presence=described.has_presence,
            is_packed=described.is_packed,
            json_name=described.json_name,
            oneof=oneofs[proto.oneof_index] if is_member and oneofs else None,
            type_name=proto.type_name.removeprefix("."),
            default=described.default_value if is_value else None,
            declared_default=proto.default_value if proto.HasField("default_value") else None,
            pointer=pointer,
            source=self._source,
            options=self._options.mapping(proto.options),
            doc=self._docs.get(path, ""),
            is_extension=extension is not None,
        )

    def _label(self, proto: FieldDescriptorProto, *, is_member: bool) -> Label:
        if is_member:
            return ""
        if proto.label == _REPEATED:
            return "repeated"
        if self._syntax == "proto2":
            return "required" if proto.label == _REQUIRED else "optional"
        return "optional" if proto.proto3_optional else ""

    def _enums(
        self, protos: Sequence[EnumDescriptorProto], scope: str, pointer: str, path: tuple[int, ...]
    ) -> dict[str, Enum]:
        return {
            proto.name: self._enum(proto, scope, join(pointer, "enums", proto.name), (*path, i))
            for i, proto in enumerate(protos)
        }

    def _enum(self, proto: EnumDescriptorProto, scope: str, pointer: str, path: tuple[int, ...]) -> Enum:
        full_name = f"{scope}.{proto.name}" if scope else proto.name
        by_number: dict[int, str] = {}
        for value in proto.value:
            by_number.setdefault(value.number, value.name)
        docs = {value.name: self._docs.get((*path, 2, i), "") for i, value in enumerate(proto.value)}
        options = {value.name: self._options.mapping(value.options) for value in proto.value}
        enum = Enum(
            full_name=full_name,
            local_name=self._local(full_name),
            pointer=pointer,
            source=self._source,
            by_number=by_number,
            numbers={value.name: value.number for value in proto.value},
            is_closed=self._pool.FindEnumTypeByName(full_name).is_closed,
            reserved=tuple((span.start, span.end) for span in proto.reserved_range),
            reserved_names=frozenset(proto.reserved_name),
            options=self._options.mapping(proto.options),
            value_options={name: values for name, values in options.items() if values},
            doc=self._docs.get(path, ""),
            value_docs={name: doc for name, doc in docs.items() if doc},
        )
        self.enums[full_name] = enum
        return enum

    def _service(self, proto: ServiceDescriptorProto, path: tuple[int, ...]) -> Service:
        pointer = join("", "services", proto.name)
        methods = {
            method.name: Method(
                method.name,
                join(pointer, "methods", method.name),
                method.input_type.removeprefix("."),
                method.output_type.removeprefix("."),
                method.client_streaming,
                method.server_streaming,
                self._options.mapping(method.options),
                self._docs.get((*path, 2, i), ""),
            )
            for i, method in enumerate(proto.method)
        }
        return Service(proto.name, pointer, methods, self._options.mapping(proto.options), self._docs.get(path, ""))

    def _local(self, full_name: str) -> str:
        return full_name.removeprefix(f"{self._package}.") if self._package else full_name


_MARK: Final = "\ufeff"


def parse_schema(text: str, references: Sequence[ResolvedReference], *, is_new: bool = True) -> Schema:
    """Return the compiled schema; raises InvalidSchema with line and column, InvalidReference for an invalid path.

    A text that isn't new may name types that nothing declares: they become empty messages, listed in `missing_types`.
    """
    if not text.strip():
        raise InvalidSchema("the schema is empty: a .proto text with at least one message is expected")
    texts = _Texts(documents(references))
    is_encoded = file_descriptors.is_encoded(text)
    sent = file_descriptors.decode(text) if is_encoded else None
    if sent is not None:
        text = _text_of(sent)
    texts.count(text, None)
    source, shift = with_syntax(text)
    compiled = _compile(source, shift, texts.ready, is_new=is_new)
    pool = pool_of(compiled.protos)
    schema = build_schema(compiled.protos, pool, text, references, is_encoded=is_encoded, column_shift=shift)
    schema.statements = _statements(schema)
    schema.missing_types = compiled.missing_types
    schema.earlier = sent or (None if compiled.is_adapted else schema.proto)
    schema.main.imports.update(compiled.missing_imports)
    return schema


def _statements(schema: Schema) -> FileStatements:
    """Return the statements of the text, or those of the descriptor's text if only the compiler can read it."""
    options = Options(schema.pool)
    for text in (schema.text.removeprefix(_MARK), print_file(schema.proto, options)):
        try:
            return read_statements(text)
        except UnreadableText:
            continue
    return statements_of(schema.proto, options)


@dataclass(slots=True)
class _Compiled:
    """The compiler's result for a schema, and what was hidden from it."""

    protos: tuple[FileDescriptorProto, ...]
    missing_imports: Mapping[str, str] = dataclass_field(default_factory=dict)
    missing_types: tuple[str, ...] = ()
    is_adapted: bool = False


def _compile(source: str, shift: int, ready: Mapping[str, str], *, is_new: bool) -> _Compiled:
    try:
        return _Compiled(compile_files({**ready, MAIN: source}, shift))
    except InvalidSchema as refusal:
        compiled = _compile_again(source, shift, ready, is_new=is_new)
        if compiled is None:
            raise refusal from None
        return compiled


def _compile_again(source: str, shift: int, ready: Mapping[str, str], *, is_new: bool) -> _Compiled | None:
    """Return descriptors if Confluent's registry accepts what the compiler rejects; None if that rejects it too."""
    files = read_all({**ready, MAIN: source})
    if MAIN not in files:
        return None
    adapted = {name: compilable(text, name, files) if name in files else None for name, text in ready.items()}
    main = compilable(source, MAIN, files)
    missing = [*main.missing_types, *(name for item in adapted.values() if item for name in item.missing_types)]
    if missing and is_new:
        return None
    texts = {name: item.text if item is not None else ready[name] for name, item in adapted.items()}
    texts[MAIN] = main.text
    if missing:
        texts = placeholders(texts, missing)
    try:
        protos = compile_files(texts, shift)
    except InvalidSchema:
        return None
    attach(protos[-1], main.undeclared)
    return _Compiled(protos, main.missing_imports, tuple(dict.fromkeys(missing)), is_adapted=True)


class _Texts:
    """The .proto texts of references, within the limits."""

    def __init__(self, references: Mapping[str, ResolvedReference]) -> None:
        self._bytes = 0
        self._statements = 0
        self.ready: dict[str, str] = {}
        for name, reference in references.items():
            text = reference.text
            if file_descriptors.is_encoded(text):
                text = _text_of(file_descriptors.decode(text))
            self.count(text, name)
            self.ready[name] = with_syntax(text)[0]

    def count(self, text: str, name: str | None) -> None:
        """Check a text against the limits, alone and with all others; raises SchemaTooCostly."""
        self._statements += checked(text, name)
        self._bytes += len(text)
        if self._statements > MAX_ALL_STATEMENTS or self._bytes > MAX_ALL_BYTES:
            raise SchemaTooCostly(
                f"the schema and its references have more than {MAX_ALL_STATEMENTS:,} statements or "
                f"{MAX_ALL_BYTES:,} characters together"
            )


def _text_of(proto: FileDescriptorProto) -> str:
    """Return the text of a file that was submitted as a descriptor."""
    try:
        return stored_text(statements_of(proto, known_options()))
    except (DecodeError, IndexError, KeyError, ValueError):
        # Types, labels, map entries or options that no compiler writes.
        raise InvalidSchema("the descriptor in base64 is damaged: it can't be written as a .proto text") from None
