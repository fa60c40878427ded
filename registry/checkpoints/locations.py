"""Where a checkpoint lies, as a path or an address that was judged: nothing is looked up here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from registry.errors import InvalidCheckpoint

LOCAL: Final = "file"
MAX_TEXT: Final = 4096
# protocol as written → the file system that it means; others are never read, whatever a setting says: they run
# programs (ssh, git), reach any address (http, ftp), or are this process's own memory
FILE_SYSTEMS: Final = {"file": LOCAL, "local": LOCAL, "s3": "s3", "s3a": "s3", "s3n": "s3"}
_SCHEME = re.compile(r"(?P<protocol>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>/.*)", re.DOTALL)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")  # S3's own rule for names of buckets
_NOT_IN_KEYS = re.compile(r"[\x00-\x1f\x7f?#\\]")


@dataclass(frozen=True)
class Location:
    """A folder: its file system (`file` or `s3`) and its path there, for an object store `bucket/key` without slashes
    at its ends.
    """

    protocol: str
    path: str

    @property
    def text(self) -> str:
        """The address as people write it."""
        return self.path if self.protocol == LOCAL else f"{self.protocol}://{self.path}"

    def is_below(self, root: Location) -> bool:
        """Whether this is `root` or lies in it, by the words alone: links of a local folder aren't followed."""
        if self.protocol != root.protocol:
            return False
        return self.path == root.path or self.path.startswith(root.path.rstrip("/") + "/")


def parse_location(text: str, protocols: Iterable[str] = (LOCAL,)) -> Location:
    """The location that a path or address means, if its file system is among the allowed `protocols`.

    A local folder is an absolute path or a `file:` address. Raises InvalidCheckpoint for anything else: a protocol
    that isn't allowed, chained addresses (`::`), `..`, and what is no name of a bucket or of an object.
    """
    text = text.strip()
    if not text or "\0" in text or len(text) > MAX_TEXT:
        raise InvalidCheckpoint(f"a checkpoint's path has 1 to {MAX_TEXT} characters, none of them a null")
    if "::" in text:
        raise InvalidCheckpoint("chained addresses (with ::) aren't read; name the folder of the checkpoint itself")
    found = _SCHEME.fullmatch(text)
    if found is None and not text.startswith("/"):
        raise InvalidCheckpoint("a checkpoint's path begins with / or with the protocol of an object store")
    written, rest = (found["protocol"].lower(), found["rest"]) if found else (LOCAL, text)
    protocol = FILE_SYSTEMS.get(written)
    allowed = sorted({FILE_SYSTEMS[each] for each in protocols if each in FILE_SYSTEMS})
    if protocol is None or protocol not in allowed:
        raise InvalidCheckpoint(_refusal(written, protocol is not None, allowed))
    return _local("/" + rest.lstrip("/")) if protocol == LOCAL else _object(protocol, rest)


def _refusal(written: str, known: bool, allowed: list[str]) -> str:
    listed = ", ".join(allowed) or "none"
    if known:
        cure = "who runs this service can allow it with SCHEMADESK_CHECKPOINT_PROTOCOLS"
    else:
        cure = "copy the checkpoint's metadata, offsets, commits and state folders to one that is"
    return f"checkpoints aren't read from {written[:20]}: addresses here (allowed: {listed}); {cure}"


def _local(text: str) -> Location:
    if ".." in text.split("/"):
        raise InvalidCheckpoint(
            "the path goes up with '..', which could lead outside the folders that may be read; write it without"
        )
    return Location(LOCAL, text.rstrip("/") or "/")


def _object(protocol: str, rest: str) -> Location:
    if not rest.startswith("//"):
        raise InvalidCheckpoint(f"write the address as {protocol}://BUCKET/FOLDER")
    parts = rest.removeprefix("//").rstrip("/").split("/")
    if not _BUCKET.fullmatch(parts[0]):
        raise InvalidCheckpoint(
            "the address names no bucket: it is 3 to 63 small letters, digits, '.' and '-', with no user and no port"
        )
    if any(part in ("", ".", "..") for part in parts):
        raise InvalidCheckpoint("the address has an empty part, '.' or '..' in it; write it without")
    if _NOT_IN_KEYS.search(rest):
        raise InvalidCheckpoint("the address has a '?', '#', '\\' or control character in it, which no folder has")
    return Location(protocol, "/".join(parts))


def location_of_root(root: str | os.PathLike[str]) -> Location:
    """An allowed root as a location: an address as it is written, a local folder with its links followed."""
    text = os.fspath(root)
    found = _SCHEME.fullmatch(text)
    if found is not None and FILE_SYSTEMS.get(found["protocol"].lower(), LOCAL) != LOCAL:
        return parse_location(text, FILE_SYSTEMS)
    return Location(LOCAL, str(Path(text).resolve()))


def why_rows_are_not_readable(path: str, spark_roots: Iterable[str | os.PathLike[str]]) -> str | None:
    """Why the Spark server can't open a checkpoint, so that no rows can be read; None where it can.

    `spark_roots` are the folders and addresses that the Spark server opens itself: its disk and its credentials are
    not this service's. Decided by the words alone, nothing is looked up. Raises InvalidCheckpoint for a bad address.
    """
    location = parse_location(path, FILE_SYSTEMS)
    roots = [location_of_root(root) for root in spark_roots]
    if any(location.is_below(root) for root in roots):
        return None
    if any(root.protocol == location.protocol for root in roots):
        return "rows not readable here: the Spark server doesn't open this folder; schemas and history are"
    kind = "local folders of this machine" if location.protocol == LOCAL else f"{location.protocol}: addresses"
    return f"rows not readable here: the Spark server doesn't open {kind}; schemas and history are"


def as_spark_opens(path: str, spark_roots: Iterable[str | os.PathLike[str]]) -> str:
    """The path with the protocol as the fitting root of the Spark server spells it: Hadoop's own client knows `s3a:`
    alone, others `s3:`. A local folder stays as it is. Raises InvalidCheckpoint for a bad address.
    """
    location = parse_location(path, FILE_SYSTEMS)
    if location.protocol == LOCAL:
        return path
    for root in spark_roots:
        found = _SCHEME.fullmatch(os.fspath(root))
        if found is not None and location.is_below(location_of_root(root)):
            return f"{found['protocol'].lower()}://{location.path}"
    return location.text
