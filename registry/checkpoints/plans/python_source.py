"""Reads the plan from a Python file.

That is its calls of `getValueState`, `getListState`, `getMapState` and `deleteIfExists`, and its one call of
`transformWithState` or `transformWithStateInPandas` with its output mode and time mode. The file is parsed with `ast`
and never executed: anything that only execution would show is refused with line and column.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
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
from registry.checkpoints.plans.python_expressions import Bound, Evaluator, Scope, Unresolved, arguments, code, origin
from registry.checkpoints.plans.python_names import (
    FUNCTIONS,
    assigned,
    bindings,
    changes,
    changes_elsewhere,
    counted,
    roots,
    unreadable,
)
from registry.checkpoints.plans.python_reach import Method, Reach, ending_functions, unreached
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
#: DataFrame methods that keep further state; an aggregation or a join can't be distinguished from a batch one
_OTHER_OPERATORS: Final = (
    "dropDuplicates",
    "drop_duplicates",
    "dropDuplicatesWithinWatermark",
    "applyInPandasWithState",
)
_STREAMING: Final = "spark.sql.streaming."
_BASES: Final = ("StatefulProcessor", "object")
_HOOKS: Final = ("__getattribute__", "__getattr__", "__new__", "__init_subclass__", "__setattr__")


@dataclass(frozen=True)
class _Declared:
    """A call that declares or deletes a variable, and the scope of its names."""

    node: ast.Call
    verb: str
    scope: Scope


def parse_python(source: str, processor: str = "") -> StatePlan:
    """Return the plan that a StatefulProcessor of a Python file declares; `processor` names its class if needed.

    Raises InvalidSchema with line and column if the text isn't Python, declares no state, or declares it in a way that
    only execution would show.
    """
    module = _parsed(source)
    try:
        return _read(module, processor)
    except Unresolved as problem:
        raise _refusal([problem]) from None
    except RecursionError:
        raise InvalidSchema("the file is nested too deep to be read") from None


def _read(module: ast.Module, processor: str) -> StatePlan:
    bound = counted(module)
    operators = [
        node
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in APIS
    ]
    owner = _owner(module, processor, operators, bound)
    outer = Scope(assigned(module.body))
    ending = ending_functions(module)
    reach = Reach(owner, (*_GETTERS, _DELETE), ending)
    targets: dict[ast.AST, str] = {owner: f"the class `{owner.name}`"}
    targets.update((call, f"`{_verb(call)}`") for call in operators)
    problems = [*unreadable(module), *unreached(module, targets), *_class_problems(owner, outer), *reach.problems]
    attributes = _attributes(owner, outer)
    scopes = {
        method: _scope(method, attributes, outer) for method in dict.fromkeys(method for _, method in reach.found)
    }
    calls = [_Declared(node, _verb(node), scopes[method]) for node, method in reach.found]
    evaluator = Evaluator()
    plan = _plan(calls, evaluator, problems)
    settings, unknown_settings = _settings(module, outer, bound)
    problems = [
        *changes(module, evaluator.used, owner.name, reach.methods),
        *changes_elsewhere(module, evaluator.mutable, owner.name, evaluator.is_mutable_on_self),
        *_other_operators(module),
        *unknown_settings,
    ]
    if problems:
        raise _refusal(problems)
    return _with_operators(replace(plan, settings=settings), outer, operators, bound)


def _verb(node: ast.Call) -> str:
    assert isinstance(node.func, ast.Attribute)
    return node.func.attr


def _owner(module: ast.Module, processor: str, operators: list[ast.Call], bound: Counter[str]) -> ast.ClassDef:
    """Return the class to read: the named one, the only operator's, or the only one that declares state."""
    if len(operators) > 1 and not processor:
        raise Unresolved(operators[1], f"`{_verb(operators[1])}` is called more than once; say which class you mean")
    passed = _passed(operators, module, bound)
    for name, call in passed.items():
        if not (name or processor):
            raise Unresolved(call, "the check can't tell which class is passed here; say which one you mean")
    if processor and passed and not {processor, ""} & set(passed):
        raise Unresolved(operators[0], f"the call takes {', '.join(passed)[:80]}, not {processor[:80]}")
    chosen = processor or "".join(passed)
    for statement in module.body:
        if (
            isinstance(statement, ast.ClassDef)
            and bound[statement.name] > 1
            and (_declaring(statement) or statement.name == chosen)
        ):
            raise Unresolved(statement, f"the file defines or assigns `{statement.name}` more than once")
    classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    stray = [node for node in module.body if not isinstance(node, ast.ClassDef) and _declaring(node)]
    if chosen not in classes and chosen and not processor:
        raise Unresolved(
            operators[0], f"`{chosen[:80]}` is not a class of this file, so the check can't tell what it declares"
        )
    found = [node for name, node in classes.items() if _declaring(node) and chosen in ("", name)]
    if stray:
        raise Unresolved(_declaring(stray[0])[0], "this declares state outside of the classes at the file's top level")
    if not found and chosen in classes and classes[chosen].bases:
        found = [classes[chosen]]  # its bases are checked later
    if not found:
        what = f"the class {chosen[:80]}" if chosen else "the file"
        raise InvalidSchema(f"{what} declares no state: it has no call of {', '.join(_GETTERS)} or {_DELETE}")
    if len(found) > 1:
        listed = ", ".join(sorted(owner.name for owner in found))
        raise InvalidSchema(f"several classes declare state: {listed[:300]}; say which one you mean")
    for node in ast.walk(module):
        if not chosen and isinstance(node, ast.ClassDef) and found[0].name in {n for b in node.bases for n in roots(b)}:
            raise Unresolved(node, f"`{node.name}` inherits from `{found[0].name}`; say which of them you mean")
    return found[0]


