"""File systems with checkpoints: parsed locations, folder entries with their limits, and the local disk."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

from registry.errors import InvalidCheckpoint

LOCAL: Final = "file"
MAX_TEXT: Final = 4096
# Protocol as written → its file system. Others are never read, whatever the settings say: they run programs (ssh, git),
# reach any address (http, ftp), or are this process's own memory.
FILE_SYSTEMS: Final = {"file": LOCAL, "local": LOCAL, "s3": "s3", "s3a": "s3", "s3n": "s3"}
_SCHEME = re.compile(r"(?P<protocol>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>/.*)", re.DOTALL)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")  # S3's rule for bucket names
_NOT_IN_KEYS = re.compile(r"[\x00-\x1f\x7f?#\\]")


@dataclass(frozen=True)
class Location:
    """A folder: its file system (`file` or `s3`) and its path (`bucket/key` in an object store, no outer slashes)."""

    protocol: str
    path: str

    @property
    def text(self) -> str:
        """Return the address as people write it."""
        return self.path if self.protocol == LOCAL else f"{self.protocol}://{self.path}"

    def is_below(self, root: Location) -> bool:
        """Return whether this is `root` or inside it, by comparing text: links of a local folder aren't resolved."""
        if self.protocol != root.protocol:
            return False
        return self.path == root.path or self.path.startswith(root.path.rstrip("/") + "/")


def parse_location(text: str, protocols: Iterable[str] = (LOCAL,)) -> Location:
    """Parse a path or an address on one of the allowed `protocols`.

    A local folder is an absolute path or a `file:` address. Raises InvalidCheckpoint for anything else: a protocol that
    isn't allowed, chained addresses (`::`), `..`, and invalid bucket or object names.
    """
    text = text.strip()
    if not text or "\0" in text or len(text) > MAX_TEXT:
        raise InvalidCheckpoint(f"a checkpoint path must have 1 to {MAX_TEXT} characters and no null character")
    if "::" in text:
        raise InvalidCheckpoint("chained addresses (with ::) are not supported; give the checkpoint's own folder")
    match = _SCHEME.fullmatch(text)
    if match is None and not text.startswith("/"):
        raise InvalidCheckpoint("a checkpoint path must start with / or with an object store protocol")
    written, rest = (match["protocol"].lower(), match["rest"]) if match else (LOCAL, text)
    protocol = FILE_SYSTEMS.get(written)
    allowed = sorted({FILE_SYSTEMS[protocol_name] for protocol_name in protocols if protocol_name in FILE_SYSTEMS})
    if protocol is None or protocol not in allowed:
        raise InvalidCheckpoint(_refusal(written, protocol is not None, allowed))
    return _local("/" + rest.lstrip("/")) if protocol == LOCAL else _object(protocol, rest)


def _refusal(written: str, is_supported: bool, allowed: list[str]) -> str:
    listed = ", ".join(allowed) or "none"
    if is_supported:
        cure = "the operator can allow it with SCHEMADESK_CHECKPOINT_PROTOCOLS"
    else:
        cure = "copy the checkpoint's metadata, offsets, commits and state folders to a location that is allowed"
    return f"checkpoints at {written[:20]}: addresses are not allowed (allowed: {listed}); {cure}"


def _local(text: str) -> Location:
    if ".." in text.split("/"):
        raise InvalidCheckpoint(
            "the path contains '..', which could lead outside the allowed folders; write it without '..'"
        )
    return Location(LOCAL, text.rstrip("/") or "/")


