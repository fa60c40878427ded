"""A text adapted for Google's compiler, which accepts less than Confluent's registry.

The registry reads statements and looks for the types that they name in all references and in its bundled files, whether
they are imported or not. It doesn't look for options. In its texts of descriptors, the compiler rejects map entries and
defaults of bytes without quotes. So a text that doesn't compile is tried again with these changes: undeclared options
and imports of missing files are left out, missing imports are added, names that an inner scope hides are written in
full, and maps and defaults are written as the compiler requires. Line numbers don't change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from registry.formats.protobuf.compiler import KNOWN_NAMES, MAIN, known_text
from registry.formats.protobuf.text.name_resolution import Names, Scope, is_import_path, scope_of
from registry.formats.protobuf.text.statement_reader import read_statements
from registry.formats.protobuf.text.statements import (
    EnumStatement,
    Extend,
    FieldStatement,
    FileStatements,
    Group,
    MessageStatement,
    Option,
    ServiceStatement,
    UnreadableText,
)
from registry.formats.protobuf.text.stored_text import SCALARS, value_text

#: steps to a part of a descriptor: the repeated field, and the name or number of the part
Path = tuple[tuple[str, str | int], ...]


@dataclass(slots=True)
class Compilable:
    """A text that the compiler may accept, and what was left out of it.

    `missing_types` are undeclared names, as written.
    """

    text: str
    undeclared: list[tuple[Path, Option]] = field(default_factory=list)
    missing_imports: dict[str, str] = field(default_factory=dict)
    missing_types: list[str] = field(default_factory=list)


@lru_cache(maxsize=1)
def known_names() -> Names:
    """Return the declarations of the files that every schema can import."""
    names = Names()
    for name in sorted(KNOWN_NAMES):
        names.add(_known_statements(name), name)
    return names


@lru_cache(maxsize=128)
def _known_statements(name: str) -> FileStatements:
    return read_statements(known_text(name))


def names_of(main: FileStatements, name: str, others: Mapping[str, FileStatements]) -> Names:
    """Return the names available to a file: its own hide those of references, which hide those of known files."""
    names = Names()
    for other, statements in others.items():
        names.add(statements, other)
    names.add(main, name)
    return known_names().merged(names)


def read_all(texts: Mapping[str, str]) -> dict[str, FileStatements]:
    """Return the statements of those texts that can be read."""
    statements = {}
    for name, text in texts.items():
        try:
            statements[name] = read_statements(text)
        except UnreadableText:
            continue
    return statements


def compilable(text: str, name: str, files: Mapping[str, FileStatements]) -> Compilable:
    """Return one file's text for the compiler; `files` maps import paths to the statements of all files."""
    others = {other: statements for other, statements in files.items() if other not in (name, MAIN)}
    return _Adapter(text, files[name], name, others).adapt()


def attach(proto: FileDescriptorProto, undeclared: Iterable[tuple[Path, Option]]) -> None:
    """Write undeclared options into the descriptor, as the compiler does with options that it hasn't resolved."""
    for path, option in undeclared:
        part = _part_at(proto, path)
        if part is None:
            continue
        written = part.options.uninterpreted_option.add()
        for item in option.parts:
            is_custom = item.startswith("(")
            written.name.add(name_part=item[1:-1] if is_custom else item, is_extension=is_custom)
        written.aggregate_value = value_text(option)


def _part_at(proto: FileDescriptorProto, path: Path) -> Any:
    part: Any = proto
    for name, key in path:
        by = "number" if name == "field" else "name"
        items = getattr(part, name)
        if name == "extension_range":
            part = items[int(key)] if int(key) < len(items) else None
        else:
            part = next((item for item in items if getattr(item, by) == key), None)
        if part is None:
            return None
    return part


