"""Finds the calls that a StatefulProcessor's `init` certainly makes on its handle, through methods and branches."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Final

from registry.checkpoints.plans.python_expressions import MAX_SHOWN, Unresolved
from registry.checkpoints.plans.python_names import FUNCTIONS, assigned

_EXITS: Final = frozenset({"exit", "quit", "_exit", "abort", "kill", "execv", "execve", "execvp"})
_MODULES: Final = frozenset({"sys", "os", "signal", "posix", "builtins"})
#: iterators without an end, by the last name of the call that creates them
_ENDLESS: Final = frozenset({"count", "cycle", "repeat", "iter"})
#: methods of PySpark's StatefulProcessorHandle that declare nothing
_TIMERS: Final = ("registerTimer", "deleteTimer", "listTimers")
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
    """Return the name of a construct that may keep the code inside it from running."""
    return next(
        (words for kinds, words in _CONSTRUCTS if isinstance(node, kinds)), "code that the check doesn't follow"
    )


def call_words(node: ast.Call) -> str:
    """Return a call by its method and first argument: `getValueState("totals")`."""
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
    """Return the first node that may end the run or block it forever; without `returns`, ignore `return`.

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
        if isinstance(node, ast.While) or (isinstance(node, ast.For) and _last_name(node.iter) in _ENDLESS):
            return node  # nothing shows that the loop ends
        stack += reversed(list(ast.iter_child_nodes(node)))
    return None


def _last_name(node: ast.expr) -> str:
    """Return `count` for `itertools.count()`; empty if it isn't a call of a name."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name
    return ""


def _exits(node: ast.Call, ending: Collection[str]) -> bool:
    match node.func:
        case ast.Name(id=name):
            return name in ("exit", "quit", "_exit", "SystemExit") or name in ending
        case ast.Attribute(attr=name, value=ast.Name(id=module)):
            return module in _MODULES and name in _EXITS
    return False


def end_words(node: ast.AST) -> str:
    """Return what ends the run, with its line."""
    match node:
        case ast.Return():
            words = "the `return`"
        case ast.Raise():
            words = "the `raise`"
        case ast.Assert():
            words = "the `assert`"
        case ast.While():
            words = "the `while` loop"
        case ast.For():
            words = "the `for` loop"
        case ast.Call():
            words = f"the call of `{ast.unparse(node.func)[:MAX_SHOWN]}`"
        case _:
            words = "what ends it"
    return f"{words} in line {getattr(node, 'lineno', 0)}"


def ending_functions(module: ast.Module) -> frozenset[str]:
    """Return the file's top-level functions that may end the run when called, also through each other."""
    functions = {node.name: node for node in module.body if isinstance(node, FUNCTIONS)}
    callers: dict[str, set[str]] = {}
    for name, function in functions.items():
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                callers.setdefault(node.func.id, set()).add(name)
    ending = {name for name, function in functions.items() if end_of(function, returns=False)}
    todo = list(ending)
    while todo:
        new = callers.get(todo.pop(), set()) - ending
        ending |= new
        todo += new
    return frozenset(ending)