def _declaring(root: ast.AST) -> list[ast.Attribute]:
    names = (*_GETTERS, _DELETE)
    return [node for node in ast.walk(root) if isinstance(node, ast.Attribute) and node.attr in names]


def _passed(operators: list[ast.Call], module: ast.Module, bound: Counter[str]) -> dict[str, ast.Call]:
    """Return the classes whose objects the calls take as processors, by name; "" for an unknown one."""
    values = {name: value for node in ast.walk(module) for name, value in bindings(node) if isinstance(value, ast.expr)}
    passed = {}
    for call in operators:
        given = next((keyword.value for keyword in call.keywords if keyword.arg == "statefulProcessor"), None)
        if call.args and not isinstance(call.args[0], ast.Starred):
            given = call.args[0]
        if isinstance(given, ast.Name) and bound[given.id] == 1:
            given = values.get(given.id)
        made = given.func if isinstance(given, ast.Call) else None
        passed[made.id if isinstance(made, ast.Name) else ""] = call
    return passed


def _class_problems(owner: ast.ClassDef, outer: Scope) -> Iterator[Unresolved]:
    """Yield why a class may differ from its body."""
    if owner.decorator_list or owner.keywords:
        yield Unresolved(
            owner, f"`{owner.name}` has a decorator or a metaclass, so the check can't tell how they change the class"
        )
    for base in owner.bases:
        try:
            name = origin(base, outer)
        except Unresolved:
            name = ""
        if name not in _BASES:
            yield Unresolved(
                base, f"`{owner.name}` inherits from {code(base)}, and the check doesn't read what that declares"
            )
    names = Counter(name for statement in owner.body for name in _bound_in(statement))
    for statement in owner.body:
        for name in _bound_in(statement):
            if isinstance(statement, FUNCTIONS) and (names[name] > 1 or name in _HOOKS):
                why = f"the class defines `{name}` twice"
                if name in _HOOKS:
                    why = f"`{name}` changes how Python finds attributes, so the check can't follow the class"
                yield Unresolved(statement, why)
            elif not isinstance(statement, FUNCTIONS) and name == "init":
                yield Unresolved(statement, "`init` is not a plain method of the class")


def _bound_in(statement: ast.stmt) -> Iterator[str]:
    inner = [statement] if isinstance(statement, (*FUNCTIONS, ast.ClassDef)) else ast.walk(statement)
    return (name for node in inner for name, _ in bindings(node))


