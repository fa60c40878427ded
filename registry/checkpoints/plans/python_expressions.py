"""Evaluates an expression of a Python file as far as schemas need it; reads the syntax tree and never executes it.

It supports texts, numbers, lists, names that are assigned once, and PySpark's types: `StructType([StructField("a",
LongType())])`, `StructType().add("a", "long")`, `StructType.fromDDL("a BIGINT")`, `BASE.fields + […]`. Anything else is
Unresolved.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from registry.checkpoints.plans.ddl import PLAIN, parse_ddl
from registry.errors import InvalidSchema

MAX_STEPS: Final = 200_000  # per file: stops names that double each other
MAX_LENGTH: Final = 1_000_000  # characters of a text, items of a list
MAX_SHOWN: Final = 80  # characters of a piece of code in an error

# PySpark's classes for types without parameters → the name in JSON
_CLASSES: Final[Mapping[str, str]] = {
    "BooleanType": "boolean",
    "ByteType": "byte",
    "ShortType": "short",
    "IntegerType": "integer",
    "LongType": "long",
    "FloatType": "float",
    "DoubleType": "double",
    "StringType": "string",
    "BinaryType": "binary",
    "DateType": "date",
    "TimestampType": "timestamp",
    "TimestampNTZType": "timestamp_ntz",
    "NullType": "void",
    "VariantType": "variant",
    "CalendarIntervalType": "interval",
}
_NAMES_IN_JSON: Final = frozenset({*PLAIN.values(), "string"})
_NEEDED: Final = object()


class Unresolved(Exception):
    """An expression whose value can't be known without running the file; `node` is its position."""

    def __init__(self, node: ast.expr | ast.stmt, why: str) -> None:
        super().__init__(why)
        self.node = node
        self.why = why


def code(node: ast.AST) -> str:
    """Return a piece of the file for an error, truncated if it is long."""
    text = ast.unparse(node)
    return f"`{text}`" if len(text) <= MAX_SHOWN else f"`{text[:MAX_SHOWN]}…`"


@dataclass(frozen=True)
class TypeValue:
    """A PySpark data type, as its JSON value."""

    json: Any


@dataclass(frozen=True)
class FieldValue:
    """A StructField, as its JSON value."""

    json: dict[str, Any]


@dataclass(frozen=True)
class Imported:
    """The target of an import, by its full name."""

    dotted: str


Bound = ast.expr | Imported | None  # the value of a name; None if it can't be known


@dataclass
class Scope:
    """Names that can be looked up at a position: name → its value. Attributes of self have scopes of their own."""

    names: Mapping[str, Bound]
    attributes: Mapping[str, tuple[ast.expr, Scope] | None] = field(default_factory=dict)
    outer: Scope | None = None
    self_name: str = ""


