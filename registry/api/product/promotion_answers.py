"""Promotion requests as JSON values, for those who may read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from registry.access.roles import Actor, may, may_somewhere, require
from registry.errors import RequestNotFound
from registry.promotions import selectors
from registry.promotions.models import PromotionRequest
from registry.promotions.origins import origin_of, readable_findings
from registry.promotions.reasons import reasons_of
from registry.promotions.selectors import RequestInfo
from registry.promotions.selectors.again import Again as AskedAgain
from registry.promotions.selectors.again import asked_again
from registry.promotions.selectors.source_findings import source_findings


def readable(request_id: int, by: Actor) -> RequestInfo:
    """The request for somebody who may read it; others can't tell it from one that isn't there.

    Raises NotSignedIn, NotAllowed, RequestNotFound.
    """
    if not may_somewhere(by, "schema.read"):
        require(by, "schema.read")
    info = selectors.get_request(request_id)
    subjects = [item.subject.qualified for item in info.items] or [info.subject.qualified]
    is_anothers_draft = info.state == PromotionRequest.DRAFT and info.requested_by_id != by.user_id
    if is_anothers_draft or not all(
        may(by, "schema.read", registry=info.target, subject=subject) for subject in subjects
    ):
        raise RequestNotFound(f"There is no promotion request {request_id}.", request=request_id)
    return info


def answer_of(info: RequestInfo, by: Actor) -> dict[str, Any]:
    """A request as JSON values; its `origin` is for those who may read the finding that it answers."""
    return answers_of([info], by)[0]


def answers_of(infos: Sequence[RequestInfo], by: Actor) -> list[dict[str, Any]]:
    """Requests as JSON values, their findings with one query, and those that ask for the same with another."""
    findings, again = readable_findings([info.finding for info in infos], by), asked_again(infos, by)
    return [_answer(info, origin_of(findings.get(info.finding or 0)), again[info.id], by) for info in infos]


def _answer(info: RequestInfo, origin: dict[str, Any] | None, asked: AskedAgain, by: Actor) -> dict[str, Any]:
    """One of them; `reasons` say for each thing that may be done why the caller couldn't now."""
    found = asdict(info)
    del found["finding"]  # its number is in the origin, for those who may read it
    found["needed"].pop("named_ids")
    found["needed"] |= {"is_met": info.needed.is_met, "missing": info.needed.missing}
    return {
        **found,
        "origin": origin,
        "source_findings": [asdict(finding) for finding in source_findings(info, by)],
        "again_of": asked.earlier.id if asked.earlier else None,
        "asked_again_by": [each.id for each in asked.later],
        "release": asdict(info.release) if info.release else None,
        "is_breaking": info.is_breaking,
        "can_run": info.can_run,
        "reasons": {name: [asdict(item) for item in against] for name, against in reasons_of(info, by).items()},
    }