def _attributes(owner: ast.ClassDef, outer: Scope) -> dict[str, tuple[ast.expr, Scope] | None]:
    """Return the class's attributes and those that __init__ or init assign on self; None without a single value."""
    own = Scope(assigned(owner.body), {}, outer)
    found: dict[str, tuple[ast.expr, Scope] | None] = {
        name: (value, own) if isinstance(value, ast.expr) else None for name, value in own.names.items()
    }
    for method in owner.body:
        if not isinstance(method, FUNCTIONS):
            continue
        scope = _scope(method, found, outer)
        plain = {
            id(node.targets[0]): node.value
            for node in method.body
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and method.name in ("__init__", "init")
        }
        plain |= {id(e.target): e.value for e in method.body if isinstance(e, ast.AnnAssign) and e.value is not None}
        for node in ast.walk(method):
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                value = plain.get(id(node))
                found[node.attr] = (value, scope) if value is not None and node.attr not in found else None
    return found


def _scope(method: Method, attributes: Mapping[str, tuple[ast.expr, Scope] | None], outer: Scope) -> Scope:
    names = [argument.arg for argument in ast.walk(method.args) if isinstance(argument, ast.arg)]
    replaced: dict[str, Bound] = {**assigned(method.body), **dict.fromkeys(names)}
    return Scope(replaced, attributes, outer, names[0] if names else "")


def _with_operators(plan: StatePlan, outer: Scope, operators: list[ast.Call], bound: Counter[str]) -> StatePlan:
    """Add the values of the call that creates the operator; those that aren't constants raise Unresolved."""
    made = [_with_operator(plan, operator, outer, bound) for operator in operators]
    for other, call in zip(made[1:], operators[1:], strict=True):
        if other != made[0]:
            raise Unresolved(call, f"`{_verb(call)}` is called more than once, with different modes")
    return made[0] if made else plan


def _with_operator(plan: StatePlan, call: ast.Call, outer: Scope, bound: Counter[str]) -> StatePlan:
    _, _, output_mode, time_mode = arguments(call, *_OPERATOR_ARGUMENTS)
    return replace(
        plan,
        api=_verb(call),
        output_mode=_mode(output_mode, "output mode", OUTPUT_MODES, outer, bound),
        time_mode=_mode(time_mode, "time mode", TIME_MODES, outer, bound),
    )


def _mode(argument: ast.expr | None, label: str, modes: Sequence[str], outer: Scope, bound: Counter[str]) -> str | None:
    """Return the mode that an argument names, ignoring case like Spark; None without an argument.

    Raises Unresolved if only execution would show.
    """
    if argument is None:
        return None
    value = None
    with suppress(Unresolved):
        value = _constant(argument, outer, bound)
    mode = next((mode for mode in modes if isinstance(value, str) and value.lower() == mode.lower()), None)
    if mode is None:
        raise Unresolved(argument, f"the check can't tell which {label} {code(argument)} gives")
    return mode


def _constant(argument: ast.expr, outer: Scope, bound: Counter[str]) -> Any:
    """Return an argument's value outside the class. Raises Unresolved if one of its names is bound more than once."""
    if any(bound[name] > 1 for name in roots(argument)):
        raise Unresolved(argument, f"{code(argument)} has no one value here")
    return Evaluator().value(argument, outer)


def _other_operators(module: ast.Module) -> Iterator[Unresolved]:
    """Yield calls that create further stateful operators, whose state the class doesn't declare."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OTHER_OPERATORS:
            yield Unresolved(node, f"`{node.func.attr}` keeps state of its own, which the check doesn't read")


def _settings(module: ast.Module, outer: Scope, bound: Counter[str]) -> tuple[dict[str, str], list[Unresolved]]:
    """Return the streaming settings that the file sets by `conf.set` or `config`, and those that can't be known."""
    settings: dict[str, str] = {}
    problems: list[Unresolved] = []
    for node in ast.walk(module):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 2):
            continue
        owner = node.func.value
        is_set = node.func.attr == "set" and isinstance(owner, ast.Attribute) and owner.attr == "conf"
        if not (is_set or node.func.attr == "config"):
            continue
        try:
            name, value = (_constant(argument, outer, bound) for argument in node.args)
        except Unresolved:
            if _STREAMING in ast.unparse(node.args[0]) or not isinstance(node.args[0], ast.Constant):
                problems.append(Unresolved(node, f"the check can't tell what {code(node)} sets"))
            continue
        if not str(name).startswith(_STREAMING):
            continue
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if settings.setdefault(str(name), text) != text:
            problems.append(Unresolved(node, f"the file sets `{str(name)[:120]}` to two values"))
    return settings, problems