def _object(protocol: str, rest: str) -> Location:
    if not rest.startswith("//"):
        raise InvalidCheckpoint(f"write the address as {protocol}://BUCKET/FOLDER")
    parts = rest.removeprefix("//").rstrip("/").split("/")
    if not _BUCKET.fullmatch(parts[0]):
        raise InvalidCheckpoint(
            "the address has no valid bucket: give 3 to 63 lowercase letters, digits, '.' and '-', without user "
            "and port"
        )
    if any(part in ("", ".", "..") for part in parts):
        raise InvalidCheckpoint("the address contains an empty part, '.' or '..'; write it without them")
    if _NOT_IN_KEYS.search(rest):
        raise InvalidCheckpoint(
            "the address contains '?', '#', '\\' or a control character, which folder names can't have"
        )
    return Location(protocol, "/".join(parts))


def location_of_root(root: str | os.PathLike[str]) -> Location:
    """Return an allowed root as a location: an address as written, a local folder with its links resolved."""
    text = os.fspath(root)
    match = _SCHEME.fullmatch(text)
    if match is not None and FILE_SYSTEMS.get(match["protocol"].lower(), LOCAL) != LOCAL:
        return parse_location(text, FILE_SYSTEMS)
    return Location(LOCAL, str(Path(text).resolve()))


def why_rows_are_not_readable(path: str, spark_roots: Iterable[str | os.PathLike[str]]) -> str | None:
    """Return why the Spark server can't open a checkpoint and read its rows; None if it can.

    `spark_roots` are the folders and addresses that the Spark server can open: its disk and credentials differ from
    this service's. Compares only the text; accesses nothing. Raises InvalidCheckpoint for an invalid address.
    """
    location = parse_location(path, FILE_SYSTEMS)
    roots = [location_of_root(root) for root in spark_roots]
    if any(location.is_below(root) for root in roots):
        return None
    if any(root.protocol == location.protocol for root in roots):
        return (
            "rows not readable on this server: the Spark server doesn't open this folder; schemas and history are "
            "readable"
        )
    kind = "local folders of this machine" if location.protocol == LOCAL else f"{location.protocol}: addresses"
    return f"rows not readable on this server: the Spark server doesn't open {kind}; schemas and history are readable"


def as_spark_opens(path: str, spark_roots: Iterable[str | os.PathLike[str]]) -> str:
    """Return the path with the protocol of the matching Spark root; a local folder is unchanged.

    Hadoop's client only knows `s3a:`, others `s3:`. Raises InvalidCheckpoint for an invalid address.
    """
    location = parse_location(path, FILE_SYSTEMS)
    if location.protocol == LOCAL:
        return path
    for root in spark_roots:
        match = _SCHEME.fullmatch(os.fspath(root))
        if match is not None and location.is_below(location_of_root(root)):
            return f"{match['protocol'].lower()}://{location.path}"
    return location.text


MAX_ENTRIES: Final = 100_000  # per folder


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder; `written_at` is in milliseconds since 1970, `size` in bytes.

    `stamp` changes if the file is rewritten: the time in nanoseconds, or the object's ETag.
    """

    name: str
    is_folder: bool
    written_at: int
    size: int = 0
    stamp: str = ""


class Missing(InvalidCheckpoint):
    """A file that doesn't exist: it never did, or the query that owns the checkpoint has removed it."""

    def __init__(self, shown: str) -> None:
        super().__init__(f"{shown} can't be read: the file doesn't exist", file=shown)


class Folder(Protocol):
    """A folder of some file system, open for reading; `shown` is its name in messages, `limit` is in bytes."""

    path: str

    def is_folder(self, parts: tuple[str, ...]) -> bool:
        """Return whether a folder has this name."""
        ...

    def is_file(self, parts: tuple[str, ...]) -> bool:
        """Return whether a file has this name."""
        ...

    def identity(self, parts: tuple[str, ...]) -> str:
        """Return the path of a folder with its links resolved."""
        ...

    def entries(self, parts: tuple[str, ...], shown: str) -> tuple[Entry, ...]:
        """Return a folder's entries by name; none if it doesn't exist."""
        ...

    def read(self, parts: tuple[str, ...], shown: str, limit: int) -> bytes:
        """Return a file's bytes; raises Missing and InvalidCheckpoint."""
        ...

    def fetch(self, parts: tuple[str, ...], names: Iterable[str], limit: int) -> None:
        """Prefetch files of a folder together if each request is slow; `read` then returns them."""
        ...


