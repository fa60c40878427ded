"""The page of a request, with everything that the decision needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.compare.comparison import TextSwitch
from dashboard.components.forms import ServiceForm
from dashboard.components.frame import environment_of, page_actor
from dashboard.components.links import form_text, with_query
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Fact, Link, Problem
from dashboard.findings.finding_list import finding_origin
from dashboard.promotions import decision
from dashboard.promotions.changes import Drawing, changes_of, page_url, place_of
from dashboard.promotions.history import consumer_rows, events_of, states_of, thread_form, thread_row, timeline
from dashboard.promotions.plan import (
    IMPACT,
    age_of,
    applied_steps,
    id_plan,
    impact_of,
    plan_steps,
    promotion_frame,
    steps_of_plan,
)
from dashboard.promotions.presenters import Changes, PromotionPage
from dashboard.promotions.replay import replay_action, replay_topics
from dashboard.promotions.request_form import again_action, again_rows
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
from dashboard.streams.queries import check_action
from dashboard.subjects.descriptions import channel_links
from registry.access.roles import Actor, may
from registry.promotions import selectors
from registry.promotions.models import PromotionRequest
from registry.promotions.plan.types import SOURCE_DRIFT, PlanStep
from registry.promotions.requests.selectors import readable_request
from registry.promotions.selectors import EnvironmentInfo, RequestInfo
from registry.streams.subject_usage import readers_of
from registry.subjects.lifecycle.notes import channels_in
from registry.subjects.models import Registry

#: query parameters that change the display, with their values
_DRAWN: Final = {"view": "split", "words": "business", "text": "submitted", "unchanged": "1", "all": "1"}
_EVIDENCE: Final = {
    "pass": _("can read the data in use"),
    "warn": _("can’t read all data in use unchanged"),
    "fail": _("can’t read the data in use"),
    "skipped": _("not checked"),
    "stale": _("too old"),
}
#: subjects with open breaks at the source whose findings the page links to
MAX_SOURCE_FINDINGS: Final = 10


def promotion(
    request: HttpRequest, request_id: int, sent: ServiceForm | None = None, thread_id: int = 0
) -> PromotionPage:
    """Return the page of a request; `sent` is a refused form, with `thread_id` a reply in that discussion.

    Raises NotSignedIn, NotAllowed, RequestNotFound.
    """
    actor = page_actor(request)
    rows = selectors.environment_rows()
    info = readable_request(request_id, actor, rows)
    registries = {row.registry.name: row.registry for row in rows}
    order = list(registries)
    environment = selectors.environment_infos(rows)[order.index(info.target)]
    item = form_text(request.GET, "item")
    drawn = {name: value if request.GET.get(name) == value else None for name, value in _DRAWN.items()}
    url = page_url(reverse("ui:promotion", args=[info.id]), {"item": item, **drawn})
    changes = changes_of(info, actor, item, url, registries, _drawing(drawn))
    events, verdict = events_of(info.id), verdict_of(info)
    voided_title, voided = _voided(info)
    page = PromotionPage(
        frame=promotion_frame(request, f"#{info.id} {title_of(info)}", registry=info.target, order=order),
        info=info,
        source=environment_of(info.source, order) if info.source else None,
        target=environment_of(info.target, order),
        verdict=verdict,
        headline=headline_of(info, verdict),
        sentence=sentence_of(info),
        here_url=url(),
        is_past=bool(actor.past),
        refused=sent.problem if sent else None,
        finding=finding_origin(info.finding, actor),
        voided_title=voided_title,
        voided=voided,
        facts=_facts(info),
        states=states_of(info, events),
        **_changes(info, changes, drawn, url),
        source_note=" ".join(check["sentence"] for check in info.checks if check.get("code") == SOURCE_DRIFT),
        source_findings=_source_findings(info, actor),
        checks=tuple(check for check in info.checks if check.get("code") not in IMPACT),
        impact=tuple(impact_of(info.checks)),
        restarts=_restarts(info, actor, registries[info.target]),
        consumers=consumer_rows(info, actor, sent),
        channels=_channels(info, registries[info.target]),
        **_plan(info),
        policy=policy_of(environment, lists_reviews=not info.needed.rules),
        threads=tuple(
            thread_row(thread, info, actor, place_of(thread, changes, url), sent if thread.id == thread_id else None)
            for thread in info.threads
        ),
        timeline=timeline(info, events),
        problem=_problem(info),
        linked=(*again_rows(info, actor), *linked_rows(info, actor)),
    )
    return page if actor.past else _with_actions(page, request, actor, environment, changes.chosen, sent)


def _changes(
    info: RequestInfo, changes: Changes, drawn: Mapping[str, str | None], url: Callable[..., str]
) -> dict[str, Any]:
    """Return the changes, and the URLs of other display options."""
    return {
        "changes": changes,
        "items_title": items_title(info, len(changes.items) + changes.hidden),
        "view": drawn["view"] or "unified",
        "unified_url": url(view=None),
        "split_url": url(view="split"),
        "text_switch": _text_switch(drawn, url),
        "unchanged_shown": bool(drawn["unchanged"]),
        "unchanged_url": url(unchanged=None if drawn["unchanged"] else "1"),
        "all_url": "" if drawn["all"] else url(all="1"),
        "words_url": url(words=None if drawn["words"] else "business"),
        "in_business_words": bool(drawn["words"]),
    }


def _plan(info: RequestInfo) -> dict[str, Any]:
    """Return the plan's steps, planned or done, and the schema ids that the target is expected to assign."""
    steps = steps_of_plan(info.plan)
    if info.steps:
        plan = applied_steps(info.steps, info.source, info.target)
    else:
        plan = plan_steps(steps, info.source, info.target)
    return {"plan": plan, "ids": None if info.releases else id_plan(steps, info.source, info.target)}


