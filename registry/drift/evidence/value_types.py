"""The types of evidence values, and the check of JSON values against them. Times are milliseconds since 1970 in UTC."""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NewType,
    NotRequired,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

Milliseconds = NewType("Milliseconds", int)


class PartitionRow(TypedDict):
    """Messages of one partition; `hours` are counts by hour since 1970 (as text), until the scan is stored.

    Earlier releases stored some without times.
    """

    partition: int
    messages: int
    first_offset: int
    last_offset: int
    first_time: NotRequired[Milliseconds]
    last_time: NotRequired[Milliseconds]
    hours: NotRequired[dict[str, int]]


class SampleRow(TypedDict):
    """A message, masked."""

    partition: int
    offset: int
    time: Milliseconds
    value: str


class MessageRow(TypedDict):
    """The position of a message."""

    partition: int
    offset: int


class FailureRow(TypedDict):
    """A message that couldn't be read; `reason` if known."""

    partition: int
    offset: int
    reason: NotRequired[str]


class ExpiredRow(TypedDict):
    """Offsets of a partition that were deleted unread, from `start` to before `end`."""

    partition: int
    start: int
    end: int


class MarkRow(TypedDict):
    """A schema as messages name it, and the time of the first message with it."""

    mark: str
    first_time: Milliseconds


class RegistrationRow(TypedDict):
    """Who registered a version, and when."""

    version: int
    by: str
    at: Milliseconds


class VersionEntry(TypedDict):
    """A registered version."""

    subject: str
    version: int
    schema_id: int
    registered_at: Milliseconds
    registered_by: str
    door: str


class FieldChangeRow(TypedDict):
    """A field of a state variable: its type before and after; None if it doesn't exist."""

    field: str
    before: str | None
    after: str | None


class FieldDepartureRow(TypedDict):
    """A field of a state variable that differs from a subject: `before` is declared, `after` is in the state."""

    field: str
    before: str | None
    after: str | None


class DayRow(TypedDict):
    """A day's values of a field, or its messages; `when` is a day, an hour, or `now`. The ends are masked."""

    when: str
    messages: int
    distinct: NotRequired[int]
    minimum: NotRequired[str]
    maximum: NotRequired[str]


@cache
def fields_of(form: type) -> dict[str, tuple[Any, bool]]:
    """Return the fields of a TypedDict: their types, and whether each is required."""
    # Annotations are text until they are resolved here, so `__required_keys__` doesn't reflect NotRequired.
    hints = get_type_hints(form, include_extras=True)
    return {
        name: (get_args(kind)[0], False) if get_origin(kind) is NotRequired else (kind, True)
        for name, kind in hints.items()
    }


def mismatch(value: object, kind: Any) -> str:
    """Return where and how a value doesn't match a type; empty if it does. Integers match float, booleans don't."""
    kind = getattr(kind, "__supertype__", kind)
    if is_typeddict(kind):
        return _in_fields(value, kind)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        problems = [mismatch(value, member) for member in get_args(kind)]
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
    for name, item in value.items():
        problem = mismatch(item, fields[name][0])
        if problem:
            return f"{name}: {problem}"
    return ""


def _in_list(value: object, kind: Any) -> str:
    if not isinstance(value, list):
        return f"{value!r:.60} is no list"
    problems = ((number, mismatch(item, kind)) for number, item in enumerate(value))
    return next((f"[{number}] {problem}" for number, problem in problems if problem), "")


def _in_dict(value: object, key: Any, kind: Any) -> str:
    if not isinstance(value, dict):
        return f"{value!r:.60} is no object"
    for name, item in value.items():
        problem = mismatch(name, key) or mismatch(item, kind)
        if problem:
            return f"{name!s:.60}: {problem}"
    return ""
