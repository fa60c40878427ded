"""A folder on this machine's disk, read only inside the allowed roots and never opened for writing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from registry.checkpoints.entries import Entry, Missing, listed, too_large
from registry.errors import InvalidCheckpoint

OUTSIDE = "the path lies outside the folders that may be read; ask who runs this service to allow its folder"


class LocalFolder:
    """Every path, with its symbolic links followed, stays inside the roots, which are given with links followed."""

    def __init__(self, path: str, roots: Sequence[str]) -> None:
        self._roots = tuple(Path(root) for root in roots)
        self._base = self._resolve(Path(path))
        self.path = str(self._base)

    def is_folder(self, parts: tuple[str, ...]) -> bool:
        """Whether there is a folder of that name."""
        return self._resolve(self._base.joinpath(*parts)).is_dir()

    def is_file(self, parts: tuple[str, ...]) -> bool:
        """Whether there is a file of that name."""
        return self._resolve(self._base.joinpath(*parts)).is_file()

    def identity(self, parts: tuple[str, ...]) -> str:
        """The folder that a name leads to, its links followed: two names of one folder have the same."""
        return str(self._resolve(self._base.joinpath(*parts)))

    def entries(self, parts: tuple[str, ...], shown: str) -> tuple[Entry, ...]:
        """What a folder holds; nothing when it isn't there."""
        folder = self._resolve(self._base.joinpath(*parts))
        if not folder.is_dir():
            return ()
        return listed(self._scan(folder, shown), shown)

    def _scan(self, folder: Path, shown: str) -> Iterator[Entry]:
        try:
            with os.scandir(folder) as listing:
                for item in listing:
                    try:
                        status = item.stat()
                        is_folder = item.is_dir()
                    except FileNotFoundError:
                        continue  # the query that owns the checkpoint removed it meanwhile, or it is a dangling link
                    stamp = f"{status.st_mtime_ns}-{status.st_ino}"
                    yield Entry(item.name, is_folder, status.st_mtime_ns // 1_000_000, status.st_size, stamp)
        except FileNotFoundError:
            return
        except OSError as error:
            raise InvalidCheckpoint(f"{shown} can't be listed: {error.strerror}") from error

    def read(self, parts: tuple[str, ...], shown: str, limit: int) -> bytes:
        """A regular file's bytes; raises Missing, and InvalidCheckpoint when it is no file or larger than `limit`."""
        path = self._resolve(self._base.joinpath(*parts))
        try:
            # Without O_NONBLOCK, opening a pipe that somebody left there would wait for ever.
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise Missing(shown) from error
        except OSError as error:
            raise InvalidCheckpoint(f"{shown} can't be read: {error.strerror}", file=shown) from error
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise InvalidCheckpoint(f"{shown} is no regular file", file=shown)
            if status.st_size > limit:
                raise too_large(shown, status.st_size, limit)
            return file.read(limit + 1)

    def fetch(self, parts: tuple[str, ...], names: Iterable[str], limit: int) -> None:
        """Nothing to do: a disk answers each read at once."""

    def _resolve(self, path: Path) -> Path:
        try:
            resolved = path.resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise InvalidCheckpoint("the path can't be followed: too long, or its links go in a circle") from error
        if not any(resolved.is_relative_to(root) for root in self._roots):
            # The same words whether it exists or not: what lies outside isn't this product's to tell.
            raise InvalidCheckpoint(OUTSIDE)
        return resolved
