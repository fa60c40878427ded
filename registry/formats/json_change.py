"""Changes to a JSON value at a place that a JSON Pointer names."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from registry.errors import InvalidDatum
from registry.formats.json_pointer import join, unescape


@dataclass(frozen=True, slots=True)
class Change:
    """A modification of a datum: the JSON Pointer of the place, and its new value."""

    pointer: str
    value: Any


def apply_change(value: Any, change: Change) -> Any:
    """Return a changed copy of a JSON value; raises InvalidDatum if the pointer has no target."""
    return apply_changes(value, [change])


def apply_changes(value: Any, changes: Sequence[Change]) -> Any:
    """Return a copy of a JSON value with the changes made in order; raises InvalidDatum if a pointer has no target."""
    result = copy.deepcopy(value)
    for change in changes:
        result = _changed(result, change)
    return result


def _changed(result: Any, change: Change) -> Any:
    """Change the value in place, or return a replacement if the pointer is the root."""
    if not change.pointer:
        return copy.deepcopy(change.value)
    *holders, last = change.pointer.split("/")[1:] or [""]
    holder = result
    for part in holders:
        holder = _inside(holder, unescape(part), change)
    key = unescape(last)
    _inside(holder, key, change)
    holder[int(key) if isinstance(holder, list) else key] = copy.deepcopy(change.value)
    return result


def _inside(holder: Any, key: str, change: Change) -> Any:
    if isinstance(holder, dict) and key in holder:
        return holder[key]
    if isinstance(holder, list) and key.isdecimal() and int(key) < len(holder):
        return holder[int(key)]
    raise InvalidDatum(
        f'the change points to a missing value: the record has no "{change.pointer[:200]}"', pointer=change.pointer
    )


def scalar_places(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the strings, numbers, booleans and nulls in a JSON value, each with its pointer; without recursion."""
    stack = [("", value)]
    while stack:
        pointer, item = stack.pop()
        if isinstance(item, dict):
            stack.extend((join(pointer, key), inner) for key, inner in reversed(item.items()))
        elif isinstance(item, list):
            stack.extend((join(pointer, index), inner) for index, inner in reversed(list(enumerate(item))))
        else:
            yield pointer, item


def different_value(value: Any) -> Any:
    """Return another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 2 + 1
    return f"{value} changed" if isinstance(value, str) else value
