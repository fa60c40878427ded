"""Resolution of names and imports: the types and options of a text, of its references and of known files."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from registry.errors import InvalidReference, SchemaTooCostly
from registry.formats.base import ResolvedReference
from registry.formats.protobuf.compiler import COMPILERS_OWN
from registry.formats.protobuf.text.statement_reader import plain
from registry.formats.protobuf.text.statements import (
    EnumStatement,
    Extend,
    FieldStatement,
    FileStatements,
    MessageStatement,
    Option,
    Primitive,
)

Scope = tuple[str, ...]


@dataclass(slots=True)
class Names:
    """The declared types and extensions by full name, and the file of each."""

    types: dict[str, MessageStatement | EnumStatement] = field(default_factory=dict)
    extensions: dict[str, FieldStatement] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)

    def add(self, file: FileStatements, name: str) -> None:
        """Add the declarations of a file; later files hide earlier ones."""
        scope = scope_of(file.package)
        self.packages.update(".".join(scope[:end]) for end in range(1, len(scope) + 1))
        self._add_extends(file.extends, scope, name)
        self._add_types(file.types, scope, name)

    def merged(self, other: Names) -> Names:
        """Return these names merged with others, which hide these."""
        return Names(
            {**self.types, **other.types},
            {**self.extensions, **other.extensions},
            {**self.files, **other.files},
            self.packages | other.packages,
        )

    def compiler_name(self, name: str, full_name: str, scope: Sequence[str]) -> str:
        """Return the name for the compiler, with a leading dot if an inner scope hides its first part."""
        if name.startswith("."):
            return name
        first = name.partition(".")[0]
        for end in range(len(scope), -1, -1):
            inside = ".".join((*scope[:end], first))
            if inside in self.types or inside in self.packages or (first == name and inside in self.extensions):
                is_same = ".".join((*scope[:end], name)) == full_name
                return name if is_same else f".{full_name}"
        return name

    def _add_types(self, types: Iterable[MessageStatement | EnumStatement], scope: Scope, name: str) -> None:
        for item in types:
            inside = (*scope, item.name)
            full_name = ".".join(inside)
            self.types[full_name] = item
            self.files[full_name] = name
            if isinstance(item, MessageStatement):
                self._add_extends(item.extends, inside, name)
                self._add_types(item.types, inside, name)

    def _add_extends(self, extends: Iterable[Extend], scope: Scope, name: str) -> None:
        for extend in extends:
            for item in extend.fields:
                full_name = ".".join((*scope, item.name))
                self.extensions[full_name] = item
                self.files[full_name] = name

    def type(self, name: str, scope: Sequence[str]) -> str | None:
        """Return the full name of a type, without a leading dot; None if unknown."""
        return _resolved(self.types, name, scope)

    def extension(self, name: str, scope: Sequence[str]) -> str | None:
        """Return the full name of an extension, without a leading dot; None if unknown."""
        return _resolved(self.extensions, name, scope)


def scope_of(package: str | None) -> Scope:
    """Return the parts of a package."""
    return tuple(package.split(".")) if package else ()


def _resolved(table: Mapping[str, object], name: str, scope: Sequence[str]) -> str | None:
    if name.startswith("."):
        return name[1:] if name[1:] in table else None
    for end in range(len(scope), -1, -1):
        full_name = ".".join((*scope[:end], name))
        if full_name in table:
            return full_name
    return None


MAX_REFERENCES: Final = 1_000
_MAX_NAME: Final = 1_024
_MAX_PART: Final = 200
_BAD: Final = re.compile(r"[\x00-\x1f\x7f\\\"\ud800-\udfff]")


def documents(references: Sequence[ResolvedReference]) -> dict[str, ResolvedReference]:
    """Return the direct and indirect references by import path.

    A direct reference hides an indirect one with the same name, and the nearer of two indirect ones hides the other.
    Google's well-known types come from the compiler; a reference with its own copy of them changes nothing. Raises
    InvalidReference if a name can't be an import path, SchemaTooCostly beyond MAX_REFERENCES.
    """
    by_path: dict[str, ResolvedReference] = {}
    visited: set[int] = set()
    todo = deque(references)
    while todo:
        reference = todo.popleft()
        if id(reference) in visited:
            continue
        visited.add(id(reference))
        check_name(reference.name)
        if reference.name not in COMPILERS_OWN and reference.name not in by_path:
            by_path[reference.name] = reference
            todo.extend(reference.references)
        if len(visited) > 10 * MAX_REFERENCES or len(by_path) > MAX_REFERENCES:
            raise SchemaTooCostly(f"the schema refers to more than {MAX_REFERENCES:,} others")
    _check_folders(by_path)
    return by_path


def check_name(name: str) -> None:
    """Raise InvalidReference if a name can't be an import path inside a folder."""
    parts = name.split("/")
    if not name or len(name.encode("utf-8", "replace")) > _MAX_NAME:
        _refuse(name, f"it must have 1 to {_MAX_NAME:,} bytes")
    if _BAD.search(name):
        _refuse(name, "it contains a control character, a quote or a backslash")
    if name.startswith("/"):
        _refuse(name, "it is absolute")
    if any(part in ("", ".", "..") for part in parts):
        _refuse(name, "it contains an empty part, `.` or `..`")
    if any(len(part.encode("utf-8")) > _MAX_PART for part in parts):
        _refuse(name, f"a part of it has more than {_MAX_PART} bytes")
    if name.startswith("__"):
        _refuse(name, "this name is used by the registry itself")


