"""Where a checkpoint is read from: a folder, or an object store whose endpoint is judged before it is connected to.

An object store's secret is one of `registry.access.credentials`, bound to the endpoint's host. It is found when the store
is opened and kept nowhere; connections are made to the addresses that the egress policy judged, and to no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings

from registry.access.credentials import find_secret, refuse_other_host
from registry.access.egress import Connection, current_policy, parse_connection
from registry.checkpoints import Location, ObjectStore, ReadCache, S3Endpoint, parse_location, s3_options
from registry.checkpoints import why_rows_are_not_readable as why_not
from registry.checkpoints.files import CheckpointFiles
from registry.checkpoints.local_files import OUTSIDE
from registry.checkpoints.locations import LOCAL, as_spark_opens, location_of_root
from registry.errors import InvalidCheckpoint, InvalidInput
from registry.streams.models import CheckpointStore

#: what a store's row takes, with the default of each
FIELDS: Final[Mapping[str, str]] = {"endpoint": "", "region": "us-east-1", "access_key_id": "", "secret": ""}
#: of scans, which read the same checkpoints again and again: an object store is asked only for what is new
CACHE: Final = ReadCache(checkpoints=500)


@dataclass(frozen=True)
class Place:
    """A checkpoint's path or address with the roots that it has to lie in, and the opened store of an address."""

    path: str
    roots: tuple[str, ...]
    store: ObjectStore | None = None

    @property
    def resolved(self) -> str:
        """The path with its links followed, as scans keep it. Raises InvalidCheckpoint where it may not be read."""
        return CheckpointFiles(self.path, self.roots, store=self.store).path

    @property
    def cache(self) -> ReadCache | None:
        """The cache for scans of it; a disk needs none."""
        return CACHE if self.store else None


def checked_store(given: Mapping[str, Any]) -> CheckpointStore:
    """An unsaved row of those fields (the names are those of FIELDS). Nothing is connected to.

    Raises InvalidInput for fields that aren't what they should be or don't fit together, InvalidSecret.
    """
    unknown = sorted(set(given) - set(FIELDS))
    if unknown:
        raise InvalidInput(f"An object store has no setting {unknown[0][:40]!r}; it has {', '.join(FIELDS)}.")
    if not all(isinstance(value, str) for value in given.values()):
        raise InvalidInput(f"The settings of an object store are texts: {', '.join(FIELDS)}.")
    values = {name: str(given.get(name, "")).strip() or usual for name, usual in FIELDS.items()}
    connection = _connection(values["endpoint"], values["secret"])
    if bool(values["access_key_id"]) != bool(values["secret"]):
        raise InvalidInput("Give both the access key's id and the secret's name, or none of them for an open bucket.")
    S3Endpoint(connection.url, values["region"], values["access_key_id"])
    _secret(connection)
    return CheckpointStore(**values | {"endpoint": connection.url})


def known_store(address: str) -> CheckpointStore | None:
    """The store of the sources that have this address, None where none has. Raises InvalidInput where they differ."""
    rows = list(CheckpointStore.objects.filter(source__kind="state_store", source__name=address).order_by("pk")[:100])
    told = {(row.endpoint, row.region, row.access_key_id, row.secret) for row in rows}
    if len(told) > 1:
        raise InvalidInput(f"Several sources have {address[:300]}, in different object stores; give its endpoint.")
    return rows[0] if rows else None


def location_of(path: str) -> Location:
    """The location that a path or address means, by the allowed protocols. Raises InvalidCheckpoint."""
    return parse_location(path, settings.CHECKPOINT_PROTOCOLS)


def place_of(path: str, store: CheckpointStore | None = None, *, also: tuple[str, ...] = ()) -> Place:
    """Where to read a checkpoint, with its object store opened; `also` are roots beyond those of the settings.

    The roots are held against the path first, so that an address outside of them connects to nothing. Raises
    InvalidCheckpoint, InvalidInput, InvalidSecret, AddressRefused, RemoteUnavailable.
    """
    location = location_of(path)
    if location.protocol == LOCAL:
        if store is not None:
            raise InvalidInput("A folder is in no object store: leave its endpoint empty, or write s3://BUCKET/FOLDER.")
        return Place(path.strip(), (*map(str, settings.CHECKPOINT_ROOTS), *also))
    roots = (*settings.CHECKPOINT_ADDRESSES, *also)
    if not any(location.is_below(location_of_root(root)) for root in roots):
        raise InvalidCheckpoint(OUTSIDE)
    if store is None:
        raise InvalidInput(
            f"{location.text[:300]} is in an object store: give its endpoint, such as https://s3.example.com."
        )
    return Place(location.text, roots, open_store(store))


def place_of_known(path: str, given: Mapping[str, Any] | None = None) -> Place:
    """The same for an address whose store may be `given`, else is that of the source that has it."""
    if given is not None:
        return place_of(path, checked_store(given))
    location = location_of(path)
    return place_of(path, None if location.protocol == LOCAL else known_store(location.text))


def open_store(store: CheckpointStore) -> ObjectStore:
    """The object store, once its endpoint is judged. Raises InvalidSecret, AddressRefused, RemoteUnavailable."""
    import s3fs  # late: it is slow to load, and most deployments read folders alone

    connection = _connection(store.endpoint, store.secret)
    addresses = current_policy().addresses(connection)
    endpoint = S3Endpoint(connection.url, store.region, store.access_key_id)
    options = s3_options(endpoint, _secret(connection), addresses)
    return ObjectStore("s3", s3fs.S3FileSystem(**options), name=endpoint.name)


def spark_path(path: str) -> str:
    """The checkpoint's path as the Spark server opens it. Only where `why_rows_are_not_readable` is empty."""
    return as_spark_opens(path, _spark_roots())


def why_rows_are_not_readable(path: str) -> str:
    """Why the Spark server can't open a checkpoint, by the settings alone; empty where it can."""
    return why_not(path, _spark_roots()) or ""


def _spark_roots() -> tuple[str, ...]:
    return tuple(map(str, settings.CHECKPOINT_SPARK_ROOTS or settings.CHECKPOINT_ROOTS))


def _connection(endpoint: str, secret: str) -> Connection:
    connection = parse_connection(endpoint, secret=secret)
    if connection.path:
        raise InvalidInput("An endpoint is http(s)://HOST[:PORT] alone; bucket and folder stand in the address.")
    return connection


def _secret(connection: Connection) -> str:
    """The secret key, if one is named. Raises InvalidSecret where it isn't there or isn't for this host."""
    if not connection.secret:
        return ""
    secret = find_secret(connection.secret)
    refuse_other_host(secret, connection)
    return secret.value
