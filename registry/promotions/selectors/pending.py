"""Subjects that an open request asks for."""

from __future__ import annotations

from django.db.models import Q

from registry.promotions.models import PromotionRequest, RequestItem
from registry.promotions.plan import FAIL
from registry.subjects.names import SubjectName


def pending_subjects() -> list[SubjectName]:
    """Those of all open requests, drafts left out; one query."""
    return _subjects(Q())


def troubled_subjects() -> list[SubjectName]:
    """Those of open requests that break something, or of which a check fails; one query."""
    return _subjects(Q(request__plan__breaking=True) | Q(request__plan__checks__contains=[{"verdict": FAIL}]))


def _subjects(which: Q) -> list[SubjectName]:
    states = [state for state in PromotionRequest.OPEN_STATES if state != PromotionRequest.DRAFT]
    rows = RequestItem.objects.filter(which, request__state__in=states).order_by("context_name", "subject_name")
    return [SubjectName(*names) for names in rows.values_list("context_name", "subject_name").distinct()]
