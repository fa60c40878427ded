"""Whether a JSON value is of a type: TypedDict, list, dict, union, Literal and the plain ones."""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict


@cache
def fields_of(form: type) -> dict[str, tuple[Any, bool]]:
    """The fields of a TypedDict: their types, and whether each is required."""
    # Annotations are texts until they are resolved here, so that `__required_keys__` knows nothing of NotRequired.
    hints = get_type_hints(form, include_extras=True)
    return {
        name: (get_args(kind)[0], False) if get_origin(kind) is NotRequired else (kind, True)
        for name, kind in hints.items()
    }


def mismatch(value: object, kind: Any) -> str:
    """Where and how a value isn't of a type; empty where it is. Whole numbers count as floats, booleans not as numbers."""
    kind = getattr(kind, "__supertype__", kind)
    if is_typeddict(kind):
        return _in_fields(value, kind)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        problems = [mismatch(value, each) for each in get_args(kind)]
        return "" if "" in problems else problems[0]
    if origin is Literal:
        return "" if value in get_args(kind) else f"{value!r:.60} is none of {get_args(kind)}"
    if origin is list:
        return _in_list(value, get_args(kind)[0])
    if origin is dict:
        return _in_dict(value, *get_args(kind))
    return "" if _is_plain(value, kind) else f"{value!r:.60} is no {getattr(kind, '__name__', kind)}"


def _is_plain(value: object, kind: Any) -> bool:
    if kind is Any:
        return True
    if kind in (None, NoneType):
        return value is None
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float if kind is float else kind)


def _in_fields(value: object, form: type) -> str:
    if not isinstance(value, dict):
        return f"{value!r:.60} is no object"
    fields = fields_of(form)
    unknown = sorted(set(value) - set(fields))
    missing = sorted(name for name, (_, is_required) in fields.items() if is_required and name not in value)
    if unknown or missing:
        return f"{form.__name__} has no field {unknown[0]}" if unknown else f"{form.__name__} needs {missing[0]}"
    for name, each in value.items():
        problem = mismatch(each, fields[name][0])
        if problem:
            return f"{name}: {problem}"
    return ""


def _in_list(value: object, kind: Any) -> str:
    if not isinstance(value, list):
        return f"{value!r:.60} is no list"
    problems = ((number, mismatch(each, kind)) for number, each in enumerate(value))
    return next((f"[{number}] {problem}" for number, problem in problems if problem), "")


def _in_dict(value: object, key: Any, kind: Any) -> str:
    if not isinstance(value, dict):
        return f"{value!r:.60} is no object"
    for name, each in value.items():
        problem = mismatch(name, key) or mismatch(each, kind)
        if problem:
            return f"{name!s:.60}: {problem}"
    return ""
