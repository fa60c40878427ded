"""Checkpoints in an object store, through an fsspec file system that the caller has opened.

The caller checks the endpoint's host (this package doesn't know the egress policy), finds the secret, and opens

    options = s3_options(endpoint, secret, addresses)      # addresses: those that were checked
    store = ObjectStore("s3", s3fs.S3FileSystem(**options), name=endpoint.name)
    read_checkpoint("s3://bucket/folder", roots, store=store)

Connections to any other address are refused when the socket is created, so neither a redirect nor a name that resolves
differently the second time gets through.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from registry.checkpoints.filesystem import Entry, Location, Missing, listed, too_large
from registry.errors import AddressRefused, InvalidCheckpoint, InvalidInput, RemoteUnavailable

CALL_SECONDS: Final = 20.0  # one listing with all its pages, or one file
TOGETHER: Final = 32 * 1024 * 1024  # bytes that are read together
_REGION: Final = re.compile(r"[a-z0-9-]{1,40}")
_KEY_ID: Final = re.compile(r"[A-Za-z0-9_.+/=-]{1,128}")


class FileSystem(Protocol):
    """The read-only part of fsspec's interface that this package uses."""

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        """List a path; one mapping per entry."""
        ...

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> Any:
        """Return an object's bytes from `start` to before `end`."""
        ...

    def cat_ranges(self, paths: list[str], starts: list[int], ends: list[int], **options: Any) -> Any:
        """Return a part of each object, or its error if `on_error` is "return"."""
        ...


@dataclass(frozen=True)
class S3Endpoint:
    """An S3-compatible service.

    `url` is `https://host[:port]`, checked and parsed by the caller; `access_key_id` is the public part of the
    credentials, empty for a public bucket; the caller finds the secret.
    """

    url: str
    region: str = "us-east-1"
    access_key_id: str = ""

    @property
    def name(self) -> str:
        """Return a name for this store with these credentials."""
        return f"{self.access_key_id}@{self.url}"

    def __post_init__(self) -> None:
        if not _REGION.fullmatch(self.region):
            raise InvalidInput("A region may contain only lowercase letters, digits and -, such as eu-central-1.")
        if self.access_key_id and not _KEY_ID.fullmatch(self.access_key_id):
            raise InvalidInput("An access key id may have up to 128 letters, digits and . _ + / = -.")


def s3_options(
    endpoint: S3Endpoint,
    secret: str,
    addresses: Iterable[ipaddress.IPv4Address | ipaddress.IPv6Address],
    *,
    seconds: float = 10.0,
) -> dict[str, Any]:
    """Return the arguments for `s3fs.S3FileSystem` that allow only the endpoint's checked `addresses`.

    Credentials are those given or none: never those of this machine's files, environment or cloud. Buckets are in the
    path, so that their names don't change the host; no proxy is used; nothing is cached between calls.
    """
    credentials: dict[str, Any] = {"anon": True}
    if endpoint.access_key_id:
        credentials = {"anon": False, "key": endpoint.access_key_id, "secret": secret}
    return {
        **credentials,
        "endpoint_url": endpoint.url,
        "client_kwargs": {"region_name": endpoint.region},
        "config_kwargs": {
            "s3": {"addressing_style": "path"},
            "proxies": {},
            "connect_timeout": seconds,
            "read_timeout": seconds,
            "retries": {"max_attempts": 1},
            "connector_args": {"socket_factory": only_to(addresses)},
        },
        "use_listings_cache": False,
        "skip_instance_cache": True,
        "default_fill_cache": False,
    }


def only_to(addresses: Iterable[ipaddress.IPv4Address | ipaddress.IPv6Address]) -> Any:
    """Return a socket factory for aiohttp that raises OSError for any other address."""
    judged = frozenset(addresses)

    def make(info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, target = info
        if ipaddress.ip_address(str(target[0])) not in judged:
            raise OSError(f"{target[0]} is not an address that was checked")
        return socket.socket(family=family, type=kind, proto=protocol)

    return make


class ObjectStore:
    """An open file system and the protocol of its addresses; every call ends within CALL_SECONDS.

    `name` distinguishes stores with folders of the same names: the endpoint and its access key.
    """

    def __init__(self, protocol: str, system: FileSystem, *, name: str) -> None:
        self.protocol = protocol
        self.name = name
        self._system = system
        # fsspec's asynchronous file systems accept a timeout with every call; others don't.
        self._options = {"timeout": CALL_SECONDS} if getattr(system, "async_impl", False) else {}

    def listing(self, path: str, shown: str) -> list[Mapping[str, Any]]:
        """List a prefix; empty if it doesn't exist. Raises InvalidCheckpoint, RemoteUnavailable."""
        try:
            entries = self._system.ls(path, detail=True, **self._options)
        except FileNotFoundError:
            return []
        except Exception as error:  # file systems raise their clients' errors, which have no common class
            raise _translated(error, shown) from error
        return list(entries)

    def read(self, path: str, size: int, shown: str) -> bytes:
        """Return the first `size` bytes of an object and one more, which shows whether it grew."""
        try:
            return bytes(self._system.cat_file(path, start=0, end=size + 1, **self._options))
        except FileNotFoundError as error:
            raise Missing(shown) from error
        except Exception as error:  # as in `listing`
            raise _translated(error, shown) from error

    def read_together(self, sizes: Mapping[str, int]) -> dict[str, bytes]:
        """Return several objects by path, read together with the given sizes.

        Objects that can't be read are left out; reading them one by one gives the reason.
        """
        paths = list(sizes)
        ends = [size + 1 for size in sizes.values()]
        try:
            contents = self._system.cat_ranges(paths, [0] * len(paths), ends, on_error="return", **self._options)
        except Exception as error:  # as in `listing`; the error of a single file is in `contents`
            raise _translated(error, "several files") from error
        return {path: bytes(part) for path, part in zip(paths, contents, strict=True) if isinstance(part, bytes)}


def _translated(error: Exception, shown: str) -> Exception:
    """Translate a file system's error; its own message is dropped, as it may contain headers or keys."""
    cause: BaseException | None = error
    while cause is not None:
        if "not an address that was checked" in str(cause):
            return AddressRefused(
                "The object store redirects to an address that was not checked, so Schemadesk didn't connect to it."
            )
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, PermissionError):
        return InvalidCheckpoint(f"{shown} can't be read: the object store refuses these credentials")
    if isinstance(error, TimeoutError):
        return RemoteUnavailable(f"The object store didn't answer within {CALL_SECONDS:g} s.")
    return RemoteUnavailable(
        f"The server didn't answer like an object store ({type(error).__name__}). Check its address."
    )


