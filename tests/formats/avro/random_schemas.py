"""Random Avro schemas, random changes of them and random data; made without the engine's own walks."""

from __future__ import annotations

import copy
import json
import struct
from random import Random
from typing import Any

from registry.formats.avro.datum import branch_name
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


PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL = (
    {"type": "int", "logicalType": "date"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3},
    {"type": "string", "logicalType": "uuid"},
    {"type": "string", "avro.java.string": "String"},
    {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 5},
    {"type": "bytes", "logicalType": "decimal", "precision": "4"},
    {"type": "bytes", "logicalType": "big-decimal"},
    {"type": "double", "connect.doc": "a number"},
)
NAMES = ("a", "b", "c", "d", "e", "f")
TYPE_NAMES = ("A", "B", "C", "D")
NAMESPACES = (None, None, "x", "y.z")
SYMBOLS = ("RED", "GREEN", "BLUE", "GREY")
DEFAULTS: dict[str, Any] = {
    "null": None,
    "boolean": False,
    "int": 7,
    "long": 7,
    "float": 1.5,
    "double": 1e10,
    "bytes": "\u00ff",
    "string": 'é"\n',
}
# Values at the edges of the types. In a union one may belong to another branch than a decoder takes it for.
DEFAULT_NUMBERS = (2**31 - 1, 2**31, 2**40, -(2**63), 1.5, 1e300, 16777217, 2**53 + 1)
DEFAULT_TEXTS = ("NaN", "", "日本", "ab", "RED", "é")
EDGES: dict[str, tuple[Any, ...]] = {
    "null": (None,),
    "boolean": (True,),
    "int": DEFAULT_NUMBERS[:1],
    "long": (*DEFAULT_NUMBERS[:4], 2**53 + 1),
    "float": (*DEFAULT_NUMBERS, "NaN"),
    "double": (*DEFAULT_NUMBERS, "NaN"),
    "bytes": ("", "ab", "é"),
    "string": DEFAULT_TEXTS,
}


