"""The actions of the reader on a request: review, apply, withdraw; and why one is refused.

Each failing condition has a link to the page where it can be fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.components.forms import ServiceForm
from dashboard.components.links import subject_url, with_query
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.translation import listing
from dashboard.components.widgets import Action, Link
from dashboard.promotions.forms import ApproveForm, LabelsForm, ReviewForm, ScheduleForm
from dashboard.promotions.presenters import ReviewPanel
from dashboard.registries.policy_forms import WhyNot
from registry.access.roles import Actor, may
from registry.drift.replay.evidence import scanned_by
from registry.promotions.checks.consumers import CONSUMERS
from registry.promotions.checks.context import EVIDENCE, THREADS
from registry.promotions.models import PromotionRequest, Review
from registry.promotions.plan.types import SOURCE_DRIFT
from registry.promotions.requests import preconditions
from registry.promotions.reviews.eligibility import AT_APPLYING, REVIEW
from registry.promotions.selectors import EnvironmentInfo, RequestInfo, ReviewInfo
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import parse_subject


def why_of(against: Iterable[preconditions.Condition], info: RequestInfo, actor: Actor) -> tuple[WhyNot, ...]:
    """Convert the conditions for the page, which lists the lacking approvals and who can give them by itself."""
    listed = WhyNot(code="approval", sentence=gettext("It is not approved yet."))
    return tuple(
        replace(listed, fix=_fix(item, info, actor))
        if item.code == "approval"
        else WhyNot(code=item.code, sentence=item.sentence, cure=item.cure, fix=_fix(item, info, actor))
        for item in against
    )


def _fix(item: preconditions.Condition, info: RequestInfo, actor: Actor) -> Link | None:
    """Return the link to where the condition can be fixed, None if there is no such page."""
    code = "evidence" if item.code.startswith("evidence.") and item.code != EVIDENCE else item.code
    if code == "rights" and actor.user_id is None:
        code = "sign-in"
    if code == EVIDENCE:
        return _scan(item, info)
    if code not in _FIXES or (code == "rights" and not may(actor, "people.manage")):
        return None
    label, url_of = _FIXES[code]
    url = url_of(item, info)
    return Link(label=label % {"target": info.target}, url=url) if url else None


def _scan(item: preconditions.Condition, info: RequestInfo) -> Link:
    """Link to the source whose topic must be scanned again because its evidence is missing or too old."""
    source = scanned_by(get_registry(info.target), parse_subject(_subject(item, info)))
    if source is None:
        return Link(label=gettext("Sources"), url=reverse("ui:sources"))
    return Link(label=gettext("Scan topic again"), url=reverse("ui:source", args=[source]))


def _subject(item: preconditions.Condition, info: RequestInfo) -> str:
    return item.subject or info.subject.qualified


def _page(info: RequestInfo) -> str:
    return reverse("ui:promotion", args=[info.id])


def _environment(info: RequestInfo) -> str:
    return reverse("ui:environment", args=[info.target])


_Fix = tuple[str, Callable[[preconditions.Condition, RequestInfo], str]]
_CHANGES: Final[_Fix] = (_("See breaking changes"), lambda item, info: f"{_page(info)}#changes")
_RULES: Final[_Fix] = (_("Reviewers of %(target)s"), lambda item, info: f"{_environment(info)}#rules-title")
_POLICY: Final[_Fix] = (_("Policy of %(target)s"), lambda item, info: reverse("ui:policy", args=[info.target]))
#: at the source of the version
_SUBJECT: Final[_Fix] = (
    _("Open subject"),
    lambda item, info: subject_url(info.source or info.target, _subject(item, info)),
)
#: code of a condition → the label and the URL of the link to where it can be fixed
_FIXES: Final[dict[str, _Fix]] = {
    THREADS: (_("Discussion"), lambda item, info: item.url),
    CONSUMERS: (_("Clients"), lambda item, info: item.url),
    "evidence": (_("See evidence"), lambda item, info: f"{_page(info)}#impact"),
    "stale": (_("Checks"), lambda item, info: f"{_page(info)}#checks"),
    "compatibility": _CHANGES,
    "policy": _CHANGES,
    "reserved-fields": _CHANGES,
    "schema": _CHANGES,
    "drift": (
        _("Open findings"),
        lambda item, info: with_query(
            reverse("ui:findings"), {"registry": info.target, "subject": _subject(item, info)}
        ),
    ),
    "freeze": (_("Freezes of %(target)s"), lambda item, info: f"{_environment(info)}#freezes-title"),
    "approval": _RULES,
    "own-request": _RULES,
    "mode": _POLICY,
    "config": _POLICY,
    "status": _SUBJECT,
    "references": _SUBJECT,
    "rights": (_("People and groups"), lambda item, info: reverse("ui:people")),
    "sign-in": (_("Sign in"), lambda item, info: with_query(reverse("account_login"), {"next": _page(info)})),
}


def action(
    info: RequestInfo, name: str, label: str, reason: str = "", *, tone: str = "plain", icon: str = ""
) -> Action:
    """Return a button that posts to a URL of the request."""
    url = reverse(f"ui:promotion_{name}", args=[info.id])
    return Action(label=label, url=url, method="post", reason=reason, tone=tone, icon=icon)


def is_typed(info: RequestInfo, environment: EnvironmentInfo) -> bool:
    """Return whether an approval needs the subject's name typed: the request breaks a closed environment."""
    return info.is_breaking and environment.is_closed


