"""Adopting a ghost: a request after the fact, so that somebody reviews what came into an environment without one."""

from __future__ import annotations

from django.db import transaction

from registry.access.roles import Actor
from registry.errors import InvalidInput, WrongState
from registry.promotions.models import PromotionRequest
from registry.promotions.plan import Wish, WishedItem
from registry.promotions.selectors import get_environment
from registry.promotions.selectors.ghosts import is_ghost
from registry.promotions.services.requesting import add_request, find_versions, require_requester
from registry.subjects.names import SubjectName


@transaction.atomic
def request_adoption(
    *, environment: str, subject: SubjectName, version: int | str, by: Actor, reason: str, again_of: int | None = None
) -> int:
    """Ask for the review of a version that is in the environment already; gives the request's number.

    Applying the approved request records the release that is missing; nothing is registered. `reason` says how the
    version came there. Raises WrongState for a version that came by a request or needs none, InvalidInput without a
    reason, RegistryNotFound, SubjectNotFound, VersionNotFound, InvalidVersion, NotAllowed, NotSignedIn.
    """
    goal = get_environment(environment)
    require_requester(goal, [subject], by)
    if not reason.strip():
        raise InvalidInput("Say how the version came here without a request, and why it should stay.", field="reason")
    rows = find_versions(goal.registry, [(subject, version)])
    if not is_ghost(goal, rows[0]):
        raise WrongState(
            f"Version {rows[0].version} of {subject.qualified} in {environment} is no ghost: it came by a request or an"
            " import, or needs neither. There is nothing to adopt.",
            subject=subject.qualified,
            version=rows[0].version,
        )
    item = WishedItem(subject, rows[0].version)
    wish = Wish(target=goal, items=(item,), kind=PromotionRequest.ADOPT)
    return add_request(wish, rows=rows, by=by, reason=reason, again_of=again_of)
