"""Connects, adds, changes and removes Kafka clusters and sources; checks them first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.utils import timezone

from registry.access.permission_filters import READ, require_extent
from registry.access.roles import Actor, require
from registry.audit.context import record
from registry.drift.findings.promotion_check import HELD
from registry.drift.models import MODES, Cluster, Source, SourceQuerySet
from registry.drift.sources import SOURCES, SourceKind, kind_of
from registry.drift.sources.base import SourceDraft
from registry.drift.sources.kafka_connection import check_fields, connect, parse_servers
from registry.errors import ClusterNotFound, InvalidSource, ReleaseRequired, SourceNotFound, WrongState
from registry.subjects.policy.change_guard import ask
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import check_context

_NAME = re.compile(r"[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,126}[^\s\x00-\x1f\x7f])?")
CLUSTER_FIELDS = ("name", "bootstrap", "security_protocol", "sasl_mechanism", "username", "secret", "ca_pem")


def connect_cluster(*, name: str, bootstrap: str, by: Actor, **security: str) -> int:
    """Connect a cluster under a name after checking that it answers; returns its number.

    `security` are the other CLUSTER_FIELDS; `secret` is the name of the password's secret. Raises InvalidSource,
    InvalidSecret, AddressRefused, BrokerUnavailable, WrongState if the name is taken, NotAllowed.
    """
    require(by, "cluster.manage")
    row = Cluster(name=name, bootstrap=bootstrap, created_by=by.name, **security)
    _check(row)
    return _save(row, by=by, why=f"connect cluster {name}").pk


def try_cluster(*, by: Actor, **fields: str) -> tuple[int, int]:
    """Return the number of brokers and of non-internal topics of a cluster with those fields; stores nothing.

    Raises InvalidSource, InvalidSecret, AddressRefused, BrokerUnavailable, NotAllowed.
    """
    require(by, "cluster.manage")
    row = Cluster(**fields)
    row.bootstrap = ",".join(map(str, parse_servers(row.bootstrap)))
    check_fields(row)
    metadata = connect(row).metadata
    return len(metadata.brokers), sum(1 for name in metadata.topics if not name.startswith("__"))


def update_cluster(*, name: str, by: Actor, **changes: Any) -> None:
    """Change fields of a cluster (as in `connect_cluster`; `rename` is its new name).

    Raises the errors of `connect_cluster`, and ClusterNotFound.
    """
    require(by, "cluster.manage")
    row = get_cluster(name)
    if "rename" in changes:
        changes["name"] = changes.pop("rename")
    unknown = sorted(set(changes) - set(CLUSTER_FIELDS))
    if unknown:
        raise InvalidSource(f"A cluster has no field {unknown[0][:40]!r}; it has {', '.join(CLUSTER_FIELDS)}.")
    for field, value in changes.items():
        setattr(row, field, value)
    _check(row)
    _save(row, by=by, why=f"change cluster {name}")


@transaction.atomic
def remove_cluster(*, name: str, by: Actor) -> None:
    """Remove a cluster that no source reads. Raises ClusterNotFound, WrongState, NotAllowed."""
    require(by, "cluster.manage")
    row = get_cluster(name)
    record(by=by, why=f"remove cluster {name}")
    try:
        row.delete()
    except ProtectedError as error:
        names = ", ".join(sorted(map(str, row.sources.values_list("name", flat=True)))[:3])
        raise WrongState(f"Sources read cluster {name} ({names}). Remove them first.") from error


def cluster_at(*, bootstrap: str, by: Actor) -> str:
    """Return the name of the plain cluster at these servers; connects it under their address if necessary.

    Raises the errors of `connect_cluster`.
    """
    servers = ",".join(map(str, parse_servers(bootstrap)))
    existing = Cluster.objects.filter(bootstrap=servers, security_protocol="PLAINTEXT").order_by("pk").first()
    if existing is None:
        connect_cluster(name=servers[:128], bootstrap=servers, by=by)
    return existing.name if existing else servers[:128]


def get_cluster(name: str) -> Cluster:
    """Return the cluster with that name. Raises ClusterNotFound."""
    row = Cluster.objects.filter(name=name).first()
    if row is None:
        raise ClusterNotFound(f"There is no cluster {name[:128]!r}.", cluster=name)
    return row


def _check(row: Cluster) -> None:
    """Check that the fields are consistent and the cluster answers; normalises its servers."""
    if not _NAME.fullmatch(row.name):
        raise InvalidSource(
            "A cluster name must have 1 to 128 characters, no control characters, and no space at its start or end."
        )
    row.bootstrap = ",".join(map(str, parse_servers(row.bootstrap)))
    if len(row.bootstrap) > 1024:
        raise InvalidSource("The bootstrap servers have more than 1024 characters. Give fewer servers.")
    check_fields(row)
    connect(row)


def _save(row: Cluster, *, by: Actor, why: str) -> Cluster:
    try:
        with transaction.atomic():
            record(by=by, why=why)
            row.save()
    except IntegrityError as error:
        raise WrongState(f"Cluster {row.name!r} already exists.") from error
    return row


SHORTEST_INTERVAL = 10
MAX_PATTERNS = 100
MAX_STARS = 10
MAX_NAME_BYTES = 2500  # indexed; an index row has at most 2,704 bytes
_PATTERN = re.compile(r"[A-Za-z0-9._*?\[\]!-]{1,249}")
#: numbers of a source → minimum and maximum
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
    **settings: Any,
) -> int:
    """Add a source after checking that it exists; returns its number.

    `cluster` is a cluster's name; `include` and `exclude` are shell patterns of topics (none: all non-internal ones);
    `settings` are those of BOUNDS, `keep_samples`, and under the kind's `config_name` its own fields. Raises
    InvalidSource, InvalidSecret, RemoteUnavailable, InvalidName, InvalidCheckpoint, BrokerUnavailable, AddressRefused,
    RegistryNotFound, ClusterNotFound, WrongState if it already exists, NotAllowed.
    """
    registry_row = get_registry(registry)
    require(by, "source.manage", registry=registry_row.name)
    if kind not in SOURCES:
        raise InvalidSource(f"{kind!r} is not a kind of source. The kinds are {', '.join(sorted(SOURCES))}.")
    source_kind = SOURCES[kind]
    given = _config_of(source_kind, settings)
    values = _checked(
        settings
        | {"context": context, "include": include, "exclude": exclude, "mode": mode, "every_seconds": every_seconds}
    )
    if source_kind.has_topics != bool(cluster):
        raise InvalidSource(f"A source of kind {kind} {'needs a' if source_kind.has_topics else 'has no'} cluster.")
    if not given and not source_kind.is_config_optional and any(item.required for item in source_kind.fields):
        raise InvalidSource(f"A source of kind {kind} needs a {source_kind.config_noun}.")
    cluster_row = get_cluster(cluster) if cluster else None
    config = source_kind.checked_config(given or {})
    draft = SourceDraft(registry_row, name, cluster_row, tuple(values["include"]), tuple(values["exclude"]), config)
    final = source_kind.check(draft)
    if len(final.encode(errors="replace")) > MAX_NAME_BYTES:
        raise InvalidSource(f"The name has more than {MAX_NAME_BYTES:,} bytes in UTF-8: {final[:80]!r} ….")
    values["next_scan_at"] = timezone.now() if every_seconds else None
    try:
        with transaction.atomic():
            record(by=by, why=f"add source {final}")
            row = Source.objects.create(
                registry=registry_row, kind=kind, name=final, cluster=cluster_row, created_by=by.name,
                **values, **source_kind.columns(config),
            )  # fmt: skip
            source_kind.keep_config(row, config)
    except IntegrityError as error:
        raise WrongState(f"{final} is already a source of {registry_row.name}.") from error
    return row.pk


def _config_of(kind: SourceKind, settings: dict[str, Any]) -> Mapping[str, Any] | None:
    """Take the kind's own fields out of the settings; None without any. Raises InvalidSource."""
    for other in SOURCES.values():
        values = settings.pop(other.config_name, None) if other.config_name != kind.config_name else None
        if values:
            raise InvalidSource(f"A source of kind {kind.name} has no {other.config_noun}.")
    config: Mapping[str, Any] | None = settings.pop(kind.config_name, None)
    if config is not None and not isinstance(config, Mapping):
        raise InvalidSource(f"{kind.config_name} must be an object.")
    return config