class Evaluator:
    """Evaluates expressions of one file, with one step counter for all."""

    def __init__(self) -> None:
        self._steps = 0
        self._pending: list[ast.expr] = []
        self.used: set[str] = set()  # names and attributes that were looked up
        self.mutable: set[str] = set()  # those whose value can be modified by a function that receives it
        self.is_mutable_on_self = False  # whether one of those is an attribute of self or its class

    def value(self, node: ast.expr, scope: Scope) -> Any:
        """Return the value; raises Unresolved, also for a name that is defined by itself."""
        self._steps += 1
        if self._steps > MAX_STEPS or len(self._pending) > 200:
            raise Unresolved(node, "the check needs too many steps to work this out")
        if any(pending is node for pending in self._pending):
            raise Unresolved(node, "this value is defined by itself")
        self._pending.append(node)
        try:
            return self._value(node, scope)
        finally:
            self._pending.pop()

    def _value(self, node: ast.expr, scope: Scope) -> Any:
        match node:
            case ast.Constant(value=str() | int() | float() | bool() | None):
                return node.value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
                return -number
            case ast.Name(id=name):
                return self._named(node, name, scope)
            case ast.Attribute():
                return self._attribute(node, scope)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return self._items(items, scope)
            case ast.Dict(keys=keys, values=values):
                return {self._key(node, key, scope): self.value(v, scope) for key, v in zip(keys, values, strict=True)}
            case ast.BinOp(op=ast.Add() | ast.Mult()):
                return self._arithmetic(node, scope)
            case ast.Call():
                return self._call(node, scope)
        raise Unresolved(node, "the check reads texts, types and names here, and this is none of them")

    def _key(self, node: ast.expr, key: ast.expr | None, scope: Scope) -> Any:
        text = self.value(key, scope) if key is not None else None
        if not isinstance(text, str):
            raise Unresolved(key or node, "the key of a dictionary is not a text")
        return text

    def _named(self, node: ast.expr, name: str, scope: Scope | None) -> Any:
        while scope is not None:
            if name in scope.names:
                assigned = scope.names[name]
                self.used.add(name)
                if not isinstance(assigned, ast.expr):
                    why = "it is a parameter, an import, or assigned twice"
                    raise Unresolved(node, f"`{name}` has no single value here: {why}")
                return self._noted(name, self.value(assigned, scope))
            scope = scope.outer
        raise Unresolved(node, f"the file doesn't assign `{name}`")

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Any:
        name = node.attr
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if owner and owner in (scope.self_name, "self", "cls") and name in scope.attributes:
            assigned = scope.attributes[name]
            self.used.add(name)
            if assigned is not None:
                value = self._noted(name, self.value(*assigned))
                self.is_mutable_on_self |= name in self.mutable
                return value
            raise Unresolved(
                node, f"`{owner}.{name}` has no single value: it is assigned twice, or comes from a parameter"
            )
        if name == "fields":
            struct = self.value(node.value, scope)
            if isinstance(struct, TypeValue) and isinstance(struct.json, dict) and "fields" in struct.json:
                return [FieldValue(field_json) for field_json in struct.json["fields"]]
        raise Unresolved(node, f"the check can't tell the value of {code(node)} without running the file")

    def _noted(self, name: str, value: Any) -> Any:
        inner = value.json if isinstance(value, TypeValue) else value
        if isinstance(inner, list | dict | FieldValue):
            self.mutable.add(name)
        return value

    def _items(self, items: list[ast.expr], scope: Scope) -> list[Any]:
        values: list[Any] = []
        for item in items:
            inner = item.value if isinstance(item, ast.Starred) else item
            value = self.value(inner, scope)
            values += value if isinstance(item, ast.Starred) and isinstance(value, list) else [value]
            self._bound(item, values)
        return values

    def _bound(self, node: ast.expr, value: Any) -> None:
        if isinstance(value, str | list) and len(value) > MAX_LENGTH:
            raise Unresolved(node, f"this value grows beyond {MAX_LENGTH:,} items")

    def _arithmetic(self, node: ast.BinOp, scope: Scope) -> Any:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if isinstance(node.op, ast.Mult) and type(left) is int and type(right) is int:
            if max(abs(left), abs(right)) < 2**63:
                return left * right
        elif isinstance(node.op, ast.Add) and type(left) is type(right) and isinstance(left, str | list):
            self._bound(node, left)
            self._bound(node, right)
            return left + right
        raise Unresolved(node, "the check doesn't do this calculation")

    def _call(self, node: ast.Call, scope: Scope) -> Any:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "add":
            return self._add(node, node.func.value, scope)
        name = origin(node.func, scope)
        if name in ("fromDDL", "_parse_datatype_string"):
            (text,) = self._arguments(node, scope, ("ddl", _NEEDED))
            return TypeValue(self._ddl(node, text))
        if name in _CLASSES:
            return TypeValue(_CLASSES[name])
        maker = _MAKERS.get(name)
        if maker is None:
            raise Unresolved(
                node, f"the check can't tell what `{name or 'this call'}(…)` returns without running the file"
            )
        return maker(self, node, scope)

    def _arguments(self, node: ast.Call, scope: Scope, *parameters: tuple[str, Any]) -> list[Any]:
        """Return the values of a call's arguments, by position or name; those with default _NEEDED are required."""
        return [
            self.value(argument, scope) if argument is not None else default
            for argument, default in zip(
                arguments(node, *(name for name, _ in parameters)), (d for _, d in parameters), strict=True
            )
            if argument is not None or default is not _NEEDED or _missing(node)
        ]

    def _ddl(self, node: ast.expr, text: Any) -> dict[str, Any]:
        if not isinstance(text, str):
            raise Unresolved(node, "this takes a DDL text")
        try:
            return parse_ddl(text)
        except InvalidSchema as error:
            raise Unresolved(node, f"this is not a DDL text that Spark reads: {error.placed}") from None

    def _type(self, node: ast.expr, value: Any, *, may_be_text: bool = False) -> Any:
        if isinstance(value, TypeValue):
            return value.json
        if may_be_text and isinstance(value, str) and value in _NAMES_IN_JSON:
            return value
        raise Unresolved(node, "this takes a data type of PySpark")

    def schema(self, node: ast.expr, scope: Scope) -> dict[str, Any]:
        """Return the StructType of an argument, which is a StructType or its DDL; raises Unresolved."""
        value = self.value(node, scope)
        if isinstance(value, str):
            return self._ddl(node, value)
        if isinstance(value, TypeValue) and isinstance(value.json, dict) and value.json.get("type") == "struct":
            return value.json
        raise Unresolved(node, "the schema is neither a StructType nor a DDL text")

    def _struct(self, node: ast.Call, scope: Scope) -> TypeValue:
        (fields,) = self._arguments(node, scope, ("fields", None))
        listed = fields or []
        if not isinstance(listed, list) or not all(isinstance(item, FieldValue) for item in listed):
            raise Unresolved(node, "a StructType takes a list of StructFields")
        return TypeValue({"type": "struct", "fields": [item.json for item in listed]})

    def _field(self, node: ast.Call, scope: Scope, *, may_be_text: bool = False) -> FieldValue:
        parameters = (("name", _NEEDED), ("dataType", _NEEDED), ("nullable", True), ("metadata", None))
        name, kind, nullable, metadata = self._arguments(node, scope, *parameters)
        if not isinstance(name, str) or not isinstance(nullable, bool):
            raise Unresolved(node, "a StructField takes a text as its name, and True or False for nullable")
        made = {"name": name, "type": self._type(node, kind, may_be_text=may_be_text), "nullable": nullable}
        return FieldValue({**made, "metadata": metadata or {}})

    def _add(self, node: ast.Call, owner: ast.expr, scope: Scope) -> TypeValue:
        struct = self.schema(owner, scope)
        if len(node.args) == 1 and not node.keywords:
            added = self.value(node.args[0], scope)
            if not isinstance(added, FieldValue):
                raise Unresolved(node, "`add` takes a StructField, or a name and a type")
        else:
            renamed = [
                ast.keyword("name" if k.arg == "field" else "dataType" if k.arg == "data_type" else k.arg, k.value)
                for k in node.keywords
            ]
            call = ast.copy_location(ast.Call(node.func, node.args, renamed), node)
            added = self._field(call, scope, may_be_text=True)
        return TypeValue({"type": "struct", "fields": [*struct["fields"], added.json]})

    def _array(self, node: ast.Call, scope: Scope) -> TypeValue:
        element, with_null = self._arguments(node, scope, ("elementType", _NEEDED), ("containsNull", True))
        return TypeValue({"type": "array", "elementType": self._type(node, element), "containsNull": with_null is True})

    def _map(self, node: ast.Call, scope: Scope) -> TypeValue:
        parameters = (("keyType", _NEEDED), ("valueType", _NEEDED), ("valueContainsNull", True))
        key, value, with_null = self._arguments(node, scope, *parameters)
        made = {"type": "map", "keyType": self._type(node, key), "valueType": self._type(node, value)}
        return TypeValue({**made, "valueContainsNull": with_null is True})

    def _decimal(self, node: ast.Call, scope: Scope) -> TypeValue:
        precision, scale = self._arguments(node, scope, ("precision", 10), ("scale", 0))
        if type(precision) is not int or type(scale) is not int:
            raise Unresolved(node, "a DecimalType takes two numbers")
        return TypeValue(self._ddl(node, f"d DECIMAL({precision},{scale})")["fields"][0]["type"])


