"""What may keep code of a Python file from running, and how an error names it.

Some statements and calls end a run before it comes to a declaration: `return`, `raise`, `assert`, `sys.exit()`. Others
contain code that runs under a condition, or later: `if`, `for`, a function.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from registry.checkpoints.plans.python_expressions import MAX_SHOWN, Unresolved
from registry.checkpoints.plans.python_names import FUNCTIONS

_EXITS: Final = frozenset({"exit", "quit", "_exit", "abort", "kill", "execv", "execve", "execvp"})
_MODULES: Final = frozenset({"sys", "os", "signal", "posix", "builtins"})
_CONSTRUCTS: Final = (
    (ast.If, "an `if`"),
    ((ast.For, ast.AsyncFor), "a `for` loop"),
    (ast.While, "a `while` loop"),
    ((ast.Try, ast.TryStar), "a `try`"),
    ((ast.With, ast.AsyncWith), "a `with`"),
    (ast.Match, "a `match`"),
    ((ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda), "a function of its own"),
    (ast.ClassDef, "a class of its own"),
    (ast.IfExp, "an `if` expression"),
    (ast.BoolOp, "an `and` or `or`"),
    (ast.Compare, "a comparison"),
    ((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), "a comprehension"),
)


def construct_words(node: ast.AST) -> str:
    """What may keep the code inside of it from running, in words."""
    return next(
        (words for kinds, words in _CONSTRUCTS if isinstance(node, kinds)), "code that the check doesn't follow"
    )


def call_words(node: ast.Call) -> str:
    """A call by its method and first argument: `getValueState("totals")`."""
    verb = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)[:MAX_SHOWN]
    match next(iter([*node.args, *(keyword.value for keyword in node.keywords)]), None):
        case None:
            argument = ""
        case ast.Constant(value=str() as text):
            argument = json.dumps(text[:MAX_SHOWN], ensure_ascii=False)
        case expression:
            argument = ast.unparse(expression)[:MAX_SHOWN]
    return f"`{verb}({argument})`"


def end_of(root: ast.AST, ending: Collection[str] = (), *, returns: bool = True) -> ast.AST | None:
    """The first node that may end what runs; without `returns`, what ends more than its own function.

    `ending` names functions that may end the run themselves.
    """
    stack = list(ast.iter_child_nodes(root)) if isinstance(root, FUNCTIONS) else [root]
    stack.reverse()
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Raise | ast.Assert) or (returns and isinstance(node, ast.Return)):
            return node
        if isinstance(node, ast.Call) and _exits(node, ending):
            return node
        stack += reversed(list(ast.iter_child_nodes(node)))
    return None


def _exits(node: ast.Call, ending: Collection[str]) -> bool:
    match node.func:
        case ast.Name(id=name):
            return name in ("exit", "quit", "_exit", "SystemExit") or name in ending
        case ast.Attribute(attr=name, value=ast.Name(id=module)):
            return module in _MODULES and name in _EXITS
    return False


def end_words(node: ast.AST) -> str:
    """What ends the run, with its line."""
    match node:
        case ast.Return():
            words = "the `return`"
        case ast.Raise():
            words = "the `raise`"
        case ast.Assert():
            words = "the `assert`"
        case ast.Call():
            words = f"the call of `{ast.unparse(node.func)[:MAX_SHOWN]}`"
        case _:
            words = "what ends it"
    return f"{words} in line {getattr(node, 'lineno', 0)}"


def ending_functions(module: ast.Module) -> frozenset[str]:
    """The functions of the file's top level that may end the run when they are called, also through each other."""
    functions = {node.name: node for node in module.body if isinstance(node, FUNCTIONS)}
    ending: set[str] = set()
    has_grown = True
    while has_grown:
        new = {name for name, node in functions.items() if name not in ending and end_of(node, ending, returns=False)}
        ending |= new
        has_grown = bool(new)
    return frozenset(ending)


def unreached(module: ast.Module, targets: Mapping[ast.AST, str]) -> Iterator[Unresolved]:
    """Targets that a statement before them surely keeps from running; the mapping has their names.

    One that ends the run under a condition doesn't count here: then either nothing of it starts, or the target runs.
    """
    stack: list[tuple[ast.AST, ast.AST | None]] = [(module, None)]
    while stack:
        node, end = stack.pop()
        if end is not None and node in targets and isinstance(node, ast.expr | ast.stmt):
            yield Unresolved(node, f"{targets[node]} comes after {end_words(end)}, so it never runs")
        for _, value in ast.iter_fields(node):
            inner = end
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    stack.append((child, inner))
                if isinstance(child, ast.stmt):
                    inner = inner or _sure_end(child)


def _sure_end(statement: ast.stmt) -> ast.AST | None:
    """The node of a statement that surely ends the run, or the function that it is in."""
    match statement:
        case ast.Raise() | ast.Return():
            return statement
        case ast.Expr(value=ast.Call() as call) if _exits(call, ()):
            return call
        case ast.With(body=body) if len(statement.items) == 1:
            manager = statement.items[0].context_expr
            is_suppressing = isinstance(manager, ast.Call) and "suppress" in ast.unparse(manager.func)
            return None if is_suppressing else next(filter(None, map(_sure_end, body)), None)
    return None
