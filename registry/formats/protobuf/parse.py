"""From a text and its references to a compiled schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from registry.errors import InvalidSchema, SchemaTooCostly
from registry.formats.base import ResolvedReference
from registry.formats.protobuf import encoded
from registry.formats.protobuf.build import build_schema
from registry.formats.protobuf.compilable import attach, compilable, read_all
from registry.formats.protobuf.compiler import MAIN, compile_files
from registry.formats.protobuf.cursor import UnreadableText
from registry.formats.protobuf.described import statements_of
from registry.formats.protobuf.descriptors import pool_of
from registry.formats.protobuf.known_options import known_options
from registry.formats.protobuf.missing_types import placeholders
from registry.formats.protobuf.model import Schema
from registry.formats.protobuf.options import Options
from registry.formats.protobuf.printer import print_file
from registry.formats.protobuf.references import documents
from registry.formats.protobuf.statement_reader import read_statements
from registry.formats.protobuf.statements import FileStatements
from registry.formats.protobuf.stored_text import stored_text
from registry.formats.protobuf.texts import MAX_ALL_BYTES, MAX_ALL_STATEMENTS, checked, with_syntax

_MARK: Final = "\ufeff"


def parse_schema(text: str, references: Sequence[ResolvedReference], *, is_new: bool = True) -> Schema:
    """The compiled schema; raises InvalidSchema with line and column, InvalidReference for a name that is no path.

    What isn't new may name types that nothing declares: they are taken for empty messages, and `missing_types` says so.
    """
    if not text.strip():
        raise InvalidSchema("the schema is empty: a .proto text with at least one message is expected")
    texts = _Texts(documents(references))
    is_encoded = encoded.is_encoded(text)
    sent = encoded.decode(text) if is_encoded else None
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
    """The statements of the text, or where only the compiler reads it, those of the descriptor's text."""
    options = Options(schema.pool)
    for text in (schema.text.removeprefix(_MARK), print_file(schema.proto, options)):
        try:
            return read_statements(text)
        except UnreadableText:
            continue
    return statements_of(schema.proto, options)


@dataclass(slots=True)
class _Compiled:
    """What the compiler made of a schema, and what it didn't get to see."""

    protos: tuple[FileDescriptorProto, ...]
    missing_imports: Mapping[str, str] = field(default_factory=dict)
    missing_types: tuple[str, ...] = ()
    is_adapted: bool = False


def _compile(source: str, shift: int, ready: Mapping[str, str], *, is_new: bool) -> _Compiled:
    try:
        return _Compiled(compile_files({**ready, MAIN: source}, shift))
    except InvalidSchema as refusal:
        found = _compile_again(source, shift, ready, is_new=is_new)
        if found is None:
            raise refusal from None
        return found


def _compile_again(source: str, shift: int, ready: Mapping[str, str], *, is_new: bool) -> _Compiled | None:
    """The descriptors of what the compiler refuses and the established server takes; None where that refuses it too."""
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
    """The texts of what is referred to, as .proto texts, held to the limits."""

    def __init__(self, found: Mapping[str, ResolvedReference]) -> None:
        self._bytes = 0
        self._statements = 0
        self.ready: dict[str, str] = {}
        for name, reference in found.items():
            text = reference.text
            if encoded.is_encoded(text):
                text = _text_of(encoded.decode(text))
            self.count(text, name)
            self.ready[name] = with_syntax(text)[0]

    def count(self, text: str, name: str | None) -> None:
        """Holds a text to the limits, alone and with all others; raises SchemaTooCostly."""
        self._statements += checked(text, name)
        self._bytes += len(text)
        if self._statements > MAX_ALL_STATEMENTS or self._bytes > MAX_ALL_BYTES:
            raise SchemaTooCostly(
                f"the schema and its references have more than {MAX_ALL_STATEMENTS:,} statements or "
                f"{MAX_ALL_BYTES:,} characters together"
            )


def _text_of(proto: FileDescriptorProto) -> str:
    """The text of a file that came as a descriptor."""
    try:
        return stored_text(statements_of(proto, known_options()))
    except (DecodeError, IndexError, KeyError, ValueError):
        # Types, labels, entries of maps or options that no compiler writes.
        raise InvalidSchema("the descriptor in base64 is damaged: it can't be written as a .proto text") from None
