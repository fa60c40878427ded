"""The replay of a request: the newest messages of its target, read with the schema that it would bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.data_evidence import weighed_evidence
from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.promotions_changes import chosen_step
from dashboard.pages.promotions_words import title_of
from dashboard.pages.sources_words import given_text
from dashboard.presenters.frame import Action, Choice, Crumb, Problem, Section
from dashboard.presenters.promotions_page import ReplayPage
from dashboard.presenters.report import DataEvidence
from registry.access.roles import Actor, refusal, require
from registry.drift.data_evidence import replay_and_weigh
from registry.drift.replay import names_of_topics
from registry.errors import NotAllowed, SchemadeskError
from registry.promotions.plan import ADOPT, Step
from registry.promotions.selectors import RequestInfo
from registry.promotions.selectors.changes import places_of
from registry.promotions.selectors.readable import readable_request
from registry.subjects.names import parse_subject
from registry.subjects.selectors.places import get_registry

#: where a person's last topics are kept, and of how many subjects
_SESSION: Final = "replay_topics"
_KEPT: Final = 50


def replay_action(info: RequestInfo, actor: Actor, step: Step | None) -> Action | None:
    """The button that replays messages with the schema whose changes are shown; None where nothing is to be decided."""
    if step is None or not info.is_open:
        return None
    reason = refusal(actor, "source.scan", registry=info.target, subject=step.subject)
    return Action(
        label=gettext("Replay check"),
        url=f"{reverse('ui:promotion_replay', args=[info.id])}?{urlencode({'item': step.subject})}",
        method="post",
        allowed=not reason,
        reason=reason,
        icon="play",
    )


def replay_topics(request: HttpRequest, info: RequestInfo, actor: Actor, step: Step | None) -> tuple[Choice, ...]:
    """The topics that a replay can be of, the last one chosen; none where there is no choice, or no replay."""
    action = replay_action(info, actor, step)
    if step is None or action is None or not action.allowed:
        return ()
    names = names_of_topics(get_registry(info.target), parse_subject(step.subject))
    if len(names) < 2:
        return ()
    last = _remembered(request).get(_place(info, step))
    return tuple(Choice(value=name, label=name, selected=name == last) for name in names)


def _place(info: RequestInfo, step: Step) -> str:
    return f"{info.target}/{step.subject}"


def _remembered(request: HttpRequest) -> dict[str, str]:
    """The topic that this person had each subject replayed from last."""
    kept = request.session.get(_SESSION)
    return kept if isinstance(kept, dict) else {}


def _remember(request: HttpRequest, place: str, topic: str) -> None:
    kept = {key: value for key, value in _remembered(request).items() if key != place}
    request.session[_SESSION] = dict([*kept.items(), (place, topic)][-_KEPT:])


def replay_page(request: HttpRequest, request_id: int) -> ReplayPage:
    """What the newest messages at the target read as under a schema of the request; `item` names its subject.

    Raises NotSignedIn, NotAllowed, RequestNotFound.
    """
    actor = page_actor(request)
    info = readable_request(request_id, actor)
    step = chosen_step(info, given_text(request.GET, "item"))
    evidence, problem = None, None
    topic = given_text(request.POST, "topic")
    if step is None:
        problem = Problem(
            what=gettext("This request brings no schema to %(target)s, so there is nothing to read messages with.")
            % {"target": info.target}
        )
    else:
        try:
            evidence = _replayed(info, step, actor, topic)
            if topic:
                _remember(request, _place(info, step), topic)
        except NotAllowed:
            raise
        except SchemadeskError as error:
            problem = Problem(what=error.message, where=info.target)
    address = reverse("ui:promotion", args=[info.id])
    subject = step.subject if step else info.subject.qualified
    return ReplayPage(
        frame=make_frame(
            request,
            title=gettext("Replay check of request %(number)s") % {"number": info.id},
            section=Section.PROMOTIONS,
            registry=info.target,
            crumbs=(
                Crumb(label=gettext("Promotions"), url=reverse("ui:promotions")),
                Crumb(label=f"#{info.id} {title_of(info)}", url=address),
            ),
        ),
        subject=subject,
        request_url=f"{address}?{urlencode({'item': subject})}#changes",
        again=replay_action(info, actor, step),
        topics=_chosen(replay_topics(request, info, actor, step), topic),
        evidence=evidence,
        problem=problem,
    )


def _chosen(topics: Sequence[Choice], topic: str) -> tuple[Choice, ...]:
    """The topics with the one that was sent chosen, the last one where none was."""
    return tuple(replace(each, selected=each.value == topic) for each in topics) if topic else tuple(topics)


def _replayed(info: RequestInfo, step: Step, actor: Actor, topic: str) -> DataEvidence:
    """Raises NotAllowed for who may not read the schema where it comes from, or may not start scans at the target."""
    for place in places_of(info, step):
        require(actor, "schema.read", registry=place, subject=step.subject)
    registry, name = get_registry(info.target), parse_subject(step.subject)
    if step.kind == ADOPT:
        return weighed_evidence(replay_and_weigh(registry, name, by=actor, version=step.target_version, topic=topic))
    return weighed_evidence(
        replay_and_weigh(
            registry,
            name,
            by=actor,
            text=step.text,
            schema_type=step.schema_type,
            references=step.references,
            topic=topic,
        )
    )
