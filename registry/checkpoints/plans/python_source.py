"""The plan in a Python file: its `getValueState`, `getListState`, `getMapState` and `deleteIfExists` calls, and the one
call of `transformWithState` or `transformWithStateInPandas` with its output mode and its time mode.

The file is read with `ast` and never executed: what can't be known so is refused with line and column.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from registry.checkpoints.plans.model import (
    APIS,
    MAX_NAME,
    MAX_VARIABLES,
    OUTPUT_MODES,
    TIME_MODES,
    Kind,
    PlannedState,
    StatePlan,
)
from registry.checkpoints.plans.python_values import Evaluator, Scope, Unresolved, arguments
from registry.errors import InvalidSchema
from registry.formats.policies.spark_state import parse_struct

MAX_SOURCE: Final = 2_000_000  # characters
SHOWN_PROBLEMS: Final = 20
_GETTERS: Final[Mapping[str, tuple[Kind, tuple[str, ...]]]] = {
    "getValueState": ("value", ("stateName", "schema", "ttlDurationMs")),
    "getListState": ("list", ("stateName", "schema", "ttlDurationMs")),
    "getMapState": ("map", ("stateName", "userKeySchema", "valueSchema", "ttlDurationMs")),
}
_DELETE: Final = "deleteIfExists"
_OPERATOR_ARGUMENTS: Final = ("statefulProcessor", "outputStructType", "outputMode", "timeMode")
_CONDITIONS: Final = (ast.If, ast.For, ast.While, ast.Try, ast.IfExp, ast.Match, ast.With)
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class _Declared:
    """A call that declares or deletes a variable, where names are looked up for it, and whether it always runs."""

    node: ast.Call
    verb: str
    scope: Scope
    is_certain: bool


def parse_python(source: str, processor: str = "") -> StatePlan:
    """The plan that a StatefulProcessor of a Python file declares; `processor` names its class where there are several.

    Raises InvalidSchema for what is no Python, declares no state, or says it in a way that only running it would tell:
    with line and column.
    """
    module = _parsed(source)
    found = {name: calls for name, calls in _processors(module).items() if not processor or name == processor}
    if not found:
        what = f"the class {processor[:80]}" if processor else "the file"
        raise InvalidSchema(f"{what} declares no state: no call of {', '.join(_GETTERS)} or {_DELETE} was found")
    if len(found) > 1:
        listed = ", ".join(sorted(found))
        raise InvalidSchema(f"several classes declare state: {listed[:300]}; say which one is meant")
    (calls,) = found.values()
    try:
        return _with_operator(_plan(calls), module)
    except RecursionError:
        raise InvalidSchema("an expression of the file is nested too deep to be read") from None


def _with_operator(plan: StatePlan, module: ast.Module) -> StatePlan:
    """The plan with what the call that makes the operator says; what it doesn't say in constants stays open."""
    calls = [
        node
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in APIS
    ]
    if len(calls) != 1:
        return plan
    (call,) = calls
    assert isinstance(call.func, ast.Attribute)
    plan = replace(plan, api=call.func.attr)
    try:
        _, _, output_mode, time_mode = arguments(call, *_OPERATOR_ARGUMENTS)
    except Unresolved:
        return plan
    return replace(
        plan, output_mode=_mode(output_mode, OUTPUT_MODES, module), time_mode=_mode(time_mode, TIME_MODES, module)
    )


def _mode(given: ast.expr | None, known: Sequence[str], module: ast.Module) -> str | None:
    """The mode that an argument names, in any case of letters as Spark takes it; None where it can't be known."""
    if given is None:
        return None
    try:
        value = Evaluator().value(given, Scope(_assigned(module.body)))
    except Unresolved:
        return None
    return next((each for each in known if isinstance(value, str) and value.lower() == each.lower()), None)


def _parsed(source: str) -> ast.Module:
    if len(source) > MAX_SOURCE:
        raise InvalidSchema(f"the file has more than {MAX_SOURCE:,} characters")
    try:
        return ast.parse(source)
    except SyntaxError as error:
        raise InvalidSchema(f"this is no Python: {error.msg}", line=error.lineno, column=error.offset) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise InvalidSchema(f"this can't be read as Python: {error or 'it is nested too deep'}") from None


def _processors(module: ast.Module) -> dict[str, list[_Declared]]:
    """The calls by the class that makes them; "" for functions outside of classes."""
    outer = Scope(_assigned(module.body))
    found: dict[str, list[_Declared]] = {}
    try:
        for top in module.body:
            if isinstance(top, ast.ClassDef):
                attributes = {**_assigned(top.body), **_on_self(top)}
                for method in top.body:
                    if isinstance(method, _FUNCTIONS):
                        found.setdefault(top.name, []).extend(_calls(method, attributes, outer))
            elif isinstance(top, _FUNCTIONS):
                found.setdefault("", []).extend(_calls(top, {}, outer))
    except RecursionError:
        raise InvalidSchema("the file is nested too deep to be read") from None
    return {name: calls for name, calls in found.items() if calls}