class SchemaMaker:
    """Makes one random schema as JSON values; `defined` are the full names that may be used by name."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.defined: dict[str, str] = {}
        self.open: list[str] = []

    def schema(self) -> Any:
        """A root: mostly a record."""
        return self.record(3, None) if self.random.random() < 0.85 else self.type(3, None)

    def type(self, depth: int, namespace: str | None, *, in_union: bool = False) -> Any:
        """Any type; never a union inside of a union."""
        roll = self.random.random()
        if depth <= 0 or roll < 0.35:
            return self.random.choice(PRIMITIVES)
        if roll < 0.42:
            return copy.deepcopy(self.random.choice(LOGICAL))
        if roll < 0.52 and self.defined:
            return self.reference(in_union)
        if roll < 0.60:
            return {"type": "array", "items": self.type(depth - 1, namespace)}
        if roll < 0.66:
            return {"type": "map", "values": self.type(depth - 1, namespace)}
        if roll < 0.80 and not in_union:
            return self.union(depth, namespace)
        if roll < 0.86:
            return self.enum(namespace)
        if roll < 0.91:
            return self.fixed(namespace)
        return self.record(depth - 1, namespace)

    def reference(self, in_union: bool) -> Any:
        """A type by its name; one that isn't finished only where a datum can end."""
        name = self.random.choice(list(self.defined))
        if name not in self.open or in_union:
            return name
        return {"type": self.random.choice(("array", "map")), "items": name, "values": name}

    def union(self, depth: int, namespace: str | None) -> list[Any]:
        """A union of one to four branches, often with null first."""
        branches: list[Any] = ["null"] if self.random.random() < 0.6 else []
        seen = set(branches)
        for _ in range(self.random.randint(1, 3)):
            branch = self.type(depth - 1, namespace, in_union=True)
            key = self.key(branch)
            if key not in seen:
                seen.add(key)
                branches.append(branch)
        named = [branch for branch in branches if isinstance(branch, dict) and "name" in branch]
        if named and self.random.random() < 0.3:
            branches.insert(self.random.randint(0, len(branches)), self.namesake(self.random.choice(named)))
        return branches

    def namesake(self, branch: dict[str, Any]) -> Any:
        """A type of the same kind and simple name in a namespace of its own."""
        space = f"n{len(self.defined)}"
        full = f"{space}.{branch['name']}"
        self.defined[full] = branch["type"]
        twin: dict[str, Any] = {"type": branch["type"], "name": branch["name"], "namespace": space}
        if branch["type"] == "record":
            names = self.random.sample(NAMES, self.random.randint(0, 2))
            fields = [{"name": name, "type": "int", "default": 7} for name in names]
            kept = [field for field in branch["fields"] if field["type"] in PRIMITIVES and field["name"] not in names]
            return {**twin, "fields": [*copy.deepcopy(kept), *fields]}
        if branch["type"] == "enum":
            return {**twin, "symbols": self.random.sample(SYMBOLS, self.random.randint(1, 4))}
        return {**twin, "size": self.random.choice((branch["size"], 2))}

    def key(self, branch: Any) -> str:
        """What must be unique in a union."""
        if isinstance(branch, str):
            return branch
        if "name" in branch:
            space = branch.get("namespace")
            return f"{space}.{branch['name']}" if space else str(branch["name"])
        return str(branch["type"])

    def name(self, kind: str, namespace: str | None) -> dict[str, Any] | None:
        """A free name for a named type; None if there is none left."""
        for _ in range(6):
            simple = self.random.choice(TYPE_NAMES)
            own = self.random.choice(NAMESPACES)
            space = own or namespace
            full = f"{space}.{simple}" if space else simple
            if full not in self.defined:
                self.defined[full] = kind
                named: dict[str, Any] = {"type": kind, "name": simple}
                if own:
                    named["namespace"] = own
                if self.random.random() < 0.15:
                    named["aliases"] = [self.random.choice((*TYPE_NAMES, "x.A", "y.z.B", "x.C"))]
                if self.random.random() < 0.1:
                    named["doc"] = "a doc"
                return named
        return None

    def enum(self, namespace: str | None) -> Any:
        """An enum of one to four symbols, sometimes with a default."""
        named = self.name("enum", namespace)
        if named is None:
            return "string"
        named["symbols"] = self.random.sample(SYMBOLS, self.random.randint(1, 4))
        if self.random.random() < 0.3:
            named["default"] = self.random.choice(named["symbols"])
        return named

    def fixed(self, namespace: str | None) -> Any:
        """A fixed of one to three bytes."""
        named = self.name("fixed", namespace)
        if named is None:
            return "bytes"
        named["size"] = self.random.randint(1, 3)
        if self.random.random() < 0.2:
            named.update(logicalType="decimal", precision=self.random.choice((1, 2, 9)))
        return named

    def record(self, depth: int, namespace: str | None) -> Any:
        """A record of up to five fields."""
        named = self.name("record", namespace)
        if named is None:
            return "long"
        space = named.get("namespace") or namespace
        names = self.random.sample(NAMES, self.random.randint(0, 5))
        self.open.append(f"{space}.{named['name']}" if space else named["name"])
        named["fields"] = [self.field(name, depth, space) for name in names]
        self.open.pop()
        return named

    def field(self, name: str, depth: int, namespace: str | None) -> dict[str, Any]:
        """A field, sometimes with a default, aliases, an order or a doc."""
        field: dict[str, Any] = {"name": name, "type": self.type(depth, namespace)}
        if self.random.random() < 0.35:
            add_default(field, self.random)
        if self.random.random() < 0.06:
            field["aliases"] = self.random.sample(NAMES, self.random.randint(1, 2))
        if self.random.random() < 0.05:
            field["order"] = "descending"
        return field


def add_default(field: dict[str, Any], random: Random) -> None:
    """A default that fits the field's type, where a simple one exists; sometimes one at an edge."""
    type_ = field["type"]
    one = random.choice(type_) if type_ and isinstance(type_, list) else type_
    if random.random() < 0.3 and isinstance(one, str) and one in EDGES:
        field["default"] = random.choice(EDGES[one])
        return
    found = default_of(type_, random)
    if found is not NO_DEFAULT:
        field["default"] = found


NO_DEFAULT = object()


