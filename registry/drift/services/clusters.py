"""Kafka clusters: connected once, changed, removed."""

from __future__ import annotations

import re
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.drift.connecting import check_fields, connect, parse_servers
from registry.drift.models import Cluster
from registry.errors import ClusterNotFound, InvalidSource, WrongState

_NAME = re.compile(r"[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,126}[^\s\x00-\x1f\x7f])?")
FIELDS = ("name", "bootstrap", "security_protocol", "sasl_mechanism", "username", "secret", "ca_pem")


def connect_cluster(
    *,
    name: str,
    bootstrap: str,
    by: Actor,
    security_protocol: str = "PLAINTEXT",
    sasl_mechanism: str = "",
    username: str = "",
    secret: str = "",
    ca_pem: str = "",
) -> int:
    """Connect a cluster under a name, after looking that it answers; gives its number.

    `secret` is the name of the password's secret. Raises InvalidSource, InvalidSecret, AddressRefused,
    BrokerUnavailable, WrongState where the name is taken, NotAllowed.
    """
    require(by, "cluster.manage")
    row = Cluster(
        name=name,
        bootstrap=bootstrap,
        security_protocol=security_protocol,
        sasl_mechanism=sasl_mechanism,
        username=username,
        secret=secret,
        ca_pem=ca_pem,
        created_by=by.name,
    )
    _check(row)
    return _save(row, by=by, why=f"connect cluster {name}").pk


def try_cluster(*, by: Actor, **fields: str) -> tuple[int, int]:
    """How many brokers and topics (internal ones apart) a cluster of those fields shows; nothing is kept.

    Raises InvalidSource, InvalidSecret, AddressRefused, BrokerUnavailable, NotAllowed.
    """
    require(by, "cluster.manage")
    row = Cluster(**fields)
    row.bootstrap = ",".join(map(str, parse_servers(row.bootstrap)))
    check_fields(row)
    metadata = connect(row).metadata
    return len(metadata.brokers), sum(1 for name in metadata.topics if not name.startswith("__"))


def update_cluster(*, name: str, by: Actor, **changes: Any) -> None:
    """Change fields of a cluster (those of `connect_cluster`; `name` names it and `rename` is its new name).

    Raises as `connect_cluster` does, and ClusterNotFound.
    """
    require(by, "cluster.manage")
    row = get_cluster(name)
    if "rename" in changes:
        changes["name"] = changes.pop("rename")
    unknown = sorted(set(changes) - set(FIELDS))
    if unknown:
        raise InvalidSource(f"A cluster has no field {unknown[0][:40]!r}; it has {', '.join(FIELDS)}.")
    for field, value in changes.items():
        setattr(row, field, value)
    _check(row)
    _save(row, by=by, why=f"change cluster {name}")


@transaction.atomic
def remove_cluster(*, name: str, by: Actor) -> None:
    """Forget a cluster that no source reads. Raises ClusterNotFound, WrongState, NotAllowed."""
    require(by, "cluster.manage")
    row = get_cluster(name)
    record(by=by, why=f"remove cluster {name}")
    try:
        row.delete()
    except ProtectedError as error:
        names = ", ".join(sorted(map(str, row.sources.values_list("name", flat=True)))[:3])
        raise WrongState(f"Cluster {name} is read by sources ({names}); remove them first.") from error


def cluster_at(*, bootstrap: str, by: Actor) -> str:
    """The name of the plain cluster at these servers, connected under their address where it isn't yet.

    Raises as `connect_cluster` does.
    """
    servers = ",".join(map(str, parse_servers(bootstrap)))
    known = Cluster.objects.filter(bootstrap=servers, security_protocol="PLAINTEXT").order_by("pk").first()
    if known is None:
        connect_cluster(name=servers[:128], bootstrap=servers, by=by)
    return known.name if known else servers[:128]


def get_cluster(name: str) -> Cluster:
    """The cluster of that name. Raises ClusterNotFound."""
    row = Cluster.objects.filter(name=name).first()
    if row is None:
        raise ClusterNotFound(f"There is no cluster {name[:128]!r}.", cluster=name)
    return row


def _check(row: Cluster) -> None:
    """The fields fit together, and the cluster answers; its servers are written in one form."""
    if not _NAME.fullmatch(row.name):
        raise InvalidSource("A cluster's name has 1 to 128 characters, no control character, no space at its ends.")
    row.bootstrap = ",".join(map(str, parse_servers(row.bootstrap)))
    if len(row.bootstrap) > 1024:
        raise InvalidSource("The bootstrap servers have more than 1024 characters; name fewer.")
    check_fields(row)
    connect(row)


def _save(row: Cluster, *, by: Actor, why: str) -> Cluster:
    try:
        with transaction.atomic():
            record(by=by, why=why)
            row.save()
    except IntegrityError as error:
        raise WrongState(f"There is a cluster {row.name!r} already.") from error
    return row
