"""Requests: the list, the form, one request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from dashboard.links import subject_url
from dashboard.pages.comparison import compare_with_target
from dashboard.pages.frame import environment_of, make_frame, page_actor
from dashboard.presenters.frame import (
    Action,
    ActiveFilter,
    Choice,
    Crumb,
    Fact,
    Field,
    Filter,
    Paging,
    Problem,
    Search,
    Section,
)
from dashboard.presenters.looks import Check, RequestState, ReviewState, Verdict
from dashboard.presenters.promotions import (
    CheckRow,
    PlanStep,
    PromotionForm,
    PromotionPage,
    RequestList,
    RequestRow,
    ReviewForm,
    ReviewRow,
    TimelineEntry,
)
from registry.access.roles import Actor, refusal
from registry.errors import SchemadeskError
from registry.promotions import selectors
from registry.promotions.selectors import RequestInfo

VERDICTS = {"pass": Verdict.OK, "warn": Verdict.CARE, "fail": Verdict.BREAKS}
STATES = ("in review", "approved", "applied", "rejected", "withdrawn", "failed")


def worst_check(info: RequestInfo) -> Verdict:
    """The worst verdict among a plan's checks."""
    verdicts = [VERDICTS[check["verdict"]] for check in info.plan["checks"]]
    return next((v for v in (Verdict.BREAKS, Verdict.CARE) if v in verdicts), Verdict.OK)


def request_row(info: RequestInfo, order: list[str]) -> RequestRow:
    """A request in a list."""
    approvals = sum(review.verdict == "approve" and review.counts for review in info.reviews)
    return RequestRow(
        number=info.id,
        url=reverse("ui:promotion", args=[info.id]),
        subject=info.subject.qualified,
        version=info.version,
        source=environment_of(info.source, order),
        target=environment_of(info.target, order),
        state=RequestState.of(info.state),
        requested_by=info.requested_by,
        requested_at=info.requested_at,
        verdict=worst_check(info),
        reviews=f"{approvals} of {info.reviews_needed}",
        blocked=_what_blocks(info, approvals),
    )


def _what_blocks(info: RequestInfo, approvals: int) -> str:
    failing = next((check["sentence"] for check in info.plan["checks"] if check["verdict"] == "fail"), "")
    if info.state == "in review":
        missing = info.reviews_needed - approvals
        return failing or f"Waits for {missing} review{'s' if missing != 1 else ''}."
    return "Approved; somebody has to apply it." if info.state == "approved" else ""


def request_list(request: HttpRequest) -> RequestList:
    """All requests, newest first, filtered by state."""
    state = request.GET.get("state", "")
    order = list(selectors.list_environments())
    rows = [request_row(info, order) for info in selectors.list_requests(state=state)]
    base = reverse("ui:promotions")
    choices = (
        Choice(value="", label="Any state", selected=not state),
        *(Choice(value=name, label=name.capitalize(), selected=name == state) for name in STATES),
    )
    reason = refusal(page_actor(request), "promotion.request")
    return RequestList(
        frame=make_frame(request, title="Promotions", section=Section.PROMOTIONS),
        search=Search(
            url=base,
            filters=(Filter(name="state", label="State", choices=choices),),
            active=(ActiveFilter(label=f"state: {state}", url=base),) if state else (),
        ),
        rows=tuple(rows),
        paging=Paging(first=1 if rows else 0, last=len(rows), total=len(rows)),
        request=Action(
            label="Ask for a promotion",
            url=reverse("ui:promotion_request"),
            allowed=not reason,
            reason=reason,
            tone="primary",
            icon="git-pull-request-arrow",
        ),
    )


