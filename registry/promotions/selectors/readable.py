"""A request for somebody who may read it."""

from __future__ import annotations

from registry.access.roles import Actor, may, may_somewhere, require
from registry.errors import RequestNotFound
from registry.promotions.models import PromotionRequest
from registry.promotions.selectors.requests import RequestInfo, get_request


def may_see(by: Actor, info: RequestInfo) -> bool:
    """Whether somebody may read a request: all that it asks for at its target; a draft is its requester's alone."""
    if info.state == PromotionRequest.DRAFT and by.user_id != info.requested_by_id:
        return False
    names = [item.subject.qualified for item in info.items] or [info.subject.qualified]
    return all(may(by, "schema.read", registry=info.target, subject=name) for name in names)


def readable_request(request_id: int, by: Actor) -> RequestInfo:
    """One request; for whoever may not read it the same answer as for one that isn't there.

    Raises NotSignedIn, NotAllowed, RequestNotFound.
    """
    if not may_somewhere(by, "schema.read"):
        require(by, "schema.read")
    info = get_request(request_id)
    if not may_see(by, info):
        raise RequestNotFound(f"There is no promotion request {request_id}.", request=request_id)
    return info
