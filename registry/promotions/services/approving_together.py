"""Several approvals with one confirmation: each bound to the plan that was read, and each by itself.

What breaks, what fails and what warns is approved one at a time, and so is what has moved since it was read: such a
request is left out with the reason, and the others are approved all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from registry.access.roles import Actor
from registry.errors import InvalidInput, NotSignedIn, SchemadeskError
from registry.promotions.services.current import person, refuse_strangers
from registry.promotions.services.reviewing import approve

#: approvals of one confirmation, each of which makes its plan again
MOST_TOGETHER: Final = 50


@dataclass(frozen=True)
class Approval:
    """What became of one of them: its state, or why it was left out."""

    request: int
    state: str = ""
    refused: str = ""


def approve_together(*, plans: Sequence[tuple[int, str]], by: Actor) -> list[Approval]:
    """Approve each of these (number, hash of the plan that was read) that is safe; each once, in the order given.

    Said a second time it has no second effect: what this person has approved already is left out. Raises NotSignedIn,
    NotAllowed for somebody who may read nothing, InvalidInput for none and for too many.
    """
    refuse_strangers(by)
    person(by)
    asked = dict(plans)
    if not asked:
        raise InvalidInput("Choose requests first.")
    if len(asked) > MOST_TOGETHER:
        raise InvalidInput(f"{len(asked)} requests are too many at once; choose up to {MOST_TOGETHER}.")
    return [_approved(number, plan_hash, by) for number, plan_hash in asked.items()]


def _approved(number: int, plan_hash: str, by: Actor) -> Approval:
    """One of them, in transactions of its own."""
    try:
        return Approval(number, state=approve(request_id=number, by=by, plan_hash=plan_hash, only_safe=True))
    except NotSignedIn:
        raise
    except SchemadeskError as error:
        return Approval(number, refused=error.placed)