def request_form(request: HttpRequest, problem: SchemadeskError | None) -> PromotionForm:
    """The form, filled from the address or from what was sent."""
    given = request.POST if request.method == "POST" else request.GET
    order = selectors.list_environments()
    source = given.get("source", order[0] if order else "")
    target = given.get("target", order[-1] if order else "")
    reason = refusal(page_actor(request), "promotion.request")

    def places(names: Sequence[str], chosen: str) -> tuple[Choice, ...]:
        return tuple(Choice(value=name, label=name, selected=name == chosen) for name in names)

    return PromotionForm(
        frame=make_frame(
            request,
            title="Ask for a promotion",
            section=Section.PROMOTIONS,
            crumbs=(Crumb(label="Promotions", url=reverse("ui:promotions")),),
        ),
        fields=(
            Field(name="subject", label="Subject", value=given.get("subject", ""), required=True, code=True),
            Field(name="version", label="Version", value=given.get("version", "latest"), required=True, code=True),
            Field(name="source", label="From", kind="select", choices=places(order[:-1], source), required=True),
            Field(name="target", label="To", kind="select", choices=places(order[1:], target), required=True),
            Field(name="reason", label="Why", kind="textarea", rows=3, value=given.get("reason", "")),
        ),
        submit=Action(
            label="Ask for review",
            url=reverse("ui:promotion_request"),
            method="post",
            allowed=not reason,
            reason=reason,
            tone="primary",
        ),
        problem=Problem(what=problem.message) if problem else None,
    )


def promotion(request: HttpRequest, request_id: int) -> PromotionPage:
    """One request with plan, checks, changes, reviews and what the viewer may do. Raises RequestNotFound."""
    info = selectors.get_request(request_id)
    order, actor = selectors.list_environments(), page_actor(request)
    comparison = compare_with_target(info.source, info.target, info.subject, info.version)
    is_open = info.state in ("in review", "approved")
    verdict = worst_check(info)
    return PromotionPage(
        frame=make_frame(
            request,
            title=f"Request {info.id}: {info.subject.qualified} version {info.version} to {info.target}",
            section=Section.PROMOTIONS,
            registry=info.target,
            crumbs=(Crumb(label="Promotions", url=reverse("ui:promotions")),),
        ),
        number=info.id,
        state=RequestState.of(info.state),
        subject=info.subject.qualified,
        subject_url=subject_url(info.source, info.subject.qualified, version=info.version),
        version=info.version,
        source=environment_of(info.source, order),
        target=environment_of(info.target, order),
        requested_by=info.requested_by,
        requested_at=info.requested_at,
        verdict=verdict,
        headline="Can be promoted" if verdict is not Verdict.BREAKS else "Can't be promoted as it is",
        sentence=_decision_sentence(info),
        reason=info.reason,
        facts=_facts(info),
        comparison=comparison if is_open else None,
        comparison_note=""
        if comparison
        else f"{info.target} has no version of this subject yet: everything is new there.",
        view="split" if request.GET.get("view") == "split" else "unified",
        unified_url="?view=unified",
        split_url="?view=split",
        checks=tuple(
            CheckRow(check=Check.of(check["verdict"]), name=check["name"], sentence=check["sentence"])
            for check in info.plan["checks"]
        ),
        plan=tuple(_plan_step(step, info) for step in info.plan["steps"]),
        reviews=tuple(
            ReviewRow(
                reviewer=review.reviewer,
                state=_review_state(review.verdict, review.counts),
                comment=review.comment,
                at=review.at,
                counts=review.counts,
            )
            for review in info.reviews
        ),
        rule=_rule(info),
        review=_review_form(info, actor) if info.state == "in review" else None,
        withdraw=_withdraw(info, actor) if is_open else None,
        apply=_apply(info, actor) if info.state == "approved" else None,
        timeline=_timeline(info),
    )


def _decision_sentence(info: RequestInfo) -> str:
    failing = [check["sentence"] for check in info.plan["checks"] if check["verdict"] == "fail"]
    if info.release:
        return f"{info.target} has it as version {info.release.version} with schema id {info.release.schema_id}."
    if failing:
        return str(failing[0])
    writes = [step for step in info.plan["steps"] if step["action"] == "register"]
    return f"{len(writes)} version{'s' if len(writes) != 1 else ''} would be written to {info.target}; nothing there breaks."


def _facts(info: RequestInfo) -> tuple[Fact, ...]:
    last = info.plan["steps"][-1]
    facts = [
        Fact(label="Becomes", value=f"version {last['target_version']} in {info.target}"),
        Fact(label="Fingerprint", value=info.fingerprint_short, code=True),
        Fact(label="Plan", value=info.plan_hash[:12], code=True),
    ]
    if info.release:
        facts.insert(1, Fact(label="Schema id there", value=str(info.release.schema_id)))
    return tuple(facts)