class StoreFolder:
    """A folder of an object store. It is listed only once, so that all reads of it are consistent."""

    def __init__(self, location: Location, store: ObjectStore) -> None:
        self.path = location.text
        self._base = location.path
        self._store = store
        self._known: dict[tuple[str, ...], tuple[Entry, ...]] = {}
        self._fetched: dict[str, bytes] = {}

    def is_folder(self, parts: tuple[str, ...]) -> bool:
        """Return whether objects exist below that name: an object store has no empty folders."""
        if not parts:
            return bool(self.entries((), "."))
        return any(entry.name == parts[-1] and entry.is_folder for entry in self._parent(parts))

    def is_file(self, parts: tuple[str, ...]) -> bool:
        """Return whether an object has this name."""
        return self._object(parts) is not None

    def identity(self, parts: tuple[str, ...]) -> str:
        """Return the address itself: object stores have no links."""
        return "/".join((self._base, *parts))

    def entries(self, parts: tuple[str, ...], shown: str) -> tuple[Entry, ...]:
        """Return the entries of a folder; none if it doesn't exist."""
        if parts not in self._known:
            prefix = self.identity(parts)
            self._known[parts] = listed(_entries(self._store.listing(prefix, shown), prefix), shown)
        return self._known[parts]

    def read(self, parts: tuple[str, ...], shown: str, limit: int) -> bytes:
        """Return an object's bytes; raises Missing, and InvalidCheckpoint if it is larger than `limit`."""
        entry = self._object(parts)
        if entry is None:
            raise Missing(shown)
        if entry.size > limit:
            raise too_large(shown, entry.size, limit)
        if entry.size == 0:
            return b""  # requesting an empty range is an error
        path = self.identity(parts)
        fetched = self._fetched.pop(path, None)
        return self._store.read(path, entry.size, shown) if fetched is None else fetched

    def fetch(self, parts: tuple[str, ...], names: Iterable[str], limit: int) -> None:
        """Read files of a folder together, up to TOGETHER bytes, for the reads that follow."""
        requested = set(names)
        sizes: dict[str, int] = {}
        for entry in self.entries(parts, "/".join(parts)):
            if entry.name in requested and not entry.is_folder and 0 < entry.size <= limit:
                sizes[self.identity((*parts, entry.name))] = entry.size
        self._fetched = {}
        while sizes and sum(sizes.values()) > TOGETHER:
            sizes.popitem()
        if len(sizes) > 1:
            self._fetched = self._store.read_together(sizes)

    def _object(self, parts: tuple[str, ...]) -> Entry | None:
        matches = (entry for entry in self._parent(parts) if entry.name == parts[-1] and not entry.is_folder)
        return next(matches, None)

    def _parent(self, parts: tuple[str, ...]) -> tuple[Entry, ...]:
        return self.entries(parts[:-1], "/".join(parts[:-1]) or ".")


def _entries(listing: Iterable[Mapping[str, Any]], prefix: str) -> Iterator[Entry]:
    for item in listing:
        name = str(item.get("name", "")).rstrip("/")
        if name == prefix or not name.startswith(prefix + "/"):
            continue  # the folder's own marker object
        short = name.removeprefix(prefix + "/")
        if "/" in short or short in ("", "..", "."):
            continue
        modified = item.get("LastModified") or item.get("mtime") or item.get("created")
        written_at = int(modified.timestamp() * 1000) if isinstance(modified, datetime) else 0
        is_folder = item.get("type") == "directory"
        stamp = "" if is_folder else str(item.get("ETag") or written_at)
        yield Entry(short, is_folder, written_at, int(item.get("size") or 0), f"{stamp}-{written_at}")
