"""What the reader may do about a request, and why not: reviews, applying, withdrawing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.pages.promotions_plan import steps_of_plan
from dashboard.presenters.frame import Action, Field
from dashboard.presenters.promotions_page import ReviewForm, ScheduleForm
from registry.access.roles import Actor, may, refusal
from registry.access.selectors import approval_refusal
from registry.promotions.models import PromotionRequest, Review
from registry.promotions.overrides import AT_APPLYING
from registry.promotions.selectors import EnvironmentInfo, RequestInfo, ReviewInfo

#: states in which a plan is looked at again
PLANNED: Final = (PromotionRequest.IN_REVIEW, PromotionRequest.APPROVED, PromotionRequest.SCHEDULED)
_COMPATIBILITY: Final = "compatibility"


def action(
    info: RequestInfo, name: str, label: str, reason: str = "", *, tone: str = "plain", icon: str = ""
) -> Action:
    """A button that posts to an address of the request."""
    return Action(
        label=label,
        url=reverse(f"ui:promotion_{name}", args=[info.id]),
        method="post",
        allowed=not reason,
        reason=reason,
        tone=tone,
        icon=icon,
    )


def written(info: RequestInfo) -> list[str]:
    """The subjects that the plan writes, or those that are asked for where it writes none."""
    names = dict.fromkeys(step.subject for step in steps_of_plan(info.plan) if step.writes)
    return list(names) or [info.subject.qualified]


def refused(actor: Actor, right: str, info: RequestInfo, subjects: Iterable[str]) -> str:
    """Why the actor may not do it to one of the subjects at the target; "" where they may to all."""
    found = (refusal(actor, right, registry=info.target, subject=subject) for subject in subjects)
    return next(filter(None, found), "")


def is_typed(info: RequestInfo, environment: EnvironmentInfo) -> bool:
    """Whether the page asks for the subject's name to be typed before it is approved: it breaks what is closed."""
    return info.is_breaking and environment.is_closed


def review_form(info: RequestInfo, actor: Actor, environment: EnvironmentInfo) -> ReviewForm | None:
    """The form of the review, with what is in the way of each button; None where there is nothing to review."""
    if info.state not in PLANNED:
        return None
    mine = next((review for review in info.reviews if review.counts and review.reviewer_id == actor.user_id), None)
    base = _no_reviewer(info, actor, mine)
    blocking = [check for check in info.failing if check.get("code") not in AT_APPLYING]
    approve = base or _no_approval(info, actor, mine, blocking)
    asks = (
        gettext("Needed: it breaks what is there.")
        if info.is_breaking
        else gettext("Needed to request changes and to reject.")
    )
    overridable = [check["name"] for check in blocking if check.get("overridable")]
    return ReviewForm(
        approve=action(info, "approve", gettext("Approve"), approve, tone="primary", icon="check"),
        changes=action(
            info, "changes", gettext("Request changes"), base or _again(mine, Review.CHANGES), icon="pencil"
        ),
        reject=action(info, "reject", gettext("Reject"), base or _again(mine, Review.REJECT), tone="danger", icon="x"),
        comment=Field(name="comment", label=gettext("Comment"), kind="textarea", rows=3, help=asks),
        plan_hash=info.plan_hash,
        override=Field(
            name="override",
            label=gettext("Why in spite of failing checks"),
            kind="textarea",
            rows=2,
            help=gettext("To approve although these fail: %(overridable)s.") % {"overridable": ", ".join(overridable)},
        )
        if overridable and not approve
        else None,
        typed=Field(
            name="typed",
            label=gettext("To approve, type the subject’s name"),
            code=True,
            help=gettext("%(qualified)s: it breaks, and %(target)s is closed.")
            % {"qualified": info.subject.qualified, "target": info.target},
        )
        if is_typed(info, environment) and not approve
        else None,
    )


def _no_reviewer(info: RequestInfo, actor: Actor, mine: ReviewInfo | None) -> str:
    """Why the reader is no reviewer of this request; "" for one who is."""
    if actor.user_id is None:
        return refused(actor, "promotion.review", info, written(info))
    if mine is not None or any(one.user_id == actor.user_id for one in info.needed.eligible):
        return ""
    lacking = refused(actor, "promotion.review", info, written(info))
    if lacking and actor.user_id not in info.needed.named_ids:
        return lacking
    if actor.user_id == info.requested_by_id and not info.own_approval_allowed:
        return gettext("You asked for this; somebody else must review it.")
    return approval_refusal(actor) or gettext(
        "You can’t review this: your account has the requester’s address of mail."
    )


