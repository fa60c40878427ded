"""Sources: added after a look, changed, removed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from registry.access.extent import require_extent
from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.drift.models import MODES, Connector, Source
from registry.drift.services.clusters import get_cluster
from registry.drift.sources import SOURCES
from registry.drift.sources.base import Given
from registry.errors import InvalidSource, SourceNotFound, WrongState
from registry.streams.models import CheckpointStore
from registry.streams.stores import FIELDS, checked_store
from registry.subjects.names import check_context
from registry.subjects.selectors.places import get_registry

SHORTEST_INTERVAL = 10
MAX_PATTERNS = 100
MAX_STARS = 10
MAX_NAME_BYTES = 2500  # it stands in an index, whose rows have at most 2,704
_PATTERN = re.compile(r"[A-Za-z0-9._*?\[\]!-]{1,249}")
CLUSTERED: Final = ("kafka", "debezium")
CHECKPOINTS: Final = "state_store"
#: numbers of a source → the least and the most that they may be
BOUNDS: Final = {
    "tail_messages": (1, 100_000_000),
    "window_seconds": (60, 366 * 86_400),
    "max_messages": (1, 10**10),
    "max_bytes": (1024, 2**43),
    "max_seconds": (5, 6 * 3600),
    "clean_scans": (1, 100),
}
CHANGEABLE: Final = ("context", "include", "exclude", "mode", "every_seconds", "keep_samples", *BOUNDS)


def add_source(
    *,
    registry: str,
    kind: str,
    name: str,
    by: Actor,
    cluster: str = "",
    context: str = "",
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    mode: str = "since_last",
    every_seconds: int | None = None,
    connector: Mapping[str, Any] | None = None,
    store: Mapping[str, Any] | None = None,
    **settings: Any,
) -> int:
    """Add what is to be scanned, after looking that it is there; gives the source's number.

    `cluster` is a cluster's name, `include` and `exclude` are shell patterns of topics (none: all but internal ones);
    `connector` says where a Debezium connector and its database are (the names are those of debezium.FIELDS),
    `store` which object store has a checkpoint (those of streams.stores.FIELDS); `settings` are those of BOUNDS, and `keep_samples`. Raises InvalidSource, InvalidSecret, RemoteUnavailable, InvalidName, InvalidCheckpoint,
    BrokerUnavailable, AddressRefused, RegistryNotFound, ClusterNotFound, WrongState where it is there already,
    NotAllowed.
    """
    place = get_registry(registry)
    require(by, "source.manage", registry=place.name)
    if kind not in SOURCES:
        raise InvalidSource(f"There is no kind of source {kind!r}; the kinds are {', '.join(sorted(SOURCES))}.")
    values = _checked(
        settings
        | {"context": context, "include": include, "exclude": exclude, "mode": mode, "every_seconds": every_seconds}
    )
    if (kind in CLUSTERED) != bool(cluster):
        raise InvalidSource(f"A source of kind {kind} {'needs a' if kind in CLUSTERED else 'has no'} cluster.")
    if (kind == "debezium") != bool(connector):
        raise InvalidSource(f"A source of kind {kind} {'needs a' if kind == 'debezium' else 'has no'} connector.")
    if store and kind != CHECKPOINTS:
        raise InvalidSource(f"A source of kind {kind} is in no object store; a checkpoint can be.")
    found = get_cluster(cluster) if cluster else None
    kept = checked_store(store) if store else None
    given = Given(place, name, found, tuple(values["include"]), tuple(values["exclude"]), connector or {}, kept)
    final = SOURCES[kind].check(given)
    if len(final.encode(errors="replace")) > MAX_NAME_BYTES:
        raise InvalidSource(f"The name has more than {MAX_NAME_BYTES:,} bytes in UTF-8: {final[:80]!r} ….")
    values["next_scan_at"] = timezone.now() if every_seconds else None
    try:
        with transaction.atomic():
            record(by=by, why=f"add source {final}")
            row = Source.objects.create(
                registry=place, kind=kind, name=final, cluster=found, created_by=by.name, **values
            )
            if connector:
                Connector.objects.create(source=row, **connector)
            if kept:
                kept.source = row
                kept.save()
    except IntegrityError as error:
        raise WrongState(f"{final} is a source of {place.name} already.") from error
    return row.pk


def update_source(*, source_id: int, by: Actor, store: Mapping[str, Any] | None = None, **changes: Any) -> None:
    """Change how a source is scanned; the names are those of CHANGEABLE.

    Patterns hold from the next scan on: topics that they leave out keep their findings and positions. `store` says how
    a checkpoint's object store is reached from now on; the checkpoint has to be there. Raises SourceNotFound,
    InvalidSource, InvalidName, NotAllowed, and with a store what add_source raises of it.
    """
    kept = _looked_at(source_id, store, by) if store is not None else None
    with transaction.atomic():
        _update(source_id, by, changes, kept)


def _looked_at(source_id: int, store: Mapping[str, Any], by: Actor) -> CheckpointStore:
    """The fields of a source's store, once its checkpoint was read with them: before the row is locked."""
    row = _source_for(by, "source.manage", source_id, Source.objects.all())
    if row.kind != CHECKPOINTS:
        raise InvalidSource(f"A source of kind {row.kind} is in no object store; a checkpoint can be.")
    kept = checked_store(store)
    SOURCES[row.kind].check(Given(row.registry, row.name, store=kept))
    return kept