class _Adapter:
    def __init__(self, text: str, file: FileStatements, name: str, others: Mapping[str, FileStatements]) -> None:
        self._text = text
        self._file = file
        self._name = name
        self._others = others
        self._names = names_of(file, name, others)
        self._edits: list[tuple[int, int, str]] = []
        self._wanted: dict[str, None] = {}
        self._result = Compilable("")

    def adapt(self) -> Compilable:
        file, scope = self._file, scope_of(self._file.package)
        imported: set[str] = set()
        for item in file.imports:
            is_missing = item.name not in self._others and item.name not in KNOWN_NAMES and is_import_path(item.name)
            if is_missing:
                self._result.missing_imports[item.name] = item.kind
            if is_missing or item.name in imported:
                self._blank(item.start, item.end)
            imported.add(item.name)
        self._statement_options(file.options, scope, ())
        self._types(file.types, scope, (), "message_type")
        for extend in file.extends:
            self._extend(extend, scope, ())
        for service in file.services:
            self._service(service, scope)
        visible = self._visible()
        lines = [f'import "{name}";' for name in self._wanted if name not in visible]
        self._result.text = self._edited() + ("\n" + " ".join(lines) + "\n" if lines else "")
        return self._result

    def _visible(self) -> set[str]:
        """Return the files whose declarations the compiler finds: imported ones, and their public imports."""
        names = {self._name}
        todo = [item.name for item in self._file.imports]
        while todo:
            name = todo.pop()
            file = self._others.get(name) or (_known_statements(name) if name in KNOWN_NAMES else None)
            if name not in names and file is not None:
                names.add(name)
                todo += [item.name for item in file.imports if item.kind == "public"]
        return names

    # -- edits ---------------------------------------------------------------------------------------------------------

    def _edit(self, start: int, end: int, text: str) -> None:
        self._edits.append((start, end, text))

    def _blank(self, start: int, end: int) -> None:
        """Replace a part with blanks, but keep its line breaks."""
        self._edit(start, end, "".join(sign if sign == "\n" else " " for sign in self._text[start:end]))

    def _edited(self) -> str:
        parts, offset = [], 0
        for start, end, text in sorted(self._edits):
            if start >= offset:
                parts += [self._text[offset:start], text]
                offset = end
        return "".join([*parts, self._text[offset:]])

    # -- declarations --------------------------------------------------------------------------------------------------

    def _types(self, types: Sequence[MessageStatement | EnumStatement], scope: Scope, path: Path, name: str) -> None:
        for item in types:
            if isinstance(item, EnumStatement):
                self._enum(item, (*scope, item.name), (*path, ("enum_type", item.name)))
            elif item.is_map_entry:
                self._blank(item.start, item.end)
            else:
                self._message(item, (*scope, item.name), (*path, (name, item.name)))

    def _message(self, message: MessageStatement, scope: Scope, path: Path) -> None:
        self._statement_options(message.options, scope, path)
        for item in message.all_fields():
            self._field(item, scope, (*path, ("field", item.number)))
        for group in message.all_groups():
            self._group(group, scope, path)
        for oneof in message.oneofs:
            self._statement_options(oneof.options, scope, (*path, ("oneof_decl", oneof.name)))
        for extend in message.extends:
            self._extend(extend, scope, path)
        self._types(message.types, scope, path, "nested_type")

    def _group(self, group: Group, scope: Scope, path: Path) -> None:
        here = (*path, ("field", group.number))
        self._bracket_options(group.options, group.options_span, scope, here)
        kind = "nested_type" if path else "message_type"
        self._message(group.message, (*scope, group.name), (*path, (kind, group.name)))

    def _extend(self, extend: Extend, scope: Scope, path: Path) -> None:
        self._named(extend.name, extend.name_start, extend.name_start + len(extend.name), scope)
        for item in extend.fields:
            self._field(item, scope, (*path, ("extension", item.name)))
        for group in extend.groups if not path else ():
            self._group(group, scope, path)

    def _field(self, item: FieldStatement, scope: Scope, path: Path) -> None:
        if not item.type.startswith("map<"):
            self._field_type(item, scope)
        else:
            value = item.type[4:-1].split(", ", 1)[1]
            if value not in SCALARS:
                start = self._text.find(value, self._text.find(",", item.type_start), item.type_end)
                self._named(value, start, start + len(value), scope)
        default = item.default
        if item.type == "bytes" and default is not None and default.kind != "string":
            self._edit(default.end - len(default.value), default.end, f'"{default.value}"')
        self._bracket_options(item.in_brackets, item.options_span, scope, path)

    def _field_type(self, item: FieldStatement, scope: Scope) -> None:
        if item.type in SCALARS:
            return
        full_name = self._names.type(item.type, scope)
        entry = None if full_name is None else self._names.types[full_name]
        if full_name is None or not isinstance(entry, MessageStatement) or not entry.is_map_entry:
            self._named(item.type, item.type_start, item.type_end, scope)
            return
        parts = {part.name: part.type for part in entry.fields}
        value = parts.get("value", "")
        named = self._names.type(value, tuple(full_name.split(".")))
        self._edit(item.start, item.type_end, f"map<{parts.get('key')}, {f'.{named}' if named else value}>")

    def _named(self, name: str, start: int, end: int, scope: Scope) -> None:
        """Make the compiler find a type, or record it as undeclared."""
        full_name = self._names.type(name, scope)
        if full_name is None:
            if name not in self._result.missing_types:
                self._result.missing_types.append(name)
            return
        self._wanted[self._names.files[full_name]] = None
        compiler_name = self._names.compiler_name(name, full_name, scope)
        if compiler_name != name and start >= 0:
            self._edit(start, end, compiler_name)

    def _enum(self, enum: EnumStatement, scope: Scope, path: Path) -> None:
        self._statement_options(enum.options, scope, path)
        for value in enum.values:
            self._bracket_options(value.options, value.options_span, scope, (*path, ("value", value.name)))

    def _service(self, service: ServiceStatement, scope: Scope) -> None:
        path: Path = (("service", service.name),)
        inside = (*scope, service.name)
        self._statement_options(service.options, inside, path)
        for rpc in service.rpcs:
            for name, start in ((rpc.request, rpc.request_start), (rpc.response, rpc.response_start)):
                self._named(name, start, start + len(name), scope)
            self._statement_options(rpc.options, inside, (*path, ("method", rpc.name)))

    # -- options -------------------------------------------------------------------------------------------------------

    def _statement_options(self, options: Iterable[Option], scope: Scope, path: Path) -> None:
        for option in options:
            if not self._is_declared(option, scope):
                self._blank(option.start, option.end)
                self._result.undeclared.append((path, option))

    def _bracket_options(self, options: list[Option], span: tuple[int, int], scope: Scope, path: Path) -> None:
        """Remove undeclared options in brackets, with their commas."""
        is_kept = [self._is_declared(option, scope) for option in options]
        self._result.undeclared += [(path, item) for item, keep in zip(options, is_kept, strict=True) if not keep]
        if not any(is_kept):
            self._blank(*span)
            return
        for index, option in enumerate(options):
            if not is_kept[index]:
                self._blank(option.start, option.end)
            if index and not (is_kept[index] and any(is_kept[:index])):
                self._blank(options[index - 1].end, option.start)

    def _is_declared(self, option: Option, scope: Scope) -> bool:
        """Return whether all names in the option are declared, and make the compiler find them."""
        if option.is_custom and not self._found(option.name, option.name_start, scope):
            return False
        inner = option
        while inner.kind == "option":
            inner = inner.value
            if inner.is_custom and not self._found(inner.name, -1, scope):
                return False
        return all(self._found(name, -1, scope) for name in _extension_keys(inner.value))

    def _found(self, name: str, start: int, scope: Scope) -> bool:
        full_name = self._names.extension(name, scope)
        if full_name is None:
            return False
        self._wanted[self._names.files[full_name]] = None
        compiler_name = self._names.compiler_name(name, full_name, scope)
        if compiler_name != name and start >= 0:
            self._edit(start, start + len(name), compiler_name)
        return True


def _extension_keys(value: Any) -> Iterator[str]:
    """Yield the extensions that an aggregate value names; a URL is the name of a packed type."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key.startswith("[") and "/" not in key:
                yield key[1:-1]
            yield from _extension_keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _extension_keys(inner)
