"""Which programs read and write a subject's data, as far as they were declared."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import OuterRef, Subquery
from django.utils import timezone

from registry.subjects.models import Client, Registry, SchemaVersion
from registry.subjects.names import SubjectName

#: after which a client that wasn't heard of again is no longer known to be there
LAPSES: Final = timedelta(days=90)


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
