"""Why somebody can't approve, apply or schedule a request now: every condition that fails, said before they try.

It is said from what is stored and from who asks, without a query: the page of a request and the API have it from here,
and the services, which look again under the request's lock, have the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from registry.access.roles import ADMIN, Actor, Grant, refusal
from registry.access.selectors import approval_refusal
from registry.promotions.can_promote import Reason
from registry.promotions.consumers import CODE as CONSUMERS
from registry.promotions.eligible import REVIEW
from registry.promotions.models import PromotionRequest, Review
from registry.promotions.overrides import AT_APPLYING
from registry.promotions.plan import REGISTER, STALE, WRITING
from registry.promotions.selectors import RequestInfo, ReviewInfo
from registry.promotions.selectors.consumers import Consumer
from registry.promotions.talk import CODE as THREADS

APPLY: Final = "promotion.apply"
FORCE: Final = "version.force"
_COMPATIBILITY: Final = "compatibility"
#: discussions that are named one by one
_NAMED: Final = 5
_APPROVED: Final = (PromotionRequest.APPROVED, PromotionRequest.SCHEDULED)
_ASKING: Final = "promotion.request"
_ASK: Final = "Ask somebody who has the right, or for the right itself."


@dataclass(frozen=True)
class Condition(Reason):
    """A condition that fails. `subject` is the one that it is about, "" for the request as a whole.

    `code` is a check's, or one of `state`, `rights`, `own-request`, `sign-in`, `reviewed`, `stale`, `approval`.
    `passable` says that an approver may pass over it with a reason, so that it stops nobody who gives one. `url` is the
    place on the site where it is mended, where that is a place of the request itself.
    """

    subject: str = ""
    passable: bool = False
    url: str = ""


def reasons_of(info: RequestInfo, by: Actor) -> dict[str, tuple[Condition, ...]]:
    """What stands against each thing that somebody may do to a request, by the name of that; empty where nothing does."""
    return {name: ask(info, by) for name, ask in ASKED.items()}


def approving(info: RequestInfo, by: Actor) -> tuple[Condition, ...]:
    """What stands against an approval by somebody, all of it."""
    if info.state != PromotionRequest.IN_REVIEW:
        has_them = info.state in _APPROVED
        said = "It has the approvals that it needs." if has_them else f"It is {info.state}, not in review."
        cure = "Submit it first." if info.state == PromotionRequest.DRAFT else ""
        return (Condition("state", said, cure),)
    blocking = [check for check in info.failing if check.get("code") not in AT_APPLYING]
    return (
        *_as_reviewer(info, by),
        *_sign_in(by),
        *_said_before(info, by),
        *_moved(info),
        *_checks(info, by, blocking),
    )


def applying(info: RequestInfo, by: Actor) -> tuple[Condition, ...]:
    """What stands against applying it now, all of it."""
    return (*_not_approved(info), *_rights(info, by, APPLY, _touched(info)), *_moved(info), *_failing(info))


def scheduling(info: RequestInfo, by: Actor) -> tuple[Condition, ...]:
    """What stands against applying it at a time to come: its checks are looked at then."""
    return (*_unscheduled(info), *_rights(info, by, APPLY, _touched(info)))


#: what may be done → what stands against it
ASKED: Final[Mapping[str, Callable[[RequestInfo, Actor], tuple[Condition, ...]]]] = {
    "approve": approving,
    "apply": applying,
    "schedule": scheduling,
}


def written(info: RequestInfo) -> list[str]:
    """The subjects that the plan writes, or the one that the request is named by where it writes none."""
    steps = (step for step in info.plan["steps"] if step.get("kind", REGISTER) in WRITING)
    return list(dict.fromkeys(str(step["subject"]) for step in steps)) or [info.subject.qualified]


def refused(actor: Actor, right: str, info: RequestInfo, subjects: Iterable[str]) -> str:
    """Why the actor may not do it to one of the subjects at the target; "" where they may to all."""
    found = (refusal(actor, right, registry=info.target, subject=subject) for subject in subjects)
    return next(filter(None, found), "")


def review_of(info: RequestInfo, by: Actor) -> ReviewInfo | None:
    """What somebody has said of the present plan."""
    return next((review for review in info.reviews if review.counts and review.reviewer_id == by.user_id), None)


def no_reviewer(info: RequestInfo, by: Actor) -> Condition | None:
    """Why somebody is no reviewer of the request; None for one who is."""
    lacking = refused(by, REVIEW, info, written(info))
    if by.user_id is None:
        return Condition("rights", lacking or "Sign in to review it.", "Sign in.")
    if by.limit and (limited := refused(replace(by, grants=(Grant(ADMIN),)), REVIEW, info, written(info))):
        return Condition("rights", limited, "Use a token that may, or sign in.")
    if review_of(info, by) is not None or any(one.user_id == by.user_id for one in info.needed.eligible):
        return None
    if lacking and by.user_id not in info.needed.named_ids:
        return Condition("rights", lacking, _who_could(info))
    if by.user_id == info.requested_by_id and not info.own_approval_allowed:
        return Condition("own-request", "You asked for this; somebody else must review it.", _who_could(info))
    if approval_refusal(by):
        return None  # that is a condition of its own
    said = "You can't review this: your account has the requester's address of mail, or is stated to be theirs."
    return Condition("own-request", said, _who_could(info))


def no_speaker(info: RequestInfo, consumer: Consumer, by: Actor) -> str:
    """Why somebody can't acknowledge the request for a client that it hurts, as a sentence; "" for one who can."""
    if info.state not in PromotionRequest.PLANNED_STATES:
        return f"The request is {info.state}: it isn't acknowledged any more."
    if by.user_id is None:
        return by.past or "Sign in to acknowledge it."
    if not consumer.people:
        found = no_reviewer(info, by)
        return found.sentence if found else approval_refusal(by)
    if by.limit and (limited := refused(replace(by, grants=(Grant(ADMIN),)), _ASKING, info, [consumer.hurt.subject])):
        return limited
    return approval_refusal(by) if by.user_id in consumer.user_ids else consumer.speakers


