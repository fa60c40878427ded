"""The replay of a request: the newest messages of its target, read with the request's schema.

The view is a POST, because a replay uses the brokers and Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from dashboard.compatibility.presenters import DataEvidence
from dashboard.components.frame import page_actor
from dashboard.components.links import form_text
from dashboard.components.widgets import Action, Choice, Crumb, Problem
from dashboard.promotions.changes import chosen_step
from dashboard.promotions.plan import promotion_frame
from dashboard.promotions.presenters import ReplayPage
from dashboard.promotions.summary import title_of
from registry.access.roles import Actor, refusal, require
from registry.drift.replay.evidence import WeighedReplay, replay_and_weigh
from registry.drift.replay.schema_replay import names_of_topics, topics_of
from registry.drift.usage.version_usage import Coverage
from registry.errors import NotAllowed, SchemadeskError
from registry.promotions.plan.types import ADOPT, PlanStep
from registry.promotions.requests.schema_changes import places_of
from registry.promotions.requests.selectors import readable_request
from registry.promotions.selectors import RequestInfo
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import parse_subject

#: the session key of a person's last topics, and the number of remembered subjects
_SESSION: Final = "replay_topics"
_KEPT: Final = 50


def replay_action(info: RequestInfo, actor: Actor, step: PlanStep | None) -> Action | None:
    """Return the button that replays messages with the selected schema; None for a closed request."""
    if step is None or not info.is_open:
        return None
    reason = refusal(actor, "source.scan", registry=info.target, subject=step.subject)
    return Action(
        label=gettext("Replay check"),
        url=f"{reverse('ui:promotion_replay', args=[info.id])}?{urlencode({'item': step.subject})}",
        method="post",
        reason=reason,
        icon="play",
    )


def replay_topics(
    request: HttpRequest,
    info: RequestInfo,
    actor: Actor,
    step: PlanStep | None,
    carriers: Sequence[Coverage] | None = None,
) -> tuple[Choice, ...]:
    """Return the topics that can be replayed, the last one selected; none without a choice or a replay.

    `carriers` are the topics that carry the subject, if already read.
    """
    action = replay_action(info, actor, step)
    if step is None or action is None or not action.allowed:
        return ()
    if carriers is None:
        carriers = topics_of(get_registry(info.target), parse_subject(step.subject))
    names = names_of_topics(carriers)
    if len(names) < 2:
        return ()
    last = _remembered(request).get(_topic_key(info, step))
    return tuple(Choice(value=name, label=name, selected=name == last) for name in names)


def _topic_key(info: RequestInfo, step: PlanStep) -> str:
    return f"{info.target}/{step.subject}"


def _remembered(request: HttpRequest) -> dict[str, str]:
    """Return the topic of this person's last replay by subject."""
    topics = request.session.get(_SESSION)
    return topics if isinstance(topics, dict) else {}


def _remember(request: HttpRequest, topic_key: str, topic: str) -> None:
    topics = {key: value for key, value in _remembered(request).items() if key != topic_key}
    request.session[_SESSION] = dict([*topics.items(), (topic_key, topic)][-_KEPT:])


def replay_page(request: HttpRequest, request_id: int) -> ReplayPage:
    """Return how the newest messages of the target are read with a schema of the request, that of subject `item`.

    Raises NotSignedIn, NotAllowed, RequestNotFound.
    """
    actor = page_actor(request)
    info = readable_request(request_id, actor)
    step = chosen_step(info, form_text(request.GET, "item"))
    weighed, problem = None, None
    topic = form_text(request.POST, "topic")
    if step is None:
        problem = Problem(
            what=gettext("This request writes no schema to %(target)s, so there is no schema to read messages with.")
            % {"target": info.target}
        )
    else:
        try:
            weighed = _replayed(info, step, actor, topic)
            if topic:
                _remember(request, _topic_key(info, step), topic)
        except NotAllowed:
            raise
        except SchemadeskError as error:
            problem = Problem(what=error.message, where=info.target)
    address = reverse("ui:promotion", args=[info.id])
    subject = step.subject if step else info.subject.qualified
    return ReplayPage(
        frame=promotion_frame(
            request,
            gettext("Replay check of request %(number)s") % {"number": info.id},
            Crumb(label=f"#{info.id} {title_of(info)}", url=address),
            registry=info.target,
        ),
        subject=subject,
        request_url=f"{address}?{urlencode({'item': subject})}#changes",
        again=replay_action(info, actor, step),
        topics=_chosen(replay_topics(request, info, actor, step, weighed.carriers if weighed else None), topic),
        evidence=DataEvidence(notes=weighed.evidence, replay=weighed.replay) if weighed else None,
        problem=problem,
    )


def _chosen(topics: Sequence[Choice], topic: str) -> tuple[Choice, ...]:
    """Return the topics, with the submitted one selected, or else the last one."""
    return tuple(replace(choice, selected=choice.value == topic) for choice in topics) if topic else tuple(topics)


def _replayed(info: RequestInfo, step: PlanStep, actor: Actor, topic: str) -> WeighedReplay:
    """Replay the messages.

    Raises NotAllowed if the actor may not read the schema at its source, or may not start scans at the target.
    """
    for registry_name in places_of(info, step):
        require(actor, "schema.read", registry=registry_name, subject=step.subject)
    registry, name = get_registry(info.target), parse_subject(step.subject)
    if step.kind == ADOPT:
        return replay_and_weigh(registry, name, by=actor, version=step.target_version, topic=topic)
    return replay_and_weigh(
        registry, name, by=actor, text=step.text, schema_type=step.schema_type, references=step.references, topic=topic
    )


@require_POST
def replay(request: HttpRequest, request_id: int) -> HttpResponse:
    """Read the newest messages of the target with the request's schema; write nothing."""
    page = replay_page(request, request_id)
    return render(request, "promotions/replay.html", {"page": page}, status=422 if page.problem else 200)
