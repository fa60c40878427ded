"""Derives Avro schemas to read messages with: bare writer schemas, and one reader schema for several writers.

In the reader schema, a path has one type, and every field is nullable and is null if a writer lacks it. Records and
fields are named by numbers, so that neither an odd name nor one that two schemas use differently causes a conflict.
Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

MAX_DEPTH = 100
_KEPT: Final = ("type", "name", "namespace", "fields", "items", "values", "symbols", "size")
# The unit of an integer that counts time; kept as a property, so that a mask can show only the year.
CALENDARS: Final = {
    "date": "date",
    "timestamp-millis": "ms",
    "timestamp-micros": "us",
    "timestamp-nanos": "ns",
    "local-timestamp-millis": "ms",
    "local-timestamp-micros": "us",
    "local-timestamp-nanos": "ns",
}


class SchemaNotUsable(ValueError):
    """A writer schema that Spark must not or can't decode with; the message says why."""


def bare(writer_schema: str) -> Any:
    """Return the writer schema reduced to what its binary form depends on, plus the calendar of integers.

    Without logical types and defaults, an odd but decodable value (a date out of range) doesn't fail. Raises
    SchemaNotUsable if the text isn't an Avro schema, and for lists whose items take no byte: a few bytes of data could
    declare billions of them.
    """
    try:
        parsed = json.loads(writer_schema)
    except (ValueError, RecursionError) as error:
        raise SchemaNotUsable(f"the registered text isn't JSON: {error}") from error
    stripped = _bare(parsed, 0)
    _refuse_empty_items(stripped, {}, "")
    return stripped