def _update(source_id: int, by: Actor, changes: dict[str, Any], store: CheckpointStore | None) -> None:
    row = locked_source(source_id, by, "source.manage")
    values = _checked(changes)
    record(by=by, why=f"change source {row.name}")
    if "every_seconds" in values:
        every = values["every_seconds"]
        values["next_scan_at"] = timezone.now() + timedelta(seconds=every) if every else None
    for field, value in values.items():
        setattr(row, field, value)
    row.save(update_fields=list(values))
    if store is not None:
        CheckpointStore.objects.update_or_create(
            source=row, defaults={field: getattr(store, field) for field in FIELDS}
        )


@transaction.atomic
def remove_source(*, source_id: int, by: Actor) -> None:
    """Forget a source with its scans and findings. Raises SourceNotFound, WrongState while a scan runs, NotAllowed."""
    row = locked_source(source_id, by, "source.manage")
    if row.scans.filter(state="running").exists():
        raise WrongState(f"A scan of {row.name} is running; cancel it, or wait until it is done.")
    record(by=by, why=f"remove source {row.name}")
    row.delete()


def locked_source(source_id: int, by: Actor, action: str) -> Source:
    """The source's row, locked until the transaction ends, for whoever may do the action there.

    One that they may not even read is as one that isn't there. Raises SourceNotFound, NotSignedIn, NotAllowed.
    """
    return _source_for(by, action, source_id, Source.objects.select_for_update(of=("self",)))


def _source_for(by: Actor, action: str, source_id: int, rows: QuerySet[Source]) -> Source:
    extent = require_extent(by, "schema.read")
    row = rows.select_related("registry").filter(pk=source_id).first()
    if row is None or not extent.has_all_of(row.registry.name):
        raise SourceNotFound(f"There is no source {source_id}.", source=source_id)
    require(by, action, registry=row.registry.name)
    return row


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """The values in their stored form. Raises InvalidSource, InvalidName."""
    values = dict(given)
    unknown = sorted(set(values) - set(CHANGEABLE))
    if unknown:
        raise InvalidSource(f"A source has no setting {unknown[0][:40]!r}; it has {', '.join(CHANGEABLE)}.")
    for field in {"include", "exclude"} & set(values):
        values[field] = _patterns(field, values[field])
    for field, (least, most) in BOUNDS.items():
        if field in values and not (type(values[field]) is int and least <= values[field] <= most):
            raise InvalidSource(f"{field} is a whole number from {least:,} to {most:,}.")
    if "mode" in values and values["mode"] not in MODES:
        raise InvalidSource(f"There is no mode {str(values['mode'])[:40]!r}; the modes are {', '.join(MODES)}.")
    every = values.get("every_seconds")
    if every is not None and not SHORTEST_INTERVAL <= every <= 2_000_000_000:
        raise InvalidSource(f"A source is scanned every {SHORTEST_INTERVAL} seconds or more, not every {every}.")
    if values.get("context"):
        values["context"] = check_context(values["context"])
    if "keep_samples" in values and not isinstance(values["keep_samples"], bool):
        raise InvalidSource("keep_samples is true or false.")
    return values


def _patterns(field: str, given: Any) -> list[str]:
    if isinstance(given, str) or not all(isinstance(each, str) for each in given):
        raise InvalidSource(f"{field} is a list of patterns, such as orders or payments-*.")
    patterns = list(dict.fromkeys(each.strip() for each in given))
    if len(patterns) > MAX_PATTERNS:
        raise InvalidSource(f"{field} has {len(patterns)} patterns; up to {MAX_PATTERNS} are taken.")
    for pattern in patterns:
        if not _PATTERN.fullmatch(pattern) or pattern.count("*") > MAX_STARS:
            raise InvalidSource(
                f"{pattern[:60]!r} in {field} is not a topic's name or pattern: 1 to 249 letters, digits, '.', '_' and"
                " '-', with '?', '[a-z]' and at most ten '*' for others."
            )
    return patterns
