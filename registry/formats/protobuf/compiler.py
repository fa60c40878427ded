"""Google's compiler in this process: limits on the text, a private folder, and descriptors or errors with places."""

from __future__ import annotations

import re
import warnings
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import _protoc_compiler

from registry.errors import InvalidSchema, SchemaTooCostly

MAX_BYTES: Final = 1024 * 1024
MAX_ALL_BYTES: Final = 4 * 1024 * 1024
MAX_STATEMENTS: Final = 10_000
MAX_ALL_STATEMENTS: Final = 30_000
MAX_ITEMS: Final = 8_000
MAX_IMPORTS: Final = 1_000
MAX_DEPTH: Final = 64
MAX_PARTS: Final = 100
PROTO2: Final = 'syntax = "proto2"; '

_SKIPPED: Final = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?", re.DOTALL)
_IMPORT: Final = re.compile(r"\bimport\b")
_NAME: Final = re.compile(r"[\w.]+")
_BRACES: Final = re.compile(r"[{}<>\[\]]")
_SYNTAX: Final = re.compile(r"\s*(?:;\s*)*(?:syntax|edition)\s*=")
_LINE: Final = re.compile("\n")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def checked(text: str, name: str | None = None) -> int:
    """Return the number of statements; raises SchemaTooCostly beyond the limits, InvalidSchema for invalid characters.

    `name` is the import path of a reference, None for the schema itself.
    """
    source = f'the reference "{name}"' if name is not None else "the schema"
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise InvalidSchema(f"{source} contains half of a surrogate pair, which is not a character") from None
    if size > MAX_BYTES:
        raise SchemaTooCostly(f"{source} has {size:,} bytes; at most {MAX_BYTES:,} are read")
    control = _CONTROL.search(text)
    if control is not None:
        line = text.count("\n", 0, control.start()) + 1
        column = control.start() - text.rfind("\n", 0, control.start())
        message = f"{source} contains the control character U+{ord(control.group()):04X}: remove it"
        raise InvalidSchema(message, line=None if name else line, column=None if name else column)
    code = _SKIPPED.sub(" ", text)
    statements = code.count(";") + code.count("{")
    _limit(source, "statements", statements, MAX_STATEMENTS)
    _limit(source, "values and options", code.count("="), 2 * MAX_STATEMENTS)
    _limit(source, "list items", code.count(","), MAX_ITEMS)
    _limit(source, "imports", len(_IMPORT.findall(code)), MAX_IMPORTS)
    _limit(
        source, "parts in one name", 1 + max((word.count(".") for word in _NAME.findall(code)), default=0), MAX_PARTS
    )
    _limit_depth(source, code)
    return statements


def _limit(source: str, what: str, count: int, limit: int) -> None:
    if count > limit:
        raise SchemaTooCostly(f"{source} has {count:,} {what}; at most {limit:,} are read: split it into several files")


def _limit_depth(source: str, code: str) -> None:
    depth = 0
    for match in _BRACES.finditer(code):
        depth += 1 if match.group() in "{<[" else -1
        if depth > MAX_DEPTH:
            raise SchemaTooCostly(f"{source} is nested deeper than {MAX_DEPTH} levels")


def with_syntax(text: str) -> tuple[str, int]:
    """Return the text with a syntax statement, and the number of columns by which its first line moved.

    A text without one is proto2. An explicit statement keeps the compiler from writing a warning to the server's log.
    """
    text = text.removeprefix("\ufeff")
    if _SYNTAX.match(_SKIPPED.sub(" ", text)):
        return text, 0
    return PROTO2 + text, len(PROTO2)


class Columns:
    """A map from the compiler's lines and columns, both from 0, to characters of a text.

    The compiler counts columns in UTF-8 bytes, and a tab up to the next multiple of 8. Each line is measured only once.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [0, *(match.end() for match in _LINE.finditer(text))]
        self._measured: dict[int, list[int]] = {}

    def index(self, line: int, column: int) -> int:
        """Return the index of a character in the text; the end of the text for a line beyond it."""
        if line >= len(self._lines):
            return len(self._text)
        return self._lines[line] + self.character(line, column)

    def character(self, line: int, column: int) -> int:
        """Return the column in characters; the end of the line for a column beyond it."""
        if line >= len(self._lines):
            return 0
        return bisect_left(self._columns(line), column)

    def _columns(self, line: int) -> list[int]:
        """Return the compiler's column of each character of a line."""
        if line not in self._measured:
            begin = self._lines[line]
            end = self._lines[line + 1] - 1 if line + 1 < len(self._lines) else len(self._text)
            columns, column = [], 0
            for sign in self._text[begin:end]:
                columns.append(column)
                column += 8 - column % 8 if sign == "\t" else len(sign.encode("utf-8"))
            self._measured[line] = columns
        return self._measured[line]


MAIN: Final = "__schema__.proto"
_ALL: Final = "__all__.proto"
_KNOWN: Final = Path(__file__).parent / "known"
_GOOGLE: Final = Path(grpc_tools.__file__).parent / "_proto"
_MAX_ERRORS: Final = 20
_MAX_ERROR: Final = 300

KNOWN_NAMES: Final = frozenset(
    path.relative_to(root).as_posix() for root in (_KNOWN, _GOOGLE) for path in sorted(root.rglob("*.proto"))
)
COMPILERS_OWN: Final = frozenset(path.relative_to(_GOOGLE).as_posix() for path in sorted(_GOOGLE.rglob("*.proto")))