def _calls(
    function: ast.FunctionDef | ast.AsyncFunctionDef, attributes: Mapping[str, ast.expr | None], outer: Scope
) -> Iterator[_Declared]:
    listed = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    parameters: dict[str, ast.expr | None] = dict.fromkeys((each.arg for each in listed), None)
    own = listed[0].arg if listed else ""
    scope = Scope({**parameters, **_assigned(function.body)}, attributes, outer, own)
    for node, is_certain in _walk(function):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr in _GETTERS or node.func.attr == _DELETE:
            yield _Declared(node, node.func.attr, scope, is_certain)


def _walk(root: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """All nodes in the order of the text, and whether each is reached whenever the function is."""
    stack = [(root, True)]
    while stack:
        node, is_certain = stack.pop()
        yield node, is_certain
        inner = is_certain and (not isinstance(node, _CONDITIONS) or isinstance(node, ast.With))
        stack += [(child, inner) for child in reversed(list(ast.iter_child_nodes(node)))]


def _assigned(body: list[ast.stmt]) -> dict[str, ast.expr | None]:
    """The names that statements assign or import; None where there is no one value."""
    found: dict[str, ast.expr | None] = {}
    for statement in body:
        for node, is_certain in _walk(statement):
            if isinstance(node, ast.ImportFrom):
                found.update(dict.fromkeys((each.asname or each.name for each in node.names), None))
            for target, value in _targets(node):
                if isinstance(target, ast.Name):
                    found[target.id] = value if is_certain and target.id not in found else None
    return found


def _on_self(owner: ast.ClassDef) -> dict[str, ast.expr | None]:
    """Attributes that methods assign on themselves, once and to what doesn't come out of a parameter."""
    found: dict[str, ast.expr | None] = {}
    for node, is_certain in _walk(owner):
        for target, value in _targets(node):
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
                found[target.attr] = value if is_certain and target.attr not in found else None
    return found


def _targets(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from (
                    ((each, None) for each in getattr(target, "elts", ()))
                    if hasattr(target, "elts")
                    else [(target, value)]
                )
        case ast.AnnAssign(target=target, value=value) if value is not None:
            yield target, value
        case ast.AugAssign(target=target) | ast.For(target=target) | ast.NamedExpr(target=target):
            yield target, None


def _plan(calls: list[_Declared]) -> StatePlan:
    evaluator = Evaluator()
    variables: dict[str, PlannedState] = {}
    removed: list[str] = []
    problems: list[Unresolved] = []
    for call in calls:
        try:
            if not call.is_certain:
                raise Unresolved(call.node, f"{call.verb} stands in a branch or a loop: whether it runs can't be known")
            if call.verb == _DELETE:
                removed.append(_name(evaluator, call, *arguments(call.node, "stateName")))
            else:
                made = _variable(evaluator, call)
                if made.name in variables:
                    raise Unresolved(call.node, f"{made.name!r} is declared twice")
                variables[made.name] = made
        except Unresolved as problem:
            problems.append(problem)
    if problems:
        raise _refusal(problems)
    if len(variables) > MAX_VARIABLES:
        raise InvalidSchema(f"the file declares more than {MAX_VARIABLES:,} state variables")
    return StatePlan(tuple(variables.values()), tuple(dict.fromkeys(removed)), language="python")


def _variable(evaluator: Evaluator, call: _Declared) -> PlannedState:
    kind, parameters = _GETTERS[call.verb]
    name, *schemas, ttl = arguments(call.node, *parameters)
    read = [_schema(evaluator, call, each) for each in schemas]
    duration = evaluator.value(ttl, call.scope) if ttl is not None else None
    if duration is not None and type(duration) is not int:
        raise Unresolved(ttl or call.node, "the time to live is no number of milliseconds")
    if duration is not None and duration < 0:
        raise Unresolved(ttl or call.node, "the time to live is below zero")
    return PlannedState(
        name=_name(evaluator, call, name),
        kind=kind,
        value=read[-1],
        user_key=read[0] if kind == "map" else None,
        has_ttl=bool(duration),  # to Spark 0 is no time to live
        place=f"line {call.node.lineno}, column {call.node.col_offset + 1}",
    )


def _name(evaluator: Evaluator, call: _Declared, given: ast.expr | None) -> str:
    if given is None:
        raise Unresolved(call.node, f"{call.verb} is called without a name")
    name: Any = evaluator.value(given, call.scope)
    if not isinstance(name, str) or not name or len(name) > MAX_NAME:
        raise Unresolved(given, "the variable's name is no text")
    return name


def _schema(evaluator: Evaluator, call: _Declared, given: ast.expr | None) -> Mapping[str, Any]:
    if given is None:
        raise Unresolved(call.node, f"{call.verb} is called without a schema")
    made = evaluator.schema(given, call.scope)
    try:
        parse_struct(made)
    except InvalidSchema as error:
        raise Unresolved(given, error.message) from None
    return made


def _refusal(problems: list[Unresolved]) -> InvalidSchema:
    """All that couldn't be read, in one error; its place is the first one's."""
    first, *more = problems[:SHOWN_PROBLEMS]
    said = "; ".join([first.why, *(f"line {e.node.lineno}, column {e.node.col_offset + 1}: {e.why}" for e in more)])
    return InvalidSchema(
        f"{said}; write the plan as a JSON document instead",
        line=first.node.lineno,
        column=first.node.col_offset + 1,
    )
