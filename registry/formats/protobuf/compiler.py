"""Google's compiler in the process: texts in a private folder, descriptors or errors with their places out.

Nothing that a caller sends becomes a part of a command line or a path outside the folder: the main file has a fixed
name, and the names of references are checked before (see `references`). The compiler refuses imports that are
absolute or hold `..`, so that an import can reach the folder and the known types alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import _protoc_compiler

from registry.errors import InvalidSchema
from registry.formats.protobuf.texts import Columns

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
    """The text of a file that every schema can import, by its import path."""
    folder = _KNOWN if (_KNOWN / name).exists() else _GOOGLE
    return (folder / name).read_text(encoding="utf-8")


# Unused imports and the like: nothing that the sender of a schema could read.
warnings.filterwarnings("ignore", category=_protoc_compiler.ProtocWarning)


@dataclass(frozen=True, slots=True)
class Problem:
    """One error of the compiler; `line` and `column` count from 1 and are None where it names none."""

    file: str
    line: int | None
    column: int | None
    message: str


def compile_files(texts: Mapping[str, str], column_shift: int = 0) -> tuple[FileDescriptorProto, ...]:
    """The descriptors of all files that MAIN needs, imported ones first, MAIN last; only MAIN keeps source information.

    `texts` maps import paths to texts and holds MAIN; `column_shift` is what was put before the first line of MAIN.
    Raises InvalidSchema with all errors, the place of the first one in MAIN, and no path of this machine.
    """
    with TemporaryDirectory(prefix="schemadesk-") as name:
        folder = Path(name)
        for path, text in texts.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="")
        # Through a file of its own that imports MAIN publicly, the compiler doesn't warn of unused imports on stderr.
        (folder / _ALL).write_text(f'syntax = "proto3"; import public "{MAIN}";')
        include = [str(folder).encode(), str(_KNOWN).encode(), str(_GOOGLE).encode()]
        try:
            _protoc_compiler.get_protos(MAIN.encode(), include)
        except _protoc_compiler.ProtocErrors as errors:
            raise _invalid(_problems(errors.errors(), texts[MAIN], column_shift)) from None
        except Exception as error:  # noqa: BLE001 - the binding wraps some failures in a bare Exception
            raise InvalidSchema(f"the compiler refuses the schema: {_clean(str(error), name)}") from None
        output = folder / "__descriptors__"
        arguments = ["protoc", *(f"-I{path.decode()}" for path in include), "--include_imports"]
        arguments += ["--include_source_info", "--retain_options", f"--descriptor_set_out={output}", _ALL]
        if _protoc_compiler.run_main([argument.encode() for argument in arguments]) != 0 or not output.exists():
            raise InvalidSchema("the compiler refuses the schema without saying why")
        return _descriptors(output.read_bytes())


def _descriptors(data: bytes) -> tuple[FileDescriptorProto, ...]:
    files = [file for file in FileDescriptorSet.FromString(data).file if file.name != _ALL]
    for file in files:
        if file.name != MAIN:
            file.ClearField("source_code_info")
    return tuple(sorted(files, key=lambda file: file.name == MAIN))


def _problems(errors: list[Any], text: str, column_shift: int) -> list[Problem]:
    problems, columns = [], Columns(text)
    for error in errors[:_MAX_ERRORS]:
        file = error.filename.decode("utf-8", "replace")
        has_place = error.line >= 0
        column = error.column
        if file == MAIN and has_place:
            column = columns.character(error.line, column) - (column_shift if error.line == 0 else 0)
        problems.append(
            Problem(
                file,
                error.line + 1 if has_place else None,
                max(1, column + 1) if has_place else None,
                _clean(error.message.decode("utf-8", "replace"), ""),
            )
        )
    more = len(errors) - len(problems)
    if more > 0:
        problems.append(Problem(MAIN, None, None, f"and {more:,} more errors"))
    return problems


def _clean(message: str, folder: str) -> str:
    text = message.replace(folder + "/", "") if folder else message
    text = text.replace(MAIN, "this schema").replace(str(_KNOWN), "").replace(str(_GOOGLE), "")
    return text if len(text) <= _MAX_ERROR else text[:_MAX_ERROR] + "…"


def _invalid(problems: list[Problem]) -> InvalidSchema:
    first = next((item for item in problems if item.file == MAIN and item.line is not None), None)
    said = "; ".join(_sentence(item, is_first=item is first).removesuffix(".") for item in problems)
    errors = [{"line": i.line, "column": i.column, "message": i.message, "file": _shown(i.file)} for i in problems]
    return InvalidSchema(
        said, line=first.line if first else None, column=first.column if first else None, errors=errors
    )


def _shown(file: str) -> str:
    return "" if file == MAIN else file


def _sentence(problem: Problem, *, is_first: bool) -> str:
    if problem.file != MAIN:
        place = f'"{problem.file[:200]}"' + (f", line {problem.line}" if problem.line is not None else "")
        return f"in {place}: {problem.message}"
    if problem.line is None or is_first:
        return problem.message
    return f"line {problem.line}, column {problem.column}: {problem.message}"