def unreached(module: ast.Module, targets: Mapping[ast.AST, str]) -> Iterator[Unresolved]:
    """Yield targets that an earlier statement certainly keeps from running; the mapping has their names.

    A conditional end of the run doesn't count: then either nothing starts, or the target runs.
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
    """Return the node of a statement that certainly ends the run or its function; None if none does."""
    match statement:
        case ast.Raise() | ast.Return():
            return statement
        case ast.Expr(value=ast.Call() as call) if _exits(call, ()):
            return call
        case ast.While(test=ast.Constant(value=value)) if value and not any(
            isinstance(node, ast.Break) for node in ast.walk(statement)
        ):
            return statement
        case ast.With(body=body) if len(statement.items) == 1:
            manager = statement.items[0].context_expr
            is_suppressing = isinstance(manager, ast.Call) and "suppress" in ast.unparse(manager.func)
            return None if is_suppressing else next(filter(None, map(_sure_end, body)), None)
    return None


_SIMPLE: Final = (ast.Expr, ast.Assign, ast.AnnAssign, ast.Return, ast.Pass)
_INNER: Final = (
    ast.Call,
    ast.Attribute,
    ast.Name,
    ast.keyword,
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.Constant,
    ast.Starred,
)
Method = ast.FunctionDef | ast.AsyncFunctionDef


class Reach:
    """Walks one class from `init`; `found` has the calls of `verbs` in order, each with its method."""

    def __init__(self, owner: ast.ClassDef, verbs: Collection[str], ending: Collection[str] = ()) -> None:
        """Walk `owner`; `ending` names the functions of the file that may end the run."""
        self._verbs = verbs
        self._ending = ending
        self.methods: Mapping[str, Method] = {each.name: each for each in owner.body if isinstance(each, FUNCTIONS)}
        self.found: list[tuple[ast.Call, Method]] = []
        self.problems: list[Unresolved] = []
        self.followed: set[str] = set()
        self._kept: set[str] = set()  # attributes of self that hold the handle
        self._seen: set[ast.AST] = set()
        self._stop: ast.AST | None = None  # what may have ended init so far
        init = self.methods.get("init")
        if init is not None:
            parameters = _parameters(init)
            if len(parameters) < 2:
                self._refuse(init, "`init` has no parameter for the handle")
            else:
                self._follow(init, {parameters[1]}, init)
        self._left_over(owner)

    def _refuse(self, node: ast.expr | ast.stmt, why: str) -> None:
        self.problems.append(Unresolved(node, why))

    def _follow(self, method: Method, handles: set[str], at: ast.expr | ast.stmt) -> None:
        if method.name in self.followed:
            self._refuse(at, f"`{method.name}` is called more than once; the check follows one call of each method")
            return
        self.followed.add(method.name)
        makes_more = any(isinstance(each, ast.Yield | ast.YieldFrom | ast.Await) for each in ast.walk(method))
        if method.decorator_list or isinstance(method, ast.AsyncFunctionDef) or makes_more:
            self._refuse(
                method,
                f"`{method.name}` has a decorator, is async or is a generator, so the check can't tell when it runs",
            )
            return
        if handles & set(assigned(method.body)):
            self._refuse(method, "`init` or a method that it calls assigns another value to the handle's name")
            return
        stop_before, own = self._stop, end_of(method, self._ending, returns=False)
        self._block(method.body, method, handles)
        self._stop = stop_before or own

    def _block(self, body: list[ast.stmt], method: Method, handles: set[str]) -> None:
        for statement in body:
            if isinstance(statement, ast.With) and all(_is_closing(each) for each in statement.items):
                self._seen.update(each for item in statement.items for each in ast.walk(item))
                self._block(statement.body, method, handles)
                continue
            is_simple = isinstance(statement, _SIMPLE)
            if isinstance(statement, ast.Assign) and self._keeps(statement, method, handles):
                continue
            for node, around in _walk(statement, None if is_simple else statement):
                self._node(node, around, method, handles)
            self._stop = self._stop or end_of(statement, self._ending)

    def _keeps(self, statement: ast.Assign, method: Method, handles: set[str]) -> bool:
        """Return whether it is `self.handle = handle`, which is recorded."""
        own = _own_name(method)
        match statement:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=name), attr=kept)], value=ast.Name(id=handle)) if (
                name == own and handle in handles
            ):
                self._kept.add(kept)
                self._seen.update(ast.walk(statement))
                return True
        return False

    def _is_handle(self, node: ast.AST, method: Method, handles: set[str]) -> bool:
        match node:
            case ast.Name(id=name):
                return name in handles
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                return owner == _own_name(method) and name in self._kept
        return False

    def _node(self, node: ast.AST, around: ast.AST | None, method: Method, handles: set[str]) -> None:
        """Record a call; `around` is what may keep it from running."""
        if node in self._seen:
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            on, verb = node.func.value, node.func.attr
            if self._is_handle(on, method, handles):
                self._seen.update((node, node.func, on))
                if verb in self._verbs:
                    self._declares(node, around, method)
                elif verb not in _TIMERS:
                    self._unknown(node.func)
                return
            given = (*node.args, *(k.value for k in node.keywords))
            passed = [each for each in given if self._is_handle(each, method, handles)]
            if isinstance(on, ast.Call) and isinstance(on.func, ast.Name) and on.func.id == "super":
                self._seen.update(passed)  # Spark's own class, which does nothing
            elif isinstance(on, ast.Name) and on.id == _own_name(method) and verb in self.methods and around is None:
                self._seen.update((node, node.func, on, *passed))
                self._pass_on(node, self.methods[verb], passed)
        elif self._is_handle(node, method, handles) and isinstance(node, ast.expr):
            self._seen.add(node)
            self._refuse(
                node, f"`{ast.unparse(node)}` is passed on or kept, so the check can't tell what is declared with it"
            )

    def _pass_on(self, node: ast.Call, called: Method, passed: list[ast.expr]) -> None:
        taken = _parameters(called)[1:]
        names = {taken[at] for at, each in enumerate(node.args) if each in passed and at < len(taken)}
        names |= {each.arg for each in node.keywords if each.value in passed and each.arg}
        if len(names) != len(passed) or not names <= set(taken):
            self._refuse(node, f"the check can't tell which parameter of `{called.name}` gets the handle")
            return
        self._maybe(called, names, node)

    def _maybe(self, called: Method, names: set[str], node: ast.Call) -> None:
        if self._stop is None:
            self._follow(called, names, node)
        elif names:
            self._refuse(node, self._after_stop(f"`{called.name}`", self._stop))

    def _declares(self, node: ast.Call, around: ast.AST | None, method: Method) -> None:
        if around is not None:
            self._refuse(
                node, f"{call_words(node)} is inside {construct_words(around)}, so the check can't tell whether it runs"
            )
        elif self._stop is not None:
            self._refuse(node, self._after_stop(call_words(node), self._stop))
        else:
            self.found.append((node, method))

    def _unknown(self, node: ast.Attribute) -> None:
        self._refuse(
            node,
            f"`{node.attr[:MAX_SHOWN]}` is not known as a method of the handle, so the check can't tell what it declares",
        )

    def _after_stop(self, what: str, stop: ast.AST) -> str:
        return f"{what} comes after {end_words(stop)}, so the check can't tell whether it runs"

    def _left_over(self, owner: ast.ClassDef) -> None:
        """Report declarations of state that weren't reached, and code that passes `self` elsewhere."""
        for method in self.methods.values():
            own = _own_name(method)
            used = {each.value for each in ast.walk(method) if isinstance(each, ast.Attribute)}
            for node in ast.walk(method):
                if isinstance(node, ast.Name) and node.id == own and node not in used and self._kept:
                    self._refuse(
                        node,
                        f"`{own}` is passed on and holds the handle, so the check can't tell what is declared with it",
                    )
                match node:
                    case ast.Attribute(attr=verb, value=ast.Attribute(value=ast.Name(id=name), attr=kept)) if (
                        name == own and kept in self._kept and verb not in (*self._verbs, *_TIMERS)
                    ):
                        if node not in self._seen:
                            self._unknown(node)
                if (
                    isinstance(node, ast.Attribute)
                    and node.attr in self._kept
                    and node not in self._seen
                    and node not in used
                ):
                    self._refuse(
                        node,
                        "the handle is used outside of what `init` calls, so the check can't tell what is declared with it",
                    )
        for node in ast.walk(owner):
            if isinstance(node, ast.Attribute) and node.attr in self._verbs and node not in self._seen:
                self._refuse(
                    node, f"`{node.attr}` is outside of what `init` calls, so the check can't tell whether it runs"
                )


def _walk(root: ast.AST, around: ast.AST | None) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """Yield all nodes in text order, each with the outermost node that may keep it from being evaluated."""
    stack = [(root, around)]
    while stack:
        node, outer = stack.pop()
        yield node, outer
        inner = outer if outer is not None or node is root or isinstance(node, _INNER) else node
        stack += [(child, inner) for child in reversed(list(ast.iter_child_nodes(node)))]


def _is_closing(item: ast.withitem) -> bool:
    """Return whether it is contextlib's closing(…), which runs its block and doesn't suppress errors."""
    call = item.context_expr
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "closing"


def _parameters(method: Method) -> list[str]:
    given = method.args
    return [each.arg for each in chain(given.posonlyargs, given.args, given.kwonlyargs)]


def _own_name(method: Method) -> str:
    """Return a method's name for its object; empty if it takes none."""
    given = method.args
    return next((each.arg for each in chain(given.posonlyargs, given.args, given.kwonlyargs)), "")
