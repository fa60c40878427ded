"""One request, with everything that its decision needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.finding_row import finding_origin
from dashboard.pages.frame import environment_of, make_frame, page_actor
from dashboard.pages.promotions import at_utc, what_of
from dashboard.pages.promotions_changes import Changes, changes_of, page_url, place_of
from dashboard.pages.promotions_decision import (
    action,
    apply_action,
    failed_actions,
    recheck_action,
    review_form,
    schedule_form,
    submit_action,
    unschedule_action,
    withdraw_action,
)
from dashboard.pages.promotions_history import events_of, states_of, timeline
from dashboard.pages.promotions_plan import (
    applied_steps,
    beside_impact,
    check_rows,
    id_plan,
    impact_of,
    plan_steps,
    steps_of_plan,
    worst,
)
from dashboard.pages.sources_words import given_text
from dashboard.presenters.frame import Action, Crumb, Fact, Link, Problem, Section
from dashboard.presenters.looks import RequestState, ReviewState, Verdict
from dashboard.presenters.promotions_page import (
    CommentForm,
    CommentRow,
    PromotionPage,
    ReviewRow,
    RuleRow,
    ThreadView,
)
from dashboard.texts import counted, joined, later
from registry.access.roles import Actor, refusal
from registry.promotions import selectors
from registry.promotions.models import PromotionRequest
from registry.promotions.plan import ADOPT, CONFIG
from registry.promotions.selectors import EnvironmentInfo, RequestInfo, ThreadInfo
from registry.promotions.selectors.readable import readable_request

_DRAWN: Final = ("view", "item", "words")
_TITLES: Final = {
    PromotionRequest.PROMOTE: later("Promote %(subject)s version %(version)s to %(target)s"),
    PromotionRequest.PROPOSE: later("Register a proposed text of %(subject)s in %(target)s"),
    PromotionRequest.ROLL_BACK: later("Roll %(subject)s back to version %(version)s in %(target)s"),
    PromotionRequest.ADOPT: later("Adopt %(subject)s version %(version)s of %(target)s"),
}
_TITLES_OF_SEVERAL: Final = {
    PromotionRequest.PROMOTE: later("Promote %(subject)s version %(version)s and %(more)s to %(target)s"),
    PromotionRequest.PROPOSE: later("Register a proposed text of %(subject)s and %(more)s in %(target)s"),
    PromotionRequest.ROLL_BACK: later("Roll %(subject)s back to version %(version)s and %(more)s in %(target)s"),
    PromotionRequest.ADOPT: later("Adopt %(subject)s version %(version)s and %(more)s of %(target)s"),
}
_EVIDENCE: Final = {
    "pass": later("it reads what is in use"),
    "warn": later("it can’t read all that is in use"),
    "fail": later("it can’t read what is in use"),
    "skipped": later("nothing is known"),
    "stale": later("too old"),
}


def promotion(request: HttpRequest, request_id: int) -> PromotionPage:
    """The page of one request. Raises NotSignedIn, NotAllowed, RequestNotFound."""
    actor = page_actor(request)
    info = readable_request(request_id, actor)
    order, environment = selectors.list_environments(), selectors.environment_info(info.target)
    drawn = {name: given_text(request.GET, name) for name in _DRAWN}
    drawn["view"] = "split" if drawn["view"] == "split" else ""
    drawn["words"] = "business" if drawn["words"] == "business" else ""
    url = page_url(reverse("ui:promotion", args=[info.id]), drawn)
    changes = changes_of(info, actor, drawn["item"], url, in_business_words=bool(drawn["words"]))
    steps, events = steps_of_plan(info.plan), events_of(info.id)
    verdict = _verdict(info)
    resume, give_up = failed_actions(info, actor)
    return PromotionPage(
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
        items_title=_items_title(info, len(changes.items) + changes.hidden),
        items_hidden=changes.hidden,
        comparison=changes.comparison,
        comparison_note=changes.note,
        comparison_of=changes.chosen.subject if changes.chosen else "",
        view=drawn["view"] or "unified",
        unified_url=url(view=None),
        split_url=url(view="split"),
        words_url=url(words=None if drawn["words"] else "business"),
        in_business_words=bool(drawn["words"]),
        checks=check_rows(beside_impact(info.checks)),
        checked_at=info.planned_at,
        recheck=recheck_action(info, actor),
        impact=check_rows(impact_of(info.checks)),
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
                given=rule.given,
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
        schedule=schedule_form(info, actor),
        apply_at=info.apply_at if info.state == PromotionRequest.SCHEDULED else None,
        unschedule=unschedule_action(info, actor),
        resume=resume,
        give_up=give_up,
        threads=tuple(_thread(thread, info, actor, changes, url) for thread in info.threads),
        comment=_comment_form(request, info, actor, url),
        timeline=timeline(info, events),
        problem=_problem(info),
        packs=packs_of(info),
    )


def title_of(info: RequestInfo) -> str:
    """What the request is for, as a title."""
    others = len(info.items) - 1
    title = _TITLES[info.kind] if not others else _TITLES_OF_SEVERAL[info.kind]
    more = counted(others, "%(n)s other", "%(n)s others")
    return title % {"subject": info.subject.qualified, "version": info.version, "target": info.target, "more": more}


def _items_title(info: RequestInfo, shown: int) -> str:
    """How many schemas the request writes, wrote or would have written."""
    if info.is_open:
        return counted(shown, "%(n)s schema would be written", "%(n)s schemas would be written")
    if info.state == PromotionRequest.APPLIED:
        return counted(shown, "%(n)s schema was written", "%(n)s schemas were written")
    return counted(shown, "%(n)s schema would have been written", "%(n)s schemas would have been written")


def _verdict(info: RequestInfo) -> Verdict:
    """Of a closed one that wasn't applied the plan is only history; of one that can't be read nothing is known."""
    if not info.is_open and not info.releases:
        return Verdict.UNKNOWN
    if info.is_unreadable and not info.releases:
        return Verdict.UNKNOWN
    if info.state == PromotionRequest.FAILED:
        return Verdict.BREAKS
    if info.releases or not info.failing:
        return Verdict.CARE if info.is_breaking or worst(info.checks) is not Verdict.OK else Verdict.OK
    return Verdict.BREAKS


def headline_of(info: RequestInfo, verdict: Verdict) -> str:
    """The decision in a few words."""
    if info.state == PromotionRequest.APPLIED:
        return gettext("Live in %(target)s") % {"target": info.target}
    if not info.is_open:
        return gettext("Closed: %(state)s") % {"state": info.state}
    if info.state == PromotionRequest.FAILED:
        return gettext("Applied in part")
    if verdict is Verdict.BREAKS:
        overridable = all(check.get("overridable") for check in info.failing)
        if not info.is_breaking:
            return gettext("Checks fail, and could be overridden") if overridable else gettext("Checks fail")
        said = (
            gettext("It would break what %(target)s has, and could be overridden")
            if overridable
            else gettext("It would break what %(target)s has")
        )
        return said % {"target": info.target}
    if info.is_breaking:
        return gettext("It breaks what %(target)s has, and was overridden") % {"target": info.target}
    if info.is_unreadable:
        return gettext("Not known: its plan is damaged")
    return gettext("Can be done, with care") if verdict is Verdict.CARE else gettext("Can be done")


def sentence_of(info: RequestInfo) -> str:
    """The decision in a sentence: what is written, or what fails first."""
    if info.release:
        there = gettext("%(target)s has it as version %(version)s with schema id %(schema_id)s.") % {
            "target": info.target,
            "version": info.release.version,
            "schema_id": info.release.schema_id,
        }
        more = len(info.releases) - 1
        came = counted(more, "%(n)s other version came with it.", "%(n)s other versions came with it.")
        return f"{there} {came}" if more else there
    if info.failing:
        first, more = str(info.failing[0]["sentence"]), len(info.failing) - 1
        too = counted(more, "%(n)s other check fails too.", "%(n)s other checks fail too.")
        return f"{first} {too}" if more else first
    if info.is_unreadable:
        return gettext("What would be written to %(target)s can’t be told.") % {"target": info.target}
    steps = steps_of_plan(info.plan)
    adding, settings = sum(step.adds for step in steps), sum(step.kind == CONFIG for step in steps)
    parts = [_written_to(adding, info.target)] if adding else []
    parts += [_settings_of(settings)] if settings else []
    parts += [gettext("a release would be recorded")] if any(step.kind == ADOPT for step in steps) else []
    said = joined(parts) or gettext("Nothing would be written to %(target)s") % {"target": info.target}
    said = f"{said[:1].upper()}{said[1:]}"
    return f"{said}." if info.is_breaking else gettext("%(said)s; nothing there breaks.") % {"said": said}


def _written_to(versions: int, target: str) -> str:
    return counted(
        versions,
        "%(n)s version would be written to %(target)s",
        "%(n)s versions would be written to %(target)s",
        target=target,
    )


def _settings_of(subjects: int) -> str:
    return counted(
        subjects,
        "the settings of %(n)s subject would be changed",
        "the settings of %(n)s subjects would be changed",
    )


def _voided(info: RequestInfo) -> str:
    """What took the force of earlier reviews; of an open request alone."""
    if info.state not in (PromotionRequest.DRAFT, PromotionRequest.IN_REVIEW):
        return ""
    lost = sum(not review.counts and review.verdict == "approve" for review in info.reviews)
    if info.moved:
        gone = counted(lost, "%(n)s approval no longer counts.", "%(n)s approvals no longer count.")
        return f"{info.moved} {gone}" if lost else info.moved
    return (
        gettext("%(stale)s Run the checks again: the plan below is an earlier one.") % {"stale": info.stale}
        if info.stale
        else ""
    )


def _facts(info: RequestInfo) -> tuple[Fact, ...]:
    state = info.plan.get("target", {}).get(info.subject.qualified, {})
    steps = [
        step for step in steps_of_plan(info.plan) if step.subject == info.subject.qualified and step.target_version
    ]
    facts = (
        [Fact(label=gettext("Level at %(target)s") % {"target": info.target}, value=state["level"], code=True)]
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
    data = next((check for check in info.checks if check.get("code") == "evidence.data"), None)
    if data:
        facts.append(Fact(label=gettext("Evidence from data"), value=_EVIDENCE[data["verdict"]]))
    return tuple(facts)


def _reviews_by(environment: EnvironmentInfo) -> str:
    needed = environment.reviews_needed
    if environment.own_approval_allowed:
        return counted(
            needed,
            "%(n)s approval by anybody with the right to review.",
            "%(n)s approvals by anybody with the right to review.",
        )
    return counted(
        needed,
        "%(n)s approval by somebody else than the requester.",
        "%(n)s approvals by somebody else than the requester.",
    )


def policy_of(environment: EnvironmentInfo) -> tuple[str, ...]:
    """What an environment asks of what comes in, in sentences."""
    lines = [
        gettext("Closed: it changes by releases alone.")
        if environment.is_closed
        else gettext("Open: it can be changed directly, too."),
        _reviews_by(environment),
        *(f"{rule.sentence}." for rule in environment.rules),
    ]
    if environment.owners_only:
        lines.append(gettext("Only owners of a subject ask for it here."))
    lines.append(
        gettext("Open drift at a subject fails its requests.")
        if environment.drift_blocks
        else gettext("Open drift at a subject is a warning alone.")
    )
    lines += [
        gettext("Frozen from %(start)s to %(end)s: %(reason)s")
        % {"start": at_utc(freeze.starts_at), "end": at_utc(freeze.ends_at), "reason": freeze.reason}
        for freeze in environment.freezes
    ]
    lines += [
        (
            gettext("Frozen: %(rule)s; now until %(at)s: %(reason)s")
            if rule.is_now
            else gettext("Frozen: %(rule)s; next from %(at)s: %(reason)s")
        )
        % {
            "rule": rule.sentence,
            "at": at_utc(rule.ends_at if rule.is_now else rule.starts_at),
            "reason": rule.reason,
        }
        for rule in environment.recurring
    ]
    return tuple(lines)


def _thread(
    thread: ThreadInfo, info: RequestInfo, actor: Actor, changes: Changes, url: Callable[..., str]
) -> ThreadView:
    closed = (
        "" if info.is_open else gettext("The request is %(state)s: its discussions are closed.") % {"state": info.state}
    )
    part = closed or _no_part(thread, info, actor)
    word, name, icon = (
        (gettext("Resolve"), "resolve", "check") if thread.is_open else (gettext("Open again"), "reopen", "undo-2")
    )
    answer = closed or ("" if actor.user_id else gettext("Sign in to take part."))
    return ThreadView(
        number=thread.id,
        subject=thread.subject,
        path=thread.path,
        place_url=place_of(thread, changes, url),
        resolved_by=thread.resolved_by,
        resolved_at=thread.resolved_at,
        comments=tuple(CommentRow(author=said.author, text=said.text, at=said.at) for said in thread.comments),
        answer=_thread_action(info, thread, "answer", gettext("Answer"), answer, "") if info.is_open else None,
        switch=_thread_action(info, thread, name, word, part, icon) if info.is_open else None,
    )


def _thread_action(info: RequestInfo, thread: ThreadInfo, name: str, label: str, reason: str, icon: str) -> Action:
    return Action(
        label=label,
        url=reverse(f"ui:promotion_thread_{name}", args=[info.id, thread.id]),
        method="post",
        allowed=not reason,
        reason=reason,
        icon=icon,
    )


def _no_part(thread: ThreadInfo, info: RequestInfo, actor: Actor) -> str:
    """Why the reader can't resolve the discussion; "" where they can."""
    if actor.user_id in (info.requested_by_id, thread.comments[0].author_id if thread.comments else None):
        return ""
    if actor.user_id in info.needed.named_ids:
        return ""
    lacking = refusal(actor, "promotion.review", registry=info.target, subject=info.subject.qualified)
    return gettext("Whoever began it, the requester or a reviewer resolves it.") if lacking else ""