def _who_could(info: RequestInfo) -> str:
    """Who could approve it, in words; what keeps everybody from it where nobody could."""
    if info.needed.nobody_can:
        return info.needed.nobody_can
    names = [one.username for one in info.needed.eligible]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"It could be reviewed by {', '.join(names[:5])}{more}." if names else ""


def _as_reviewer(info: RequestInfo, by: Actor) -> Iterator[Condition]:
    found = no_reviewer(info, by)
    if found is not None:
        yield found


def _sign_in(by: Actor) -> Iterator[Condition]:
    if by.user_id is not None and (said := approval_refusal(by)):
        yield Condition("sign-in", said, "Sign in that way.")


def _said_before(info: RequestInfo, by: Actor) -> Iterator[Condition]:
    mine = review_of(info, by)
    if mine is not None and mine.verdict == Review.APPROVE:
        yield Condition("reviewed", "You have approved this plan already.", _who_could(info))


def _moved(info: RequestInfo) -> Iterator[Condition]:
    if info.is_unreadable:
        yield Condition("stale", "The stored plan can't be read.", "Run the checks again.")
    elif info.stale:
        yield Condition("stale", f"The checks are stale: {info.stale}", "Run the checks again.")


def _checks(info: RequestInfo, by: Actor, blocking: Iterable[Mapping[str, Any]]) -> Iterator[Condition]:
    """The checks that fail; what only somebody who may force versions passes over doesn't let others pass."""
    for check in blocking:
        subject = str(check.get("subject") or "")
        passable = bool(check.get("overridable"))
        lacking = ""
        if passable and check.get("code") == _COMPATIBILITY:
            lacking = refused(by, FORCE, info, [subject] if subject else written(info))
        yield _condition(check, passable=passable and not lacking, cure=lacking)


def _failing(info: RequestInfo) -> Iterator[Condition]:
    """The checks that fail and that no approval passes over: applying has no word against them."""
    for check in info.failing:
        if check.get("code") == THREADS and info.threads:
            yield from _open_threads(info)
        elif check.get("code") == CONSUMERS:
            yield _condition(check, url=f"/ui/promotions/{info.id}#consumers")
        else:
            yield _condition(check)


def _open_threads(info: RequestInfo) -> Iterator[Condition]:
    """Each discussion that has to be resolved, with the way to it."""
    threads = [thread for thread in info.threads if thread.is_open]
    for number, thread in enumerate(threads[:_NAMED]):
        place = f"{thread.path} of {thread.subject}" if thread.path else thread.subject or "the request as a whole"
        begun = f", begun by {thread.comments[0].author}" if thread.comments else ""
        more = len(threads) - _NAMED if number == _NAMED - 1 else 0
        left = f" {more} more {'is' if more == 1 else 'are'} open." if more > 0 else ""
        yield Condition(
            code=THREADS,
            sentence=f"A discussion isn't resolved: of {place}{begun}.{left}",
            cure="Whoever began it, the requester or a reviewer resolves it.",
            subject=thread.subject,
            url=f"/ui/promotions/{info.id}#thread-{thread.id}",
        )


def _condition(check: Mapping[str, Any], *, passable: bool = False, cure: str = "", url: str = "") -> Condition:
    """A failing check; `cure` is who alone may pass over it."""
    cures = [str(check.get("cure") or "")]
    if cure:
        cures.append(f"Who approves it in spite of this may force versions: {cure}")
    elif check.get("overridable"):
        cures.append("An approval may pass over it, with a reason.")
    return Condition(
        code=str(check.get("code") or check["name"]),
        sentence=f"A check {'is stale' if check['verdict'] == STALE else 'fails'}: {check['sentence']}",
        cure=" ".join(filter(None, cures)),
        subject=str(check.get("subject") or ""),
        passable=passable,
        url=url,
    )


def _not_approved(info: RequestInfo) -> Iterator[Condition]:
    if info.state == PromotionRequest.IN_REVIEW:
        lacking = info.needed.nobody_can or info.needed.missing
        yield Condition("approval", f"It isn't approved yet. {lacking}".strip(), _who_could(info))
    elif info.state == PromotionRequest.SCHEDULED:
        yield Condition("state", "It is scheduled.", "Wait for that time, or take the time away.")
    elif info.state != PromotionRequest.APPROVED:
        yield Condition("state", f"It is {info.state}; only an approved one is applied.")


def _unscheduled(info: RequestInfo) -> Iterator[Condition]:
    if info.state == PromotionRequest.IN_REVIEW:
        yield from _not_approved(info)
    elif info.state not in _APPROVED:
        yield Condition("state", f"It is {info.state}; only an approved one is scheduled.")


def _rights(info: RequestInfo, by: Actor, right: str, subjects: Iterable[str]) -> Iterator[Condition]:
    """Each right that is lacking, once in the same words."""
    seen = set()
    for subject in subjects:
        said = refusal(by, right, registry=info.target, subject=subject)
        if said and said not in seen:
            seen.add(said)
            yield Condition("rights", said, _ASK, subject=subject)


def _touched(info: RequestInfo) -> Iterable[str]:
    """What was asked for, and what is written for it."""
    return dict.fromkeys((*(item.subject.qualified for item in info.items), *written(info)))