def default_of(type_: Any, random: Random) -> Any:
    """A default of a type, NO_DEFAULT where no simple one exists; a record's may leave out what has its own."""
    if isinstance(type_, list):
        type_ = random.choice(type_) if type_ else None
    kind = type_["type"] if isinstance(type_, dict) else type_
    if not isinstance(kind, str):
        return NO_DEFAULT
    if kind in DEFAULTS:
        return DEFAULTS[kind]
    if kind in ("array", "map") and isinstance(type_, dict):
        inner = default_of(type_["items" if kind == "array" else "values"], random)
        is_empty = inner is NO_DEFAULT or random.random() < 0.5
        return ([] if is_empty else [inner]) if kind == "array" else ({} if is_empty else {"k": inner})
    if kind == "enum" and isinstance(type_, dict):
        return type_["symbols"][0]
    if kind == "fixed" and isinstance(type_, dict):
        return "f" * type_["size"]
    if kind == "record" and isinstance(type_, dict):
        return _default_of_record(type_, random)
    return NO_DEFAULT


def _default_of_record(record: dict[str, Any], random: Random) -> Any:
    value = {}
    for field in record["fields"]:
        if "default" in field and random.random() < 0.6:
            continue
        value[field["name"]] = default_of(field["type"], random)
    return NO_DEFAULT if NO_DEFAULT in value.values() else value


def changed(schema: Any, random: Random, changes: int) -> Any:
    """A copy of a schema with some random changes; it may not be valid."""
    result = copy.deepcopy(schema)
    for _ in range(changes):
        holder = {"root": result}
        places = list(_places(holder))
        _change(*random.choice(places), random)
        result = holder["root"]
    return result


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        if isinstance(item, (dict, list)) or key in ("type", "items", "values", "root", "name", "size", "aliases"):
            yield value, key
        if isinstance(item, (dict, list)):
            yield from _places(item)


def _change(holder: Any, key: Any, random: Random) -> None:
    value = holder[key]
    maker = SchemaMaker(random)
    maker.defined = {"A": "record"} if random.random() < 0.2 else {}
    if key == "fields":
        _change_fields(value, maker, random)
    elif key == "symbols":
        holder[key] = random.sample(SYMBOLS, random.randint(1, 4))
    elif key == "size":
        holder[key] = random.randint(1, 3)
    elif key == "name":
        holder[key] = random.choice(NAMES if value in NAMES else TYPE_NAMES)
        if random.random() < 0.5:
            holder["aliases"] = [value]
    elif key == "aliases":
        holder.pop("aliases")
    elif isinstance(value, dict) and "default" in value and random.random() < 0.5:
        value.pop("default")
    elif isinstance(value, dict) and "name" in value and "type" in value and "fields" not in value:
        add_default(value, random)
    elif isinstance(value, list) and value and key != "fields":
        _change_union(value, maker, random)
    elif not isinstance(value, dict) or key in ("type", "items", "values", "root"):
        _change_type(holder, key, maker, random)


def _change_fields(fields: list[Any], maker: SchemaMaker, random: Random) -> None:
    roll = random.random()
    if fields and roll < 0.35:
        fields.pop(random.randrange(len(fields)))
    elif roll < 0.75:
        fields.insert(random.randint(0, len(fields)), maker.field(random.choice(NAMES), 1, None))
    else:
        random.shuffle(fields)


def _change_union(union: list[Any], maker: SchemaMaker, random: Random) -> None:
    roll = random.random()
    if roll < 0.2:
        random.shuffle(union)
    elif roll < 0.55:
        union.pop(random.randrange(len(union)))
    else:
        union.insert(random.randint(0, len(union)), maker.type(1, None, in_union=True))


def _change_type(holder: Any, key: Any, maker: SchemaMaker, random: Random) -> None:
    value = holder[key]
    roll = random.random()
    if roll < 0.25 and not isinstance(value, list):
        holder[key] = ["null", value] if value != "null" else ["null", "int"]
    elif roll < 0.55:
        holder[key] = random.choice(PRIMITIVES)
    elif roll < 0.75 and isinstance(value, dict) and "namespace" in value:
        value["namespace"] = random.choice(("x", "y.z", "w"))
    else:
        holder[key] = maker.type(1, None)
    if isinstance(holder, dict):
        holder.pop("default", None)


def random_pair(seed: int) -> tuple[str, str]:
    """Two schema texts, of which the second is a changed first one or an independent one; the same for a seed."""
    random = Random(seed)
    first = SchemaMaker(random).schema()
    is_other = random.random() < 0.08
    second = SchemaMaker(random).schema() if is_other else changed(first, random, random.randint(1, 3))
    return json.dumps(first), json.dumps(second)
