"""What was read before, so that a checkpoint in which nothing changed is not read again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from registry.checkpoints.entries import Entry

if TYPE_CHECKING:
    from registry.checkpoints.model import Checkpoint

MAX_CONTENT: Final = 1024 * 1024  # bytes of one file that is kept

#: folder → what was listed in it: all that a checkpoint's reading depends on, since every file read stands in one
Listings = dict[tuple[str, ...], tuple[Entry, ...]]


class ReadCache:
    """Checkpoints by path with the listings that they were read from, and small files by name, size and stamp.

    For several threads of one process; what was used longest ago goes first. What it answers is as good as the file
    system's stamps: a file rewritten in the same size within one tick of its clock looks unchanged. Spark writes none
    of these files twice.
    """

    def __init__(self, checkpoints: int = 2_000, total_bytes: int = 64 * 1024 * 1024) -> None:
        self._lock = threading.Lock()
        self._most = checkpoints
        self._bytes_left = total_bytes
        self._checkpoints: OrderedDict[tuple[str, str], tuple[Listings, Checkpoint]] = OrderedDict()
        self._contents: OrderedDict[tuple[str, tuple[str, ...], int, str], bytes] = OrderedDict()

    def checkpoint(self, path: str, given: str) -> tuple[Listings, Checkpoint] | None:
        """What the last reading of `path`, written as `given`, saw and gave."""
        with self._lock:
            found = self._checkpoints.get((path, given))
            if found is not None:
                self._checkpoints.move_to_end((path, given))
            return found

    def keep_checkpoint(self, path: str, given: str, listings: Listings, checkpoint: Checkpoint) -> None:
        """Remember a reading."""
        with self._lock:
            self._checkpoints[path, given] = (listings, checkpoint)
            self._checkpoints.move_to_end((path, given))
            while len(self._checkpoints) > self._most:
                self._checkpoints.popitem(last=False)

    def content(self, path: str, parts: tuple[str, ...], entry: Entry) -> bytes | None:
        """The bytes of a file that has the same size and stamp as when it was read."""
        key = (path, parts, entry.size, entry.stamp)
        with self._lock:
            found = self._contents.get(key)
            if found is not None:
                self._contents.move_to_end(key)
            return found

    def keep_content(self, path: str, parts: tuple[str, ...], entry: Entry, content: bytes) -> None:
        """Remember a file of at most MAX_CONTENT bytes."""
        if len(content) > MAX_CONTENT:
            return
        key = (path, parts, entry.size, entry.stamp)
        with self._lock:
            self._bytes_left += len(self._contents.pop(key, b""))
            self._contents[key] = content
            self._bytes_left -= len(content)
            while self._bytes_left < 0 and self._contents:
                _, dropped = self._contents.popitem(last=False)
                self._bytes_left += len(dropped)
