"""Random data of an Avro schema, and whether two readings of one mean the same: made without the engine's own ways."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

from registry.formats.avro.codec import branch_name
from registry.formats.avro.model import Array, AvroType, Enum, Fixed, Map, Named, Record, Union

NUMBERS = (0, 1, -1, 7, 127, 2**24 + 3, -(2**31), 2**31 - 1)
LONGS = (*NUMBERS, 2**53 + 5, -(2**63), 2**63 - 1, 10**12)
FLOATS = (0.0, -0.0, 1.5, -2.25, 1e10, 2.0**-20)
DOUBLES = (*FLOATS, 0.1, 1e300, float("inf"))
TEXTS = ("", "s", "é", "日本", "\x00")
BYTES = (b"", b"b", b"\x00\x01", b"\xff\xfe", "é".encode())


class Endless(Exception):
    """No datum that ends was found in a few steps."""


class DataMaker:
    """Makes random data, in the form that `Codec.encode` takes."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.left = 300

    def of(self, type_: AvroType, depth: int = 0) -> Any:
        """A datum of a type; raises Endless."""
        self.left -= 1
        if depth > 14 or self.left < 0:
            raise Endless
        if isinstance(type_, Record):
            return {field.name: self.of(field.type, depth + 1) for field in type_.fields}
        if isinstance(type_, Union):
            return self.branch(type_, depth)
        if isinstance(type_, Array):
            return [self.of(type_.items, depth + 1) for _ in range(self.length(depth))]
        if isinstance(type_, Map):
            return {self.random.choice(TEXTS): self.of(type_.values, depth + 1) for _ in range(self.length(depth))}
        if isinstance(type_, Enum):
            if not type_.symbols:
                raise Endless
            return self.random.choice(type_.symbols)
        if isinstance(type_, Fixed):
            return self.random.randbytes(type_.size)
        return self.leaf(type_.kind)

    def branch(self, union: Union, depth: int) -> Any:
        """A branch: any of them at first, deeper down one that ends."""
        if not union.branches:
            raise Endless
        simple = [branch for branch in union.branches if not isinstance(branch, (Record, Array, Map))]
        branch = self.random.choice(simple if depth > 5 and simple else union.branches)
        return (branch_name(branch), self.of(branch, depth + 1))

    def length(self, depth: int) -> int:
        """How many items: none deep down."""
        return 0 if depth > 5 else self.random.randint(0, 2)

    def leaf(self, kind: str) -> Any:
        """A primitive value."""
        if kind == "null":
            return None
        if kind == "boolean":
            return self.random.random() < 0.5
        pool = {"int": NUMBERS, "long": LONGS, "float": FLOATS, "double": DOUBLES, "string": TEXTS, "bytes": BYTES}
        return self.random.choice(pool[kind])


def is_same(reader: AvroType, writer: AvroType, written: Any, read: Any) -> bool:
    """Whether what was read means what was written; where the reader has a choice, any that fits will do."""
    if isinstance(writer, Union):
        name, inner = written
        branch = next(item for item in writer.branches if branch_name(item) == name)
        return is_same(reader, branch, inner, read)
    if isinstance(reader, Union):
        own = [branch for branch in reader.branches if _is_namesake(branch, writer)]
        return any(is_same(branch, writer, written, read) for branch in own or reader.branches)
    if isinstance(reader, Record) and isinstance(writer, Record):
        return isinstance(read, dict) and all(_is_same_field(field, writer, written, read) for field in reader.fields)
    if isinstance(reader, Array) and isinstance(writer, Array):
        pairs = list(zip(written, read, strict=False)) if isinstance(read, list) else []
        return len(pairs) == len(written) and all(is_same(reader.items, writer.items, *pair) for pair in pairs)
    if isinstance(reader, Map) and isinstance(writer, Map):
        if not isinstance(read, dict) or set(read) != set(written):
            return False
        return all(is_same(reader.values, writer.values, item, read[key]) for key, item in written.items())
    return _is_same_leaf(reader, writer, written, read)


def _is_namesake(reader: AvroType, writer: AvroType) -> bool:
    is_named = isinstance(reader, Named) and isinstance(writer, Named)
    return is_named and reader.kind == writer.kind and reader.full_name == writer.full_name


def _is_same_field(field: Any, writer: Record, written: Any, read: Any) -> bool:
    matching = [name for name in (field.name, *field.aliases) if name in writer.by_name]
    if field.name not in read:
        return False
    if not matching:
        return field.has_default and _is_of(field.type, read[field.name])
    return any(is_same(field.type, writer.by_name[name].type, written[name], read[field.name]) for name in matching)


def _is_of(type_: AvroType, value: Any) -> bool:
    """Whether a decoded value, of a default, is one of the type."""
    if isinstance(type_, Union):
        return any(_is_of(branch, value) for branch in type_.branches)
    if isinstance(type_, Record):
        return isinstance(value, dict) and all(
            field.name in value and _is_of(field.type, value[field.name]) for field in type_.fields
        )
    if isinstance(type_, Array):
        return isinstance(value, list) and all(_is_of(type_.items, item) for item in value)
    if isinstance(type_, Map):
        return isinstance(value, dict) and all(_is_of(type_.values, item) for item in value.values())
    if isinstance(value, bool) or value is None:
        return type_.kind == {True: "boolean", False: "null"}[isinstance(value, bool)]
    kinds = {int: ("int", "long", "float", "double"), float: ("float", "double"), str: ("string", "enum")}
    return type_.kind in kinds.get(type(value), ("bytes", "fixed"))


def _is_same_leaf(reader: AvroType, writer: AvroType, written: Any, read: Any) -> bool:
    ours, theirs = reader.logical, writer.logical
    if ours is not None and theirs is not None and ours != theirs and written not in (0, b"", b"\x00"):
        names = [item.name.removeprefix("local-") for item in (ours, theirs)]
        if names[0] != names[1] or ours.scale != theirs.scale:
            return False
    if isinstance(written, str) and isinstance(read, bytes):
        return written.encode() == read
    if isinstance(written, bytes) and isinstance(read, str):
        return written == read.encode()
    if reader.kind == "float" and isinstance(read, float) and abs(read) < 3e38:
        read = struct.unpack("<f", struct.pack("<f", read))[0]
    if isinstance(written, bool) != isinstance(read, bool):
        return False
    return bool(written == read)