def known_text(name: str) -> str:
    """Return the text of a file that every schema can import, by its import path."""
    folder = _KNOWN if (_KNOWN / name).exists() else _GOOGLE
    return (folder / name).read_text(encoding="utf-8")


# Unused imports and the like: nothing that the sender of a schema could see.
warnings.filterwarnings("ignore", category=_protoc_compiler.ProtocWarning)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error of the compiler; `line` and `column` are from 1, and None if it gives none."""

    file: str
    line: int | None
    column: int | None
    message: str


def compile_files(texts: Mapping[str, str], column_shift: int = 0) -> tuple[FileDescriptorProto, ...]:
    """Return the descriptors of all files that MAIN needs, imported ones first, MAIN last.

    Only MAIN keeps source information. `texts` maps import paths to texts and includes MAIN; `column_shift` is the
    length of the prefix in the first line of MAIN. Raises InvalidSchema with all errors, the place of the first one in
    MAIN, and no paths of this machine.
    """
    with TemporaryDirectory(prefix="schemadesk-") as name:
        folder = Path(name)
        for path, text in texts.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="")
        # A separate file that imports MAIN publicly keeps the compiler from warning about unused imports on stderr.
        (folder / _ALL).write_text(f'syntax = "proto3"; import public "{MAIN}";')
        include = [str(folder).encode(), str(_KNOWN).encode(), str(_GOOGLE).encode()]
        try:
            _protoc_compiler.get_protos(MAIN.encode(), include)
        except _protoc_compiler.ProtocErrors as errors:
            raise _invalid(_problems(errors.errors(), texts[MAIN], column_shift)) from None
        except Exception as error:  # noqa: BLE001 - the binding wraps some failures in a bare Exception
            raise InvalidSchema(f"the compiler rejects the schema: {_clean(str(error), name)}") from None
        output = folder / "__descriptors__"
        arguments = ["protoc", *(f"-I{path.decode()}" for path in include), "--include_imports"]
        arguments += ["--include_source_info", "--retain_options", f"--descriptor_set_out={output}", _ALL]
        if _protoc_compiler.run_main([argument.encode() for argument in arguments]) != 0 or not output.exists():
            raise InvalidSchema("the compiler rejects the schema without giving a reason")
        return _descriptors(output.read_bytes())


def _descriptors(data: bytes) -> tuple[FileDescriptorProto, ...]:
    files = [file for file in FileDescriptorSet.FromString(data).file if file.name != _ALL]
    for file in files:
        if file.name != MAIN:
            file.ClearField("source_code_info")
    return tuple(sorted(files, key=lambda file: file.name == MAIN))


def _problems(errors: list[Any], text: str, column_shift: int) -> list[Diagnostic]:
    problems, columns = [], Columns(text)
    for error in errors[:_MAX_ERRORS]:
        file = error.filename.decode("utf-8", "replace")
        has_place = error.line >= 0
        column = error.column
        if file == MAIN and has_place:
            column = columns.character(error.line, column) - (column_shift if error.line == 0 else 0)
        problems.append(
            Diagnostic(
                file,
                error.line + 1 if has_place else None,
                max(1, column + 1) if has_place else None,
                _clean(error.message.decode("utf-8", "replace"), ""),
            )
        )
    more = len(errors) - len(problems)
    if more > 0:
        problems.append(Diagnostic(MAIN, None, None, f"and {more:,} more errors"))
    return problems


def _clean(message: str, folder: str) -> str:
    text = message.replace(folder + "/", "") if folder else message
    text = text.replace(MAIN, "this schema").replace(str(_KNOWN), "").replace(str(_GOOGLE), "")
    return text if len(text) <= _MAX_ERROR else text[:_MAX_ERROR] + "…"


def _invalid(problems: list[Diagnostic]) -> InvalidSchema:
    first = next((item for item in problems if item.file == MAIN and item.line is not None), None)
    message = "; ".join(_sentence(item, is_first=item is first).removesuffix(".") for item in problems)
    errors = [{"line": i.line, "column": i.column, "message": i.message, "file": _shown(i.file)} for i in problems]
    return InvalidSchema(
        message, line=first.line if first else None, column=first.column if first else None, errors=errors
    )


def _shown(file: str) -> str:
    return "" if file == MAIN else file


def _sentence(problem: Diagnostic, *, is_first: bool) -> str:
    if problem.file != MAIN:
        source = f'"{problem.file[:200]}"' + (f", line {problem.line}" if problem.line is not None else "")
        return f"in {source}: {problem.message}"
    if problem.line is None or is_first:
        return problem.message
    return f"line {problem.line}, column {problem.column}: {problem.message}"


#: no reference has a name with this prefix
PREFIX: Final = "__missing"


def placeholders(texts: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return the texts plus files that declare messages with the names, which every text imports."""
    by_package: dict[str, dict[str, None]] = {}
    for name in names:
        package, _, simple = name.removeprefix(".").rpartition(".")
        by_package.setdefault(package, {})[simple] = None
    files = {}
    for index, (package, messages) in enumerate(by_package.items()):
        head = f"package {package};" if package else ""
        bodies = " ".join(f"message {name} {{}}" for name in messages)
        files[f"{PREFIX}_{index}.proto"] = f'syntax = "proto3"; {head} {bodies}\n'
    imports = " ".join(f'import "{name}";' for name in files)
    return {**{name: f"{text}\n{imports}\n" for name, text in texts.items()}, **files}
