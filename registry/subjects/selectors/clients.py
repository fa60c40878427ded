"""Which programs read and write a subject's data, as far as they were declared."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db.models import OuterRef, Subquery
from django.utils import timezone

from registry.subjects.evidence import Evidence
from registry.subjects.models import Client, Registry, SchemaVersion
from registry.subjects.names import SubjectName

#: after which a client that wasn't heard of again is no longer known to be there
LAPSES: Final = timedelta(days=90)
#: clients of a version that are told one by one
SHOWN: Final = 20
PROVIDER: Final = "declared clients"


@dataclass(frozen=True)
class ClientInfo:
    """A client of a subject; `version` is None for one that takes the newest, `number` the version it has now.

    `has_lapsed`: it wasn't heard of for so long that it isn't known whether it is still there.
    """

    name: str
    reads: bool
    writes: bool
    version: int | None
    number: int | None
    fields: tuple[str, ...]
    contact: str
    declared_at: datetime
    declared_by: str
    seen_at: datetime
    has_lapsed: bool

    @property
    def does(self) -> str:
        """What it does with the data, in words."""
        return "reads and writes" if self.reads and self.writes else "reads" if self.reads else "writes"


def clients_of(registry: Registry, subject: SubjectName) -> list[ClientInfo]:
    """The clients of a subject by name; one query."""
    return clients_of_several(registry, [subject]).get(subject, [])


def clients_of_several(registry: Registry, subjects: Collection[SubjectName]) -> dict[SubjectName, list[ClientInfo]]:
    """The clients of those subjects that have some, by name; one query."""
    newest = SchemaVersion.objects.filter(subject=OuterRef("subject"), deleted_at=None).order_by("-version")
    rows = Client.objects.filter(
        subject__context__registry=registry,
        subject__context__name__in={each.context for each in subjects},
        subject__name__in={each.subject for each in subjects},
    ).select_related("subject__context")
    now, found = timezone.now(), dict[SubjectName, list[ClientInfo]]()
    for row in rows.annotate(newest=Subquery(newest.values("version")[:1])).order_by("name"):
        name = SubjectName(row.subject.context.name, row.subject.name)
        if name in subjects:
            found.setdefault(name, []).append(_info(row, row.newest, now))
    return found


def client_evidence(registry: Registry, subject: SubjectName, versions: Sequence[int]) -> Mapping[int, list[Evidence]]:
    """What clients say of each version, for `registry.subjects.evidence`; one query."""
    found: dict[int, list[Evidence]] = {number: [] for number in versions}
    for client in clients_of(registry, subject):
        if client.number in found:
            found[client.number].append(_evidence(client))
    return {number: [*items[:SHOWN], *_rest(items)] for number, items in found.items()}


def _rest(items: Sequence[Evidence]) -> list[Evidence]:
    """One line for those beyond the first; in use if one of them is."""
    rest = items[SHOWN:]
    if not rest:
        return []
    is_used = any(item.in_use == "yes" for item in rest)
    return [Evidence("clients", "yes" if is_used else "unknown", f"So do {len(rest)} other clients.")]


def _evidence(client: ClientInfo) -> Evidence:
    follows = ", which takes the newest version," if client.version is None else ""
    ask = f" Ask {client.contact}." if client.contact else ""
    if client.has_lapsed:
        said = (
            f"{client.name}{follows} {client.does} it, as was said on {client.seen_at.astimezone(UTC):%Y-%m-%d} last."
        )
        return Evidence("clients", "unknown", f"{said}{ask}", as_of=client.seen_at)
    return Evidence("clients", "yes", f"{client.name}{follows} {client.does} it.{ask}", as_of=client.seen_at)


def _info(row: Client, newest: int | None, now: datetime) -> ClientInfo:
    return ClientInfo(
        name=row.name,
        reads=row.reads,
        writes=row.writes,
        version=row.version,
        number=newest if row.version is None else row.version,
        fields=tuple(row.fields),
        contact=row.contact,
        declared_at=row.declared_at,
        declared_by=row.declared_by,
        seen_at=row.seen_at,
        has_lapsed=row.seen_at < now - LAPSES,
    )