def review_panel(
    info: RequestInfo, actor: Actor, environment: EnvironmentInfo, sent: ServiceForm | None = None
) -> ReviewPanel | None:
    """Return the review form, with the reason for each disabled button; None if there is nothing to review."""
    if info.state not in PromotionRequest.PLANNED_STATES:
        return None
    mine, base = preconditions.review_of(info, actor), preconditions.no_reviewer(info, actor)
    against = preconditions.approving(info, actor)
    approve = next((item.sentence for item in against if not item.passable), "")
    others = base.sentence if base else ""
    changes, reject = others or _again(mine, Review.CHANGES), others or _again(mine, Review.REJECT)
    form = sent if isinstance(sent, ReviewForm) else ApproveForm()
    form.fields["comment"].help_text = _comment_help(info)
    _ask_to_override(form, info, () if approve else against, can_approve=not approve)
    _ask_to_type(form, info, is_asked=is_typed(info, environment) and not approve)
    return ReviewPanel(
        form=form,
        approve=action(info, "approve", gettext("Approve"), approve, tone="primary", icon="check"),
        changes=action(info, "changes", gettext("Request changes"), changes, icon="pencil"),
        reject=action(info, "reject", gettext("Reject"), reject, tone="danger", icon="x"),
        why=why_of(against, info, actor) if approve else (),
    )


def _ask_to_override(
    form: ReviewForm, info: RequestInfo, against: Sequence[preconditions.Condition], *, can_approve: bool
) -> None:
    """Ask for a reason to override the checks that fail now, or will when the request is applied; else don't ask."""
    later_on = (
        [check for check in info.failing if check.get("overridable") and check.get("code") in AT_APPLYING]
        if info.state == PromotionRequest.IN_REVIEW
        else []
    )
    overridable = any(item.passable for item in against)
    if not can_approve or not (overridable or later_on):
        del form.fields["override"]
        return
    if overridable:
        form.conditional = (*form.conditional, "override")
        text = gettext("Needed to approve despite these failing checks: %(overridable)s.")
    else:
        text = gettext(
            "Not needed to approve. With a reason, the request can be applied despite these failing checks:"
            " %(overridable)s."
        )
    names = _names_of(info, against if overridable else (), later_on)
    form.fields["override"].help_text = text % {"overridable": names}


def _ask_to_type(form: ReviewForm, info: RequestInfo, *, is_asked: bool) -> None:
    if not is_asked:
        del form.fields["typed"]
        return
    form.fields["typed"].help_text = gettext("%(qualified)s. This is a breaking change, and %(target)s is closed.") % {
        "qualified": info.subject.qualified,
        "target": info.target,
    }


def _comment_help(info: RequestInfo) -> str:
    """Say when the comment is required."""
    if info.is_breaking:
        return gettext("Required, because this is a breaking change.")
    if any(check.get("code") == SOURCE_DRIFT for check in info.checks):
        return gettext("Required, because the subject has open breaks at the source.")
    return gettext("Required to request changes or to reject.")


def _names_of(
    info: RequestInfo, against: Sequence[preconditions.Condition], besides: Sequence[Mapping[str, Any]]
) -> str:
    """Return the names of the failing checks that an approval may override, now or when it is applied."""
    passable = {(item.code, item.subject) for item in against if item.passable}
    checks = [check for check in info.failing if (check.get("code"), check.get("subject") or "") in passable]
    return listing(check["name"] for check in (*checks, *besides))


def _again(mine: ReviewInfo | None, verdict: str) -> str:
    return (
        gettext("You have already requested changes to this plan.")
        if mine is not None and mine.verdict == verdict
        else ""
    )


def labels_form(info: RequestInfo, actor: Actor, sent: ServiceForm | None = None) -> tuple[LabelsForm | None, str]:
    """Return the form that replaces the labels, and why the reader may not: only the requester and reviewers may."""
    part = info.requested_by_id, *info.needed.named_ids
    lacking = "" if actor.user_id in part else preconditions.refused(actor, REVIEW, info, preconditions.written(info))
    if not actor.user_id or (lacking and not info.labels):
        return None, ""
    form = sent if isinstance(sent, LabelsForm) else LabelsForm(initial={"labels": ", ".join(info.labels)})
    return form, lacking