def _no_approval(
    info: RequestInfo, actor: Actor, mine: ReviewInfo | None, blocking: Sequence[Mapping[str, Any]]
) -> str:
    if info.state != PromotionRequest.IN_REVIEW:
        return gettext("It has the approvals that it needs.")
    if reason := approval_refusal(actor) or _again(mine, Review.APPROVE):
        return reason
    if info.stale:
        return gettext("The checks are stale: %(stale)s Run them again.") % {"stale": info.stale}
    hard = next((check for check in blocking if not check.get("overridable")), None)
    if hard is not None:
        return gettext("A check fails that can’t be overridden: %(sentence)s") % {"sentence": hard["sentence"]}
    if any(check.get("code") == _COMPATIBILITY for check in blocking):
        names = [check["subject"] for check in blocking if check.get("code") == _COMPATIBILITY and check["subject"]]
        lacking = refused(actor, "version.force", info, names or written(info))
        return (
            gettext("It breaks the level, which an administrator alone overrides: %(lacking)s") % {"lacking": lacking}
            if lacking
            else ""
        )
    return ""


def _again(mine: ReviewInfo | None, verdict: str) -> str:
    return gettext("You have said so of this plan already.") if mine is not None and mine.verdict == verdict else ""


def submit_action(info: RequestInfo, actor: Actor) -> Action | None:
    """The button that submits a draft."""
    if info.state != PromotionRequest.DRAFT:
        return None
    return action(info, "submit", gettext("Submit for review"), tone="primary", icon="send")


def recheck_action(info: RequestInfo, actor: Actor) -> Action | None:
    """The button that runs the checks again."""
    if info.state not in (PromotionRequest.DRAFT, *PLANNED):
        return None
    names = [item.subject.qualified for item in info.items] or [info.subject.qualified]
    reason = refused(actor, "promotion.request", info, names)
    return action(info, "recheck", gettext("Run again"), reason, icon="refresh-cw")


def withdraw_action(info: RequestInfo, actor: Actor) -> Action | None:
    """The button that takes the request back; only its requester and administrators see it."""
    if info.state not in (PromotionRequest.DRAFT, *PLANNED):
        return None
    if actor.user_id != info.requested_by_id and not may(actor, "registry.manage", registry=info.target):
        return None
    return action(info, "withdraw", gettext("Withdraw"), icon="undo-2")


def apply_action(info: RequestInfo, actor: Actor) -> Action | None:
    """The button that applies; before it is approved it says so to those who could press it then."""
    if info.state not in (PromotionRequest.IN_REVIEW, PromotionRequest.APPROVED):
        return None
    reason = _no_apply(info, actor)
    if info.state == PromotionRequest.IN_REVIEW:
        if reason:
            return None
        reason = (
            gettext("It isn’t approved yet. %(value)s") % {"value": info.needed.nobody_can or info.needed.missing}
        ).strip()
    elif not reason and info.failing:
        reason = gettext("A check fails: %(sentence)s") % {"sentence": info.failing[0]["sentence"]}
    return action(
        info, "apply", gettext("Apply to %(target)s") % {"target": info.target}, reason, tone="primary", icon="rocket"
    )


def _no_apply(info: RequestInfo, actor: Actor) -> str:
    asked = [item.subject.qualified for item in info.items]
    return refused(actor, "promotion.apply", info, dict.fromkeys((*asked, *written(info))))


def schedule_form(info: RequestInfo, actor: Actor) -> ScheduleForm | None:
    """Where a time to apply is set."""
    if info.state not in (PromotionRequest.APPROVED, PromotionRequest.SCHEDULED):
        return None
    label = gettext("Schedule") if info.state == PromotionRequest.APPROVED else gettext("Change the time")
    now = timezone.now()
    start = info.apply_at or (now + timedelta(hours=1)).replace(minute=0)
    return ScheduleForm(
        schedule=action(info, "schedule", label, _no_apply(info, actor)),
        value=f"{start:%Y-%m-%dT%H:%M}",
        minimum=f"{now:%Y-%m-%dT%H:%M}",
    )


def unschedule_action(info: RequestInfo, actor: Actor) -> Action | None:
    """The button that takes the time away; the requester may press it too."""
    if info.state != PromotionRequest.SCHEDULED:
        return None
    reason = "" if actor.user_id == info.requested_by_id else _no_apply(info, actor)
    return action(info, "unschedule", gettext("Don’t apply it then"), reason, icon="undo-2")


def failed_actions(info: RequestInfo, actor: Actor) -> tuple[Action | None, Action | None]:
    """Go on, and give up, of a request of which a part is written."""
    if info.state != PromotionRequest.FAILED:
        return None, None
    reason = _no_apply(info, actor)
    return (
        action(info, "resume", gettext("Go on with what is left"), reason, tone="primary", icon="play"),
        action(info, "give_up", gettext("Give up"), reason, tone="danger", icon="x"),
    )