def update_source(*, source_id: int, by: Actor, **changes: Any) -> None:
    """Change a source's settings; the names are those of CHANGEABLE, and the kind's `config_name`.

    Patterns apply from the next scan: excluded topics keep their findings and positions. With new values for the kind's
    own fields, such as the object store of a checkpoint, the source is checked again. Raises SourceNotFound,
    InvalidSource, InvalidName, NotAllowed, and for the kind's own fields the errors of add_source.
    """
    config = None
    if set(changes) - set(CHANGEABLE):
        config = _checked_config_of(_source_for(by, "source.manage", source_id, Source.objects.all()), changes)
    with transaction.atomic():
        _update(source_id, by, changes, config)


def _checked_config_of(row: Source, changes: dict[str, Any]) -> Mapping[str, Any] | None:
    """Return the kind's own fields after checking the source with them, before the row is locked."""
    kind = kind_of(row.kind)
    given = _config_of(kind, changes)
    if given is None:
        return None
    if kind.is_config_fixed or not kind.fields:
        raise InvalidSource(f"The {kind.config_noun} of a source can't be changed; remove it and add another.")
    config = kind.checked_config(given)
    kind.check(SourceDraft(row.registry, row.name, row.cluster, tuple(row.include), tuple(row.exclude), config))
    return config