def _bare(schema: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise SchemaNotUsable(f"the schema is nested more than {MAX_DEPTH} levels deep")
    if isinstance(schema, str):
        return schema
    if isinstance(schema, list):
        return [_bare(branch, depth + 1) for branch in schema]
    if not isinstance(schema, dict) or "type" not in schema:
        raise SchemaNotUsable("the registered text isn't an Avro schema")
    bare = {name: schema[name] for name in _KEPT if name in schema}
    if isinstance(schema.get("logicalType"), str) and schema["logicalType"] in CALENDARS:
        bare["calendar"] = CALENDARS[schema["logicalType"]]
    if isinstance(bare["type"], (dict, list)):
        return _bare(bare["type"], depth + 1)
    for inner in ("items", "values"):
        if inner in bare:
            bare[inner] = _bare(bare[inner], depth + 1)
    if "fields" in bare:
        bare["fields"] = [_bare_field(field, depth) for field in bare["fields"]]
    return bare


def _bare_field(field: Any, depth: int) -> dict[str, Any]:
    if not isinstance(field, dict) or "name" not in field or "type" not in field:
        raise SchemaNotUsable("the registered text has a field without name or type")
    return {"name": field["name"], "type": _bare(field["type"], depth + 1)}


def _refuse_empty_items(schema: Any, named: dict[str, bool], namespace: str) -> bool:
    """Return whether a value of this schema may take no byte; raises SchemaNotUsable for a list of those."""
    if isinstance(schema, str):
        return schema == "null" or named.get(_full_name(schema, namespace), named.get(schema, False))
    if isinstance(schema, list):
        for branch in schema:
            _refuse_empty_items(branch, named, namespace)
        return False  # a union writes the index of its branch
    kind = schema["type"]
    if kind in ("array", "map"):
        inner = schema.get("items" if kind == "array" else "values")
        empty = _refuse_empty_items(inner, named, namespace)
        if kind == "array" and empty:
            raise SchemaNotUsable("it has a list whose items take no bytes, so a few bytes could declare billions")
        return False
    namespace = _namespace(schema, namespace)
    full_name = _full_name(str(schema.get("name", "")), namespace)
    if kind in ("record", "error"):
        named[full_name] = False  # a record that contains itself needs another branch to end
        fields = [_refuse_empty_items(part["type"], named, namespace) for part in schema.get("fields", ())]
        named[full_name] = all(fields)
    elif kind == "fixed":
        named[full_name] = schema.get("size") == 0
    else:
        return bool(kind == "null" or named.get(_full_name(str(kind), namespace), False))
    return named[full_name]


def _namespace(schema: dict[str, Any], outer: str) -> str:
    name = str(schema.get("name", ""))
    return name.rpartition(".")[0] if "." in name else str(schema.get("namespace", outer))


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


MOST_NODES: Final = 2_000  # per schema expanded to a tree
MOST_SYMBOLS: Final = 40
_NUMBERS: Final = ("int", "long", "float", "double")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PRIMITIVES: Final = frozenset({*_NUMBERS, "null", "boolean", "string", "bytes"})


_Name = TypeVar("_Name")


class NotMergeable(ValueError):
    """A schema that can't join a common reader: a union of several types, a recursive type, or incompatible types."""


@dataclass
class TypeNode:
    """A resolved type: its Avro kind, whether it is nullable, and its inner types.

    `branches` are those of a writer's union in order, True for null: the bytes begin with the index of a branch.
    """

    kind: str
    nullable: bool = False
    fields: dict[str, TypeNode] = field(default_factory=dict)
    inner: TypeNode | None = None
    symbols: tuple[str, ...] = ()
    size: int = 0
    calendar: str | None = None
    branches: tuple[bool, ...] = ()


@dataclass(frozen=True)
class Path:
    """A path of the reader: its text for people, and the columns from the decoded body to it."""

    path: str
    columns: tuple[str, ...]
    node: TypeNode

    @property
    def accessor(self) -> str:
        """Return the path as an SQL expression over the column `d`."""
        return ".".join(("d", *self.columns))


def tree_of(schema: Any) -> TypeNode:
    """Expand a bare schema to a tree; raises NotMergeable."""
    return _Tree().node(schema, "", ())


class _Tree:
    def __init__(self) -> None:
        self.named: dict[str, Any] = {}
        self.namespaces: dict[str, str] = {}
        self.count = 0

    def node(self, schema: Any, namespace: str, inside: tuple[str, ...]) -> TypeNode:
        self.count += 1
        if self.count > MOST_NODES:
            raise NotMergeable("the schema is too wide")
        if isinstance(schema, list):
            return self._union(schema, namespace, inside)
        if isinstance(schema, str):
            return self._reference(schema, namespace, inside)
        kind = schema["type"]
        if kind in _PRIMITIVES:
            return TypeNode(kind, nullable=kind == "null", calendar=schema.get("calendar"))
        if kind in ("array", "map"):
            return TypeNode(kind, inner=self.node(schema["items" if kind == "array" else "values"], namespace, inside))
        if kind in ("record", "error", "enum", "fixed"):
            return self._named(schema, namespace, inside)
        return self._reference(str(kind), namespace, inside)

    def _union(self, branches: list[Any], namespace: str, inside: tuple[str, ...]) -> TypeNode:
        nulls = tuple(branch in ("null", {"type": "null"}) for branch in branches)
        others = [branch for branch, is_null in zip(branches, nulls, strict=True) if not is_null]
        if len(others) > 1:
            raise NotMergeable("a union has several types besides null")
        if not others:
            return TypeNode("null", nullable=True, branches=nulls)
        node = self.node(others[0], namespace, inside)
        if node.branches:
            raise NotMergeable("a union contains a union")
        return replace(node, nullable=node.nullable or any(nulls), branches=nulls)

    def _reference(self, name: str, namespace: str, inside: tuple[str, ...]) -> TypeNode:
        if name in _PRIMITIVES:
            return TypeNode(name, nullable=name == "null")
        for full in (name if "." in name or not namespace else f"{namespace}.{name}", name):
            if full in self.named:
                return self._named(self.named[full], self.namespaces[full], inside)
        raise NotMergeable("a type isn't defined before its use")

    def _named(self, schema: dict[str, Any], outer: str, inside: tuple[str, ...]) -> TypeNode:
        name = str(schema.get("name", ""))
        namespace = name.rpartition(".")[0] if "." in name else str(schema.get("namespace", outer))
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full in inside:
            raise NotMergeable("a type contains itself")
        self.named[full], self.namespaces[full] = schema, outer
        kind = "record" if schema["type"] == "error" else schema["type"]
        if kind == "enum":
            symbols = tuple(schema.get("symbols", ()))
            if not symbols or not all(isinstance(symbol, str) and _NAME.fullmatch(symbol) for symbol in symbols):
                raise NotMergeable("an enum's symbols aren't names")
            return TypeNode("enum", symbols=symbols)
        if kind == "fixed":
            size = schema.get("size")
            if not isinstance(size, int) or size < 0:
                raise NotMergeable("a fixed has no size")
            return TypeNode("fixed", size=size)
        node = TypeNode("record")
        for part in schema.get("fields", ()):
            node.fields[part["name"]] = self.node(part["type"], namespace, (*inside, full))
        return node


def merged(one: TypeNode, other: TypeNode) -> TypeNode:
    """Return the type that reads what both wrote; raises NotMergeable."""
    nullable = one.nullable or other.nullable
    if "null" in (one.kind, other.kind):
        typed = one if other.kind == "null" else other
        return TypeNode(typed.kind, True, typed.fields, typed.inner, typed.symbols, typed.size, typed.calendar)
    if one.kind in _NUMBERS and other.kind in _NUMBERS:
        kind = one.kind if one.kind == other.kind else "long" if {one.kind, other.kind} == {"int", "long"} else "double"
        return TypeNode(kind, nullable, calendar=one.calendar if one.calendar == other.calendar else None)
    if one.kind != other.kind or one.size != other.size:
        raise NotMergeable("a path has types that have nothing in common")
    fields = dict(one.fields)
    for name, node in other.fields.items():
        fields[name] = merged(fields[name], node) if name in fields else node
    inner = merged(one.inner, other.inner) if one.inner is not None and other.inner is not None else None
    symbols = tuple(dict.fromkeys((*one.symbols, *other.symbols)))
    return TypeNode(one.kind, nullable, fields, inner, symbols, one.size)


def common(trees: Mapping[_Name, TypeNode]) -> tuple[TypeNode | None, list[_Name]]:
    """Return a type that reads as many trees as possible, in order, and the names of those it reads."""
    reader: TypeNode | None = None
    names: list[_Name] = []
    for name, tree in trees.items():
        try:
            reader = tree if reader is None else merged(reader, tree)
        except NotMergeable:
            continue
        names.append(name)
    return reader, names


def paths(node: TypeNode) -> list[Path]:
    """Return the paths of a reader, fields in order; the insides of lists and maps have none."""
    return list(_paths(node, "", ("b",)))


def _paths(node: TypeNode, path: str, columns: tuple[str, ...]) -> Iterator[Path]:
    yield Path(path, columns, node)
    for number, (name, inner) in enumerate(node.fields.items()):
        yield from _paths(inner, f"{path}.{name}" if path else name, (*columns, f"f{number}"))


def kinds_below(tree: TypeNode, path: str = "") -> dict[str, TypeNode]:
    """Return a writer's own types by path, without fields that it lacks."""
    nodes = {path: tree}
    for name, inner in tree.fields.items():
        nodes |= kinds_below(inner, f"{path}.{name}" if path else name)
    return nodes


def size_of(node: TypeNode) -> tuple[int, int]:
    """Return the number of paths of a tree, with the insides of lists and maps, and their greatest depth."""
    inner = [size_of(below) for below in (*node.fields.values(), *filter(None, (node.inner,)))]
    return 1 + sum(number for number, _ in inner), 1 + max((depth for _, depth in inner), default=0)


def strings(node: TypeNode, path: str = "") -> set[str]:
    """Return the paths of a reader that contain text: strings, lists and maps of them, and maps for their keys."""
    paths = {path} if node.kind in ("string", "map") or (node.inner is not None and strings(node.inner)) else set()
    for name, inner in node.fields.items():
        paths |= strings(inner, f"{path}.{name}" if path else name)
    return paths


def valid_texts(node: TypeNode, accessor: str, depth: int = 0) -> str:
    """Return an SQL condition that all texts of a value are UTF-8; empty if it has none. Null is valid.

    Spark takes a string's bytes as they are; decoders of other languages reject them.
    """
    if node.kind == "string":
        return f"coalesce(is_valid_utf8({accessor}), true)"
    if node.kind in ("array", "map"):
        item = f"e{depth}"
        inner = valid_texts(node.inner, item, depth + 1) if node.inner is not None else ""
        values = f"map_values({accessor})" if node.kind == "map" else accessor
        conditions = [f"forall({values}, {item} -> {inner})"] if inner else []
        if node.kind == "map":
            conditions.append(f"forall(map_keys({accessor}), {item} -> is_valid_utf8({item}))")
        return " AND ".join(f"coalesce({condition}, true)" for condition in conditions)
    parts = [valid_texts(inner, f"{accessor}.f{number}", depth) for number, inner in enumerate(node.fields.values())]
    return " AND ".join(filter(None, parts))


#: its first byte occurs only once, so bytes that are left over shift it and are detected
END: Final = bytes.fromhex("8f53c4f1a27b0e96")
_AFTER: Final = {"name": "e", "type": {"type": "fixed", "name": "e", "size": len(END)}}


def reader_text(reader: TypeNode, only: frozenset[str] | None = None) -> str:
    """Return the reader schema: a record of the body `b`, the bytes `e` after it, and `ok`, true if it was decoded.

    With `only`, the schema has just these paths and their parents: the rest is skipped while reading.
    """
    fields = [
        {"name": "b", "type": _written(reader, reader, "b", "", only), "default": None},
        _AFTER,
        {"name": "ok", "type": "boolean", "default": True},
    ]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


def writer_text(writer: TypeNode, reader: TypeNode) -> str:
    """Return a writer schema with the reader's names, for a body followed by END: other bytes there are left over."""
    fields = [{"name": "b", "type": _written(writer, reader, "b", "", None, writer=True)}, _AFTER]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


def _written(
    node: TypeNode, reader: TypeNode, name: str, path: str, only: frozenset[str] | None, *, writer: bool = False
) -> Any:
    """Return a type as Avro's JSON; `reader` is the common type at the same path, whose numbering both share."""
    kind: Any = node.kind
    if kind == "record":
        fields = []
        for number, (field_name, of_reader) in enumerate(reader.fields.items()):
            below = f"{path}.{field_name}" if path else field_name
            if field_name in node.fields and (only is None or _leads_to(below, only)):
                inner = _written(node.fields[field_name], of_reader, f"{name}_{number}", below, only, writer=writer)
                fields.append({"name": f"f{number}", "type": inner} | ({} if writer else {"default": None}))
        if writer:
            fields = _in_writing_order(node, fields, reader)
        kind = {"type": "record", "name": name, "fields": fields}
    elif kind in ("array", "map"):
        inner_reader = reader.inner or TypeNode("null", nullable=True)
        inner = _written(node.inner or inner_reader, inner_reader, f"{name}_i", f"{path}[]", None, writer=writer)
        kind = {"type": kind, ("items" if kind == "array" else "values"): inner}
    elif kind == "enum":
        kind = {"type": "enum", "name": name, "symbols": list(node.symbols)}
    elif kind == "fixed":
        kind = {"type": "fixed", "name": name, "size": node.size}
    if writer:
        return [("null" if is_null else kind) for is_null in node.branches] or kind
    return "null" if node.kind == "null" else ["null", kind]


def _leads_to(path: str, only: frozenset[str]) -> bool:
    return any(target == path or target.startswith(f"{path}.") for target in only)


def _in_writing_order(node: TypeNode, fields: list[dict[str, Any]], reader: TypeNode) -> list[dict[str, Any]]:
    """Return the fields in the writer's order, which is that of the bytes."""
    numbers = {name: f"f{number}" for number, name in enumerate(reader.fields)}
    by_name = {part["name"]: part for part in fields}
    return [by_name[numbers[name]] for name in node.fields]
