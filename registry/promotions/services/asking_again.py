"""Asking again for what was rejected or withdrawn: a new request with the same contents and a plan of today."""

from __future__ import annotations

from registry.access.roles import Actor, require
from registry.errors import WrongState
from registry.formats.base import Reference
from registry.promotions.models import PromotionRequest
from registry.promotions.origins import readable_findings
from registry.promotions.selectors import RequestInfo, get_environment
from registry.promotions.selectors.readable import readable_request
from registry.promotions.services.adopting import request_adoption
from registry.promotions.services.earlier import AGAIN
from registry.promotions.services.requesting import find_versions, propose_version, request_promotion
from registry.promotions.services.rolling_back import request_roll_back


def ask_again(*, request_id: int, by: Actor, reason: str = "") -> int:
    """Ask for what an earlier request asked for, with its labels, and its reason where none is given.

    Gives the new request's number.

    What may be asked for is judged anew, as is the plan. Raises WrongState for a request that was neither rejected nor
    withdrawn, and where a version has another schema since; and what its kind of request raises.
    """
    info = readable_request(request_id, by)
    if info.state not in AGAIN:
        raise WrongState(
            f"Request {info.id} is {info.state}; only one that was rejected or withdrawn is asked for again."
        )
    why = reason.strip() or info.reason
    if info.kind == PromotionRequest.PROPOSE:
        return _proposed(info, why, by)
    _refuse_other_schemas(info, by)
    if info.kind == PromotionRequest.PROMOTE:
        return request_promotion(
            source=info.source,
            target=info.target,
            items=[(item.subject, item.version) for item in info.items],
            with_config=info.with_config,
            reason=why,
            again_of=info.id,
            labels=info.labels,
            by=by,
        )
    ask = request_roll_back if info.kind == PromotionRequest.ROLL_BACK else request_adoption
    return ask(environment=info.target, subject=info.subject, version=info.version, reason=why, again_of=info.id, by=by)


def _refuse_other_schemas(info: RequestInfo, by: Actor) -> None:
    """Raise WrongState where a version was removed for good, and its number given to another schema."""
    place = get_environment(info.source or info.target).registry
    for item in info.items:
        require(by, "schema.read", registry=place.name, subject=item.subject.qualified)
    rows = find_versions(place, [(item.subject, item.version) for item in info.items])
    for item, row in zip(info.items, rows, strict=True):
        if row.schema.fingerprint != item.fingerprint:
            raise WrongState(
                f"Version {item.version} of {item.subject.qualified} in {place.name} isn't the schema that request {info.id}"
                " asked for: ask for it anew."
            )


def _proposed(info: RequestInfo, reason: str, by: Actor) -> int:
    item = info.items[0]
    return propose_version(
        target=info.target,
        subject=item.subject,
        text=item.text,
        schema_type=item.schema_type,
        references=[Reference(**reference) for reference in item.references],
        reason=reason,
        finding=info.finding if readable_findings([info.finding], by) else None,
        again_of=info.id,
        labels=info.labels,
        by=by,
    )
