"""From a text and its references to a compiled schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from registry.errors import InvalidSchema, SchemaTooCostly
from registry.formats.base import ResolvedReference
from registry.formats.protobuf import encoded
from registry.formats.protobuf.build import build_schema
from registry.formats.protobuf.compiler import COMPILERS_OWN, MAIN, compile_files
from registry.formats.protobuf.descriptors import pool_of
from registry.formats.protobuf.model import Schema
from registry.formats.protobuf.options import Options
from registry.formats.protobuf.printer import import_lines, print_file
from registry.formats.protobuf.references import documents
from registry.formats.protobuf.texts import MAX_ALL_BYTES, MAX_ALL_STATEMENTS, checked, with_syntax


def parse_schema(text: str, references: Sequence[ResolvedReference]) -> Schema:
    """The compiled schema; raises InvalidSchema with line and column, InvalidReference for a name that is no path."""
    if not text.strip():
        raise InvalidSchema("the schema is empty: a .proto text with at least one message is expected")
    found = documents(references)
    texts = _Texts(found)
    is_encoded = encoded.is_encoded(text)
    if is_encoded:
        proto = encoded.decode(text)
        for name in proto.dependency:
            texts.add(name)
        text = texts.printed(proto)
    else:
        for name in found:
            texts.add(name)
    texts.count(text, None)
    source, shift = with_syntax(text)
    protos = compile_files({**texts.ready, MAIN: source}, shift)
    return build_schema(protos, pool_of(protos), text, references, is_encoded=is_encoded, column_shift=shift)


class _Texts:
    """The texts of what is referred to, each made once; encoded ones are printed after what they import."""

    def __init__(self, found: Mapping[str, ResolvedReference]) -> None:
        self._found = found
        self._open: set[str] = set()
        self._bytes = 0
        self._statements = 0
        self.ready: dict[str, str] = {}

    def add(self, name: str) -> None:
        """Makes the text of a reference ready, and those that an encoded one imports."""
        stack: list[tuple[str, FileDescriptorProto | None]] = [(name, None)]
        while stack:
            current, proto = stack.pop()
            if proto is not None:
                self._put(current, self.printed(proto))
            elif current in self._found and current not in self.ready and current not in self._open:
                text = self._found[current].text
                if not encoded.is_encoded(text):
                    self._put(current, text)
                    continue
                self._open.add(current)
                decoded = encoded.decode(text)
                stack.append((current, decoded))
                stack.extend((dependency, None) for dependency in decoded.dependency)

    def _put(self, name: str, text: str) -> None:
        self.count(text, name)
        self.ready[name] = with_syntax(text)[0]
        for imported in self._found[name].references:
            if imported.name not in self.ready and not encoded.is_encoded(self._found_text(imported.name)):
                self.add(imported.name)

    def _found_text(self, name: str) -> str:
        return self._found[name].text if name in self._found else ""

    def count(self, text: str, name: str | None) -> None:
        """Holds a text to the limits, alone and with all others; raises SchemaTooCostly."""
        self._statements += checked(text, name)
        self._bytes += len(text)
        if self._statements > MAX_ALL_STATEMENTS or self._bytes > MAX_ALL_BYTES:
            raise SchemaTooCostly(
                f"the schema and its references have more than {MAX_ALL_STATEMENTS:,} statements or "
                f"{MAX_ALL_BYTES:,} characters together"
            )

    def printed(self, proto: FileDescriptorProto) -> str:
        """The text of an encoded file, its custom options read with what it imports."""
        proto.name = MAIN
        for name in proto.dependency:
            self.add(name)
        try:
            return print_file(proto, Options(pool_of(self._imported(proto))))
        except (DecodeError, IndexError, KeyError, ValueError):
            # Types, labels, entries of maps or options that no compiler writes.
            raise InvalidSchema("the descriptor in base64 is damaged: it can't be written as a .proto text") from None

    def _imported(self, proto: FileDescriptorProto) -> tuple[FileDescriptorProto, ...]:
        """What an encoded file imports, compiled, and the file itself where it declares options."""
        lines = [line for line in import_lines(proto) if not line.startswith("import option")]
        if not lines:
            return ()
        needed = {name: text for name, text in self.ready.items() if name not in COMPILERS_OWN}
        protos = compile_files({**needed, MAIN: 'syntax = "proto3"; ' + " ".join(lines)})[:-1]
        return (*protos, proto)
