"""Costly schemas are read and compared in child processes that can be killed: `Pool.run(verb, …)`.

Both sides use `WeighedCache` and `codec`; `child` is a child's program and its verbs, `process` one child as its parent
sees it, `pool` all children.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cachetools import LRUCache

Value = TypeVar("Value")


class WeighedCache(Generic[Value]):
    """A thread-safe LRU cache of up to `capacity` in sum of weights: one schema may be a thousand times another.

    A value heavier than a tenth of the capacity isn't kept, so that it doesn't push out all others.
    """

    def __init__(self, capacity: int, weigh: Callable[[Value], int]) -> None:
        self._largest = capacity // 10
        self._weigh = weigh
        self._entries: LRUCache[Hashable, Value] = LRUCache(capacity, getsizeof=weigh)
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key, made if it is missing; two threads may both make it. Raises what `make` raises."""
        with self._lock:
            if key in self._entries:
                return self._entries[key]
        value = make()
        if self._weigh(value) <= self._largest:
            with self._lock:
                self._entries[key] = value
        return value

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._entries

    def clear(self) -> None:
        """Remove everything."""
        with self._lock:
            self._entries.clear()

    @property
    def weight(self) -> int:
        """The sum of the weights."""
        return int(self._entries.currsize)
