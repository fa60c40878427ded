"""Subjects that an open request asks for."""

from __future__ import annotations

from registry.promotions.models import PromotionRequest, RequestItem
from registry.subjects.names import SubjectName


def pending_subjects() -> list[SubjectName]:
    """Those of all open requests, drafts left out; one query."""
    states = [state for state in PromotionRequest.OPEN_STATES if state != PromotionRequest.DRAFT]
    rows = RequestItem.objects.filter(request__state__in=states).order_by("context_name", "subject_name")
    return [SubjectName(*names) for names in rows.values_list("context_name", "subject_name").distinct()]
