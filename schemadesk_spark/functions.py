"""A digest of what a Python function of a query does: of its code, its constants and what it closes over.

It stays the same if lines move or comments change. Python compiles the same text to other code in another version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import cloudpickle

from schemadesk_spark.expressions import items

_PLAIN: Final = (str, bytes, int, float, bool, type(None))
MAX_DEPTH: Final = 20


def functions_of(session: Any, node: Any) -> str:
    """Return the digest of the Python functions that a node of a plan calls; empty without any, or if unreadable."""
    digests = [_digest(session, each) for each in _expressions(node)]
    return " ".join(digest for digest in digests if digest)


def _expressions(node: Any) -> Iterator[Any]:
    for method in ("functionExpr", "func", "udfs"):
        try:
            found = getattr(node, method)()
        except Py4JError:
            continue
        yield from items(found) if method == "udfs" else [found]


def _digest(session: Any, expression: Any) -> str:
    try:
        command = expression.func().command().toArray(session._jvm.scala.reflect.ClassTag.Byte())
        loaded = cloudpickle.loads(bytes(command))
    except Exception:  # noqa: BLE001 - a function that can't be loaded here, or a Scala one
        return ""
    function = loaded[0] if isinstance(loaded, tuple) else loaded
    return hashlib.sha256("\n".join(parts_of(function)).encode()).hexdigest()[:16]


def parts_of(function: Any) -> Iterator[str]:
    """Yield what a function does, as texts."""
    yield from _parts(function, 0, set())


def _parts(value: Any, depth: int, seen: set[int]) -> Iterator[str]:
    """Yield what a value consists of; of objects only their class."""
    if depth > MAX_DEPTH or id(value) in seen:
        return
    if isinstance(value, _PLAIN):
        yield repr(value)
    elif isinstance(value, list | tuple):
        yield type(value).__name__
        for each in value:
            yield from _parts(each, depth + 1, seen)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield repr(name)
            yield from _parts(each, depth + 1, seen)
    elif isinstance(value, CodeType):
        yield value.co_code.hex()
        yield from _parts((value.co_names, value.co_varnames, value.co_consts), depth + 1, seen)
    elif isinstance(value, FunctionType):
        yield from _function(value, depth, seen | {id(value)})
    else:
        yield type(value).__qualname__


def _function(function: FunctionType, depth: int, seen: set[int]) -> Iterator[str]:
    code = function.__code__
    yield from _parts((code, function.__defaults__, function.__kwdefaults__), depth + 1, seen)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield name
        yield from _parts(cell.cell_contents, depth + 1, seen)
    for name in code.co_names:
        used = function.__globals__.get(name)
        if isinstance(used, (FunctionType, *_PLAIN)) and used is not None:
            yield from _parts(used, depth + 1, seen)
