"""The request that a new one asks for again: which one it may be."""

from __future__ import annotations

from collections.abc import Collection

from registry.access.roles import Actor
from registry.errors import InvalidInput, WrongState
from registry.promotions.models import PromotionRequest
from registry.promotions.selectors.readable import readable_request
from registry.subjects.names import SubjectName

#: nothing was written, and nothing will be
AGAIN: tuple[str, ...] = (PromotionRequest.REJECTED, PromotionRequest.WITHDRAWN)


def require_earlier(number: int, *, target: str, subjects: Collection[SubjectName], by: Actor) -> None:
    """Refuse an earlier request that a new one of these subjects can't ask for again.

    Raises RequestNotFound for one that `by` may not read, WrongState for one that was neither rejected nor withdrawn,
    InvalidInput for one of another target or of other subjects alone.
    """
    earlier = readable_request(number, by)
    if earlier.state not in AGAIN:
        raise WrongState(
            f"Request {number} is {earlier.state}; only one that was rejected or withdrawn is asked for again.",
            request=number,
        )
    if earlier.target != target or not any(item.subject in subjects for item in earlier.items):
        raise InvalidInput(
            f"Request {number} asked for other subjects or another target than {target}; this doesn't ask for it again.",
            field="again_of",
        )