def _parsed(source: str) -> ast.Module:
    if len(source) > MAX_SOURCE:
        raise InvalidSchema(f"the file has more than {MAX_SOURCE:,} characters")
    try:
        return ast.parse(source)
    except SyntaxError as error:
        raise InvalidSchema(f"this is not Python: {error.msg}", line=error.lineno, column=error.offset) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise InvalidSchema(f"this can't be read as Python: {error or 'it is nested too deep'}") from None


def _plan(calls: list[_Declared], evaluator: Evaluator, problems: list[Unresolved]) -> StatePlan:
    variables: dict[str, PlannedState] = {}
    removed: dict[str, ast.Call] = {}
    for call in calls:
        try:
            if call.verb == _DELETE:
                removed[_name(evaluator, call, *arguments(call.node, "stateName"))] = call.node
            else:
                made = _variable(evaluator, call)
                if made.name in variables:
                    raise Unresolved(call.node, f"the file declares {made.name!r} twice")
                variables[made.name] = made
        except Unresolved as problem:
            problems.append(problem)
    problems += [
        Unresolved(node, f"the file both deletes and declares {name!r}")
        for name, node in removed.items()
        if name in variables
    ]
    if problems:
        raise _refusal(problems)
    if len(variables) > MAX_VARIABLES:
        raise InvalidSchema(f"the file declares more than {MAX_VARIABLES:,} state variables")
    return StatePlan(tuple(variables.values()), tuple(removed), language="python")


def _variable(evaluator: Evaluator, call: _Declared) -> PlannedState:
    kind, parameters = _GETTERS[call.verb]
    name, *schemas, ttl = arguments(call.node, *parameters)
    read = [_schema(evaluator, call, schema) for schema in schemas]
    duration = evaluator.value(ttl, call.scope) if ttl is not None else None
    if duration is not None and type(duration) is not int:
        raise Unresolved(ttl or call.node, "the time to live is not a number of milliseconds")
    if duration is not None and duration < 0:
        raise Unresolved(ttl or call.node, "the time to live is below zero")
    return PlannedState(
        name=_name(evaluator, call, name),
        kind=kind,
        value=read[-1],
        user_key=read[0] if kind == "map" else None,
        has_ttl=bool(duration),  # 0 means no TTL to Spark
        place=f"line {call.node.lineno}, column {call.node.col_offset + 1}",
    )


def _name(evaluator: Evaluator, call: _Declared, argument: ast.expr | None) -> str:
    if argument is None:
        raise Unresolved(call.node, f"`{call.verb}` is called without a name")
    name: Any = evaluator.value(argument, call.scope)
    if not isinstance(name, str) or not name or len(name) > MAX_NAME:
        raise Unresolved(argument, "the variable's name is not a text")
    return name


def _schema(evaluator: Evaluator, call: _Declared, argument: ast.expr | None) -> Mapping[str, Any]:
    if argument is None:
        raise Unresolved(call.node, f"`{call.verb}` is called without a schema")
    made = evaluator.schema(argument, call.scope)
    try:
        parse_struct(made)
    except InvalidSchema as error:
        raise Unresolved(argument, error.message) from None
    return made


def _refusal(problems: list[Unresolved]) -> InvalidSchema:
    """Return one error for everything that couldn't be read; its position is that of the first."""
    first, *more = problems[:SHOWN_PROBLEMS]
    reasons = [first.why, *(f"line {e.node.lineno}, column {e.node.col_offset + 1}: {e.why}" for e in more)]
    sentences = ". ".join(reason[:1].upper() + reason[1:] for reason in reasons)
    return InvalidSchema(
        f"{sentences}. Write the plan as a JSON document instead.",
        line=first.node.lineno,
        column=first.node.col_offset + 1,
    )
