"""Drafts, for their author alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from registry.errors import DraftNotFound
from registry.formats.base import Reference
from registry.promotions.models import Draft
from registry.subjects.names import SubjectName


@dataclass(frozen=True)
class DraftInfo:
    """A schema as far as it is written; a list has no texts."""

    id: int
    registry: str
    subject: SubjectName
    schema_type: str
    text: str
    references: tuple[Reference, ...]
    reason: str
    origin: str
    finding: int | None
    again_of: int | None
    made_at: datetime
    changed_at: datetime

    @property
    def state(self) -> str:
        """What changes with every change; who writes on says which state they had read."""
        return self.changed_at.isoformat()


def list_drafts(
    user_id: int, *, registry: str = "", subject: SubjectName | None = None, finding: int | None = None
) -> list[DraftInfo]:
    """A person's drafts without their texts, the one that was changed last first; one query, a hundred at most.

    `finding` is the drift finding that they answer.
    """
    rows = Draft.objects.filter(author_id=user_id).select_related("registry").defer("text")
    if registry:
        rows = rows.filter(registry__name=registry)
    if subject is not None:
        rows = rows.filter(context_name=subject.context, subject_name=subject.subject)
    if finding is not None:
        rows = rows.filter(finding=finding)
    return [_info(row, "") for row in rows.order_by("-changed_at", "-pk")]


def get_draft(draft_id: int, *, user_id: int) -> DraftInfo:
    """One draft of a person. Raises DraftNotFound, for somebody else's too."""
    row = Draft.objects.filter(pk=draft_id, author_id=user_id).select_related("registry").first()
    if row is None:
        raise DraftNotFound(f"You have no draft {draft_id}.", draft=draft_id)
    return _info(row, row.text)


def _info(row: Draft, text: str) -> DraftInfo:
    return DraftInfo(
        id=row.pk,
        registry=row.registry.name,
        subject=SubjectName(row.context_name, row.subject_name),
        schema_type=row.schema_type,
        text=text,
        references=tuple(Reference(**reference) for reference in row.references),
        reason=row.reason,
        origin=row.origin,
        finding=row.finding,
        again_of=row.again_of_id,
        made_at=row.made_at,
        changed_at=row.changed_at,
    )
