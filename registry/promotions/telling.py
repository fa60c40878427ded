"""Telling of what becomes of a promotion request, in the transaction of the change."""

from __future__ import annotations

from registry.access.roles import Actor
from registry.notifications.services import notify
from registry.promotions.models import PromotionRequest
from registry.subjects.names import SubjectName


def tell(request: PromotionRequest, event: str, sentence: str, *, by: Actor) -> None:
    """Tell of one event (`promotion.…`). The requester is told of what others do; reviewers of new requests."""
    by_requester = by.user_id == request.requested_by_id
    subject = SubjectName(request.context_name, request.subject_name).qualified
    notify(
        event=event,
        registry=request.target.registry.name,
        subject=subject,
        text=f"Request {request.pk} ({subject} version {request.version_number} to {request.target}): {sentence}",
        url=f"/ui/promotions/{request.pk}",
        to=() if by_requester else (request.requested_by_id,),
        data={"request": request.pk, "state": request.state, "version": request.version_number, "by": by.name},
        by=by.user_id,
    )
