"""Labelling requests: whoever asked for one and whoever reviews it. It changes nothing of what is decided."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.db import transaction

from registry.access.roles import Actor, may
from registry.audit.services import record
from registry.errors import NotAllowed
from registry.promotions.eligible import REVIEW, needed_for, written_subjects
from registry.promotions.labels import clean_labels
from registry.promotions.models import PromotionRequest
from registry.promotions.services.current import locked_for, person, refuse_by_token

_ACTION: Final = "promotion.request"


@transaction.atomic
def set_labels(*, request_id: int, labels: Iterable[str], by: Actor) -> list[str]:
    """Replace the labels of a request, open or closed; gives those that it has then.

    Raises InvalidInput, NotAllowed, NotSignedIn, RequestNotFound.
    """
    request = locked_for(request_id, by)
    _require_part(request, by)
    wanted = clean_labels(labels)
    if wanted == request.labels:
        return wanted
    record(by=by, why=f"label request {request_id}: {', '.join(wanted) or 'none'}")
    request.labels = wanted
    request.save(update_fields=["labels"])
    return wanted


def _require_part(request: PromotionRequest, by: Actor) -> None:
    user_id, registry, subjects = person(by), request.target.registry.name, written_subjects(request)
    refuse_by_token(by, _ACTION, registry=registry, subjects=subjects)
    if user_id == request.requested_by_id:
        return
    if all(may(by, REVIEW, registry=registry, subject=name) for name in subjects):
        return
    if user_id not in needed_for(request).named_ids:
        raise NotAllowed("A request is labelled by whoever asked for it, and by those who review it.")
