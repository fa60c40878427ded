"""What was decided of fields that look renamed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from registry.promotions.models import RenameDecision
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName


@dataclass(frozen=True)
class RenameInfo:
    """A decision, with the registry in which it was taken."""

    registry: str
    from_path: str
    to_path: str
    is_rename: bool
    reason: str
    decided_by: str
    decided_at: datetime


def renames_of(registry: Registry, subject: SubjectName) -> list[RenameInfo]:
    """The decisions of a subject in a registry, in the order in which they were taken; one query."""
    return _infos([registry.name], subject)


def decided_renames(registries: Collection[str], subject: SubjectName) -> Mapping[tuple[str, str], RenameInfo]:
    """By old and new path, the newest decision of a subject in any of the registries; one query."""
    found = sorted(_infos(registries, subject), key=lambda info: info.decided_at)
    return {(info.from_path, info.to_path): info for info in found}


def _infos(registries: Collection[str], subject: SubjectName) -> list[RenameInfo]:
    rows = RenameDecision.objects.filter(
        subject__context__registry__name__in=registries,
        subject__context__name=subject.context,
        subject__name=subject.subject,
    ).order_by("pk")
    columns = ("from_path", "to_path", "is_rename", "reason", "decided_by", "decided_at")
    return [RenameInfo(*row) for row in rows.values_list("subject__context__registry__name", *columns)]