def _with_actions(
    page: PromotionPage,
    request: HttpRequest,
    actor: Actor,
    environment: EnvironmentInfo,
    step: PlanStep | None,
    sent: ServiceForm | None,
) -> PromotionPage:
    """Return the page with the reader's possible actions."""
    info = page.info
    resume, give_up = decision.failed_actions(info, actor)
    schedule, schedule_why = decision.schedule_form(info, actor, sent)
    comment, comment_refused = thread_form(request, info, actor, sent)
    labels, labels_refused = decision.labels_form(info, actor, sent)
    return replace(
        page,
        replay=replay_action(info, actor, step),
        replay_topics=replay_topics(request, info, actor, step),
        recheck=decision.recheck_action(info, actor),
        review=decision.review_panel(info, actor, environment, sent),
        submit=decision.submit_action(info, actor),
        withdraw=decision.withdraw_action(info, actor),
        apply=decision.apply_action(info, actor),
        apply_why=decision.apply_why(info, actor),
        schedule=schedule,
        schedule_why=schedule_why,
        unschedule=decision.unschedule_action(info, actor),
        resume=resume,
        give_up=give_up,
        comment=comment,
        comment_refused=comment_refused,
        again=again_action(info, actor),
        glass=decision.can_break_glass(info, actor, environment),
        labels=labels,
        labels_refused=labels_refused,
    )


def _drawing(drawn: Mapping[str, str | None]) -> Drawing:
    return Drawing(
        is_whole=bool(drawn["all"]), in_business_words=bool(drawn["words"]), as_submitted=bool(drawn["text"])
    )


def _text_switch(drawn: Mapping[str, str | None], url: Callable[..., str]) -> TextSwitch:
    return TextSwitch(
        as_submitted=bool(drawn["text"]), laid_out_url=url(text=None), submitted_url=url(text=_DRAWN["text"])
    )


def _source_findings(info: RequestInfo, actor: Actor) -> tuple[Link, ...]:
    """Return links to the open findings at the source of the subjects that have breaks and that the reader may read."""
    subjects = [str(check["subject"]) for check in info.checks if check.get("code") == SOURCE_DRIFT]
    return tuple(
        Link(
            label=gettext("Open findings of %(subject)s in %(source)s") % {"subject": subject, "source": info.source},
            url=with_query(reverse("ui:findings"), {"registry": info.source, "subject": subject}),
        )
        for subject in subjects[:MAX_SOURCE_FINDINGS]
        if may(actor, "schema.read", registry=info.source, subject=subject)
    )


def _restarts(info: RequestInfo, actor: Actor, target: Registry) -> tuple[Link, ...]:
    """Return links to the restart check of the queries in the target that use the subject."""
    check = check_action(actor)
    if not check.allowed or not may(actor, "schema.read", registry=info.target):
        return ()
    return tuple(
        Link(
            label=gettext("Check the restart of %(query)s") % {"query": query.name},
            url=check_action(actor, query.path).url,
        )
        for query in readers_of(target, info.subject)
    )


def _voided(info: RequestInfo) -> tuple[str, str]:
    """Return a title and what has changed since the plan or the reviews; only for an open request."""
    if info.state not in (PromotionRequest.DRAFT, *PromotionRequest.PLANNED_STATES):
        return "", ""
    if info.is_source_gone:
        cure = gettext("%(stale)s Withdraw this request, because its checks can’t run again.")
        return gettext("The source version is gone"), cure % {"stale": info.stale}
    lost = sum(not review.counts and review.verdict == "approve" for review in info.reviews)
    if info.moved and info.state in (PromotionRequest.DRAFT, PromotionRequest.IN_REVIEW):
        if not lost:
            return gettext("The plan has changed"), info.moved
        gone = counted(lost, "%(n)s approval no longer counts.", "%(n)s approvals no longer count.")
        return gettext("Earlier approvals no longer count"), f"{info.moved} {gone}"
    if not info.stale:
        return "", ""
    return gettext("The plan is out of date"), gettext("%(stale)s Run the checks again.") % {"stale": info.stale}


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


def _channels(info: RequestInfo, target: Registry) -> tuple[Link, ...]:
    """Return where the people of an open request's subjects talk."""
    subjects = {info.subject, *(item.subject for item in info.items)} if info.is_open else set()
    return channel_links(channels_in(target, subjects))


def _problem(info: RequestInfo) -> Problem | None:
    """Return the failure of applying the request, or of reading its plan."""
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