def _comment_form(request: HttpRequest, info: RequestInfo, actor: Actor, url: Callable[..., str]) -> CommentForm | None:
    """The form of a new discussion, of the field that the address names; None for a closed request."""
    if not info.is_open:
        return None
    subject, path = given_text(request.GET, "of"), given_text(request.GET, "about")
    if subject not in {step.subject for step in steps_of_plan(info.plan)}:
        subject, path = "", ""
    reason = "" if actor.user_id else gettext("Sign in to take part in the discussion.")
    form = action(info, "threads", gettext("Open a discussion"), reason, icon="message-square")
    return CommentForm(open=form, subject=subject, path=path, whole_url=f"{url()}#comment")


def _problem(info: RequestInfo) -> Problem | None:
    """What went wrong when it was applied, or that its plan is damaged."""
    if info.is_unreadable:
        return Problem(
            what=gettext("The stored plan of this request can’t be read"),
            where=info.target,
            cure=gettext("Run the checks again: the plan is made anew. What people said of it is whole.")
            if info.is_open
            else gettext("The request is closed, so that it stays as it is. What people said of it is whole."),
        )
    if info.state == PromotionRequest.FAILED:
        done = sum(row.state == "done" for row in info.steps)
        return Problem(
            what=counted(
                done,
                "%(n)s of %(steps)s is done",
                "%(n)s of %(steps)s are done",
                steps=counted(len(info.steps), "%(n)s step", "%(n)s steps"),
            ),
            where=info.target,
            cure=gettext("Go on with what is left, or give up: what was written stays."),
            detail=info.failure,
        )
    if info.state == PromotionRequest.APPROVED and info.failure:
        return Problem(
            what=gettext("The last attempt to apply it failed; nothing was written"),
            where=info.target,
            cure=gettext("Repair what it says, and apply it again."),
            detail=info.failure,
        )
    return None


def packs_of(info: RequestInfo) -> tuple[Link, ...]:
    """The evidence pack, as files."""
    return (
        Link(label=gettext("One HTML file"), url=reverse("ui:promotion_evidence_html", args=[info.id])),
        Link(label="JSON", url=reverse("ui:promotion_evidence_json", args=[info.id])),
    )