_MAKERS: Final[Mapping[str, Callable[[Evaluator, ast.Call, Scope], Any]]] = {
    "StructType": Evaluator._struct,
    "StructField": Evaluator._field,
    "ArrayType": Evaluator._array,
    "MapType": Evaluator._map,
    "DecimalType": Evaluator._decimal,
}


def origin(node: ast.expr, scope: Scope) -> str:
    """Return PySpark's name of a node, resolving imports; raises Unresolved if it may be something else.

    A name that the file doesn't bind is taken as is: it may come from `from pyspark.sql.types import *`.
    """
    parts: list[str] = []
    at = node
    while isinstance(at, ast.Attribute):
        parts.append(at.attr)
        at = at.value
    if not isinstance(at, ast.Name):
        raise Unresolved(
            node, f"the check can't tell what `{ast.unparse(node)[:80]}(…)` returns without running the file"
        )
    inner: Scope | None = scope
    while inner is not None and at.id not in inner.names:
        inner = inner.outer
    if inner is None:
        dotted = at.id
        is_known = not parts or (parts == ["fromDDL"] and dotted == "StructType")
    else:
        bound = inner.names[at.id]
        dotted = bound.dotted if isinstance(bound, Imported) else ""
        is_known = dotted.split(".")[0] == "pyspark"
    if not is_known:
        raise Unresolved(
            node, f"`{ast.unparse(node)[:80]}(…)` may not be PySpark's, so the check can't tell what it returns"
        )
    return [*dotted.split("."), *reversed(parts)][-1]


def arguments(node: ast.Call, *names: str) -> list[ast.expr | None]:
    """Return a call's arguments in the order of the parameters' names; None for a missing one. Raises Unresolved."""
    if any(isinstance(argument, ast.Starred) for argument in node.args) or any(
        argument.arg is None for argument in node.keywords
    ):
        raise Unresolved(node, "the call takes arguments with `*`, which the check can't read without running the file")
    named = {argument.arg: argument.value for argument in node.keywords}
    return [node.args[at] if at < len(node.args) else named.get(name) for at, name in enumerate(names)]


def _missing(node: ast.Call) -> bool:
    raise Unresolved(node, "the call lacks an argument that it needs")
