"""Files of a checkpoint, read only inside the allowed folders and only up to a size."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from registry.errors import InvalidCheckpoint

MAX_ENTRIES = 100_000  # of one folder


@dataclass(frozen=True)
class Entry:
    """A file or folder of a checkpoint; `written_at` is in milliseconds since 1970."""

    name: str
    is_folder: bool
    written_at: int


class CheckpointFiles:
    """Read-only access to one folder. Every path, with its symbolic links followed, stays inside the allowed roots."""

    def __init__(self, path: str, allowed_roots: Iterable[str | os.PathLike[str]]) -> None:
        self._roots = tuple(Path(root).resolve() for root in allowed_roots)
        self.path = self._resolve(_local_path(path))

    def shown(self, *parts: str) -> str:
        """A path inside the checkpoint as messages name it."""
        return "/".join(parts) or "."

    def is_folder(self, *parts: str) -> bool:
        """Whether there is a folder of that name."""
        return self._resolve(self.path.joinpath(*parts)).is_dir()

    def is_file(self, *parts: str) -> bool:
        """Whether there is a file of that name."""
        return self._resolve(self.path.joinpath(*parts)).is_file()

    def entries(self, *parts: str) -> tuple[Entry, ...]:
        """What a folder holds, by name; nothing when it isn't there. Raises InvalidCheckpoint above MAX_ENTRIES."""
        folder = self._resolve(self.path.joinpath(*parts))
        if not folder.is_dir():
            return ()
        found = list(self._scan(folder, self.shown(*parts)))
        return tuple(sorted(found, key=lambda entry: entry.name))

    def _scan(self, folder: Path, shown: str) -> Iterator[Entry]:
        try:
            with os.scandir(folder) as listing:
                for number, item in enumerate(listing):
                    if number >= MAX_ENTRIES:
                        raise InvalidCheckpoint(f"{shown} holds more than {MAX_ENTRIES} files; no checkpoint does")
                    if item.name.endswith(".crc") or item.name.startswith("."):
                        continue
                    try:
                        written_at = item.stat().st_mtime_ns // 1_000_000
                    except FileNotFoundError:
                        continue  # the query that owns the checkpoint removed it meanwhile, or it is a dangling link
                    yield Entry(item.name, item.is_dir(), written_at)
        except OSError as error:
            raise InvalidCheckpoint(f"{shown} can't be listed: {error.strerror}") from error

    def read(self, *parts: str, limit: int) -> bytes:
        """A regular file's bytes; raises InvalidCheckpoint when it is missing, no file, or larger than `limit`."""
        shown = self.shown(*parts)
        path = self._resolve(self.path.joinpath(*parts))
        try:
            # Without O_NONBLOCK, opening a pipe that somebody left there would wait for ever.
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError as error:
            raise InvalidCheckpoint(f"{shown} can't be read: {error.strerror}", file=shown) from error
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise InvalidCheckpoint(f"{shown} is no regular file", file=shown)
            if status.st_size > limit:
                raise InvalidCheckpoint(
                    f"{shown} has {status.st_size} bytes; such a file has at most {limit}", file=shown
                )
            content = file.read(limit + 1)
        if len(content) > limit:
            raise InvalidCheckpoint(f"{shown} has more than {limit} bytes", file=shown)
        return content

    def _resolve(self, path: Path) -> Path:
        try:
            resolved = path.resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise InvalidCheckpoint("the path can't be followed: too long, or its links go in a circle") from error
        if not any(resolved.is_relative_to(root) for root in self._roots):
            # The same words whether it exists or not: what lies outside isn't this product's to tell.
            raise InvalidCheckpoint(
                "the path lies outside the folders that may be read; ask who runs this service to allow its folder"
            )
        return resolved


def _local_path(path: str) -> Path:
    """The local path of a plain path or a `file:` address; raises InvalidCheckpoint for any other."""
    text = path.strip()
    if not text or "\0" in text or len(text) > 4096:
        raise InvalidCheckpoint("a checkpoint's path has 1 to 4096 characters, none of them a null")
    if "::" in text or ("://" in text and not text.startswith("file://")):
        raise InvalidCheckpoint("the checkpoint must be a local folder: other file systems aren't read yet")
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    local = Path(text)
    if not local.is_absolute():
        raise InvalidCheckpoint("a checkpoint's path begins with /")
    return local
