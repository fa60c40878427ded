"""The copies that a registry keeps, without what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import QuerySet
from django.utils import timezone

from registry.access.extent import require_extent
from registry.access.roles import Actor, may
from registry.subjects.models import KeptCopy, Registry

MOST: Final = 200
_DELETED: Final = "version.delete_permanently"
_SENT: Final = "mode.change"


@dataclass(frozen=True)
class CopyInfo:
    """A copy: of a subject that was deleted for good (`name`), or a file that waits to be brought in."""

    number: int
    name: str
    versions: int
    made_at: datetime
    made_by: str
    until: datetime


def deleted_copies(
    place: Registry, *, by: Actor, subject: str = "", before: int | None = None, limit: int = MOST
) -> list[CopyInfo]:
    """Of what was deleted for good, newest first; those that the person may bring back; one query. Raises NotAllowed.

    `before` is the number of the last one that is known.
    """
    extent = require_extent(by, _DELETED, registry=place.name)
    rows = KeptCopy.objects.filter(extent.subjects("registry__name", "name"), kind=KeptCopy.DELETED)
    if subject:
        rows = rows.filter(name=subject)
    return _listed(rows, place, before, limit)


def waiting_files(place: Registry, *, by: Actor, limit: int = 20) -> list[CopyInfo]:
    """The files that wait to be confirmed, newest first; none for who may not. One query."""
    if not may(by, _SENT, registry=place.name):
        return []
    return _listed(KeptCopy.objects.filter(kind=KeptCopy.SENT), place, None, limit)


def _listed(rows: QuerySet[KeptCopy], place: Registry, before: int | None, limit: int) -> list[CopyInfo]:
    found = rows.filter(registry=place, until__gt=timezone.now()).order_by("-pk")
    if before is not None:
        found = found.filter(pk__lt=before)
    values = found.values_list("pk", "name", "versions", "made_at", "made_by", "until")[:limit]
    return [CopyInfo(*value) for value in values]
