"""How deep Avro bytes nest and how many values they declare, found without calls within calls and without keeping a value.

fastavro decodes a type within itself by calls within calls in C, as deep as the bytes say, and a few bytes can declare
millions of values: both end the process, which no `except` survives.
"""

from __future__ import annotations

from typing import Any

from registry.pipeline.workers.problems import Malformed, NotRead

MOST_DEPTH = 500  # levels; each takes some 1.6 KB of stack in fastavro
MOST_VALUES = 1_000_000  # of one body
_FIXED_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_SIZED = ("string", "bytes")
_VARINT_BYTES = 10


class AvroExtent:
    """Checks bodies of one schema, as fastavro parsed it: `named` has the definitions by full name."""

    def __init__(self, schema: Any, named: dict[str, Any]) -> None:
        self._schema, self._named = schema, named
        self._is_recursive = False
        self._values_a_byte = 1.0
        self._sizes: dict[str, tuple[int, int]] = {}
        self._sized(schema, ())

    def check(self, data: bytes) -> None:
        """Raises NotRead for a body beyond the bounds, Malformed for one that isn't of the schema.

        Bodies that can't be beyond them, by their length and their schema, aren't looked at.
        """
        if self._is_recursive or len(data) * self._values_a_byte > MOST_VALUES:
            self._walk(data)

    def _sized(self, schema: Any, inside: tuple[str, ...]) -> tuple[int, int]:
        """The least bytes and the most values of a type apart from lists' items, which set `_values_a_byte`."""
        if isinstance(schema, list):
            branches = [self._sized(branch, inside) for branch in schema] or [(0, 0)]
            return 1 + min(least for least, _ in branches), 1 + max(most for _, most in branches)
        if isinstance(schema, str):
            if schema in inside:
                self._is_recursive = True
                return 0, 1
            if schema in self._named:
                if schema not in self._sizes:
                    self._sizes[schema] = self._sized(self._named[schema], inside)
                return self._sizes[schema]
            return _FIXED_SIZES.get(schema, 1), 1
        kind = schema["type"]
        if kind in ("array", "map"):
            least, most = self._sized(schema["items" if kind == "array" else "values"], inside)
            self._values_a_byte = max(self._values_a_byte, (most + (kind == "map")) / max(1, least + (kind == "map")))
            return 1, 1
        if kind in ("record", "error"):
            fields = [self._sized(field["type"], (*inside, schema["name"])) for field in schema["fields"]]
            return sum(least for least, _ in fields), 1 + sum(most for _, most in fields)
        if kind == "fixed":
            return int(schema["size"]), 1
        return (1, 1) if kind == "enum" else self._sized(kind, inside)

    def _walk(self, data: bytes) -> None:
        """Goes through the bytes with a stack of its own: what is still to be read, with its depth."""
        at, values = 0, 0
        # A type to read, or (type, items left in the block) of a list or map that goes on.
        stack: list[tuple[Any, int, int]] = [(self._schema, 0, -1)]
        while stack:
            schema, depth, items = stack.pop()
            if items >= 0:
                if items == 0:
                    items, at = _block(data, at)
                    if items == 0:
                        continue
                stack.append((schema, depth, items - 1))
                if schema["type"] == "map":
                    at = _skip_sized(data, at)
                schema, depth = schema.get("items", schema.get("values")), depth + 1
            values += 1
            if values > MOST_VALUES:
                raise NotRead(f"it declares more than {MOST_VALUES:,} values")
            if depth > MOST_DEPTH:
                raise NotRead(f"it is nested deeper than {MOST_DEPTH:,} levels")
            if isinstance(schema, list):
                index, at = _long(data, at)
                if not 0 <= index < len(schema):
                    raise Malformed("the body names a branch that its schema doesn't have")
                stack.append((schema[index], depth, -1))
                continue
            if isinstance(schema, str) and schema in self._named:
                schema = self._named[schema]
            kind = schema["type"] if isinstance(schema, dict) else schema
            if kind in ("record", "error"):
                stack += [(field["type"], depth + 1, -1) for field in reversed(schema["fields"])]
            elif kind in ("array", "map"):
                stack.append((schema, depth, 0))
            elif kind == "fixed":
                at = _skip(data, at, schema["size"])
            elif kind in _FIXED_SIZES:
                at = _skip(data, at, _FIXED_SIZES[kind])
            elif kind in _SIZED:
                at = _skip_sized(data, at)
            elif kind in ("int", "long", "enum"):
                _, at = _long(data, at)
            else:  # {"type": {"type": …}}
                stack.append((kind, depth, -1))


def _long(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 7 * _VARINT_BYTES, 7):
        if at >= len(data):
            raise Malformed("the body ends before its schema does")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise Malformed("the body has a number of more than 64 bits")


def _block(data: bytes, at: int) -> tuple[int, int]:
    """The number of items in the next block; a negative one has the block's size in bytes after it."""
    count, at = _long(data, at)
    if count < 0:
        _, at = _long(data, at)
    return abs(count), at


def _skip_sized(data: bytes, at: int) -> int:
    size, at = _long(data, at)
    if size < 0:
        raise Malformed("the body has a length below zero")
    return _skip(data, at, size)


def _skip(data: bytes, at: int, size: int) -> int:
    if size > len(data) - at:
        raise Malformed("the body ends before its schema does")
    return at + size