def listed(listing: Iterable[Entry], shown: str) -> tuple[Entry, ...]:
    """Return the entries by name, without hidden files and checksums; raises InvalidCheckpoint above MAX_ENTRIES."""
    entries = list(islice(listing, MAX_ENTRIES + 1))
    if len(entries) > MAX_ENTRIES:
        raise InvalidCheckpoint(f"{shown} has more than {MAX_ENTRIES} files, more than any checkpoint has")
    visible = (entry for entry in entries if not entry.name.startswith(".") and not entry.name.endswith(".crc"))
    return tuple(sorted(visible, key=lambda entry: entry.name))


def too_large(shown: str, size: int, limit: int) -> InvalidCheckpoint:
    """Return the error for a file that is too large."""
    return InvalidCheckpoint(f"{shown} has {size} bytes; the maximum for such a file is {limit}", file=shown)


OUTSIDE = "the path is outside the allowed folders; ask the operator to allow its folder"


class LocalFolder:
    """A local folder. Every path, with its symbolic links resolved, stays inside the (resolved) roots."""

    def __init__(self, path: str, roots: Sequence[str]) -> None:
        self._roots = tuple(Path(root) for root in roots)
        self._base = self._resolve(Path(path))
        self.path = str(self._base)

    def is_folder(self, parts: tuple[str, ...]) -> bool:
        """Return whether a folder has this name."""
        return self._resolve(self._base.joinpath(*parts)).is_dir()

    def is_file(self, parts: tuple[str, ...]) -> bool:
        """Return whether a file has this name."""
        return self._resolve(self._base.joinpath(*parts)).is_file()

    def identity(self, parts: tuple[str, ...]) -> str:
        """Return the path of a folder with its links resolved: it is the same for two names of one folder."""
        return str(self._resolve(self._base.joinpath(*parts)))

    def entries(self, parts: tuple[str, ...], shown: str) -> tuple[Entry, ...]:
        """Return a folder's entries; none if it doesn't exist."""
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
                        continue  # removed by the query that owns the checkpoint, or a dangling link
                    stamp = f"{status.st_mtime_ns}-{status.st_ino}"
                    yield Entry(item.name, is_folder, status.st_mtime_ns // 1_000_000, status.st_size, stamp)
        except FileNotFoundError:
            return
        except OSError as error:
            raise InvalidCheckpoint(f"{shown} can't be listed: {error.strerror}") from error

    def read(self, parts: tuple[str, ...], shown: str, limit: int) -> bytes:
        """Return a file's bytes; raises Missing, and InvalidCheckpoint if it isn't a regular file or is too large."""
        path = self._resolve(self._base.joinpath(*parts))
        try:
            # Without O_NONBLOCK, opening a named pipe would block forever.
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise Missing(shown) from error
        except OSError as error:
            raise InvalidCheckpoint(f"{shown} can't be read: {error.strerror}", file=shown) from error
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise InvalidCheckpoint(f"{shown} is not a regular file", file=shown)
        with os.fdopen(descriptor, "rb") as file:
            if status.st_size > limit:
                raise too_large(shown, status.st_size, limit)
            return file.read(limit + 1)

    def fetch(self, parts: tuple[str, ...], names: Iterable[str], limit: int) -> None:
        """Do nothing: a disk answers each read immediately."""

    def _resolve(self, path: Path) -> Path:
        try:
            resolved = path.resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise InvalidCheckpoint("the path can't be followed: it is too long, or its links are circular") from error
        if not any(resolved.is_relative_to(root) for root in self._roots):
            # The same message whether the path exists or not: Schemadesk reveals nothing about paths outside the roots.
            raise InvalidCheckpoint(OUTSIDE)
        return resolved
