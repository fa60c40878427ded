"""Rolling back: an earlier version of an environment made current again, as a version of a new number.

Nothing is taken away: versions have consumers and messages. It is a request like any other, judged by the target's level
and its reviewers; its plan says what it doesn't undo.
"""

from __future__ import annotations

from django.db import transaction

from registry.access.roles import Actor, require
from registry.errors import InvalidInput, WrongState
from registry.promotions.models import PromotionRequest
from registry.promotions.plan import Wish, WishedItem
from registry.promotions.selectors import get_environment
from registry.promotions.services.current import words
from registry.promotions.services.requesting import add_request, find_versions, require_requester
from registry.subjects.names import SubjectName
from registry.subjects.selectors import list_versions


@transaction.atomic
def request_roll_back(
    *, environment: str, subject: SubjectName, version: int | str, by: Actor, reason: str, again_of: int | None = None
) -> int:
    """Ask for an earlier version of a subject to be current again in an environment; gives the request's number.

    Raises InvalidInput without a reason and for a subject without a name, WrongState for the version that is current
    and for one that is asked for already, SubjectNotFound, VersionNotFound, InvalidVersion, NotAllowed, NotSignedIn.
    """
    words(reason, "reason", needed="Say why: whoever reviews it has to know what went wrong.")
    if not subject.subject:
        raise InvalidInput("A subject needs a name.")
    goal = get_environment(environment)
    require_requester(goal, [subject], by)
    require(by, "schema.read", registry=goal.registry.name, subject=subject.qualified)
    rows = find_versions(goal.registry, [(subject, version)])
    newest = list_versions(goal.registry, subject)[-1]
    if rows[0].version == newest:
        raise WrongState(f"Version {newest} of {subject.qualified} is current in {environment}; name an earlier one.")
    wish = Wish(target=goal, items=(WishedItem(subject, rows[0].version),), kind=PromotionRequest.ROLL_BACK)
    return add_request(wish, rows=rows, by=by, reason=reason, again_of=again_of)
