"""The page of one request, with everything needed to decide on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.compare.comparison import TextSwitch
from dashboard.components.badges import RequestState, ReviewState
from dashboard.components.frame import environment_of, make_frame, page_actor
from dashboard.components.links import subject_url
from dashboard.components.translation import counted, later
from dashboard.components.widgets import Crumb, Fact, Link, Problem, Section
from dashboard.findings.finding_list import finding_origin
from dashboard.promotions.changes import Drawing, changes_of, page_url
from dashboard.promotions.decision import (
    apply_action,
    apply_why,
    failed_actions,
    glass_link,
    label_form,
    recheck_action,
    review_form,
    schedule_form,
    submit_action,
    unschedule_action,
    withdraw_action,
)
from dashboard.promotions.history import comment_form, consumer_rows, events_of, states_of, thread_view, timeline
from dashboard.promotions.plan import (
    age_of,
    applied_steps,
    beside_impact,
    check_rows,
    id_plan,
    impact_of,
    plan_steps,
    steps_of_plan,
)
from dashboard.promotions.presenters import PromotionPage, ReviewRow, RuleRow
from dashboard.promotions.replay import replay_action, replay_topics
from dashboard.promotions.request_form import again_action, again_rows
from dashboard.promotions.request_list import what_of
from dashboard.promotions.summary import (
    clients_fact,
    headline_of,
    items_title,
    linked_rows,
    policy_of,
    sentence_of,
    title_of,
    verdict_of,
)
from dashboard.sources.labels import given_text
from registry.access.roles import Actor
from registry.promotions import selectors
from registry.promotions.models import PromotionRequest
from registry.promotions.plan.types import SOURCE_DRIFT
from registry.promotions.requests.finding_links import source_findings
from registry.promotions.requests.selectors import readable_request
from registry.promotions.selectors import RequestInfo

#: query parameters that change how the page is drawn, with their values
_DRAWN: Final = {"view": "split", "words": "business", "text": "submitted", "unchanged": "1", "all": "1"}
_EVIDENCE: Final = {
    "pass": later("can read the data in use"),
    "warn": later("can’t read all data in use"),
    "fail": later("can’t read the data in use"),
    "skipped": later("not checked"),
    "stale": later("too old"),
}
#: open breaks at the source that the page links; the list of findings has the rest
MAX_SOURCE_FINDINGS: Final = 10


def promotion(request: HttpRequest, request_id: int) -> PromotionPage:
    """The page of one request. Raises NotSignedIn, NotAllowed, RequestNotFound."""
    actor = page_actor(request)
    info = readable_request(request_id, actor)
    order, environment = selectors.list_environments(), selectors.environment_info(info.target)
    item = given_text(request.GET, "item")
    drawn = {name: value if request.GET.get(name) == value else None for name, value in _DRAWN.items()}
    url = page_url(reverse("ui:promotion", args=[info.id]), {"item": item, **drawn})
    changes = changes_of(info, actor, item, url, _drawing(drawn))
    steps, events = steps_of_plan(info.plan), events_of(info.id)
    verdict = verdict_of(info)
    resume, give_up = failed_actions(info, actor)
    page = PromotionPage(
        frame=make_frame(
            request,
            title=f"#{info.id} {title_of(info)}",
            section=Section.PROMOTIONS,
            registry=info.target,
            crumbs=(Crumb(label=gettext("Promotions"), url=reverse("ui:promotions")),),
        ),
        number=info.id,
        state=RequestState.of(info.state),
        subject=info.subject.qualified,
        subject_url=subject_url(info.source or info.target, info.subject.qualified, version=info.version or None),
        what=what_of(info),
        more=max(0, len(info.items) - 1),
        source=environment_of(info.source, order) if info.source else None,
        target=environment_of(info.target, order),
        requested_by=info.requested_by,
        requested_at=info.requested_at,
        verdict=verdict,
        headline=headline_of(info, verdict),
        sentence=sentence_of(info),
        reason=info.reason,
        finding=finding_origin(info.finding, actor),
        voided=_voided(info),
        facts=_facts(info),
        states=states_of(info, events),
        items=changes.items,
        items_title=items_title(info, len(changes.items) + changes.hidden),
        items_hidden=changes.hidden,
        comparison=changes.comparison,
        comparison_note=changes.note,
        new_schema=changes.new,
        source_note=" ".join(check["sentence"] for check in info.checks if check.get("code") == SOURCE_DRIFT),
        source_findings=_source_findings(info, actor),
        replay=replay_action(info, actor, changes.chosen),
        replay_topics=replay_topics(request, info, actor, changes.chosen),
        comparison_of=changes.chosen.subject if changes.chosen else "",
        view=drawn["view"] or "unified",
        unified_url=url(view=None),
        split_url=url(view="split"),
        text_switch=_text_switch(drawn, url),
        unchanged_shown=bool(drawn["unchanged"]),
        unchanged_url=url(unchanged=None if drawn["unchanged"] else "1"),
        all_url="" if drawn["all"] else url(all="1"),
        words_url=url(words=None if drawn["words"] else "business"),
        in_business_words=bool(drawn["words"]),
        checks=check_rows(beside_impact(info.checks)),
        checked_at=info.planned_at,
        recheck=recheck_action(info, actor),
        impact=check_rows(impact_of(info.checks)),
        consumers=consumer_rows(info, actor),
        plan=applied_steps(info.steps, info.source, info.target)
        if info.steps
        else plan_steps(steps, info.source, info.target),
        plan_hash=info.plan_hash,
        ids=id_plan(steps, info.source, info.target) if not info.releases else None,
        reviews=tuple(
            ReviewRow(
                reviewer=review.reviewer,
                state=ReviewState.of(review.verdict),
                comment=review.comment,
                override=review.override,
                at=review.at,
                counts=review.counts,
            )
            for review in info.reviews
        ),
        rules=tuple(
            RuleRow(
                sentence=rule.sentence,
                needed=rule.needed,
                approvals=rule.given,
                who=tuple(one.username for one in rule.who),
            )
            for rule in info.needed.rules
        ),
        eligible=tuple(one.username for one in info.needed.eligible),
        nobody=info.needed.nobody_can if info.state == PromotionRequest.IN_REVIEW else "",
        policy=policy_of(environment),
        review=review_form(info, actor, environment),
        submit=submit_action(info, actor),
        withdraw=withdraw_action(info, actor),
        apply=apply_action(info, actor),
        apply_why=apply_why(info, actor),
        schedule=schedule_form(info, actor),
        apply_at=info.apply_at if info.state == PromotionRequest.SCHEDULED else None,
        unschedule=unschedule_action(info, actor),
        resume=resume,
        give_up=give_up,
        threads=tuple(thread_view(thread, info, actor, changes, url) for thread in info.threads),
        comment=comment_form(request, info, actor, url),
        timeline=timeline(info, events),
        problem=_problem(info),
        packs=packs_of(info),
        linked=(*again_rows(info, actor), *linked_rows(info, actor)),
        again=again_action(info, actor),
        glass=glass_link(info, actor, environment),
        labels=label_form(info, actor),
    )
    return as_it_was(page) if actor.past else page


def _drawing(drawn: Mapping[str, str | None]) -> Drawing:
    return Drawing(
        is_whole=bool(drawn["all"]), in_business_words=bool(drawn["words"]), as_submitted=bool(drawn["text"])
    )


def _text_switch(drawn: Mapping[str, str | None], url: Callable[..., str]) -> TextSwitch:
    return TextSwitch(
        as_submitted=bool(drawn["text"]), laid_out_url=url(text=None), submitted_url=url(text=_DRAWN["text"])
    )


def as_it_was(page: PromotionPage) -> PromotionPage:
    """The page without actions, evidence packs and possible reviewers, which are of the present."""
    return replace(
        page,
        threads=tuple(replace(thread, reply=None, switch=None) for thread in page.threads),
        consumers=tuple(replace(row, acknowledge=None, take_back=None) for row in page.consumers),
        labels=replace(page.labels, change=None) if page.labels else None,
        replay_topics=(), eligible=(), apply_why=(), packs=(), nobody="",
        replay=None, recheck=None, review=None, submit=None, withdraw=None, apply=None, schedule=None, unschedule=None,
        resume=None, give_up=None, comment=None, again=None,
    )  # fmt: skip


def _source_findings(info: RequestInfo, actor: Actor) -> tuple[Link, ...]:
    """Links to the open breaks at the source that the reader may read."""
    return tuple(
        Link(label=finding.sentence, url=reverse("ui:finding", args=[finding.id]))
        for finding in source_findings(info, actor)[:MAX_SOURCE_FINDINGS]
    )


def _voided(info: RequestInfo) -> str:
    """What voided earlier reviews; only for an open request."""
    if info.state not in (PromotionRequest.DRAFT, PromotionRequest.IN_REVIEW):
        return ""
    lost = sum(not review.counts and review.verdict == "approve" for review in info.reviews)
    if info.moved:
        gone = counted(lost, "%(n)s approval no longer counts.", "%(n)s approvals no longer count.")
        return f"{info.moved} {gone}" if lost else info.moved
    return (
        gettext("%(stale)s The plan below is out of date. Run the checks again.") % {"stale": info.stale}
        if info.stale
        else ""
    )


def _facts(info: RequestInfo) -> tuple[Fact, ...]:
    state = info.plan.get("target", {}).get(info.subject.qualified, {})
    steps = [
        step for step in steps_of_plan(info.plan) if step.subject == info.subject.qualified and step.target_version
    ]
    facts = (
        [Fact(label=gettext("Level in %(target)s") % {"target": info.target}, value=state["level"], code=True)]
        if state.get("level")
        else []
    )
    if steps and not info.releases:
        facts.append(
            Fact(
                label=gettext("Becomes"),
                value=gettext("version %(target_version)s of %(target)s")
                % {"target_version": steps[-1].target_version, "target": info.target},
            )
        )
    facts.append(Fact(label=gettext("Fingerprint"), value=info.fingerprint_short, code=True))
    clients = clients_fact(info.checks)
    if clients:
        facts.append(clients)
    data = next((check for check in info.checks if check.get("code") == "evidence.data"), None)
    if data:
        facts.append(Fact(label=gettext("Evidence from data"), value=f"{_EVIDENCE[data['verdict']]}{age_of(data)}"))
    return tuple(facts)


def _problem(info: RequestInfo) -> Problem | None:
    """The failure of applying it, or that its plan is damaged."""
    if info.is_unreadable:
        return Problem(
            what=gettext("The stored plan of this request can’t be read"),
            where=info.target,
            cure=gettext("Run the checks again to make a new plan. Reviews and comments are not affected.")
            if info.is_open
            else gettext(
                "The request is closed, so its plan can’t be made again. Reviews and comments are not affected."
            ),
        )
    if info.state == PromotionRequest.FAILED:
        done = sum(row.state == "done" for row in info.steps)
        return Problem(
            what=counted(
                done,
                "%(n)s of %(steps)s done",
                "%(n)s of %(steps)s done",
                steps=counted(len(info.steps), "%(n)s step", "%(n)s steps"),
            ),
            where=info.target,
            cure=gettext("Resume the remaining steps, or give up. Completed steps are kept."),
            detail=info.failure,
        )
    if info.state == PromotionRequest.APPROVED and info.failure:
        return Problem(
            what=gettext("The last attempt to apply it failed. Nothing was written"),
            where=info.target,
            cure=gettext("Fix the problem, then apply it again."),
            detail=info.failure,
        )
    return None


def packs_of(info: RequestInfo) -> tuple[Link, ...]:
    """Links to the evidence pack as files."""
    return (
        Link(label=gettext("HTML file"), url=reverse("ui:promotion_evidence_html", args=[info.id])),
        Link(label="JSON", url=reverse("ui:promotion_evidence_json", args=[info.id])),
    )
