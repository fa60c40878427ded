"""A cache that is bounded by what it holds, not by how many: one schema may be a thousand times another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cachetools import LRUCache

Value = TypeVar("Value")


class WeighedCache(Generic[Value]):
    """Keeps what was used last, up to `capacity` in sum of weights; thread-safe.

    What is heavier than a tenth of the capacity is made and not kept, so that one value doesn't push out all others.
    """

    def __init__(self, capacity: int, weigh: Callable[[Value], int]) -> None:
        self._largest = capacity // 10
        self._weigh = weigh
        self._entries: LRUCache[Hashable, Value] = LRUCache(capacity, getsizeof=weigh)
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, made if it isn't there; two threads may make the same one. What `make` raises, it raises."""
        with self._lock:
            if key in self._entries:
                return self._entries[key]
        value = make()
        if self._weigh(value) <= self._largest:
            with self._lock:
                self._entries[key] = value
        return value

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._entries.clear()

    @property
    def weight(self) -> int:
        """The sum of what is held."""
        return int(self._entries.currsize)
