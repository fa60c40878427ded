"""The least version of a subject that producers may still write, where one is set."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from registry.drift.least_model import LeastVersion
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName


@dataclass(frozen=True)
class LeastInfo:
    """The version, why, and by whom and since when it is the least."""

    version: int
    reason: str
    set_by: str
    set_at: datetime


def least_version_of(place: Registry, name: SubjectName) -> LeastInfo | None:
    """Of a subject; None where any version may be written. One query."""
    row = LeastVersion.objects.filter(
        subject__context__registry=place, subject__context__name=name.context, subject__name=name.subject
    ).first()
    return None if row is None else LeastInfo(row.version, row.reason, row.set_by, row.set_at)
