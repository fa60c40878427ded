"""Random Avro schemas, and random changes of them: pairs as they come up when schemas evolve, and worse."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

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
NUMBERS = (2**31 - 1, 2**31, 2**40, -(2**63), 1.5, 1e300, 16777217, 2**53 + 1)
TEXTS = ("NaN", "", "日本", "ab", "RED", "é")
EDGES: dict[str, tuple[Any, ...]] = {
    "null": (None,),
    "boolean": (True,),
    "int": NUMBERS[:1],
    "long": (*NUMBERS[:4], 2**53 + 1),
    "float": (*NUMBERS, "NaN"),
    "double": (*NUMBERS, "NaN"),
    "bytes": ("", "ab", "é"),
    "string": TEXTS,
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
