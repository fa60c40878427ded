"""The messages between the server and a child: typed JSON.

Not pickle: a child reads untrusted text with parsers in C++ and Rust, so it is the process that may be compromised, and
a pickle can make its reader do anything. Here the reader makes only JSON values and the frozen dataclasses in `TYPES`:
a compromised child can lie about its schema, and do nothing else.

JSON's own values are written as they are; everything else is an object with the key "!":

    {"!": "tuple", "v": […]}        {"!": "dict", "v": [[key, value], …]}     keys that aren't text, or the key "!"
    {"!": "bytes", "v": "00ff"}     {"!": "Report", "v": {field: value, …}}   a dataclass, without `model`
    {"!": "source", "v": {…}}       a schema to be parsed on the other side
    {"!": "again", "v": 7}          the eighth tuple or dataclass that was completed: reports share their items

A source's references are a graph: a small one may expand to a huge tree, so each node is written once.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

from registry.errors import SchemaTooCostly
from registry.formats import (
    assessment,
    base,
    compatibility,
    json_change,
    lint,
    read_modify_write,
    report,
    suggested_edits,
    tags,
)
from registry.formats.base import ResolvedReference
from registry.formats.policies import base as policies

TAG: Final = "!"
_PLAIN: Final = (str, int, float, bool, type(None))
#: fields that aren't sent
_HOME: Final = frozenset({"model"})


@dataclass(frozen=True, slots=True)
class Source:
    """A schema as text with all that it refers to: how a job names a schema."""

    schema_type: str
    text: str = field(repr=False)
    references: tuple[ResolvedReference, ...] = field(default=(), repr=False)


class Unreadable(ValueError):
    """Bytes that aren't a message of this codec."""


def _dataclasses_of(*modules: ModuleType) -> dict[str, type[Any]]:
    return {
        name: kind
        for module in modules
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if kind.__module__ == module.__name__ and dataclasses.is_dataclass(kind) and not name.startswith("_")
    }


#: the dataclasses that may be sent, by name
TYPES: Final[Mapping[str, type[Any]]] = _dataclasses_of(
    base,
    compatibility,
    report,
    assessment,
    suggested_edits,
    read_modify_write,
    json_change,
    policies,
    tags,
    lint,
)
#: the fields of each that are sent
_CROSSING: Final[Mapping[type[Any], tuple[str, ...]]] = {
    kind: tuple(item.name for item in dataclasses.fields(kind) if item.init and item.name not in _HOME)
    for kind in TYPES.values()
}


def encode(value: Any) -> bytes:
    """Encode a value. Raises TypeError for a type that can't be sent, SchemaTooCostly for too deep nesting."""
    try:
        return json.dumps(_MessageEncoder().plain(value), ensure_ascii=True, separators=(",", ":")).encode("ascii")
    except RecursionError:
        raise SchemaTooCostly("the result for the schema is nested too deeply to be returned") from None


def decode(data: bytes) -> Any:
    """Decode a value. Raises Unreadable for anything that `encode` doesn't write."""
    try:
        return _MessageDecoder().typed(json.loads(data))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from error


class _MessageEncoder:
    """An encoder of one value; it writes a tuple or dataclass that occurs again as the index of the first."""

    def __init__(self) -> None:
        self._finished: dict[int, int] = {}

    def plain(self, value: Any) -> Any:
        """Return the value as JSON's own."""
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, bytes):
            return {TAG: "bytes", "v": value.hex()}
        if isinstance(value, Source):
            return {TAG: "source", "v": _plain_source(value)}
        index = self._finished.get(id(value))
        if index is not None:
            return {TAG: "again", "v": index}
        if isinstance(value, tuple):
            tagged = {TAG: "tuple", "v": [self.plain(item) for item in value]}
        else:
            tagged = self._dataclass(value)
        # The encoded value keeps all of its parts alive, so no other object gets this id meanwhile.
        self._finished[id(value)] = len(self._finished)
        return tagged

    def _mapping(self, value: Mapping[Any, Any]) -> Any:
        if TAG not in value and all(isinstance(key, str) for key in value):
            return {key: self.plain(item) for key, item in value.items()}
        return {TAG: "dict", "v": [[self.plain(key), self.plain(item)] for key, item in value.items()]}

    def _dataclass(self, value: Any) -> dict[str, Any]:
        kind = next((kind for kind in type(value).__mro__ if TYPES.get(kind.__name__) is kind), None)
        if kind is None:
            raise TypeError(f"a {type(value).__name__} can't cross the pipe to or from a child")
        return {TAG: kind.__name__, "v": {name: self.plain(getattr(value, name)) for name in _CROSSING[kind]}}


class _MessageDecoder:
    """A decoder of one value; it keeps completed tuples and dataclasses, in the encoder's order."""

    def __init__(self) -> None:
        self._finished: list[Any] = []

    def typed(self, value: Any) -> Any:
        """Return the value that was encoded."""
        if isinstance(value, list):
            return [self.typed(item) for item in value]
        if not isinstance(value, dict):
            return value
        if TAG not in value:
            return {key: self.typed(item) for key, item in value.items()}
        kind, content = value[TAG], value["v"]
        if kind == "dict":
            return {self.typed(key): self.typed(item) for key, item in content}
        if kind == "bytes":
            return bytes.fromhex(content)
        if kind == "source":
            return Source(
                str(content["type"]), str(content["text"]), _references_of(content["nodes"], content["roots"])
            )
        if kind == "again":
            return self._finished[content]
        if kind == "tuple":
            made: Any = tuple([self.typed(item) for item in content])
        else:
            made = TYPES[kind](
                **{name: self.typed(content[name]) for name in _CROSSING[TYPES[kind]] if name in content}
            )
        self._finished.append(made)
        return made


def _plain_source(source: Source) -> dict[str, Any]:
    nodes: list[list[Any]] = []
    numbers: dict[tuple[str, str, int, str], int] = {}
    stack = [(reference, False) for reference in reversed(source.references)]
    while stack:
        reference, is_expanded = stack.pop()
        key = _key(reference)
        if key in numbers:
            continue
        if is_expanded:
            numbers[key] = len(nodes)
            nodes.append([*key, [numbers[_key(inner)] for inner in reference.references]])
        else:
            stack.append((reference, True))
            stack.extend((inner, False) for inner in reference.references if _key(inner) not in numbers)
    roots = [numbers[_key(reference)] for reference in source.references]
    return {"type": source.schema_type, "text": source.text, "nodes": nodes, "roots": roots}


def _key(reference: ResolvedReference) -> tuple[str, str, int, str]:
    return reference.name, reference.subject, reference.version, reference.text


def _references_of(nodes: Sequence[Sequence[Any]], roots: Sequence[int]) -> tuple[ResolvedReference, ...]:
    made: list[ResolvedReference] = []
    for name, subject, version, text, inner in nodes:
        made.append(ResolvedReference(name, subject, version, text, tuple(made[number] for number in inner)))
    return tuple(made[number] for number in roots)