def is_import_path(name: str) -> bool:
    """Return whether a name can be an import path inside a folder."""
    try:
        check_name(name)
    except InvalidReference:
        return False
    return True


def _check_folders(by_path: dict[str, ResolvedReference]) -> None:
    for name in by_path:
        parts = name.split("/")
        for end in range(1, len(parts)):
            folder = "/".join(parts[:end])
            if folder in by_path:
                _refuse(name, f'"{folder}" is already a file')


def _refuse(name: str, why: str) -> None:
    shown = name[:200].encode("unicode_escape").decode("ascii")
    message = f"""the reference name "{shown}" can't be an import path: {why}; use the path that the schema imports"""
    raise InvalidReference(message, name=name[:200])


_SIMPLE = frozenset({"boolean", "enum", "number"})


def merged(options: list[Option], names: Names, scope: Scope) -> list[Option]:
    """Return the options in the normal form."""
    by_name: dict[str, list[Option]] = {}
    for option in sorted((_named(item, names, scope) for item in options), key=lambda item: item.name):
        by_name.setdefault(option.name, []).append(option)
    result: list[Option] = []
    for name, same in by_name.items():
        declared = names.extensions.get(name.removeprefix("."))
        if declared is None or declared.label == "repeated":
            result += same
            continue
        first, *others = same
        for other in others:
            first = _merge(declared, first, other, names, scope)
        result.append(first)
    return result


def _named(option: Option, names: Names, scope: Scope) -> Option:
    full_name = names.extension(option.name, scope) if option.is_custom else None
    return option if full_name is None else _as_map(Option(full_name, option.kind, option.value, is_custom=True))


def _as_map(option: Option) -> Option:
    """Convert an option that is set part by part to one with an aggregate value."""
    if option.kind != "option":
        return option
    return Option(option.name, "map", _inside(option.value), option.is_custom)


def _inside(option: Option) -> dict[str, Any]:
    value = option.value
    if option.kind in _SIMPLE:
        value = Primitive(option.kind, value)
    elif option.kind == "option":
        value = _inside(value)
    return {option.name: value}


def _merge(declared: FieldStatement, first: Option, other: Option, names: Names, scope: Scope) -> Option:
    other = _as_map(other)
    if first.kind != "map" or other.kind != "map":
        return other
    return Option(other.name, "map", _merged_maps(declared, first.value, other.value, names, scope), other.is_custom)


def _merged_maps(
    declared: FieldStatement | None, first: dict[str, Any], other: dict[str, Any], names: Names, scope: Scope
) -> dict[str, Any]:
    holder = _message_of(declared, names, scope)
    result = dict(first)
    for name, value in other.items():
        inner = None if holder is None else next((item for item in _fields(holder) if item.name == name), None)
        result[name] = _merged_values(inner, result[name], value, names, scope) if name in result else value
    return result


def _merged_values(inner: FieldStatement | None, first: Any, other: Any, names: Names, scope: Scope) -> Any:
    if inner is not None and inner.label != "repeated" and not inner.type.startswith("map<"):
        if isinstance(first, dict) and isinstance(other, dict) and _message_of(inner, names, scope) is not None:
            return _merged_maps(inner, first, other, names, scope)
        return other
    values: dict[Any, Any] = {}
    for side in (first, other):
        for value in side if isinstance(side, list) else [side]:
            values.setdefault(plain(value), value)
    return list(values.values())


def _message_of(declared: FieldStatement | None, names: Names, scope: Scope) -> MessageStatement | None:
    full_name = None if declared is None else names.type(declared.type, scope)
    declaration = names.types.get(full_name) if full_name is not None else None
    return declaration if isinstance(declaration, MessageStatement) else None


def _fields(message: MessageStatement) -> list[FieldStatement]:
    return [*message.fields, *(field for oneof in message.oneofs for field in oneof.fields)]
