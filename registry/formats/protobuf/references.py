"""What a schema refers to, as texts by import path; names that would leave the folder are refused."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Final

from registry.errors import InvalidReference, SchemaTooCostly
from registry.formats.base import ResolvedReference
from registry.formats.protobuf.compiler import COMPILERS_OWN

MAX_REFERENCES: Final = 1_000
_MAX_NAME: Final = 1_024
_MAX_PART: Final = 200
_BAD: Final = re.compile(r"[\x00-\x1f\x7f\\\"\ud800-\udfff]")


def documents(references: Sequence[ResolvedReference]) -> dict[str, ResolvedReference]:
    """What is referred to, directly and on the way, by import path.

    A direct reference hides one of the same name further away, and so does the nearer one of two. Google's own
    well-known types are the compiler's; a reference that brings its own copy of them changes nothing. Raises
    InvalidReference for a name that can't be an import path, SchemaTooCostly for more than MAX_REFERENCES.
    """
    found: dict[str, ResolvedReference] = {}
    seen: set[int] = set()
    todo = deque(references)
    while todo:
        reference = todo.popleft()
        if id(reference) in seen:
            continue
        seen.add(id(reference))
        check_name(reference.name)
        if reference.name not in COMPILERS_OWN and reference.name not in found:
            found[reference.name] = reference
            todo.extend(reference.references)
        if len(seen) > 10 * MAX_REFERENCES or len(found) > MAX_REFERENCES:
            raise SchemaTooCostly(f"the schema refers to more than {MAX_REFERENCES:,} others")
    _check_folders(found)
    return found


def check_name(name: str) -> None:
    """Raises InvalidReference if a name can't be an import path inside of a folder."""
    parts = name.split("/")
    if not name or len(name.encode("utf-8", "replace")) > _MAX_NAME:
        _refuse(name, f"it must have 1 to {_MAX_NAME:,} bytes")
    if _BAD.search(name):
        _refuse(name, "it holds a control character, a quote or a backslash")
    if name.startswith("/"):
        _refuse(name, "it is absolute")
    if any(part in ("", ".", "..") for part in parts):
        _refuse(name, "it holds an empty part, `.` or `..`")
    if any(len(part.encode("utf-8")) > _MAX_PART for part in parts):
        _refuse(name, f"a part of it has more than {_MAX_PART} bytes")
    if name.startswith("__"):
        _refuse(name, "this name is used by the registry itself")


def is_import_path(name: str) -> bool:
    """Whether a name can be an import path inside of a folder."""
    try:
        check_name(name)
    except InvalidReference:
        return False
    return True


def _check_folders(found: dict[str, ResolvedReference]) -> None:
    for name in found:
        parts = name.split("/")
        for end in range(1, len(parts)):
            folder = "/".join(parts[:end])
            if folder in found:
                _refuse(name, f'"{folder}" is a file already')


def _refuse(name: str, why: str) -> None:
    shown = name[:200].encode("unicode_escape").decode("ascii")
    message = f'the reference name "{shown}" can\'t be an import path: {why}; use the path as the schema imports it'
    raise InvalidReference(message, name=name[:200])
