"""What every file system says of a folder and of a file, and the limits that hold for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol

from registry.errors import InvalidCheckpoint

MAX_ENTRIES: Final = 100_000  # of one folder


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder; `written_at` is in milliseconds since 1970, `size` in bytes.

    `stamp` differs when the file was written again: the time in nanoseconds, or the object's tag.
    """

    name: str
    is_folder: bool
    written_at: int
    size: int = 0
    stamp: str = ""


class Missing(InvalidCheckpoint):
    """A file that isn't there: never was, or the query that owns the checkpoint has removed it meanwhile."""

    def __init__(self, shown: str) -> None:
        super().__init__(f"{shown} can't be read: there is no such file", file=shown)


class Folder(Protocol):
    """A folder of some file system, opened for reading; `shown` is its name in messages, `limit` is in bytes."""

    path: str

    def is_folder(self, parts: tuple[str, ...]) -> bool:
        """Whether there is a folder of that name."""
        ...

    def is_file(self, parts: tuple[str, ...]) -> bool:
        """Whether there is a file of that name."""
        ...

    def identity(self, parts: tuple[str, ...]) -> str:
        """Where a folder is, its links followed."""
        ...

    def entries(self, parts: tuple[str, ...], shown: str) -> tuple[Entry, ...]:
        """What a folder holds, by name; nothing when it isn't there."""
        ...

    def read(self, parts: tuple[str, ...], shown: str, limit: int) -> bytes:
        """A file's bytes; raises Missing and InvalidCheckpoint."""
        ...

    def fetch(self, parts: tuple[str, ...], names: Iterable[str], limit: int) -> None:
        """Get files of a folder together where each request takes long; `read` gives them then."""
        ...


def listed(found: Iterable[Entry], shown: str) -> tuple[Entry, ...]:
    """Entries by name, without hidden files and checksums; raises InvalidCheckpoint above MAX_ENTRIES."""
    entries = list(islice(found, MAX_ENTRIES + 1))
    if len(entries) > MAX_ENTRIES:
        raise InvalidCheckpoint(f"{shown} holds more than {MAX_ENTRIES} files; no checkpoint does")
    kept = (entry for entry in entries if not entry.name.startswith(".") and not entry.name.endswith(".crc"))
    return tuple(sorted(kept, key=lambda entry: entry.name))


def too_large(shown: str, size: int, limit: int) -> InvalidCheckpoint:
    """The refusal of a file by its size alone."""
    return InvalidCheckpoint(f"{shown} has {size} bytes; such a file has at most {limit}", file=shown)
