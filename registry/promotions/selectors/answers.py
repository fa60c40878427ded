"""What answers a drift finding: drafts and requests that were begun from it, as far as somebody may see them."""

from __future__ import annotations

from dataclasses import dataclass

from registry.access.roles import Actor
from registry.promotions.selectors.drafts import DraftInfo, list_drafts
from registry.promotions.selectors.readable import may_see
from registry.promotions.selectors.requests import RequestInfo, list_requests


@dataclass(frozen=True)
class Answers:
    """One's own drafts, and requests, newest first; what a request made live is among its releases."""

    drafts: tuple[DraftInfo, ...]
    requests: tuple[RequestInfo, ...]


def answers_to(finding_id: int, by: Actor) -> Answers:
    """Those to a finding that the actor may read, which the caller has asked; a constant number of queries."""
    drafts = list_drafts(by.user_id, finding=finding_id) if by.user_id is not None else []
    found = list_requests(finding=finding_id, viewer=by.user_id)
    return Answers(tuple(drafts), tuple(info for info in found if may_see(by, info)))
