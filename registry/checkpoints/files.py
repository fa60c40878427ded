"""Files of a checkpoint on any file system, read only inside the allowed roots, within limits of size and time.

A cache keeps what was read, so that an unchanged checkpoint isn't read again.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from registry.checkpoints.filesystem import (
    LOCAL,
    OUTSIDE,
    Entry,
    Folder,
    LocalFolder,
    Location,
    Missing,
    location_of_root,
    parse_location,
)
from registry.checkpoints.object_store import ObjectStore, StoreFolder
from registry.errors import InvalidCheckpoint

if TYPE_CHECKING:
    from registry.checkpoints.model import Checkpoint

__all__ = ["CheckpointFiles", "Entry", "Missing", "ReadLimits"]


MAX_CONTENT: Final = 1024 * 1024  # bytes; larger files aren't cached

#: folder → its listing. A read of a checkpoint depends only on these, as every file is in a listed folder.
Listings = dict[tuple[str, ...], tuple[Entry, ...]]


class ReadCache:
    """Checkpoints by path with the listings they were read from, and small files by name, size and stamp.

    Safe for several threads of one process; evicts the least recently used. It relies on the file system's stamps: a
    file rewritten with the same size within one tick of the clock looks unchanged. Spark never writes one of these
    files twice.
    """

    def __init__(self, checkpoints: int = 2_000, total_bytes: int = 64 * 1024 * 1024) -> None:
        self._lock = threading.Lock()
        self._most = checkpoints
        self._bytes_left = total_bytes
        self._checkpoints: OrderedDict[tuple[str, str], tuple[Listings, Checkpoint]] = OrderedDict()
        self._contents: OrderedDict[tuple[str, tuple[str, ...], int, str], bytes] = OrderedDict()

    def checkpoint(self, path: str, spelling: str) -> tuple[Listings, Checkpoint] | None:
        """Return the listings and the checkpoint of the last read of `path` as `spelling`; None without a read."""
        with self._lock:
            entry = self._checkpoints.get((path, spelling))
            if entry is not None:
                self._checkpoints.move_to_end((path, spelling))
            return entry

    def keep_checkpoint(self, path: str, spelling: str, listings: Listings, checkpoint: Checkpoint) -> None:
        """Store a read checkpoint with its listings."""
        with self._lock:
            self._checkpoints[path, spelling] = (listings, checkpoint)
            self._checkpoints.move_to_end((path, spelling))
            while len(self._checkpoints) > self._most:
                self._checkpoints.popitem(last=False)

    def content(self, path: str, parts: tuple[str, ...], entry: Entry) -> bytes | None:
        """Return the cached bytes of a file with the same size and stamp; None if there are none."""
        key = (path, parts, entry.size, entry.stamp)
        with self._lock:
            data = self._contents.get(key)
            if data is not None:
                self._contents.move_to_end(key)
            return data

    def keep_content(self, path: str, parts: tuple[str, ...], entry: Entry, content: bytes) -> None:
        """Store a file of at most MAX_CONTENT bytes."""
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


MAX_NAME = 1_024  # characters of a name; file systems allow 255 bytes, object stores 1,024 for the whole key


@dataclass(frozen=True)
class ReadLimits:
    """Limits for reading one checkpoint: bytes of all its files together, and seconds since the start."""

    total_bytes: int = 512 * 1024 * 1024
    seconds: float = 120.0


class CheckpointFiles:
    """Read-only access to one folder. Every path, with its symbolic links resolved, stays inside the allowed roots.

    `store` is the open object store for an address such as `s3://bucket/folder`; without one, only local folders are
    read. The constructor and every method raise InvalidCheckpoint for a path that isn't allowed.
    """

    def __init__(
        self,
        path: str,
        allowed_roots: Iterable[str | os.PathLike[str]],
        *,
        store: ObjectStore | None = None,
        cache: ReadCache | None = None,
        patience: ReadLimits | None = None,
    ) -> None:
        self._location = parse_location(path, (LOCAL, store.protocol) if store else (LOCAL,))
        self._folder = _open(self._location, [location_of_root(root) for root in allowed_roots], store)
        self._cache = cache
        self.cache_name = f"{store.name} {self._folder.path}" if store else self._folder.path
        patience = patience or ReadLimits()
        self._bytes_left = patience.total_bytes
        self._patience = patience
        self._end = time.monotonic() + patience.seconds
        self._listings: dict[tuple[str, ...], tuple[Entry, ...]] = {}
        self._by_name: dict[tuple[str, ...], dict[str, Entry]] = {}

    @property
    def path(self) -> str:
        """Return the folder's path with its links resolved, or its address."""
        return self._folder.path

    @property
    def listings(self) -> dict[tuple[str, ...], tuple[Entry, ...]]:
        """Return all folders listed so far, as first listed: later writes count as new."""
        return dict(self._listings)

    def shown(self, *parts: str) -> str:
        """Return a path inside the checkpoint for messages."""
        return "/".join(parts) or "."

    def is_folder(self, *parts: str) -> bool:
        """Return whether a folder has this name."""
        return self._folder.is_folder(_names(parts))

    def is_file(self, *parts: str) -> bool:
        """Return whether a file has this name."""
        return self._folder.is_file(_names(parts))

    def identity(self, *parts: str) -> str:
        """Return the path of a folder with its links resolved."""
        return self._folder.identity(_names(parts))

    def entries(self, *parts: str) -> tuple[Entry, ...]:
        """Return a folder's entries by name; none if it doesn't exist. Raises InvalidCheckpoint above MAX_ENTRIES."""
        self._check_time()
        entries = self._folder.entries(_names(parts), self.shown(*parts))
        self._listings.setdefault(parts, entries)
        return entries

    def fetch(self, *parts: str, names: Iterable[str], limit: int) -> None:
        """Prefetch files of a folder that are read next: an object store returns them together. Skips cached files."""
        self._check_time()
        self._folder.fetch(_names(parts), [name for name in names if self._cached((*parts, name)) is None], limit)

    def read(self, *parts: str, limit: int) -> bytes:
        """Return a file's bytes.

        Raises InvalidCheckpoint if it isn't a regular file or is larger than `limit`, and its subclass Missing if it
        doesn't exist.
        """
        self._check_time()
        shown = self.shown(*parts)
        cached = self._cached(parts)
        if cached is not None:
            return cached
        content = self._folder.read(_names(parts), shown, limit)
        if len(content) > limit:
            raise InvalidCheckpoint(f"{shown} has more than {limit} bytes", file=shown)
        self._bytes_left -= len(content)
        if self._bytes_left < 0:
            raise InvalidCheckpoint(
                f"the checkpoint's metadata has more than {self._patience.total_bytes} bytes, more than any query "
                "writes",
                file=shown,
            )
        entry = self._listed(parts)
        if self._cache and entry and entry.size == len(content):
            self._cache.keep_content(self.cache_name, parts, entry, content)
        return content

    def _cached(self, parts: tuple[str, ...]) -> bytes | None:
        entry = self._listed(parts) if self._cache else None
        return self._cache.content(self.cache_name, parts, entry) if self._cache and entry else None

    def _listed(self, parts: tuple[str, ...]) -> Entry | None:
        """Return the entry of a file whose folder was listed before; None otherwise."""
        folder = parts[:-1]
        if folder not in self._listings:
            return None
        if folder not in self._by_name:
            self._by_name[folder] = {entry.name: entry for entry in self._listings[folder] if entry.stamp}
        return self._by_name[folder].get(parts[-1])

    def _check_time(self) -> None:
        if time.monotonic() > self._end:
            raise InvalidCheckpoint(
                f"reading the checkpoint took more than {self._patience.seconds:g} s: too many files, or a slow disk"
            )


def _names(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names, which may come from the checkpoint's own files; raises InvalidCheckpoint if one is a path."""
    for part in parts:
        if part in ("", ".", "..") or "/" in part or "\0" in part or len(part) > MAX_NAME:
            raise InvalidCheckpoint(f"the checkpoint refers to {part[:60]!r}, which is not one of its files or folders")
    return parts


def _open(location: Location, roots: list[Location], store: ObjectStore | None) -> Folder:
    if location.protocol == LOCAL:
        return LocalFolder(location.path, [root.path for root in roots if root.protocol == LOCAL])
    if store is None or not any(location.is_below(root) for root in roots):
        raise InvalidCheckpoint(OUTSIDE)
    return StoreFolder(location, store)