def _update(source_id: int, by: Actor, changes: dict[str, Any], config: Mapping[str, Any] | None) -> None:
    row = locked_source(source_id, by, "source.manage")
    values = _checked(changes)
    record(by=by, why=f"change source {row.name}")
    if "every_seconds" in values:
        every = values["every_seconds"]
        values["next_scan_at"] = timezone.now() + timedelta(seconds=every) if every else None
    if config is not None:
        kind_of(row.kind).keep_config(row, config)
        values |= kind_of(row.kind).columns(config)
    for field, value in values.items():
        setattr(row, field, value)
    row.save(update_fields=list(values))


@transaction.atomic
def remove_source(*, source_id: int, by: Actor) -> None:
    """Remove a source with its scans and findings.

    Raises SourceNotFound, NotAllowed, and WrongState while a scan runs or while its findings block a closed
    environment.
    """
    row = locked_source(source_id, by, "source.manage")
    if row.scans.filter(state="running").exists():
        raise WrongState(f"A scan of {row.name} is running. Cancel it, or wait until it ends.")
    record(by=by, why=f"remove source {row.name}")
    _keep_blocking_findings(row, by)
    row.delete()


def _keep_blocking_findings(row: Source, by: Actor) -> None:
    """Raise WrongState if the source's findings block a closed environment, unless the person has break-glass."""
    if not row.findings.filter(HELD).exclude(subject_name="").exists():
        return
    try:
        ask("source.manage", row.registry, "", by)
    except ReleaseRequired as error:
        raise WrongState(
            f"{row.name} has break findings that are not resolved, and {row.registry.name} is a closed environment whose"
            " requests they fail. Resolve them first, or open break-glass."
        ) from error


def locked_source(source_id: int, by: Actor, action: str) -> Source:
    """Return the source's row, locked until the transaction ends, if the actor may do the action.

    A source that they may not read counts as not found. Raises SourceNotFound, NotSignedIn, NotAllowed.
    """
    return _source_for(by, action, source_id, Source.objects.select_for_update(of=("self",)))


def _source_for(by: Actor, action: str, source_id: int, rows: SourceQuerySet) -> Source:
    require_extent(by, READ)
    row = rows.visible_to(by).select_related("registry", "cluster").filter(pk=source_id).first()
    if row is None:
        raise SourceNotFound(f"There is no source {source_id}.", source=source_id)
    require(by, action, registry=row.registry.name)
    return row


def _checked(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the values in stored form. Raises InvalidSource, InvalidName."""
    values = dict(settings)
    unknown = sorted(set(values) - set(CHANGEABLE))
    if unknown:
        raise InvalidSource(f"A source has no setting {unknown[0][:40]!r}; it has {', '.join(CHANGEABLE)}.")
    for field in {"include", "exclude"} & set(values):
        values[field] = _patterns(field, values[field])
    for field, (least, most) in BOUNDS.items():
        if field in values and not (type(values[field]) is int and least <= values[field] <= most):
            raise InvalidSource(f"{field} must be a whole number from {least:,} to {most:,}.")
    if "mode" in values and values["mode"] not in MODES:
        raise InvalidSource(f"{str(values['mode'])[:40]!r} is not a mode. The modes are {', '.join(MODES)}.")
    every = values.get("every_seconds")
    if every is not None and not SHORTEST_INTERVAL <= every <= 2_000_000_000:
        raise InvalidSource(f"The scan interval must be at least {SHORTEST_INTERVAL} seconds, not {every}.")
    if values.get("context"):
        values["context"] = check_context(values["context"])
    if "keep_samples" in values and not isinstance(values["keep_samples"], bool):
        raise InvalidSource("keep_samples must be true or false.")
    return values


def _patterns(field: str, listed: Any) -> list[str]:
    if isinstance(listed, str) or not all(isinstance(item, str) for item in listed):
        raise InvalidSource(f"{field} must be a list of patterns, such as orders or payments-*.")
    patterns = list(dict.fromkeys(item.strip() for item in listed))
    if len(patterns) > MAX_PATTERNS:
        raise InvalidSource(f"{field} has {len(patterns)} patterns; the maximum is {MAX_PATTERNS}.")
    for pattern in patterns:
        if not _PATTERN.fullmatch(pattern) or pattern.count("*") > MAX_STARS:
            raise InvalidSource(
                f"{pattern[:60]!r} in {field} is not a topic name or pattern: use 1 to 249 letters, digits, '.', "
                "'_' and '-', with '?', '[a-z]' and at most ten '*' as wildcards."
            )
    return patterns
