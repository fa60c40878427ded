"""Where the names of a Python file come from, and what could change their values.

Names are compared as text, in any scope: a name that could be replaced or modified in place counts as replaced.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from registry.checkpoints.plans.python_expressions import Bound, Imported, Unresolved

FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_OWN_SCOPE: Final = (*FUNCTIONS, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CONDITIONS: Final = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.IfExp, ast.BoolOp, ast.Match)
_STARS: Final = ("pyspark.sql.types", "pyspark.sql.streaming", "pyspark.sql.streaming.stateful_processor")
_DYNAMIC: Final = frozenset({"setattr", "delattr", "exec", "eval", "globals", "vars", "__import__", "reload"})
_DYNAMIC_ATTRIBUTES: Final = frozenset({"__dict__", "__setattr__", "__delattr__", "__bases__", "__class__"})
_CHANGING: Final = frozenset(
    {
        "add",
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
        "popitem",
    }
    | {"__setitem__", "__delitem__", "__iadd__", "__init__"}
)
#: functions of PySpark and Python that take a schema without modifying it, by their last name
_HARMLESS: Final = frozenset(
    {
        "StructType", "StructField", "ArrayType", "MapType", "add", "fromJson", "fromDDL", "from_json", "from_csv",
        "from_xml", "from_avro", "from_protobuf", "schema", "createDataFrame", "udf", "pandas_udf", "udtf", "cast",
        "astype", "to", "applyInPandas", "applyInArrow", "mapInPandas", "mapInArrow", "applyInPandasWithState",
        "transformWithState", "transformWithStateInPandas", "getValueState", "getListState", "getMapState",
        "print", "len", "str", "repr", "list", "tuple", "set", "sorted", "isinstance", "type", "enumerate", "zip",
        "map", "filter", "deepcopy", "copy", "debug", "info", "warning", "error", "log", "format", "join",
    }
)  # fmt: skip
#: packages in which those names are trusted
_KNOWN_PACKAGES: Final = frozenset({"pyspark", "copy", "logging", "builtins"})


def assigned(body: Sequence[ast.AST]) -> dict[str, Bound]:
    """Return the names that statements bind in their own scope, with their value; None without a single value."""
    found: dict[str, Bound] = {}
    stack = [(each, True) for each in reversed(body)]
    while stack:
        node, is_certain = stack.pop()
        for name, value in bindings(node):
            is_same = isinstance(value, Imported) and found.get(name) == value
            found[name] = value if is_same or (is_certain and name not in found) else None
        if isinstance(node, _OWN_SCOPE):
            found.update(dict.fromkeys(_reaching_out(node)))
            continue
        inner = is_certain and not isinstance(node, _CONDITIONS)
        stack += [(child, inner) for child in reversed(list(ast.iter_child_nodes(node)))]
    return found


def _reaching_out(root: ast.AST) -> Iterator[str]:
    """Yield names that an inner scope binds outside itself."""
    for node in ast.walk(root):
        if isinstance(node, ast.Global | ast.Nonlocal):
            yield from node.names
        elif isinstance(node, ast.NamedExpr) and isinstance(root, ast.expr):
            yield node.target.id


def bindings(node: ast.AST) -> Iterator[tuple[str, Bound]]:
    """Yield the names that this node itself binds or deletes; the targets in a tuple have no value."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((each.id, value) for each in targets if isinstance(each, ast.Name))
            for each in targets:
                if not isinstance(each, ast.Name | ast.Attribute | ast.Subscript):
                    yield from _names(each)
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
            yield name, value
        case ast.AugAssign(target=target) | ast.For(target=target) | ast.AsyncFor(target=target):
            yield from _names(target)
        case ast.NamedExpr(target=target) | ast.withitem(optional_vars=ast.expr() as target):
            yield from _names(target)
        case ast.Delete(targets=targets):
            for each in targets:
                yield from _names(each)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, None
        case (
            ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name)
        ):
            yield name, None
        case ast.MatchMapping(rest=str() as name):
            yield name, None
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from ((name, None) for name in names)
        case ast.Import(names=aliases):
            for alias in aliases:
                top = alias.name.split(".")[0]
                yield (alias.asname, Imported(alias.name)) if alias.asname else (top, Imported(top))
        case ast.ImportFrom(names=aliases):
            origin = "." * node.level + (node.module or "")
            yield from ((a.asname or a.name, Imported(f"{origin}.{a.name}")) for a in aliases if a.name != "*")


def _names(target: ast.AST) -> Iterator[tuple[str, None]]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id, None


def counted(module: ast.Module) -> Counter[str]:
    """Return how often each name is bound anywhere in the file, including parameters."""
    found: Counter[str] = Counter()
    for node in ast.walk(module):
        found.update(name for name, _ in bindings(node))
        if isinstance(node, ast.arg):
            found[node.arg] += 1
    return found


def unreadable(module: ast.Module) -> Iterator[Unresolved]:
    """Yield code that may replace any name of the file."""
    for node in ast.walk(module):
        match node:
            case ast.ImportFrom(names=[ast.alias(name="*")]) if node.level or node.module not in _STARS:
                yield Unresolved(
                    node, f"the file imports everything of `{node.module or '.'}`, which may replace names of the plan"
                )
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _DYNAMIC:
                yield Unresolved(node, f"the check can't tell what `{name}(…)` changes without running the file")
            case ast.Attribute(attr=name) if name in _DYNAMIC_ATTRIBUTES:
                yield Unresolved(node, f"the check can't tell what `{name}` changes without running the file")


