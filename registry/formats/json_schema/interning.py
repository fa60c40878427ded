"""Numbers for JSON values: equal for equal values, whatever the order of keys; each value is looked at once."""

from __future__ import annotations

from decimal import Decimal
from typing import Any


class Interning:
    """Gives the same number for equal JSON values; containers must stay alive and unchanged while it is used."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._known: dict[int, int] = {}

    def number(self, value: Any) -> int:
        """The number of a JSON value (at most a few hundred levels deep)."""
        if not isinstance(value, (dict, list)):
            return self._new(_scalar_key(value))
        known = self._known.get(id(value))
        if known is None:
            if isinstance(value, dict):
                items = frozenset((key, self.number(item)) for key, item in value.items())
                known = self._new(("object", items))
            else:
                known = self._new(("array", tuple(self.number(item) for item in value)))
            self._known[id(value)] = known
        return known

    def _new(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _scalar_key(value: Any) -> tuple[str, Any]:
    """A key under which true isn't 1, and 1 is 1.0 as in JSON."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, (int, Decimal, float)):
        return ("number", value)
    return ("string", value) if isinstance(value, str) else ("null", None)


def json_equal(first: Any, second: Any) -> bool:
    """Whether two JSON values are equal: numbers by value, objects whatever their order, true is not 1."""
    if first is second:
        return True
    interning = Interning()
    return interning.number(first) == interning.number(second)
