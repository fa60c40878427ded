"""What names in statements lead to: the types and options that a text, what it refers to and the known files declare.

A name is looked for in the scope that it stands in, then in each one around that, as a whole. The compiler settles on
the innermost scope that has the first part of the name; where these differ, this is the established server's way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from registry.formats.protobuf.statements import (
    EnumStatement,
    Extend,
    FieldStatement,
    FileStatements,
    MessageStatement,
)

Scope = tuple[str, ...]


@dataclass(slots=True)
class Names:
    """The declared types and extensions by their full name, and the file of each."""

    types: dict[str, MessageStatement | EnumStatement] = field(default_factory=dict)
    extensions: dict[str, FieldStatement] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)

    def add(self, file: FileStatements, name: str) -> None:
        """Adds what a file declares; later files hide earlier ones."""
        scope = scope_of(file.package)
        self.packages.update(".".join(scope[:end]) for end in range(1, len(scope) + 1))
        self._add_extends(file.extends, scope, name)
        self._add_types(file.types, scope, name)

    def merged(self, other: Names) -> Names:
        """These names and those of others, which hide these."""
        return Names(
            {**self.types, **other.types},
            {**self.extensions, **other.extensions},
            {**self.files, **other.files},
            self.packages | other.packages,
        )

    def spelt(self, name: str, full_name: str, scope: Sequence[str]) -> str:
        """The name for the compiler: with a leading dot where the first part means something else further inside."""
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
        """The full name of a type, without a leading dot."""
        return _resolved(self.types, name, scope)

    def extension(self, name: str, scope: Sequence[str]) -> str | None:
        """The full name of an extension, without a leading dot."""
        return _resolved(self.extensions, name, scope)


def scope_of(package: str | None) -> Scope:
    """The parts of a package."""
    return tuple(package.split(".")) if package else ()


def _resolved(table: Mapping[str, object], name: str, scope: Sequence[str]) -> str | None:
    if name.startswith("."):
        return name[1:] if name[1:] in table else None
    for end in range(len(scope), -1, -1):
        full_name = ".".join((*scope[:end], name))
        if full_name in table:
            return full_name
    return None
