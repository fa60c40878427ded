"""What the reader may do about a request, and why not: reviews, applying, withdrawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.pages.promotions import label_links
from dashboard.pages.promotions_why import why_of
from dashboard.presenters.frame import Action, Field, Link
from dashboard.presenters.policy import WhyNot
from dashboard.presenters.promotions_page import LabelForm, ReviewForm, ScheduleForm
from dashboard.texts import listing
from registry.access.roles import Actor, may
from registry.promotions.eligible import REVIEW
from registry.promotions.labels import MAX_LABELS
from registry.promotions.models import PromotionRequest, Review
from registry.promotions.overrides import AT_APPLYING
from registry.promotions.reasons import (
    Condition,
    applying,
    approving,
    no_reviewer,
    refused,
    review_of,
    scheduling,
    written,
)
from registry.promotions.selectors import EnvironmentInfo, RequestInfo, ReviewInfo


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


def is_typed(info: RequestInfo, environment: EnvironmentInfo) -> bool:
    """Whether the page asks for the subject's name to be typed before it is approved: it breaks what is closed."""
    return info.is_breaking and environment.is_closed


def review_form(info: RequestInfo, actor: Actor, environment: EnvironmentInfo) -> ReviewForm | None:
    """The form of the review, with what is in the way of each button; None where there is nothing to review."""
    if info.state not in PromotionRequest.PLANNED_STATES:
        return None
    mine, base = review_of(info, actor), no_reviewer(info, actor)
    against = approving(info, actor)
    approve = next((item.sentence for item in against if not item.passable), "")
    others = base.sentence if base else ""
    asks = (
        gettext("Needed: it breaks what is there.")
        if info.is_breaking
        else gettext("Needed to request changes and to reject.")
    )
    overridable = any(item.passable for item in against)
    later_on = [check for check in info.failing if check.get("overridable") and check.get("code") in AT_APPLYING]
    return ReviewForm(
        approve=action(info, "approve", gettext("Approve"), approve, tone="primary", icon="check"),
        changes=action(
            info, "changes", gettext("Request changes"), others or _again(mine, Review.CHANGES), icon="pencil"
        ),
        reject=action(
            info, "reject", gettext("Reject"), others or _again(mine, Review.REJECT), tone="danger", icon="x"
        ),
        comment=Field(name="comment", label=gettext("Comment"), kind="textarea", rows=2, help=asks),
        plan_hash=info.plan_hash,
        override=Field(
            name="override",
            label=gettext("Why in spite of failing checks"),
            kind="textarea",
            rows=2,
            help=gettext("To approve although these fail: %(overridable)s.")
            % {"overridable": _names_of(info, against, later_on)}
            if overridable
            else gettext("Not needed to approve. With a reason it can be applied although these fail: %(overridable)s.")
            % {"overridable": _names_of(info, (), later_on)},
        )
        if (overridable or later_on) and not approve
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
        why=why_of(against, info, actor) if approve else (),
    )


def _names_of(info: RequestInfo, against: Sequence[Condition], besides: Sequence[Mapping[str, Any]]) -> str:
    """The names of the failing checks that an approval may pass over, those that stop the applying alone besides."""
    passable = {(item.code, item.subject) for item in against if item.passable}
    found = [check for check in info.failing if (check.get("code"), check.get("subject") or "") in passable]
    return listing(check["name"] for check in (*found, *besides))


def _again(mine: ReviewInfo | None, verdict: str) -> str:
    return gettext("You have said so of this plan already.") if mine is not None and mine.verdict == verdict else ""


def label_field(written: str, *errors: str) -> Field:
    """The line in which people write the labels of a request."""
    return Field(
        name="labels",
        label=gettext("Labels"),
        value=written,
        errors=errors,
        help=gettext("Up to %(most)s, with commas between them; everybody who reads the request sees them.")
        % {"most": MAX_LABELS},
    )


def label_form(info: RequestInfo, actor: Actor) -> LabelForm:
    """The labels, and the form that replaces them for whoever asked for the request or reviews it."""
    part = info.requested_by_id, *info.needed.named_ids
    lacking = "" if actor.user_id in part else refused(actor, REVIEW, info, written(info))
    change = action(info, "labels", gettext("Save the labels"), lacking, icon="check")
    return LabelForm(
        labels=label_links(info),
        written=label_field(", ".join(info.labels)),
        change=change if actor.user_id and (info.labels or not lacking) else None,
    )


