"""A worker's hold of a request that is being applied: one worker at a time, by a conditional update with a lease."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from registry.access.models import User
from registry.access.roles import Actor
from registry.access.selectors import actor_of_user
from registry.audit.services import record
from registry.promotions.models import PromotionRequest
from registry.promotions.services.current import locked

#: longer than two calls of the remote may take; a crashed worker's request is free after that
LEASE: Final = timedelta(seconds=90)
#: a mirror is read under a lease of its own, which is as long
SYNC_LEASE: Final = timedelta(minutes=15)


class ClaimLost(Exception):
    """Another worker has the request by now: this one stops and says nothing more."""


@dataclass
class Claim:
    """A worker's hold of a request that is being applied, and for whom it works."""

    request_id: int
    tag: str
    by: Actor
    #: (qualified subject, number in the plan) → number that the remote gave
    numbers: dict[tuple[str, int], int] = field(default_factory=dict)

    def renew(self, lease: timedelta = LEASE) -> None:
        """Hold it for another lease. Raises ClaimLost."""
        held = PromotionRequest.objects.filter(pk=self.request_id, claim_tag=self.tag, state=PromotionRequest.APPLYING)
        with transaction.atomic():
            record(by=self.by, why=f"apply request {self.request_id}: still at it")
            if not held.update(claim_until=timezone.now() + lease):
                raise ClaimLost

    def locked(self) -> PromotionRequest:
        """The request's row, locked. Raises ClaimLost."""
        request = locked(self.request_id)
        if request.claim_tag != self.tag or request.state != PromotionRequest.APPLYING:
            raise ClaimLost
        return request


def is_held(request: PromotionRequest, now: datetime) -> bool:
    """Whether a worker has the request."""
    return request.claim_until is not None and request.claim_until > now


def take(request_id: int) -> Claim | None:
    """Claim the request for a worker; None where there is nothing to do or another worker has it."""
    row = PromotionRequest.objects.filter(pk=request_id, state=PromotionRequest.APPLYING).first()
    user = User.objects.filter(pk=row.applied_by_id).first() if row and row.applied_by_id else None
    if user is None:
        return None
    now = timezone.now()
    claim = Claim(request_id, uuid.uuid4().hex, actor_of_user(user, door="task"))
    free = PromotionRequest.objects.filter(
        Q(claim_until=None) | Q(claim_until__lt=now), pk=request_id, state=PromotionRequest.APPLYING
    )
    with transaction.atomic():
        record(by=claim.by, why=f"apply request {request_id}: a worker takes it")
        return claim if free.update(claim_tag=claim.tag, claim_until=now + LEASE) else None