def submit_action(info: RequestInfo, actor: Actor) -> Action | None:
    """Return the button that submits a draft."""
    if info.state != PromotionRequest.DRAFT:
        return None
    return action(info, "submit", gettext("Submit for review"), tone="primary", icon="send")


def recheck_action(info: RequestInfo, actor: Actor) -> Action | None:
    """Return the button that runs the checks again."""
    if info.state not in (PromotionRequest.DRAFT, *PromotionRequest.PLANNED_STATES):
        return None
    names = [item.subject.qualified for item in info.items] or [info.subject.qualified]
    reason = preconditions.refused(actor, "promotion.request", info, names)
    if info.is_source_gone:
        reason = gettext("The source version no longer exists, so the checks can’t run. Withdraw the request.")
    return action(info, "recheck", gettext("Run checks again"), reason, icon="refresh-cw")


def withdraw_action(info: RequestInfo, actor: Actor) -> Action | None:
    """Return the button that withdraws the request; only its requester and admins see it."""
    if info.state not in (PromotionRequest.DRAFT, *PromotionRequest.PLANNED_STATES):
        return None
    if actor.user_id != info.requested_by_id and not may(actor, "registry.manage", registry=info.target):
        return None
    return action(info, "withdraw", gettext("Withdraw"), icon="undo-2")


def apply_action(info: RequestInfo, actor: Actor) -> Action | None:
    """Return the button that applies; until the approval it is disabled, and hidden without the right to apply."""
    if info.state not in (PromotionRequest.IN_REVIEW, PromotionRequest.APPROVED):
        return None
    against = preconditions.applying(info, actor)
    if info.state == PromotionRequest.IN_REVIEW and any(item.code == "rights" for item in against):
        return None
    label = gettext("Apply to %(target)s") % {"target": info.target}
    return action(info, "apply", label, _first(against), tone="primary", icon="rocket")


def apply_why(info: RequestInfo, actor: Actor) -> tuple[WhyNot, ...]:
    """Return all failing conditions of applying."""
    return why_of(preconditions.applying(info, actor), info, actor)


def _first(against: Sequence[preconditions.Condition]) -> str:
    return next((item.sentence for item in against), "")


def _no_apply(info: RequestInfo, actor: Actor) -> str:
    """Return the sentence about a missing right to apply; "" if none is missing."""
    return next((item.sentence for item in preconditions.applying(info, actor) if item.code == "rights"), "")


def schedule_form(
    info: RequestInfo, actor: Actor, sent: ServiceForm | None = None
) -> tuple[ScheduleForm | None, tuple[WhyNot, ...]]:
    """Return the form that schedules the request, and why the reader may not use it."""
    if info.state not in (PromotionRequest.APPROVED, PromotionRequest.SCHEDULED):
        return None, ()
    now = timezone.now()
    start = info.apply_at or (now + timedelta(hours=1)).replace(minute=0)
    form = sent if isinstance(sent, ScheduleForm) else ScheduleForm(initial={"at": start})
    if info.state == PromotionRequest.SCHEDULED:
        form.label = gettext("Change time")
    form.fields["at"].widget.attrs["min"] = f"{now:%Y-%m-%dT%H:%M}"
    return form, why_of(preconditions.scheduling(info, actor), info, actor)


def unschedule_action(info: RequestInfo, actor: Actor) -> Action | None:
    """Return the button that cancels the schedule; the requester may use it too."""
    if info.state != PromotionRequest.SCHEDULED:
        return None
    reason = "" if actor.user_id == info.requested_by_id else _no_apply(info, actor)
    return action(info, "unschedule", gettext("Cancel schedule"), reason, icon="undo-2")


def can_break_glass(info: RequestInfo, actor: Actor, environment: EnvironmentInfo) -> bool:
    """Return whether the reader may open break-glass for a stuck request; an open target doesn't need it."""
    is_stuck = info.state in PromotionRequest.PLANNED_STATES and bool(info.failing or info.needed.nobody_can)
    return is_stuck and environment.is_closed and may(actor, "registry.manage", registry=info.target)


def failed_actions(info: RequestInfo, actor: Actor) -> tuple[Action | None, Action | None]:
    """Return the buttons that resume and give up a partly written request."""
    if info.state != PromotionRequest.FAILED:
        return None, None
    reason = _no_apply(info, actor)
    return (
        action(info, "resume", gettext("Resume"), reason, tone="primary", icon="play"),
        action(info, "give_up", gettext("Give up"), reason, tone="danger", icon="x"),
    )
