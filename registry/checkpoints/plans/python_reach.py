"""Which calls a StatefulProcessor's `init` surely makes on its handle, followed through the class's own methods."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from registry.checkpoints.plans.python_expressions import Unresolved
from registry.checkpoints.plans.python_names import FUNCTIONS, assigned

_STOPS: Final = (ast.Return, ast.Raise, ast.Assert)
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
    """Walks one class from `init` on; `found` are the calls of `verbs` in their order, each with its method."""

    def __init__(self, owner: ast.ClassDef, verbs: Collection[str]) -> None:
        self._verbs = verbs
        self.methods: Mapping[str, Method] = {each.name: each for each in owner.body if isinstance(each, FUNCTIONS)}
        self.found: list[tuple[ast.Call, Method]] = []
        self.problems: list[Unresolved] = []
        self.followed: list[str] = []
        self._kept: set[str] = set()  # attributes of self that hold the handle
        self._seen: set[ast.AST] = set()
        self._is_stopped = False
        init = self.methods.get("init")
        if init is not None:
            parameters = _parameters(init)
            if len(parameters) < 2:
                self._refuse(init, "init takes no handle")
            else:
                self._follow(init, {parameters[1]}, init)
        self._left_over(owner)

    def _refuse(self, node: ast.expr | ast.stmt, why: str) -> None:
        self.problems.append(Unresolved(node, why))

    def _follow(self, method: Method, handles: set[str], at: ast.expr | ast.stmt) -> None:
        if method.name in self.followed:
            self._refuse(at, f"{method.name} is called more than once")
            return
        self.followed.append(method.name)
        makes_more = any(isinstance(each, ast.Yield | ast.YieldFrom | ast.Await) for each in ast.walk(method))
        if method.decorator_list or isinstance(method, ast.AsyncFunctionDef) or makes_more:
            self._refuse(method, f"{method.name} is decorated, async or a generator: when it runs can't be known")
            return
        if handles & set(assigned(method.body)):
            self._refuse(method, "the handle's name is assigned anew")
            return
        was_stopped, raises = self._is_stopped, any(isinstance(e, ast.Raise | ast.Assert) for e in ast.walk(method))
        self._block(method.body, method, handles)
        self._is_stopped = was_stopped or raises

    def _block(self, body: list[ast.stmt], method: Method, handles: set[str]) -> None:
        for statement in body:
            if isinstance(statement, ast.With) and all(_is_closing(each) for each in statement.items):
                self._seen.update(each for item in statement.items for each in ast.walk(item))
                self._block(statement.body, method, handles)
                continue
            is_simple = isinstance(statement, _SIMPLE)
            if isinstance(statement, ast.Assign) and self._keeps(statement, method, handles):
                continue
            for node, is_certain in _walk(statement, is_simple):
                self._node(node, is_certain, method, handles)
            if any(isinstance(each, _STOPS) for each in ast.walk(statement)):
                self._is_stopped = True

    def _keeps(self, statement: ast.Assign, method: Method, handles: set[str]) -> bool:
        """Whether it is `self.handle = handle`, which is remembered."""
        own = _parameters(method)[0]
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
                return owner == (_parameters(method) or [""])[0] and name in self._kept
        return False

    def _node(self, node: ast.AST, is_certain: bool, method: Method, handles: set[str]) -> None:
        if node in self._seen:
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            on, verb = node.func.value, node.func.attr
            if self._is_handle(on, method, handles):
                self._seen.update((node, node.func, on))
                if verb in self._verbs:
                    self._declares(node, verb, is_certain, method)
                return
            given = (*node.args, *(k.value for k in node.keywords))
            passed = [each for each in given if self._is_handle(each, method, handles)]
            if isinstance(on, ast.Call) and isinstance(on.func, ast.Name) and on.func.id == "super":
                self._seen.update(passed)  # of Spark's own class, which does nothing
            elif isinstance(on, ast.Name) and on.id == _parameters(method)[0] and verb in self.methods and is_certain:
                self._seen.update((node, node.func, on, *passed))
                self._pass_on(node, self.methods[verb], passed)
        elif self._is_handle(node, method, handles) and isinstance(node, ast.expr):
            self._seen.add(node)
            self._refuse(node, "the handle is passed on or kept: what is done with it can't be known")

    def _pass_on(self, node: ast.Call, called: Method, passed: list[ast.expr]) -> None:
        taken = _parameters(called)[1:]
        names = {taken[at] for at, each in enumerate(node.args) if each in passed and at < len(taken)}
        names |= {each.arg for each in node.keywords if each.value in passed and each.arg}
        if len(names) != len(passed) or not names <= set(taken):
            self._refuse(node, f"which parameter of {called.name} gets the handle can't be known")
            return
        self._maybe(called, names, node)

    def _maybe(self, called: Method, names: set[str], node: ast.Call) -> None:
        if self._is_stopped and names:
            self._refuse(node, f"{called.name} is called after a return or raise: whether it runs can't be known")
            return
        if not self._is_stopped:
            self._follow(called, names, node)

    def _declares(self, node: ast.Call, verb: str, is_certain: bool, method: Method) -> None:
        if not is_certain:
            self._refuse(node, f"{verb} stands in a branch or a loop: whether it runs can't be known")
        elif self._is_stopped:
            self._refuse(node, f"{verb} stands after a return, raise or assert: whether it runs can't be known")
        else:
            self.found.append((node, method))

    def _left_over(self, owner: ast.ClassDef) -> None:
        """What declares state and wasn't come across, and what passes `self` to somewhere else."""
        for method in self.methods.values():
            own = (_parameters(method) or [""])[0]
            used = {each.value for each in ast.walk(method) if isinstance(each, ast.Attribute)}
            for node in ast.walk(method):
                if isinstance(node, ast.Name) and node.id == own and node not in used and self._kept:
                    self._refuse(node, f"{own} is passed on with its handle: what is done with it can't be known")
                if isinstance(node, ast.Attribute) and node.attr in self._kept and node not in self._seen | used:
                    self._refuse(node, "the handle is used where init doesn't surely come: that can't be known")
        for node in ast.walk(owner):
            if isinstance(node, ast.Attribute) and node.attr in self._verbs and node not in self._seen:
                self._refuse(node, f"{node.attr} stands where init doesn't surely come: whether it runs can't be known")


def _walk(root: ast.AST, is_certain: bool) -> Iterator[tuple[ast.AST, bool]]:
    """All nodes in the order of the text, and whether each is surely evaluated."""
    stack = [(root, is_certain)]
    while stack:
        node, is_sure = stack.pop()
        yield node, is_sure
        inner = is_sure and (node is root or isinstance(node, _INNER))
        stack += [(child, inner) for child in reversed(list(ast.iter_child_nodes(node)))]


def _is_closing(item: ast.withitem) -> bool:
    """Whether it is contextlib's closing(…), which lets its block run and its errors out."""
    call = item.context_expr
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "closing"


def _parameters(method: Method) -> list[str]:
    given = method.args
    return [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