def changes(
    module: ast.Module, plan_names: Collection[str], owner: str, methods: Collection[str]
) -> Iterator[Unresolved]:
    """Yield code that modifies values of the plan's names, or the class that declares it."""
    names = _aliases(module, set(plan_names))
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Attribute(attr=verb, value=value)) if verb in _CHANGING and names & _receiver(value):
                yield _changed(node, names & _receiver(value))
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                inside = set(roots(node.value))
                if owner in inside or node.attr in methods:
                    yield Unresolved(
                        node, f"the file assigns `{ast.unparse(node)[:80]}`, so the class isn't what its body says"
                    )
                elif inside & names or (node.attr in plan_names and not _is_self(node.value)):
                    yield _changed(node, inside & names or {node.attr})
            case ast.Subscript(ctx=ast.Store() | ast.Del()) if names & set(roots(node.value)):
                yield _changed(node, names & set(roots(node.value)))
            case ast.AugAssign(target=target) if names & set(roots(target)):
                yield _changed(node, names & set(roots(target)))


def _changed(node: ast.expr | ast.stmt, names: set[str]) -> Unresolved:
    listed = ", ".join(sorted(names))[:80]
    return Unresolved(node, f"the file changes `{listed}` in place; give it its whole value where you assign it")


def changes_elsewhere(module: ast.Module, names: set[str], owner: str, is_on_self: bool) -> Iterator[Unresolved]:
    """Yield calls that pass a value of the plan, or `self` if it holds one, to a function of another file.

    That function may add fields, which this file doesn't show.
    """
    if not names:
        return
    shared = _aliases(module, set(names))
    imported = {
        name: value.dotted.split(".")[0]
        for node in ast.walk(module)
        for name, value in bindings(node)
        if isinstance(value, Imported)
    }
    own = {node.name for node in ast.walk(module) if isinstance(node, (*FUNCTIONS, ast.ClassDef))}
    holders = {"self", "cls", owner} if is_on_self else set()
    for node in ast.walk(module):
        if not isinstance(node, ast.Call):
            continue
        name = _last_name(node.func)
        is_known = imported.get(_first_name(node.func), "pyspark") in _KNOWN_PACKAGES
        if name in own or (name in _HARMLESS and is_known):
            continue
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        passed = {root for argument in arguments for root in _shared(argument)} & shared
        passed |= {argument.id for argument in arguments if isinstance(argument, ast.Name) and argument.id in holders}
        if passed:
            yield Unresolved(
                node,
                f"`{name or 'this call'}(…)` gets `{', '.join(sorted(passed))[:80]}` and isn't in this file, so the check"
                " can't tell whether it changes the schema",
            )


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _first_name(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def _receiver(node: ast.expr) -> set[str]:
    """Return the names whose own object a method call modifies; `StructType([…])` has its own list."""
    match node:
        case ast.Call(func=ast.Attribute(attr="add", value=value)):
            return _receiver(value)
        case ast.Call(func=ast.Name(id="StructType") | ast.Attribute(attr="StructType"), args=args, keywords=keywords):
            given = (*args, *(each.value for each in keywords))
            return {n for each in given if not isinstance(each, ast.List | ast.BinOp) for n in roots(each)}
        case ast.Call(func=func):
            return set(roots(func))
    return set(roots(node))


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def roots(node: ast.AST | None) -> Iterator[str]:
    """Return the names whose object an expression is or shares: S for `S.fields[0]` and for `StructType(S.fields)`."""
    stack = [node]
    while stack:
        match stack.pop():
            case ast.Name(id=name):
                yield name
            case ast.Attribute(attr=name, value=value):
                yield name
                stack.append(value)
            case ast.Subscript(value=value) | ast.Starred(value=value) | ast.NamedExpr(value=value):
                stack.append(value)
            case ast.Call(func=func, args=args, keywords=keywords):
                stack.append(func)
                if isinstance(func, ast.Name | ast.Attribute):
                    stack += [*args, *(each.value for each in keywords)]
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.BoolOp(values=items):
                stack += items
            case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
                stack += [left, right]


def _aliases(module: ast.Module, names: set[str]) -> set[str]:
    """Return the names plus those that may share their objects or parts of them: assigned, looped over, passed on."""
    targets_of: dict[str, list[set[str]]] = {}

    def shares(targets: set[str], sources: Iterable[str]) -> None:
        for source in set(sources):
            targets_of.setdefault(source, []).append(targets)

    parameters = {
        node.name: {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        for node in ast.walk(module)
        if isinstance(node, FUNCTIONS)
    }
    for node in ast.walk(module):
        match node:
            case ast.Assign(targets=targets, value=value):
                shares({n for each in targets for n in _stored(each)}, _shared(value))
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                shares(_stored(target), _shared(value))
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                shares(_stored(target), roots(value))
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                shares(_stored(target), roots(value))
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args, keywords=keywords) if (
                name in parameters
            ):
                shares(parameters[name], (n for each in (*args, *(k.value for k in keywords)) for n in roots(each)))
    todo, added = list(names), set[int]()
    while todo:
        for targets_ in targets_of.pop(todo.pop(), ()):
            if id(targets_) not in added:
                added.add(id(targets_))
                todo += targets_ - names
                names |= targets_
    return names - {"self", "cls"}


def _stored(target: ast.AST) -> set[str]:
    return {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(target)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store)
    }


def _shared(value: ast.expr) -> set[str]:
    """Return `roots`, except that a call's result is a new object unless it is StructType(…) or add(…)."""
    if isinstance(value, ast.Call):
        name = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
        if name not in ("add", "StructType"):
            return set()
    return set(roots(value))