def _plan_step(step: dict[str, Any], info: RequestInfo) -> PlanStep:
    if step["action"] == "register":
        references = ", ".join(f"{ref['subject']} version {ref['version']}" for ref in step["references"])
        return PlanStep(
            sentence=f"Register {step['subject']} version {step['source_version']} of {info.source}"
            f" as version {step['target_version']} of {info.target}",
            detail=f"refers to {references}" if references else "",
        )
    return PlanStep(
        sentence=f"{step['subject']} is in {info.target} already, as version {step['target_version']}", needed=False
    )


def _review_state(verdict: str, counts: bool) -> ReviewState:
    if not counts:
        return ReviewState.DISMISSED
    return ReviewState.APPROVED if verdict == "approve" else ReviewState.REJECTED


def _rule(info: RequestInfo) -> str:
    who = "" if info.own_approval_allowed else " by somebody other than the requester"
    return f"{info.reviews_needed} approval{'s' if info.reviews_needed != 1 else ''}{who}."


def _review_form(info: RequestInfo, actor: Actor) -> ReviewForm:
    reason = refusal(actor, "promotion.review", registry=info.target, subject=info.subject.qualified)
    if not reason and actor.user_id == info.requested_by_id and not info.own_approval_allowed:
        reason = "You asked for this; somebody else must review it."
    failing = next((check["sentence"] for check in info.plan["checks"] if check["verdict"] == "fail"), "")
    blocked = reason or (f"A check fails: {failing}" if failing else "")
    return ReviewForm(
        approve=Action(
            label="Approve",
            url=reverse("ui:promotion_approve", args=[info.id]),
            method="post",
            allowed=not blocked,
            reason=blocked,
            tone="primary",
            icon="check",
        ),
        reject=Action(
            label="Reject",
            url=reverse("ui:promotion_reject", args=[info.id]),
            method="post",
            allowed=not reason,
            reason=reason,
            tone="danger",
            icon="x",
        ),
        comment=Field(
            name="comment",
            label="Comment",
            kind="textarea",
            rows=3,
            help="Needed to reject: the requester repairs by it.",
        ),
        plan_hash=info.plan_hash,
    )


def _withdraw(info: RequestInfo, actor: Actor) -> Action | None:
    if actor.user_id != info.requested_by_id and refusal(actor, "registry.manage", registry=info.target):
        return None
    return Action(label="Withdraw", url=reverse("ui:promotion_withdraw", args=[info.id]), method="post", icon="undo-2")


def _apply(info: RequestInfo, actor: Actor) -> Action:
    reason = refusal(actor, "promotion.apply", registry=info.target, subject=info.subject.qualified)
    return Action(
        label=f"Apply to {info.target}",
        url=reverse("ui:promotion_apply", args=[info.id]),
        method="post",
        allowed=not reason,
        reason=reason,
        tone="primary",
        icon="rocket",
    )


def _timeline(info: RequestInfo) -> tuple[TimelineEntry, ...]:
    entries = [TimelineEntry(sentence="Asked for", at=info.requested_at, who=info.requested_by, comment=info.reason)]
    for review in info.reviews:
        sentence = "Approved" if review.verdict == "approve" else "Rejected"
        if not review.counts:
            sentence += " (of an earlier plan, no longer counts)"
        mood = "bad" if review.verdict == "reject" else "done"
        entries.append(
            TimelineEntry(sentence=sentence, at=review.at, who=review.reviewer, comment=review.comment, mood=mood)
        )
    if info.release:
        entries.append(
            TimelineEntry(sentence=f"Live in {info.target}", at=info.release.released_at, who=info.release.released_by)
        )
    elif info.state == "withdrawn":
        entries.append(TimelineEntry(sentence="Withdrawn", at=info.closed_at, mood="bad"))
    elif info.state in ("in review", "approved"):
        waiting = "Waits for review" if info.state == "in review" else "Waits to be applied"
        entries.append(TimelineEntry(sentence=waiting, mood="now"))
    return tuple(entries)
