"""A cache that is bounded by what it holds, not by how many: one schema may be a thousand times another."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class WeighedCache(Generic[Value]):
    """Keeps what was used last, up to `capacity` in sum of weights; thread-safe.

    What is heavier than a tenth of the capacity is made and not kept, so that one value doesn't push out all others.
    """

    def __init__(self, capacity: int, weigh: Callable[[Value], int]) -> None:
        self._capacity = capacity
        self._weigh = weigh
        self._entries: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, made if it isn't there; two threads may make the same one. What `make` raises, it raises."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
                return entry[0]
        value = make()
        weight = self._weigh(value)
        if weight <= self._capacity // 10:
            self._keep(key, value, weight)
        return value

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._entries.clear()
            self._weight = 0

    @property
    def weight(self) -> int:
        """The sum of what is held."""
        return self._weight

    def _keep(self, key: Hashable, value: Value, weight: int) -> None:
        with self._lock:
            replaced = self._entries.pop(key, None)
            self._entries[key] = (value, weight)
            self._weight += weight - (replaced[1] if replaced else 0)
            while self._weight > self._capacity:
                _, (_, freed) = self._entries.popitem(last=False)
                self._weight -= freed