def submit_action(info: RequestInfo, actor: Actor) -> Action | None:
    """The button that submits a draft."""
    if info.state != PromotionRequest.DRAFT:
        return None
    return action(info, "submit", gettext("Submit for review"), tone="primary", icon="send")


def recheck_action(info: RequestInfo, actor: Actor) -> Action | None:
    """The button that runs the checks again."""
    if info.state not in (PromotionRequest.DRAFT, *PromotionRequest.PLANNED_STATES):
        return None
    names = [item.subject.qualified for item in info.items] or [info.subject.qualified]
    reason = refused(actor, "promotion.request", info, names)
    return action(info, "recheck", gettext("Run again"), reason, icon="refresh-cw")


def withdraw_action(info: RequestInfo, actor: Actor) -> Action | None:
    """The button that takes the request back; only its requester and administrators see it."""
    if info.state not in (PromotionRequest.DRAFT, *PromotionRequest.PLANNED_STATES):
        return None
    if actor.user_id != info.requested_by_id and not may(actor, "registry.manage", registry=info.target):
        return None
    return action(info, "withdraw", gettext("Withdraw"), icon="undo-2")


def apply_action(info: RequestInfo, actor: Actor) -> Action | None:
    """The button that applies; before it is approved it says so to those who could press it then."""
    if info.state not in (PromotionRequest.IN_REVIEW, PromotionRequest.APPROVED):
        return None
    against = applying(info, actor)
    if info.state == PromotionRequest.IN_REVIEW and any(item.code == "rights" for item in against):
        return None
    label = gettext("Apply to %(target)s") % {"target": info.target}
    return action(info, "apply", label, _first(against), tone="primary", icon="rocket")


def apply_why(info: RequestInfo, actor: Actor) -> tuple[WhyNot, ...]:
    """All the conditions that fail of applying."""
    return why_of(applying(info, actor), info, actor)


def _first(against: Sequence[Condition]) -> str:
    return next((item.sentence for item in against), "")


def _no_apply(info: RequestInfo, actor: Actor) -> str:
    """The right to apply that is lacking; "" where none is."""
    return next((item.sentence for item in applying(info, actor) if item.code == "rights"), "")


def schedule_form(info: RequestInfo, actor: Actor) -> ScheduleForm | None:
    """Where a time to apply is set."""
    if info.state not in (PromotionRequest.APPROVED, PromotionRequest.SCHEDULED):
        return None
    label = gettext("Schedule") if info.state == PromotionRequest.APPROVED else gettext("Change the time")
    now = timezone.now()
    start = info.apply_at or (now + timedelta(hours=1)).replace(minute=0)
    against = scheduling(info, actor)
    return ScheduleForm(
        schedule=action(info, "schedule", label, _first(against)),
        value=f"{start:%Y-%m-%dT%H:%M}",
        minimum=f"{now:%Y-%m-%dT%H:%M}",
        why=why_of(against, info, actor),
    )


def unschedule_action(info: RequestInfo, actor: Actor) -> Action | None:
    """The button that takes the time away; the requester may press it too."""
    if info.state != PromotionRequest.SCHEDULED:
        return None
    reason = "" if actor.user_id == info.requested_by_id else _no_apply(info, actor)
    return action(info, "unschedule", gettext("Don’t apply it then"), reason, icon="undo-2")


def glass_link(info: RequestInfo, actor: Actor, environment: EnvironmentInfo) -> Link | None:
    """The way around a request that can't go on as it is, for who may open it; None for others and for an open target."""
    is_stuck = info.state in PromotionRequest.PLANNED_STATES and bool(info.failing or info.needed.nobody_can)
    if not is_stuck or not environment.is_closed or not may(actor, "registry.manage", registry=info.target):
        return None
    return Link(
        label=gettext("Break the glass of %(info)s") % {"info": info.target},
        url=f"{reverse('ui:environment', args=[info.target])}#glass-title",
    )


def failed_actions(info: RequestInfo, actor: Actor) -> tuple[Action | None, Action | None]:
    """Go on, and give up, of a request of which a part is written."""
    if info.state != PromotionRequest.FAILED:
        return None, None
    reason = _no_apply(info, actor)
    return (
        action(info, "resume", gettext("Go on with what is left"), reason, tone="primary", icon="play"),
        action(info, "give_up", gettext("Give up"), reason, tone="danger", icon="x"),
    )
